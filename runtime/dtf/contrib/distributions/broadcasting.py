"""The base of distributions whose parameters broadcast: their tensors, shapes, and uniform numbers for samples."""

from __future__ import annotations

import functools
from typing import Any

import dtf as tf
from dtf.distributions import FULLY_REPARAMETERIZED, Distribution
from dtf.wire import dtypes

__all__ = ["Broadcast", "logits_and_probs"]


class Broadcast(Distribution):
    """A distribution of scalars whose parameters broadcast; each is an attribute by its name."""

    _tensors: list[Any]

    def _start(self, given: dict[str, Any], *names: str, kind: Any = FULLY_REPARAMETERIZED) -> None:
        """The constructor, for a subclass whose arguments by name are `given`."""
        first = next((given[name].dtype for name in names if hasattr(given[name], "dtype")), dtypes.float32)
        dtype = dtypes.as_dtype(first).base_dtype
        self._tensors = []
        with tf.name_scope(given["name"]) as self._opened:
            for name in names:
                tensor = tf.identity(tf.convert_to_tensor(given[name], dtype), name=name)
                self._tensors.append(tensor)
                setattr(self, name, tensor)
        self._begin(dtype, kind, given)

    def _batch_shape(self) -> Any:
        return functools.reduce(tf.broadcast_static_shape, [each.shape for each in self._tensors])

    def _batch_shape_tensor(self) -> Any:
        return functools.reduce(tf.broadcast_dynamic_shape, [tf.shape(each) for each in self._tensors])

    def _spread(self, value: Any) -> Any:
        """The value in the batch shape."""
        return value + tf.zeros(self._batch_shape_tensor(), self._dtype)

    def _nan_unless(self, condition: Any, value: Any) -> Any:
        """The value, and NaN where it is undefined."""
        value = self._spread(value)
        condition = tf.logical_and(condition, tf.ones_like(value, dtypes.bool))
        return tf.where(condition, value, tf.fill(tf.shape(value), tf.constant(float("nan"), self._dtype)))

    def _uniform(self, n: Any, seed: int | None) -> Any:
        """Numbers in (0, 1) [n, *batch]."""
        low = self._dtype.as_numpy_dtype(1e-37 if self._dtype.size < 8 else 1e-300)
        return tf.random_uniform(tf.concat([[n], self._batch_shape_tensor()], 0), low, 1.0, self._dtype, seed)


def logits_and_probs(logits: Any, probs: Any, classes: bool = False) -> tuple[Any, Any]:
    """Both forms of chances, of the one that is given.

    Raises:
      ValueError: none or both are given.
    """
    if (logits is None) == (probs is None):
        raise ValueError("Must pass probs or logits, but not both.")
    if logits is not None:
        logits = tf.convert_to_tensor(logits)
        return logits, tf.nn.softmax(logits) if classes else tf.sigmoid(logits)
    probs = tf.convert_to_tensor(probs)
    return tf.log(probs) if classes else tf.log(probs) - tf.log1p(-probs), probs
