"""Keras models train as TensorFlow's do: the same figures after each epoch, and the same weights at the end."""

from __future__ import annotations

import os
import subprocess

import numpy as np

import dtf as tf
from tests.interop import keras_programs
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


def test_models_train_as_tensorflows_do(tmp_path):
    path = tmp_path / "theirs.npz"
    done = subprocess.run(
        [PYTHON, "-m", "tests.interop.keras_programs", "tensorflow", str(path)],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ours = keras_programs.results(tf.keras)
    with np.load(path) as theirs:
        assert set(theirs.files) == set(ours)
        wrong = {
            key: float(np.abs(ours[key] - theirs[key]).max())
            for key in theirs.files
            if not np.allclose(ours[key], theirs[key], rtol=2e-4, atol=2e-5)
        }
    assert not wrong
