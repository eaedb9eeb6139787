"""Ops that hold, read and change variables."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from dtf.run.executor.executor import run_graph_def
from dtf.run.state.resources import ResourceManager
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape
from tests.runtime.graphs import GraphBuilder
from tests.runtime.op_cases import Case

TABLE = np.arange(8, dtype=np.float32).reshape(4, 2) + 1


class Held:
    """One variable in a graph of its own, by reference or by handle, set to a value."""

    def __init__(self, value: Any, by_handle: bool = False) -> None:
        self.g = GraphBuilder()
        self.by_handle = by_handle
        self.dtype = dtypes.as_dtype(np.asarray(value).dtype)
        self._resources = ResourceManager()
        shape = TensorShape(np.shape(value))
        if by_handle:
            self.variable = self.g.node("VarHandleOp", name="v", shared_name=b"v", dtype=self.dtype, shape=shape)
        else:
            self.variable = self.g.node("VariableV2", name="v", dtype=self.dtype, shape=shape)
        self.run(self.node("AssignVariableOp" if by_handle else "Assign", value))

    def node(self, op: str, *operands: Any, **attrs: Any) -> str:
        """Adds an op on the variable; operands are arrays. Type attributes follow from them."""
        from dtf.wire import opdef

        inputs = [self.variable, *(self.g.const(operand) for operand in operands)]
        for argument, operand in zip(opdef.get(op).inputs, [None, *operands], strict=True):
            if argument.type_attr is not None:
                attrs[argument.type_attr] = (
                    self.dtype if operand is None else dtypes.as_dtype(np.asarray(operand).dtype)
                )
        return self.g.node(op, *inputs, **attrs)

    def run(self, *nodes: str) -> None:
        run_graph_def(self.g.graph_def, [], targets=nodes, resources=self._resources)

    def fetch(self, tensor: str) -> Any:
        return run_graph_def(self.g.graph_def, [tensor], resources=self._resources)[0]

    def value(self) -> Any:
        if self.by_handle:
            return self.fetch(self.g.node("ReadVariableOp", self.variable, dtype=self.dtype))
        return self.fetch(self.g.node("Identity", self.variable, T=self.dtype))


def changes(op: str, start: Any, operands: list[Any], expected: Any, **attrs: Any) -> Case:
    """The op turns a variable of `start` into `expected`."""

    def check() -> None:
        held = Held(start, op.startswith("Resource") or op.endswith("VariableOp"))
        before = held.value()
        kept = np.array(before)
        held.run(held.node(op, *operands, **attrs))
        np.testing.assert_allclose(held.value(), expected, rtol=1e-6)
        np.testing.assert_array_equal(before, kept)

    return Case(op, run=check)


def gives(op: str, start: Any, operands: list[Any], expected: Any, **attrs: Any) -> Case:
    """The op on a variable of `start` gives `expected`."""

    def check() -> None:
        by_handle = op.startswith(("Resource", "ReadVariable", "VarIs", "VariableShape"))
        held = Held(start, by_handle)
        np.testing.assert_array_equal(held.fetch(held.node(op, *operands, **attrs)), expected)

    return Case(op, run=check)


def fails(op: str, start: Any, operands: list[Any], error: Any, words: str, name: str, **attrs: Any) -> Case:
    """The op on a variable of `start` raises, and leaves the variable as it was."""

    def check() -> None:
        held = Held(start, op.startswith("Resource") or op.endswith("VariableOp"))
        node = held.node(op, *operands, **attrs)
        with pytest.raises(error, match=words):
            held.run(node)
        np.testing.assert_array_equal(held.value(), start)

    return Case(op, run=check, name=name)


def scattered(function: Callable[..., Any] | None, rows: Any, updates: Any) -> np.ndarray:
    result = TABLE.copy()
    for row, update in zip(rows, updates, strict=True):
        result[row] = update if function is None else function(result[row], update)
    return result


ROWS = np.array([3, 0, 3], np.int32)
UPDATES = np.array([[2, 4], [5, 0.5], [3, 8]], np.float32)
SCATTERS: dict[str, Any] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Min": np.minimum,
    "Max": np.maximum,
    "Update": None,
}


def scatter_cases() -> list[Case]:
    cases = []
    for prefix in ("", "Resource"):
        for name, function in SCATTERS.items():
            # Which update of a row wins is not promised, so the one that replaces has no row twice.
            count = 2 if function is None else 3
            rows, updates = ROWS[:count], UPDATES[:count]
            op = f"{prefix}Scatter{name}"
            cases.append(changes(op, TABLE, [rows, updates], scattered(function, rows, updates)))
            ints = TABLE.astype(np.int32)
            if prefix == "" and name in ("Add", "Div"):
                whole = np.array([[2, 2], [3, 3]], np.int32)
                expected = ints.copy()
                expected[[3, 0]] = expected[[3, 0]] + whole if name == "Add" else expected[[3, 0]] // whole
                cases.append(changes(op, ints, [ROWS[:2], whole], expected))
            if name in ("Mul", "Div"):
                continue
            op = f"{prefix}ScatterNd{name}"
            cases.append(changes(op, TABLE, [rows[:, None], updates], scattered(function, rows, updates)))
    return cases


def two_nodes_of_one_name_share_a_variable() -> None:
    resources = ResourceManager()
    first, second = GraphBuilder(), GraphBuilder()
    init = first.node("Assign", first.variable("v", [2]), first.const(np.float32([1, 2])), T=dtypes.float32)
    run_graph_def(first.graph_def, [init], resources=resources)
    read = second.node(
        "Identity",
        second.node("VariableV2", shared_name=b"v", dtype=dtypes.float32, shape=TensorShape([2])),
        T=dtypes.float32,
    )
    assert run_graph_def(second.graph_def, [read], resources=resources)[0].tolist() == [1, 2]
    wrong = GraphBuilder()
    read = wrong.node("IsVariableInitialized", wrong.variable("v", [2], dtypes.int32), dtype=dtypes.int32)
    with pytest.raises(errors.InvalidArgumentError, match="holds float32 and is wanted as int32"):
        run_graph_def(wrong.graph_def, [read], resources=resources)


def an_old_variable_of_shape_scalar_takes_any_shape() -> None:
    g = GraphBuilder()
    v = g.node("Variable", dtype=dtypes.float32, shape=TensorShape([]))
    assigned = g.node("Assign", v, g.const(TABLE), T=dtypes.float32)
    assert run_graph_def(g.graph_def, [assigned])[0].shape == (4, 2)


def a_temporary_variable_lives_for_one_step() -> None:
    g, resources = GraphBuilder(), ResourceManager()
    made = g.node("TemporaryVariable", dtype=dtypes.float32, shape=TensorShape([2]), var_name=b"t")
    assigned = g.node("Assign", made, g.const(np.float32([1, 2])), T=dtypes.float32)
    added = g.node("AssignAdd", assigned, g.const(np.float32([1, 1])), T=dtypes.float32)
    final = g.node("DestroyTemporaryVariable", added, T=dtypes.float32, var_name=b"t")
    for _ in range(2):
        assert run_graph_def(g.graph_def, [final], resources=resources)[0].tolist() == [2, 3]


def a_variable_is_initialized_by_its_first_assignment(by_handle: bool) -> None:
    g, resources = GraphBuilder(), ResourceManager()
    if by_handle:
        v = g.node("VarHandleOp", name="v", shared_name=b"v", dtype=dtypes.float32, shape=TensorShape([]))
        asked = g.node("VarIsInitializedOp", v)
        init = g.node("AssignVariableOp", v, g.const(np.float32(1)), dtype=dtypes.float32)
    else:
        v = g.variable("v", [])
        asked = g.node("IsVariableInitialized", v, dtype=dtypes.float32)
        init = g.node("Assign", v, g.const(np.float32(1)), T=dtypes.float32)
    assert run_graph_def(g.graph_def, [asked], resources=resources) == [False]
    run_graph_def(g.graph_def, [], targets=[init], resources=resources)
    assert run_graph_def(g.graph_def, [asked], resources=resources) == [True]


def a_counter_counts_to_its_limit(by_handle: bool) -> None:
    held = Held(np.int64(0), by_handle)
    node = held.node("ResourceCountUpTo" if by_handle else "CountUpTo", limit=2, **{"T": dtypes.int64})
    assert [held.fetch(node), held.fetch(node)] == [0, 1]
    with pytest.raises(errors.OutOfRangeError, match="Reached limit of 2"):
        held.fetch(node)
    assert held.value() == 2


def a_destroyed_variable_is_gone() -> None:
    held = Held(np.float32(1), by_handle=True)
    destroy = held.node("DestroyResourceOp")
    held.run(destroy)
    with pytest.raises(
        errors.FailedPreconditionError, match="Error while reading resource variable v from Container: localhost"
    ):
        held.value()
    held.run(destroy)
    with pytest.raises(errors.NotFoundError):
        held.run(held.node("DestroyResourceOp", ignore_lookup_error=False))


def several_handles_are_made_and_read_at_once() -> None:
    g, resources = GraphBuilder(), ResourceManager()
    shapes = [TensorShape([]), TensorShape([2])]
    kinds = [dtypes.float32, dtypes.int32]
    handles = g.node(
        "_VarHandlesOp", containers=[b"", b""], shared_names=[b"a", b"b"], N=2, dtypes=kinds, shapes=shapes
    )
    first = g.node("AssignVariableOp", handles, g.const(np.float32(1)), dtype=kinds[0])
    second = g.node("AssignVariableOp", f"{handles}:1", g.const(np.int32([2, 3])), dtype=kinds[1])
    read = g.node("_ReadVariablesOp", handles, f"{handles}:1", f"^{first}", f"^{second}", N=2, dtypes=kinds)
    values = run_graph_def(g.graph_def, [read, f"{read}:1"], resources=resources)
    assert [np.asarray(value).tolist() for value in values] == [1, [2, 3]]


def a_handle_names_device_container_and_variable() -> None:
    g = GraphBuilder()
    handle = g.node("VarHandleOp", shared_name=b"w", container=b"box", dtype=dtypes.float32, shape=TensorShape([2]))
    (value,) = run_graph_def(g.graph_def, [handle])
    assert (value.container, value.name) == ("box", "w")
    assert value.device.rpartition("/")[2] in ("device:CPU:0", "device:GPU:0")
    assert value.dtypes_and_shapes == ((dtypes.float32, (2,)),)


WRONG_SHAPE = r"Assign requires shapes of both tensors to match. lhs shape= \[4,2\] rhs shape= \[2\]"
OUT_OF_RANGE = r"indices\[1\] = 4 is not in \[0, 4\)"
BAD = np.array([0, 4], np.int64)

CASES = [
    Case("VariableV2", run=two_nodes_of_one_name_share_a_variable),
    Case("Variable", run=an_old_variable_of_shape_scalar_takes_any_shape),
    Case("TemporaryVariable", run=a_temporary_variable_lives_for_one_step),
    Case("DestroyTemporaryVariable", run=a_temporary_variable_lives_for_one_step),
    Case("IsVariableInitialized", run=partial(a_variable_is_initialized_by_its_first_assignment, False)),
    Case("VarIsInitializedOp", run=partial(a_variable_is_initialized_by_its_first_assignment, True)),
    Case("CountUpTo", run=partial(a_counter_counts_to_its_limit, False)),
    Case("ResourceCountUpTo", run=partial(a_counter_counts_to_its_limit, True)),
    Case("VarHandleOp", run=a_handle_names_device_container_and_variable),
    Case("_VarHandlesOp", run=several_handles_are_made_and_read_at_once),
    Case("_ReadVariablesOp", run=several_handles_are_made_and_read_at_once),
    Case("DestroyResourceOp", run=a_destroyed_variable_is_gone),
    changes("Assign", TABLE, [TABLE * 2], TABLE * 2),
    changes("Assign", TABLE, [TABLE[0]], TABLE[0], validate_shape=False),
    fails("Assign", TABLE, [TABLE[0]], errors.InvalidArgumentError, WRONG_SHAPE, "wrong shape"),
    changes("AssignAdd", TABLE, [TABLE], TABLE * 2),
    changes("AssignSub", TABLE, [TABLE * 3], TABLE * -2),
    changes("AssignAdd", np.int64(4), [np.int64(3)], 7),
    fails("AssignAdd", TABLE, [TABLE[0]], errors.InvalidArgumentError, "must be the same size", "wrong shape"),
    changes("AssignVariableOp", TABLE, [TABLE * 2], TABLE * 2),
    fails(
        "AssignVariableOp", TABLE, [TABLE[0]], errors.InvalidArgumentError, "wrong shape", "shape", validate_shape=True
    ),
    fails(
        "AssignVariableOp", TABLE, [TABLE.astype(np.int32)], errors.InvalidArgumentError,
        "Trying to assign variable with wrong dtype. Expected float32 got int32", "dtype",
    ),
    changes("AssignAddVariableOp", TABLE, [TABLE], TABLE * 2),
    changes("AssignSubVariableOp", TABLE, [TABLE * 3], TABLE * -2),
    gives("ReadVariableOp", TABLE, [], TABLE, dtype=dtypes.float32),
    gives("VariableShape", TABLE, [], [4, 2]),
    gives("ResourceGather", TABLE, [np.int32([[2, 0], [1, 1]])], TABLE[[[2, 0], [1, 1]]], dtype=dtypes.float32),
    gives(
        "ResourceGather", TABLE, [np.int32([[1], [0], [1], [1]])],
        np.take_along_axis(TABLE, np.array([[1], [0], [1], [1]]), 1), dtype=dtypes.float32, batch_dims=1,
    ),
    fails("ResourceGather", TABLE, [BAD], errors.InvalidArgumentError, OUT_OF_RANGE, "range", dtype=dtypes.float32),
    gives("ResourceGatherNd", TABLE, [np.int32([[2, 1], [0, 0]])], [TABLE[2, 1], TABLE[0, 0]], dtype=dtypes.float32),
    changes(
        "ResourceStridedSliceAssign", TABLE,
        [np.int32([1, 0]), np.int32([3, 1]), np.int32([1, 1]), np.float32([[9], [8]])],
        [[1, 2], [9, 4], [8, 6], [7, 8]],
    ),
    *scatter_cases(),
    changes("ScatterUpdate", TABLE, [np.int32([1]), np.float32(0)], [[1, 2], [0, 0], [5, 6], [7, 8]]),
    changes("ScatterAdd", TABLE, [np.int32(1), np.float32([1, 1])], [[1, 2], [4, 5], [5, 6], [7, 8]]),
    changes("ScatterNdAdd", TABLE, [np.int32([[1, 1], [1, 1]]), np.float32([1, 2])], [[1, 2], [3, 7], [5, 6], [7, 8]]),
    fails("ScatterAdd", TABLE, [BAD, TABLE[:2]], errors.InvalidArgumentError, OUT_OF_RANGE, "out of range"),
    fails(
        "ScatterAdd", TABLE, [ROWS, TABLE], errors.InvalidArgumentError,
        r"Must have updates.shape = indices.shape \+ params.shape\[1:\]", "wrong shape",
    ),
    fails(
        "ScatterNdAdd", TABLE, [BAD[:, None], TABLE[:2]], errors.InvalidArgumentError, "does not index", "out of range"
    ),
]  # fmt: skip
