"""TensorFlow's tools for frozen graphs: freeze_graph in its forms, strip_unused, optimize_for_inference."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.as_tensorflow.historic import freeze_graph, inference_graphs

IMAGES = np.random.RandomState(0).rand(2, 6, 6, 3).astype(np.float32)
KIND = tf.float32.as_datatype_enum


def statistics(scope):
    values = {"gamma": [1.0, 2.0, 0.5, 1.0], "beta": [0.0, 0.1, 0.2, 0.3]}
    values |= {"mean": [0.1, 0.2, 0.3, 0.4], "variance": [1.0, 0.5, 2.0, 1.0]}
    with tf.variable_scope(scope):
        return [tf.get_variable(name, initializer=tf.constant(value)) for name, value in values.items()]


def build(use_resource):
    images = tf.placeholder(tf.float32, [None, 6, 6, 3], name="images")
    with tf.variable_scope("net", use_resource=use_resource):
        kernel = tf.get_variable("kernel", [3, 3, 3, 4], initializer=tf.random_normal_initializer(seed=1))
        net = tf.nn.conv2d(tf.check_numerics(images, "images"), kernel, [1, 1, 1, 1], "SAME")
        net, _, _ = tf.nn.fused_batch_norm(net, *statistics("first"), is_training=False)
        net = tf.nn.relu(tf.identity(net), name="relu")
        depth = tf.get_variable("depth", [3, 3, 4, 1], initializer=tf.random_normal_initializer(seed=2))
        net = tf.nn.depthwise_conv2d(net, depth, [1, 1, 1, 1], "SAME")
        net, _, _ = tf.nn.fused_batch_norm(net, *statistics("second"), is_training=False)
        tf.get_variable("unsaved", initializer=1.0)
    return images, tf.reduce_mean(net, [1, 2], name="scores")


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def model(request, tmp_path):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        images, scores = build(request.param)
        saver = tf.train.Saver([each for each in tf.global_variables() if "unsaved" not in each.name])
        session.run(tf.global_variables_initializer())
        saver.save(session, str(tmp_path / "model"))
        tf.train.write_graph(graph, str(tmp_path), "graph.pbtxt")
        (tmp_path / "saver.pbtxt").write_text(str(saver.as_saver_def()))
        tf.saved_model.simple_save(session, str(tmp_path / "saved"), {"images": images}, {"scores": scores})
        return tmp_path, session.run(scores, {images: IMAGES})


def freeze(folder, graph="", saver="", checkpoint="model", **others):
    place = {name: str(folder / file) if file else "" for name, file in [("g", graph), ("s", saver), ("c", checkpoint)]}
    rest = ("scores", "save/restore_all", "save/Const:0", str(folder / "frozen.pb"), True, "")
    return freeze_graph.freeze_graph(place["g"], place["s"], False, place["c"], *rest, **others)


def scores_of(graph_def):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        tf.import_graph_def(graph_def, name="")
        assert graph.get_operations()[-1].name == "scores"
        return session.run("scores:0", {"images:0": IMAGES})


def test_a_graph_freezes_from_a_checkpoint_a_saver_a_meta_graph_or_a_saved_model(model):
    folder, scores = model
    forms = [
        freeze(folder, "graph.pbtxt"),
        freeze(folder, "graph.pbtxt", "saver.pbtxt"),
        freeze(folder, input_meta_graph=str(folder / "model.meta")),
        freeze(folder, checkpoint="", input_saved_model_dir=str(folder / "saved"), saved_model_tags="serve"),
    ]
    for frozen in forms:
        np.testing.assert_allclose(scores_of(frozen), scores, rtol=1e-5, atol=1e-6)
    tf.train.write_graph(forms[0], str(folder), "again.pbtxt")
    with pytest.raises(ValueError, match="cannot freeze a graph twice"):
        freeze(folder, "again.pbtxt")


def test_batch_normalisations_go_into_the_weights_before_them(model):
    folder, scores = model
    small = inference_graphs.optimize_for_inference(freeze(folder, "graph.pbtxt"), ["images"], ["scores"], KIND)
    kinds = sorted(node.op for node in small.node if node.op != "Const")
    assert kinds == ["BiasAdd", "BiasAdd", "Conv2D", "DepthwiseConv2dNative", "Mean", "Placeholder", "Relu"]
    np.testing.assert_allclose(scores_of(small), scores, rtol=1e-4, atol=1e-5)


def test_inputs_in_the_middle_become_placeholders_and_what_is_before_them_goes(model):
    folder, _ = model
    frozen = freeze(folder, "graph.pbtxt")
    middle = inference_graphs.strip_unused(frozen, ["net/relu"], ["scores"], [KIND])
    assert [node.op for node in middle.node if node.name in ("net/relu", "images")] == ["Placeholder"]
    assert "net/kernel" not in {node.name for node in middle.node}
    with pytest.raises(ValueError, match="appears to refer to a Tensor"):
        inference_graphs.strip_unused(frozen, ["net/relu:0"], ["scores"], KIND)
    with pytest.raises(KeyError, match="absent"):
        inference_graphs.strip_unused(frozen, ["absent"], ["scores"], KIND)
