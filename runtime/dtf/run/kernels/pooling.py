"""Kernels of max and average pooling and their gradients.

A pooling is a loop over the positions in the window; each position is one strided view of the padded input, so no
element is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room
from dtf.run.kernels.conv import explicit_paddings
from dtf.run.value_types import ArrayFunction
from dtf.wire import errors
from dtf.wire.window_shapes import Extent, channel_axis, window_extent


@kernel("MaxPool", "MaxPoolV2")
def _(node: KernelNode) -> Function:
    return _with_window(node, _max_pool)


@kernel("MaxPoolGrad", "MaxPoolGradV2")
def _(node: KernelNode) -> Function:
    return _with_window(node, _max_pool_grad)


@kernel("MaxPoolGradGrad", "MaxPoolGradGradV2")
def _(node: KernelNode) -> Function:
    return _with_window(node, _max_pool_grad_grad)


def _with_window(node: KernelNode, compute: ArrayFunction) -> Function:
    """compute(*tensors, settings, ksize, strides). The last two are attributes, or inputs in ops of version 2."""
    settings = pooling_settings(node)
    if "ksize" not in node.attrs:
        return lambda *inputs: compute(
            *inputs[:-2], settings, _sizes(inputs[-2], "ksize"), _sizes(inputs[-1], "stride")
        )
    ksize, strides = node.attr("ksize"), node.attr("strides")
    return lambda *tensors: compute(*tensors, settings, ksize, strides)


@kernel("AvgPool")
def _(node: KernelNode) -> Function:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def avg_pool(images: np.ndarray) -> np.ndarray:
        window = pooling_window(images.shape, settings, ksize, strides)
        padded = window.pad(settings.channels_last(images), 0)
        total = None
        for _, view in window.views(padded):
            total = np.array(view) if total is None else np.add(total, view, out=total)
        return settings.back(total / window.counts(images.dtype))

    return avg_pool


@kernel("AvgPoolGrad")
def _(node: KernelNode) -> Function:
    settings, ksize, strides = pooling_settings(node), node.attr("ksize"), node.attr("strides")

    def avg_pool_grad(shape: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        window = pooling_window(tuple(shape.tolist()), settings, ksize, strides)
        settings.check(gradient, window.output_shape, "out_backprop")
        share = settings.channels_last(gradient) / window.counts(gradient.dtype)
        padded = np.zeros(room(window.padded_shape, gradient.dtype), gradient.dtype)
        for _, view in window.views(padded):
            view += share
        return settings.back(window.crop(padded))

    return avg_pool_grad


def _max_pool(
    images: np.ndarray, settings: PoolingSettings, ksize: Sequence[int], strides: Sequence[int]
) -> np.ndarray:
    channels = 1 if settings.is_channels_first else 3
    if len(images.shape) == 4 and ksize[channels] > 1:
        return settings.back(_max_over_channels(settings.channels_last(images), ksize, strides, channels))
    window = pooling_window(images.shape, settings, ksize, strides)
    padded = window.pad(settings.channels_last(images), _lowest(images.dtype))
    best = None
    for _, view in window.views(padded):
        best = np.array(view) if best is None else np.maximum(best, view, out=best)
    assert best is not None
    return settings.back(best)


def _max_over_channels(images: np.ndarray, ksize: Sequence[int], strides: Sequence[int], channels: int) -> np.ndarray:
    """The maximum of each group of channels; windows over channels cannot be over pixels too."""
    size, stride = ksize[channels], strides[channels]
    if max(each for axis, each in enumerate(ksize) if axis != channels) > 1:
        raise errors.UnimplementedError.of(
            "MaxPooling supports exactly one of pooling across depth or pooling across width/height."
        )
    if images.shape[3] % size != 0:
        raise errors.UnimplementedError.of(
            "Depthwise max pooling requires the depth window to evenly divide the input depth"
        )
    if size != stride:
        raise errors.UnimplementedError.of("Depthwise max pooling requires the depth window to equal the depth stride")
    return images.reshape(*images.shape[:3], images.shape[3] // size, size).max(axis=-1)


def _max_pool_grad(
    images: np.ndarray,
    pooled: np.ndarray,
    gradient: np.ndarray,
    settings: PoolingSettings,
    ksize: Sequence[int],
    strides: Sequence[int],
) -> np.ndarray:
    window = pooling_window(images.shape, settings, ksize, strides)
    settings.check(pooled, window.output_shape, "orig_output")
    settings.check(gradient, window.output_shape, "grad")
    gradient = settings.channels_last(gradient)
    spread = np.zeros(room(window.padded_shape, gradient.dtype), gradient.dtype)
    views = dict(window.views(spread))
    overlapping = any(size > stride for size, stride in zip(window.size, window.stride, strict=True))
    for position, chosen in _first_maxima(images, pooled, settings, window):
        if overlapping:
            views[position] += np.multiply(gradient, chosen)
        else:
            np.multiply(gradient, chosen, out=views[position])
    return settings.back(window.crop(spread))


def _max_pool_grad_grad(
    images: np.ndarray,
    pooled: np.ndarray,
    gradient: np.ndarray,
    settings: PoolingSettings,
    ksize: Sequence[int],
    strides: Sequence[int],
) -> np.ndarray:
    window = pooling_window(images.shape, settings, ksize, strides)
    settings.check(pooled, window.output_shape, "orig_output")
    settings.check(gradient, window.shape, "grad")
    gradient = window.pad(settings.channels_last(gradient), 0)
    views = dict(window.views(gradient))
    result = np.zeros(settings.channels_last(pooled).shape, gradient.dtype)
    for position, chosen in _first_maxima(images, pooled, settings, window):
        np.copyto(result, views[position], where=chosen)
    return settings.back(result)


def _first_maxima(
    images: np.ndarray, pooled: np.ndarray, settings: PoolingSettings, window: PoolingWindow
) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Yields (position in the window, mask of the outputs whose maximum stands first there), in row-major order."""
    padded = window.pad(settings.channels_last(images), _lowest(images.dtype))
    pooled = settings.channels_last(pooled)
    open_outputs = np.ones(pooled.shape, bool)
    for position, view in window.views(padded):
        chosen = np.equal(view, pooled)
        chosen &= open_outputs
        open_outputs ^= chosen
        yield position, chosen


