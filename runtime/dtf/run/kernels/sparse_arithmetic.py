"""Kernels that compute with sparse tensors element by element or reduce them.

Sums, maxima and products, slices and splits, reductions and softmax. Conversion, order and matrix products belong to
`sparse`. A sparse tensor is three values: indices [n, rank] int64, values [n], dense shape [rank].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode
from dtf.run.kernels.arguments import invalid, room, shape_text, vector
from dtf.run.kernels.sparse_components import check_dimensions, check_inside, reduced_axes, sparse_kernel
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import errors

# -- two sparse tensors --


def merge_indices(first: np.ndarray, second: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The union of the rows of two index matrices in row-major order, and where the rows of each are in it."""
    if not first.shape[1]:
        union = (first if len(first) else second)[:1]
        return union, np.zeros(len(first), np.int64), np.zeros(len(second), np.int64)
    union, places = np.unique(np.concatenate([first, second]), axis=0, return_inverse=True)
    places = places.reshape(-1)
    return union, places[: len(first)], places[len(first) :]


def check_same_shape(first: Array, second: Array) -> None:
    """Raises InvalidArgumentError unless two dense shapes are the same."""
    if len(first) != len(second):
        raise invalid(f"Operands do not have the same ranks; got shapes: {shape_text(first)} and {shape_text(second)}")
    for axis, (left, right) in enumerate(zip(first, second, strict=True)):
        if left != right:
            raise invalid(f"Operands' shapes do not match: got {left} and {right} for dimension {axis}")


