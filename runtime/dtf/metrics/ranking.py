"""The metrics of the k best classes of each example, which may have several labels.

labels: class numbers [..., labels], int64, dense or a SparseTensor with the labels of each row; or [...] for one each.
predictions: scores [..., classes]; predictions_idx: class numbers [..., k], best first. Numbers that are no classes
are never found. A label counts once in each row.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/precision_at_k and the others' pages
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions
from dtf.build.ops.nn import top_k
from dtf.build.ops.sparse import sparse_tensor_to_dense
from dtf.build.ops.state import assign_add
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import VariableScope, variable_scope
from dtf.losses import check_weights
from dtf.metrics.accumulation import Metric, collected, counter, ratio
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "average_precision_at_k",
    "precision_at_k",
    "precision_at_top_k",
    "recall_at_k",
    "recall_at_top_k",
    "sparse_average_precision_at_k",
    "sparse_precision_at_k",
]

_NO_LABEL = -(2**63)
"""Fills the rows of sparse labels."""


def precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the k best classes that are labels; NaN before there are any.

    class_id: only this class counts.
    """
    return precision_at_top_k(
        labels, _best(predictions, k), k, class_id, weights, metrics_collections, updates_collections, name
    )


def recall_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the labels that are among the k best classes; NaN before there are any.

    class_id: only this class counts.
    """
    return recall_at_top_k(
        labels, _best(predictions, k), k, class_id, weights, metrics_collections, updates_collections, name
    )


def precision_at_top_k(
    labels: TensorLike,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """`precision_at_k` of classes that are ranked already; `k` is only for the names."""
    suffix = _at(k, class_id)
    with variable_scope(name, "precision" + suffix, (predictions_idx, labels, weights)) as scope:
        found = _Found.of(labels, predictions_idx)
        right = _summed(f"true_positive{suffix}", found.right(class_id), weights)
        wrong = _summed(f"false_positive{suffix}", found.wrong(class_id), weights)
        return _part(right, wrong, scope, metrics_collections, updates_collections)


def recall_at_top_k(
    labels: TensorLike,
    predictions_idx: Any,
    k: int | None = None,
    class_id: int | None = None,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """`recall_at_k` of classes that are ranked already; `k` is only for the names."""
    suffix = _at(k, class_id)
    with variable_scope(name, "recall" + suffix, (predictions_idx, labels, weights)) as scope:
        found = _Found.of(labels, predictions_idx)
        right = _summed(f"true_positive{suffix}", found.right(class_id), weights)
        missed = _summed(f"false_negative{suffix}", found.missed(class_id), weights)
        return _part(right, missed, scope, metrics_collections, updates_collections)


def average_precision_at_k(
    labels: TensorLike,
    predictions: TensorLike,
    k: int,
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The mean over the rows of: the mean of the precision at the rank of each label that is found.

    Divided by the number of labels, at most k; dense labels that are not valid classes do not count.

    Raises:
      ValueError: k is not positive.
    """
    if k < 1:
        raise ValueError(f"Invalid k={k}.")
    with variable_scope(name, f"average_precision_at_{k}", (predictions, labels, weights)) as scope:
        found = _Found.of(labels, _best(predictions, k))
        relevant = math_ops.cast(found.is_right, dtypes.float64)
        ranks = math_ops.cast(math_ops.range(1, k + 1), dtypes.float64)
        precision = reductions.cumsum(relevant, axis=-1) / ranks
        wanted = math_ops.minimum(_number(_wanted(labels, found.labels, predictions)), float(k))
        averages = math_ops.divide(reductions.reduce_sum(precision * relevant, -1), wanted)
        # TensorFlow makes an op of the name "max" before.
        most, total = counter("max_1", dtype=dtypes.float64), counter("total", dtype=dtypes.float64)
        number = filling_ops.ones_like(averages) if weights is None else _of_rows(weights, averages)
        add_most = assign_add(most, reductions.reduce_sum(number))
        add_total = assign_add(total, reductions.reduce_sum(averages if weights is None else averages * number))
        value, update = ratio(total, most, "mean"), ratio(add_total, add_most, scope.original_name_scope)
        return collected(value, update, metrics_collections, updates_collections)


sparse_average_precision_at_k = average_precision_at_k
sparse_precision_at_k = precision_at_k


