"""The metrics that treat every class alike, however rare it is.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/mean_iou and the page of the other
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.ops import array as array_ops
from dtf.build.ops import diagonals, reductions, searching
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.confusion_matrix import confusion_matrix
from dtf.build.ops.state import assign_add, scatter_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.metrics.accumulation import Metric, collected, counter, ratio, same_shape, spread
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["mean_iou", "mean_per_class_accuracy"]


def mean_iou(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over the classes that occurred of intersection / union of their labels and their predictions.

    Args:
      labels, predictions: class numbers from 0, of any shape.

    Returns:
      (the mean, the confusion matrix [num_classes, num_classes] after the batch)
    """
    with variable_scope(name, "mean_iou", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights)
        total = counter("total_confusion_matrix", [num_classes, num_classes], dtypes.float64)
        batch = confusion_matrix(labels, predictions, num_classes, dtypes.float64, weights=weights)
        update = assign_add(total, batch)
        matrix = math_ops.cast(total.read_value(), dtypes.float32)
        both = diagonals.diag_part(matrix)
        union = reductions.reduce_sum(matrix, 0) + reductions.reduce_sum(matrix, 1) - both
        seen = math_ops.cast(math_ops.not_equal(union, 0), dtypes.float32)
        safe = searching.where(math_ops.greater(union, 0), union, filling_ops.ones_like(union))
        value = math_ops.div_no_nan(reductions.reduce_sum(both / safe), reductions.reduce_sum(seen), name="mean_iou")
        return collected(value, update, metrics_collections, updates_collections)


def mean_per_class_accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: int,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over all classes of how often their labels were predicted; 0 for those without any.

    Args:
      labels, predictions: class numbers from 0, of any shape.

    Returns:
      (the mean, the accuracy of each class [num_classes] after the batch)
    """
    with variable_scope(name, "mean_accuracy", (predictions, labels, weights)):
        labels, predictions, weights = _flat(labels, predictions, weights)
        total, count = counter("total", [num_classes]), counter("count", [num_classes])
        correct = math_ops.cast(math_ops.equal(labels, predictions), dtypes.float32)
        number = filling_ops.ones_like(correct) if weights is None else weights
        update_total = scatter_add(total, labels, number)
        update_count = scatter_add(count, labels, correct * number)
        value = reductions.reduce_mean(ratio(count, total), name="mean_accuracy")
        update = ratio(update_count, update_total, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def _flat(labels: Any, predictions: Any, weights: Any) -> tuple[Tensor, Tensor, Tensor | None]:
    """Vectors of int64, and the weights of their elements."""
    labels, predictions = same_shape(math_ops.cast(labels, dtypes.int64), math_ops.cast(predictions, dtypes.int64))
    if weights is not None:
        weights = array_ops.reshape(spread(weights, math_ops.cast(predictions, dtypes.float32)), [-1])
    return array_ops.reshape(labels, [-1]), array_ops.reshape(predictions, [-1]), weights
