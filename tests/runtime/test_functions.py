"""Bodies of functions: how they become graphs, and how calls end."""

from __future__ import annotations

import numpy as np
import pytest

from dtf.run.executor.executor import Executor, local_step, run_graph_def
from dtf.wire import dtypes, errors
from dtf.wire.functions import instantiate
from dtf.wire.pb import attr_value_pb2, function_pb2, types_pb2
from tests.runtime.graphs import GraphBuilder

F32 = dtypes.float32


def function(name: str, arguments: dict[str, int], results: dict[str, tuple[int, str]]) -> function_pb2.FunctionDef:
    made = function_pb2.FunctionDef()
    made.signature.name = name
    for argument, dtype in arguments.items():
        made.signature.input_arg.add(name=argument, type=dtype)
    for result, (dtype, tensor) in results.items():
        made.signature.output_arg.add(name=result, type=dtype)
        made.ret[result] = tensor
    return made


def add_node(made: function_pb2.FunctionDef, name: str, op: str, inputs: list[str], **types: int) -> None:
    node = made.node_def.add(name=name, op=op, input=inputs)
    for key, dtype in types.items():
        node.attr[key].type = dtype


def call(g: GraphBuilder, name: str, *inputs: str, outputs: int = 1) -> str:
    node = g.graph_def.node.add(name=f"call_{name}", op="PartitionedCall", input=inputs)
    node.attr["f"].func.name = name
    node.attr["Tin"].list.type.extend([types_pb2.DT_FLOAT] * len(inputs))
    node.attr["Tout"].list.type.extend([types_pb2.DT_FLOAT] * outputs)
    return node.name


def test_inside_a_function_outputs_have_names_and_numbers():
    both = function(
        "both",
        {"x": types_pb2.DT_FLOAT},
        {"a": (types_pb2.DT_FLOAT, "parts:output:1"), "b": (types_pb2.DT_FLOAT, "x")},
    )
    add_node(both, "parts", "Unpack", ["x"], T=types_pb2.DT_FLOAT)
    both.node_def[0].attr["num"].i = 2
    graph_def = instantiate(both, {}, {"both": both})
    assert [(node.name, list(node.input)) for node in graph_def.node] == [
        ("_arg_x_0", []),
        ("parts", ["_arg_x_0:0"]),
        ("_retval_a_0", ["parts:1"]),
        ("_retval_b_0", ["_arg_x_0:0"]),
    ]
    g = GraphBuilder()
    g.graph_def.library.function.add().CopyFrom(both)
    called = call(g, "both", g.const(np.float32([3, 4])), outputs=2)
    first, second = run_graph_def(g.graph_def, [called, f"{called}:1"])
    assert first == 4
    assert second.tolist() == [3, 4]


def test_attributes_of_the_body_may_stand_for_attributes_of_the_call():
    generic = function_pb2.FunctionDef()
    generic.signature.name = "generic"
    generic.signature.input_arg.add(name="x", type_attr="T")
    generic.signature.output_arg.add(name="y", type_attr="T")
    generic.ret["y"] = "n:y:0"
    node = generic.node_def.add(name="n", op="Neg", input=["x"])
    node.attr["T"].placeholder = "T"
    attrs = {"T": attr_value_pb2.AttrValue(type=types_pb2.DT_INT32)}
    graph_def = instantiate(generic, attrs, {})
    assert [node.attr["T"].type for node in graph_def.node] == [types_pb2.DT_INT32] * 3
    with pytest.raises(errors.InvalidArgumentError, match="attribute 'T' has no value"):
        instantiate(generic, {}, {})


def test_an_edge_from_nowhere_is_refused():
    broken = function("broken", {"x": types_pb2.DT_FLOAT}, {"y": (types_pb2.DT_FLOAT, "z:y:0")})
    with pytest.raises(errors.InvalidArgumentError, match="Function broken has no tensor 'z:y:0'"):
        instantiate(broken, {}, {})


def test_a_function_may_call_another():
    inner = function("inner", {"x": types_pb2.DT_FLOAT}, {"y": (types_pb2.DT_FLOAT, "n:y:0")})
    add_node(inner, "n", "Neg", ["x"], T=types_pb2.DT_FLOAT)
    outer = function("outer", {"x": types_pb2.DT_FLOAT}, {"y": (types_pb2.DT_FLOAT, "c:output:0")})
    add_node(outer, "c", "PartitionedCall", ["x"])
    outer.node_def[0].attr["f"].func.name = "inner"
    for key in ("Tin", "Tout"):
        outer.node_def[0].attr[key].list.type.append(types_pb2.DT_FLOAT)
    g = GraphBuilder()
    for each in (inner, outer):
        g.graph_def.library.function.add().CopyFrom(each)
    assert run_graph_def(g.graph_def, [call(g, "outer", g.const(np.float32(3)))]) == [-3]


def receiving(g: GraphBuilder) -> str:
    """A call of a function that waits for a tensor which nobody sends."""
    waits = function("waits", {"x": types_pb2.DT_FLOAT}, {"y": (types_pb2.DT_FLOAT, "r:tensor:0")})
    g.recv("never")
    waits.node_def.add().CopyFrom(g.graph_def.node.pop())
    waits.node_def[0].name = "r"
    g.graph_def.library.function.add().CopyFrom(waits)
    return call(g, "waits", g.const(np.float32(3)))


def test_cancelling_the_step_ends_its_functions():
    g = GraphBuilder()
    receiving(g)
    step = local_step()
    outcome: list[errors.OpError | None] = []
    Executor(g.graph_def).run_async(step, outcome.append)
    assert outcome == []
    step.cancel(errors.CancelledError.of("enough"))
    assert [type(error) for error in outcome] == [errors.CancelledError]


def test_an_error_in_a_body_is_the_step_s_error_and_names_the_node_inside():
    checks = function("checks", {"x": types_pb2.DT_FLOAT}, {"y": (types_pb2.DT_FLOAT, "c:output:0")})
    add_node(checks, "c", "CheckNumerics", ["x"], T=types_pb2.DT_FLOAT)
    checks.node_def[0].attr["message"].s = b"not a number"
    g = GraphBuilder()
    g.graph_def.library.function.add().CopyFrom(checks)
    called = call(g, "checks", g.const(np.float32(np.nan)))
    with pytest.raises(errors.InvalidArgumentError, match=r"not a number(.|\n)*\{\{node c\}\}"):
        run_graph_def(g.graph_def, [called])
