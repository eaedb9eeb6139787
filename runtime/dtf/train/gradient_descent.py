"""Plain gradient descent: var -= learning_rate * gradient."""

from __future__ import annotations

from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.train.optimizer import RuleOptimizer

__all__ = ["GradientDescentOptimizer"]


class GradientDescentOptimizer(RuleOptimizer):
    """Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/GradientDescentOptimizer"""

    def __init__(self, learning_rate: Any, use_locking: bool = False, name: str = "GradientDescent") -> None:
        """`learning_rate`: a number, scalar tensor, or function that gives one."""
        super().__init__(use_locking, name, {"learning_rate": learning_rate})

    def _rule(self, var: Any) -> tuple[str, dict[str, Any]]:
        return "GradientDescent", {"alpha": self._scalar("learning_rate", var)}

    # A sparse gradient is subtracted slice by slice, so equal indices need not be brought together.

    def _apply_sparse_duplicate_indices(self, grad: IndexedSlices, var: Any) -> Any:
        delta = IndexedSlices(grad.values * self._scalar("learning_rate", var), grad.indices, grad.dense_shape)
        return var.scatter_sub(delta, use_locking=self._use_locking)

    def _resource_apply_sparse_duplicate_indices(self, grad: Tensor, handle: Any, indices: Tensor) -> Any:
        delta = math_ops.negative(grad) * self._scalar("learning_rate", handle)
        return handle.scatter_add(IndexedSlices(delta, indices))
