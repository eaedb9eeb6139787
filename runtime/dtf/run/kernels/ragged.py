"""Kernels of ragged tensors: values, and per ragged dimension where its rows begin and end (`splits`)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, check_indices, invalid, numpy_dtype, room, scalar, shape_text, vector
from dtf.run.value_types import Array
from dtf.wire import dtypes
from dtf.wire.strings import filled


def check_splits(splits: Sequence[np.ndarray], count: int) -> None:
    """Raises InvalidArgumentError unless nested splits begin at 0, rise, and end with what is below them."""
    for number, rows in enumerate(splits):
        if not len(rows):
            raise invalid("Ragged splits may not be empty.")
        if rows[0] != 0:
            raise invalid("First value of ragged splits must be 0.")
        if (np.diff(rows) < 0).any():
            raise invalid("Ragged splits must be sorted in ascending order.")
        below = len(splits[number + 1]) - 1 if number + 1 < len(splits) else count
        if rows[-1] != below:
            raise invalid("Final value of ragged splits must match the length the corresponding ragged values.")


def row_ids(splits: np.ndarray) -> np.ndarray:
    """The row of each element."""
    return np.repeat(np.arange(len(splits) - 1), np.diff(splits))


def _places_in_rows(ids: np.ndarray) -> np.ndarray:
    """The position of each element in its row, for ascending row ids."""
    return np.arange(len(ids)) - np.searchsorted(ids, ids, side="left")


def _range_length(start: float, limit: float, delta: float) -> int:
    return max(0, math.ceil((limit - start) / delta))


@kernel("RaggedRange")
def _(node: KernelNode) -> Function:
    dtype, split_dtype = numpy_dtype(node), numpy_dtype(node, "Tsplits")

    def ragged_range(starts: np.ndarray, limits: np.ndarray, deltas: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        sizes = {np.size(each) for each in (starts, limits, deltas) if np.ndim(each)}
        if len(sizes) > 1:
            raise invalid("starts, limits, and deltas must have the same shape")
        rows = sizes.pop() if sizes else 1
        if not np.all(deltas):
            raise invalid("Requires delta != 0")
        bounds = [np.broadcast_to(each, rows).tolist() for each in (starts, limits, deltas)]
        room((sum(_range_length(*each) for each in zip(*bounds, strict=True)),), dtype)
        parts = [np.arange(*each, dtype=dtype) for each in zip(*bounds, strict=True)]
        splits = np.cumsum([0, *map(len, parts)]).astype(split_dtype)
        return splits, np.concatenate(parts) if parts else np.zeros(0, dtype)

    return ragged_range


@kernel("RaggedGather")
def _(node: KernelNode) -> Function:
    count = node.attr("PARAMS_RAGGED_RANK")

    def gather(*arguments: np.ndarray) -> list[np.ndarray]:
        splits, values, indices = arguments[:count], arguments[count], arguments[count + 1]
        check_splits(splits, len(values))
        check_indices("indices", indices, len(splits[0]) - 1)
        outer = []
        # The dimensions of `indices` but the first become rows of equal length.
        for axis in range(1, indices.ndim):
            count_of_rows = int(np.prod(indices.shape[:axis]))
            outer.append(np.arange(count_of_rows + 1) * indices.shape[axis])
        chosen, inner = indices.reshape(-1), []
        for rows in splits:
            lengths = (rows[1:] - rows[:-1])[chosen]
            ends = np.cumsum(lengths)
            inner.append(np.concatenate([[0], ends]))
            chosen = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(rows[chosen] - (ends - lengths), lengths)
        return [*(each.astype(splits[0].dtype) for each in [*outer, *inner]), values[chosen]]

    return gather


@kernel("RaggedTensorToSparse")
def _(node: KernelNode) -> Function:
    count = node.attr("RAGGED_RANK")

    def to_sparse(*arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        splits, values = [np.ravel(each) for each in arguments[:count]], arguments[count]
        check_splits(splits, len(values))
        below = np.arange(len(values))
        columns: list[np.ndarray] = []
        for rows in reversed(splits):
            ids = row_ids(rows)
            columns.insert(0, _places_in_rows(ids)[below])
            below = ids[below]
        columns.insert(0, below)
        leading = np.stack(columns, axis=1) if columns else np.zeros((len(values), 0))
        sizes = values.shape[1:]
        inner = np.array(list(np.ndindex(sizes)), np.int64).reshape(int(np.prod(sizes)), len(sizes))
        indices = np.concatenate(
            [np.repeat(leading, len(inner), axis=0), np.tile(inner, (len(values), 1))], axis=1
        ).astype(np.int64)
        widths = [int(np.diff(rows).max(initial=0)) for rows in splits]
        return indices, values.reshape(-1), np.array([len(splits[0]) - 1, *widths, *values.shape[1:]], np.int64)

    return to_sparse


@kernel("RaggedTensorToTensor")
def _(node: KernelNode) -> Function:
    kinds = [as_text(kind) for kind in node.attr("row_partition_types")]

    def to_tensor(shape: np.ndarray, values: np.ndarray, default: np.ndarray, *partitions: np.ndarray) -> np.ndarray:
        if np.ndim(shape) > 1:
            raise invalid(f"Shape must be at most rank 1 but is rank {np.ndim(shape)}")
        if not np.ndim(shape) and int(shape) != -1:
            raise invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        if np.ndim(default) and np.ndim(default) >= np.ndim(values):
            raise invalid(
                f"default_value.shape={shape_text(np.shape(default))} and rt_input.flat_values.shape="
                f"{shape_text(np.shape(values))} are incompatible"
            )
        row_count, ids = _partition_ids(kinds, partitions)
        below = np.arange(len(values))
        places: list[np.ndarray] = []
        widths: list[int] = []
        for rows in reversed(ids):
            columns = _places_in_rows(rows)
            widths.insert(0, int(columns.max(initial=-1)) + 1)
            places.insert(0, columns[below])
            below = rows[below]
        places.insert(0, below)
        natural = [row_count, *widths, *values.shape[1:]]
        wanted = np.ravel(shape).tolist() if np.ndim(shape) else [-1] * len(natural)
        if len(wanted) != len(natural):
            raise invalid(f"The shape {shape_text(wanted)} does not fit a ragged tensor of {len(natural)} dimensions")
        sizes = [have if want == -1 else want for want, have in zip(wanted, natural, strict=True)]
        if sizes[len(places) :] != list(values.shape[1:]):
            raise invalid(f"The shape {shape_text(sizes)} does not fit values of shape {shape_text(values.shape)}")
        out = np.empty(room(sizes, values.dtype), values.dtype)
        out[...] = np.asarray(default)
        kept = np.ones(len(values), bool)
        for place, size in zip(places, sizes, strict=False):
            kept &= place < size
        out[tuple(place[kept] for place in places)] = values[kept]
        return out

    return to_tensor


def _partition_ids(kinds: Sequence[str], partitions: Sequence[Array]) -> tuple[int, list[np.ndarray]]:
    """The number of rows, and per ragged dimension the row of each element."""
    ids, rows = [], None
    for kind, partition in zip(kinds, partitions, strict=True):
        if kind == "FIRST_DIM_SIZE":
            rows = int(partition)
        elif kind == "VALUE_ROWIDS":
            ids.append(np.asarray(partition))
        elif kind == "ROW_SPLITS":
            rows = len(partition) - 1 if rows is None else rows
            ids.append(row_ids(partition))
        else:
            raise invalid(f"Row partition type {kind!r} is not supported")
    if rows is None:
        raise invalid("The row partitions do not tell the number of rows")
    return rows, ids


@kernel("RaggedFillEmptyRows")
def _(node: KernelNode) -> Function:
    def fill(
        ids: np.ndarray, values: np.ndarray, row_count: np.ndarray, default: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        count = int(row_count)
        if len(ids) != len(values):
            raise invalid(
                f"The length of `values` ({len(values)}) must match the first dimension of `value_rowids` ({len(ids)})."
            )
        scalar(np.asarray(default), "default_value")
        check_indices("value_rowids", ids, count)
        empty = np.ones(room((count,), bool), bool)
        empty[ids] = False
        missing = np.flatnonzero(empty)
        order = np.argsort(np.concatenate([ids, missing]), kind="stable")
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        filler = filled(len(missing), default, values.dtype)
        return (
            np.concatenate([ids, missing])[order], np.concatenate([values, filler])[order], empty, places[: len(ids)],
        )  # fmt: skip

    return fill


@kernel("RaggedFillEmptyRowsGrad")
def _(node: KernelNode) -> Function:
    if node.attr("T") == dtypes.string:
        raise invalid("RaggedFillEmptyRowsGrad adds gradients up; strings have no sum.")

    def fill_grad(places: np.ndarray, grads: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        vector(places, "reverse_index_map")
        check_indices("reverse_index_map", places, len(grads))
        kept = np.zeros(len(grads), bool)
        kept[places] = True
        return grads[places], grads[~kept].sum(dtype=grads.dtype)

    return fill_grad
