"""Kernels of reductions and scans along axes.

Sums keep their dtype, and those of half precision are formed in float32. Segment reductions live in `segment`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, shape_text
from dtf.run.kernels.math import truncated_quotient
from dtf.run.kernels.segment import highest, lowest
from dtf.run.value_types import Array, ArrayFunction

_reduce_add: ArrayFunction = np.add.reduce
_reduce_multiply: ArrayFunction = np.multiply.reduce
_reduce_maximum: ArrayFunction = np.maximum.reduce
_reduce_minimum: ArrayFunction = np.minimum.reduce
_reduce_and: ArrayFunction = np.logical_and.reduce
_reduce_or: ArrayFunction = np.logical_or.reduce


def _axes(reduction_indices: Array, rank: int) -> tuple[int, ...]:
    """The axes of a reduction as a tuple; an error unless each is in [-rank, rank) and names an axis of its own."""
    listed = reduction_indices.tolist()
    axes = tuple(listed) if isinstance(listed, list) else (listed,)
    if axes and isinstance(axes[0], list):
        axes = tuple(reduction_indices.ravel().tolist())
    for axis in axes:
        if not -rank <= axis < rank:
            raise invalid(f"Invalid reduction dimension ({axis} for input with {rank} dimension(s)")
    if len(axes) > 1:
        positive = sorted(axis % rank for axis in axes)
        for axis, following in zip(positive, positive[1:], strict=False):
            if axis == following:
                raise invalid(f"Invalid reduction arguments: Axes contains duplicate dimension: {axis}")
    return axes


_SHORT_ROW = 256  # elements
_LARGE = 4096  # elements, from which it pays to look how they lie


def _reduction(*ops: str) -> Callable[[ArrayFunction], ArrayFunction]:
    """Registers a reduction given as reduce(x, axis: tuple, keepdims) -> array of x's dtype."""

    def register(reduce: ArrayFunction) -> ArrayFunction:
        @kernel(*ops)
        def factory(node: KernelNode) -> Function:
            keep = node.attr("keep_dims")
            return lambda x, axes: reduce(x, _axes(axes, x.ndim), keep)

        return reduce

    return register


def _is_half(dtype: np.dtype) -> bool:
    """float16 and bfloat16, whose sums are formed in float32."""
    return dtype.itemsize == 2 and dtype.kind not in "iu"


