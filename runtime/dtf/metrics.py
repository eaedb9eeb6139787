"""The namespace tf.metrics: figures that are gathered over many steps, in local variables.

Every function gives the figure so far, and the operation that adds one batch to it and gives the figure then. The
variables belong to the graph's LOCAL_VARIABLES and METRIC_VARIABLES: `tf.local_variables_initializer()` begins anew.
`weights` is a number or a tensor that broadcasts to the values. Where nothing was counted the figure is 0.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics
"""

from __future__ import annotations

from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import GraphKeys, add_to_collection, control_dependencies
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions
from dtf.build.ops.state import assign_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.build.variables import Variable
from dtf.wire import dtypes

__all__ = [
    "accuracy",
    "false_negatives",
    "false_positives",
    "mean",
    "mean_absolute_error",
    "mean_squared_error",
    "precision",
    "recall",
    "root_mean_squared_error",
    "true_negatives",
    "true_positives",
]

Metric = tuple[Tensor, Tensor]


def mean(
    values: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The weighted mean of all values."""
    with variable_scope(name, "mean", (values, weights)):
        values = math_ops.cast(values, dtypes.float32)
        total, count = _counter("total"), _counter("count")
        if weights is None:
            number = math_ops.cast(array_ops.size(values), dtypes.float32)
        else:
            weights = _spread(weights, values)
            values, number = values * weights, reductions.reduce_sum(weights)
        update_total = assign_add(total, reductions.reduce_sum(values))
        with control_dependencies([values]):
            update_count = assign_add(count, number)
        value, update = _ratio(total, count, "value"), _ratio(update_total, update_count, "update_op")
        return _collected(value, update, metrics_collections, updates_collections)


def accuracy(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """How often predictions are the labels."""
    labels, predictions = _same_shape(labels, predictions)
    if labels.dtype != predictions.dtype:
        predictions = math_ops.cast(predictions, labels.dtype)
    correct = math_ops.cast(math_ops.equal(predictions, labels), dtypes.float32)
    return mean(correct, weights, metrics_collections, updates_collections, name or "accuracy")


def mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the squares of the differences."""
    labels, predictions = _same_shape(labels, predictions)
    error = math_ops.squared_difference(math_ops.cast(labels, predictions.dtype), predictions)
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_squared_error")


def root_mean_squared_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The square root of `mean_squared_error`."""
    value, update = mean_squared_error(labels, predictions, weights, None, None, name or "root_mean_squared_error")
    return _collected(math_ops.sqrt(value), math_ops.sqrt(update), metrics_collections, updates_collections)


def mean_absolute_error(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean of the differences without their signs."""
    labels, predictions = _same_shape(labels, predictions)
    error = math_ops.abs(predictions - math_ops.cast(labels, predictions.dtype))
    return mean(error, weights, metrics_collections, updates_collections, name or "mean_absolute_error")


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
            labels, predictions = _same_shape(_truths(labels), _truths(predictions))
            hits = math_ops.logical_and(math_ops.equal(labels, label), math_ops.equal(predictions, prediction))
            values = math_ops.cast(hits, dtypes.float32)
            if weights is not None:
                values = values * _spread(weights, values)
            counter = _counter("count")
            update = array_ops.identity(assign_add(counter, reductions.reduce_sum(values)))
            return _collected(counter.read_value(), update, metrics_collections, updates_collections)

    count.__name__ = default_name
    count.__doc__ = f"How often labels that are {label} were predicted as {prediction}."
    return count


true_positives = _counting("true_positives", True, True)
false_positives = _counting("false_positives", False, True)
true_negatives = _counting("true_negatives", False, False)
false_negatives = _counting("false_negatives", True, False)


def precision(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positive predictions that is right."""
    with variable_scope(name, "precision", (predictions, labels, weights)):
        right, wrong = true_positives(labels, predictions, weights), false_positives(labels, predictions, weights)
        return _share(right, wrong, metrics_collections, updates_collections)


def recall(
    labels: Any,
    predictions: Any,
    weights: Any = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positive labels that was predicted."""
    with variable_scope(name, "recall", (predictions, labels, weights)):
        right, missed = true_positives(labels, predictions, weights), false_negatives(labels, predictions, weights)
        return _share(right, missed, metrics_collections, updates_collections)


def _counter(name: str) -> Variable:
    return Variable(
        lambda: array_ops.zeros([], dtypes.float32),
        trainable=False,
        collections=[GraphKeys.LOCAL_VARIABLES, GraphKeys.METRIC_VARIABLES],
        name=name,
        dtype=dtypes.float32,
    )


def _ratio(numerator: Any, denominator: Any, name: str) -> Tensor:
    return math_ops.div_no_nan(numerator, math_ops.maximum(denominator, 0.0), name=name)


def _share(part: Metric, rest: Metric, metrics_collections: Any, updates_collections: Any) -> Metric:
    value, update = (
        _ratio(mine, mine + other, name) for mine, other, name in zip(part, rest, ("value", "update_op"), strict=True)
    )
    return _collected(value, update, metrics_collections, updates_collections)


def _collected(value: Tensor, update: Tensor, metrics_collections: Any, updates_collections: Any) -> Metric:
    for collections, tensor in ((metrics_collections, value), (updates_collections, update)):
        for collection in [collections] if isinstance(collections, str) else collections or ():
            add_to_collection(collection, tensor)
    return value, update


def _truths(values: Any) -> Tensor:
    return math_ops.cast(values, dtypes.bool)


def _spread(weights: Any, values: Tensor) -> Tensor:
    return math_ops.cast(weights, dtypes.float32) * array_ops.ones_like(values)


def _same_shape(labels: Any, predictions: Any) -> tuple[Tensor, Tensor]:
    """Both, without a last dimension of 1 that only one of them has."""
    labels, predictions = convert_to_tensor(labels), convert_to_tensor(predictions)
    ranks = labels.shape.ndims, predictions.shape.ndims
    if None not in ranks:
        if ranks[0] == ranks[1] + 1:
            labels = array_ops.squeeze(labels, [-1])
        elif ranks[1] == ranks[0] + 1:
            predictions = array_ops.squeeze(predictions, [-1])
    labels.shape.assert_is_compatible_with(predictions.shape)
    return labels, predictions
