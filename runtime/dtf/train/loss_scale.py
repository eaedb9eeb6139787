"""Loss scales: factors of a loss that keep its gradients from vanishing in float16, and the optimizer that uses them.

Owns the scales, `MixedPrecisionLossScaleOptimizer`, and whether sessions rewrite graphs to mixed precision. The rewrite
itself is a pass (`run.passes.mixed_precision`).

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/experimental
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtf import logging
from dtf.build import graph_rewrites
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops.control_flow import cond
from dtf.build.ops.math import cast, is_finite, logical_and, logical_not, maximum
from dtf.build.ops.ordering import group, no_op
from dtf.build.ops.reductions import reduce_all
from dtf.build.ops.searching import where
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.build.variables import Variable
from dtf.train.optimizer import Optimizer
from dtf.wire import dtypes

__all__ = [
    "DynamicLossScale", "FixedLossScale", "LossScale", "MixedPrecisionLossScaleOptimizer",
    "disable_mixed_precision_graph_rewrite", "enable_mixed_precision_graph_rewrite",
]  # fmt: skip


def enable_mixed_precision_graph_rewrite(
    opt: Optimizer, loss_scale: Any = "dynamic"
) -> MixedPrecisionLossScaleOptimizer:
    """Lets sessions that are made from now on compute in float16 on GPUs where that is safe, and scales the loss.

    On CPUs nothing is rewritten.

    Args:
      opt: the optimizer.
      loss_scale: a number, "dynamic", or a LossScale.

    Returns:
      an optimizer that multiplies the loss, and divides its gradients.

    Raises:
      ValueError: `opt` is no optimizer, or scales the loss already.
    """
    if not isinstance(opt, Optimizer):
        raise ValueError(f'"opt" must be an instance of a tf.train.Optimizer, but got: {opt}')
    if isinstance(opt, MixedPrecisionLossScaleOptimizer):
        raise ValueError('"opt" must not already be an instance of a MixedPrecisionLossScaleOptimizer.')
    scaled = MixedPrecisionLossScaleOptimizer(opt, loss_scale)
    if graph_rewrites.sessions_were_made():
        logging.warning(
            "You already have existing Sessions that do not use mixed precision. "
            "enable_mixed_precision_graph_rewrite() will not affect these Sessions."
        )
    graph_rewrites.wants_mixed_precision = True
    return scaled


def disable_mixed_precision_graph_rewrite() -> None:
    """Ends `enable_mixed_precision_graph_rewrite` for sessions that are made from now on; optimizers still scale."""
    graph_rewrites.wants_mixed_precision = False


class LossScale:
    """The base of scales: called, it gives the factor; `update` adapts it."""

    def __call__(self) -> Tensor:
        """The factor, a float32 scalar."""
        raise NotImplementedError

    def update(self, grads: Iterable[Any]) -> tuple[Any, Any]:
        """Adapts the factor by the gradients of a step.

        Args:
          grads: gradients; None counts as finite.

        Returns:
          an operation, and whether the gradients should be applied: a bool scalar.
        """
        raise NotImplementedError


class FixedLossScale(LossScale):
    """A factor that stays.

    Args:
      loss_scale_value: at least 1.

    Raises:
      ValueError: the value is not a number, or is less than 1.
    """

    def __init__(self, loss_scale_value: float) -> None:
        if not isinstance(loss_scale_value, (int, float)):
            raise ValueError("loss_scale_value must be a Python int or float.")
        if loss_scale_value < 1:
            raise ValueError("loss_scale_value must be at least 1.")
        self._value = float(loss_scale_value)

    def __call__(self) -> Tensor:
        """The factor."""
        return constant(self._value, dtypes.float32)

    def update(self, grads: Iterable[Any]) -> tuple[Any, Any]:
        """Does nothing; all gradients are applied."""
        return no_op(), constant(True)

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {"loss_scale_value": self._value}


class DynamicLossScale(LossScale):
    """A factor that grows while gradients are finite, and shrinks when they are not.

    Args:
      initial_loss_scale: the first factor.
      increment_period: finite steps in a row after which it is multiplied.
      multiplier: by this; it is divided by this, down to 1, when a gradient is not finite.
    """

    def __init__(
        self, initial_loss_scale: float = 2**15, increment_period: int = 2000, multiplier: float = 2.0
    ) -> None:
        self._initial, self._period, self._multiplier = float(initial_loss_scale), int(increment_period), multiplier
        self._scale = Variable(
            self._initial, trainable=False, name="current_loss_scale", dtype=dtypes.float32, use_resource=True
        )
        self._good = Variable(0, trainable=False, name="good_steps", dtype=dtypes.int64, use_resource=True)

    @property
    def initial_loss_scale(self) -> float:
        """The first factor."""
        return self._initial

    @property
    def increment_period(self) -> int:
        """Finite steps in a row after which the factor grows."""
        return self._period

    @property
    def multiplier(self) -> float:
        """By how much it grows and shrinks."""
        return self._multiplier

    def __call__(self) -> Tensor:
        """The factor now."""
        return convert_to_tensor(self._scale)

    def update(self, grads: Iterable[Any]) -> tuple[Any, Any]:
        """Counts the step, and adapts the factor; gradients are applied if all of them are finite."""
        finite = _all_finite(grads)
        scale, good = self._scale.read_value(), self._good.read_value()
        is_due = logical_and(finite, good + 1 >= self._period)
        larger = scale * self._multiplier
        larger = where(is_finite(larger), larger, scale)
        smaller = maximum(scale / self._multiplier, 1.0)
        changed = where(finite, where(is_due, larger, scale), smaller)
        counted = where(logical_and(finite, logical_not(is_due)), good + 1, good * 0)
        with control_dependencies([changed, counted]):
            return group(self._scale.assign(changed), self._good.assign(counted)), finite

    def get_config(self) -> dict[str, Any]:
        """The arguments."""
        return {
            "initial_loss_scale": self._initial,
            "increment_period": self._period,
            "multiplier": self._multiplier,
        }


class MixedPrecisionLossScaleOptimizer(Optimizer):
    """An optimizer whose loss is multiplied; steps that a LossScale refuses change no variable.

    Args:
      opt: the optimizer.
      loss_scale: a number, "dynamic", or a LossScale.

    Raises:
      ValueError: `opt` is no optimizer, or the scale is none.
    """

    def __init__(self, opt: Optimizer, loss_scale: Any) -> None:
        if not isinstance(opt, Optimizer):
            raise ValueError(f'"opt" must be an instance of Optimizer, but got: {type(opt)}')
        super().__init__(False, "MixedPrecisionLossScaleOptimizer")
        self._optimizer, self._loss_scale = opt, _scale_of(loss_scale)

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> list[tuple[Any, Any]]:
        """The optimizer's, of the multiplied loss, divided."""
        scale = self._loss_scale()
        given: Any
        if callable(loss):

            def given() -> Any:
                value = loss()
                return value * cast(scale, value.dtype.base_dtype)
        else:
            given = loss * cast(scale, loss.dtype.base_dtype)
        pairs = self._optimizer.compute_gradients(given, *args, **kwargs)
        return [(_divided(gradient, scale), variable) for gradient, variable in pairs]

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: str | None = None) -> Any:
        """The optimizer's if the scale says so; then the factor is adapted."""
        pairs = list(grads_and_vars)
        update, should_apply = self._loss_scale.update([gradient for gradient, _ in pairs])
        applied = cond(
            should_apply, lambda: group(self._optimizer.apply_gradients(pairs, global_step)), no_op
        )
        return group(applied, update, name=name)

    def get_slot(self, var: Any, name: str) -> Any:
        """The optimizer's."""
        return self._optimizer.get_slot(var, name)

    def get_slot_names(self) -> list[str]:
        """The optimizer's."""
        return self._optimizer.get_slot_names()

    def variables(self) -> list[Any]:
        """The optimizer's."""
        return self._optimizer.variables()


def _scale_of(loss_scale: Any) -> LossScale:
    if isinstance(loss_scale, LossScale):
        return loss_scale
    if loss_scale == "dynamic":
        return DynamicLossScale()
    if isinstance(loss_scale, (int, float)):
        return FixedLossScale(loss_scale)
    raise ValueError(f'loss_scale must be a number, "dynamic" or a LossScale, but got: {loss_scale!r}')


def _all_finite(grads: Iterable[Any]) -> Tensor:
    values = [each.values if isinstance(each, IndexedSlices) else each for each in grads if each is not None]
    if not values:
        return constant(True)
    return reduce_all(convert_to_tensor([reduce_all(is_finite(convert_to_tensor(each))) for each in values]))


def _divided(gradient: Any, scale: Tensor) -> Any:
    if gradient is None:
        return None
    if isinstance(gradient, IndexedSlices):
        values = gradient.values / cast(scale, gradient.values.dtype)
        return IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return gradient / cast(scale, gradient.dtype.base_dtype)
