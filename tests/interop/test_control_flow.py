"""Branches, loops and functions over tasks of both kinds: every mixture must give what TensorFlow alone gives.

A mixture is three letters, the kinds of the client, of the worker (whose master partitions the graph), and of the ps:
D for dtf, T for TensorFlow.
"""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest

import dtf
from dtf.server import Server
from dtf.wire.pb import meta_graph_pb2
from tests.interop import control_flow_programs
from tests.interop.tensorflow_process import needs_tensorflow
from tests.ports import free_ports

pytestmark = needs_tensorflow

_SERVE = """
kept[sys.argv[1]] = [tf.train.Server(json.loads(sys.argv[1]), job, 0) for job in json.loads(sys.argv[2])]
"""
_RUN = """
from tests.interop import control_flow_programs as programs
found = programs.outcomes(tf, sys.argv[1], programs.SWITCHES)
functions = [each for each in programs.FUNCTIONS if each.__name__ not in json.loads(sys.argv[3])]
found.update(programs.outcomes_of_functions(tf, sys.argv[1], functions))
np.savez(sys.argv[2], **found)
"""


@contextlib.contextmanager
def mixed_cluster(tensorflow, worker, ps):
    """The target of the worker's master of a cluster of these kinds."""
    addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
    cluster = {"worker": addresses[:1], "ps": addresses[1:]}
    kinds = {"worker": worker, "ps": ps}
    tensorflow.run(_SERVE, json.dumps(cluster), json.dumps([job for job, kind in kinds.items() if kind == "T"]))
    with contextlib.ExitStack() as stack:
        for job, kind in kinds.items():
            if kind == "D":
                stack.enter_context(Server(cluster, job, 0))
        yield f"grpc://{addresses[0]}"


def outcomes(tensorflow, mixture, path):
    client, worker, ps = mixture
    with mixed_cluster(tensorflow, worker, ps) as target:
        if client == "D":
            return control_flow_programs.outcomes(dtf, target, control_flow_programs.SWITCHES)
        tensorflow.run(_RUN, target, str(path), json.dumps(["calls"] if worker == "T" else []))
    with np.load(path) as found:
        return dict(found)


@pytest.fixture(scope="module")
def alone(tensorflow, tmp_path_factory):
    """What the programs give where all tasks are TensorFlow's."""
    return outcomes(tensorflow, "TTT", tmp_path_factory.mktemp("alone") / "values.npz")


@pytest.mark.parametrize("mixture", ["TDD", "TDT", "TTD", "DDD", "DDT", "DTD", "DTT"])
def test_loops_and_branches_give_what_they_give_on_tensorflow_alone(tensorflow, alone, mixture, tmp_path):
    found = outcomes(tensorflow, mixture, tmp_path / "values.npz")
    wanted = {key: value for key, value in alone.items() if mixture[0] == "T" or not key.startswith("functions_")}
    assert set(found) >= set(wanted)
    for key, value in wanted.items():
        np.testing.assert_allclose(found[key], value, rtol=1e-4, atol=1e-6, err_msg=key)


def test_a_function_of_variables_of_another_task_runs_with_a_dtf_master(tensorflow, tmp_path):
    found = outcomes(tensorflow, "TDT", tmp_path / "values.npz")
    x, w = control_flow_programs.X, np.array([1.5, 2.0], np.float32)
    values = [found[f"functions_calls/{number}"] for number in range(10)]
    np.testing.assert_allclose(values[0], x * x * w + 1, rtol=1e-6)
    np.testing.assert_allclose(values[1], x - 1, rtol=1e-6)
    assert (values[2], values[7]) == (1, 2)
    np.testing.assert_allclose(values[3], 2 * x * w, rtol=1e-6)
    np.testing.assert_allclose(values[4], x * x, rtol=1e-6)


_EXPORT = """
def body(i, y):
    def inner():
        return tf.while_loop(lambda k, u: k < 2, lambda k, u: (k + 1, u * x), [0, y])[1]
    return i + 1, tf.cond(tf.equal(i % 2, 0), inner, lambda: tf.sin(y) + x)
x = tf.placeholder(tf.float32, [2], name="x")
if sys.argv[1] == "functions":
    tf.enable_control_flow_v2()
y = tf.identity(tf.while_loop(lambda i, y: i < 3, body, [0, x])[1], name="y")
tf.disable_control_flow_v2()
meta_graph = tf.train.export_meta_graph()
grad, = tf.gradients(y, x)
with tf.Session() as session:
    values = [value.tolist() for value in session.run([y, grad], {x: [0.5, -0.3]})]
print(json.dumps([meta_graph.SerializeToString().hex(), values]))
"""


@pytest.mark.parametrize("form", ["switches", "functions"])
def test_a_meta_graph_of_tensorflow_with_a_loop_has_gradients_here(tensorflow, form):
    data, wanted = tensorflow.run(_EXPORT, form)
    with dtf.Graph().as_default() as graph:
        dtf.train.import_meta_graph(meta_graph_pb2.MetaGraphDef.FromString(bytes.fromhex(data)))
        x, y = graph.get_tensor_by_name("x:0"), graph.get_tensor_by_name("y:0")
        grads = dtf.gradients(y, x)
        with dtf.Session() as session:
            found = session.run([y, *grads], {x: [0.5, -0.3]})
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


_IMPORT = """
meta_graph = tf.MetaGraphDef.FromString(bytes.fromhex(sys.argv[1]))
tf.train.import_meta_graph(meta_graph, import_scope=sys.argv[2] or None)
prefix = sys.argv[2] + "/" if sys.argv[2] else ""
x, y = (tf.get_default_graph().get_tensor_by_name(prefix + name) for name in ("x:0", "y:0"))
grad, = tf.gradients(y, x)
with tf.Session() as session:
    print(json.dumps([value.tolist() for value in session.run([y, grad], {x: [0.5, -0.3]})]))
"""


@pytest.mark.parametrize("scope", ["", "inside"])
def test_a_meta_graph_with_a_loop_has_gradients_in_tensorflow(tensorflow, scope):
    with dtf.Graph().as_default():
        names = {"tf": dtf, "json": json, "sys": type("sys", (), {"argv": ["", "switches"]}), "print": lambda _: None}
        exec(_EXPORT.replace("    tf.enable", "    pass; tf.enable").replace("tf.disable_control_flow_v2()", ""), names)
        data, wanted = names["meta_graph"].SerializeToString().hex(), names["values"]
    for ours, theirs in zip(wanted, tensorflow.run(_IMPORT, data, scope), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)
