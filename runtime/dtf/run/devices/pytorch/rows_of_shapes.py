"""Shapes, joining, splitting, slicing and moving elements about. Views where torch gives views."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dtf.run.devices.pytorch.arrays import COMPUTED, TorchArray, dtype_of
from dtf.run.devices.pytorch.rows import TensorFunction, Unsuited, computes, device_of
from dtf.run.kernels import KernelNode
from dtf.run.value_types import Index
from dtf.wire.slicing import slice_index

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


# -- shapes of tensors; results in the host's memory


def _sizes(value: Tensor | np.ndarray | TorchArray) -> tuple[int, ...]:
    return tuple(value.shape)


@computes("Shape")
def _(node: KernelNode) -> TensorFunction:
    dtype = node.attr("out_type").as_numpy_dtype
    return lambda value: np.array(_sizes(value), dtype)


@computes("ShapeN")
def _(node: KernelNode) -> TensorFunction:
    dtype = node.attr("out_type").as_numpy_dtype
    return lambda *values: [np.array(_sizes(value), dtype) for value in values]


@computes("Size")
def _(node: KernelNode) -> TensorFunction:
    dtype = node.attr("out_type").as_numpy_dtype
    return lambda value: dtype(math.prod(_sizes(value)))


@computes("Rank")
def _(node: KernelNode) -> TensorFunction:
    return lambda value: np.int32(len(_sizes(value)))


@computes("Reshape")
def _(node: KernelNode) -> TensorFunction:
    def reshape(value: Tensor, shape: np.ndarray) -> Tensor:
        dims = shape.tolist()
        if shape.ndim != 1 or min(dims, default=0) < -1:
            raise Unsuited
        return value.reshape(dims)

    return reshape


@computes("EnsureShape")
def _(node: KernelNode) -> TensorFunction:
    expected = node.attr("shape")

    def ensure_shape(value: Tensor) -> Tensor:
        if not expected.is_compatible_with(tuple(value.shape)):
            raise Unsuited
        return value

    return ensure_shape


@computes("Squeeze")
def _(node: KernelNode) -> TensorFunction:
    axes = tuple(node.attr("squeeze_dims"))

    def squeeze(value: Tensor) -> Tensor:
        if any(value.shape[axis] != 1 for axis in axes):
            raise Unsuited
        return torch.squeeze(value, axes) if axes else torch.squeeze(value)

    return squeeze


@computes("ExpandDims")
def _(node: KernelNode) -> TensorFunction:
    return lambda value, axis: torch.unsqueeze(value, int(np.reshape(axis, ())))


@computes("Fill")
def _(node: KernelNode) -> TensorFunction:
    def fill(dims: np.ndarray, value: Tensor) -> Tensor:
        if value.dim() or dims.ndim != 1:
            raise Unsuited
        return value.expand(dims.tolist()).contiguous()

    return fill


@computes("BroadcastTo")
def _(node: KernelNode) -> TensorFunction:
    def broadcast_to(value: Tensor, shape: np.ndarray) -> Tensor:
        if shape.ndim != 1 or min(shape.tolist(), default=0) < 0:
            raise Unsuited
        return value.expand(shape.tolist())

    return broadcast_to


# -- joining and splitting


@computes("Concat")
def _(node: KernelNode) -> TensorFunction:
    return lambda axis, *values: _joined(values, axis)


@computes("ConcatV2")
def _(node: KernelNode) -> TensorFunction:
    return lambda *values_and_axis: _joined(values_and_axis[:-1], values_and_axis[-1])


def _joined(values: Sequence[Tensor], axis: np.ndarray) -> Tensor:
    if axis.size != 1 or any(value.dim() != values[0].dim() for value in values) or not values[0].dim():
        raise Unsuited  # torch ignores an empty vector among others
    return torch.cat(list(values), int(axis.item()))


@computes("_ParallelConcatStart", attr="dtype")
def _(node: KernelNode) -> TensorFunction:
    shape, dtype, device = tuple(node.attr("shape").as_list()), dtype_of(node.attr("dtype")), device_of(node)
    return lambda: torch.zeros(shape, dtype=dtype, device=device)


@computes("_ParallelConcatUpdate")
def _(node: KernelNode) -> TensorFunction:
    row = node.attr("loc")

    def update(whole: Tensor, part: Tensor) -> Tensor:
        if not 0 <= row < whole.shape[0]:
            raise Unsuited
        whole[row] = part[0]  # in place on purpose, as on the CPU
        return whole

    return update


@computes("Pack")
def _(node: KernelNode) -> TensorFunction:
    axis = node.attr("axis")
    return lambda *values: torch.stack(values, axis)


@computes("Unpack")
def _(node: KernelNode) -> TensorFunction:
    axis, count = node.attr("axis"), node.attr("num")

    def unpack(value: Tensor) -> Sequence[Tensor]:
        if value.shape[axis] != count:
            raise Unsuited
        return torch.unbind(value, axis)

    return unpack


@computes("Split")
def _(node: KernelNode) -> TensorFunction:
    count = node.attr("num_split")

    def split(axis: np.ndarray, value: Tensor) -> Sequence[Tensor]:
        position = int(axis)
        size = value.shape[position]
        if size % count or not size:
            raise Unsuited
        return torch.split(value, size // count, position)

    return split


@computes("SplitV")
def _(node: KernelNode) -> TensorFunction:
    count = node.attr("num_split")

    def split_v(value: Tensor, size_splits: np.ndarray, axis: np.ndarray) -> Sequence[Tensor]:
        position, sizes = int(axis.item()), [int(size) for size in size_splits.tolist()]
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = value.shape[position] - sum(sizes) - 1
        if len(sizes) != count or min(sizes, default=0) < 0:
            raise Unsuited
        return torch.split(value, sizes, position)

    return split_v


@computes("Pad", "PadV2")
def _(node: KernelNode) -> TensorFunction:
    def pad(value: Tensor, paddings: np.ndarray, constant: Tensor | None = None) -> Tensor:
        if paddings.shape != (value.dim(), 2) or paddings.size and paddings.min() < 0:
            raise Unsuited
        pairs = paddings.tolist()
        around = [size for before_and_after in reversed(pairs) for size in before_and_after]
        if constant is None:
            return functional.pad(value, around)
        shape = [size + before + after for size, (before, after) in zip(value.shape, pairs, strict=True)]
        out = constant.expand(shape).clone()
        out[tuple(slice(before, before + size) for size, (before, _) in zip(value.shape, pairs, strict=True))] = value
        return out

    return pad


@computes("Tile")
def _(node: KernelNode) -> TensorFunction:
    def tile(value: Tensor, multiples: np.ndarray) -> Tensor:
        if multiples.shape != (value.dim(),) or multiples.size and multiples.min() < 0:
            raise Unsuited
        return value.repeat(multiples.tolist()) if value.dim() else value

    return tile


# -- slicing


@computes("Slice")
def _(node: KernelNode) -> TensorFunction:
    def slice_(value: Tensor, begin: np.ndarray, size: np.ndarray) -> Tensor:
        if begin.shape != (value.dim(),) or size.shape != begin.shape:
            raise Unsuited
        for axis, (start, length) in enumerate(zip(begin.tolist(), size.tolist(), strict=True)):
            whole = value.shape[axis]
            length = whole - start if length == -1 else length
            if not 0 <= start <= whole or not 0 <= length <= whole - start:
                raise Unsuited
            value = value.narrow(axis, start, length)
        return value

    return slice_


def _sliced(value: Tensor, index: Index) -> Tensor:
    """value[index], where torch has no steps backwards: these axes are turned first."""
    turned: list[int] = []
    axis, ahead = 0, []
    for part in index:
        if isinstance(part, slice):
            start, stop, step = part.indices(value.shape[axis])
            if step < 0:
                count = len(range(start, stop, step))
                turned.append(axis)
                first = value.shape[axis] - 1 - start
                part = slice(first, first + (count - 1) * -step + 1 if count else first, -step)
            axis += 1
        elif isinstance(part, int):
            axis += 1
        elif part is not None:
            raise Unsuited
        ahead.append(part)
    return (torch.flip(value, turned) if turned else value)[tuple(ahead)]


def _index(node: KernelNode) -> Callable[[int, np.ndarray, np.ndarray, np.ndarray], Index]:
    masks = {mask: node.attr(mask) for mask in _MASKS}

    def make(rank: int, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> Index:
        index: Index = slice_index(rank, begin.tolist(), end.tolist(), strides.tolist(), **masks)
        return index

    return make


def _check(shape: Sequence[int], index: Index) -> None:
    """Refuses single positions that are outside."""
    axis = 0
    for part in index:
        if part is None:
            continue
        if isinstance(part, int) and not -shape[axis] <= part < shape[axis]:
            raise Unsuited
        axis += 1


@computes("StridedSlice")
def _(node: KernelNode) -> TensorFunction:
    index_of = _index(node)

    def strided_slice(value: Tensor, begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> Tensor:
        index = index_of(value.dim(), begin, end, strides)
        _check(value.shape, index)
        return _sliced(value, index)

    return strided_slice


@computes("StridedSliceGrad")
def _(node: KernelNode) -> TensorFunction:
    index_of = _index(node)

    def strided_slice_grad(
        shape: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, gradient: Tensor
    ) -> Tensor:
        sizes = shape.tolist()
        index = index_of(len(sizes), begin, end, strides)
        _check(sizes, index)
        if any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in index):
            raise Unsuited
        out = gradient.new_zeros(sizes)
        at = out[tuple(index)]
        if at.shape != gradient.shape:
            raise Unsuited
        at.copy_(gradient)
        return out

    return strided_slice_grad


# -- moving elements about


@computes("Transpose")
def _(node: KernelNode) -> TensorFunction:
    return lambda value, perm: value.permute(_permutation(value, perm))


@computes("ConjugateTranspose")
def _(node: KernelNode) -> TensorFunction:
    return lambda value, perm: torch.conj_physical(value.permute(_permutation(value, perm)))


def _permutation(value: Tensor, perm: np.ndarray) -> list[int]:
    axes: list[int] = perm.tolist()
    if perm.ndim != 1 or len(axes) != value.dim():
        raise Unsuited
    return axes


@computes("ReverseV2")
def _(node: KernelNode) -> TensorFunction:
    def reverse(value: Tensor, axis: np.ndarray) -> Tensor:
        if axis.ndim != 1 or not value.dim():
            raise Unsuited
        return torch.flip(value, axis.tolist())

    return reverse


@computes("Reverse")
def _(node: KernelNode) -> TensorFunction:
    def reverse(value: Tensor, dims: np.ndarray | Tensor) -> Tensor:
        if not isinstance(dims, np.ndarray) or dims.shape != (value.dim(),):
            raise Unsuited
        return torch.flip(value, np.flatnonzero(dims).tolist())

    return reverse


@computes("Roll")
def _(node: KernelNode) -> TensorFunction:
    def roll(value: Tensor, shift: np.ndarray, axis: np.ndarray) -> Tensor:
        if shift.shape != axis.shape or shift.ndim > 1 or not value.dim():
            raise Unsuited
        return torch.roll(value, shift.reshape(-1).tolist(), axis.reshape(-1).tolist())

    return roll


@computes("Select", types=COMPUTED)
def _(node: KernelNode) -> TensorFunction:
    def select(condition: Tensor, then: Tensor, otherwise: Tensor) -> Tensor:
        if then.shape != otherwise.shape:
            raise Unsuited
        if condition.shape == then.shape[:1] and then.dim() > 1:
            condition = condition.reshape(-1, *[1] * (then.dim() - 1))
        elif condition.dim() and condition.shape != then.shape:
            raise Unsuited
        return torch.where(condition, then, otherwise)

    return select


@computes("SelectV2")
def _(node: KernelNode) -> TensorFunction:
    return torch.where


@computes("Where")
def _(node: KernelNode) -> TensorFunction:
    def where(condition: Tensor) -> Tensor:
        if not condition.dim():
            raise Unsuited
        return torch.nonzero(condition)

    return where
