"""Kernels of windows that slide over any number of dimensions: convolution and pooling of volumes, morphological
dilation, pooling that tells where its maxima stand, and the patches of volumes.

Everything is a loop over the positions in the window; each position is one strided view of the padded input. The
faster kernels of two dimensions are in `conv` and `pooling`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room
from dtf.run.value_types import Array, Index, NumpyType
from dtf.wire.window_shapes import Extent, channel_axis, window_extent


class _Windows:
    """A window over inputs [batch, *sizes, channels]."""

    def __init__(
        self,
        shape: Sequence[int],
        window: Sequence[int],
        strides: Sequence[int],
        dilations: Sequence[int],
        padding: str,
        may_be_empty: bool = False,
    ) -> None:
        if len(shape) != len(window) + 2:
            raise invalid(f"input must be {len(window) + 2}-dimensional, got shape {list(shape)}")
        self.shape, self.window, self.strides, self.dilations = tuple(shape), tuple(window), strides, dilations
        self.extents: list[Extent] = [
            window_extent(size, width, stride, padding, dilation, may_be_empty=may_be_empty)
            for size, width, stride, dilation in zip(shape[1:-1], window, strides, dilations, strict=True)
        ]
        self.outputs = tuple(extent.output for extent in self.extents)

    def padded(self, inputs: np.ndarray, filling: float) -> np.ndarray:
        shape = room((inputs.shape[0], *self.padded_shape[1:-1], inputs.shape[-1]), inputs.dtype)
        out = np.full(shape, filling, inputs.dtype)
        self.crop(out)[...] = inputs
        return out

    @property
    def padded_shape(self) -> tuple[int, ...]:
        """Of the input with what the window needs around it."""
        sizes = [
            size + extent.before + extent.after for size, extent in zip(self.shape[1:-1], self.extents, strict=True)
        ]
        return (self.shape[0], *sizes, self.shape[-1])

    def check_outputs(self, array: np.ndarray, name: str) -> None:
        """Raises InvalidArgumentError unless the array has the shape of the outputs."""
        wanted = (self.shape[0], *self.outputs, self.shape[-1])
        if array.shape != wanted:
            raise invalid(f"Expected {name} shape to be {list(wanted)}, but got {list(array.shape)}")

    def crop(self, padded: np.ndarray) -> np.ndarray:
        inner = (
            slice(extent.before, extent.before + size)
            for size, extent in zip(self.shape[1:-1], self.extents, strict=True)
        )
        block: Index = (slice(None), *inner)
        return padded[block]

    def positions(self) -> Iterator[tuple[int, ...]]:
        return np.ndindex(*self.window)

    def view(self, padded: np.ndarray, position: Sequence[int]) -> np.ndarray:
        """What the outputs see at one position of the window: [batch, *outputs, channels]."""
        slices = (
            slice(at * dilation, at * dilation + (extent.output - 1) * stride + 1, stride)
            for at, dilation, stride, extent in zip(position, self.dilations, self.strides, self.extents, strict=True)
        )
        block: Index = (slice(None), *slices)
        return padded[block]

    def counts(self) -> np.ndarray:
        """How many elements that are no padding each output covers, [*outputs, 1]."""
        total = np.ones((), np.int64)
        for size, width, stride, extent in zip(self.shape[1:-1], self.window, self.strides, self.extents, strict=True):
            start = np.arange(extent.output) * stride - extent.before
            total = np.multiply.outer(total, np.minimum(start + width, size) - np.maximum(start, 0))
        return total[..., None]


class _Layout:
    """The order of the dimensions of a node's data, and its strides, sizes and dilations in the order of _Windows."""

    def __init__(self, node: KernelNode, rank: int) -> None:
        text = as_text(node.attrs.get("data_format") or b"NHWC")
        self._is_first = channel_axis(text, rank) == 1
        self._spatial = slice(2, None) if self._is_first else slice(1, rank - 1)
        self.padding = as_text(node.attr("padding"))
        self.strides = self.inner(node, "strides")

    def inner(self, node: KernelNode, name: str) -> list[int]:
        """An attribute's numbers of the spatial dimensions; the others must be 1."""
        values = list(node.attr(name))
        inner = values[self._spatial]
        outer = list(values)
        del outer[self._spatial]
        if any(value != 1 for value in outer):
            raise invalid(f"{node.op} does not support {name} in the batch and depth dimensions: {values}")
        return inner

    def channels_last(self, data: np.ndarray) -> np.ndarray:
        return np.moveaxis(data, 1, -1) if self._is_first else data

    def shape_channels_last(self, shape: Sequence[int]) -> tuple[int, ...]:
        return (shape[0], *shape[2:], shape[1]) if self._is_first else tuple(shape)

    def back(self, data: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(np.moveaxis(data, -1, 1) if self._is_first else data)


def _wide(array: np.ndarray) -> np.ndarray:
    """16-bit floats as float32."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind in "fV" else array


def _lowest(dtype: NumpyType) -> float:
    return -np.inf if np.dtype(dtype).kind in "fV" else np.iinfo(dtype).min


# -- convolution


class _Convolution:
    def __init__(self, node: KernelNode) -> None:
        self._layout = _Layout(node, 5)
        self._dilations = self._layout.inner(node, "dilations")

    def _windows(self, shape: Sequence[int], filters: Sequence[int]) -> _Windows:
        if len(filters) != 5 or len(shape) != 5:
            raise invalid(f"input and filter must be 5-dimensional: {list(shape)} and {list(filters)}")
        if 0 in filters:
            raise invalid(f"filter must not have zero elements: {list(filters)}")
        if shape[-1] != filters[3]:
            raise invalid(f"input depth must be equal to filter depth: {shape[-1]} vs {filters[3]}")
        return _Windows(
            shape, filters[:3], self._layout.strides, self._dilations, self._layout.padding, may_be_empty=True
        )

    def forward(self, inputs: np.ndarray, filters: np.ndarray) -> np.ndarray:
        data, weights = _wide(self._layout.channels_last(inputs)), _wide(filters)
        windows = self._windows(data.shape, weights.shape)
        padded = windows.padded(data, 0)
        out = np.zeros(room((data.shape[0], *windows.outputs, weights.shape[4]), data.dtype), data.dtype)
        for position in windows.positions():
            out += windows.view(padded, position) @ weights[position]
        return self._layout.back(out).astype(inputs.dtype, copy=False)

    def by_input(self, sizes: Sequence[int], filters: np.ndarray, grads: np.ndarray) -> np.ndarray:
        weights, data = _wide(filters), _wide(self._layout.channels_last(grads))
        windows = self._windows(self._layout.shape_channels_last(sizes), weights.shape)
        self._check(windows, data, weights.shape[4])
        padded = np.zeros(room(windows.padded_shape, data.dtype), data.dtype)
        for position in windows.positions():
            windows.view(padded, position)[...] += data @ weights[position].T
        return self._layout.back(windows.crop(padded)).astype(grads.dtype, copy=False)

    def by_filter(self, inputs: np.ndarray, sizes: Sequence[int], grads: np.ndarray) -> np.ndarray:
        data, back = _wide(self._layout.channels_last(inputs)), _wide(self._layout.channels_last(grads))
        windows = self._windows(data.shape, sizes)
        self._check(windows, back, sizes[4])
        padded = windows.padded(data, 0)
        out = np.empty(room(tuple(sizes), data.dtype), data.dtype)
        flat = back.reshape(-1, back.shape[-1])
        for position in windows.positions():
            out[position] = windows.view(padded, position).reshape(-1, data.shape[-1]).T @ flat
        return out.astype(grads.dtype, copy=False)

    @staticmethod
    def _check(windows: _Windows, grads: np.ndarray, channels: int) -> None:
        wanted = (windows.shape[0], *windows.outputs, channels)
        if grads.shape != wanted:
            raise invalid(f"out_backprop has shape {list(grads.shape)}, computed: {list(wanted)}")


@kernel("Conv3D")
def _(node: KernelNode) -> Function:
    return _Convolution(node).forward


@kernel("Conv3DBackpropInputV2")
def _(node: KernelNode) -> Function:
    convolution = _Convolution(node)
    return lambda sizes, filters, grads: convolution.by_input(sizes.tolist(), filters, grads)


@kernel("Conv3DBackpropFilterV2")
def _(node: KernelNode) -> Function:
    convolution = _Convolution(node)
    return lambda inputs, sizes, grads: convolution.by_filter(inputs, sizes.tolist(), grads)


@kernel("Conv3DBackpropInput")
def _(node: KernelNode) -> Function:
    convolution = _Convolution(node)
    return lambda inputs, filters, grads: convolution.by_input(list(inputs.shape), filters, grads)


@kernel("Conv3DBackpropFilter")
def _(node: KernelNode) -> Function:
    convolution = _Convolution(node)
    return lambda inputs, filters, grads: convolution.by_filter(inputs, list(filters.shape), grads)


# -- pooling


class _Pooling:
    def __init__(self, node: KernelNode, rank: int = 5) -> None:
        self.layout = _Layout(node, rank)
        self._size = self.layout.inner(node, "ksize")
        if min(self._size) <= 0:
            raise invalid(f"Sliding window ksize must be positive, got {list(node.attr('ksize'))}")

    def windows(self, shape: Sequence[int]) -> _Windows:
        return _Windows(
            shape, self._size, self.layout.strides, [1] * len(self._size), self.layout.padding, may_be_empty=True
        )


@kernel("AvgPool3D")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node)

    def avg_pool(inputs: np.ndarray) -> np.ndarray:
        data = _wide(pooling.layout.channels_last(inputs))
        windows = pooling.windows(data.shape)
        padded = windows.padded(data, 0)
        total = sum(windows.view(padded, position) for position in windows.positions())
        return pooling.layout.back(total / windows.counts().astype(data.dtype)).astype(inputs.dtype, copy=False)

    return avg_pool


@kernel("AvgPool3DGrad")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node)

    def avg_pool_grad(shape: np.ndarray, grads: np.ndarray) -> np.ndarray:
        data = _wide(pooling.layout.channels_last(grads))
        windows = pooling.windows(pooling.layout.shape_channels_last(shape.tolist()))
        windows.check_outputs(data, "out_backprop")
        share = data / windows.counts().astype(data.dtype)
        padded = np.zeros(room(windows.padded_shape, data.dtype), data.dtype)
        for position in windows.positions():
            windows.view(padded, position)[...] += share
        return pooling.layout.back(windows.crop(padded)).astype(grads.dtype, copy=False)

    return avg_pool_grad


@kernel("MaxPool3D")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node)

    def max_pool(inputs: np.ndarray) -> np.ndarray:
        data = pooling.layout.channels_last(inputs)
        windows = pooling.windows(data.shape)
        padded = windows.padded(data, _lowest(data.dtype))
        best = None
        for position in windows.positions():
            view = windows.view(padded, position)
            best = np.array(view) if best is None else np.maximum(best, view, out=best)
        assert best is not None
        return pooling.layout.back(best)

    return max_pool


def _first_maxima(
    windows: _Windows, inputs: np.ndarray, pooled: np.ndarray
) -> Iterator[tuple[tuple[int, ...], np.ndarray]]:
    """(position, mask of the outputs whose maximum stands first there)."""
    padded = windows.padded(inputs, _lowest(inputs.dtype))
    open_outputs = np.ones(pooled.shape, bool)
    for position in windows.positions():
        chosen = (windows.view(padded, position) == pooled) & open_outputs
        open_outputs ^= chosen
        yield position, chosen


@kernel("MaxPool3DGrad")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node)

    def max_pool_grad(inputs: np.ndarray, pooled: np.ndarray, grads: np.ndarray) -> np.ndarray:
        data, best, back = (pooling.layout.channels_last(each) for each in (inputs, pooled, grads))
        windows = pooling.windows(data.shape)
        spread = np.zeros(room(windows.padded_shape, grads.dtype), grads.dtype)
        for position, chosen in _first_maxima(windows, data, best):
            windows.view(spread, position)[...] += back * chosen
        return pooling.layout.back(windows.crop(spread))

    return max_pool_grad


@kernel("MaxPool3DGradGrad")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node)

    def max_pool_grad_grad(inputs: np.ndarray, pooled: np.ndarray, grads: np.ndarray) -> np.ndarray:
        data, best, back = (pooling.layout.channels_last(each) for each in (inputs, pooled, grads))
        windows = pooling.windows(data.shape)
        padded = windows.padded(back, 0)
        out = np.zeros(best.shape, grads.dtype)
        for position, chosen in _first_maxima(windows, data, best):
            np.copyto(out, windows.view(padded, position), where=chosen)
        return pooling.layout.back(out)

    return max_pool_grad_grad


@kernel("MaxPoolWithArgmax")
def _(node: KernelNode) -> Function:
    pooling, dtype = _Pooling(node, 4), node.attr("Targmax").as_numpy_dtype
    with_batch = node.attr("include_batch_in_index")

    def max_pool_with_argmax(inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        windows = pooling.windows(inputs.shape)
        if not inputs.size:
            raise invalid(f"tensor_in must not be empty, got shape {list(inputs.shape)}")
        padded = windows.padded(inputs, _lowest(inputs.dtype))
        numbers = np.arange(inputs.size).reshape(inputs.shape)
        if not with_batch:
            numbers = np.broadcast_to(numbers[:1], inputs.shape)
        places = windows.padded(numbers, -1)
        first, *others = windows.positions()
        best, at = np.array(windows.view(padded, first)), np.array(windows.view(places, first))
        for position in others:
            view, place = windows.view(padded, position), windows.view(places, position)
            better = (view > best) | ((at < 0) & (place >= 0))
            np.copyto(best, view, where=better)
            np.copyto(at, place, where=better)
        return best, at.astype(dtype)

    return max_pool_with_argmax


def _flat_places(node: KernelNode, argmax: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    places = argmax.astype(np.int64)
    if not node.attr("include_batch_in_index"):
        per_image = int(np.prod(inputs.shape[1:]))
        places = places + (np.arange(len(inputs)) * per_image)[:, None, None, None]
    if places.size and (places.min() < 0 or places.max() >= inputs.size):
        raise invalid("MaxPoolGradWithArgmax: an index is outside of the input")
    return places


@kernel("MaxPoolGradWithArgmax")
def _(node: KernelNode) -> Function:
    pooling = _Pooling(node, 4)

    def max_pool_grad(inputs: np.ndarray, grads: np.ndarray, argmax: np.ndarray) -> np.ndarray:
        windows = pooling.windows(inputs.shape)
        windows.check_outputs(grads, "grad")
        windows.check_outputs(argmax, "argmax")
        out = np.zeros(inputs.size, grads.dtype)
        np.add.at(out, _flat_places(node, argmax, inputs).ravel(), grads.ravel())
        return out.reshape(inputs.shape)

    return max_pool_grad


@kernel("MaxPoolGradGradWithArgmax")
def _(node: KernelNode) -> Function:
    return lambda inputs, grads, argmax: grads.ravel()[_flat_places(node, argmax, inputs)]


# -- dilation


class _Dilation:
    """out = the largest of input + filter over the window."""

    def __init__(self, node: KernelNode) -> None:
        self._layout = _Layout(node, 4)
        self._rates = self._layout.inner(node, "rates")

    def windows(self, inputs: np.ndarray, filters: np.ndarray) -> _Windows:
        if filters.ndim != 3 or inputs.ndim != 4 or filters.shape[2] != inputs.shape[3]:
            raise invalid(f"input and filter must have the same depth: {list(inputs.shape)}, {list(filters.shape)}")
        return _Windows(
            inputs.shape,
            filters.shape[:2],
            self._layout.strides,
            self._rates,
            self._layout.padding,
            may_be_empty=True,
        )

    def forward(self, inputs: np.ndarray, filters: np.ndarray) -> np.ndarray:
        windows = self.windows(inputs, filters)
        lowest = np.finfo(inputs.dtype).min if inputs.dtype.kind == "f" else _lowest(inputs.dtype)
        best = np.full((inputs.shape[0], *windows.outputs, inputs.shape[3]), lowest, inputs.dtype)
        for value, inside in self._sums(windows, inputs, filters):
            np.copyto(best, value, where=inside & (value > best))
        return best

    def _sums(self, windows: _Windows, inputs: np.ndarray, filters: np.ndarray) -> Iterator[tuple[Array, Array]]:
        """(input + filter, whether there is an input) for each position in the window."""
        padded = windows.padded(inputs, 0)
        there = windows.padded(np.ones((1, *inputs.shape[1:3], 1), bool), False)
        for position in windows.positions():
            yield windows.view(padded, position) + filters[position], windows.view(there, position)

    def winners(
        self, inputs: np.ndarray, filters: np.ndarray
    ) -> Iterator[tuple[_Windows, tuple[int, ...], np.ndarray]]:
        """(windows, position, mask of the outputs whose largest sum stands first there)."""
        windows, best = self.windows(inputs, filters), self.forward(inputs, filters)
        open_outputs = np.ones(best.shape, bool)
        for position, (value, inside) in zip(windows.positions(), self._sums(windows, inputs, filters), strict=True):
            chosen = (value == best) & inside & open_outputs
            open_outputs ^= chosen
            yield windows, position, chosen


@kernel("Dilation2D")
def _(node: KernelNode) -> Function:
    return _Dilation(node).forward


@kernel("Dilation2DBackpropInput")
def _(node: KernelNode) -> Function:
    dilation = _Dilation(node)

    def by_input(inputs: np.ndarray, filters: np.ndarray, grads: np.ndarray) -> np.ndarray:
        windows = dilation.windows(inputs, filters)
        spread = np.zeros(room(windows.padded_shape, grads.dtype), grads.dtype)
        for _, position, chosen in dilation.winners(inputs, filters):
            windows.view(spread, position)[...] += grads * chosen
        return np.ascontiguousarray(windows.crop(spread))

    return by_input


@kernel("Dilation2DBackpropFilter")
def _(node: KernelNode) -> Function:
    dilation = _Dilation(node)

    def by_filter(inputs: np.ndarray, filters: np.ndarray, grads: np.ndarray) -> np.ndarray:
        out = np.zeros(filters.shape, grads.dtype)
        for _, position, chosen in dilation.winners(inputs, filters):
            out[position] = (grads * chosen).sum((0, 1, 2))
        return out

    return by_filter


# -- patches


@kernel("ExtractVolumePatches")
def _(node: KernelNode) -> Function:
    layout = _Layout(node, 5)
    size = layout.inner(node, "ksizes")

    def extract(inputs: np.ndarray) -> np.ndarray:
        windows = _Windows(inputs.shape, size, layout.strides, [1, 1, 1], layout.padding, may_be_empty=True)
        if 0 in windows.outputs:
            return np.zeros((len(inputs), *windows.outputs, inputs.shape[-1] * int(np.prod(size))), inputs.dtype)
        padded = windows.padded(inputs, 0)
        room((len(inputs), *windows.outputs, inputs.shape[-1] * math.prod(size)), inputs.dtype)
        return np.concatenate([windows.view(padded, position) for position in windows.positions()], -1)

    return extract
