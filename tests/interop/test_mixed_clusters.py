"""Tasks of both kinds in one cluster: whole programs must give what they give on TensorFlow alone.

A mixture is four letters, the kinds of the client, of the worker (whose master partitions the graph), and of the two
ps: D for dtf, T for TensorFlow.
"""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import dtf
from dtf.server import Server
from tests.interop import cluster_programs, rewrites
from tests.interop.tensorflow_process import needs_tensorflow
from tests.ports import free_ports

pytestmark = needs_tensorflow

TASKS = [("worker", 0), ("ps", 0), ("ps", 1)]
ALONE = "TTTT"
MIXTURES = ["TTDD", "TTDT", "TDDD", "TDTD", "TDTT", "DDDD", "DDTT", "DDTD", "DTDD", "DTDT", "DTTT"]

_SERVE = """
kept[sys.argv[1]] = [tf.train.Server(json.loads(sys.argv[1]), job, index) for job, index in json.loads(sys.argv[2])]
"""
_RUN = """
from tests.interop import cluster_programs, rewrites
np.savez(sys.argv[3], **cluster_programs.outcomes(tf, sys.argv[1], json.loads(sys.argv[2])))
"""


@contextlib.contextmanager
def mixed_cluster(tensorflow, kinds):
    """The target of the worker's master of a cluster of these kinds (worker, ps 0, ps 1)."""
    worker, *ps = (f"127.0.0.1:{port}" for port in free_ports(3))
    cluster = {"worker": [worker], "ps": ps}
    theirs = [task for task, kind in zip(TASKS, kinds, strict=True) if kind == "T"]
    tensorflow.run(_SERVE, json.dumps(cluster), json.dumps(theirs))
    with contextlib.ExitStack() as stack:
        for task, kind in zip(TASKS, kinds, strict=True):
            if kind == "D":
                stack.enter_context(Server(cluster, *task))
        yield f"grpc://{worker}"


def outcomes(tensorflow, mixture, path):
    """What all programs give whose names the client has."""
    names = list(cluster_programs.PROGRAMS)
    if mixture[0] == "T":
        names += cluster_programs.OF_TENSORFLOWS_CLIENT
    with mixed_cluster(tensorflow, mixture[1:]) as target:
        if mixture[0] == "D":
            return cluster_programs.outcomes(dtf, target, names)
        tensorflow.run(_RUN, target, json.dumps(names), str(path))
    with np.load(path) as found:
        return dict(found)


@pytest.fixture(scope="module")
def alone(tensorflow, tmp_path_factory):
    """What the programs give where all tasks are TensorFlow's."""
    return outcomes(tensorflow, ALONE, tmp_path_factory.mktemp("alone") / "values.npz")


@pytest.mark.parametrize("mixture", MIXTURES)
def test_programs_give_what_they_give_on_tensorflow_alone(tensorflow, alone, mixture, tmp_path):
    found = outcomes(tensorflow, mixture, tmp_path / "values.npz")
    names = {**cluster_programs.PROGRAMS, **(cluster_programs.OF_TENSORFLOWS_CLIENT if mixture[0] == "T" else {})}
    wanted = {key: value for key, value in alone.items() if key.split("/")[0] in names}
    assert set(found) == set(wanted)
    for key, value in wanted.items():
        assert found[key].dtype == value.dtype, key
        if value.dtype.kind == "f":
            np.testing.assert_allclose(found[key], value, rtol=3e-4, atol=1e-5, err_msg=key)
        else:
            np.testing.assert_array_equal(found[key], value, err_msg=key)


_BECOMES = """
from tests.interop import rewrites
with tf.device("/job:ps/task:0"):
    model = rewrites.Model(tf)
    outs = {name: rewrite.build(model) for name, rewrite in rewrites.REWRITES.items()}
with tf.Session(sys.argv[1]) as session:
    session.run(tf.global_variables_initializer())
    print(json.dumps({name: rewrites.becomes(tf, session, model, out) for name, out in outs.items()}))
"""


def test_what_tensorflows_optimizer_makes_of_a_graph_reaches_the_dtf_ps(tensorflow):
    """The mixtures above compare the values: here is that they are those of the rewritten graphs."""
    with mixed_cluster(tensorflow, "TDD") as target:
        found = tensorflow.run(_BECOMES, target)
    for name, rewrite in rewrites.REWRITES.items():
        for op, fused_ops in rewrite.becomes.items():
            assert op in found[name], (name, found[name])
            assert not fused_ops or found[name][op] == fused_ops, name
        assert not set(rewrite.without) & set(found[name]), (name, found[name])
