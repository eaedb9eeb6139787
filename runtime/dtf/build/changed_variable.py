"""A variable held by handle, as it is after one change: what its `assign` functions return.

    v.assign_add(1.0).assign_add(2.0)  # the second addition waits for the first
    v.assign_add(1.0).read_value()

Owns that reads and further changes wait for the change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.default_graph import control_dependencies
from dtf.build.graph import Operation, Tensor
from dtf.build.variables import Variable


class ChangedVariable(Variable):
    """`variable` after the operation `change`."""

    def __init__(self, variable: Variable, change: Operation) -> None:
        self.__dict__.update(variable.__dict__)
        self._change = change
        with control_dependencies([change]):
            self._snapshot = self._storage.read(None)

    @property
    def name(self) -> str:
        """The name of the operation that changes the variable."""
        return self._change.name

    @property
    def op(self) -> Operation:
        """The operation that changes the variable."""
        return self._change

    def value(self) -> Tensor:
        """The value after the change."""
        return self._snapshot


def _after_change(name: str) -> Callable[..., Any]:
    method = getattr(Variable, name)

    def ordered(self: ChangedVariable, *args: Any, **kwargs: Any) -> Any:
        with control_dependencies([self._change]):
            return method(self, *args, **kwargs)

    ordered.__name__, ordered.__doc__ = name, method.__doc__
    return ordered


for _name in (
    "read_value sparse_read gather_nd assign assign_add assign_sub scatter_add scatter_sub scatter_mul scatter_div "
    "scatter_min scatter_max scatter_update scatter_nd_add scatter_nd_sub scatter_nd_update count_up_to"
).split():
    setattr(ChangedVariable, _name, _after_change(_name))
