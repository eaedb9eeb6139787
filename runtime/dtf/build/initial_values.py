"""Initial values that depend on other variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.graph import Operation, Tensor

FindVariable = Callable[[Tensor], Any]
"""The variable that a tensor refers to, or None."""

_VARIABLE_OPS = ("Variable", "VariableV2", "VarHandleOp")

_LOOP_OPS = ("Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond")


def without_uninitialized_variables(variable_name: str, initial_value: Tensor, find_variable: FindVariable) -> Tensor:
    """`initial_value` computed from the *initialized* values of the variables that it depends on.

    Initializers run in no defined order; without this, a variable computed from another could be initialized first.
    Across the boundary of a loop or conditional, the value is unchanged.
    """
    if not _depends_on_variable(initial_value, {}):
        return initial_value
    return _rebuilt(variable_name, initial_value, {}, find_variable)


def _depends_on_variable(tensor: Tensor, known: dict[Operation, bool]) -> bool:
    """Whether a variable is among the sources of `tensor`; False for a value that comes out of a loop."""
    op = tensor.op
    if op not in known:
        known[op] = False
        inputs = [] if op.type in _LOOP_OPS else op._inputs
        known[op] = op.type in _VARIABLE_OPS or any([_depends_on_variable(each, known) for each in inputs])
    return known[op]


def _rebuilt(
    variable_name: str, tensor: Tensor, done: dict[Operation, Operation], find_variable: FindVariable
) -> Tensor:
    op = tensor.op
    if op.type in ("IsVariableInitialized", "VarIsInitializedOp", "ReadVariableOp", "If", *_LOOP_OPS):
        return tensor
    if op.type in _VARIABLE_OPS:
        variable = find_variable(tensor)
        return tensor if variable is None or op.type == "VarHandleOp" else variable.initialized_value()
    if op not in done:
        inputs = [_rebuilt(variable_name, each, done, find_variable) for each in op._inputs]
        if all(new is old for new, old in zip(inputs, op._inputs, strict=True)):
            done[op] = op
        else:
            # A reference has become a value.
            op_type = op.type.removeprefix("Ref") if op.type in ("RefSwitch", "RefIdentity") else op.type
            name = f"{op.name}_{variable_name}"
            types = [output.dtype.base_dtype for output in op.outputs]
            with op.graph.name_scope(None):
                done[op] = op.graph.create_op(op_type, inputs, types, name=name, attrs=dict(op._attrs))
    return done[op].outputs[tensor.value_index]
