"""Moving averages of variables: shadows that follow what is trained, often better to evaluate with.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ExponentialMovingAverage
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtf.build import initializers as init_ops
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import (
    add_to_collection,
    colocate_with,
    get_default_graph,
    init_scope,
    name_scope,
)
from dtf.build.graph import GraphKeys
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import ordering
from dtf.build.tensor import Operation, Tensor
from dtf.build.variable_collections import global_variables, moving_average_variables, trainable_variables
from dtf.build.variable_scope import get_variable, variable_scope
from dtf.build.variables import Variable
from dtf.train import slot_creator
from dtf.wire import dtypes

__all__ = ["ExponentialMovingAverage"]


def weighted_moving_average(
    value: Any, decay: Any, weight: Any, truediv: bool = True, collections: Any = None, name: str | None = None
) -> Tensor:
    """The average of a tensor's values so far, each with its weight.

    Args:
      value: the values of this step.
      decay: near 1; how much of the sums remains at each step.
      weight: the weight of `value`, of its shape or one that broadcasts to it.
      truediv: divide exactly, also integers.
      collections: those of the two sums; none by default besides the global variables.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ExponentialMovingAverage
    """
    keys = [GraphKeys.GLOBAL_VARIABLES] if collections is None else collections
    with variable_scope(name, "WeightedMovingAvg", [value, weight, decay]):
        sums = []
        for label, now in (("value", value * weight), ("weight", weight)):
            now = convert_to_tensor(now)
            kept = get_variable(
                label, initializer=init_ops.zeros_initializer(), shape=now.shape, dtype=now.dtype, trainable=False,
                collections=keys,
            )  # fmt: skip
            sums.append(assign_moving_average(kept, now, decay, zero_debias=False))
        return math_ops.truediv(*sums) if truediv else math_ops.div(*sums)


class ExponentialMovingAverage:
    """Keeps shadow = decay * shadow + (1 - decay) * value for variables and tensors.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ExponentialMovingAverage
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        """
        Args:
          decay: near 1, such as 0.999.
          num_updates: a count of updates n; while it is small min(decay, (1 + n) / (10 + n)) is used.
          zero_debias: start the averages of tensors at zero without leaning to it (arXiv 1412.6980, section 3).
          name: the last part of the shadows' names.
        """
        self._decay = decay
        self._num_updates = num_updates
        self._zero_debias = zero_debias
        self._name = name
        self._averages: dict[tuple[Any, str], Any] = {}

    @property
    def name(self) -> str:
        """The last part of the shadows' names."""
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> Operation:
        """An op that moves the averages of these variables and tensors (all trainable variables by default).

        Raises:
          TypeError: one is not of a floating dtype.
        """
        averaged = trainable_variables() if var_list is None else list(var_list)
        from_zero = set()
        for value in averaged:
            if not value.dtype.base_dtype.is_floating:
                raise TypeError(f"The variables must be half, float, or double: {value.name}")
            key = _key(value)
            if key in self._averages:
                continue
            with init_scope():
                if isinstance(value, Variable):
                    shadow = slot_creator.create_slot(value, value.initialized_value(), self._name)
                    # Averages of tensors have no variable into which a checkpoint could be
                    # restored.
                    add_to_collection(GraphKeys.MOVING_AVERAGE_VARIABLES, value)
                else:
                    on_variable = value.op.type in ("Variable", "VariableV2", "VarHandleOp")
                    shadow = slot_creator.create_zeros_slot(value, self._name, colocate_with_primary=on_variable)
                    if self._zero_debias:
                        from_zero.add(key)
            self._averages[key] = shadow
        with name_scope(self._name) as scope:
            decay = convert_to_tensor(self._decay, dtype=dtypes.float32, name="decay")
            if self._num_updates is not None:
                count = math_ops.cast(self._num_updates, dtypes.float32, name="num_updates")
                decay = math_ops.minimum(decay, (1.0 + count) / (10.0 + count))
            updates = [
                assign_moving_average(self._averages[_key(value)], value, decay, _key(value) in from_zero)
                for value in averaged
            ]
            return ordering.group(*updates, name=scope)

    def average(self, var: Any) -> Any:
        """The shadow of a variable or tensor, or None."""
        return self._averages.get(_key(var))

    def average_name(self, var: Any) -> str:
        """The name of the shadow, made already or not, without the ":0"."""
        shadow = self.average(var)
        if shadow is not None:
            return shadow.op.name
        return get_default_graph().unique_name(f"{var.op.name}/{self._name}", mark_as_used=False)

    def variables_to_restore(self, moving_avg_variables: Iterable[Any] | None = None) -> dict[str, Any]:
        """Maps names in a checkpoint to variables, so that averaged variables are restored from their
        shadows.

        moving_avg_variables: the averaged variables; by default the trainable ones and those in the
            MOVING_AVERAGE_VARIABLES collection.
        """
        if moving_avg_variables is None:
            moving_avg_variables = [*trainable_variables(), *moving_average_variables()]
        averaged = {id(variable): variable for variable in moving_avg_variables}
        names = {self.average_name(variable): variable for variable in averaged.values()}
        averaged_names = {variable.name for variable in averaged.values()}
        for variable in [*global_variables()]:
            if variable.name not in averaged_names and variable.op.name not in names:
                names[variable.op.name] = variable
        return names


def assign_moving_average(
    variable: Any, value: Any, decay: Any, zero_debias: bool = True, name: str | None = None
) -> Any:
    """An op for variable = decay * variable + (1 - decay) * value, without the lean to a start at zero if asked.

    Returns:
      The variable's new value.
    """
    with name_scope(name, "AssignMovingAvg", [variable, value, decay]) as scope, colocate_with(variable):
        rate = convert_to_tensor(1.0 - decay, name="decay")
        if rate.dtype != variable.dtype.base_dtype:
            rate = math_ops.cast(rate, variable.dtype.base_dtype)
        delta = _debiased_delta(variable, value, rate) if zero_debias else (variable - value) * rate
        return variable.assign_sub(delta, name=scope)


def _debiased_delta(variable: Any, value: Any, rate: Tensor) -> Tensor:
    """variable - biased / (1 - decay ** steps), where `biased` is the average that starts at zero."""

    def zeros(shape: Any, dtype: Any = variable.dtype.base_dtype, partition_info: Any = None) -> Tensor:
        return constant(0, dtype=dtype, shape=shape)

    with variable_scope(variable.op.name, values=[variable, value, rate]):
        with init_scope():
            biased = get_variable(
                "biased",
                shape=variable.get_shape(),
                dtype=variable.dtype.base_dtype,
                initializer=zeros,
                trainable=False,
            )
            local_step = get_variable(
                "local_step", shape=[], dtype=variable.dtype.base_dtype, initializer=zeros, trainable=False
            )
        new_biased = biased.assign_sub((biased - value) * rate)
        steps = local_step.assign_add(1)
        unbiased = new_biased / (1 - math_ops.pow(1.0 - rate, array_ops.identity(steps)))
        return variable - unbiased


def _key(value: Any) -> tuple[Any, str]:
    return value.graph, value.name
