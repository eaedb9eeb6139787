"""Feature columns give the numbers, variables and gradients that TensorFlow's give."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np

import dtf as tf
from tests.interop import feature_column_programs
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


def test_columns_are_tensorflows(tmp_path):
    path = tmp_path / "theirs.npz"
    done = subprocess.run(
        [PYTHON, "-m", "tests.interop.feature_column_programs", "tensorflow.compat.v1", str(path)],
        cwd=ROOT,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ours, names = feature_column_programs.results(tf)
    assert names == json.loads(done.stdout.splitlines()[-1])
    with np.load(path) as theirs:
        assert set(theirs.files) == set(ours)
        for key in theirs.files:
            if theirs[key].dtype.kind == "U":
                assert theirs[key].tolist() == ours[key].tolist(), key
            else:
                size = np.abs(theirs[key]).max(initial=0.0)  # the order of sums is each processor's own
                np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-5, atol=1e-6 + 1e-5 * size, err_msg=key)
