"""Training programs must give, under dtf, step for step what they give under TensorFlow."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest

import dtf
from dtf.server import Server
from tests.interop import programs, tensorflow_process
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow, tensorflow_server
from tests.ports import free_ports

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


def same(ours, wanted, key):
    assert ours.dtype == wanted.dtype, key
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(ours, wanted, rtol=3e-4, atol=1e-5, err_msg=key)
    else:
        np.testing.assert_array_equal(ours, wanted, err_msg=key)


@pytest.mark.parametrize("name", programs.PROGRAMS)
def test_a_program_gives_what_it_gives_under_tensorflow(theirs, name):
    ours, names = programs.outcome(dtf, name)
    arrays, all_names = theirs
    wanted = {key.partition("/")[2]: value for key, value in arrays.items() if key.startswith(f"{name}/")}
    assert set(ours) == set(wanted)
    for key, value in wanted.items():
        same(ours[key], value, key)
    # The names by which a checkpoint knows its values.
    assert names["variables"] == all_names[name]["variables"]


#: They initialize all that they use and leave nothing behind that the next would meet.
REMOTE = [
    "softmax_regression", "perceptron_adam", "convnet", "embeddings_div", "guarded_update", "recurrent",
    "input_pipeline", "towers",
]  # fmt: skip

RUN_THERE = """
from tests.interop import programs
found = {}
for name in json.loads(sys.argv[2]):
    values, _ = programs.outcome(programs.At(tf, sys.argv[1]), name)
    found |= {f"{name}/{key}": value for key, value in values.items()}
np.savez(sys.argv[3], **found)
"""

def run_here(target, path):
    found = {}
    for name in REMOTE:
        values, _ = programs.outcome(programs.At(dtf, target), name)
        found |= {f"{name}/{key}": value for key, value in values.items()}
    np.savez(path, **found)


def run_there(target, path):
    tensorflow_process.run(RUN_THERE, target, json.dumps(REMOTE), str(path))


@pytest.mark.parametrize(
    ("client", "server"),
    [(run_here, Server), (run_there, Server), (run_here, tensorflow_server)],
    ids=["dtf client and server", "tensorflow client", "tensorflow server"],
)
def test_a_program_gives_the_same_at_a_server(theirs, client, server, tmp_path):
    (port,) = free_ports(1)
    with server({"worker": [f"127.0.0.1:{port}"]}, "worker", 0):
        client(f"grpc://127.0.0.1:{port}", tmp_path / "found.npz")
    arrays, _ = theirs
    with np.load(tmp_path / "found.npz") as found:
        wanted = {key: value for key, value in arrays.items() if key.partition("/")[0] in REMOTE}
        assert set(found.files) == set(wanted)
        for key, value in wanted.items():
            same(found[key], value, key)
