"""The metrics of scores from 0 to 1; a score above a threshold counts as positive.

Owns the counts at many thresholds, and the metrics computed from them: precision, recall, areas under curves.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/auc and the pages of the others
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.constant import constant
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions, searching
from dtf.build.ops.check_ops import assert_greater_equal, assert_less_equal
from dtf.build.ops.state import assign_add
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.metrics.accumulation import Metric, collected, counter, same_shape, spread
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "auc",
    "false_negatives_at_thresholds",
    "false_positives_at_thresholds",
    "precision_at_thresholds",
    "recall_at_thresholds",
    "sensitivity_at_specificity",
    "specificity_at_sensitivity",
    "true_negatives_at_thresholds",
    "true_positives_at_thresholds",
]

_EPSILON = 1e-7
_KINDS = ("true_positives", "false_negatives", "true_negatives", "false_positives")
_METHODS = ("trapezoidal", "minoring", "majoring", "careful_interpolation")


@dataclass(frozen=True)
class _Counts:
    """The counts of each answer for each label, by threshold; counts that were not requested are None."""

    true_positives: Any = None
    false_negatives: Any = None
    true_negatives: Any = None
    false_positives: Any = None

    def sensitivity(self) -> Tensor:
        """The part of the positives that was found: recall."""
        return self.true_positives / (self.true_positives + self.false_negatives + _EPSILON)

    def specificity(self) -> Tensor:
        """The part of the negatives that was left."""
        return self.true_negatives / (self.true_negatives + self.false_positives + _EPSILON)


def auc(
    labels: TensorLike,
    predictions: TensorLike,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    curve: str = "ROC",
    name: str | None = None,
    summation_method: str = "trapezoidal",
    thresholds: Sequence[float] | None = None,
) -> Metric:
    """The area under a curve that has one point for each threshold.

    Args:
      labels: a tensor that casts to bool.
      predictions: scores from 0 to 1.
      weights: a number or tensor that broadcasts to the scores.
      num_thresholds: how many thresholds, evenly from 0 to 1.
      curve: "ROC" (true positive rate over false positive rate) or "PR" (precision over recall).
      summation_method: "trapezoidal", "minoring" or "majoring" use the mean, the smaller or the larger of two points.
        "careful_interpolation" is the correct one for "PR" (Davis & Goadrich, ICML 2006).
      thresholds: instead, those between 0 and 1.

    Returns:
      (value, update_op): the figure so far, and the operation that adds a batch.

    Raises:
      ValueError: the curve or method is unknown.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/metrics/auc
    """
    if curve not in ("ROC", "PR"):
        raise ValueError(f"curve must be either ROC or PR, {curve} unknown")
    if summation_method not in _METHODS:
        raise ValueError(f"Invalid summation_method: {summation_method}; it must be one of {', '.join(_METHODS)}")
    chosen = _evenly(num_thresholds) if thresholds is None else _with_ends(sorted(thresholds))

    def area(counts: _Counts) -> Tensor:
        if curve == "PR" and summation_method == "careful_interpolation":
            return _carefully_interpolated(counts)
        found, missed = counts.true_positives, counts.false_negatives
        wrong, left = counts.false_positives, counts.true_negatives
        recall = (found + _EPSILON) / (found + missed + _EPSILON)
        if curve == "ROC":
            x, y = wrong / (wrong + left + _EPSILON), recall
        else:
            x, y = recall, (found + _EPSILON) / (found + wrong + _EPSILON)
        pick = {"minoring": math_ops.minimum, "majoring": math_ops.maximum}.get(summation_method, _middle)
        return reductions.reduce_sum((x[:-1] - x[1:]) * pick(y[:-1], y[1:]))

    with variable_scope(name, "auc", (labels, predictions, weights)):
        return _computed(
            labels, predictions, chosen, weights, _KINDS, area, metrics_collections, updates_collections
        )


def sensitivity_at_specificity(
    labels: TensorLike,
    predictions: TensorLike,
    specificity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positives that is found, at the threshold where the specificity is nearest to the given one.

    Raises:
      ValueError: `specificity` is not from 0 to 1.
    """
    if not 0 <= specificity <= 1:
        raise ValueError(f"`specificity` must be in the range [0, 1]. Currently, `specificity` got {specificity}.")

    def at_nearest(counts: _Counts) -> Tensor:
        nearest = reductions.argmin(math_ops.abs(counts.specificity() - specificity), 0)
        return counts.sensitivity()[nearest]

    with variable_scope(name, "sensitivity_at_specificity", (labels, predictions, weights)):
        return _computed(
            labels, predictions, _evenly(num_thresholds), weights, _KINDS, at_nearest,
            metrics_collections, updates_collections,
        )  # fmt: skip


