"""tf.contrib.metrics: figures over many steps under their first names, and sums of them.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/metrics
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = [
    "accuracy", "aggregate_metric_map", "aggregate_metrics", "streaming_accuracy", "streaming_auc",
    "streaming_concat", "streaming_covariance", "streaming_false_negatives", "streaming_false_positives",
    "streaming_mean", "streaming_mean_absolute_error", "streaming_mean_cosine_distance", "streaming_mean_iou",
    "streaming_mean_relative_error", "streaming_mean_squared_error", "streaming_mean_tensor",
    "streaming_pearson_correlation", "streaming_percentage_less", "streaming_precision",
    "streaming_precision_at_thresholds",
    "streaming_recall", "streaming_recall_at_k", "streaming_recall_at_thresholds", "streaming_root_mean_squared_error",
    "streaming_sensitivity_at_specificity", "streaming_sparse_precision_at_k", "streaming_sparse_recall_at_k",
    "streaming_specificity_at_sensitivity", "streaming_true_negatives", "streaming_true_positives",
    "confusion_matrix", "set_difference", "set_intersection", "set_size", "set_union",
]  # fmt: skip

confusion_matrix = tf.confusion_matrix
set_difference = tf.sets.set_difference
set_intersection = tf.sets.set_intersection
set_size = tf.sets.set_size
set_union = tf.sets.set_union


def _predictions_first(metric: Callable[..., Any]) -> Callable[..., Any]:
    """A metric of tf.metrics that takes (predictions, labels)."""

    def streaming(predictions: Any, labels: Any, *args: Any, **kwargs: Any) -> Any:
        return metric(labels, predictions, *args, **kwargs)

    streaming.__doc__ = metric.__doc__
    streaming.__name__ = f"streaming_{metric.__name__}"
    return streaming


streaming_accuracy = _predictions_first(tf.metrics.accuracy)
streaming_false_negatives = _predictions_first(tf.metrics.false_negatives)
streaming_false_positives = _predictions_first(tf.metrics.false_positives)
streaming_mean_absolute_error = _predictions_first(tf.metrics.mean_absolute_error)
streaming_mean_squared_error = _predictions_first(tf.metrics.mean_squared_error)
streaming_precision = _predictions_first(tf.metrics.precision)
streaming_recall = _predictions_first(tf.metrics.recall)
streaming_root_mean_squared_error = _predictions_first(tf.metrics.root_mean_squared_error)
streaming_true_negatives = _predictions_first(tf.metrics.true_negatives)
streaming_true_positives = _predictions_first(tf.metrics.true_positives)
streaming_mean = tf.metrics.mean
streaming_mean_tensor = tf.metrics.mean_tensor
streaming_percentage_less = tf.metrics.percentage_below


def streaming_auc(
    predictions: Any, labels: Any, weights: Any = None, num_thresholds: int = 200, metrics_collections: Any = None,
    updates_collections: Any = None, curve: str = "ROC", name: str | None = None,
) -> Any:  # fmt: skip
    """`tf.metrics.auc`."""
    return tf.metrics.auc(
        labels, predictions, weights, num_thresholds, metrics_collections, updates_collections, curve, name
    )


def streaming_mean_iou(predictions: Any, labels: Any, num_classes: int, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.mean_iou`."""
    return tf.metrics.mean_iou(labels, predictions, num_classes, *args, **kwargs)


