"""Kernels of ops that newer ops have replaced, and that old graphs still have.

Owns only those whose computation differs from the newer op's; the others share its kernel.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype
from dtf.run.kernels.random import Draw, Draws, drawing
from dtf.run.value_types import Array
from dtf.wire.strings import string_scalar


@kernel("TileGrad")
def _(node: KernelNode) -> Function:
    def tile_grad(value: np.ndarray, multiples: np.ndarray) -> Array:
        counts = np.ravel(multiples).tolist()
        if len(counts) != value.ndim or any(n <= 0 or size % n for n, size in zip(counts, value.shape, strict=True)):
            raise invalid(f"multiples {counts} do not divide the shape {list(value.shape)}")
        split = [part for n, size in zip(counts, value.shape, strict=True) for part in (n, size // n)]
        return value.reshape(split).sum(tuple(range(0, 2 * len(counts), 2)), dtype=value.dtype)

    return tile_grad


@kernel("AdjustContrast")
def _(node: KernelNode) -> Function:
    def adjust_contrast(images: np.ndarray, factor: Array, least: Array, most: Array) -> np.ndarray:
        if images.ndim < 3:
            raise invalid(f"input must be at least 3-D, got shape{list(images.shape)}")
        wide = images.astype(np.float32)
        mean = wide.mean((-3, -2), keepdims=True)
        return np.clip((wide - mean) * np.float32(factor) + mean, least, most).astype(np.float32)

    return adjust_contrast


@drawing("RandomCrop")
def _(node: KernelNode) -> Draw:
    def crop(draws: Draws, image: np.ndarray, size: np.ndarray) -> np.ndarray:
        if image.ndim != 3 or size.shape != (2,):
            raise invalid(f"image must be 3-dimensional and size a vector of 2, got {image.shape} and {size.shape}")
        starts = []
        for wanted, there in zip(size.tolist(), image.shape, strict=False):
            if not 0 <= wanted <= there:
                raise invalid(f"Size must fit the image: {size.tolist()} of {list(image.shape)}")
            starts.append(int(draws.integers(0, there - wanted + 1, (), np.int64)))
        return image[starts[0] : starts[0] + size[0], starts[1] : starts[1] + size[1]].copy()

    return crop


@kernel("BatchNormWithGlobalNormalization")
def _(node: KernelNode) -> Function:
    dtype, scales = numpy_dtype(node), node.attr("scale_after_normalization")
    epsilon = np.asarray(node.attr("variance_epsilon"), dtype)

    def normalize(value: Array, mean: Array, variance: Array, beta: Array, gamma: Array) -> Array:
        _check_depth(value, mean, variance, beta, gamma)
        factor = 1 / np.sqrt(variance + epsilon) * (gamma if scales else 1)
        return ((value - mean) * factor + beta).astype(dtype)

    return normalize


@kernel("BatchNormWithGlobalNormalizationGrad")
def _(node: KernelNode) -> Function:
    dtype, scales = numpy_dtype(node), node.attr("scale_after_normalization")
    epsilon = np.asarray(node.attr("variance_epsilon"), dtype)

    def gradients(value: Array, mean: Array, variance: Array, gamma: Array, grad: Array) -> tuple[Array, ...]:
        _check_depth(value, mean, variance, gamma)
        inverse = 1 / np.sqrt(variance + epsilon)
        factor = inverse * (gamma if scales else 1)
        sums, centred = grad.sum((0, 1, 2)), (grad * (value - mean)).sum((0, 1, 2))
        by_variance = centred * factor * inverse * inverse * -0.5
        by_gamma = centred * inverse if scales else np.zeros_like(gamma)
        results = (grad * factor, -sums * factor, by_variance, sums, by_gamma)
        return tuple(np.asarray(each, dtype) for each in results)

    return gradients


def _check_depth(value: Array, *vectors: Array) -> None:
    if value.ndim != 4:
        raise invalid(f"input must be 4-dimensional{list(value.shape)}")
    for each in vectors:
        if each.shape != value.shape[3:]:
            raise invalid(f"the statistics must be vectors of {value.shape[3]} elements, not {list(each.shape)}")


@kernel("Fact")
def _(node: KernelNode) -> Function:
    return lambda: string_scalar(b"0! == 1")
