"""The variables of the default graph by collection, their initializers and checks.

Owns the functions that read the collections; `variables` has the class, which adds a new variable to them.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, device, get_collection, name_scope
from dtf.build.graph import GraphKeys, Operation, Tensor
from dtf.build.variables import is_variable_initialized
from dtf.wire import dtypes

__all__ = [
    "all_variables",
    "assert_variables_initialized",
    "global_variables",
    "global_variables_initializer",
    "initialize_all_variables",
    "initialize_local_variables",
    "initialize_variables",
    "local_variables",
    "local_variables_initializer",
    "model_variables",
    "moving_average_variables",
    "report_uninitialized_variables",
    "trainable_variables",
    "variables_initializer",
]


def global_variables(scope: str | None = None) -> list[Any]:
    """The variables shared by all tasks; a Saver saves them by default.

    Args:
      scope: a regular expression that the start of the name matches; all by default.

    Returns:
      A list of variables.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/global_variables
    """
    return get_collection(GraphKeys.GLOBAL_VARIABLES, scope)


def all_variables() -> list[Any]:
    """The old name of `global_variables`."""
    return global_variables()


def local_variables(scope: str | None = None) -> list[Any]:
    """The variables that are each task's own, and are not saved.

    Args:
      scope: a regular expression that the start of the name matches; all by default.

    Returns:
      A list of variables.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/local_variables
    """
    return get_collection(GraphKeys.LOCAL_VARIABLES, scope)


def model_variables(scope: str | None = None) -> list[Any]:
    """The variables that a model needs to predict."""
    return get_collection(GraphKeys.MODEL_VARIABLES, scope)


def trainable_variables(scope: str | None = None) -> list[Any]:
    """The variables that optimizers train by default.

    Args:
      scope: a regular expression that the start of the name matches; all by default.

    Returns:
      A list of variables.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/trainable_variables
    """
    return get_collection(GraphKeys.TRAINABLE_VARIABLES, scope)


def moving_average_variables(scope: str | None = None) -> list[Any]:
    """The variables that an ExponentialMovingAverage tracks."""
    return get_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, scope)


def variables_initializer(var_list: Any, name: str = "init") -> Operation:
    """The operation that runs the initializers of `var_list`; does nothing for an empty list."""
    from dtf.build.ops.ordering import group

    return group(*[variable.initializer for variable in var_list or []], name=name)


def global_variables_initializer() -> Operation:
    """The operation that initializes all global variables.

    Returns:
      An Operation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/initializers/global_variables
    """
    return variables_initializer(global_variables())


def local_variables_initializer() -> Operation:
    """The operation that initializes all local variables.

    Returns:
      An Operation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/initializers/local_variables
    """
    return variables_initializer(local_variables())

initialize_variables = variables_initializer

initialize_all_variables = global_variables_initializer

initialize_local_variables = local_variables_initializer


def report_uninitialized_variables(
    var_list: Any = None, name: str = "report_uninitialized_variables"
) -> Tensor:
    """The names of the variables without a value, a string vector.

    Args:
      var_list: the variables to look at; all global and local ones by default.
    """
    from dtf.build.ops import slicing

    if var_list is None:
        var_list = global_variables() + local_variables()
    with name_scope(name), device("/cpu:0"):
        if not var_list:
            return convert_to_tensor([], dtypes.string)
        flags = [is_variable_initialized(variable) for variable in var_list]
        missing = apply_op("LogicalNot", None, x=apply_op("Pack", "stack", values=flags))
        names = convert_to_tensor([variable.op.name for variable in var_list], dtypes.string)
        return slicing.boolean_mask(names, missing)


def assert_variables_initialized(var_list: Any = None) -> Operation | None:
    """An operation that fails with FailedPreconditionError if a variable has no value; None without variables."""
    variables = var_list if var_list is not None else global_variables() + local_variables()
    if not variables:
        return None
    ranks = []
    for variable in variables:
        with control_dependencies([]):
            ranks.append(apply_op("Rank", None, input=variable))
    return apply_op("Pack", "stack", values=ranks).op
