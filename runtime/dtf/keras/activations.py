"""tf.keras.activations: activation functions, by name.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/activations
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.ops import activations as activations_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.activations import elu, relu, selu, softmax, softplus, softsign
from dtf.build.ops.clip import clip_by_value
from dtf.build.ops.math import exp, sigmoid, tanh
from dtf.build.tensor import Tensor
from dtf.keras.names import meant

__all__ = [
    "elu", "exponential", "get", "hard_sigmoid", "linear", "relu", "selu", "sigmoid", "softmax", "softplus",
    "softsign", "swish", "tanh",
]  # fmt: skip

exponential = exp


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
    return None if identifier is None else meant("activation", identifier, _BY_NAME)


_BY_NAME = {
    "elu": activations_ops.elu,
    "exponential": exponential,
    "hard_sigmoid": hard_sigmoid,
    "linear": linear,
    "relu": activations_ops.relu,
    "selu": activations_ops.selu,
    "sigmoid": math_ops.sigmoid,
    "softmax": activations_ops.softmax,
    "softplus": activations_ops.softplus,
    "softsign": activations_ops.softsign,
    "swish": swish,
    "tanh": math_ops.tanh,
}
