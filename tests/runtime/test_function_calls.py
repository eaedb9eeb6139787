"""Gradients through calls of functions: they must be those of the bodies, written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dtf as tf
from dtf.build.function_calls import open_call
from dtf.wire import dtypes, opdef
from dtf.wire.pb import function_pb2, graph_pb2

X = np.array([0.5, -0.25], np.float32)
FLOAT, INT, BOOL = (each.as_datatype_enum for each in (dtypes.float32, dtypes.int32, dtypes.bool))


def function_of(name: str, build: Callable[..., Any], *types: Any) -> function_pb2.FunctionDef:
    """The FunctionDef of what `build` adds to a graph, given one placeholder per type."""
    function = function_pb2.FunctionDef()
    function.signature.name = name
    with tf.Graph().as_default() as graph:
        arguments = [tf.placeholder(dtype, [], name=f"a{number}") for number, dtype in enumerate(types)]
        results = build(*arguments)
        results = results if isinstance(results, list) else [results]
    spelled: dict[str, str] = {}
    for argument in arguments:
        function.signature.input_arg.add(name=argument.op.name, type=argument.dtype.as_datatype_enum)
        spelled[argument.name] = argument.op.name
    for op in graph.get_operations():
        for tensor, output in zip(op.outputs, opdef.get(op.type).outputs, strict=False):
            spelled.setdefault(tensor.name, f"{op.name}:{output.name}:0")
    for node in graph.as_graph_def().node:
        if node.op != "Placeholder":
            copy = function.node_def.add()
            copy.CopyFrom(node)
            copy.input[:] = [text if text[0] == "^" else spelled[text if ":" in text else text + ":0"]
                             for text in node.input]  # fmt: skip
    for number, result in enumerate(results):
        function.signature.output_arg.add(name=f"r{number}", type=result.dtype.as_datatype_enum)
        function.ret[f"r{number}"] = spelled[result.name]
    return function


LIBRARY = [
    function_of("wave", lambda a, b: [tf.sin(a) * b, a * 2.0], tf.float32, tf.float32),
    function_of("square", lambda a: a * a, tf.float32),
    function_of("cube", lambda a: a * a * a, tf.float32),
    function_of("identity", lambda a: tf.identity(a), tf.float32),
    function_of("few", lambda i, y, w: i < 3, tf.int32, tf.float32, tf.float32),
    function_of("turn", lambda i, y, w: [i + 1, tf.tanh(y * w), tf.identity(w)], tf.int32, tf.float32, tf.float32),
]


def call(op: str, inputs: list[str], tin: list[int], tout: list[int], **functions: Any) -> graph_pb2.GraphDef:
    """A graph of x, w, p and k, and one call, "call"."""
    graph_def = graph_pb2.GraphDef()
    graph_def.library.function.extend(LIBRARY)
    for name, enum in (("x", FLOAT), ("w", FLOAT), ("p", BOOL), ("k", INT), ("zero", INT)):
        placeholder = graph_def.node.add(name=name, op="Placeholder")
        placeholder.attr["dtype"].type = enum  # type: ignore[assignment]
    node = graph_def.node.add(name="call", op=op, input=inputs)
    for key, value in functions.items():
        if isinstance(value, list):
            for name in value:
                node.attr[key].list.func.add(name=name)
        else:
            node.attr[key].func.name = value
    if op == "While":
        node.attr["T"].list.type.extend(tin)
    else:
        node.attr["Tin"].list.type.extend(tin)
        node.attr["Tout"].list.type.extend(tout)
    if op == "If":
        node.attr["Tcond"].type = BOOL  # type: ignore[assignment]
    return graph_def


WAVE = call("PartitionedCall", ["x", "w"], [FLOAT, FLOAT], [FLOAT, FLOAT], f="wave")
CHOICE = call("If", ["p", "x"], [FLOAT], [FLOAT], then_branch="square", else_branch="cube")
CASE = call("Case", ["k", "x"], [FLOAT], [FLOAT], branches=["identity", "square", "cube"])
LOOP = call("While", ["zero", "x", "w"], [INT, FLOAT, FLOAT], [], cond="few", body="turn")
FEEDS = {"x:0": X, "w:0": np.float32(0.75), "p:0": True, "k:0": 1, "zero:0": 0}


def turned(x: np.ndarray, w: float) -> tuple[np.ndarray, np.ndarray]:
    """Three turns of tanh(x w), and the derivative by x."""
    grad = np.ones_like(x)
    for _ in range(3):
        x = np.tanh(x * w)
        grad = grad * (1 - x * x) * w
    return x, grad


@pytest.mark.parametrize(
    ("graph_def", "output", "feeds", "value", "grad"),
    [
        (WAVE, 0, {}, np.sin(X) * 0.75, np.cos(X) * 0.75),
        (WAVE, 1, {}, X * 2, np.full_like(X, 2)),
        (CHOICE, 0, {"p:0": True}, X**2, 2 * X),
        (CHOICE, 0, {"p:0": False}, X**3, 3 * X**2),
        (CASE, 0, {"k:0": 0}, X, np.ones_like(X)),
        (CASE, 0, {"k:0": 1}, X**2, 2 * X),
        (CASE, 0, {"k:0": 7}, X**3, 3 * X**2),
        (CASE, 0, {"k:0": -1}, X**3, 3 * X**2),
        (LOOP, 1, {}, *turned(X, 0.75)),
    ],
)
def test_the_gradient_of_a_call_is_that_of_its_body(graph_def, output, feeds, value, grad):
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        y = graph.get_tensor_by_name(f"call:{output}")
        grads = tf.gradients(y, graph.get_tensor_by_name("x:0"))
        with tf.Session() as session:
            found = session.run([y, *grads], {**FEEDS, **feeds})
    np.testing.assert_allclose(found[0], value, rtol=1e-5)
    np.testing.assert_allclose(found[1], grad, rtol=1e-5)


def test_an_opened_call_keeps_its_name_and_its_value():
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(WAVE, name="")
        op = graph.get_operation_by_name("call")
        open_call(op)
        assert op.type == "IdentityN"
        assert [tensor.op.name for tensor in op.inputs] == ["call/opened/wave/mul", "call/opened/wave/mul_1"]
        with tf.Session() as session:
            np.testing.assert_allclose(session.run("call:0", FEEDS), np.sin(X) * 0.75, rtol=1e-6)


def test_a_session_that_has_run_a_call_gets_its_gradient_too():
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(CHOICE, name="")
        y = graph.get_tensor_by_name("call:0")
        with tf.Session() as session:
            np.testing.assert_allclose(session.run(y, FEEDS), X**2, rtol=1e-6)
            grads = tf.gradients(y, graph.get_tensor_by_name("x:0"))
            np.testing.assert_allclose(session.run(grads[0], FEEDS), 2 * X, rtol=1e-6)
            np.testing.assert_allclose(session.run(y, FEEDS), X**2, rtol=1e-6)


def test_a_function_that_is_not_there_is_named():
    graph_def = graph_pb2.GraphDef()
    graph_def.CopyFrom(WAVE)
    del graph_def.library.function[:]
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(graph_def, name="")
        with pytest.raises(ValueError, match="Function wave is not in the library"):
            tf.gradients(graph.get_tensor_by_name("call:0"), graph.get_tensor_by_name("x:0"))
