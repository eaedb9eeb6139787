"""The metrics that are a weighted mean of something.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/mean and the pages of the others
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions, searching
from dtf.build.ops.state import assign_add
from dtf.build.variable_scope import variable_scope
from dtf.metrics.accumulation import Metric, collected, counter, ratio, same_shape, spread
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "accuracy",
    "mean",
    "mean_absolute_error",
    "mean_cosine_distance",
    "mean_relative_error",
    "mean_squared_error",
    "mean_tensor",
    "percentage_below",
    "root_mean_squared_error",
]


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values.

    Args:
      values: a tensor of numbers.
      weights: a number or tensor that broadcasts to the shape of `values`.
      metrics_collections: collections that the value is added to.
      updates_collections: collections that the update is added to.
      name: a variable scope.

    Returns:
      (value, update_op): the figure so far, and the operation that adds a batch.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/mean
    """
    with variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total, count = counter("total"), counter("count")
        if weights is None:
            number = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            weights = spread(weights, values)
            values, number = values * weights, reductions.reduce_sum(weights)
        update_total = assign_add(total, reductions.reduce_sum(values))
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value, update = ratio(total, count, "value"), ratio(update_total, update_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def mean_tensor(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of each element over the batches; the shape of `values` must be known."""
    with variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total = counter("total_tensor", values.shape)
        count = counter("count_tensor", values.shape)
        number = filling_ops.ones_like(values)
        if weights is not None:
            number = spread(weights, values)
            values = values * number
        update_total = assign_add(total, values)
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value, update = ratio(total, count, "value"), ratio(update_total, update_count, "update_op")
        return collected(value, update, metrics_collections, updates_collections)


def accuracy(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often predictions are the labels.

    Args:
      labels: of the shape of `predictions`.
      predictions: of any dtype.
      weights: a number or tensor that broadcasts to the shape of `predictions`.
      metrics_collections: collections that the value is added to.
      updates_collections: collections that the update is added to.
      name: a variable scope.

    Returns:
      (value, update_op): the figure so far, and the operation that adds a batch.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/accuracy
    """
    labels, predictions = same_shape(labels, predictions)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    correct = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the squares of the differences."""
    labels, predictions = same_shape(labels, predictions)
    error = math_ops.squared_difference(math_ops.cast(labels, predictions.dtype), predictions)
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square root of `mean_squared_error`."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return collected(math_ops.sqrt(value), math_ops.sqrt(update), metrics_collections, updates_collections)


def mean_absolute_error(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the differences without their signs."""
    labels, predictions = same_shape(labels, predictions)
    error = math_ops.abs(predictions - math_ops.cast(labels, predictions.dtype))
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


def mean_relative_error(
    labels: TensorLike,
    predictions: TensorLike,
    normalizer: Any,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the differences without their signs, divided by `normalizer`; 0 where that is 0."""
    labels, predictions = same_shape(labels, predictions)
    predictions, normalizer = same_shape(predictions, normalizer)
    difference = math_ops.abs(math_ops.cast(labels, predictions.dtype) - predictions)
    normalizer = math_ops.cast(normalizer, predictions.dtype)
    nothing = filling_ops.zeros_like(difference)
    error = searching.where(math_ops.equal(normalizer, 0), nothing, math_ops.divide(difference, normalizer))
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_relative_error")


def mean_cosine_distance(
    labels: TensorLike,
    predictions: TensorLike,
    dim: int,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """1 - the mean of sum(labels * predictions) along dimension `dim`; both are of unit length already.

    weights: 1 along `dim`.
    """
    labels, predictions = same_shape(labels, predictions)
    products = reductions.reduce_sum(predictions * math_ops.cast(labels, predictions.dtype), [dim], keepdims=True)
    value, update = mean(products, weights, None, None, name or "mean_cosine_distance")
    value, update = math_ops.subtract(1.0, value), math_ops.subtract(1.0, update)
    return collected(value, update, metrics_collections, updates_collections)


def percentage_below(
    values: TensorLike,
    threshold: Any,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the values, from 0 to 1, that is smaller than `threshold`."""
    below = math_ops.cast(math_ops.less(convert_to_tensor(values), threshold), dtypes.float32)
    return mean(below, weights, metrics_collections, updates_collections, name or "percentage_below_threshold")