@sparse_kernel("SparseAdd")
def _(node: KernelNode) -> Function:
    def add(
        a_indices: np.ndarray,
        a_values: np.ndarray,
        a_shape: np.ndarray,
        b_indices: np.ndarray,
        b_values: np.ndarray,
        b_shape: np.ndarray,
        threshold: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        check_same_shape(a_shape, b_shape)
        union, of_a, of_b = merge_indices(a_indices, b_indices)
        sums = np.zeros(len(union), a_values.dtype)
        sums[of_a] = a_values
        sums[of_b] += b_values
        in_both = np.zeros(len(union), bool)
        in_both[of_b] = True
        in_a = np.zeros(len(union), bool)
        in_a[of_a] = True
        # Only what was added up can become too small to be kept.
        kept = ~(in_both & in_a) | (np.abs(sums) >= threshold)
        return union[kept], sums[kept], a_shape

    return add


@sparse_kernel("SparseAddGrad")
def _(node: KernelNode) -> Function:
    def add_grad(
        grad: np.ndarray, a_indices: np.ndarray, b_indices: np.ndarray, sum_indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        _check_row_gradient(grad, sum_indices, "sum_indices")
        both = np.concatenate([a_indices, b_indices])
        _, places, of_rows = merge_indices(sum_indices, both)
        by_place = np.zeros(max([*places, *of_rows], default=-1) + 1, grad.dtype)
        by_place[places] = grad
        flowed = by_place[of_rows]
        return flowed[: len(a_indices)], flowed[len(a_indices) :]

    return add_grad


def _check_row_gradient(grad: np.ndarray, rows: np.ndarray, name: str) -> None:
    vector(grad, "Input backprop_val_grad")
    if len(grad) != len(rows):
        raise invalid(
            f"# elements of backprop_val_grad and # rows of {name} should match (#nnz): {len(grad)} vs. {len(rows)}"
        )


def _of_two(op: str, function: ArrayFunction) -> None:
    @sparse_kernel(op)
    def factory(node: KernelNode) -> Function:
        def combine(
            a_indices: np.ndarray,
            a_values: np.ndarray,
            a_shape: np.ndarray,
            b_indices: np.ndarray,
            b_values: np.ndarray,
            b_shape: np.ndarray,
        ) -> tuple[np.ndarray, np.ndarray]:
            check_same_shape(a_shape, b_shape)
            check_inside(a_indices, a_shape)
            check_inside(b_indices, b_shape)
            union, of_a, of_b = merge_indices(a_indices, b_indices)
            left, right = np.zeros((2, len(union)), a_values.dtype)
            left[of_a], right[of_b] = a_values, b_values
            return union, function(left, right)

        return combine


_of_two("SparseSparseMaximum", np.maximum)
_of_two("SparseSparseMinimum", np.minimum)


# -- a sparse and a dense tensor --


def _with_dense(op: str, function: ArrayFunction) -> None:
    @sparse_kernel(op)
    def factory(node: KernelNode) -> Function:
        def combine(indices: np.ndarray, values: np.ndarray, shape: np.ndarray, dense: np.ndarray) -> np.ndarray:
            try:
                spread = np.broadcast_to(dense, tuple(shape))
            except ValueError:
                raise invalid(
                    "SparseDenseBinaryOpShared broadcasts dense to sparse only; got incompatible shapes: "
                    f"{shape_text(shape)} vs. {shape_text(np.shape(dense))}"
                ) from None
            if len(indices) and ((indices < 0) | (indices >= shape)).any():
                raise invalid("Provided indices are out-of-bounds w.r.t. dense side with broadcasted shape")
            return function(values, spread[tuple(indices.T)]).astype(values.dtype, copy=False)

        return combine


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if not np.all(y):
        raise invalid("SparseDenseCwiseDiv cannot divide by zero, but the dense tensor contains zero")
    if x.dtype.kind not in "iu":
        return np.true_divide(x, y)
    return np.floor_divide(np.subtract(x, np.fmod(x, y)), y)


_with_dense("SparseDenseCwiseAdd", np.add)
_with_dense("SparseDenseCwiseMul", np.multiply)
_with_dense("SparseDenseCwiseDiv", _quotient)


# -- parts --


@sparse_kernel("SparseSlice")
def _(node: KernelNode) -> Function:
    def slice_(
        indices: np.ndarray, values: np.ndarray, shape: np.ndarray, start: np.ndarray, size: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not len(start) == len(size) == len(shape):
            raise invalid(f"Expected start and size of {len(shape)} elements, got {len(start)} and {len(size)}")
        check_dimensions(shape)
        if len(size) and size.min() < 0:
            raise invalid(f"Expected a non-negative size, got {size.min()}")
        kept = ((indices >= start) & (indices < start + size)).all(axis=1)
        return indices[kept] - start, values[kept], np.maximum(np.minimum(size, shape - start), 0)

    return slice_


@sparse_kernel("SparseSliceGrad")
def _(node: KernelNode) -> Function:
    def slice_grad(grad: np.ndarray, indices: np.ndarray, start: np.ndarray, output_indices: np.ndarray) -> np.ndarray:
        _check_row_gradient(grad, output_indices, "output_indices")
        if len(vector(start, "The input_start")) != indices.shape[1]:
            raise invalid(
                f"Expected input_start to be a vector of length {indices.shape[1]} but got length {len(start)}"
            )
        if len(output_indices) > len(indices):
            raise invalid(
                f"# rows of output_indices should be not greater than of input_indices, got {len(output_indices)} "
                f"and {len(indices)}"
            )
        _, places, of_output = merge_indices(indices, output_indices + start)
        if not np.isin(of_output, places).all():
            raise errors.InternalError.of("Elements of backprop_val_grad aren't all propagated")
        by_place = np.zeros(max([*places, *of_output], default=-1) + 1, grad.dtype)
        by_place[of_output] = grad
        return by_place[places]

    return slice_grad


@sparse_kernel("SparseSplit")
def _(node: KernelNode) -> Function:
    count = node.attr("num_split")

    def split(axis: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> list[np.ndarray]:
        rank, at = len(shape), int(axis)
        if not -rank <= at < rank:
            raise invalid(f"Input axis should be in range [{-rank}, {rank}), got {at}")
        check_inside(indices, shape)
        length = int(shape[at])
        if not 1 <= count <= length:
            raise invalid(
                f"Input num_split should be between 1 and the splitting dimension size ({length}), got {count}"
            )
        size, longer = divmod(length, count)  # the first `longer` parts have one more
        ends = np.cumsum([size + (part < longer) for part in range(count)])
        parts = []
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            kept = (indices[:, at] >= start) & (indices[:, at] < end)
            moved, part_shape = indices[kept], shape.copy()
            moved[:, at] -= start
            part_shape[at] = end - start
            parts.append((moved, values[kept], part_shape))
        return [each for kind in zip(*parts, strict=True) for each in kind]

    return split


# -- reductions --


def reduced_groups(
    indices: np.ndarray, shape: np.ndarray, axes: Array | Sequence[int]
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """The axes that a reduction keeps, the distinct index rows along them, and which of those each element is in."""
    check_dimensions(shape)
    rank = len(shape)
    reduced = reduced_axes(axes, rank)
    kept = [axis for axis in range(rank) if axis not in reduced]
    if not kept:
        return kept, np.zeros((1 if len(indices) else 0, 0), np.int64), np.zeros(len(indices), np.int64)
    rows, places = np.unique(indices[:, kept], axis=0, return_inverse=True)
    return kept, rows, places.reshape(-1)


def _reduction(dense_op: str | None, sparse_op: str, function: np.ufunc) -> None:
    def groups(
        keep_dims: np.ndarray, indices: np.ndarray, values: np.ndarray, shape: np.ndarray, axes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kept, rows, places = reduced_groups(indices, shape, axes)
        out = np.zeros(len(rows), values.dtype)
        first_of = np.zeros(len(rows), np.int64)
        first_of[places[::-1]] = np.arange(len(places))[::-1]
        out[:] = values[first_of]
        others = np.ones(len(values), bool)
        others[first_of] = False
        function.at(out, places[others], values[others])
        if keep_dims:
            whole = np.zeros((len(rows), len(shape)), np.int64)
            whole[:, kept] = rows
            rows = whole
            out_shape = np.where(np.isin(np.arange(len(shape)), kept), shape, 1)
        else:
            out_shape = shape[kept]
        return rows, out, out_shape.astype(np.int64)

    @sparse_kernel(sparse_op)
    def sparse_factory(node: KernelNode) -> Function:
        keep_dims = node.attr("keep_dims")
        return lambda *arguments: groups(keep_dims, *arguments)

    if dense_op is None:
        return

    @sparse_kernel(dense_op)
    def dense_factory(node: KernelNode) -> Function:
        keep_dims = node.attr("keep_dims")

        def reduce(*arguments: np.ndarray) -> np.ndarray:
            rows, values, shape = groups(keep_dims, *arguments)
            out = np.zeros(room(tuple(shape), values.dtype), values.dtype)
            out[tuple(rows.T)] = values if len(shape) else values[:1].sum(dtype=values.dtype)
            return out

        return reduce


_reduction("SparseReduceMax", "SparseReduceMaxSparse", np.maximum)
_reduction(None, "SparseReduceSumSparse", np.add)


@sparse_kernel("SparseSoftmax")
def _(node: KernelNode) -> Function:
    def softmax(indices: np.ndarray, values: np.ndarray, shape: np.ndarray) -> np.ndarray:
        if len(shape) < 2:
            raise invalid(f"Input should have rank >= 2, but received shape: {shape_text(shape)}")
        _, rows, places = reduced_groups(indices, shape, [len(shape) - 1])
        highest = np.full(len(rows), -math.inf, values.dtype)
        np.maximum.at(highest, places, values)
        powers = np.exp(values - highest[places])
        totals = np.zeros(len(rows), powers.dtype)
        np.add.at(totals, places, powers)
        return (powers / totals[places]).astype(values.dtype, copy=False)

    return softmax
