"""Adagrad dual averaging, for sparse linear models. Duchi et al., JMLR 2011."""

from __future__ import annotations

from typing import Any

from dtf.build.constant import constant
from dtf.build.default_graph import colocate_with, device
from dtf.build.ops import array as array_ops
from dtf.train.adagrad import check_positive, constant_slot
from dtf.train.optimizer import RuleOptimizer

__all__ = ["AdagradDAOptimizer"]


class AdagradDAOptimizer(RuleOptimizer):
    """Keeps the sums of gradients and of their squares, and computes each weight from them and the global step.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/AdagradDAOptimizer
    """

    def __init__(
        self,
        learning_rate: Any,
        global_step: Any,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "AdagradDA",
    ) -> None:
        """Raises ValueError unless the initial accumulator value is positive."""
        check_positive("initial_gradient_squared_accumulator_value", initial_gradient_squared_accumulator_value)
        super().__init__(use_locking, name, {"learning_rate": learning_rate})
        self._initial_square = initial_gradient_squared_accumulator_value
        self._l1 = l1_regularization_strength
        self._l2 = l2_regularization_strength
        self._global_step = global_step
        self._next_step: Any = None

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, 0.0, "gradient_accumulator", self._name)
            constant_slot(self, var, self._initial_square, "gradient_squared_accumulator", self._name)

    def _prepare(self) -> None:
        super()._prepare()
        with colocate_with(self._tensors["learning_rate"].op):
            self._next_step = array_ops.identity(self._global_step) + 1

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        dtype = var.dtype.base_dtype
        with device(var.device):
            step = array_ops.identity(self._next_step)
        return "AdagradDA", {
            "gradient_accumulator": self.get_slot(var, "gradient_accumulator"),
            "gradient_squared_accumulator": self.get_slot(var, "gradient_squared_accumulator"),
            "lr": self._scalar("learning_rate", var),
            "l1": constant(self._l1, dtype=dtype),
            "l2": constant(self._l2, dtype=dtype),
            "global_step": step,
        }