def streaming_mean_relative_error(predictions: Any, labels: Any, normalizer: Any, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.mean_relative_error`."""
    return tf.metrics.mean_relative_error(labels, predictions, normalizer, *args, **kwargs)


def streaming_mean_cosine_distance(predictions: Any, labels: Any, dim: int, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.mean_cosine_distance`."""
    return tf.metrics.mean_cosine_distance(labels, predictions, dim, *args, **kwargs)


def streaming_precision_at_thresholds(predictions: Any, labels: Any, thresholds: Any, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.precision_at_thresholds`."""
    return tf.metrics.precision_at_thresholds(labels, predictions, thresholds, *args, **kwargs)


def streaming_recall_at_thresholds(predictions: Any, labels: Any, thresholds: Any, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.recall_at_thresholds`."""
    return tf.metrics.recall_at_thresholds(labels, predictions, thresholds, *args, **kwargs)


def streaming_sensitivity_at_specificity(
    predictions: Any, labels: Any, specificity: float, *args: Any, **kwargs: Any
) -> Any:
    """`tf.metrics.sensitivity_at_specificity`."""
    return tf.metrics.sensitivity_at_specificity(labels, predictions, specificity, *args, **kwargs)


def streaming_specificity_at_sensitivity(
    predictions: Any, labels: Any, sensitivity: float, *args: Any, **kwargs: Any
) -> Any:
    """`tf.metrics.specificity_at_sensitivity`."""
    return tf.metrics.specificity_at_sensitivity(labels, predictions, sensitivity, *args, **kwargs)


def streaming_recall_at_k(
    predictions: Any, labels: Any, k: int, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """How often the class is among the k greatest predictions."""
    right = tf.to_float(tf.nn.in_top_k(predictions, labels, k))
    return tf.metrics.mean(right, weights, metrics_collections, updates_collections, name or f"recall_at_{k}")


def streaming_sparse_recall_at_k(predictions: Any, labels: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.recall_at_k`."""
    return tf.metrics.recall_at_k(labels, predictions, k, *args, **kwargs)


def streaming_sparse_precision_at_k(predictions: Any, labels: Any, k: int, *args: Any, **kwargs: Any) -> Any:
    """`tf.metrics.precision_at_k`."""
    return tf.metrics.precision_at_k(labels, predictions, k, *args, **kwargs)


def streaming_concat(
    values: Any, axis: int = 0, max_size: int | None = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """All values that there have been, joined: (the values, an op that adds the next ones)."""
    with tf.variable_scope(name, "streaming_concat", [values]):
        values = tf.convert_to_tensor(values)
        shape = values.get_shape().with_rank_at_least(1).as_list()
        shape[axis] = None
        start = tf.zeros([0 if size is None else size for size in shape], values.dtype)
        kept = tf.Variable(
            start, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
            validate_shape=False, name="array",
        )  # fmt: skip
        joined = tf.concat([kept, values], axis)
        if max_size is not None:
            rest = [slice(None)] * len(shape)
            rest[axis] = slice(None, max_size)
            joined = joined[tuple(rest)]
        update = tf.assign(kept, joined, validate_shape=False)
        value = tf.identity(kept)
        value.set_shape(shape)
        _collect(metrics_collections, value)
        _collect(updates_collections, update)
        return value, update


def streaming_covariance(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The unbiased covariance of all predictions and labels."""
    with tf.variable_scope(name, "covariance", [predictions, labels]):
        sums, updates = _moments(predictions, labels, weights)
        value = _covariance(sums, 0, 1, 4)
        with tf.control_dependencies(updates):
            update = _covariance([tf.identity(each) for each in updates], 0, 1, 4)
        _collect(metrics_collections, value)
        _collect(updates_collections, update)
        return value, update


def streaming_pearson_correlation(
    predictions: Any, labels: Any, weights: Any = None, metrics_collections: Any = None,
    updates_collections: Any = None, name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """The correlation of all predictions and labels."""
    with tf.variable_scope(name, "pearson_r", [predictions, labels]):
        sums, updates = _moments(predictions, labels, weights)

        def correlation(each: Any) -> Any:
            return _covariance(each, 0, 1, 4) / tf.sqrt(_covariance(each, 0, 0, 2) * _covariance(each, 1, 1, 3))

        value = correlation(sums)
        with tf.control_dependencies(updates):
            update = correlation([tf.identity(each) for each in updates])
        _collect(metrics_collections, value)
        _collect(updates_collections, update)
        return value, update


def _moments(predictions: Any, labels: Any, weights: Any) -> tuple[list[Any], list[Any]]:
    """The sums of x, y, xx, yy, xy and of weights: their variables, and the ops that add to them."""
    x, y = tf.to_double(predictions), tf.to_double(labels)
    w = tf.ones_like(x) if weights is None else tf.to_double(weights) * tf.ones_like(x)
    terms = [w * x, w * y, w * x * x, w * y * y, w * x * y, w]
    sums, updates = [], []
    for index, term in enumerate(terms):
        total = tf.Variable(
            tf.zeros([], tf.float64), trainable=False, name=f"sum_{index}",
            collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
        )  # fmt: skip
        sums.append(total)
        updates.append(tf.assign_add(total, tf.reduce_sum(term)))
    return sums, updates


def _covariance(sums: list[Any], one: int, other: int, product: int) -> Any:
    count = sums[5]
    return tf.to_float((sums[product] - sums[one] * sums[other] / count) / (count - 1.0))


def accuracy(predictions: Any, labels: Any, weights: Any = None, name: str | None = None) -> Any:
    """The share of predictions in this batch that are the labels.

    Raises:
      ValueError: the dtypes differ, or are neither integers, booleans nor strings.
    """
    if predictions.dtype != labels.dtype:
        raise ValueError(f"Dtypes of predictions and labels should match. {predictions.dtype} vs {labels.dtype}")
    with tf.name_scope(name, "accuracy", [predictions, labels]):
        right = tf.to_float(tf.equal(predictions, labels))
        if weights is None:
            return tf.reduce_mean(right)
        return tf.reduce_sum(right * weights) / tf.reduce_sum(tf.ones_like(right) * weights)


def aggregate_metrics(*value_update_tuples: Any) -> tuple[list[Any], list[Any]]:
    """Pairs of (value, update) as ([values], [updates]).

    Raises:
      ValueError: the list of pairs is empty.
    """
    if not value_update_tuples:
        raise ValueError("Expected at least one value_tensor/update_op pair")
    values, updates = zip(*value_update_tuples, strict=True)
    return list(values), list(updates)


def aggregate_metric_map(names_to_tuples: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """{name: (value, update)} as ({name: value}, {name: update})."""
    values, updates = zip(*names_to_tuples.values(), strict=True)
    return dict(zip(names_to_tuples, values, strict=True)), dict(zip(names_to_tuples, updates, strict=True))


def _collect(collections: Any, member: Any) -> None:
    for collection in [collections] if isinstance(collections, str) else collections or ():
        tf.add_to_collection(collection, member)
