"""Pooling and its gradients."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dtf.run.devices.pytorch.rows import FLOATS, TensorFunction, Unsuited, computes, in_wide
from dtf.run.kernels import KernelNode
from dtf.run.kernels.pooling import PoolingSettings, PoolingWindow, pooling_settings, pooling_window


def _window(settings: PoolingSettings, images: tuple[int, ...], ksize: list[int], strides: list[int]) -> PoolingWindow:
    if len(images) != 4 or ksize[1 if settings.is_channels_first else 3] != 1:
        raise Unsuited
    window = pooling_window(images, settings, ksize, strides)
    if min(*window.output_shape, *images) <= 0:
        raise Unsuited
    return window


def _first(settings: PoolingSettings, images: Tensor) -> Tensor:
    return images if settings.is_channels_first else images.permute(0, 3, 1, 2)


def _back(settings: PoolingSettings, images: Tensor) -> Tensor:
    return images if settings.is_channels_first else images.permute(0, 2, 3, 1)


def _around(window: PoolingWindow) -> tuple[int, int, int, int]:
    return window.columns.before, window.columns.after, window.rows.before, window.rows.after


def _padded(window: PoolingWindow, images: Tensor, filling: float) -> Tensor:
    return functional.pad(images, _around(window), value=filling) if any(_around(window)) else images


def _cropped(window: PoolingWindow, images: Tensor) -> Tensor:
    before_and_after = tuple(-size for size in _around(window))
    return functional.pad(images, before_and_after) if any(before_and_after) else images


def _check(settings: PoolingSettings, images: Tensor, expected: tuple[int, ...]) -> None:
    if images.dim() != 4 or tuple(images.permute(0, 2, 3, 1).shape if settings.is_channels_first else images.shape) != (
        expected
    ):
        raise Unsuited


@computes("MaxPool", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def max_pool(images: Tensor) -> Tensor:
        window = _window(settings, tuple(images.shape), ksize, strides)
        padded = _padded(window, _first(settings, in_wide(images)), -np.inf)
        return _back(settings, functional.max_pool2d(padded, window.size, window.stride))

    return max_pool


@computes("MaxPoolGrad", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def max_pool_grad(images: Tensor, pooled: Tensor, gradient: Tensor) -> Tensor:
        window = _window(settings, tuple(images.shape), ksize, strides)
        _check(settings, pooled, window.output_shape)
        _check(settings, gradient, window.output_shape)
        padded = _padded(window, _first(settings, in_wide(images)), -np.inf)
        _, where = functional.max_pool2d(padded, window.size, window.stride, return_indices=True)
        spread = torch.ops.aten.max_pool2d_with_indices_backward(
            _first(settings, in_wide(gradient)), padded, list(window.size), list(window.stride), [0, 0], [1, 1],
            False, where,
        )  # fmt: skip
        return _back(settings, _cropped(window, spread))

    return max_pool_grad


def _counts(settings: PoolingSettings, window: PoolingWindow, like: Tensor) -> Tensor:
    """How many elements each output averages, as torch broadcasts it over images with the channels first."""
    counts = window.counts(np.dtype(np.float64))[..., 0]
    return torch.from_numpy(counts).to(device=like.device, dtype=like.dtype)


@computes("AvgPool", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def avg_pool(images: Tensor) -> Tensor:
        window = _window(settings, tuple(images.shape), ksize, strides)
        padded = _padded(window, _first(settings, in_wide(images)), 0)
        total = functional.avg_pool2d(padded, window.size, window.stride, divisor_override=1)
        return _back(settings, total / _counts(settings, window, total))

    return avg_pool


@computes("AvgPoolGrad", types=FLOATS)
def _(node: KernelNode) -> TensorFunction:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def avg_pool_grad(shape: np.ndarray, gradient: Tensor) -> Tensor:
        window = _window(settings, tuple(shape.tolist()), ksize, strides)
        _check(settings, gradient, window.output_shape)
        wide = _first(settings, in_wide(gradient))
        batch, height, width, channels = window.padded_shape
        padded = wide.new_empty(1).expand(batch, channels, height, width)
        spread = torch.ops.aten.avg_pool2d_backward(
            wide / _counts(settings, window, wide), padded, list(window.size), list(window.stride), [0, 0], False,
            True, 1,
        )  # fmt: skip
        return _back(settings, _cropped(window, spread))

    return avg_pool_grad
