"""Runs one program under both runtimes and compares the arrays and names that it gives.

The program is a module with `main(runtime, path)`, which writes an npz file and prints one line of JSON, and which is
a script that takes the same two arguments.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from pathlib import Path
from types import ModuleType

import numpy as np

from tests.interop.tensorflow_process import PYTHON


def assert_same(program: ModuleType, folder: Path, rtol: float, atol: float) -> None:
    """The program must give the same under dtf, in this process, as under TensorFlow, in another one."""
    theirs = subprocess.Popen(
        [PYTHON, str(program.__file__), "tensorflow.compat.v1", str(folder / "theirs.npz")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        program.main("dtf", str(folder / "ours.npz"))
    output, _ = theirs.communicate(timeout=280)
    assert theirs.returncode == 0
    assert json.loads(printed.getvalue()) == json.loads(output.splitlines()[-1])
    with np.load(folder / "ours.npz") as ours, np.load(folder / "theirs.npz") as wanted:
        assert set(ours.files) == set(wanted.files)
        for name in wanted.files:
            assert ours[name].dtype == wanted[name].dtype, name
            np.testing.assert_allclose(ours[name], wanted[name], rtol=rtol, atol=atol, err_msg=name)
