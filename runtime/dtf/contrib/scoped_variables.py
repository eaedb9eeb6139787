"""tf.contrib.framework's variables: made with collections and devices, found by scope, set from values or checkpoints.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/framework
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.contrib.arg_scopes import add_arg_scope

__all__ = [
    "VariableDeviceChooser", "add_model_variable", "assign_from_checkpoint", "assign_from_checkpoint_fn",
    "assign_from_values", "assign_from_values_fn", "filter_variables", "get_local_variables", "get_model_variables",
    "get_trainable_variables", "get_unique_variable", "get_variable_full_name", "get_variables",
    "get_variables_by_name", "get_variables_by_suffix", "get_variables_to_restore", "global_variable",
    "local_variable", "model_variable", "variable",
]  # fmt: skip

_Keys = tf.GraphKeys


@add_arg_scope
def variable(
    name: str, shape: Any = None, dtype: Any = None, initializer: Any = None, regularizer: Any = None,
    trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
    partitioner: Any = None, custom_getter: Any = None, use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO, aggregation: Any = tf.VariableAggregation.NONE,
) -> Any:  # fmt: skip
    """`tf.get_variable`, at a device and in collections (GLOBAL_VARIABLES by default)."""
    getter: Callable[..., Any] = tf.get_variable if custom_getter is None else _through(custom_getter)
    names = list(dict.fromkeys(collections if collections is not None else [_Keys.GLOBAL_VARIABLES]))
    with tf.device(device or ""):
        return getter(
            name, shape=shape, dtype=dtype, initializer=initializer, regularizer=regularizer, trainable=trainable,
            collections=names, caching_device=caching_device, partitioner=partitioner, use_resource=use_resource,
        )  # fmt: skip


def _through(custom_getter: Callable[..., Any]) -> Callable[..., Any]:
    return lambda name, **kwargs: custom_getter(tf.get_variable, name, **kwargs)


@add_arg_scope
def model_variable(
    name: str, shape: Any = None, dtype: Any = tf.float32, initializer: Any = None, regularizer: Any = None,
    trainable: bool = True, collections: Any = None, caching_device: Any = None, device: Any = None,
    partitioner: Any = None, custom_getter: Any = None, use_resource: bool | None = None,
    synchronization: Any = tf.VariableSynchronization.AUTO, aggregation: Any = tf.VariableAggregation.NONE,
) -> Any:  # fmt: skip
    """`variable`, which is a model's: in MODEL_VARIABLES too."""
    names = [*(collections or []), _Keys.GLOBAL_VARIABLES, _Keys.MODEL_VARIABLES]
    return variable(
        name, shape, dtype, initializer, regularizer, trainable, names, caching_device, device, partitioner,
        custom_getter, use_resource,
    )  # fmt: skip


