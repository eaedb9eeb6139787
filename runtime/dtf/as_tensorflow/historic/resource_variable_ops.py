"""tensorflow.python.ops.resource_variable_ops: whether a variable is a resource."""

from __future__ import annotations

from typing import Any

from dtf.build.variables import Variable

__all__ = ["ResourceVariable", "is_resource_variable"]


def is_resource_variable(var: Any) -> bool:
    """Whether the variable has a handle, rather than a reference."""
    return isinstance(var, Variable) and var.op.type in ("VarHandleOp", "ReadVariableOp")


class _OfResources(type(Variable)):  # type: ignore[misc]
    def __instancecheck__(cls, instance: Any) -> bool:
        return is_resource_variable(instance)


class ResourceVariable(Variable, metaclass=_OfResources):
    """A Variable with use_resource=True."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return Variable(*args, **{**kwargs, "use_resource": True})
