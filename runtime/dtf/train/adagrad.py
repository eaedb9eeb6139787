"""Adagrad: a learning rate per element that falls with the sum of its squared gradients. Duchi et al., JMLR 2011."""

from __future__ import annotations

from typing import Any

from dtf.build.constant import constant
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.tensor import Tensor
from dtf.train.optimizer import Optimizer, RuleOptimizer

__all__ = ["AdagradOptimizer"]


class AdagradOptimizer(RuleOptimizer):
    """accumulator += gradient ** 2; var -= learning_rate * gradient / sqrt(accumulator).

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/AdagradOptimizer
    """

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        use_locking: bool = False,
        name: str = "Adagrad",
    ) -> None:
        """Raises ValueError unless the initial accumulator value is positive."""
        check_positive("initial_accumulator_value", initial_accumulator_value)
        super().__init__(use_locking, name, {"learning_rate": learning_rate})
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, self._initial_accumulator_value, "accumulator", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Adagrad", {"accum": self.get_slot(var, "accumulator"), "lr": self._scalar("learning_rate", var)}


def check_positive(name: str, value: float) -> None:
    """Raises ValueError unless `value` is positive."""
    if value <= 0.0:
        raise ValueError(f"{name} must be positive: {value}")


def constant_slot(optimizer: Optimizer, var: Any, value: float, slot_name: str, op_name: str) -> Any:
    """Finds or makes a slot of the variable's shape and dtype whose elements all start as `value`."""
    dtype = var.dtype.base_dtype

    def initial(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
        return constant(value, dtype=dtype, shape=shape)

    if var.get_shape().is_fully_defined():
        return optimizer._get_or_make_slot_with_initializer(
            var, initial, var.get_shape(), dtype, slot_name, op_name
        )
    filled = filling_ops.fill(array_ops.shape(var.initialized_value()), constant(value, dtype=dtype))
    return optimizer._get_or_make_slot(var, filled, slot_name, op_name)
