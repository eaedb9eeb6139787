"""What an estimator leaves behind, TensorFlow reads: the exported model, the checkpoint, the evaluations.

TensorFlow 2.21 has no tf.estimator to run the same program.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import dtf as tf
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder in which the example has trained, alone in its process."""
    folder = tmp_path_factory.mktemp("estimator")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    subprocess.run(
        [sys.executable, "trainer.py", f"--model_dir={folder}", "--train_steps=400"],
        cwd=ROOT / "clusters" / "estimator",
        env={**environment, "PYTHONPATH": str(ROOT / "runtime"), "OMP_NUM_THREADS": "1"},
        check=True,
        capture_output=True,
        timeout=100,
    )
    return folder


def test_tensorflow_serves_the_exported_model_as_we_do(trained, tensorflow):
    (exported,) = (trained / "export" / "digits").iterdir()
    data = str(ROOT / "clusters" / "digits" / "digits.npz")
    program = """
def serve(tf, folder, data):
    with np.load(data) as digits:
        images, labels = digits["images"].astype(np.float32)[..., np.newaxis] / 16, digits["labels"]
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.loader.load(session, ["serve"], folder).signature_def["serving_default"]
        outputs = {name: info.name for name, info in signature.outputs.items()}
        values = session.run(outputs, {signature.inputs["image"].name: images})
        accuracy = (values["digit"] == labels).mean()
        return [values["digit"].tolist(), values["probabilities"][:50].tolist(), float(accuracy)]
"""
    names: dict = {"np": np}
    exec(program, names)
    ours = names["serve"](tf, str(exported), data)
    theirs = tensorflow.run(
        program + "\nprint(json.dumps(serve(tf, sys.argv[1], sys.argv[2])))", str(exported), data
    )
    assert theirs[0] == ours[0] and theirs[2] > 0.95
    np.testing.assert_allclose(theirs[1], ours[1], rtol=1e-4, atol=1e-7)


def test_tensorflow_reads_its_checkpoint_and_evaluations(trained, tensorflow):
    program = """
import glob
path = tf.train.latest_checkpoint(sys.argv[1])
found = [[event.step, value.tag, value.simple_value] for file in sorted(glob.glob(sys.argv[1] + "/eval/*"))
         for event in tf.train.summary_iterator(file) for value in event.summary.value if value.tag == "accuracy"]
print(json.dumps([tf.train.list_variables(path), int(tf.train.load_variable(path, "global_step")), found]))
"""
    variables, step, found = json.loads(json.dumps(tensorflow.run(program, str(trained))))
    assert variables == [[name, shape] for name, shape in tf.train.list_variables(str(trained))] and step == 400
    evaluations = tf.estimator.experimental.read_eval_metrics(str(trained / "eval"))
    assert found == [[step, "accuracy", figures["accuracy"]] for step, figures in evaluations.items()]
    assert found[-1][0] == 400 and found[-1][2] > 0.95


# A wide and deep classifier again, of TensorFlow's own parts, from the values with which ours began.
WIDE_AND_DEEP = """
import os, sys, json
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import numpy as np, tensorflow.compat.v1 as tf
tf.disable_v2_behavior()

def columns(tf):
    fc = tf.feature_column
    word = fc.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    x = fc.numeric_column("x", shape=2)
    return [word, fc.bucketized_column(fc.numeric_column("age"), [20.0, 40.0])], [x, fc.embedding_column(word, 3)]

def main(folder, arrays, steps):
    reader = tf.train.load_checkpoint(folder + "/model.ckpt-0")
    wide, deep = columns(tf)
    with np.load(arrays) as data:
        labels = data["labels"]
        features = {name: tf.constant(data[name].tolist()) for name in ("x", "age", "word")}
    with tf.variable_scope("dnn"):
        with tf.variable_scope("input_from_feature_columns"):
            net = tf.feature_column.input_layer(features, deep)
        for scope, activation in (("hiddenlayer_0", tf.nn.relu), ("hiddenlayer_1", tf.nn.relu), ("logits", None)):
            with tf.variable_scope(scope):
                kernel = tf.get_variable("kernel", initializer=reader.get_tensor(f"dnn/{scope}/kernel"))
                bias = tf.get_variable("bias", initializer=reader.get_tensor(f"dnn/{scope}/bias"))
                net = tf.matmul(net, kernel) + bias
                net = activation(net) if activation else net
    with tf.variable_scope("linear"):
        logits = net + tf.feature_column.linear_model(features, wide, units=3)
    loss = tf.losses.sparse_softmax_cross_entropy(labels, logits, reduction=tf.losses.Reduction.SUM)
    scopes = {"dnn": tf.train.AdagradOptimizer(0.05), "linear": tf.train.FtrlOptimizer(min(0.2, 2 ** -0.5))}
    variables = {scope: tf.trainable_variables(scope + "/") for scope in scopes}
    train = [optimizer.minimize(loss, var_list=variables[scope]) for scope, optimizer in scopes.items()]
    embedding = tf.trainable_variables("dnn/input_from_feature_columns")[0]
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        embedding.load(reader.get_tensor(embedding.op.name), session)
        losses = [float(session.run([loss, train])[0]) for _ in range(steps)]
        found = {each.op.name: session.run(each).tolist() for each in sum(variables.values(), [])}
    print(json.dumps([losses, found]))

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
"""


def test_a_wide_and_deep_classifier_learns_as_one_of_tensorflows_parts(tmp_path):
    random, steps = np.random.RandomState(5), 20
    arrays = {
        "x": random.randn(30, 2).astype(np.float32),
        "age": random.uniform(0, 60, 30).astype(np.float32),
        "word": random.choice(["a", "b", "c", "d"], 30),
        "labels": random.randint(0, 3, 30),
    }
    np.savez(tmp_path / "arrays.npz", **arrays)
    names: dict = {"__name__": "columns"}
    exec(WIDE_AND_DEEP[WIDE_AND_DEEP.index("def columns") : WIDE_AND_DEEP.index("def main")], names)
    wide, deep = names["columns"](tf)
    folder = str(tmp_path / "model")
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        folder, wide, dnn_feature_columns=deep, dnn_hidden_units=[5, 4], n_classes=3
    )
    losses = []

    class Losses(tf.estimator.SessionRunHook):
        def begin(self):
            (self.loss,) = tf.losses.get_losses()

        def before_run(self, run_context):
            return tf.estimator.SessionRunArgs(self.loss)

        def after_run(self, run_context, run_values):
            losses.append(float(run_values.results))

    features = {name: arrays[name] for name in ("x", "age", "word")}
    input_fn = tf.estimator.inputs.numpy_input_fn(features, arrays["labels"], 30, num_epochs=None, shuffle=False)
    classifier.train(input_fn, [Losses()], steps)
    program = tmp_path / "program.py"
    program.write_text(WIDE_AND_DEEP)
    done = subprocess.run(
        [PYTHON, str(program), folder, str(tmp_path / "arrays.npz"), str(steps)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    their_losses, variables = json.loads(done.stdout.splitlines()[-1])
    np.testing.assert_allclose(losses, their_losses, rtol=1e-4)
    assert len(variables) == 7 + 3
    for name, value in variables.items():
        np.testing.assert_allclose(classifier.get_variable_value(name), value, rtol=1e-3, atol=1e-5, err_msg=name)
