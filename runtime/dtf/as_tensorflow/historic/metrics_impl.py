"""tensorflow.python.ops.metrics_impl: the variables of metrics, and labels and predictions of one shape."""

from __future__ import annotations

from typing import Any

from dtf.build.ops.array import squeeze
from dtf.metrics.accumulation import counter

__all__ = ["_remove_squeezable_dimensions", "metric_variable"]


def metric_variable(shape: Any, dtype: Any, validate_shape: bool = True, name: str | None = None) -> Any:
    """A local variable of zeros, in METRIC_VARIABLES too."""
    return counter(name or "metric", shape, dtype)


def _remove_squeezable_dimensions(predictions: Any, labels: Any, weights: Any) -> tuple[Any, Any, Any]:
    """(predictions, labels, weights) without a last dimension of size 1 that the others lack."""
    one, other = predictions.shape.ndims, None if labels is None else labels.shape.ndims
    if one is not None and other is not None:
        if one == other + 1 and predictions.shape[-1].value == 1:
            predictions = squeeze(predictions, [-1])
        elif other == one + 1 and labels.shape[-1].value == 1:
            labels = squeeze(labels, [-1])
    rank = predictions.shape.ndims
    if weights is not None and rank is not None and weights.shape.ndims == rank + 1:
        weights = squeeze(weights, [-1])
    return predictions, labels, weights
