"""Kernels of two-dimensional convolution, depthwise convolution and their gradients.

A convolution is a matrix product of patches and filter. The patches of a few images at a time are copied into one
buffer that stays in the processor's cache (copying those of the whole batch at once takes longer than the product).
With few input channels the buffer is laid out patch element by patch element, because the runs that are then copied
are rows of the image rather than rows of the window.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import room
from dtf.run.kernels.grouped_conv import GroupedConvolution
from dtf.wire import errors
from dtf.wire.window_shapes import Extent, channel_axis, window_extent

_BUFFER_BYTES = 2 << 20
_FEW_CHANNELS = 4


@kernel("Conv2D")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def conv2d(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
        images, filters = settings.channels_last(images), filters
        result_type = images.dtype
        images, filters = _computable(images), _computable(filters)
        convolution = convolution_of(settings, images.shape, filters.shape)
        return settings.back(convolution.forward(images, filters).astype(result_type, copy=False))

    return conv2d


@kernel("Conv2DBackpropInput")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def conv2d_backprop_input(sizes: np.ndarray, filters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        convolution = convolution_of(settings, settings.shape_channels_last(sizes.tolist()), filters.shape)
        result_type = gradient.dtype
        gradient, filters = _computable(settings.channels_last(gradient)), _computable(filters)
        convolution.check_gradient(gradient)
        return settings.back(convolution.backprop_input(filters, gradient).astype(result_type, copy=False))

    return conv2d_backprop_input


@kernel("Conv2DBackpropFilter")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def conv2d_backprop_filter(images: np.ndarray, sizes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        result_type = gradient.dtype
        images, gradient = _computable(settings.channels_last(images)), _computable(settings.channels_last(gradient))
        convolution = convolution_of(settings, images.shape, tuple(sizes.tolist()))
        convolution.check_gradient(gradient)
        return convolution.backprop_filter(images, gradient).astype(result_type, copy=False)

    return conv2d_backprop_filter


@kernel("DepthwiseConv2dNative")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def depthwise(images: np.ndarray, filters: np.ndarray) -> np.ndarray:
        result_type = images.dtype
        images, filters = _computable(settings.channels_last(images)), _computable(filters)
        convolution = settings.convolution(images.shape, filters.shape)
        padded = convolution.pad(images)
        result = np.zeros(room((*convolution.output_positions, *filters.shape[2:]), images.dtype), images.dtype)
        for row, column in convolution.positions():
            result += convolution.view(padded, row, column)[..., None] * filters[row, column]
        channels = filters.shape[2] * filters.shape[3]
        return settings.back(result.reshape(*convolution.output_positions, channels).astype(result_type, copy=False))

    return depthwise


@kernel("DepthwiseConv2dNativeBackpropInput")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def depthwise_backprop_input(sizes: np.ndarray, filters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        convolution = settings.convolution(settings.shape_channels_last(sizes.tolist()), filters.shape)
        result_type = gradient.dtype
        gradient, filters = _computable(settings.channels_last(gradient)), _computable(filters)
        convolution.check_gradient(gradient, filters.shape[2] * filters.shape[3])
        gradient = gradient.reshape(*gradient.shape[:3], *filters.shape[2:])
        padded = np.zeros(room(convolution.padded_shape, gradient.dtype), gradient.dtype)
        for row, column in convolution.positions():
            convolution.view(padded, row, column)[...] += np.einsum("bhwcm,cm->bhwc", gradient, filters[row, column])
        return settings.back(convolution.crop(padded).astype(result_type, copy=False))

    return depthwise_backprop_input


@kernel("DepthwiseConv2dNativeBackpropFilter")
def _(node: KernelNode) -> Function:
    settings = convolution_settings(node)

    def depthwise_backprop_filter(images: np.ndarray, sizes: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        result_type = gradient.dtype
        images, gradient = _computable(settings.channels_last(images)), _computable(settings.channels_last(gradient))
        shape = tuple(sizes.tolist())
        convolution = settings.convolution(images.shape, shape)
        convolution.check_gradient(gradient, shape[2] * shape[3])
        gradient = gradient.reshape(*gradient.shape[:3], *shape[2:])
        padded = convolution.pad(images)
        result = np.empty(room(shape, gradient.dtype), gradient.dtype)
        for row, column in convolution.positions():
            result[row, column] = np.einsum("bhwc,bhwcm->cm", convolution.view(padded, row, column), gradient)
        return result.astype(result_type, copy=False)

    return depthwise_backprop_filter


@dataclass(frozen=True)
class Convolution:
    """How filters [rows, columns, in, out] move over images [batch, height, width, channels]."""

    images: tuple[int, ...]
    filters: tuple[int, ...]
    stride: tuple[int, int]
    dilation: tuple[int, int]
    rows: Extent
    columns: Extent

    @property
    def output_positions(self) -> tuple[int, int, int]:
        return self.images[0], self.rows.output, self.columns.output

    @property
    def padded_shape(self) -> tuple[int, ...]:
        batch, height, width, channels = self.images
        return (
            batch,
            height + self.rows.before + self.rows.after,
            width + self.columns.before + self.columns.after,
            channels,
        )

    def forward(self, images: np.ndarray, filters: np.ndarray) -> np.ndarray:
        output = np.empty(room((*self.output_positions, filters.shape[3]), images.dtype), images.dtype)
        matrix = _rows(filters)
        for chunk, patches in self._patches(images):
            np.matmul(patches, matrix, out=_rows(output[chunk]))
        return output

    def backprop_filter(self, images: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        gradient = np.ascontiguousarray(gradient)
        total = np.zeros((self.filters[0] * self.filters[1] * self.filters[2], self.filters[3]), gradient.dtype)
        for chunk, patches in self._patches(images):
            total += patches.T @ _rows(gradient[chunk])
        return total.reshape(self.filters)

    def backprop_input(self, filters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        if self.stride == (1, 1):
            return self._transposed().forward(gradient, np.ascontiguousarray(filters[::-1, ::-1].swapaxes(2, 3)))
        gradient = np.ascontiguousarray(gradient)
        matrix = np.ascontiguousarray(_rows(filters).T)
        padded = np.zeros(room(self.padded_shape, gradient.dtype), gradient.dtype)
        for start in range(0, self.images[0], self._images_per_chunk(gradient.itemsize)):
            chunk = slice(start, start + self._images_per_chunk(gradient.itemsize))
            patches = (_rows(gradient[chunk]) @ matrix).reshape(*gradient[chunk].shape[:3], *self.filters[:3])
            for row, column in self.positions():
                self.view(padded[chunk], row, column)[...] += patches[:, :, :, row, column]
        return self.crop(padded)

    def _transposed(self) -> Convolution:
        """For stride 1: the convolution with the turned filter that makes the images' gradient of the outputs'."""

        def turned(extent: Extent, size: int, window: int, dilation: int) -> Extent:
            reach = (window - 1) * dilation
            return Extent(size, reach - extent.before, reach - extent.after)

        rows, columns, channels, filters = self.filters
        return Convolution(
            (*self.output_positions, filters),
            (rows, columns, filters, channels),
            self.stride,
            self.dilation,
            turned(self.rows, self.images[1], rows, self.dilation[0]),
            turned(self.columns, self.images[2], columns, self.dilation[1]),
        )

    def check_gradient(self, gradient: np.ndarray, depth: int | None = None) -> None:
        """Refuses a gradient that is not of the shape of the outputs; of `depth` channels, if not of the filters'."""
        expected = (*self.output_positions, self.filters[3] if depth is None else depth)
        if gradient.shape != expected:
            raise errors.InvalidArgumentError.of(
                f"Size of out_backprop doesn't match computed: actual = {list(gradient.shape)}, "
                f"computed = {list(expected)}",
            )

    def positions(self) -> Iterator[tuple[int, int]]:
        """All (row, column) of the window."""
        for row in range(self.filters[0]):
            for column in range(self.filters[1]):
                yield row, column

    def view(self, padded: np.ndarray, row: int, column: int) -> np.ndarray:
        """The elements of the padded images that the outputs see at one position of the window."""
        starts = row * self.dilation[0], column * self.dilation[1]
        rows, columns = (
            slice(start, start + max((extent.output - 1) * stride + 1, 0), stride)
            for start, extent, stride in zip(starts, (self.rows, self.columns), self.stride, strict=True)
        )
        return padded[:, rows, columns]

    def pad(self, images: np.ndarray) -> np.ndarray:
        """The images with zeros around them; negative padding (of a transposed convolution) cuts them instead."""
        if self.padded_shape == self.images and self.rows.before == self.columns.before == 0:
            return images
        padded = np.zeros(room(self.padded_shape, images.dtype), images.dtype)
        target, source = [slice(None)], [slice(None)]
        for extent, size in ((self.rows, self.images[1]), (self.columns, self.images[2])):
            source.append(slice(max(-extent.before, 0), size - max(-extent.after, 0)))
            target.append(slice(max(extent.before, 0), max(extent.before, 0) + source[-1].stop - source[-1].start))
        padded[tuple(target)] = images[tuple(source)]
        return padded

    def crop(self, padded: np.ndarray) -> np.ndarray:
        _, height, width, _ = self.images
        return padded[
            :, self.rows.before : self.rows.before + height, self.columns.before : self.columns.before + width
        ]

    def _images_per_chunk(self, itemsize: int) -> int:
        one = self.rows.output * self.columns.output * self.filters[0] * self.filters[1] * self.filters[2] * itemsize
        return max(1, _BUFFER_BYTES // max(one, 1))

    def _patches(self, images: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """Yields (slice of the batch, its patches as a matrix [output positions, elements of a window])."""
        batch, height, width = self.output_positions
        window = self.filters[:3]
        padded = self.pad(images)
        image, row, column, channel = padded.strides
        view = as_strided(
            padded,
            (batch, height, width, *window),
            (
                image,
                row * self.stride[0],
                column * self.stride[1],
                row * self.dilation[0],
                column * self.dilation[1],
                channel,
            ),
            writeable=False,
        )
        elements = window[0] * window[1] * window[2]
        if window[:2] == (1, 1) and self.stride == (1, 1) and padded.flags.c_contiguous:
            yield slice(None), _rows(padded)
            return
        step = min(self._images_per_chunk(images.itemsize), max(batch, 1))
        few = window[2] <= _FEW_CHANNELS
        buffer = np.empty(step * height * width * elements, images.dtype)
        for start in range(0, batch, step):
            chunk = slice(start, min(start + step, batch))
            count = (chunk.stop - chunk.start) * height * width
            part = view[chunk].transpose(3, 4, 5, 0, 1, 2) if few else view[chunk]
            filled = buffer[: count * elements].reshape(part.shape)
            np.copyto(filled, part)
            yield chunk, filled.reshape(elements, count).T if few else filled.reshape(count, elements)


@dataclass(frozen=True)
class ConvolutionSettings:
    """What a convolution node says beside its shapes. Strides, dilations and paddings are of height and width."""

    padding: str
    channels_first: bool
    stride: tuple[int, int]
    dilation: tuple[int, int]
    explicit: tuple[list[int], list[int]]

    def channels_last(self, images: np.ndarray) -> np.ndarray:
        return np.moveaxis(images, 1, -1) if self.channels_first else images

    def shape_channels_last(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (shape[0], shape[2], shape[3], shape[1]) if self.channels_first else tuple(shape)

    def back(self, images: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(images, -1, 1) if self.channels_first else images)

    def convolution(self, images: tuple[int, ...], filters: tuple[int, ...]) -> Convolution:
        if len(images) != 4 or len(filters) != 4:
            raise errors.InvalidArgumentError.of(
                f"input and filter must be 4-dimensional: {list(images)} and {list(filters)}"
            )
        if filters[2] == 0:
            raise errors.InvalidArgumentError.of("filter depth must be strictly positive, got 0")
        if images[3] != filters[2]:
            raise errors.InvalidArgumentError.of(
                f"input depth must be equal to filter depth: {images[3]} vs {filters[2]}"
            )
        rows, columns = (
            window_extent(
                images[1 + i],
                filters[i],
                self.stride[i],
                self.padding,
                self.dilation[i],
                self.explicit[i],
                may_be_empty=True,
            )
            for i in range(2)
        )
        return Convolution(tuple(images), tuple(filters), self.stride, self.dilation, rows, columns)


def convolution_of(
    settings: ConvolutionSettings, images: tuple[int, ...], filters: tuple[int, ...]
) -> Convolution | GroupedConvolution:
    """The convolution, in groups of channels where the filters have less depth than the images.

    Raises:
      InvalidArgumentError: the channels are not a multiple of the filters' depth, or the filters not of the groups.
    """
    if len(images) != 4 or len(filters) != 4 or filters[2] == 0 or images[3] in (0, filters[2]):
        return settings.convolution(images, filters)
    if images[3] % filters[2]:
        raise errors.InvalidArgumentError.of(
            f"input depth must be evenly divisible by filter depth: {images[3]} vs {filters[2]}"
        )
    groups = images[3] // filters[2]
    if filters[3] % groups:
        raise errors.InvalidArgumentError.of(
            f"output depth must be evenly divisible by number of groups: {filters[3]} vs {groups}"
        )
    one = settings.convolution((*images[:3], filters[2]), (*filters[:3], filters[3] // groups))
    return GroupedConvolution(one, groups, filters[3])


def convolution_settings(node: KernelNode) -> ConvolutionSettings:
    channels_first = channel_axis(node.attr("data_format").decode()) == 1
    height, width = (2, 3) if channels_first else (1, 2)
    strides, dilations = node.attr("strides"), node.attr("dilations")
    if any(strides[i] != 1 or dilations[i] != 1 for i in range(4) if i not in (height, width)):
        raise errors.InvalidArgumentError.of(
            "Current implementation does not yet support strides or dilations in the batch and depth dimensions.",
        )
    explicit = explicit_paddings(node)
    return ConvolutionSettings(
        node.attr("padding").decode(),
        channels_first,
        (strides[height], strides[width]),
        (dilations[height], dilations[width]),
        (explicit[2 * height : 2 * height + 2], explicit[2 * width : 2 * width + 2]),
    )


def explicit_paddings(node: KernelNode) -> list[int]:
    """(before, after) of each of the four dimensions; zeros where the padding is not EXPLICIT."""
    given = list(node.attrs.get("explicit_paddings") or [])
    if node.attr("padding") != b"EXPLICIT":
        return [0] * 8
    if len(given) != 8:
        raise errors.InvalidArgumentError.of(
            f"explicit_paddings attribute must contain 8 values, but got: {len(given)}"
        )
    return given


def _computable(array: np.ndarray) -> np.ndarray:
    """16-bit floats as float32, which BLAS multiplies."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def _rows(images: np.ndarray) -> np.ndarray:
    """[batch, height, width, n] as a matrix; a view, since what is passed is contiguous."""
    return images.reshape(math.prod(images.shape[:-1]), images.shape[-1])
