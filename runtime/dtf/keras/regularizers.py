"""tf.keras.regularizers: losses of weights.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/regularizers
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops.reductions import reduce_sum
from dtf.keras import configs
from dtf.keras.names import meant

__all__ = ["L1L2", "Regularizer", "deserialize", "get", "l1", "l1_l2", "l2", "serialize"]


class Regularizer:
    """The base of regularizers: a function from a variable to a loss."""

    def __call__(self, x: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """A regularizer from the result of `get_config`."""
        return cls(**config)


class L1L2(Regularizer):
    """l1 times the sum of sizes and l2 times the sum of squares."""

    def __init__(self, l1: float = 0.0, l2: float = 0.0) -> None:
        self.l1, self.l2 = float(l1), float(l2)

    def __call__(self, x: Any) -> Any:
        parts = []
        if self.l1:
            parts.append(self.l1 * reduce_sum(math_ops.abs(x)))
        if self.l2:
            parts.append(self.l2 * reduce_sum(math_ops.square(x)))
        return sum(parts[1:], parts[0]) if parts else None

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return {"l1": self.l1, "l2": self.l2}


def l1_l2(l1: float = 0.01, l2: float = 0.01) -> L1L2:
    """l1 times the sum of sizes and l2 times the sum of squares."""
    return L1L2(l1, l2)


def l1(l: float = 0.01) -> L1L2:  # noqa: E741  (TensorFlow's name)
    """l times the sum of sizes."""
    return L1L2(l, 0.0)


def l2(l: float = 0.01) -> L1L2:  # noqa: E741
    """l times the sum of squares."""
    return L1L2(0.0, l)


_BY_NAME = {"L1L2": L1L2, "l1": l1, "l2": l2, "l1_l2": l1_l2}


def get(identifier: Any) -> Any:
    """The regularizer of a name or a config; a callable unchanged; None for None.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a regularizer.
    """
    identifier = configs.class_of("regularizer", _BY_NAME, identifier)
    if identifier is None:
        return None
    found = meant("regularizer", identifier, _BY_NAME)
    return found() if isinstance(identifier, str) else found


def serialize(regularizer: Any) -> Any:
    """The config of a regularizer."""
    return configs.serialize_keras_object(regularizer)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The regularizer of a config."""
    return configs.deserialize_keras_object(config, _BY_NAME, custom_objects, "regularizer")