@dataclass(frozen=True)
class _Found:
    """Labels [..., labels], class numbers [..., k], and whether each of these is a label of its row."""

    labels: Tensor
    best: Tensor
    is_right: Tensor

    @staticmethod
    def of(labels: Any, best: Any) -> _Found:
        best = math_ops.cast(best, dtypes.int64)
        if isinstance(labels, SparseTensor):
            labels = sparse_tensor_to_dense(labels, _NO_LABEL, validate_indices=False)
        labels = math_ops.cast(convert_to_tensor(labels), dtypes.int64)
        labels = _as_rows(labels, best)
        return _Found(labels, best, _any_equal(best, labels))

    def right(self, class_id: int | None) -> Tensor:
        """The number in each row of the best that are labels."""
        return _number(_and_class(math_ops.logical_and(_is_first(self.best), self.is_right), self.best, class_id))

    def wrong(self, class_id: int | None) -> Tensor:
        """The number in each row of the best that are none."""
        wrong = math_ops.logical_and(_is_first(self.best), math_ops.logical_not(self.is_right))
        return _number(_and_class(wrong, self.best, class_id))

    def missed(self, class_id: int | None) -> Tensor:
        """The number in each row of the labels that are not among the best."""
        missed = math_ops.logical_and(_is_label(self.labels), math_ops.logical_not(_any_equal(self.labels, self.best)))
        return _number(_and_class(missed, self.labels, class_id))


def _as_rows(labels: Tensor, best: Tensor) -> Tensor:
    """The labels with a last dimension of 1 where they have one dimension less than the best classes."""
    if labels.shape.ndims is None or best.shape.ndims is None:
        is_less = math_ops.equal(array_ops.rank(labels) + 1, array_ops.rank(best))
        return control_flow_ops.cond(is_less, lambda: array_ops.expand_dims(labels, -1), lambda: labels)
    return array_ops.expand_dims(labels, -1) if labels.shape.ndims + 1 == best.shape.ndims else labels


def _wanted(given: Any, labels: Tensor, predictions: Any) -> Tensor:
    """Which of the labels an average precision is divided by."""
    if isinstance(given, SparseTensor):
        return _is_label(labels)
    classes = math_ops.cast(array_ops.shape(predictions)[-1], dtypes.int64)
    return math_ops.logical_and(math_ops.greater_equal(labels, 0), math_ops.less(labels, classes))


def _is_label(labels: Tensor) -> Tensor:
    return math_ops.logical_and(_is_first(labels), math_ops.not_equal(labels, _NO_LABEL))


def _is_first(values: Tensor) -> Tensor:
    """Whether the element is the first of its value in its row."""
    places = math_ops.range(array_ops.shape(values)[-1])
    before = array_ops.expand_dims(places, -1) > array_ops.expand_dims(places, 0)
    return math_ops.logical_not(reductions.reduce_any(math_ops.logical_and(_equal(values, values), before), -1))


def _equal(one: Tensor, other: Tensor) -> Tensor:
    """Whether each element of a row of the one is each of the other's row."""
    return math_ops.equal(array_ops.expand_dims(one, -1), array_ops.expand_dims(other, -2))


def _any_equal(one: Tensor, other: Tensor) -> Tensor:
    return reductions.reduce_any(_equal(one, other), -1)


def _and_class(chosen: Tensor, classes: Tensor, class_id: int | None) -> Tensor:
    return chosen if class_id is None else math_ops.logical_and(chosen, math_ops.equal(classes, class_id))


def _number(chosen: Tensor) -> Tensor:
    return reductions.reduce_sum(math_ops.cast(chosen, dtypes.float64), -1)


def _best(predictions: Any, k: int) -> Tensor:
    return top_k(predictions, k)[1]


def _at(k: int | None, class_id: int | None) -> str:
    suffix = "_at_k" if k is None else f"_at_{k}"
    return suffix if class_id is None else f"{suffix}_class{class_id}"


def _of_rows(weights: Any, rows: Tensor) -> Tensor:
    return check_weights(math_ops.cast(weights, dtypes.float64), rows) * filling_ops.ones_like(rows)


def _summed(name: str, rows: Tensor, weights: Any) -> Metric:
    """The variable that adds up the rows, and its value after a batch."""
    total = counter(name, dtype=dtypes.float64)
    rows = rows if weights is None else rows * _of_rows(weights, rows)
    return total.read_value(), assign_add(total, reductions.reduce_sum(rows))


def _part(
    part: Metric, rest: Metric, scope: VariableScope, metrics_collections: Any, updates_collections: Any
) -> Metric:
    value, update = (
        math_ops.divide(mine, mine + other, name=name)
        for mine, other, name in zip(part, rest, (scope.original_name_scope, "update"), strict=True)
    )
    return collected(value, update, metrics_collections, updates_collections)
