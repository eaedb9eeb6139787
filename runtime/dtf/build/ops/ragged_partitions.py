"""Rows of numbers, of the elements under a mask, and of those of one partition; row splits and segment ids."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant as dense_constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, gathering, joining, ordering, reductions, slicing
from dtf.build.ops import math as math_ops
from dtf.build.ragged import RaggedTensor, ragged_or_dense
from dtf.build.ragged_rows import match_row_splits_dtypes
from dtf.build.ragged_slices import take_rows
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike


def range(
    starts: Any, limits: Any = None, deltas: Any = 1, dtype: DTypeLike | None = None, name: str | None = None,
    row_splits_dtype: DTypeLike = dtypes.int64,
) -> RaggedTensor:  # fmt: skip
    """Rows of ascending or descending numbers.

    Args:
      starts: the first number of each row; the limits if `limits` is None.
      limits: the bound of each row, not reached.
      deltas: the steps.
      dtype: the dtype of the numbers.
      name: the name of the operation.
      row_splits_dtype: int32 or int64.

    Returns:
      A RaggedTensor [nrows, None].
    """
    if limits is None:
        starts, limits = 0, starts
    with name_scope(name, "RaggedRange") as scope:
        starts = convert_to_tensor(starts, dtype, name="starts")
        limits = convert_to_tensor(limits, dtype, name="limits")
        deltas = convert_to_tensor(deltas, dtype, name="deltas")
        if dtype is None:
            kinds = [each.dtype for each in (starts, limits, deltas)]
            order = [dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64]
            widest = max(kinds, key=lambda kind: order.index(kind) if kind in order else -1)
            starts, limits, deltas = (math_ops.cast(each, widest) for each in (starts, limits, deltas))
        splits, values = apply_op(
            "RaggedRange", scope, starts=starts, limits=limits, deltas=deltas, Tsplits=as_dtype(row_splits_dtype)
        )
        return RaggedTensor(values, splits, True)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The values of `data` where `mask` is True, in ragged rows.

    Args:
      data: a tensor or RaggedTensor.
      mask: a boolean tensor or RaggedTensor whose shape is a beginning of that of `data`; its rank must be known.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor of the rank of `data`; a Tensor for a mask of one dimension and dense data.

    Raises:
      ValueError: the rank of the mask is unknown or 0, or above that of the data.
    """
    with name_scope(name, "RaggedMask"):
        mask = ragged_or_dense(mask, dtypes.bool)
        data = ragged_or_dense(data)
        data, mask = match_row_splits_dtypes(data, mask)
        rank = mask.shape.ndims
        if rank is None:
            raise ValueError("mask.shape.ndims must be known statically.")
        if rank == 0:
            raise ValueError("mask cannot be scalar.")
        if isinstance(data, RaggedTensor) or isinstance(mask, RaggedTensor) or rank > 1:
            return _masked(data, mask, rank)
        return slicing.boolean_mask(data, mask)


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> Tensor:
    """The row of each value, for row splits: [0, 3, 3, 5] gives [0, 0, 0, 2, 2].

    Raises:
      ValueError: the splits are not a vector of int32 or int64.
    """
    with name_scope(name, "RaggedSplitsToSegmentIds"):
        splits = convert_to_tensor(splits, None if isinstance(splits, Tensor) else dtypes.int64, name="splits")
        if splits.dtype not in (dtypes.int32, dtypes.int64):
            raise ValueError("splits must have dtype int32 or int64")
        splits.shape.assert_has_rank(1)
        ids = RaggedTensor(math_ops.range(splits[-1]), splits, True).value_rowids()
        return ids if out_type is None else math_ops.cast(ids, out_type)


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> Tensor:
    """Row splits, for the row of each value: [0, 0, 0, 2, 2] gives [0, 3, 3, 5]."""
    with name_scope(name, "SegmentIdsToRaggedSplits"):
        dtype = as_dtype(out_type) if out_type is not None else None
        if dtype is None:
            dtype = segment_ids.dtype if isinstance(segment_ids, Tensor) else dtypes.int64
        ids = math_ops.cast(convert_to_tensor(segment_ids, name="segment_ids"), dtype)
        ids.shape.assert_has_rank(1)
        rows = None if num_segments is None else math_ops.cast(convert_to_tensor(num_segments), dtype)
        return RaggedTensor.from_value_rowids(ids, ids, rows, validate=False).row_splits


