"""SavedModels that one library writes and the other loads: the same signatures, the same numbers."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import dtf as tf
from tests.interop.tensorflow_process import PYTHON, needs_tensorflow

pytestmark = needs_tensorflow

# Run by both libraries: variables of both kinds, a table that is filled from an asset, three kinds of signatures.
BUILD = """
def build(tf, vocabulary):
    serialized = tf.placeholder(tf.string, [None], "examples")
    features = tf.parse_example(serialized, {"x": tf.FixedLenFeature([3], tf.float32)})
    x = tf.placeholder_with_default(features["x"], [None, 3], "x")
    w = tf.get_variable("w", initializer=[[0.5, -1.0], [2.0, 1.5], [-0.25, 3.0]], use_resource=False)
    b = tf.get_variable("b", initializer=[1.0, 2.0], use_resource=True)
    part = tf.get_variable("part", [4, 2], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    sparse = tf.sparse_placeholder(tf.float32, [None, 3], name="sparse")
    y = tf.identity(tf.matmul(x, w) + b + tf.reduce_sum(part), "y")
    lines = tf.lookup.TextFileInitializer(
        vocabulary, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE
    )
    words = tf.lookup.StaticHashTable(lines, "?").lookup(tf.argmax(y, 1))
    counter = tf.get_local_variable("counter", initializer=7.0)
    sums = tf.sparse_reduce_sum(sparse, 1) + counter
    module = tf.saved_model
    return {
        "serving_default": module.predict_signature_def({"x": x}, {"y": y, "word": words}),
        "classify": module.classification_signature_def(serialized, tf.expand_dims(words, 1), y),
        "regress": module.regression_signature_def(serialized, y[:, :1]),
        "sums": module.predict_signature_def({"sparse": sparse}, {"sums": sums}),
    }

def save(tf, folder, vocabulary):
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = build(tf, vocabulary)
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        ready = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        for path, strip, as_text in ((folder, True, False), (folder + "-text", False, True)):
            tf.get_default_graph().clear_collection("saved_model_main_op")
            tf.get_default_graph().clear_collection("saved_model_assets")
            builder = tf.saved_model.Builder(path)
            builder.add_meta_graph_and_variables(
                session, ["serve"], signatures, main_op=ready, strip_default_attrs=strip,
                assets_collection=tf.get_collection(tf.GraphKeys.ASSET_FILEPATHS),
            )
            builder.save(as_text=as_text)

def example(tf, values):
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()

def answers(tf, folder):
    "What all signatures of a model give, as lists."
    with tf.Graph().as_default(), tf.Session() as session:
        signatures = tf.saved_model.loader.load(session, ["serve"], folder).signature_def

        def run(key, feeds):
            names = {name: info.name for name, info in signatures[key].outputs.items()}
            values = session.run(names, feeds)
            listed = {name: value.tolist() for name, value in values.items()}
            return [sorted(listed), [str(listed[name]) for name in sorted(listed)], signatures[key].method_name]

        examples = [example(tf, [1, 2, 3]), example(tf, [-4, 0, 4])]
        sparse = signatures["sums"].inputs["sparse"].coo_sparse
        feeds = {
            sparse.indices_tensor_name: [[0, 1], [2, 2]], sparse.values_tensor_name: [1.5, 2.5],
            sparse.dense_shape_tensor_name: [3, 3],
        }
        return [
            run("serving_default", {signatures["serving_default"].inputs["x"].name: [[1, 2, 3], [3, 2, 1]]}),
            run("classify", {signatures["classify"].inputs["inputs"].name: examples}),
            run("regress", {signatures["regress"].inputs["inputs"].name: examples}),
            run("sums", feeds),
        ]
"""
ours: dict = {}
exec(BUILD, ours)


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory):
    path = tmp_path_factory.mktemp("words") / "words.txt"
    path.write_text("zero\none\n")
    return str(path)


def test_tensorflow_loads_our_models_and_answers_as_we_do(tmp_path, vocabulary, tensorflow):
    folder = str(tmp_path / "model")
    ours["save"](tf, folder, vocabulary)
    for path in (folder, folder + "-text"):
        expected = ours["answers"](tf, path)
        assert expected[0][1][0].count("b'") == 2 and "zero" not in str(expected[0][1][1:])
        assert tensorflow.run(BUILD + "\nprint(json.dumps(answers(tf, sys.argv[1])))", path) == expected


def test_we_load_tensorflows_models_and_answer_as_it_does(tmp_path, vocabulary, tensorflow):
    folder = str(tmp_path / "model")
    program = """
save(tf, sys.argv[1], sys.argv[2])
print(json.dumps([answers(tf, sys.argv[1]), answers(tf, sys.argv[1] + "-text")]))
"""
    expected = tensorflow.run(BUILD + program, folder, vocabulary)
    assert [ours["answers"](tf, folder), ours["answers"](tf, folder + "-text")] == expected


# Under TensorFlow 2 itself: calls the signature of a model of ours, then writes its own, with functions, objects,
# a saver that is a function, and no collections of variables; two of them by Keras. A file, since its functions need
# their source.
PROGRAM_2 = """
import sys, json, tensorflow as tf

ours, theirs, vocabulary, inputs = *sys.argv[1:4], [tf.constant(x) for x in json.loads(sys.argv[4])]

class Model(tf.Module):
    def __init__(self):
        self.w = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
        self.scale = tf.Variable(2.0)
        lines = tf.lookup.TextFileInitializer(
            vocabulary, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE
        )
        self.words = tf.lookup.StaticHashTable(lines, "?")

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def predict(self, x):
        y = x @ self.w
        y = tf.cond(tf.reduce_sum(y) > 100.0, lambda: y, lambda: y * self.scale)
        for _ in tf.range(3):
            y = y + 1.0
        return {"y": y, "word": self.words.lookup(tf.argmax(y, 1))}

loaded = tf.saved_model.load(ours)
model = Model()
tf.saved_model.save(model, theirs, signatures=model.predict)
answers = [
    [function(x=x)["y"].numpy().tolist() for x in inputs]
    for function in (loaded.signatures["serving_default"], model.predict)
]
layers = tf.keras.layers
models = {
    "images": (
        [
            layers.Input((8, 8, 1)), layers.Conv2D(4, 3, activation="relu"), layers.BatchNormalization(),
            layers.MaxPooling2D(), layers.Flatten(), layers.Dropout(0.5), layers.Dense(3, activation="softmax"),
        ],
        [[[[row * column / 64.0] for row in range(8)] for column in range(8)]],
    ),
    "words": (
        [layers.Input((5,)), layers.Embedding(10, 4), layers.LSTM(6), layers.Dense(2)],
        [[1.0, 2.0, 3.0, 4.0, 5.0], [5.0, 4.0, 3.0, 2.0, 1.0]],
    ),
}
by_keras = {}
for name, (parts, x) in models.items():
    keras_model = tf.keras.Sequential(parts)
    keras_model.export(theirs + "-" + name, verbose=False)
    by_keras[name] = [x, keras_model(tf.constant(x)).numpy().tolist()]
print(json.dumps([*answers, by_keras]))
"""


def test_tensorflow_2_and_we_call_the_signatures_of_each_others_models(tmp_path, vocabulary):
    folders = [str(tmp_path / name) for name in ("ours", "theirs")]
    inputs = [[[1.0, 2.0]], [[30.0, 40.0], [5.0, 6.0]]]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None, 2], "x")
        w = tf.get_variable("w", initializer=np.float32([[1, 2], [3, 4]]), use_resource=False)
        b = tf.get_variable("b", initializer=np.float32([5, 6]), use_resource=True)
        y = tf.nn.relu(x @ w - b)
        session.run(tf.global_variables_initializer())
        tf.saved_model.simple_save(session, folders[0], {"x": x}, {"y": y})
        expected = [session.run(y, {x: value}).tolist() for value in inputs]
    program = tmp_path / "program.py"
    program.write_text(PROGRAM_2)
    done = subprocess.run(
        [PYTHON, str(program), *folders, vocabulary, json.dumps(inputs)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    from_ours, from_theirs, by_keras = json.loads(done.stdout.splitlines()[-1])
    assert from_ours == expected
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], folders[1]).signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        for value, answer in zip(inputs, from_theirs, strict=True):
            result = session.run(outputs, {signature.inputs["x"].name: value})
            np.testing.assert_allclose(result["y"], answer, rtol=1e-6)
            assert result["word"].tolist() == [b"one"] * len(value)
    for name, (value, answer) in by_keras.items():
        with tf.Graph().as_default(), tf.Session() as session:
            signature = tf.saved_model.load(session, ["serve"], f"{folders[1]}-{name}").signature_def["serving_default"]
            (x,), (y,) = signature.inputs.values(), signature.outputs.values()
            np.testing.assert_allclose(session.run(y.name, {x.name: value}), answer, rtol=1e-5, atol=1e-6)
