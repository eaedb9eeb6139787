"""Measures of images and of how much two of them are alike, and the edges in them.

Images are [..., height, width, channels]. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/image;
Wang et al., "Image quality assessment: from error visibility to structural similarity" (2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ops.image_functions import convert_image_dtype
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["image_gradients", "psnr", "sobel_edges", "ssim", "ssim_multiscale", "total_variation"]


def psnr(a: TensorLike, b: TensorLike, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of images in decibels, one per image."""
    with name_scope(name, "PSNR", [a, b]):
        highest = convert_image_dtype(math_ops.cast(max_val, convert_to_tensor(a).dtype), dtypes.float32)
        first, second = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = reductions.reduce_mean(math_ops.squared_difference(first, second), axis=[-3, -2, -1])
        return (20 * math_ops.log(highest) - 10 * math_ops.log(error)) / 2.302585092994046


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """The sum of the absolute differences of neighbouring pixels, one per image."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        batch = array_ops.expand_dims(images, 0) if images.shape.ndims == 3 else images
        down = reductions.reduce_sum(math_ops.abs(batch[:, 1:] - batch[:, :-1]), axis=[1, 2, 3])
        across = reductions.reduce_sum(math_ops.abs(batch[:, :, 1:] - batch[:, :, :-1]), axis=[1, 2, 3])
        total = down + across
        return total[0] if images.shape.ndims == 3 else total


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """(dy, dx): differences to the next pixel, 0 at the last one. image: [batch, height, width, channels]."""
    image = convert_to_tensor(image)
    if image.shape.ndims != 4:
        raise ValueError(f"image_gradients expects a 4D tensor, not {image.shape}.")
    dy = joining.pad(image[:, 1:] - image[:, :-1], [[0, 0], [0, 1], [0, 0], [0, 0]])
    dx = joining.pad(image[:, :, 1:] - image[:, :, :-1], [[0, 0], [0, 0], [0, 1], [0, 0]])
    return dy, dx


def sobel_edges(image: TensorLike) -> Tensor:
    """[batch, height, width, channels] -> [..., 2]: how steeply each channel changes downwards and to the right."""
    image = convert_to_tensor(image)
    shape = array_ops.shape(image)
    downwards = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
    filters = np.stack([downwards, downwards.T], -1)[:, :, None, :]
    repeated = apply_op(
        "Tile", input=convert_to_tensor(filters, image.dtype), multiples=joining.concat([[1, 1], shape[3:], [1]], 0)
    )
    padded = joining.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    edges = apply_op("DepthwiseConv2dNative", input=padded, filter=repeated, strides=[1, 1, 1, 1], padding="VALID")
    made = array_ops.reshape(edges, joining.concat([shape, [2]], 0))
    made.set_shape(image.shape.concatenate([2]))
    return made


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of images, 1 for equal ones: [...].

    max_val: the difference of the largest and the smallest value that there can be. The windows are gaussian, of
    `filter_size` pixels; images must be as large.
    """
    with name_scope(None, "SSIM", [img1, img2]):
        first, second, highest = _comparable(img1, img2, max_val)
        per_channel, _ = _ssim_per_channel(first, second, highest, filter_size, filter_sigma, k1, k2)
        return reductions.reduce_mean(per_channel, [-1])


_POWER_FACTORS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _POWER_FACTORS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The product of similarities of images at scales that are halved, each to its power: [...]."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        first, second, highest = _comparable(img1, img2, max_val)
        factors: list[Tensor] = []
        for scale, power in enumerate(power_factors):
            if scale:
                first, second = _halved(first), _halved(second)
            whole, contrast = _ssim_per_channel(first, second, highest, filter_size, filter_sigma, k1, k2)
            used = whole if scale == len(power_factors) - 1 else contrast
            factors.append(math_ops.pow(apply_op("Relu", features=used), power))
        return reductions.reduce_mean(reductions.reduce_prod(joining.stack(factors, axis=-1), [-1]), [-1])


def _comparable(img1: Any, img2: Any, max_val: Any) -> tuple[Tensor, Tensor, Tensor]:
    first, second = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    first.shape.assert_is_compatible_with(second.shape)
    highest = convert_image_dtype(math_ops.cast(max_val, first.dtype), dtypes.float32)
    return convert_image_dtype(first, dtypes.float32), convert_image_dtype(second, dtypes.float32), highest


def _ssim_per_channel(
    first: Tensor, second: Tensor, highest: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """(similarity, its factor of contrast and structure), means over the images: both [..., channels]."""
    places = np.arange(size) - (size - 1) / 2
    gaussian = np.exp(-np.add.outer(places**2, places**2) / (2 * sigma**2))
    window = convert_to_tensor((gaussian / gaussian.sum()).astype(np.float32)[:, :, None, None])
    shape = array_ops.shape(first)
    filters = apply_op("Tile", input=window, multiples=joining.concat([[1, 1], shape[-1:], [1]], 0))

    def smooth(images: Tensor) -> Tensor:
        batch = array_ops.reshape(images, joining.concat([[-1], shape[-3:]], 0))
        made = apply_op("DepthwiseConv2dNative", input=batch, filter=filters, strides=[1, 1, 1, 1], padding="VALID")
        return array_ops.reshape(made, joining.concat([shape[:-3], array_ops.shape(made)[1:]], 0))

    c1, c2 = math_ops.square(k1 * highest), math_ops.square(k2 * highest)
    mean_first, mean_second = smooth(first), smooth(second)
    product = mean_first * mean_second * 2.0
    squares = math_ops.square(mean_first) + math_ops.square(mean_second)
    luminance = (product + c1) / (squares + c1)
    moments = smooth(math_ops.square(first) + math_ops.square(second))
    contrast = (smooth(first * second) * 2.0 - product + c2) / (moments - squares + c2)
    over_pixels = [-3, -2]
    return reductions.reduce_mean(luminance * contrast, over_pixels), reductions.reduce_mean(contrast, over_pixels)


def _halved(images: Tensor) -> Tensor:
    """Means of squares of four pixels; an odd side is filled up with its last pixels."""
    shape = array_ops.shape(images)
    batch = array_ops.reshape(images, joining.concat([[-1], shape[-3:]], 0))
    odd = apply_op("FloorMod", x=shape[-3:], y=[2, 2, 1])
    after = joining.concat([[0], odd], 0)
    margins = joining.stack([filling_ops.zeros_like(after), after], axis=1)
    padded = apply_op("MirrorPad", input=batch, paddings=margins, mode="SYMMETRIC")
    pooled = apply_op("AvgPool", value=padded, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    return array_ops.reshape(pooled, joining.concat([shape[:-3], array_ops.shape(pooled)[1:]], 0))
