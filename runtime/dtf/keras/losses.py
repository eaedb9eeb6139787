"""tf.keras.losses: the distance between predictions and labels, one number for each example.

A loss is a function of (y_true, y_pred). Probabilities that come directly from a softmax or sigmoid are converted back
to logits, which keeps precision. Others are clipped to stay 1e-7 away from 0 and 1.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/losses
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array as array_ops
from dtf.build.ops import cross_entropy as cross_entropy_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.activations import softplus
from dtf.build.ops.clip import clip_by_value
from dtf.build.ops.normalization import l2_normalize
from dtf.build.ops.reductions import reduce_max, reduce_mean, reduce_sum
from dtf.build.tensor import Tensor
from dtf.keras import configs
from dtf.keras.names import meant
from dtf.wire import dtypes

__all__ = [
    "BinaryCrossentropy", "CategoricalCrossentropy", "CategoricalHinge", "CosineSimilarity", "Hinge", "Huber", "KLD",
    "KLDivergence", "LogCosh", "Loss", "MAE", "MAPE", "MSE", "MSLE", "MeanAbsoluteError",
    "MeanAbsolutePercentageError", "MeanSquaredError", "MeanSquaredLogarithmicError", "Poisson",
    "SparseCategoricalCrossentropy", "SquaredHinge", "binary_crossentropy", "categorical_crossentropy",
    "categorical_hinge", "cosine", "cosine_proximity", "cosine_similarity", "deserialize", "get", "hinge", "huber_loss",
    "kld", "kullback_leibler_divergence", "logcosh", "mae", "mape", "mean_absolute_error",
    "mean_absolute_percentage_error", "mean_squared_error", "mean_squared_logarithmic_error", "mse", "msle", "poisson",
    "serialize", "sparse_categorical_crossentropy", "squared_hinge",
]  # fmt: skip

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


def mean_absolute_percentage_error(y_true: Any, y_pred: Any) -> Tensor:
    """100 times the mean of the differences over the sizes of the labels."""
    y_true = _like(y_true, y_pred)
    return 100.0 * reduce_mean(math_ops.abs((y_true - y_pred) / math_ops.maximum(math_ops.abs(y_true), _EPSILON)), -1)


def mean_squared_logarithmic_error(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of the squares of the differences of log(1 + y)."""
    one = math_ops.log(math_ops.maximum(y_pred, _EPSILON) + 1.0)
    other = math_ops.log(math_ops.maximum(_like(y_true, y_pred), _EPSILON) + 1.0)
    return reduce_mean(math_ops.squared_difference(one, other), -1)


def logcosh(y_true: Any, y_pred: Any) -> Tensor:
    """The mean of log(cosh(difference))."""
    difference = y_pred - _like(y_true, y_pred)
    return reduce_mean(difference + softplus(-2.0 * difference) - math_ops.log(2.0), -1)


def categorical_hinge(y_true: Any, y_pred: Any) -> Tensor:
    """max(the greatest wrong prediction - the right one + 1, 0)."""
    y_true = _like(y_true, y_pred)
    right, wrong = reduce_sum(y_true * y_pred, -1), reduce_max((1.0 - y_true) * y_pred, -1)
    return math_ops.maximum(0.0, wrong - right + 1.0)


def cosine_similarity(y_true: Any, y_pred: Any, axis: int = -1) -> Tensor:
    """Minus the cosine of the angle between labels and predictions."""
    y_true = l2_normalize(_like(y_true, y_pred), axis)
    return -reduce_sum(y_true * l2_normalize(y_pred, axis), axis)


def huber_loss(y_true: Any, y_pred: Any, delta: float = 1.0) -> Tensor:
    """The mean of squares up to `delta`, of sizes above it."""
    difference = math_ops.abs(y_pred - _like(y_true, y_pred))
    small = math_ops.minimum(difference, delta)
    return reduce_mean(0.5 * math_ops.square(small) + delta * (difference - small), -1)


