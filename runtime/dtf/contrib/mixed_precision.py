"""tf.contrib.mixed_precision: a loss multiplied before its gradients, which are divided afterwards.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/mixed_precision
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = ["ExponentialUpdateLossScaleManager", "FixedLossScaleManager", "LossScaleManager", "LossScaleOptimizer"]


class LossScaleManager:
    """The base of managers: `get_loss_scale`, and `update_loss_scale` by whether all gradients were finite."""

    def get_loss_scale(self) -> Any:
        """The factor, a scalar tensor."""
        raise NotImplementedError

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """An operation that adapts the factor."""
        raise NotImplementedError


class FixedLossScaleManager(LossScaleManager):
    """A factor that stays.

    Raises:
      ValueError: it is less than 1.
    """

    def __init__(self, loss_scale: float) -> None:
        if loss_scale < 1:
            raise ValueError("loss scale must be at least 1.")
        self._loss_scale = tf.convert_to_tensor(loss_scale, dtype=tf.float32)

    def get_loss_scale(self) -> Any:
        """The factor."""
        return self._loss_scale

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Does nothing."""
        return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
    """A factor that grows after a number of finite steps, and shrinks after a number of others.

    Args:
      init_loss_scale: the first factor.
      incr_every_n_steps: finite steps in a row after which it is multiplied by `incr_ratio`.
      decr_every_n_nan_or_inf: other steps after which it is multiplied by `decr_ratio`, down to 1.
    """

    def __init__(
        self, init_loss_scale: float, incr_every_n_steps: int, decr_every_n_nan_or_inf: int = 2,
        incr_ratio: float = 2, decr_ratio: float = 0.8,
    ) -> None:  # fmt: skip
        self._every, self._every_bad = incr_every_n_steps, decr_every_n_nan_or_inf
        self._grows, self._shrinks = incr_ratio, decr_ratio
        first = max(1.0, float(init_loss_scale))
        self._scale = tf.Variable(first, trainable=False, name="loss_scale", dtype=tf.float32)
        self._good = tf.Variable(0, trainable=False, name="good_steps")
        self._bad = tf.Variable(0, trainable=False, name="bad_steps")

    def get_loss_scale(self) -> Any:
        """The factor."""
        return self._scale.read_value()

    def update_loss_scale(self, finite_grads: Any) -> Any:
        """Counts the step, and adapts the factor."""
        good, bad, scale = (each.read_value() for each in (self._good, self._bad, self._scale))
        grows = tf.logical_and(finite_grads, good + 1 >= self._every)
        shrinks = tf.logical_and(tf.logical_not(finite_grads), bad + 1 >= self._every_bad)
        larger = scale * self._grows
        larger = tf.where(tf.is_finite(larger), larger, scale)
        changed = tf.where(grows, larger, tf.where(shrinks, tf.maximum(1.0, scale * self._shrinks), scale))
        ends = tf.logical_or(grows, shrinks)
        zero = tf.zeros_like(good)
        with tf.control_dependencies([changed, ends]):
            return tf.group(
                self._scale.assign(changed),
                self._good.assign(tf.where(tf.logical_and(finite_grads, tf.logical_not(ends)), good + 1, zero)),
                self._bad.assign(tf.where(ends, zero, tf.where(finite_grads, bad, bad + 1))),
            )


class LossScaleOptimizer(tf.train.Optimizer):
    """An optimizer whose loss is multiplied; steps with a gradient that is not finite change no variable.

    Args:
      opt: the optimizer.
      loss_scale_manager: gives the factor.
    """

    def __init__(self, opt: Any, loss_scale_manager: LossScaleManager) -> None:
        super().__init__(False, "LossScaleOptimizer")
        self._opt, self._loss_scale_manager = opt, loss_scale_manager

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The optimizer's, of the multiplied loss, divided."""
        scale = self._loss_scale_manager.get_loss_scale()
        given: Any = loss
        if callable(loss):

            def given() -> Any:
                value = loss()
                return value * tf.cast(scale, value.dtype.base_dtype)
        else:
            given = loss * tf.cast(scale, loss.dtype.base_dtype)
        pairs = self._opt.compute_gradients(given, *args, **kwargs)
        return [(_divided(gradient, scale), variable) for gradient, variable in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's if all gradients are finite; then the factor is adapted."""
        pairs = list(grads_and_vars)
        values = [gradient for gradient, _ in pairs if gradient is not None]
        finite = tf.reduce_all([tf.reduce_all(tf.is_finite(tf.convert_to_tensor(_dense(each)))) for each in values])
        apply: Callable[[], Any] = lambda: self._opt.apply_gradients(pairs, global_step, name)  # noqa: E731
        update = tf.cond(finite, apply, tf.no_op)
        return tf.group(update, self._loss_scale_manager.update_loss_scale(finite))


def _dense(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _divided(gradient: Any, scale: Any) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, tf.IndexedSlices):
        values = gradient.values / tf.cast(scale, gradient.values.dtype)
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient / tf.cast(scale, gradient.dtype.base_dtype)