@dataclass(frozen=True)
class PoolingSettings:
    """What a pooling node says beside its window."""

    padding: str
    explicit: list[int]
    data_format: str

    @property
    def is_channels_first(self) -> bool:
        return channel_axis(self.data_format) == 1

    def channels_last(self, images: np.ndarray) -> np.ndarray:
        return np.moveaxis(images, 1, -1) if self.is_channels_first else images

    def check(self, images: np.ndarray, expected: tuple[int, ...], what: str) -> None:
        """Refuses images whose shape is not `expected` (channels last)."""
        if np.ndim(images) != 4 or self.channels_last(images).shape != expected:
            raise errors.InvalidArgumentError.of(
                f"Expected {what} shape to be {list(expected)}, but got {list(np.shape(images))}"
            )

    def back(self, images: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(images, -1, 1) if self.is_channels_first else images)


@dataclass(frozen=True)
class PoolingWindow:
    """A pooling window over images whose channels are last, of shape `shape`."""

    shape: tuple[int, ...]
    size: tuple[int, int]
    stride: tuple[int, int]
    rows: Extent
    columns: Extent

    @property
    def padded_shape(self) -> tuple[int, ...]:
        batch, height, width, channels = self.shape
        return (
            batch,
            height + self.rows.before + self.rows.after,
            width + self.columns.before + self.columns.after,
            channels,
        )

    @property
    def output_shape(self) -> tuple[int, ...]:
        return self.shape[0], self.rows.output, self.columns.output, self.shape[3]

    def pad(self, images: np.ndarray, filling: float) -> np.ndarray:
        if self.padded_shape == self.shape:
            return images
        padded = np.full(room(self.padded_shape, images.dtype), filling, images.dtype)
        self.crop(padded)[...] = images
        return padded

    def crop(self, padded: np.ndarray) -> np.ndarray:
        _, height, width, _ = self.shape
        return padded[
            :, self.rows.before : self.rows.before + height, self.columns.before : self.columns.before + width
        ]

    def views(self, padded: np.ndarray) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
        """For each position in the window, the view of the elements that the outputs see there."""
        (row_stride, column_stride), rows, columns = self.stride, self.rows.output, self.columns.output
        for row in range(self.size[0]):
            for column in range(self.size[1]):
                yield (row, column), padded[
                    :,
                    row : row + max((rows - 1) * row_stride + 1, 0) : row_stride,
                    column : column + max((columns - 1) * column_stride + 1, 0) : column_stride,
                ]

    def counts(self, dtype: np.dtype) -> np.ndarray:
        """How many elements that are no padding each output averages, [rows, columns, 1]."""

        def along(size: int, window: int, stride: int, extent: Extent) -> np.ndarray:
            start = np.arange(extent.output) * stride - extent.before
            return np.minimum(start + window, size) - np.maximum(start, 0)

        rows = along(self.shape[1], self.size[0], self.stride[0], self.rows)
        columns = along(self.shape[2], self.size[1], self.stride[1], self.columns)
        return np.multiply.outer(rows, columns)[..., None].astype(dtype)


def pooling_settings(node: KernelNode) -> PoolingSettings:
    return PoolingSettings(node.attr("padding").decode(), explicit_paddings(node), node.attr("data_format").decode())


def pooling_window(
    shape: Sequence[int], settings: PoolingSettings, ksize: Sequence[int], strides: Sequence[int]
) -> PoolingWindow:
    if len(shape) != 4:
        raise errors.InvalidArgumentError.of(f"tensor_in must be 4-dimensional, got shape {list(shape)}")
    order = (0, 2, 3, 1) if settings.is_channels_first else (0, 1, 2, 3)
    if any(ksize[order[i]] != 1 or strides[order[i]] != 1 for i in (0, 3)):
        raise errors.UnimplementedError.of("Pooling is not yet supported on the batch or the depth dimension.")
    if min(ksize) <= 0:
        raise invalid(f"Sliding window ksize must be positive, got {list(ksize)}")
    _, height, width, _ = order
    rows, columns = (
        window_extent(
            shape[axis],
            ksize[axis],
            strides[axis],
            settings.padding,
            explicit=settings.explicit[2 * axis : 2 * axis + 2],
            may_be_empty=True,
        )
        for axis in (height, width)
    )
    return PoolingWindow(
        tuple(shape[axis] for axis in order),
        (ksize[height], ksize[width]),
        (strides[height], strides[width]),
        rows,
        columns,
    )


def _sizes(value: np.ndarray, name: str) -> list[int]:
    """The four numbers of a size that comes as an input."""
    sizes = value.ravel().tolist()
    if len(sizes) != 4:
        raise invalid(f"Sliding window {name} field must specify 4 dimensions, got {sizes}")
    if name == "ksize" and min(sizes) <= 0:
        raise invalid(f"Sliding window ksize must be positive, got {sizes}")
    return sizes


def _lowest(dtype: np.dtype) -> float:
    return -np.inf if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).min
