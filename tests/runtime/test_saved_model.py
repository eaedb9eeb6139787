"""SavedModels: what is written can be loaded, and what cannot be loaded says why."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import dtf as tf
from dtf.wire.pb import meta_graph_pb2, saved_model_pb2

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def build_model(vocabulary=None):
    """A linear model with a variable of each kind, and a table of words; returns (inputs, outputs, expected)."""
    x = tf.placeholder(tf.float32, [None, 3], "x")
    w = tf.get_variable("w", initializer=np.eye(3, 2, dtype=np.float32), use_resource=False)
    b = tf.get_variable("b", initializer=np.float32([1, 2]), use_resource=True)
    y = tf.identity(x @ w + b, "y")
    outputs = {"y": y}
    if vocabulary:
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.TextFileInitializer(
                vocabulary, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
            ),
            1,
        )
        outputs["word"] = table.lookup(tf.constant(["b"]))
    return {"x": x}, outputs


@pytest.fixture
def model(tmp_path):
    """A folder with a model that has a signature, an asset and a main op."""
    vocabulary = tmp_path / "words.txt"
    vocabulary.write_text("a\nb\n")
    folder = str(tmp_path / "model")
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, outputs = build_model(str(vocabulary))
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        builder = tf.saved_model.Builder(folder)
        builder.add_meta_graph_and_variables(
            session,
            [tf.saved_model.SERVING],
            {"serving_default": tf.saved_model.predict_signature_def(inputs, outputs)},
            assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            main_op=tf.tables_initializer(),
        )
        builder.add_meta_graph(["serve", "gpu"])
        assert builder.save() == os.path.join(folder, "saved_model.pb").encode()
    vocabulary.unlink()
    return folder


def run_default_signature(session, meta_graph, scope=""):
    signature = meta_graph.signature_def["serving_default"]
    outputs = {name: scope + info.name for name, info in signature.outputs.items()}
    return session.run(outputs, {scope + signature.inputs["x"].name: X})


def test_a_model_comes_back_with_its_variables_and_files(model):
    for scope in ("", "inside/"):
        with tf.Graph().as_default(), tf.Session() as session:
            meta_graph = tf.saved_model.loader.load(session, ["serve"], model, import_scope=scope.rstrip("/") or None)
            assert set(meta_graph.signature_def) == {"serving_default"}
            result = run_default_signature(session, meta_graph, scope)
            np.testing.assert_array_equal(result["y"], X[:, :2] + [1, 2])
            assert result["word"].tolist() == [1]
            assert [variable.op.name for variable in tf.global_variables()] == [f"{scope}w", f"{scope}b"]


def test_a_server_runs_a_loaded_model(model):
    with tf.train.Server.create_local_server() as server, tf.Graph().as_default(), tf.Session(server.target) as session:
        result = run_default_signature(session, tf.saved_model.load(session, ["serve"], model))
        np.testing.assert_array_equal(result["y"], X[:, :2] + [1, 2])
        assert result["word"].tolist() == [1]


def test_text_holds_the_same_and_the_binary_file_goes_before_it(model, tmp_path):
    folder = str(tmp_path / "text")
    with tf.Graph().as_default(), tf.Session() as session:
        inputs, outputs = build_model()
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.builder.SavedModelBuilder(folder)
        signatures = {"serving_default": tf.saved_model.predict_signature_def(inputs, outputs)}
        builder.add_meta_graph_and_variables(session, ["serve"], signatures, strip_default_attrs=True)
        assert builder.save(as_text=True) == os.path.join(folder, "saved_model.pbtxt").encode()
    with tf.Graph().as_default(), tf.Session() as session:
        meta_graph = tf.saved_model.load(session, ["serve"], folder)
        assert meta_graph.meta_info_def.stripped_default_attrs
        np.testing.assert_array_equal(run_default_signature(session, meta_graph)["y"], X[:, :2] + [1, 2])
    shutil.copy(os.path.join(model, "saved_model.pb"), folder)
    assert len(tf.saved_model.loader.read_saved_model(folder).meta_graphs) == 2


def test_simple_save_clears_devices_and_adds_the_serving_signature(tmp_path):
    folder = str(tmp_path / "simple")
    with tf.Graph().as_default(), tf.Session() as session:
        with tf.device("/cpu:0"):
            inputs, outputs = build_model()
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folder, inputs, outputs)
    assert tf.saved_model.contains_saved_model(folder) and tf.saved_model.maybe_saved_model_directory(folder)
    with tf.Graph().as_default(), tf.Session() as session:
        meta_graph = tf.saved_model.load(session, {tf.saved_model.tag_constants.SERVING}, folder)
        assert {node.device for node in meta_graph.graph_def.node} == {""}
        np.testing.assert_array_equal(run_default_signature(session, meta_graph)["y"], X[:, :2] + [1, 2])


def test_a_model_without_variables_needs_no_files_for_them(tmp_path):
    folder = str(tmp_path / "constant")
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None], "x")
        tf.saved_model.simple_save(session, folder, {"x": x}, {"y": x * 2.0})
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folder).signature_def["serving_default"]
        assert session.run(signature.outputs["y"].name, {signature.inputs["x"].name: [3]}).tolist() == [6]


# What cannot be written


def test_a_folder_with_something_in_it_is_refused(model):
    with pytest.raises(AssertionError, match="isn't empty"):
        tf.saved_model.Builder(model)


def test_variables_are_added_first_and_once(tmp_path):
    with tf.Graph().as_default(), tf.Session() as session:
        build_model()
        session.run(tf.global_variables_initializer())
        builder = tf.saved_model.Builder(str(tmp_path / "model"))
        with pytest.raises(AssertionError, match="not been saved yet"):
            builder.add_meta_graph(["serve"])
        builder.add_meta_graph_and_variables(session, ["serve"])
        with pytest.raises(AssertionError, match="already been saved"):
            builder.add_meta_graph_and_variables(session, ["serve"])
        with pytest.raises(TypeError, match="not one: 'gpu'"):
            builder.add_meta_graph("gpu")
        with pytest.raises(TypeError, match="must be a SignatureDef, not a dict"):
            builder.add_meta_graph(["gpu"], {"s": {}})
        nameless = tf.saved_model.build_signature_def({"x": meta_graph_pb2.TensorInfo()})
        with pytest.raises(AssertionError, match="'x' of the signature 's'"):
            builder.add_meta_graph(["gpu"], {"s": nameless})
        with pytest.raises(TypeError, match="to be an Operation"):
            builder.add_meta_graph(["gpu"], main_op="init")
        builder.add_meta_graph(["gpu"], main_op=tf.no_op())
        with pytest.raises(ValueError, match="has a main op already"):
            builder.add_meta_graph(["tpu"], main_op=tf.no_op())


def test_assets_are_constant_paths_of_files_with_different_names(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    paths = [tmp_path / folder / "words.txt" for folder in "ab"]
    for path in paths:
        path.write_text("x")
    with tf.Graph().as_default(), tf.Session() as session:
        builder = tf.saved_model.Builder(str(tmp_path / "model"))

        def add(*assets):
            builder.add_meta_graph_and_variables(session, ["serve"], assets_collection=assets)

        with pytest.raises(ValueError, match="same file name 'words.txt'"):
            add(*[tf.constant(str(path)) for path in paths])
        with pytest.raises(ValueError, match="constant string tensor"):
            add(tf.placeholder(tf.string, []))
        with pytest.raises(ValueError, match="constant string tensor"):
            add(tf.constant(1.0))
        with pytest.raises(tf.errors.NotFoundError, match="nowhere.txt"):
            add(tf.constant(str(tmp_path / "nowhere.txt")))


# What cannot be loaded


def load(folder, tags=("serve",)):
    with tf.Graph().as_default(), tf.Session() as session:
        return tf.saved_model.load(session, tags, folder)


def test_a_folder_without_a_model_is_named(tmp_path):
    assert not tf.saved_model.contains_saved_model(str(tmp_path))
    with pytest.raises(OSError, match=r"does not exist at: .*nowhere/\{saved_model.pbtxt\|saved_model.pb\}"):
        load(str(tmp_path / "nowhere"))


def test_tags_must_be_those_of_one_graph(model):
    load(model, {"gpu", "serve"})
    with pytest.raises(RuntimeError, match="tags 'nope' could not .* with available tags: serve; serve, gpu"):
        load(model, ["nope"])
    with pytest.raises(RuntimeError, match=r"tags \(none\)"):
        load(model, [])


def test_a_damaged_file_is_named(model):
    path = os.path.join(model, "saved_model.pb")
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(data[:-10])
    with pytest.raises(OSError, match="Cannot parse file .*saved_model.pb:"):
        load(model)
    os.rename(path, path + "txt")
    with pytest.raises(OSError, match="Cannot parse file .*saved_model.pbtxt:"):
        load(model)


def test_missing_and_damaged_variables_are_named(model):
    data = os.path.join(model, "variables", "variables.data-00000-of-00001")
    with open(data, "rb") as file:
        content = bytearray(file.read())
    content[0] ^= 1
    with open(data, "wb") as file:
        file.write(content)
    with pytest.raises(tf.errors.DataLossError, match="variables"):
        load(model)
    shutil.rmtree(os.path.join(model, "variables"))
    with pytest.raises(ValueError, match="not a valid checkpoint: .*variables/variables"):
        load(model)


def test_a_missing_asset_is_named(model):
    os.remove(os.path.join(model, "assets", "words.txt"))
    with pytest.raises(tf.errors.NotFoundError, match="words.txt"):
        load(model)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../words.txt", "a/../../x", "..", "", "a\0b"])
def test_an_asset_outside_of_the_model_is_refused(model, name):
    path = os.path.join(model, "saved_model.pb")
    with open(path, "rb") as file:
        message = saved_model_pb2.SavedModel.FromString(file.read())
    (packed,) = message.meta_graphs[0].collection_def["saved_model_assets"].any_list.value
    asset = meta_graph_pb2.AssetFileDef.FromString(packed.value)
    asset.filename = name
    packed.value = asset.SerializeToString()
    with open(path, "wb") as file:
        file.write(message.SerializeToString())
    with pytest.raises(ValueError, match="is not a file of its assets folder"):
        load(model)


def test_two_main_ops_in_one_collection_are_refused(model):
    path = os.path.join(model, "saved_model.pb")
    with open(path, "rb") as file:
        message = saved_model_pb2.SavedModel.FromString(file.read())
    message.meta_graphs[0].collection_def["saved_model_main_op"].node_list.value.append("init")
    with open(path, "wb") as file:
        file.write(message.SerializeToString())
    with pytest.raises(RuntimeError, match="exactly one main op"):
        load(model)


# Signatures


def test_signatures_are_checked():
    module = tf.saved_model.signature_def_utils
    x, words = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.string, [None])
    predict = module.predict_signature_def({"x": x}, {"y": words})
    classify = module.classification_signature_def(words, words, x)
    regress = module.regression_signature_def(words, x)
    assert all(map(module.is_valid_signature, (predict, classify, regress)))
    assert regress.outputs["outputs"].tensor_shape.dim[1].size == 1
    assert not module.is_valid_signature(None)
    assert not module.is_valid_signature(module.build_signature_def(method_name="other"))
    for signature in (classify, regress):
        signature.inputs["more"].CopyFrom(signature.inputs["inputs"])
        assert not module.is_valid_signature(signature)
    for words_of_error, make in (
        ("Prediction `inputs`", lambda: module.predict_signature_def({}, {"y": x})),
        ("Prediction `outputs`", lambda: module.predict_signature_def({"x": x}, {})),
        ("`classes` and `scores` cannot both", lambda: module.classification_signature_def(words, None, None)),
        ("Classification `examples` cannot", lambda: module.classification_signature_def(None, None, x)),
        ("`classes` must be of dtype DT_STRING", lambda: module.classification_signature_def(words, x, None)),
        ("`scores` must be of dtype DT_FLOAT", lambda: module.classification_signature_def(words, None, words)),
        ("Regression `examples` cannot", lambda: module.regression_signature_def(None, x)),
        ("Regression `predictions` cannot", lambda: module.regression_signature_def(words, None)),
        ("Regression `examples` must be", lambda: module.regression_signature_def(x, x)),
    ):
        with pytest.raises(ValueError, match=words_of_error):
            make()


def test_a_tensor_info_finds_its_tensor_again():
    utils = tf.saved_model.utils
    x = tf.placeholder(tf.float32, [None, 3])
    sparse = tf.sparse_placeholder(tf.int64)
    variable = tf.get_variable("v", [2])
    assert utils.get_tensor_from_tensor_info(utils.build_tensor_info(x)) is x
    found = utils.get_tensor_from_tensor_info(utils.build_tensor_info(sparse))
    assert (found.indices, found.values, found.dense_shape) == (sparse.indices, sparse.values, sparse.dense_shape)
    assert utils.build_tensor_info(variable).name == "v:0"
    with pytest.raises(TypeError, match="this is a float: 1.0"):
        utils.build_tensor_info(1.0)
    with pytest.raises(ValueError, match="must name a tensor"):
        utils.get_tensor_from_tensor_info(meta_graph_pb2.TensorInfo())
