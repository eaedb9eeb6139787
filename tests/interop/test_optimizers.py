"""Every optimizer must take the steps that TensorFlow's takes, and give its variables and ops the same names."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess

import numpy as np

from tests.interop import optimizer_steps
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


def test_twenty_steps_of_every_optimizer_are_tensorflows(tmp_path):
    theirs = subprocess.Popen(
        [PYTHON, str(ROOT / "tests/interop/optimizer_steps.py"), "tensorflow.compat.v1", str(tmp_path / "theirs.npz")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        optimizer_steps.main("dtf", str(tmp_path / "ours.npz"))
    output, _ = theirs.communicate(timeout=280)
    assert theirs.returncode == 0
    assert json.loads(printed.getvalue()) == json.loads(output.splitlines()[-1])
    with np.load(tmp_path / "ours.npz") as ours, np.load(tmp_path / "theirs.npz") as wanted:
        assert set(ours.files) == set(wanted.files)
        for name in wanted.files:
            np.testing.assert_allclose(ours[name], wanted[name], rtol=1e-5, atol=1e-5, err_msg=name)
