"""tf.keras.regularizers: losses of weights.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/regularizers
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops.reductions import reduce_sum

__all__ = ["l1", "l1_l2", "l2"]


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> Callable[[Any], Any]:
    """l1 times the sum of sizes and l2 times the sum of squares."""

    def loss(weights: Any) -> Any:
        parts = []
        if l1:
            parts.append(l1 * reduce_sum(math_ops.abs(weights)))
        if l2:
            parts.append(l2 * reduce_sum(math_ops.square(weights)))
        return sum(parts[1:], parts[0]) if parts else None

    return loss


def l1(l: float = 0.01) -> Callable[[Any], Any]:  # noqa: E741  (TensorFlow's name)
    """l times the sum of sizes."""
    return l1_l2(l, 0.0)


def l2(l: float = 0.01) -> Callable[[Any], Any]:  # noqa: E741
    """l times the sum of squares."""
    return l1_l2(0.0, l)
