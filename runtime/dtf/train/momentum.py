"""Gradient descent with momentum, plain or Nesterov's."""

from __future__ import annotations

from typing import Any

from dtf.train.optimizer import RuleOptimizer

__all__ = ["MomentumOptimizer"]


class MomentumOptimizer(RuleOptimizer):
    """accumulation = momentum * accumulation + gradient; var -= learning_rate * accumulation.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/MomentumOptimizer; for Nesterov's
    form Sutskever et al., ICML 2013.
    """

    def __init__(
        self,
        learning_rate: Any,
        momentum: Any,
        use_locking: bool = False,
        name: str = "Momentum",
        use_nesterov: bool = False,
    ) -> None:
        """`learning_rate` and `momentum`: numbers, scalar tensors, or functions that give one."""
        super().__init__(use_locking, name, {"learning_rate": learning_rate, "momentum": momentum})
        self._use_nesterov = use_nesterov

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            self._zeros_slot(var, "momentum", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "Momentum", {
            "accum": self.get_slot(var, "momentum"),
            "lr": self._scalar("learning_rate", var),
            "momentum": self._scalar("momentum", var),
            "use_nesterov": self._use_nesterov,
        }
