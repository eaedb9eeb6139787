"""Proximal gradient descent and proximal Adagrad: a step, then shrinking by l1 and l2. Duchi and Singer, NIPS 2009."""

from __future__ import annotations

from typing import Any

from dtf.train.adagrad import check_positive, constant_slot
from dtf.train.optimizer import RuleOptimizer

__all__ = ["ProximalAdagradOptimizer", "ProximalGradientDescentOptimizer"]


class ProximalGradientDescentOptimizer(RuleOptimizer):
    """Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ProximalGradientDescentOptimizer"""

    def __init__(
        self,
        learning_rate: Any,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalGradientDescent",
    ) -> None:
        super().__init__(
            use_locking,
            name,
            {
                "learning_rate": learning_rate,
                "l1_regularization_strength": l1_regularization_strength,
                "l2_regularization_strength": l2_regularization_strength,
            },
        )

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalGradientDescent", {
            "alpha": self._scalar("learning_rate", var),
            "l1": self._scalar("l1_regularization_strength", var),
            "l2": self._scalar("l2_regularization_strength", var),
        }


class ProximalAdagradOptimizer(RuleOptimizer):
    """Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/ProximalAdagradOptimizer"""

    def __init__(
        self,
        learning_rate: Any,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        use_locking: bool = False,
        name: str = "ProximalAdagrad",
    ) -> None:
        """Raises ValueError unless the initial accumulator value is positive."""
        check_positive("initial_accumulator_value", initial_accumulator_value)
        super().__init__(
            use_locking,
            name,
            {
                "learning_rate": learning_rate,
                "l1_regularization_strength": l1_regularization_strength,
                "l2_regularization_strength": l2_regularization_strength,
            },
        )
        self._initial_accumulator_value = initial_accumulator_value

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, self._initial_accumulator_value, "accumulator", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "ProximalAdagrad", {
            "accum": self.get_slot(var, "accumulator"),
            "lr": self._scalar("learning_rate", var),
            "l1": self._scalar("l1_regularization_strength", var),
            "l2": self._scalar("l2_regularization_strength", var),
        }
