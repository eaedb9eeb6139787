"""tf.contrib.estimator: heads, early stopping, added metrics and hooks of Estimators under their first names."""

from __future__ import annotations

from typing import Any

import dtf as tf
from dtf import late
from dtf.estimator import model_heads

_PLACES = (tf.estimator, tf.estimator.experimental)
_HEADS = frozenset(model_heads.__all__)


def clip_gradients_by_norm(optimizer: Any, clip_norm: float) -> Any:
    """`optimizer` whose gradients are scaled down together when their global norm is above `clip_norm`."""

    def clip(pairs: list[Any]) -> list[Any]:
        clipped, _ = tf.clip_by_global_norm([gradient for gradient, _ in pairs], clip_norm)
        return [(gradient, variable) for gradient, (_, variable) in zip(clipped, pairs, strict=True)]

    return TransformGradients(optimizer, clip, f"ClipByNorm{optimizer.get_name()}")


class TransformGradients(tf.train.Optimizer):
    """An optimizer that applies a function of all pairs (gradient or None, variable)."""

    def __init__(self, optimizer: Any, transform: Any, name: str = "TransformGradients") -> None:
        super().__init__(False, name)
        self._optimizer, self._transform = optimizer, transform

    def compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        """See `tf.train.Optimizer.compute_gradients`."""
        return self._optimizer.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """Applies the function's gradients."""
        return self._optimizer.apply_gradients(self._transform(list(grads_and_vars)), global_step, name)

    def get_slot(self, *args: Any, **kwargs: Any) -> Any:
        """See `tf.train.Optimizer.get_slot`."""
        return self._optimizer.get_slot(*args, **kwargs)

    def variables(self) -> Any:
        """See `tf.train.Optimizer.variables`."""
        return self._optimizer.variables()


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [each for each in __dir__() if late.is_public(each, __getattr__(each))]
    if name in _HEADS:
        return getattr(model_heads, name)
    for place in _PLACES:
        if not name.startswith("_") and hasattr(place, name):
            return getattr(place, name)
    raise AttributeError(f"module 'dtf.contrib.estimator' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_HEADS | {name for place in _PLACES for name in dir(place) if not name.startswith("_")})
