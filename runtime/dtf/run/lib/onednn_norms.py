"""oneDNN's batch normalisation, forward and back, for float32 with the channels last.

Owns which primitives make it; how they are called is in `onednn_library`.

    forward = batch_norm((32, 16, 16, 8), 1e-3, is_training=True, threads=1)
    outputs, mean, variance = forward(images, scale, offset)       # None: oneDNN has no fast code for this
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_float, c_uint

import numpy as np

from dtf.run.lib.onednn_library import (
    BACKWARD,
    IMAGES,
    IMAGES_GRADIENT,
    INFERENCE,
    MEAN,
    OUTPUTS,
    OUTPUTS_GRADIENT,
    SCALE,
    SCALE_GRADIENT,
    SHIFT,
    SHIFT_GRADIENT,
    TRAINING,
    VARIANCE,
    Library,
    Object,
    Primitive,
    library,
)
from dtf.run.value_types import Array

__all__ = ["Normalize", "NormalizeBack", "batch_norm", "batch_norm_gradient"]

Normalize = Callable[..., tuple[Array, Array, Array]]
NormalizeBack = Callable[[Array, Array, Array, Array, Array], tuple[Array, Array, Array]]

_GLOBAL_STATISTICS, _USE_SCALE, _USE_SHIFT = 1, 2, 4


def batch_norm(shape: tuple[int, ...], epsilon: float, is_training: bool, threads: int) -> Normalize | None:
    """A function f(x, scale, shift[, mean, variance]) -> (outputs, mean, variance), or None without fast code for it.

    Args:
      shape: of x, [batch, rows, columns, channels], contiguous; the vectors have one element a channel.
      epsilon: added to the variance.
      is_training: mean and variance (biased) are those of x; else they are given.
      threads: how many the function uses.
    """
    loaded = library()
    if loaded is None:
        return None
    loaded.use_threads(threads)
    images, channels = _orders(loaded, shape)
    plan = _forward(loaded, images, epsilon, is_training)
    if plan is None or not loaded.is_fast(plan):
        return None
    vectors = dict.fromkeys((SCALE, SHIFT, MEAN, VARIANCE), channels)
    run = Primitive(loaded, plan, {IMAGES: images, OUTPUTS: images, **vectors})

    def normalize(x: Array, scale: Array, shift: Array, *statistics: Array) -> tuple[Array, Array, Array]:
        loaded.use_threads(threads)
        outputs = np.empty(x.shape, np.float32)
        mean, variance = statistics or (np.empty(shape[-1:], np.float32), np.empty(shape[-1:], np.float32))
        run({IMAGES: x, OUTPUTS: outputs, SCALE: scale, SHIFT: shift, MEAN: mean, VARIANCE: variance})
        return outputs, mean, variance

    return normalize


def batch_norm_gradient(
    shape: tuple[int, ...], epsilon: float, is_training: bool, threads: int
) -> NormalizeBack | None:
    """The gradient of `batch_norm`: f(of the outputs, x, scale, mean, variance) -> of x, of scale, of shift."""
    loaded = library()
    if loaded is None:
        return None
    loaded.use_threads(threads)
    images, channels = _orders(loaded, shape)
    forward = _forward(loaded, images, epsilon, is_training)
    if forward is None:
        return None
    sides = images, images, images, c_float(epsilon), _flags(is_training)
    plan = loaded.plan("batch_normalization_backward", BACKWARD, *sides, forward)
    if plan is None or not loaded.is_fast(plan):
        return None
    vectors = dict.fromkeys((SCALE, MEAN, VARIANCE, SCALE_GRADIENT, SHIFT_GRADIENT), channels)
    run = Primitive(loaded, plan, {IMAGES: images, OUTPUTS_GRADIENT: images, IMAGES_GRADIENT: images, **vectors})

    def normalize_back(
        gradient: Array, x: Array, scale: Array, mean: Array, variance: Array
    ) -> tuple[Array, Array, Array]:
        loaded.use_threads(threads)
        result = np.empty(x.shape, np.float32)
        of_scale, of_shift = np.empty(shape[-1:], np.float32), np.empty(shape[-1:], np.float32)
        given = {IMAGES: x, OUTPUTS_GRADIENT: gradient, SCALE: scale, MEAN: mean, VARIANCE: variance}
        run({**given, IMAGES_GRADIENT: result, SCALE_GRADIENT: of_scale, SHIFT_GRADIENT: of_shift})
        return result, of_scale, of_shift

    return normalize_back


def _orders(loaded: Library, shape: tuple[int, ...]) -> tuple[Object, Object]:
    return loaded.images(shape), loaded.description(shape[-1:], (1,))


def _forward(loaded: Library, images: Object, epsilon: float, is_training: bool) -> Object | None:
    kind = TRAINING if is_training else INFERENCE
    return loaded.plan("batch_normalization_forward", kind, images, images, c_float(epsilon), _flags(is_training))


def _flags(is_training: bool) -> c_uint:
    return c_uint(_USE_SCALE | _USE_SHIFT | (0 if is_training else _GLOBAL_STATISTICS))
