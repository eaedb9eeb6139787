"""tensorflow.python.ops.weights_broadcast_ops: weights of losses and metrics, which broadcast to the values."""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.filling import ones_like
from dtf.build.ops.math import multiply
from dtf.build.ops.ordering import no_op
from dtf.losses import check_weights

__all__ = ["assert_broadcastable", "broadcast_weights"]


def assert_broadcastable(weights: Any, values: Any) -> Operation:
    """An operation that fails where the weights do not broadcast to the values.

    Raises:
      ValueError: they are known not to.
    """
    given = convert_to_tensor(weights, name="weights")
    checked = check_weights(given, convert_to_tensor(values, name="values"))
    return no_op(name="static_checks") if checked is given else checked.op


def broadcast_weights(weights: Any, values: Any) -> Tensor:
    """The weights in the shape of the values.

    Raises:
      ValueError: they are known not to broadcast to the values.
    """
    values = convert_to_tensor(values, name="values")
    weights = convert_to_tensor(weights, dtype=values.dtype.base_dtype, name="weights")
    checked = check_weights(weights, values)
    is_full = weights.shape.is_fully_defined() and weights.shape == values.shape
    return checked if is_full else multiply(checked, ones_like(values), name="broadcast_weights")
