"""Adam: moving means of gradients and of their squares. Kingma and Ba, arXiv 1412.6980."""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import colocate_with, control_dependencies
from dtf.build.ops import math as math_ops
from dtf.build.ops import ordering
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.train.optimizer import RuleOptimizer

__all__ = ["AdamOptimizer"]


class AdamOptimizer(RuleOptimizer):
    """var -= learning_rate * sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + epsilon).

    A sparse gradient is taken as a dense one that is zero elsewhere: all of m and v decay, all of the variable moves.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/AdamOptimizer
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-8,
        use_locking: bool = False,
        name: str = "Adam",
    ) -> None:
        """Hyperparameters are numbers, scalar tensors, or functions that give one."""
        super().__init__(
            use_locking,
            name,
            {"learning_rate": learning_rate, "beta1": beta1, "beta2": beta2, "epsilon": epsilon},
        )
        self._beta1 = beta1
        self._beta2 = beta2

    def _get_beta_accumulators(self) -> tuple[Any, Any]:
        """beta1 and beta2 to the power of the coming step's number."""
        return self._get_non_slot_variable("beta1_power"), self._get_non_slot_variable("beta2_power")

    def _create_slots(self, var_list: list[Any]) -> None:
        # On the device of the variable of the least name, which all workers agree on.
        first = min(var_list, key=lambda var: var.name)
        self._create_non_slot_variable(self._call_if_callable(self._beta1), "beta1_power", first)
        self._create_non_slot_variable(self._call_if_callable(self._beta2), "beta2_power", first)
        for var in var_list:
            self._zeros_slot(var, "m", self._name)
            self._zeros_slot(var, "v", self._name)

    def _powers(self, var: Any) -> tuple[Tensor, Tensor]:
        dtype = var.dtype.base_dtype
        beta1_power, beta2_power = self._get_beta_accumulators()
        return math_ops.cast(beta1_power, dtype), math_ops.cast(beta2_power, dtype)

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        beta1_power, beta2_power = self._powers(var)
        return "Adam", {
            "m": self.get_slot(var, "m"),
            "v": self.get_slot(var, "v"),
            "beta1_power": beta1_power,
            "beta2_power": beta2_power,
            "lr": self._scalar("learning_rate", var),
            "beta1": self._scalar("beta1", var),
            "beta2": self._scalar("beta2", var),
            "epsilon": self._scalar("epsilon", var),
        }

    def _apply_sparse(self, grad: IndexedSlices, var: Any) -> Any:
        return self._apply_slices(grad.values, var, grad.indices)

    def _resource_apply_sparse(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        return self._apply_slices(grad, handle, indices)

    def _apply_slices(self, values: Tensor, var: Any, indices: Tensor) -> Any:
        beta1_power, beta2_power = self._powers(var)
        beta1, beta2 = self._scalar("beta1", var), self._scalar("beta2", var)
        rate = self._scalar("learning_rate", var) * math_ops.sqrt(1 - beta2_power) / (1 - beta1_power)
        mean = self._decayed("m", var, beta1, values * (1 - beta1), indices)
        square = self._decayed("v", var, beta2, values * values * (1 - beta2), indices)
        step = rate * mean / (math_ops.sqrt(square) + self._scalar("epsilon", var))
        return ordering.group(var.assign_sub(step, use_locking=self._use_locking), mean, square)

    def _decayed(self, slot_name: str, var: Any, decay: Tensor, values: Tensor, indices: Tensor) -> Any:
        """The slot after slot = slot * decay, then slot[indices] += values."""
        slot = self.get_slot(var, slot_name)
        with control_dependencies([slot.assign(slot * decay, use_locking=self._use_locking)]):
            return slot.scatter_add(IndexedSlices(values, indices), use_locking=self._use_locking)

    def _finish(self, update_ops: list[Any], name_scope: str) -> Any:
        beta1_power, beta2_power = self._get_beta_accumulators()
        with control_dependencies(update_ops), colocate_with(beta1_power):
            powers = [
                power.assign(power * self._tensors[name], use_locking=self._use_locking)
                for power, name in ((beta1_power, "beta1"), (beta2_power, "beta2"))
            ]
        return ordering.group(*update_ops, *powers, name=name_scope)
