"""tf.keras.activations: activation functions, by name.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/activations
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.activations import selu, softmax, softplus, softsign
from dtf.build.ops.clip import clip_by_value
from dtf.build.ops.math import exp, maximum, minimum, sigmoid, tanh
from dtf.build.tensor import Tensor
from dtf.keras import configs
from dtf.keras.names import meant

__all__ = [
    "deserialize", "elu", "exponential", "get", "hard_sigmoid", "linear", "relu", "selu", "serialize", "sigmoid",
    "softmax", "softplus",
    "softsign", "swish", "tanh",
]  # fmt: skip

exponential = exp


def relu(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0) -> Tensor:
    """x above the threshold, at most `max_value`; alpha * (x - threshold) below it."""
    return relu_of(x, alpha, max_value, threshold)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """x above 0, alpha * (exp(x) - 1) below."""
    return elu_of(x, alpha)


def relu_of(x: Any, alpha: float = 0.0, max_value: float | None = None, threshold: float = 0) -> Tensor:
    """`relu`; without arguments one operation."""
    if alpha == 0 and threshold == 0:
        rectified = activations_ops.relu(x)
        return rectified if max_value is None else minimum(rectified, float(max_value))
    above = x * math_ops.cast(x > threshold, x.dtype) if threshold else activations_ops.relu(x)
    above = above if max_value is None else clip_by_value(above, 0.0, float(max_value))
    return above - alpha * activations_ops.relu(threshold - x)


def elu_of(x: Any, alpha: float = 1.0) -> Tensor:
    """`elu`; one operation for alpha=1."""
    if alpha == 1:
        return activations_ops.elu(x)
    return maximum(x, 0.0) + alpha * activations_ops.elu(minimum(x, 0.0))


def linear(x: Tensor) -> Tensor:
    """Returns x unchanged."""
    return x


def hard_sigmoid(x: Tensor) -> Tensor:
    """0.2 x + 0.5, cut off at 0 and 1."""
    return clip_by_value(0.2 * x + 0.5, 0.0, 1.0)


def swish(x: Tensor) -> Tensor:
    """x times its sigmoid."""
    return x * math_ops.sigmoid(x)


def get(identifier: Any) -> Callable[[Tensor], Tensor] | None:
    """The function of a name; a callable unchanged; None for None.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a function.
    """
    identifier = configs.class_of("activation", _BY_NAME, identifier)
    return None if identifier is None else meant("activation", identifier, _BY_NAME)


def serialize(activation: Any) -> Any:
    """The name of a function."""
    return configs.serialize_keras_object(activation)


def deserialize(name: Any, custom_objects: Any = None) -> Any:
    """The function of a name."""
    return configs.deserialize_keras_object(name, _BY_NAME, custom_objects, "activation")


_BY_NAME = {
    "elu": elu,
    "exponential": exponential,
    "hard_sigmoid": hard_sigmoid,
    "linear": linear,
    "relu": relu,
    "selu": activations_ops.selu,
    "sigmoid": math_ops.sigmoid,
    "softmax": activations_ops.softmax,
    "softplus": activations_ops.softplus,
    "softsign": activations_ops.softsign,
    "swish": swish,
    "tanh": math_ops.tanh,
}
