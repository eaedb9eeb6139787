"""The metrics of answers that are yes or no: how often each came for each label.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/precision and the pages of the others
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions
from dtf.build.ops.state import assign_add
from dtf.build.variable_scope import variable_scope
from dtf.metrics.accumulation import Metric, collected, counter, ratio, same_shape, spread
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["false_negatives", "false_positives", "precision", "recall", "true_negatives", "true_positives"]


def _counting(default_name: str, label: bool, prediction: bool) -> Any:
    def count(
        labels: Any,
        predictions: Any,
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, default_name, (predictions, labels, weights)):
            labels, predictions = same_shape(
                math_ops.cast(labels, dtypes.bool), math_ops.cast(predictions, dtypes.bool)
            )
            hits = math_ops.logical_and(math_ops.equal(labels, label), math_ops.equal(predictions, prediction))
            values = math_ops.cast(hits, dtypes.float32)
            if weights is not None:
                values = values * spread(weights, values)
            total = counter("count")
            update = assign_add(total, reductions.reduce_sum(values))
            return collected(array_ops.identity(total), update, metrics_collections, updates_collections)

    count.__name__ = default_name
    count.__doc__ = f"How often labels that are {label} were predicted as {prediction}."
    return count


true_positives = _counting("true_positives", True, True)
false_positives = _counting("false_positives", False, True)
true_negatives = _counting("true_negatives", False, False)
false_negatives = _counting("false_negatives", True, False)


def precision(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positive predictions that is right.

    Args:
      labels: a tensor that casts to bool.
      predictions: a tensor that casts to bool, of the shape of `labels`.
      weights: a number or tensor that broadcasts to the shape of `labels`.
      metrics_collections: collections that the value is added to.
      updates_collections: collections that the update is added to.
      name: a variable scope.

    Returns:
      (value, update_op): the figure so far, and the operation that adds a batch.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/precision
    """
    with variable_scope(name, "precision", (predictions, labels, weights)):
        right, wrong = true_positives(labels, predictions, weights), false_positives(labels, predictions, weights)
        return _share(right, wrong, metrics_collections, updates_collections)


def recall(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positive labels that was predicted.

    Args:
      labels: a tensor that casts to bool.
      predictions: a tensor that casts to bool, of the shape of `labels`.
      weights: a number or tensor that broadcasts to the shape of `labels`.
      metrics_collections: collections that the value is added to.
      updates_collections: collections that the update is added to.
      name: a variable scope.

    Returns:
      (value, update_op): the figure so far, and the operation that adds a batch.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/recall
    """
    with variable_scope(name, "recall", (predictions, labels, weights)):
        right, missed = true_positives(labels, predictions, weights), false_negatives(labels, predictions, weights)
        return _share(right, missed, metrics_collections, updates_collections)


def _share(part: Metric, rest: Metric, metrics_collections: Any, updates_collections: Any) -> Metric:
    value, update = (
        ratio(mine, mine + other, name) for mine, other, name in zip(part, rest, ("value", "update_op"), strict=True)
    )
    return collected(value, update, metrics_collections, updates_collections)
