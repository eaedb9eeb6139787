"""tensorflow.python.ops.variables and variable_scope: how a variable is created, under its historic names."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph
from dtf.build.initial_values import without_uninitialized_variables
from dtf.build.variables import Variable, _find_variable

__all__ = ["default_variable_creator", "guarded"]


def default_variable_creator(next_creator: Any = None, **kwargs: Any) -> Any:
    """A variable of these arguments; the last creator of every chain."""
    assert next_creator is None
    kwargs.pop("distribute_strategy", None)
    graph = get_default_graph()
    creators, graph._variable_creators = graph._variable_creators, []
    try:
        return Variable(**kwargs)
    finally:
        graph._variable_creators = creators


def guarded(name: str, initial_value: Any) -> Any:
    """An initial value computed from the initialized values of the variables that it depends on.

    Args:
      name: the name of the variable, for the names of new operations.
      initial_value: a tensor.
    """
    return without_uninitialized_variables(name, convert_to_tensor(initial_value), _find_variable)
