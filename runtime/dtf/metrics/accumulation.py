"""The parts of every metric: local variables that add up batches, compatible shapes, and the two results.

Owns the rules for weights and shapes. The metrics are in the other modules of this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import add_to_collection
from dtf.build.graph import GraphKeys
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.losses import check_weights, without_last_one
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

Metric = tuple[Tensor, Tensor]
"""(the metric so far, the op that adds a batch and returns the new metric)."""


def counter(name: str, shape: Any = (), dtype: DTypeLike = dtypes.float32) -> Variable:
    """A variable of zeros that belongs to this task's metrics."""
    return Variable(
        lambda: filling_ops.zeros(shape, dtype),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        name=name,
        dtype=dtype,
    )


def ratio(numerator: Any, denominator: Any, name: str | None = None) -> Tensor:
    """numerator / denominator, or 0 where the denominator is 0."""
    return math_ops.div_no_nan(numerator, math_ops.maximum(denominator, 0), name=name)


def collected(value: Tensor, update: Any, metrics_collections: Any, updates_collections: Any) -> Metric:
    """Both, which are in their collections now."""
    for collections, tensor in ((metrics_collections, value), (updates_collections, update)):
        for collection in [collections] if isinstance(collections, str) else collections or ():
            add_to_collection(collection, tensor)
    return value, update


def same_shape(labels: TensorLike, predictions: TensorLike) -> tuple[Tensor, Tensor]:
    """Both, without a last dimension of 1 that only one of them has.

    Raises:
      ValueError: they are known to be of different shapes.
    """
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    labels, predictions = without_last_one(labels, predictions, 1), without_last_one(predictions, labels, 1)
    labels.shape.assert_is_compatible_with(predictions.shape)
    return labels, predictions


def spread(weights: Any, values: Tensor) -> Tensor:
    """The weights in the shape and dtype of the values; they may have a last dimension of 1 more or less than them.

    Raises:
      ValueError: they do not broadcast to the values.
    """
    weights = math_ops.cast(weights, values.dtype)
    weights = check_weights(without_last_one(weights, values, 1, expand=True), values)
    return weights * filling_ops.ones_like(values)