def specificity_at_sensitivity(
    labels: TensorLike,
    predictions: TensorLike,
    sensitivity: float,
    weights: TensorLike | None = None,
    num_thresholds: int = 200,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the negatives that is left, at the largest threshold where the sensitivity is nearest to the given.

    Raises:
      ValueError: `sensitivity` is not from 0 to 1.
    """
    if not 0 <= sensitivity <= 1:
        raise ValueError(f"`sensitivity` must be in the range [0, 1]. Currently, `sensitivity` got {sensitivity}.")
    # As in TensorFlow the last one is below scores of 1 here.
    thresholds = [*_evenly(num_thresholds)[:-1], 1.0 - _EPSILON]

    def at_nearest(counts: _Counts) -> Tensor:
        distance = math_ops.abs(counts.sensitivity() - sensitivity)
        # argmin returns the first of equal elements; the last is needed.
        nearest = len(thresholds) - 1 - reductions.argmin(distance[::-1], 0)
        return counts.specificity()[nearest]

    with variable_scope(name, "specificity_at_sensitivity", (labels, predictions, weights)):
        return _computed(
            labels, predictions, thresholds, weights, _KINDS, at_nearest, metrics_collections, updates_collections
        )


def precision_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the scores above each threshold that is right, [thresholds]."""

    def precision(counts: _Counts) -> Tensor:
        return counts.true_positives / (_EPSILON + counts.true_positives + counts.false_positives)

    with variable_scope(name, "precision_at_thresholds", (predictions, labels, weights)):
        return _computed(
            labels, predictions, thresholds, weights, ("true_positives", "false_positives"), precision,
            metrics_collections, updates_collections, "precision_",
        )  # fmt: skip


def recall_at_thresholds(
    labels: TensorLike,
    predictions: TensorLike,
    thresholds: Sequence[float],
    weights: TensorLike | None = None,
    metrics_collections: Any = None,
    updates_collections: Any = None,
    name: str | None = None,
) -> Metric:
    """The part of the positives whose score is above each threshold, [thresholds]."""
    with variable_scope(name, "recall_at_thresholds", (predictions, labels, weights)):
        return _computed(
            labels, predictions, thresholds, weights, ("true_positives", "false_negatives"), _Counts.sensitivity,
            metrics_collections, updates_collections, "recall_",
        )  # fmt: skip


def _counting(kind: str, label: str, side: str) -> Any:
    def count(
        labels: Any,
        predictions: Any,
        thresholds: Sequence[float],
        weights: Any = None,
        metrics_collections: Any = None,
        updates_collections: Any = None,
        name: str | None = None,
    ) -> Metric:
        with variable_scope(name, kind, (predictions, labels, weights)):
            return _computed(
                labels, predictions, thresholds, weights, (kind,), lambda counts: getattr(counts, kind),
                metrics_collections, updates_collections,
            )  # fmt: skip

    count.__name__ = f"{kind}_at_thresholds"
    count.__doc__ = f"How often labels that are {label} had a score {side} each threshold, [thresholds]."
    return count


true_positives_at_thresholds = _counting("true_positives", "True", "above")
false_positives_at_thresholds = _counting("false_positives", "False", "above")
true_negatives_at_thresholds = _counting("true_negatives", "False", "not above")
false_negatives_at_thresholds = _counting("false_negatives", "True", "not above")


def _computed(
    labels: Any,
    predictions: Any,
    thresholds: Sequence[float],
    weights: Any,
    kinds: Sequence[str],
    compute: Callable[[_Counts], Tensor],
    metrics_collections: Any,
    updates_collections: Any,
    prefix: str = "",
) -> Metric:
    """The metric of the counts so far, and of the counts after a batch; `prefix` begins the names of both."""
    predictions = math_ops.cast(predictions, dtypes.float32)
    checks = [
        assert_greater_equal(predictions, 0.0, message="predictions must be in [0, 1]"),
        assert_less_equal(predictions, 1.0, message="predictions must be in [0, 1]"),
    ]
    with control_dependencies([check for check in checks if check is not None]):
        labels, predictions = same_shape(math_ops.cast(labels, dtypes.bool), predictions)
        predictions = array_ops.identity(predictions)
    yes = math_ops.greater(
        array_ops.reshape(predictions, [1, -1]), array_ops.reshape(constant(list(thresholds), dtypes.float32), [-1, 1])
    )
    true = array_ops.reshape(labels, [1, -1])
    weight = None if weights is None else array_ops.reshape(spread(weights, predictions), [1, -1])
    hits = {
        "true_positives": (yes, true),
        "false_negatives": (math_ops.logical_not(yes), true),
        "true_negatives": (math_ops.logical_not(yes), math_ops.logical_not(true)),
        "false_positives": (yes, math_ops.logical_not(true)),
    }
    values, updates = {}, {}
    for kind in kinds:
        total = counter(kind, [len(thresholds)])
        hit = math_ops.cast(math_ops.logical_and(*hits[kind]), dtypes.float32)
        hit = hit if weight is None else hit * weight
        updates[kind] = assign_add(total, reductions.reduce_sum(hit, 1))
        values[kind] = total.read_value()
    value = array_ops.identity(compute(_Counts(**values)), name=prefix + "value")
    if len(updates) == 1:  # the count itself: its update is the variable's reference
        return collected(value, updates[kinds[0]], metrics_collections, updates_collections)
    update = array_ops.identity(compute(_Counts(**updates)), name=prefix + "update_op")
    return collected(value, update, metrics_collections, updates_collections)


def _carefully_interpolated(counts: _Counts) -> Tensor:
    """The area under precision over recall, where true and false positives change linearly between two points."""
    found, positive = counts.true_positives, counts.true_positives + counts.false_positives
    change = found[:-1] - found[1:]
    slope = math_ops.div_no_nan(change, math_ops.maximum(positive[:-1] - positive[1:], 0))
    intercept = found[1:] - slope * positive[1:]
    growing = math_ops.logical_and(positive[:-1] > 0, positive[1:] > 0)
    quotient = math_ops.div_no_nan(positive[:-1], math_ops.maximum(positive[1:], 0))
    quotient = searching.where(growing, quotient, filling_ops.ones_like(quotient))
    area = slope * (change + intercept * math_ops.log(quotient))
    return reductions.reduce_sum(
        math_ops.div_no_nan(area, math_ops.maximum(found[1:] + counts.false_negatives[1:], 0))
    )


def _middle(one: Tensor, other: Tensor) -> Tensor:
    return (one + other) / 2.0


def _evenly(count: int) -> list[float]:
    return _with_ends([(i + 1) / (count - 1) for i in range(count - 2)])


def _with_ends(inner: Sequence[float]) -> list[float]:
    """Thresholds; the first is below all scores and the last above."""
    return [-_EPSILON, *inner, 1.0 + _EPSILON]
