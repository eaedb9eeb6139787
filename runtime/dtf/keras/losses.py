"""tf.keras.losses: the distance between predictions and labels, one number for each example.

A loss is a function of (y_true, y_pred). Probabilities that come directly from a softmax or sigmoid are converted back
to logits, which keeps precision. Others are clipped to stay 1e-7 away from 0 and 1.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/losses
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.ops import array as array_ops
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.clip import clip_by_value
from dtf.build.ops.reductions import reduce_mean, reduce_sum
from dtf.build.tensor import Tensor
from dtf.keras.names import meant
from dtf.wire import dtypes

__all__ = [
    "BinaryCrossentropy", "CategoricalCrossentropy", "MeanAbsoluteError", "MeanSquaredError",
    "SparseCategoricalCrossentropy", "binary_crossentropy", "categorical_crossentropy", "get", "hinge",
    "kullback_leibler_divergence", "mean_absolute_error", "mean_squared_error", "poisson",
    "sparse_categorical_crossentropy", "squared_hinge",
]  # fmt: skip

Loss = Callable[[Tensor, Tensor], Tensor]
_EPSILON = 1e-7


def mean_squared_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the squares of the differences, over the last dimension."""
    return reduce_mean(math_ops.squared_difference(y_pred, _like(y_true, y_pred)), -1)


def mean_absolute_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the differences without their signs, over the last dimension."""
    return reduce_mean(math_ops.abs(y_pred - _like(y_true, y_pred)), -1)


def hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of max(1 - y_true * y_pred, 0); labels are -1 and 1."""
    return reduce_mean(math_ops.maximum(1.0 - _like(y_true, y_pred) * y_pred, 0.0), -1)


def squared_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of max(1 - y_true * y_pred, 0) squared; labels are -1 and 1."""
    return reduce_mean(math_ops.square(math_ops.maximum(1.0 - _like(y_true, y_pred) * y_pred, 0.0)), -1)


def poisson(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of y_pred - y_true * log(y_pred)."""
    return reduce_mean(y_pred - _like(y_true, y_pred) * math_ops.log(y_pred + _EPSILON), -1)


def kullback_leibler_divergence(y_true: Any, y_pred: Any) -> Tensor:
    """The sum of y_true * log(y_true / y_pred)."""
    y_true = clip_by_value(_like(y_true, y_pred), _EPSILON, 1.0)
    y_pred = clip_by_value(y_pred, _EPSILON, 1.0)
    return reduce_sum(y_true * math_ops.log(y_true / y_pred), -1)


def binary_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """The mean cross entropy of yes or no, over the last dimension."""
    y_true = _like(y_true, y_pred)
    logits = y_pred if from_logits else _before("Sigmoid", y_pred)
    if logits is not None:
        return reduce_mean(cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=y_true, logits=logits), -1)
    chances = clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON)
    yes = y_true * math_ops.log(chances + _EPSILON)
    no = (1.0 - y_true) * math_ops.log(1.0 - chances + _EPSILON)
    return reduce_mean(-yes - no, -1)


def categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of classes; y_true has a number for each."""
    y_true = _like(y_true, y_pred)
    logits = y_pred if from_logits else _before("Softmax", y_pred)
    if logits is not None:
        return cross_entropy_ops.softmax_cross_entropy_with_logits_v2(labels=y_true, logits=logits)
    chances = y_pred / reduce_sum(y_pred, -1, keepdims=True)
    return -reduce_sum(y_true * math_ops.log(clip_by_value(chances, _EPSILON, 1.0 - _EPSILON)), -1)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False) -> Tensor:
    """The cross entropy of classes; y_true is the number of the right one."""
    logits = y_pred if from_logits else _before("Softmax", y_pred)
    if logits is None:
        logits = math_ops.log(clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON))
    classes = math_ops.cast(y_true, dtypes.int64)
    return cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)


def MeanSquaredError() -> Loss:  # noqa: N802  (TensorFlow's names)
    """`mean_squared_error`."""
    return mean_squared_error


def MeanAbsoluteError() -> Loss:  # noqa: N802
    """`mean_absolute_error`."""
    return mean_absolute_error


def BinaryCrossentropy(from_logits: bool = False) -> Loss:  # noqa: N802
    """`binary_crossentropy`, of logits if `from_logits`."""
    return _CrossEntropy(binary_crossentropy, from_logits)


def CategoricalCrossentropy(from_logits: bool = False) -> Loss:  # noqa: N802
    """`categorical_crossentropy`, of logits if `from_logits`."""
    return _CrossEntropy(categorical_crossentropy, from_logits)


def SparseCategoricalCrossentropy(from_logits: bool = False) -> Loss:  # noqa: N802
    """`sparse_categorical_crossentropy`, of logits if `from_logits`."""
    return _CrossEntropy(sparse_categorical_crossentropy, from_logits)


def get(identifier: Any) -> Loss:
    """The loss function of a name; a callable unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a function.
    """
    return meant("loss", identifier, _BY_NAME)


def takes_classes(loss: Any) -> bool:
    """Whether y_true is the number of a class, rather than a number for each output."""
    return getattr(loss, "function", loss) is sparse_categorical_crossentropy


class _CrossEntropy:
    """A cross entropy that knows what it is of."""

    def __init__(self, function: Callable[..., Tensor], from_logits: bool) -> None:
        self.function = function
        self._from_logits = from_logits

    def __call__(self, y_true: Any, y_pred: Any) -> Tensor:
        return self.function(y_true, y_pred, self._from_logits)


def _like(y_true: Any, y_pred: Tensor) -> Tensor:
    return math_ops.cast(y_true, y_pred.dtype)


def _before(op_type: str, tensor: Tensor) -> Tensor | None:
    """The input of the op of this type that made the tensor, or None."""
    op = tensor.op
    while op.type in ("Identity", "Reshape") and op.inputs[0].shape.as_list() == tensor.shape.as_list():
        op = op.inputs[0].op
    return array_ops.identity(op.inputs[0]) if op.type == op_type else None


_BY_NAME = {
    "binary_crossentropy": binary_crossentropy,
    "categorical_crossentropy": categorical_crossentropy,
    "hinge": hinge,
    "kld": kullback_leibler_divergence,
    "kullback_leibler_divergence": kullback_leibler_divergence,
    "mae": mean_absolute_error,
    "mean_absolute_error": mean_absolute_error,
    "mean_squared_error": mean_squared_error,
    "mse": mean_squared_error,
    "poisson": poisson,
    "sparse_categorical_crossentropy": sparse_categorical_crossentropy,
    "squared_hinge": squared_hinge,
}
