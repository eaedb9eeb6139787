"""A program must build the same graph as with TensorFlow: names, ops, inputs, attributes and devices of all nodes."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

import dtf
from tests.interop.graph_programs import GRADIENT_PROGRAMS, PROGRAMS, described
from tests.interop.tensorflow_process import PYTHON, ROOT, needs_tensorflow

pytestmark = needs_tensorflow


@pytest.fixture(scope="module")
def theirs():
    finished = subprocess.run(
        [PYTHON, str(ROOT / "tests/interop/graph_programs.py")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        timeout=280,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    return {line["program"]: line["nodes"] for line in map(json.loads, finished.stdout.splitlines())}


def comparable(nodes):
    """Without what only newer TensorFlow writes, and the op seeds, which it counts differently."""
    for node in nodes.values():
        node["attrs"].pop("_has_manual_control_dependencies", None)
        node["attrs"].pop("seed2", None)
    return nodes


@pytest.mark.parametrize("name", sorted(set(PROGRAMS) - GRADIENT_PROGRAMS))
def test_a_program_builds_tensorflows_graph(theirs, name):
    assert comparable(described(dtf, PROGRAMS[name])) == comparable(theirs[name])


@pytest.mark.parametrize("name", sorted(GRADIENT_PROGRAMS))
def test_gradients_begin_and_end_at_nodes_of_tensorflows_names(theirs, name):
    """Which ops compute the gradient of an op is left open."""
    ours = described(dtf, PROGRAMS[name])
    scopes = [{node.rpartition("/")[0] for node in nodes} for nodes in (ours, theirs[name])]
    assert scopes[0] == scopes[1] or {scope.rpartition("_grad")[0] for scope in scopes[0]} == {
        scope.rpartition("_grad")[0] for scope in scopes[1]
    }
    forward = {node for node in theirs[name] if not node.startswith("gradients/")}
    assert forward == {node for node in ours if not node.startswith("gradients/")}