def stack_dynamic_partitions(
    data: Any, partitions: Any, num_partitions: Any, name: str | None = None
) -> RaggedTensor:
    """The elements of `data`, by their partition: row i has those of partition i.

    Args:
      data: a tensor or RaggedTensor.
      partitions: integers below `num_partitions`; their shape is a beginning of that of `data`.
      num_partitions: the number of rows.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor [num_partitions, None, ...].
    """
    with name_scope(name, "SegmentStack"):
        data = ragged_or_dense(data, name="data")
        rows = convert_to_tensor(num_partitions, name="num_partitions")
        partitions = ragged_or_dense(partitions, name="partitions")
        if partitions.shape.ndims is None:
            raise ValueError("partitions must have known rank.")
        ids = partitions.flat_values if isinstance(partitions, RaggedTensor) else partitions
        dtype = data.row_splits.dtype if isinstance(data, RaggedTensor) else ids.dtype
        while isinstance(partitions, RaggedTensor):
            if not isinstance(data, RaggedTensor):
                raise ValueError("partitions must be dense where data is dense")
            data, partitions = data.values, partitions.values
        rank = ids.shape.ndims or 0
        if not isinstance(data, RaggedTensor) and rank != 1:
            data = array.reshape(data, joining.concat([[-1], array.shape(data)[rank:]], axis=0))
            ids = array.reshape(ids, [-1])
        check = check_ops.assert_less(ids, math_ops.cast(rows, ids.dtype), message="partitions must be less than "
                                      "num_partitions")  # fmt: skip
        ids = ordering.with_dependencies([check], ids)
        order = _stable_order(ids)
        ordered = math_ops.cast(gathering.gather(ids, order), dtype)
        return RaggedTensor.from_value_rowids(
            take_rows(data, order), ordered, math_ops.cast(rows, dtype), validate=False
        )


def _masked(data: Any, mask: Any, rank: int) -> Any:
    if rank == 1:
        if not isinstance(data, RaggedTensor):
            return slicing.boolean_mask(data, mask)
        return take_rows(data, true_positions(mask))
    if not isinstance(data, RaggedTensor):
        dtype = mask.row_splits.dtype if isinstance(mask, RaggedTensor) else dtypes.int64
        data = RaggedTensor.from_tensor(data, ragged_rank=1, row_splits_dtype=dtype)
    if not isinstance(mask, RaggedTensor):
        mask = RaggedTensor.from_tensor(mask, ragged_rank=1, row_splits_dtype=data.row_splits.dtype)
    checks = [check_ops.assert_equal(data.row_splits, mask.row_splits, message="data and mask differ in their rows")]
    values = _masked(data.values, mask.values, rank - 1)
    if rank > 2 and isinstance(values, RaggedTensor):
        return RaggedTensor(values, ordering.with_dependencies(checks, data.row_splits), True)
    kept = math_ops.cast(mask.values if rank == 2 else mask.values, data.row_splits.dtype)
    before = joining.concat([dense_constant([0], kept.dtype), reductions.cumsum(kept)], axis=0)
    splits = gathering.gather(before, ordering.with_dependencies(checks, data.row_splits))
    return RaggedTensor(values, splits, True)


def true_positions(mask: Tensor) -> Tensor:
    """The positions of the True elements of a vector."""
    return array.reshape(apply_op("Where", input=mask), [-1])


def _stable_order(ids: Tensor) -> Tensor:
    """The positions of the elements of a vector of integers, in ascending order of these."""
    count = array.shape(ids, out_type=dtypes.int64)[0]
    keys = math_ops.cast(ids, dtypes.int64) * (count + 1) + math_ops.range(count)
    return apply_op("TopKV2", input=-keys, k=math_ops.cast(count, dtypes.int32), sorted=True)[1]


def _dynamic_partition(original: Any, data: Any, partitions: Any, num_partitions: int, name: str | None = None) -> Any:
    if not isinstance(num_partitions, int) or num_partitions < 0:
        raise TypeError("num_partitions must be a non-negative integer")
    rows = stack_dynamic_partitions(data, partitions, num_partitions, name)
    return [rows[each] for each in builtins.range(num_partitions)]


def _boolean_mask(
    original: Any, tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: Any = None
) -> Any:
    if axis:
        raise ValueError("boolean_mask of a ragged tensor needs axis=0")
    return boolean_mask(tensor, mask, name)


#: The handlers of `build.dispatch` that this module has.
HANDLERS: dict[str, Callable[..., Any]] = {
    "dynamic_partition": _dynamic_partition,
    "boolean_mask": _boolean_mask,
}
