"""FTRL-Proximal: follow the regularized leader. McMahan et al., "Ad Click Prediction", KDD 2013."""

from __future__ import annotations

from typing import Any

from dtf.train.adagrad import constant_slot
from dtf.train.optimizer import RuleOptimizer

__all__ = ["FtrlOptimizer"]


class FtrlOptimizer(RuleOptimizer):
    """Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/FtrlOptimizer"""

    def __init__(
        self,
        learning_rate: Any,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        use_locking: bool = False,
        name: str = "Ftrl",
        accum_name: str | None = None,
        linear_name: str | None = None,
        l2_shrinkage_regularization_strength: float = 0.0,
    ) -> None:
        """`accum_name` and `linear_name` are the last parts of the slots' names; `name` by default.

        Raises:
          ValueError: a strength or the initial accumulator is negative, or the learning rate's power positive.
        """
        for argument, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            ("l2_shrinkage_regularization_strength", l2_shrinkage_regularization_strength),
        ):
            if value < 0.0:
                raise ValueError(f"{argument} {value} needs to be positive or zero")
        if learning_rate_power > 0.0:
            raise ValueError(f"learning_rate_power {learning_rate_power} needs to be negative or zero")
        super().__init__(
            use_locking,
            name,
            {
                "learning_rate": learning_rate,
                "l1_regularization_strength": l1_regularization_strength,
                "l2_regularization_strength": l2_regularization_strength,
                "l2_shrinkage_regularization_strength": l2_shrinkage_regularization_strength,
                "learning_rate_power": learning_rate_power,
            },
        )
        self._initial_accumulator_value = initial_accumulator_value
        self._shrinks = l2_shrinkage_regularization_strength > 0.0
        self._accum_name = accum_name or name
        self._linear_name = linear_name or name

    def _create_slots(self, var_list: list[Any]) -> None:
        for var in var_list:
            constant_slot(self, var, self._initial_accumulator_value, "accum", self._accum_name)
            self._zeros_slot(var, "linear", self._linear_name)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        arguments = {
            "accum": self.get_slot(var, "accum"),
            "linear": self.get_slot(var, "linear"),
            "lr": self._scalar("learning_rate", var),
            "l1": self._scalar("l1_regularization_strength", var),
            "l2": self._scalar("l2_regularization_strength", var),
            "lr_power": self._scalar("learning_rate_power", var),
        }
        if self._shrinks:
            arguments["l2_shrinkage"] = self._scalar("l2_shrinkage_regularization_strength", var)
            return "FtrlV2", arguments
        return "Ftrl", arguments
