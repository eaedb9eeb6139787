"""Tensors that tell where rows begin and end: row splits, the lengths of rows, the row of each value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array, filling, joining, reductions, segment
from dtf.build.ops import math as math_ops
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import DType

__all__ = [
    "ids_of_splits", "lengths_without", "product", "rows_of", "splits_of_ids", "splits_of_lengths", "splits_tensor",
]  # fmt: skip


def splits_tensor(value: Any, name: str) -> Tensor:
    """Row splits, lengths or ids as an integer tensor; int64 unless they are an int32 tensor or array."""
    keeps = isinstance(value, Tensor) or isinstance(value, (np.ndarray, np.generic)) and value.dtype == np.int32
    tensor = convert_to_tensor(value, None if keeps else dtypes.int64, name=name)
    if tensor.dtype not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"Row partition tensors must be int32 or int64, got {name} of {tensor.dtype.name}")
    return tensor


def rows_of(count: Tensor, length: Tensor) -> Tensor:
    """How many rows of this length there are; 0 for rows of length 0."""
    one = constant(1, length.dtype)
    return math_ops.floordiv(count, math_ops.maximum(length, one))


def splits_of_lengths(lengths: Tensor) -> Tensor:
    return joining.concat([constant([0], lengths.dtype), reductions.cumsum(lengths)], axis=0)


def splits_of_ids(ids: Tensor, nrows: Any) -> Tensor:
    ones = filling.ones_like(ids)
    lengths = segment.unsorted_segment_sum(ones, ids, nrows)
    return splits_of_lengths(lengths)


def ids_of_splits(splits: Tensor) -> Tensor:
    positions = math_ops.range(splits[-1])
    # The row of a position: how many rows end at or before it.
    return math_ops.cast(
        apply_op("UpperBound", sorted_inputs=splits[1:][None], values=positions[None], out_type=dtypes.int64)[0],
        splits.dtype,
    )


def product(sizes: Sequence[int | None]) -> int | None:
    """The product of sizes; None if one is unknown."""
    result = 1
    for each in sizes:
        if each is None:
            return None
        result *= each
    return result


def lengths_without(tensor: Tensor, padding: Any, dtype: DType) -> Tensor:
    """The lengths of the rows without the padding at their ends."""
    padding = convert_to_tensor(padding, tensor.dtype, name="padding")
    differs = math_ops.not_equal(tensor, padding)
    rank = tensor.shape.ndims
    if rank is None or rank > 2:
        axes = list(range(2, rank)) if rank is not None else math_ops.range(2, array.rank(tensor))
        differs = reductions.reduce_any(differs, axis=axes)
    columns = array.shape(tensor, out_type=dtype)[1]
    places = math_ops.range(1, columns + 1)
    zero = constant([[0]], dtype)
    ends = math_ops.cast(differs, dtype) * places[None]
    rows = array.shape(tensor, out_type=dtype)[0]
    return reductions.reduce_max(joining.concat([ends, joining.tile(zero, joining.stack([rows, 1]))], axis=1), axis=1)
