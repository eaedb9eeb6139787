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
from tests.interop.tensorflow_process import ROOT, needs_tensorflow

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder in which the example has trained, alone in its process."""
    folder = tmp_path_factory.mktemp("estimator")
    environment = {name: value for name, value in os.environ.items() if name != "TF_CONFIG"}
    subprocess.run(
        [sys.executable, "trainer.py", f"--model_dir={folder}", "--train_steps=400"],
        cwd=ROOT / "clusters" / "estimator",
        env={**environment, "PYTHONPATH": str(ROOT / "runtime")},
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
