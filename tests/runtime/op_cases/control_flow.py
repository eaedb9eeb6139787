"""Ops of control flow: branches, loops' gates, assertions and calls of functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dtf.run.executor.executor import run_graph_def
from dtf.run.state.resources import ResourceManager
from dtf.wire import dtypes, errors
from dtf.wire.pb import attr_value_pb2, types_pb2
from tests.runtime.graphs import GraphBuilder
from tests.runtime.op_cases import Case

F32, I32 = dtypes.float32, dtypes.int32


def a_switch_sends_its_value_to_one_side(reference: bool) -> None:
    g, resources = GraphBuilder(), ResourceManager()
    prefix = "Ref" if reference else ""
    v = g.variable("v", [])
    init = g.node("Assign", v, g.const(np.float32(1)), T=F32)
    run_graph_def(g.graph_def, [], targets=[init], resources=resources)
    for taken in (False, True):
        switch = g.node(f"{prefix}Switch", v, g.const(taken), T=F32)
        branches = [g.node(op, f"{switch}:{side}", T=F32) for side, op in enumerate(("Neg", "Identity"))]
        merge = g.node("Merge", *branches, T=F32, N=2)
        assert run_graph_def(g.graph_def, [merge, f"{merge}:1"], resources=resources) == [1 if taken else -1, taken]


def references_merge_to_a_reference() -> None:
    g, resources = GraphBuilder(), ResourceManager()
    v = g.variable("v", [])
    init = g.node("Assign", v, g.const(np.float32(1)), T=F32)
    switch = g.node("RefSwitch", init, g.const(True), T=F32)
    merge = g.node("RefMerge", switch, f"{switch}:1", T=F32, N=2)
    added = g.node("AssignAdd", merge, g.const(np.float32(2)), T=F32)
    assert run_graph_def(g.graph_def, [added], resources=resources) == [3]


def one_of_several_references_is_selected() -> None:
    g = GraphBuilder()
    variables = [
        g.node("Assign", g.variable(f"v{number}", []), g.const(np.float32(number)), T=F32) for number in range(3)
    ]
    selected = g.node("RefSelect", g.const(np.int32(2)), *variables, T=F32, N=3)
    assert run_graph_def(g.graph_def, [selected]) == [2]
    wrong = g.node("RefSelect", g.const(np.int32(3)), *variables, T=F32, N=3)
    with pytest.raises(errors.InvalidArgumentError, match=r"range \[0, 3\)"):
        run_graph_def(g.graph_def, [wrong])


def a_loop_counts(reference: bool) -> None:
    """while v < 3: v += 1, on values, or on the variable itself."""
    g = GraphBuilder()
    ref = "Ref" if reference else ""
    v = g.node("Assign", g.variable("v", [], I32), g.const(np.int32(0)), T=I32)
    frame: dict[str, Any] = {"frame_name": b"f", "parallel_iterations": 10}
    enter = g.node(f"{ref}Enter", v, T=I32, **frame)
    limit = g.node("Enter", g.const(np.int32(3)), T=I32, is_constant=True, **frame)
    one = g.node("Enter", g.const(np.int32(1)), T=I32, is_constant=True, **frame)
    merge = g.node(f"{ref}Merge", enter, "next", T=I32, N=2)
    condition = g.node("LoopCond", g.node("Less", merge, limit, T=I32))
    switch = g.node(f"{ref}Switch", merge, condition, T=I32)
    following = g.node("AssignAdd" if reference else "AddV2", f"{switch}:1", one, T=I32)
    g.node(f"{ref}NextIteration", following, name="next", T=I32)
    assert run_graph_def(g.graph_def, [g.node(f"{ref}Exit", switch, T=I32)]) == [3]


def a_trigger_runs_after_what_it_waits_for_even_if_that_is_dead() -> None:
    g, resources = GraphBuilder(), ResourceManager()
    switch = g.node("Switch", g.const(True), g.const(True), T=dtypes.bool)
    dead = g.node("Identity", switch, T=dtypes.bool)
    trigger = g.node("ControlTrigger", f"^{dead}")
    init = g.node("Assign", g.variable("v", []), g.const(np.float32(1)), f"^{trigger}", T=F32)
    assert run_graph_def(g.graph_def, [init], resources=resources) == [1]


def an_order_without_data() -> None:
    g = GraphBuilder()
    init = g.node("Assign", g.variable("v", []), g.const(np.float32(1)), T=F32)
    nothing = g.node("NoOp", f"^{init}")
    assert run_graph_def(g.graph_def, [g.node("Identity", "v", f"^{nothing}", T=F32)]) == [1]


def an_assertion_shows_its_data_when_it_fails() -> None:
    g = GraphBuilder()
    data = [g.const(b"x is"), g.const(np.float32([1.5, 2, 3, 4])), g.const(True), g.const(np.int32(7))]
    kinds = [dtypes.string, F32, dtypes.bool, I32]
    run_graph_def(g.graph_def, [], targets=[g.node("Assert", g.const(True), *data, T=kinds)])
    failing = g.node("Assert", g.const(False), *data, T=kinds)
    with pytest.raises(errors.InvalidArgumentError, match=r"assertion failed: \[x is\] \[1.5 2 3...\] \[1\] \[7\]"):
        run_graph_def(g.graph_def, [], targets=[failing])


def an_abort_fails_the_step_and_not_the_process() -> None:
    g = GraphBuilder()
    with pytest.raises(errors.AbortedError, match="on purpose"):
        run_graph_def(g.graph_def, [], targets=[g.node("Abort", error_msg=b"on purpose")])


# -- functions


class FunctionBuilder(GraphBuilder):
    """A graph with functions of float32 scalars."""

    def function(self, name: str, arguments: list[str], nodes: list[tuple[str, str, list[str]]], result: str) -> None:
        """Adds a function; `nodes` are (name, op, inputs in the form of function bodies), of dtype T = float32."""
        function = self.graph_def.library.function.add()
        function.signature.name = name
        for argument in arguments:
            function.signature.input_arg.add(name=argument, type=types_pb2.DT_FLOAT)
        is_condition = nodes[-1][1] == "Less"
        function.signature.output_arg.add(name="out", type=types_pb2.DT_BOOL if is_condition else types_pb2.DT_FLOAT)
        for node_name, op, inputs in nodes:
            node = function.node_def.add(name=node_name, op=op, input=inputs)
            node.attr["T"].type = types_pb2.DT_FLOAT
        function.ret["out"] = result

    def call(self, op: str, *inputs: str, functions: dict[str, Any], **attrs: Any) -> str:
        node = self.graph_def.node.add(name=f"call_{len(self.graph_def.node)}", op=op, input=inputs)
        for key, names in functions.items():
            if isinstance(names, list):
                node.attr[key].list.func.extend(attr_value_pb2.NameAttrList(name=name) for name in names)
            else:
                node.attr[key].func.name = names
        for key, value in attrs.items():
            if isinstance(value, list):
                node.attr[key].list.type.extend(value)
            else:
                node.attr[key].type = value
        return node.name


def with_functions() -> FunctionBuilder:
    g = FunctionBuilder()
    g.function("negate", ["x"], [("n", "Neg", ["x"])], "n:y:0")
    g.function("double", ["x"], [("d", "AddV2", ["x", "x"])], "d:z:0")
    g.function("is_small", ["x"], [("sq", "Mul", ["x", "x"]), ("l", "Less", ["x", "sq:z:0"])], "l:z:0")
    return g


ONE = [types_pb2.DT_FLOAT]


def a_function_is_called(op: str) -> None:
    g = with_functions()
    called = g.call(op, g.const(np.float32(4)), functions={"f": "double"}, Tin=ONE, Tout=ONE)
    assert run_graph_def(g.graph_def, [called]) == [8]
    with pytest.raises(errors.InvalidArgumentError, match="'nobody'"):
        run_graph_def(g.graph_def, [g.call(op, g.const(np.float32(4)), functions={"f": "nobody"}, Tin=ONE, Tout=ONE)])


def a_branch_is_called(op: str) -> None:
    g = with_functions()
    for condition, expected in ((True, -4), (False, 8)):
        called = g.call(
            op,
            g.const(condition),
            g.const(np.float32(4)),
            functions={"then_branch": "negate", "else_branch": "double"},
            Tcond=types_pb2.DT_BOOL,
            Tin=ONE,
            Tout=ONE,
        )
        assert run_graph_def(g.graph_def, [called]) == [expected]


def a_case_is_called(op: str) -> None:
    g = with_functions()
    for index, expected in ((0, -4), (1, 8), (2, 8), (-1, 8)):
        called = g.call(
            op,
            g.const(np.int32(index)),
            g.const(np.float32(4)),
            functions={"branches": ["negate", "double"]},
            Tin=ONE,
            Tout=ONE,
        )
        assert run_graph_def(g.graph_def, [called]) == [expected]


def a_while_calls_its_body_as_long_as_its_condition_holds(op: str) -> None:
    g = with_functions()
    g.function("down", ["x"], [("h", "Sqrt", ["x"])], "h:y:0")
    g.function("above", ["x"], [("l", "Less", ["two", "x"])], "l:z:0")
    two = g.graph_def.library.function[-1].node_def.add(name="two", op="Const")
    two.attr["dtype"].type = types_pb2.DT_FLOAT
    two.attr["value"].tensor.dtype = types_pb2.DT_FLOAT
    two.attr["value"].tensor.float_val.append(2)
    g.graph_def.library.function[-1].node_def[0].input[0] = "two:output:0"
    loop = g.call(op, g.const(np.float32(2.0**64)), functions={"cond": "above", "body": "down"}, T=ONE)
    assert run_graph_def(g.graph_def, [loop]) == [2]


def both(function: Callable[[str], None], *ops: str) -> list[Case]:
    return [Case(op, run=partial(function, op)) for op in ops]


CASES = [
    Case("Switch", run=partial(a_switch_sends_its_value_to_one_side, False)),
    Case("RefSwitch", run=partial(a_switch_sends_its_value_to_one_side, True)),
    Case("Merge", run=partial(a_switch_sends_its_value_to_one_side, False)),
    Case("RefMerge", run=references_merge_to_a_reference),
    Case("RefSelect", run=one_of_several_references_is_selected),
    *[Case(op, run=partial(a_loop_counts, False)) for op in ("Enter", "Exit", "NextIteration", "LoopCond")],
    *[Case(op, run=partial(a_loop_counts, True)) for op in ("RefEnter", "RefExit", "RefNextIteration")],
    Case("ControlTrigger", run=a_trigger_runs_after_what_it_waits_for_even_if_that_is_dead),
    Case("NoOp", run=an_order_without_data),
    Case("ToBool", [np.float32(0.5)], expect=np.bool_(True)),
    Case("ToBool", [np.array([0.0])], expect=np.bool_(True), name="not empty"),
    Case("ToBool", [np.zeros([0, 2])], expect=np.bool_(False), name="empty"),
    Case("FakeParam", attrs={"dtype": F32, "shape": [None, 2]}, expect=np.zeros([0, 2], np.float32)),
    Case("Assert", run=an_assertion_shows_its_data_when_it_fails),
    Case("Abort", run=an_abort_fails_the_step_and_not_the_process),
    *both(a_function_is_called, "PartitionedCall", "StatefulPartitionedCall"),
    *both(a_branch_is_called, "If", "StatelessIf"),
    *both(a_case_is_called, "Case", "StatelessCase"),
    *both(a_while_calls_its_body_as_long_as_its_condition_holds, "While", "StatelessWhile"),
]
