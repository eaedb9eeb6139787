"""tf.keras.metrics: figures to look at, one number for each example; a model reports their means.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/metrics
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from dtf import late
from dtf.build.ops import math as math_ops
from dtf.build.ops import reductions
from dtf.build.ops.array import squeeze
from dtf.build.ops.nn import in_top_k
from dtf.build.ops.reductions import reduce_mean
from dtf.build.tensor import Tensor
from dtf.keras import configs, losses
from dtf.keras.losses import _BY_NAME as _LOSSES_BY_NAME
from dtf.keras.losses import takes_classes
from dtf.keras.names import meant
from dtf.wire import dtypes

__all__ = [
    "binary_accuracy", "categorical_accuracy", "deserialize", "get", "named", "serialize",
    "sparse_categorical_accuracy", "sparse_top_k_categorical_accuracy", "top_k_categorical_accuracy",
]  # fmt: skip

Metric = Callable[[Tensor, Tensor], Tensor]


def binary_accuracy(y_true: Any, y_pred: Any, threshold: float = 0.5) -> Tensor:
    """How often y_pred is above the threshold where y_true is 1."""
    right = math_ops.equal(math_ops.cast(y_true, y_pred.dtype), math_ops.cast(y_pred > threshold, y_pred.dtype))
    return reduce_mean(math_ops.cast(right, dtypes.float32), -1)


def categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the largest prediction is at the class of the largest label."""
    return _is_same(reductions.argmax(y_true, -1), reductions.argmax(y_pred, -1))


def sparse_categorical_accuracy(y_true: Any, y_pred: Any) -> Tensor:
    """Whether the largest prediction is at class y_true, [...] or [..., 1]."""
    if y_true.shape.ndims is not None and y_true.shape.ndims == y_pred.shape.ndims:
        y_true = squeeze(y_true, [-1])
    return _is_same(math_ops.cast(y_true, dtypes.int64), reductions.argmax(y_pred, -1))


def sparse_top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the prediction of class y_true is among the `k` greatest."""
    if y_true.shape.ndims == 2:
        y_true = squeeze(y_true, [-1])
    return math_ops.cast(in_top_k(y_pred, math_ops.cast(y_true, dtypes.int32), k), dtypes.float32)


def top_k_categorical_accuracy(y_true: Any, y_pred: Any, k: int = 5) -> Tensor:
    """Whether the prediction of the class of the largest label is among the `k` greatest."""
    return math_ops.cast(in_top_k(y_pred, reductions.argmax(y_true, -1), k), dtypes.float32)


def get(identifier: Any) -> Any:
    """The metric of a name or a config; a function or an object unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a metric.
    """
    objects = importlib.import_module("dtf.keras.metric_objects")
    table = {**_BY_NAME, **{name: getattr(objects, name) for name in objects.__all__}}
    found = meant("metric", configs.class_of("metric", table, identifier), table)
    return found() if isinstance(found, type) else found


def serialize(metric: Any) -> Any:
    """The name of a metric, or its config."""
    return configs.serialize_keras_object(metric)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The metric of a name or a config."""
    return get(config)


def named(metric: Any, loss: Any, width: int | None) -> tuple[str, Metric]:
    """(name, function) of a metric given to `compile`; the loss and the outputs decide the kind of accuracy.

    Args:
      loss: the model's loss function.
      width: the size of the outputs' last dimension.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a function.
    """
    if isinstance(metric, str) and metric in ("accuracy", "acc", "crossentropy", "ce"):
        if takes_classes(loss):
            if metric in ("crossentropy", "ce"):
                return metric, losses.sparse_categorical_crossentropy
            return metric, sparse_categorical_accuracy
        if metric in ("crossentropy", "ce"):
            return metric, losses.binary_crossentropy if width == 1 else losses.categorical_crossentropy
        is_binary = width == 1 or getattr(loss, "function", loss) is losses.binary_crossentropy
        return metric, binary_accuracy if is_binary else categorical_accuracy
    function = get(metric)
    if isinstance(metric, str) and not hasattr(function, "update_state"):
        return metric, function
    name = str(getattr(function, "name", None) or getattr(function, "__name__", type(function).__name__))
    return name, losses.per_example(function)


def _is_same(one: Tensor, other: Tensor) -> Tensor:
    return math_ops.cast(math_ops.equal(one, other), dtypes.float32)


_BY_NAME: dict[str, Metric] = {
    **_LOSSES_BY_NAME,
    "binary_accuracy": binary_accuracy,
    "categorical_accuracy": categorical_accuracy,
    "sparse_categorical_accuracy": sparse_categorical_accuracy,
    "sparse_top_k_categorical_accuracy": sparse_top_k_categorical_accuracy,
    "top_k_categorical_accuracy": top_k_categorical_accuracy,
}


def __dir__() -> list[str]:
    return sorted({*globals(), *importlib.import_module("dtf.keras.metric_objects").__all__})


def __getattr__(name: str) -> Any:
    objects = importlib.import_module("dtf.keras.metric_objects")
    if name in objects.__all__:
        return getattr(objects, name)
    if name in _BY_NAME or name in losses.__all__:
        return _BY_NAME.get(name) or getattr(losses, name)
    raise late.missing("dtf.keras.metrics", name)
