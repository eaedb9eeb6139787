"""RMSProp: gradients over the root of the moving mean of their squares. Tieleman and Hinton, lecture 6.5, 2012."""

from __future__ import annotations

from typing import Any

from dtf.train.adagrad import constant_slot
from dtf.train.optimizer import RuleOptimizer

__all__ = ["RMSPropOptimizer"]


class RMSPropOptimizer(RuleOptimizer):
    """`centered` subtracts the square of the mean gradient from the mean square. All rows of `momentum` and so on are
    only moved where a sparse gradient has slices.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/RMSPropOptimizer
    """

    def __init__(
        self,
        learning_rate: Any,
        decay: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: Any = 1e-10,
        use_locking: bool = False,
        centered: bool = False,
        name: str = "RMSProp",
    ) -> None:
        """Hyperparameters are numbers, scalar tensors, or functions that give one."""
        super().__init__(
            use_locking,
            name,
            {"learning_rate": learning_rate, "decay": decay, "momentum": momentum, "epsilon": epsilon},
        )
        self._centered = centered

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, 1.0, "rms", self._name)
            if self._centered:
                self._zeros_slot(var, "mg", self._name)
            self._zeros_slot(var, "momentum", self._name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        arguments = {
            "ms": self.get_slot(var, "rms"),
            "mom": self.get_slot(var, "momentum"),
            "lr": self._scalar("learning_rate", var),
            "rho": self._scalar("decay", var),
            "momentum": self._scalar("momentum", var),
            "epsilon": self._scalar("epsilon", var),
        }
        if self._centered:
            return "CenteredRMSProp", {"mg": self.get_slot(var, "mg"), **arguments}
        return "RMSProp", arguments
