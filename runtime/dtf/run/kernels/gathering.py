"""Kernels of the ops that read or write at indices: gather, scatter, stitch and partition.

Also owns `scatter_rows` and `scatter_nd`, with which variables, segments and sparse tensors are updated. Static shapes:
`build.ops.gathering`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import (
    check_indices,
    dimensions,
    index_text,
    invalid,
    numpy_dtype,
    room,
    scalar_axis,
    shape_text,
    zero_of,
)
from dtf.run.state.resources import Variable
from dtf.run.value_types import Array
from dtf.wire.strings import filled

# From how many elements on rows are grouped by a sort; how many rows may be looked up in a table; measured.
_WIDE_ROW = 256
_LOOKED_UP_MAX = 1 << 20
_ROUNDS_MAX = 4


def scatter_rows(function: np.ufunc, out: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    """Combines `updates[i]` into `out[rows[i]]` in place; a row that occurs often takes every update.

    Args:
      function: np.add, np.subtract, np.multiply, np.maximum ...
      out: [n, ...].
      rows: integers [k], all within [0, n).
      updates: [k, ...].

    Rows that are all different are taken out, combined and put back. Where some occur again, that is done in rounds, of
    which each counts what is left of every row once, in order. When most are the same, narrow rows are spread one
    element after the other, for ufunc.at has a fast loop for one dimension only, and wide ones are grouped by a sort.
    """
    if rows.size == 0:
        return
    if out.ndim == 1:
        function.at(out, rows, updates)
        return
    for _ in range(_ROUNDS_MAX):
        firsts = _first_occurrences(rows, len(out))
        again = np.flatnonzero(firsts != np.arange(len(rows)))
        if len(again) > len(rows) // 2:
            break
        taken = out.take(rows, axis=0, mode="clip")
        function(taken, updates, out=taken, casting="unsafe")
        if len(again):
            taken[again] = taken[firsts[again]]  # whichever is put last, it is the first occurrence's
        put_rows(out, rows, taken)
        if not len(again):
            return
        rows, updates = rows[again], updates[again]
    width = math.prod(out.shape[1:])
    if width < _WIDE_ROW and out.flags.c_contiguous:
        positions = rows.astype(np.int64, copy=False)[:, None] * width + np.arange(width)
        function.at(out.reshape(-1), positions.reshape(-1), updates.reshape(-1))
        return
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_rows[1:] != sorted_rows[:-1])))
    # Subtracting or dividing several times is subtracting or dividing the sum or the product.
    inverses: dict[np.ufunc, np.ufunc] = {np.subtract: np.add, np.true_divide: np.multiply}
    group = inverses.get(function, function)
    groups = group.reduceat(updates[order], starts, axis=0, dtype=updates.dtype)
    distinct = sorted_rows[starts]
    out[distinct] = function(out[distinct], groups)


def put_rows(out: np.ndarray, rows: np.ndarray, values: np.ndarray) -> None:
    """out[rows] = values, in place; values: [k, ...] of the dtype of `out`.

    Rows of a contiguous array are put as one element each, which is twice as fast.
    """
    size = out.itemsize * math.prod(out.shape[1:])
    if size and out.flags.c_contiguous and not out.dtype.hasobject and values.dtype == out.dtype:
        whole = np.dtype((np.void, size))
        flat = np.ascontiguousarray(values).reshape(len(rows), -1)
        np.put(out.reshape(len(out), -1).view(whole).reshape(-1), rows, flat.view(whole).reshape(-1))
    else:
        out[rows] = values


def _first_occurrences(rows: np.ndarray, limit: int) -> np.ndarray:
    """int [k]: the first position that has the same row. All rows are within [0, limit)."""
    numbers = np.arange(len(rows), dtype=np.int32)
    if limit > _LOOKED_UP_MAX:
        _, first, number = np.unique(rows, return_index=True, return_inverse=True)
        return first[number]
    firsts = np.empty(limit, np.int32)  # only the entries that the next line writes are read
    firsts[rows[::-1]] = numbers[::-1]  # the last one to write is the first occurrence
    return firsts[rows]


def rows_of_nd_indices(indices: np.ndarray, shape: Sequence[int], what: str) -> np.ndarray:
    """Returns the row numbers that index vectors stand for, row-major over the leading dimensions of `shape`.

    Args:
      indices: integers [..., depth] with depth <= len(shape).
      shape: the shape indexed into.
      what: how the message names that shape ("shape", "param shape").

    Returns:
      int64, the shape of `indices` without its last dimension.

    Raises:
      InvalidArgumentError: an index vector outside of `shape`.
    """
    depth = indices.shape[-1]
    sizes = np.asarray(shape[:depth], np.int64)
    bad = ((indices < 0) | (indices >= sizes)).any(axis=-1)
    if bad.any():
        position = tuple(np.argwhere(bad)[0])
        vector = ", ".join(map(str, indices[position]))
        raise invalid(f"indices{index_text(position)} = [{vector}] does not index into {what} {shape_text(shape)}")
    weights = np.concatenate((np.cumprod(sizes[:0:-1])[::-1], [1])).astype(np.int64)[:depth]
    return indices.astype(np.int64) @ weights if depth else np.zeros(indices.shape[:-1], np.int64)


# -- gathering and scattering


@kernel("Gather", takes_variable=True)
def _(node: KernelNode) -> Function:
    return lambda params, indices: _gather_of(params, indices, 0, 0)


@kernel("GatherV2", takes_variable=True)
def _(node: KernelNode) -> Function:
    batch_dims = node.attr("batch_dims")
    return lambda params, indices, axis: _gather_of(params, indices, int(axis), batch_dims)


def _gather_of(params: np.ndarray | Variable, indices: Array, axis: int, batch_dims: int) -> np.ndarray:
    if isinstance(params, Variable):
        return params.look(lambda value: _gather(value, indices, axis, batch_dims))
    return _gather(params, indices, axis, batch_dims)


def _gather(params: np.ndarray, indices: Array, axis: int, batch_dims: int) -> np.ndarray:
    if np.ndim(params) < 1:
        raise invalid("params must be at least 1 dimensional")
    position = scalar_axis(axis, np.ndim(params))
    indices = np.asarray(indices)
    batch_dims = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    check_indices("indices", indices, params.shape[position])
    if batch_dims == 0:
        rest = params.size // max(params.shape[position], 1)
        room((indices.size, rest), params.dtype)
        out = np.take(params, indices, position, mode="clip")  # which has been checked
        return out if isinstance(out, np.ndarray) else np.asarray(out, params.dtype)
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise invalid(
            f"params.shape[:{batch_dims}]: {shape_text(params.shape[:batch_dims])} should be equal to "
            f"indices.shape[:{batch_dims}]: {shape_text(indices.shape[:batch_dims])}"
        )
    # The gathered axis goes right behind the batch dimensions, so that one index array per batch does it.
    moved = np.moveaxis(params, position, batch_dims)
    room((*indices.shape, *moved.shape[batch_dims + 1 :]), params.dtype)
    grid = np.ogrid[tuple(slice(size) for size in indices.shape[:batch_dims])]
    extra = indices.ndim - batch_dims
    places = tuple(part.reshape(part.shape + (1,) * extra) for part in grid)
    gathered = moved[places + (indices,)]
    inner = position - batch_dims
    sources = range(batch_dims + extra, batch_dims + extra + inner)
    return np.moveaxis(gathered, tuple(sources), tuple(range(batch_dims, batch_dims + inner)))


@kernel("GatherNd")
def _(node: KernelNode) -> Function:
    def gather_nd(params: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if np.ndim(indices) < 1 or np.ndim(params) < 1:
            raise invalid("params and indices must be at least a vector")
        depth = indices.shape[-1]
        if depth > np.ndim(params):
            raise invalid(
                f"index innermost dimension length must be <= params rank; saw: {depth} vs. {np.ndim(params)}"
            )
        if indices.size and not params.size:
            raise invalid(
                f"Requested more than 0 entries, but params is empty.  Params shape: {shape_text(params.shape)}"
            )
        rows = rows_of_nd_indices(indices, params.shape, "param shape")
        if not params.size:
            return _empty_rows(params, rows, depth)
        room((*rows.shape, *params.shape[depth:]), params.dtype)
        return np.asarray(params.reshape(-1, *params.shape[depth:])[rows], params.dtype)

    return gather_nd


def _empty_rows(params: np.ndarray, rows: np.ndarray, depth: int) -> np.ndarray:
    return filled(room((*rows.shape, *params.shape[depth:]), params.dtype), zero_of(params.dtype), params.dtype)


def scatter_nd(function: np.ufunc | None, out: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    """Combines `updates` into the slices of `out` that index vectors name, in place (None: the last one wins).

    Args:
      out: contiguous, [d0, d1, ...].
      indices: integers [..., depth].
      updates: [..., d_depth, ...].

    Raises:
      InvalidArgumentError: an index vector outside of `out`, or updates of another shape.
    """
    indices = np.asarray(indices)
    if indices.ndim == 0:
        raise invalid("Indices must be at least a vector")
    depth = indices.shape[-1]
    if np.shape(updates) != indices.shape[:-1] + out.shape[depth:]:
        raise invalid(
            f"Must have updates.shape = indices.shape[:-1] + shape[{depth}:], got updates.shape: "
            f"{shape_text(np.shape(updates))}, indices.shape: {shape_text(indices.shape)}, shape: "
            f"{shape_text(out.shape)}"
        )
    rows = rows_of_nd_indices(indices, out.shape, "shape").ravel()
    if not np.size(updates):
        return
    width = out.shape[depth:]
    flat = out.reshape(-1, *width)
    values = np.reshape(updates, (-1, *width))
    if function is None:
        flat[rows] = values
    else:
        scatter_rows(function, flat, rows, values)


@kernel("ScatterNd")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)
    zero = zero_of(dtype)

    def scatter_into_zeros(indices: np.ndarray, updates: np.ndarray, shape: np.ndarray) -> np.ndarray:
        out = np.full(room(dimensions(shape), dtype), zero, dtype)
        scatter_nd(np.add, out, indices, updates)
        return out

    return scatter_into_zeros


def _tensor_scatter(function: np.ufunc | None) -> Callable[..., np.ndarray]:
    def tensor_scatter(tensor: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        out = np.array(tensor, order="C")
        scatter_nd(function, out, indices, updates)
        return out

    return tensor_scatter


@kernel("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def _(node: KernelNode) -> Function:
    return _tensor_scatter(np.add)


@kernel("TensorScatterSub")
def _(node: KernelNode) -> Function:
    return _tensor_scatter(np.subtract)


@kernel("TensorScatterMax")
def _(node: KernelNode) -> Function:
    return _tensor_scatter(np.maximum)


@kernel("TensorScatterMin")
def _(node: KernelNode) -> Function:
    return _tensor_scatter(np.minimum)


@kernel("TensorScatterUpdate")
def _(node: KernelNode) -> Function:
    return _tensor_scatter(None)


@kernel("DynamicStitch", "ParallelDynamicStitch")
def _(node: KernelNode) -> Function:
    count, dtype = node.attr("N"), numpy_dtype(node)

    def dynamic_stitch(*indices_and_data: np.ndarray) -> np.ndarray:
        indices, data = indices_and_data[:count], indices_and_data[count:]
        rest = np.shape(data[0])[np.ndim(indices[0]) :]
        for i, (index, values) in enumerate(zip(indices, data, strict=True)):
            if np.shape(values) != np.shape(index) + rest:
                raise invalid(
                    f"Need data[{i}].shape to start with indices[{i}].shape and to continue like data[0], got "
                    f"data[{i}].shape = {shape_text(np.shape(values))}, indices[{i}].shape = "
                    f"{shape_text(np.shape(index))}"
                )
        size = max((int(np.max(index)) for index in indices if np.size(index)), default=-1) + 1
        for i, index in enumerate(indices):
            check_indices(f"indices[{i}]", np.asarray(index), size)
        shape = room((size, *rest), dtype)
        out = np.empty(shape, dtype) if _covers(indices, size) else np.full(shape, zero_of(dtype), dtype)
        for index, values in zip(indices, data, strict=True):
            if np.size(index):
                put_rows(out, np.ravel(index), np.reshape(values, (np.size(index), *rest)))
        return out

    return dynamic_stitch


def _covers(indices: Sequence[Array], size: int) -> bool:
    """Whether each of [0, size) is among `indices`."""
    if sum(map(np.size, indices)) < size:
        return False
    is_there = np.zeros(size, bool)
    for index in indices:
        is_there[np.ravel(index)] = True
    return bool(is_there.all())


@kernel("DynamicPartition")
def _(node: KernelNode) -> Function:
    count = node.attr("num_partitions")

    def dynamic_partition(data: np.ndarray, partitions: np.ndarray) -> list[np.ndarray]:
        if np.shape(data)[: np.ndim(partitions)] != np.shape(partitions):
            raise invalid(
                f"data.shape must start with partitions.shape, got data.shape = {shape_text(np.shape(data))}, "
                f"partitions.shape = {shape_text(np.shape(partitions))}"
            )
        check_indices("partitions", np.asarray(partitions), count)
        rows = np.reshape(data, (np.size(partitions), *np.shape(data)[np.ndim(partitions) :]))
        numbers = np.ravel(partitions)
        return [rows.take(np.flatnonzero(numbers == i), axis=0, mode="clip") for i in range(count)]

    return dynamic_partition
