"""tf.keras.constraints: functions that move a variable back into its range after each update.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/constraints
"""

from __future__ import annotations

from typing import Any

from dtf.build.ops import math as math_ops
from dtf.build.ops.clip import clip_by_value
from dtf.build.ops.reductions import reduce_sum
from dtf.keras import configs
from dtf.keras.names import meant

__all__ = [
    "Constraint", "MaxNorm", "MinMaxNorm", "NonNeg", "UnitNorm", "deserialize", "get", "max_norm", "min_max_norm",
    "non_neg", "serialize", "unit_norm",
]  # fmt: skip

_EPSILON = 1e-7


class Constraint:
    """The base of constraints: a function of the variable's new value."""

    def __call__(self, w: Any) -> Any:
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments that make it."""
        return dict(vars(self))


class MaxNorm(Constraint):
    """Norms along `axis` are at most `max_value`."""

    def __init__(self, max_value: float = 2, axis: Any = 0) -> None:
        self.max_value, self.axis = max_value, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        return w * (clip_by_value(norms, 0.0, float(self.max_value)) / (norms + _EPSILON))


class NonNeg(Constraint):
    """No value is negative."""

    def __call__(self, w: Any) -> Any:
        return w * math_ops.cast(math_ops.greater_equal(w, 0.0), w.dtype.base_dtype)


class UnitNorm(Constraint):
    """Norms along `axis` are 1."""

    def __init__(self, axis: Any = 0) -> None:
        self.axis = axis

    def __call__(self, w: Any) -> Any:
        return w / (_norms(w, self.axis) + _EPSILON)


class MinMaxNorm(Constraint):
    """Norms along `axis` move, by the part `rate`, into a range."""

    def __init__(self, min_value: float = 0.0, max_value: float = 1.0, rate: float = 1.0, axis: Any = 0) -> None:
        self.min_value, self.max_value, self.rate, self.axis = min_value, max_value, rate, axis

    def __call__(self, w: Any) -> Any:
        norms = _norms(w, self.axis)
        wanted = self.rate * clip_by_value(norms, self.min_value, self.max_value) + (1 - self.rate) * norms
        return w * (wanted / (norms + _EPSILON))


max_norm, non_neg, unit_norm, min_max_norm = MaxNorm, NonNeg, UnitNorm, MinMaxNorm
_BY_NAME = {
    "MaxNorm": MaxNorm, "NonNeg": NonNeg, "UnitNorm": UnitNorm, "MinMaxNorm": MinMaxNorm, "max_norm": MaxNorm,
    "non_neg": NonNeg, "unit_norm": UnitNorm, "min_max_norm": MinMaxNorm,
}  # fmt: skip


def get(identifier: Any) -> Any:
    """The constraint of a name or a config; a callable unchanged; None for None.

    Raises:
      ValueError, TypeError: the name is unknown, or the value is not a constraint.
    """
    identifier = configs.class_of("constraint", _BY_NAME, identifier)
    if identifier is None:
        return None
    found = meant("constraint", identifier, _BY_NAME)
    return found() if isinstance(found, type) else found


def serialize(constraint: Any) -> Any:
    """The config of a constraint."""
    return configs.serialize_keras_object(constraint)


def deserialize(config: Any, custom_objects: Any = None) -> Any:
    """The constraint of a config."""
    return configs.deserialize_keras_object(config, _BY_NAME, custom_objects, "constraint")


def _norms(w: Any, axis: Any) -> Any:
    return math_ops.sqrt(reduce_sum(math_ops.square(w), axis, keepdims=True))