def binary_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0
) -> Tensor:
    """The mean cross entropy of yes or no, over the last dimension."""
    y_true = _like(y_true, y_pred)
    if label_smoothing:
        y_true = y_true * (1.0 - label_smoothing) + 0.5 * label_smoothing
    logits = y_pred if from_logits else _before("Sigmoid", y_pred)
    if logits is not None:
        return reduce_mean(cross_entropy_ops.sigmoid_cross_entropy_with_logits(labels=y_true, logits=logits), -1)
    chances = clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON)
    yes = y_true * math_ops.log(chances + _EPSILON)
    no = (1.0 - y_true) * math_ops.log(1.0 - chances + _EPSILON)
    return reduce_mean(-yes - no, -1)


def categorical_crossentropy(
    y_true: Any, y_pred: Any, from_logits: bool = False, label_smoothing: float = 0, axis: int = -1
) -> Tensor:
    """The cross entropy of classes; y_true has a number for each, along `axis`."""
    y_true = _like(y_true, y_pred)
    if label_smoothing:
        count = math_ops.cast(array_ops.shape(y_pred)[-1], y_pred.dtype)
        y_true = y_true * (1.0 - label_smoothing) + label_smoothing / count
    logits = y_pred if from_logits else _before("Softmax", y_pred)
    if logits is not None:
        return cross_entropy_ops.softmax_cross_entropy_with_logits_v2(labels=y_true, logits=logits, axis=axis)
    chances = y_pred / reduce_sum(y_pred, axis, keepdims=True)
    return -reduce_sum(y_true * math_ops.log(clip_by_value(chances, _EPSILON, 1.0 - _EPSILON)), axis)


def sparse_categorical_crossentropy(y_true: Any, y_pred: Any, from_logits: bool = False, axis: int = -1) -> Tensor:
    """The cross entropy of classes; y_true is the number of the right one, [...] or [..., 1]."""
    if axis not in (-1, y_pred.shape.ndims and y_pred.shape.ndims - 1):
        raise ValueError(f"sparse_categorical_crossentropy is supported for the last axis only, not for axis={axis}")
    logits = y_pred if from_logits else _before("Softmax", y_pred)
    if logits is None:
        logits = math_ops.log(clip_by_value(y_pred, _EPSILON, 1.0 - _EPSILON))
    classes = math_ops.cast(y_true, dtypes.int64)
    if classes.shape.ndims is not None and classes.shape.ndims == logits.shape.ndims:
        classes = array_ops.squeeze(classes, [-1])
    return cross_entropy_ops.sparse_softmax_cross_entropy_with_logits(labels=classes, logits=logits)


class Loss:
    """The base of losses as objects: subclasses write `call`, one number for each example.

    Args:
      reduction: "sum_over_batch_size" or "auto", "sum", or "none".
      name: of the loss.
    """

    def __init__(self, reduction: str = "auto", name: str | None = None) -> None:
        self.reduction, self.name = reduction, name

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        values = self.call(convert_to_tensor(y_true), convert_to_tensor(y_pred))
        if sample_weight is not None:
            values = values * _like(sample_weight, values)
        if self.reduction == "none":
            return values
        return reduce_sum(values) if self.reduction == "sum" else reduce_mean(values)

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """One number for each example."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {"reduction": self.reduction, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A loss from the result of `get_config`."""
        return cls(**config)


