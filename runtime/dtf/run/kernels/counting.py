"""Kernels that count: how often each whole number occurs, and into which of several ranges numbers fall.

Numbers to count come dense, in the rows of a ragged tensor or in those of a sparse one.
"""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype, room
from dtf.run.kernels.sparse_components import check_inside, sparse_kernel
from dtf.run.value_types import Array


@kernel("Bincount")
def _bincount(node: KernelNode) -> Function:
    dtype = node.attr("T").as_numpy_dtype

    def run(values: Array, size: Array, weights: Array) -> np.ndarray:
        bins = int(size)
        if bins < 0:
            raise invalid(f"size ({bins}) must be non-negative")
        values = np.reshape(values, -1)
        if values.size and values.min() < 0:
            raise invalid("Input arr must be non-negative!")
        room((bins,), dtype)
        counted = values < bins  # values from `size` on are ignored
        if not weights.size:
            return count_each(values[counted], bins).astype(dtype)
        if weights.size != values.size:
            raise invalid("If weights are passed, they must have the same shape as arr")
        result = np.zeros(bins, dtype)
        _add_at(result, (values[counted],), np.reshape(weights, -1)[counted])
        return result

    return run


@kernel("Bucketize")
def _bucketize(node: KernelNode) -> Function:
    boundaries = np.asarray(node.attr("boundaries"), np.float32)
    if (boundaries[1:] < boundaries[:-1]).any():
        raise invalid("Expected sorted boundaries")
    return lambda x: np.searchsorted(boundaries, x, side="right").astype(np.int32)


@kernel("HistogramFixedWidth")
def _histogram_fixed_width(node: KernelNode) -> Function:
    dtype = node.attr("dtype").as_numpy_dtype

    def run(values: Array, value_range: Array, nbins: Array) -> np.ndarray:
        low, high = value_range.tolist()
        bins = int(nbins)
        if bins <= 0:
            raise invalid(f"nbins should be a positive number, but got '{bins}'")
        if low >= high:
            raise invalid(f"value_range should satisfy value_range[0] < value_range[1], but got '[{low}, {high}]'")
        position = (np.reshape(values, -1).astype(np.float64) - low) / (high - low) * bins
        room((bins,), np.int64)
        return count_each(np.clip(position, 0, bins - 1).astype(np.int64), bins).astype(dtype)

    return run


def _count_rows(
    node: KernelNode, rows: np.ndarray, row_count: int, values: np.ndarray, size: Array, weights: np.ndarray
) -> np.ndarray:
    """[row_count, size]: how often, or with what sum of weights, each value occurs in each row; or whether it does."""
    dtype, bins = numpy_dtype(node), int(size)
    if bins < 0:
        raise invalid(f"size ({bins}) must be non-negative")
    if values.size and values.min() < 0:
        raise invalid("Input arr must be non-negative!")
    if weights.size not in (0, values.size):
        raise _wrong_weights(weights)
    room((row_count, bins), dtype)
    counted = values < bins
    places = rows[counted], values[counted]
    if node.attr("binary_output"):
        marks = np.zeros((row_count, bins), dtype)
        marks[places] = 1
        return marks
    totals = np.zeros((row_count, bins), dtype)
    _add_at(totals, places, weights.reshape(-1)[counted] if weights.size else np.ones(len(places[0]), dtype))
    return totals


_AT_ONCE = 1 << 20
"""numpy counts and adds at places under Python's lock: more elements are taken in pieces, so other threads run."""


def count_each(values: np.ndarray, bins: int) -> np.ndarray:
    """How often each of 0 ... bins - 1 occurs. `values`: int64 within these."""
    if max(values.size, bins) <= _AT_ONCE:
        return np.bincount(values, minlength=bins)
    totals = np.zeros(bins, np.int64)
    for begin in range(0, values.size, _AT_ONCE):
        found, times = np.unique(values[begin : begin + _AT_ONCE], return_counts=True)
        totals[found] += times
    return totals


def _add_at(totals: np.ndarray, places: tuple[np.ndarray, ...], weights: np.ndarray) -> None:
    """totals[places] += weights, where a place may occur more than once."""
    for begin in range(0, len(weights), _AT_ONCE):
        piece = slice(begin, begin + _AT_ONCE)
        np.add.at(totals, tuple(each[piece] for each in places), weights[piece])


def _wrong_weights(weights: np.ndarray) -> Exception:
    return invalid(
        f"`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which case it acts as all weights "
        f"equal to 1. Received {list(weights.shape)}"
    )


@kernel("DenseBincount")
def _dense_bincount(node: KernelNode) -> Function:
    def run(values: Array, size: Array, weights: Array) -> np.ndarray:
        if np.ndim(values) not in (1, 2):
            raise invalid("Shape must be at most rank 2 but is rank " + str(np.ndim(values)))
        if weights.size and weights.shape != values.shape:
            raise _wrong_weights(weights)
        matrix = np.atleast_2d(values)
        rows = np.repeat(np.arange(len(matrix)), matrix.shape[1])
        result = _count_rows(node, rows, len(matrix), matrix.reshape(-1), size, weights)
        return result[0] if np.ndim(values) == 1 else result

    return run


@kernel("RaggedBincount")
def _ragged_bincount(node: KernelNode) -> Function:
    def run(splits: Array, values: Array, size: Array, weights: Array) -> np.ndarray:
        splits, values = np.ravel(splits), np.ravel(values)
        if not splits.size or splits[0] != 0:
            raise invalid("Splits must start with 0")
        if splits[-1] != values.size:
            raise invalid(f"Splits must end with the number of values, got {splits[-1]} instead of {values.size}")
        rows = np.repeat(np.arange(len(splits) - 1), np.diff(splits))
        return _count_rows(node, rows, len(splits) - 1, values, size, weights)

    return run


@sparse_kernel("SparseBincount")
def _sparse_bincount(node: KernelNode) -> Function:
    def run(indices: Array, values: Array, shape: Array, size: Array, weights: Array) -> np.ndarray:
        check_inside(indices, shape)
        if len(shape) == 1:
            return _count_rows(node, np.zeros(len(values), np.int64), 1, values, size, weights)[0]
        return _count_rows(node, indices[:, 0], int(shape[0]), values, size, weights)

    return run
