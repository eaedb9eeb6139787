"""Adadelta: steps in the units of the variable, from moving means of squares. Zeiler, arXiv 1212.5701."""

from __future__ import annotations

from typing import Any

from dtf.train.optimizer import RuleOptimizer

__all__ = ["AdadeltaOptimizer"]


class AdadeltaOptimizer(RuleOptimizer):
    """Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/AdadeltaOptimizer"""

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adadelta",
    ) -> None:
        """Hyperparameters are numbers, scalar tensors, or functions that give one."""
        super().__init__(use_locking, name, {"lr": learning_rate, "rho": rho, "epsilon": epsilon})

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "accum", self._name)
            self._zeros_slot(var, "accum_update", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Adadelta", {
            "accum": self.get_slot(var, "accum"),
            "accum_update": self.get_slot(var, "accum_update"),
            "lr": self._scalar("lr", var),
            "rho": self._scalar("rho", var),
            "epsilon": self._scalar("epsilon", var),
        }
