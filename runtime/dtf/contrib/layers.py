"""tf.contrib.layers: layers, initializers and regularizers under their first names. Owns the regularizers."""

# ruff: noqa: F403

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.graph import Tensor
from dtf.build.initializers import _TRUNCATED_DEVIATION
from dtf.build.initializers import variance_scaling_initializer as _variance_scaling
from dtf.contrib.layer_functions import *
from dtf.contrib.layer_training import *
from dtf.contrib.more_layers import *
from dtf.contrib.sequence_layers import *
from dtf.wire import dtypes

_TRUNCATED_VARIANCE = 1.3


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = dtypes.float32) -> _variance_scaling:
    """Glorot's initializer."""
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
    factor: float = 2.0,
    mode: str = "FAN_IN",
    uniform: bool = False,
    seed: int | None = None,
    dtype: Any = dtypes.float32,
) -> _variance_scaling:
    """`tf.variance_scaling_initializer` with its first arguments; He's by default.

    A truncated normal distribution has 1.3 times the variance in place of the exact factor.

    Raises:
      TypeError: `mode` or `dtype` is not one that an initializer can have.
    """
    if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
        raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")
    if not dtypes.as_dtype(dtype).is_floating:
        raise TypeError("Cannot create initializer for non-floating point type.")
    if uniform:
        return _variance_scaling(factor, mode.lower(), "uniform", seed, dtype)
    return _variance_scaling(
        factor * _TRUNCATED_VARIANCE * _TRUNCATED_DEVIATION**2, mode.lower(), "truncated_normal", seed, dtype
    )


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A regularizer that gives `scale` times half the sum of squares; None for a scale of 0.

    Raises:
      ValueError: `scale` is negative.
    """
    return _regularizer(scale, scope, "l2_regularizer", lambda weights: apply_op("L2Loss", None, t=weights))


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Tensor | None]:
    """A regularizer that gives `scale` times the sum of absolute values; None for a scale of 0.

    Raises:
      ValueError: `scale` is negative.
    """
    from dtf.build.ops import math, reductions

    return _regularizer(scale, scope, "l1_regularizer", lambda weights: reductions.reduce_sum(math.abs(weights)))


def l1_l2_regularizer(
    scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None
) -> Callable[[Any], Tensor | None]:
    """A regularizer that adds up both; a part with scale 0 is left out.

    Raises:
      ValueError: a scale is negative.
    """
    parts = [l1_regularizer(scale_l1), l2_regularizer(scale_l2)]

    def regularize(weights: Any) -> Tensor | None:
        with name_scope(scope, "l1_l2_regularizer", [weights]) as name:
            losses = [loss for loss in (part(weights) for part in parts) if loss is not None]
            return apply_op("AddN", name, inputs=losses) if losses else None

    return regularize


def _regularizer(
    scale: float, scope: str | None, default_scope: str, penalty: Callable[[Any], Tensor]
) -> Callable[[Any], Tensor | None]:
    if scale < 0.0:
        raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale}")

    def regularize(weights: Any) -> Tensor | None:
        if scale == 0.0:
            return None
        with name_scope(scope, default_scope, [weights]) as name:
            factor = convert_to_tensor(scale, weights.dtype.base_dtype, name="scale")
            return apply_op("Mul", name, x=factor, y=penalty(weights))

    return regularize
