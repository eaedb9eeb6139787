"""Training programs must give, under dtf, step for step what they give under TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import dtf
from tests.interop import programs
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    path = tmp_path_factory.mktemp("programs") / "theirs.npz"
    finished = subprocess.run(
        [PYTHON, str(ROOT / "tests/interop/programs.py"), "tensorflow.compat.v1", str(path)],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert finished.returncode == 0, finished.stderr[-3000:]
    names = {line["program"]: line for line in map(json.loads, finished.stdout.splitlines())}
    with np.load(path) as file:
        return dict(file), names


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_gives_what_it_gives_under_tensorflow(theirs, name):
    ours, names = programs.outcome(dtf, name)
    arrays, all_names = theirs
    wanted = {key.partition("/")[2]: value for key, value in arrays.items() if key.startswith(f"{name}/")}
    assert set(ours) == set(wanted)
    for key, value in wanted.items():
        assert ours[key].dtype == value.dtype, key
        if value.dtype.kind == "f":
            np.testing.assert_allclose(ours[key], value, rtol=3e-4, atol=1e-5, err_msg=key)
        else:
            np.testing.assert_array_equal(ours[key], value, err_msg=key)
    # The names by which a checkpoint knows its values.
    assert names["variables"] == all_names[name]["variables"]
