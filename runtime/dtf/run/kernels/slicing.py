"""Kernels of Slice and StridedSlice, its gradient and its assignment to a value.

What a slice specification means is `wire.slicing`; static shapes are `build.ops.slicing`; slices of variables `state`.

Strings are object arrays; indexing such an array with integers alone gives a bare `bytes`, so every
index here ends with an Ellipsis, which keeps the array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import dimensions, invalid, numpy_dtype, room, shape_text, vector, zero_of
from dtf.run.state.resources import Variable
from dtf.run.value_types import Array, Index
from dtf.wire.slicing import slice_index, sliced_shape

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


# -- slicing and padding


@kernel("Slice")
def _(node: KernelNode) -> Function:
    def slice_(value: np.ndarray, begin: np.ndarray, size: np.ndarray) -> np.ndarray:
        shape = np.shape(value)
        begins, sizes = vector(begin, "begin"), vector(size, "size")
        if not len(begins) == len(sizes) == len(shape):
            raise invalid(
                "Expected begin and size arguments to be 1-D tensors of size "
                f"{len(shape)}, but got shapes {shape_text(begin.shape)} and {shape_text(size.shape)} instead."
            )
        index = []
        for i, (start, length, dim) in enumerate(zip(begins, sizes, shape, strict=True)):
            if not 0 <= start <= dim:
                raise invalid(f"Expected begin[{i}] in [0, {dim}], but got {start}")
            length = dim - start if length == -1 else length
            if not 0 <= length <= dim - start:
                raise invalid(f"Expected size[{i}] in [0, {dim - start}], but got {length}")
            index.append(slice(start, start + length))
        return value[tuple(index) + (...,)]

    return slice_


def _index_maker(node: KernelNode) -> Callable[[Sequence[int], Array, Array, Array], Index]:
    """The function from a shape and the three index tensors to the numpy index, with the node's masks."""
    masks = {mask: node.attr(mask) for mask in _MASKS}

    def make(shape: Sequence[int], begin: np.ndarray, end: np.ndarray, strides: np.ndarray) -> Index:
        bounds = vector(begin, "begin"), vector(end, "end"), vector(strides, "strides")
        try:
            index = slice_index(len(shape), *bounds, **masks)
            sliced_shape(shape, index)
        except ValueError as error:
            raise invalid(str(error)) from None
        return (*index, ...)

    return make


@kernel("StridedSlice")
def _(node: KernelNode) -> Function:
    index = _index_maker(node)
    return lambda value, begin, end, strides: value[index(np.shape(value), begin, end, strides)]


@kernel("StridedSliceGrad")
def _(node: KernelNode) -> Function:
    index, dtype = _index_maker(node), numpy_dtype(node)

    def strided_slice_grad(
        shape: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, gradient: np.ndarray
    ) -> np.ndarray:
        out = np.full(room(dimensions(shape), dtype), zero_of(dtype), dtype)
        at = index(out.shape, begin, end, strides)
        if out[at].shape != np.shape(gradient):
            raise invalid(f"shape of dy was {shape_text(np.shape(gradient))} instead of {shape_text(out[at].shape)}")
        out[at] = gradient
        return out

    return strided_slice_grad


@kernel("StridedSliceAssign")
def _(node: KernelNode) -> Function:
    index = _index_maker(node)

    def strided_slice_assign(
        variable: Variable, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, value: np.ndarray
    ) -> Variable:
        with variable.lock:
            array = variable.writable()
            at = index(array.shape, begin, end, strides)
            if array[at].size:
                array[at] = value
        return variable

    return strided_slice_assign


@kernel("TensorStridedSliceUpdate")
def _(node: KernelNode) -> Function:
    index = _index_maker(node)

    def tensor_strided_slice_update(
        tensor: np.ndarray, begin: np.ndarray, end: np.ndarray, strides: np.ndarray, value: np.ndarray
    ) -> np.ndarray:
        out = np.array(tensor)
        at = index(out.shape, begin, end, strides)
        if out[at].size:
            out[at] = value
        return out

    return tensor_strided_slice_update
