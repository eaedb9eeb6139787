"""Functions that call themselves or each other too often end with an error in words: soon, and in little memory."""

from __future__ import annotations

import gc
import threading
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.run.executor.functions import FunctionLibrary
from dtf.run.master.client_graph import ClientGraph
from dtf.wire import errors, limits
from dtf.wire.pb import graph_pb2
from tests.interop.hostile_requests import add_call, calling, doubling, function, recursive
from tests.runtime.graphs import GraphBuilder

PS = "/job:ps/task:0"


def chain(length: int, device: str = "") -> graph_pb2.GraphDef:
    """Functions each of which calls the next one."""
    functions = [function(f"f{number}") for number in range(length)]
    for number, made in enumerate(functions[:-1]):
        add_call(made.node_def[0], f"f{number + 1}", device)
        made.ret["y"] = "b:output:0"
    functions[-1].node_def[0].device = device
    return calling(*functions)


def counting_down() -> graph_pb2.GraphDef:
    """f(x) = x if x is 0, else f(x - 1): recursion with an end."""
    again, end, f = function("again"), function("end"), function("f")
    minus = again.node_def[0]
    minus.op, minus.name = "Sub", "minus"
    minus.input.append("one:output:0")
    one = again.node_def.add(name="one", op="Const")
    one.attr["dtype"].type = 1
    one.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(1)))
    add_call(again.node_def.add(), "f")
    again.node_def[2].input[0] = "minus:z:0"
    again.ret["y"] = "b:output:0"
    end.node_def[0].op = "Identity"
    end.ret["y"] = "b:output:0"
    choice = f.node_def[0]
    choice.Clear()
    choice.name, choice.op = "b", "If"
    choice.input.extend(["x", "x"])
    choice.attr["Tcond"].type = 1
    choice.attr["Tin"].list.type.append(1)
    choice.attr["Tout"].list.type.append(1)
    choice.attr["then_branch"].func.name, choice.attr["else_branch"].func.name = "again", "end"
    f.ret["y"] = "b:output:0"
    return calling(f, again, end)


def with_constant(graph: graph_pb2.GraphDef, value: float) -> graph_pb2.GraphDef:
    graph.node[0].attr["value"].tensor.CopyFrom(tf.make_tensor_proto(np.float32(value)))
    return graph


@pytest.mark.parametrize("names", [["f"], ["f", "g"], ["f", "g", "h"]])
def test_functions_that_call_each_other_without_end_are_invalid(names):
    with pytest.raises(errors.InvalidArgumentError, match="Function f calls itself.*without a condition"):
        run_graph_def(recursive(*names), ["a:0"])


@pytest.mark.parametrize("names", [["f"], ["f", "g"]])
def test_a_session_refuses_them_too(names):
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(recursive(*names), name="")
        with pytest.raises(errors.InvalidArgumentError, match="calls itself"):
            session.run("a:0")


def test_a_recursion_with_an_end_needs_no_deep_stack():
    assert run_graph_def(with_constant(counting_down(), 400), ["a:0"]) == [0]


def test_a_recursion_whose_end_never_comes_is_invalid_at_its_depth(monkeypatch):
    monkeypatch.setenv(limits.FUNCTION_DEPTH.variable, "100")
    with pytest.raises(errors.InvalidArgumentError, match="calls itself.*more than 100 deep"):
        run_graph_def(with_constant(counting_down(), 0.5), ["a:0"])


def test_calls_inside_of_each_other_are_bounded(monkeypatch):
    monkeypatch.setenv(limits.FUNCTION_DEPTH.variable, "100")
    assert run_graph_def(chain(99), ["a:0"]) == [-1]
    with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_FUNCTION_DEPTH"):
        run_graph_def(chain(200), ["a:0"])


def test_two_calls_of_one_function_share_its_body():
    graph = doubling(12)
    assert run_graph_def(graph, ["a:0"]) == [1]
    functions = {each.signature.name: each for each in graph.library.function}
    library = FunctionLibrary(functions, lambda body, library: Executor(body, library=library))
    executor = Executor(graph_pb2.GraphDef(node=graph.node), library=library)
    executor.run(local_step())
    assert len(library._bodies) == 12
    del executor
    gc.collect()
    assert not library._bodies


def test_very_many_calls_end_when_their_step_is_cancelled():
    step, ended, outcome = local_step(), threading.Event(), list[Any]()

    def done(error: errors.OpError | None) -> None:
        outcome.append(error)
        ended.set()

    executor = Executor(doubling(30))
    threading.Thread(target=executor.run_async, args=(step, done), daemon=True).start()
    assert not ended.wait(0.2)
    step.cancel(errors.CancelledError.of("enough"))
    assert ended.wait(60)
    assert isinstance(outcome[0], errors.CancelledError)


def test_a_session_stops_them_at_the_limit_of_time():
    options = tf.RunOptions(timeout_in_ms=300)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.import_graph_def(doubling(30), name="")
        with pytest.raises(errors.DeadlineExceededError):
            session.run("a:0", options=options)


def needed(graph: graph_pb2.GraphDef) -> int:
    """How many nodes a step has whose functions may be on several tasks."""
    client = ClientGraph(is_spread=True)
    client.extend(graph, 0)
    return len(client.needed([], ["a:0"], [])[0])


def test_bodies_that_take_the_place_of_their_calls_are_bounded(monkeypatch):
    assert needed(doubling(5, PS)) == 33
    monkeypatch.setenv(limits.INLINED_NODES.variable, "1000")
    with pytest.raises(errors.ResourceExhaustedError, match="DTF_MAX_INLINED_NODES"):
        needed(doubling(30, PS))


def test_so_is_how_deep_they_are():
    assert needed(chain(60, PS)) == 62
    with pytest.raises(errors.ResourceExhaustedError, match="called in more than 64 others"):
        needed(chain(2000, PS))


def test_a_function_in_the_place_of_its_call_keeps_calls_of_itself():
    assert needed(recursive("f", "g", device=PS)) == 4


def test_a_call_that_does_not_fit_its_function_is_refused():
    for attr, types in (("Tin", [3]), ("Tin", []), ("Tin", [1, 1]), ("Tout", [3])):
        graph = calling(function())
        del graph.node[1].attr[attr].list.type[:]
        graph.node[1].attr[attr].list.type.extend(types)
        graph.node[1].attr[attr].list.SetInParent()
        if attr == "Tin":
            graph.node[1].input[:] = ["c"] * len(types)
        with pytest.raises(errors.InvalidArgumentError, match="Function f (takes|gives)"):
            run_graph_def(graph, ["a:0"])


def test_a_body_whose_edges_do_not_fit_is_refused():
    graph = calling(function())
    graph.library.function[0].node_def[0].attr["T"].type = 3
    with pytest.raises(errors.InvalidArgumentError, match="incompatible with expected int32"):
        run_graph_def(graph, ["a:0"])


def test_a_name_has_one_function_and_is_no_ops():
    client = ClientGraph()
    client.extend(calling(function()), 0)
    other = GraphBuilder().graph_def
    other.library.function.append(function())
    client.extend(other, 1)
    other.library.function[0].node_def[0].op = "Abs"
    with pytest.raises(errors.InvalidArgumentError, match="a different function with the same name"):
        client.extend(other, 2)
    other.library.function[0].signature.name = "Neg"
    with pytest.raises(errors.InvalidArgumentError, match="an op with the same name"):
        client.extend(other, 2)