class LossFunctionWrapper(Loss):
    """A function as a loss object."""

    def __init__(
        self, fn: Callable[..., Tensor], reduction: str = "auto", name: str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(reduction, name)
        self.function = self.fn = fn
        self._arguments = kwargs

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """One number for each example."""
        return self.function(y_true, y_pred, **self._arguments)

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {**super().get_config(), **self._arguments}


def _loss_class(name: str, function: Callable[..., Tensor], *arguments: str) -> Any:
    """The class of a loss, whose first arguments are those of the function."""

    def start(self: Any, *given: Any, reduction: str = "auto", name: str | None = None, **kwargs: Any) -> None:
        positional = dict(zip([*arguments, "reduction", "name"], given, strict=False))
        reduction, name = positional.pop("reduction", reduction), positional.pop("name", name)
        known = {**positional, **kwargs}
        unknown = sorted(set(known) - set(arguments))
        if unknown:
            raise TypeError(f"{type(self).__name__} does not take {unknown}; it takes {list(arguments)}")
        LossFunctionWrapper.__init__(self, function, reduction, name or function.__name__, **known)

    made = type(name, (LossFunctionWrapper,), {"__init__": start, "__doc__": f"`{function.__name__}`."})
    made.__module__ = __name__
    return made


MeanSquaredError = _loss_class("MeanSquaredError", mean_squared_error)
MeanAbsoluteError = _loss_class("MeanAbsoluteError", mean_absolute_error)
MeanAbsolutePercentageError = _loss_class("MeanAbsolutePercentageError", mean_absolute_percentage_error)
MeanSquaredLogarithmicError = _loss_class("MeanSquaredLogarithmicError", mean_squared_logarithmic_error)
BinaryCrossentropy = _loss_class("BinaryCrossentropy", binary_crossentropy, "from_logits", "label_smoothing")
CategoricalCrossentropy = _loss_class(
    "CategoricalCrossentropy", categorical_crossentropy, "from_logits", "label_smoothing")  # fmt: skip
SparseCategoricalCrossentropy = _loss_class(
    "SparseCategoricalCrossentropy", sparse_categorical_crossentropy, "from_logits")  # fmt: skip
Hinge, SquaredHinge = _loss_class("Hinge", hinge), _loss_class("SquaredHinge", squared_hinge)
CategoricalHinge = _loss_class("CategoricalHinge", categorical_hinge)
Poisson, LogCosh = _loss_class("Poisson", poisson), _loss_class("LogCosh", logcosh)
KLDivergence = _loss_class("KLDivergence", kullback_leibler_divergence)
CosineSimilarity = _loss_class("CosineSimilarity", cosine_similarity, "axis")
Huber = _loss_class("Huber", huber_loss, "delta")
MSE = mse = mean_squared_error
MAE = mae = mean_absolute_error
MAPE = mape = mean_absolute_percentage_error
MSLE = msle = mean_squared_logarithmic_error
KLD = kld = kullback_leibler_divergence
cosine = cosine_proximity = cosine_similarity


def per_example(loss: Any) -> Callable[..., Tensor]:
    """A loss as a function that gives a number for each example, objects of `Loss` too."""
    return loss.call if isinstance(loss, Loss) else loss


def get(identifier: Any) -> Any:
    """The loss function of a name; a callable unchanged.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a function.
    """
    identifier = configs.class_of("loss", {**_BY_NAME, **_CLASSES}, identifier)
    return meant("loss", identifier, _BY_NAME)


def serialize(loss: Any) -> Any:
    """The name of a loss, or its config."""
    return configs.serialize_keras_object(loss)


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The loss of a name or a config."""
    return configs.deserialize_keras_object(name, {**_BY_NAME, **_CLASSES}, custom_objects, "loss")


def takes_classes(loss: Any) -> bool:
    """Whether y_true is the number of a class, rather than a number for each output."""
    return getattr(loss, "function", loss) is sparse_categorical_crossentropy


def _like(y_true: Any, y_pred: Tensor) -> Tensor:
    return math_ops.cast(y_true, y_pred.dtype)


def _before(op_type: str, tensor: Tensor) -> Tensor | None:
    """The input of the op of this type that made the tensor, or None."""
    op = tensor.op
    while op.type in ("Identity", "Reshape") and op.inputs[0].shape.as_list() == tensor.shape.as_list():
        op = op.inputs[0].op
    return array_ops.identity(op.inputs[0]) if op.type == op_type else None


_BY_NAME: dict[str, Any] = {
    "MAE": mean_absolute_error, "MAPE": mean_absolute_percentage_error, "MSE": mean_squared_error,
    "MSLE": mean_squared_logarithmic_error, "categorical_hinge": categorical_hinge, "cosine": cosine_similarity,
    "cosine_proximity": cosine_similarity, "cosine_similarity": cosine_similarity, "huber_loss": huber_loss,
    "logcosh": logcosh, "mape": mean_absolute_percentage_error, "mean_absolute_percentage_error":
    mean_absolute_percentage_error, "mean_squared_logarithmic_error": mean_squared_logarithmic_error,
    "msle": mean_squared_logarithmic_error,
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

_CLASSES = {
    each.__name__: each
    for each in (
        BinaryCrossentropy, CategoricalCrossentropy, CategoricalHinge, CosineSimilarity, Hinge, Huber, KLDivergence,
        LogCosh, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredError, MeanSquaredLogarithmicError, Poisson,
        SparseCategoricalCrossentropy, SquaredHinge,
    )
}  # fmt: skip