def local_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A variable of this task, which is not saved."""
    return tf.Variable(
        initial_value, trainable=False, collections=[_Keys.LOCAL_VARIABLES], validate_shape=validate_shape, name=name,
        use_resource=use_resource,
    )  # fmt: skip


def global_variable(
    initial_value: Any, validate_shape: bool = True, name: str | None = None, use_resource: bool | None = None
) -> Any:
    """A variable that is not trained."""
    return tf.Variable(
        initial_value, trainable=False, collections=[_Keys.GLOBAL_VARIABLES], validate_shape=validate_shape,
        name=name, use_resource=use_resource,
    )  # fmt: skip


def add_model_variable(var: Any) -> None:
    """Puts a variable into MODEL_VARIABLES, once."""
    if not any(var is each for each in tf.get_collection(_Keys.MODEL_VARIABLES)):
        tf.add_to_collection(_Keys.MODEL_VARIABLES, var)


def get_variables(
    scope: Any = None, suffix: str | None = None, collection: str = _Keys.GLOBAL_VARIABLES
) -> list[Any]:
    """The variables of a collection whose names begin with `scope` and end with `suffix`.

    Args:
      scope: a regular expression, or a variable scope.
      suffix: the last part of the name, or more of it.
    """
    name = getattr(scope, "name", scope)
    if suffix is not None:
        start = f"{name}/" if name and not name.endswith("/") else name or ""
        return tf.get_collection(collection, f"{start}.*{re.escape(suffix)}(:|$)")
    return tf.get_collection(collection, name)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of MODEL_VARIABLES."""
    return get_variables(scope, suffix, _Keys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of LOCAL_VARIABLES."""
    return get_variables(scope, suffix, _Keys.LOCAL_VARIABLES)


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` of TRAINABLE_VARIABLES."""
    return get_variables(scope, suffix, _Keys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """The variables whose names end with `suffix`."""
    return get_variables(scope, suffix)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """The variables whose last part of the name is this one."""
    return [each for each in get_variables(scope) if each.op.name.split("/")[-1] == given_name.split("/")[-1]
            and each.op.name.endswith(given_name)]  # fmt: skip


def get_unique_variable(var_op_name: str) -> Any:
    """The one variable of this name.

    Raises:
      ValueError: no variable fits, or several do.
    """
    found = [each for each in get_variables(var_op_name) if each.op.name.startswith(var_op_name)]
    exact = [each for each in found if each.op.name == var_op_name]
    if len(exact) == 1 or len(found) == 1:
        return (exact or found)[0]
    if not found:
        raise ValueError(f"Couldn't find variable {var_op_name}")
    raise ValueError(f"Variable {var_op_name} does not uniquely identify a variable")


def get_variables_to_restore(include: Sequence[str] | None = None, exclude: Sequence[str] | None = None) -> list[Any]:
    """The variables of the scopes `include` (by default all) except those of the scopes `exclude`.

    Raises:
      TypeError: an argument is not a list.
    """
    for argument, value in (("include", include), ("exclude", exclude)):
        if value is not None and not isinstance(value, list | tuple):
            raise TypeError(f"{argument} must be a list of scopes")
    found = tf.global_variables() if include is None else [each for scope in include for each in get_variables(scope)]
    without = {id(each) for scope in exclude or () for each in get_variables(scope)}
    return [each for each in found if id(each) not in without]


def filter_variables(
    var_list: Sequence[Any], include_patterns: Sequence[str] | None = None,
    exclude_patterns: Sequence[str] | None = None, reg_search: bool = True,
) -> list[Any]:  # fmt: skip
    """The variables whose names fit one of the first patterns and none of the others.

    Args:
      reg_search: whether a pattern may fit anywhere in the name, not only at its start.
    """
    fits = re.search if reg_search else re.match
    names = {id(each): each.op.name for each in var_list}
    wanted = [".*"] if include_patterns is None else include_patterns
    found = [each for each in var_list if any(fits(pattern, names[id(each)]) for pattern in wanted)]
    return [each for each in found if not any(fits(pattern, names[id(each)]) for pattern in exclude_patterns or ())]


def get_variable_full_name(var: Any) -> str:
    """The name of the variable, or of the whole variable of a part, in checkpoints."""
    info = getattr(var, "_save_slice_info", None)
    return info.full_name if info is not None else var.op.name


def assign_from_values(var_names_to_values: Mapping[str, Any]) -> tuple[Any, dict[Any, Any]]:
    """(an op that sets variables, its feeds).

    Raises:
      ValueError: there is no variable of a name, or a shape does not fit.
    """
    feeds: dict[Any, Any] = {}
    assigns = []
    for name, value in var_names_to_values.items():
        var = get_unique_variable(name)
        array = np.asarray(value)
        if not var.get_shape().is_compatible_with(array.shape):
            raise ValueError(f"Variable {name} has the shape {var.get_shape()}, the value {array.shape}")
        given = tf.placeholder(var.dtype.base_dtype, var.get_shape(), f"{name.replace('/', '_')}_value")
        feeds[given] = array.reshape(var.get_shape().as_list())
        assigns.append(var.assign(given))
    return tf.group(*assigns), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable[[Any], None]:
    """A function of a session that sets variables."""
    op, feeds = assign_from_values(var_names_to_values)
    return lambda session: session.run(op, feeds)


def _by_name(var_list: Any) -> dict[str, Any]:
    if isinstance(var_list, Mapping):
        return dict(var_list)
    return {get_variable_full_name(each): each for each in var_list}


def assign_from_checkpoint(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False
) -> tuple[Any, dict[Any, Any]]:
    """(an op that sets variables from a checkpoint, its feeds).

    Args:
      var_list: variables, or {name in the checkpoint: variable}.
      ignore_missing_vars: whether variables that the checkpoint lacks are left as they are.

    Raises:
      ValueError: a variable is missing, or has another shape.
    """
    reader = tf.train.NewCheckpointReader(model_path)
    feeds: dict[Any, Any] = {}
    assigns = []
    for name, var in _by_name(var_list).items():
        if not reader.has_tensor(name):
            if ignore_missing_vars:
                tf.logging.warning("Variable %s missing in checkpoint %s", name, model_path)
                continue
            raise ValueError(f"Checkpoint is missing variable [{name}]")
        value = reader.get_tensor(name)
        if not var.get_shape().is_compatible_with(np.shape(value)):
            raise ValueError(f"Variable {name} has the shape {var.get_shape()}, the checkpoint {np.shape(value)}")
        given = tf.placeholder(var.dtype.base_dtype, var.get_shape(), f"{name.replace('/', '_')}_value")
        feeds[given] = value
        assigns.append(var.assign(given))
    return tf.group(*assigns), feeds


def assign_from_checkpoint_fn(
    model_path: str, var_list: Any, ignore_missing_vars: bool = False, reshape_variables: bool = False
) -> Callable[[Any], None] | None:
    """A function of a session that restores variables; None if no variable is to be restored.

    Raises:
      ValueError: `var_list` is empty.
    """
    variables = _by_name(var_list)
    if not variables:
        raise ValueError("var_list cannot be empty")
    if ignore_missing_vars:
        reader = tf.train.NewCheckpointReader(model_path)
        for name in [name for name in variables if not reader.has_tensor(name)]:
            tf.logging.warning("Variable %s missing in checkpoint %s", name, model_path)
            del variables[name]
    if not variables:
        tf.logging.warning("No Variables to restore")
        return None
    saver = tf.train.Saver(variables, reshape=reshape_variables)
    return lambda session: saver.restore(session, model_path)


class VariableDeviceChooser:
    """Chooses the device of variables: the parameter servers in turn.

    Args:
      num_tasks: of the job; 0 for no job in the device.
      job_name: its name.
      device_type, device_index: the last part of the device.
      replica: its number, or None.
    """

    def __init__(
        self, num_tasks: int = 0, job_name: str = "ps", device_type: str = "CPU", device_index: int = 0,
        replica: int | None = None,
    ) -> None:  # fmt: skip
        self._job_name = job_name
        self._device_type = device_type
        self._device_index = device_index
        self._replica = replica
        self._num_tasks = num_tasks
        self._next_task_id = 0

    def __call__(self, op: Any) -> str:
        spec = tf.DeviceSpec(
            job=self._job_name if self._num_tasks > 0 else None,
            task=self._next_task_id if self._num_tasks > 0 else None,
            replica=self._replica,
            device_type=self._device_type,
            device_index=self._device_index,
        )
        if self._num_tasks > 0 and op.type in ("Variable", "VariableV2", "VarHandleOp"):
            self._next_task_id = (self._next_task_id + 1) % self._num_tasks
        return spec.to_string()