@_reduction("Sum")
def _sum(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if not axis:
        return x
    if _is_half(x.dtype):
        return _reduce_add(x, axis, np.float32, keepdims=keepdims).astype(x.dtype)
    if x.size < _LARGE or not x.flags.c_contiguous:
        return _reduce_add(x, axis, x.dtype, keepdims=keepdims)  # without a dtype numpy would widen small integers
    if _is_tall(x, axis):
        kept = (1,) * len(axis) if keepdims else ()
        return column_sums(x.reshape(math.prod(x.shape[: len(axis)]), -1)).reshape(kept + x.shape[len(axis) :])
    if _is_between(x, axis):
        outer, inner = x.shape[: axis[0]], x.shape[axis[-1] + 1 :]
        total = np.einsum("ijk->ik", x.reshape(math.prod(outer), -1, math.prod(inner)))
        return total.reshape(outer + ((1,) * len(axis) if keepdims else ()) + inner)
    return _reduce_add(x, axis, x.dtype, keepdims=keepdims)


def _is_tall(x: Array, axis: tuple[int, ...]) -> bool:
    """Whether the first axes of an array are summed."""
    return len(axis) < x.ndim and axis == tuple(range(len(axis)))


def _is_between(x: Array, axis: tuple[int, ...]) -> bool:
    """Whether neighbouring axes are summed behind which there is little: numpy then adds short rows one by one, which
    einsum does two to five times as fast, and in the same order.
    """
    return (
        x.dtype.char in "fd"
        and axis[0] > 0
        and axis[-1] < x.ndim - 1
        and axis == tuple(range(axis[0], axis[-1] + 1))
        and math.prod(x.shape[axis[-1] + 1 :]) <= _SHORT_ROW
    )


def column_sums(matrix: np.ndarray) -> np.ndarray:
    """The sums of the columns of a C-contiguous matrix, in its dtype.

    numpy adds row to row, which is slow for short rows: several of them are added as one long row first, and the
    parts of that sum at the end (six times faster for 32 columns). BLAS is no faster, and slow on a busy machine.
    """
    rows, columns = matrix.shape
    together = 1
    while together * columns < 1024 and rows % (2 * together) == 0 and rows > 2 * together:
        together *= 2
    sums = _reduce_add(matrix.reshape(rows // together, together * columns), 0, matrix.dtype)
    return _reduce_add(sums.reshape(together, columns), 0, matrix.dtype) if together > 1 else sums


@_reduction("Mean")
def _mean(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    count = math.prod(x.shape[each] for each in axis)
    dtype = x.dtype
    if dtype.kind in "iu":
        total = _reduce_add(x, axis, np.int64, keepdims=keepdims)
        return (truncated_quotient(total, np.int64(count)) if count else total).astype(dtype)
    if not axis:
        return x
    if _is_half(dtype):
        return (_reduce_add(x, axis, np.float32, keepdims=keepdims) / np.float32(count)).astype(dtype)
    total = _sum(x, axis, keepdims)
    total /= count
    return total


@_reduction("Prod")
def _prod(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if _is_half(x.dtype):
        return _reduce_multiply(x, axis, np.float32, keepdims=keepdims).astype(x.dtype)
    return _reduce_multiply(x, axis, x.dtype, keepdims=keepdims)


@_reduction("Max")
def _max(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.size:
        return _reduce_maximum(x, axis, keepdims=keepdims)
    return _reduce_maximum(x, axis, keepdims=keepdims, initial=_below_all(x.dtype))


@_reduction("Min")
def _min(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    if x.size:
        return _reduce_minimum(x, axis, keepdims=keepdims)
    return _reduce_minimum(x, axis, keepdims=keepdims, initial=_above_all(x.dtype))


def _below_all(dtype: np.dtype) -> Array:
    return lowest(dtype) if dtype.kind in "iu" else dtype.type(-np.inf)


def _above_all(dtype: np.dtype) -> Array:
    return highest(dtype) if dtype.kind in "iu" else dtype.type(np.inf)


@_reduction("All")
def _all(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return _reduce_and(x, axis, keepdims=keepdims)


@_reduction("Any")
def _any(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    return _reduce_or(x, axis, keepdims=keepdims)


@_reduction("EuclideanNorm")
def _euclidean_norm(x: Array, axis: tuple[int, ...], keepdims: bool) -> Array:
    squares = np.square(np.abs(x)) if x.dtype.kind == "c" else np.square(x)
    return np.sqrt(_sum(squares, axis, keepdims)).astype(x.dtype)


def _arg_reduction(op: str, function: ArrayFunction, excluded: float) -> None:
    """Registers ArgMax or ArgMin; `excluded` is what never is the extreme."""

    @kernel(op)
    def factory(node: KernelNode) -> Function:
        dtype = node.attr("output_type").as_numpy_dtype

        def run(x: Array, dimension: Array) -> Array:
            axis = int(dimension)
            if not -x.ndim <= axis < x.ndim:
                raise invalid(f"Expected dimension in the range [{-x.ndim}, {x.ndim}), but got {axis}")
            if x.shape[axis] == 0:
                raise invalid(f"Reduction axis {axis % x.ndim} is empty in shape {shape_text(np.shape(x))}")
            found = np.asarray(function(x, axis))
            if x.dtype.kind not in "iub":
                reached = np.take_along_axis(x, np.expand_dims(found, axis), axis)
                if np.isnan(reached).any():  # numpy finds a NaN, TensorFlow the extreme of the others
                    found = np.asarray(function(np.where(np.isnan(x), x.dtype.type(excluded), x), axis))
            return found.astype(dtype, copy=False)

        return run


_arg_reduction("ArgMax", np.argmax, -np.inf)
_arg_reduction("ArgMin", np.argmin, np.inf)


# -- scans --


def _scan(op: str, accumulate: ArrayFunction, identity: float) -> None:
    """Registers a running reduction; accumulate(x, axis) -> array of x's shape and dtype."""

    @kernel(op)
    def factory(node: KernelNode) -> Function:
        exclusive, reverse = node.attr("exclusive"), node.attr("reverse")

        def run(x: Array, axis: Array) -> Array:
            along = int(axis)
            if not -x.ndim <= along < x.ndim:
                raise invalid(f"ScanOp: Expected scan axis in the range [{-x.ndim}, {x.ndim}), but got {along}")
            if reverse:
                x = np.flip(x, along)
            result = _shift_along(accumulate(x, along), along, identity) if exclusive else accumulate(x, along)
            return np.flip(result, along) if reverse else result

        return run


def _shift_along(x: np.ndarray, axis: int, first: float) -> np.ndarray:
    """x moved by one along `axis`: the last entry falls out, `first` comes in."""
    moved = np.empty_like(x)
    source, target = np.moveaxis(x, axis, 0), np.moveaxis(moved, axis, 0)
    target[:1] = first
    target[1:] = source[:-1]
    return moved


def _running_logsumexp(x: np.ndarray, axis: int) -> np.ndarray:
    if x.dtype.kind == "f":
        return np.logaddexp.accumulate(x, axis)
    return np.logaddexp.accumulate(x.astype(np.float32), axis).astype(x.dtype)  # bfloat16


_scan("Cumsum", lambda x, axis: np.add.accumulate(x, axis, x.dtype), 0)
_scan("Cumprod", lambda x, axis: np.multiply.accumulate(x, axis, x.dtype), 1)
_scan("CumulativeLogsumexp", _running_logsumexp, -math.inf)
