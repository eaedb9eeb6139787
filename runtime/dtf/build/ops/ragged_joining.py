"""tf.concat and tf.stack of ragged tensors, along any axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.constant import constant as dense_constant
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, joining, ordering, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ragged import RaggedTensor, ragged_or_dense
from dtf.build.ragged_rows import match_row_splits_dtypes
from dtf.build.ragged_slices import take_rows
from dtf.wire import dtypes


def stack(values: Sequence[Any], axis: int = 0, name: str | None = None) -> Any:
    """Tensors, ragged or of different lengths, as rows of one RaggedTensor along a new axis.

    Args:
      values: tensors or RaggedTensors of one rank.
      axis: where the new dimension goes.
      name: a prefix of the names of the operations.

    Returns:
      A RaggedTensor of one more dimension.

    Raises:
      ValueError: `values` is empty.
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    with name_scope(name, "RaggedStack"):
        return joined(list(values), axis, stacks=True)


def joined(values: list[Any], axis: int, stacks: bool) -> Any:
    if not values:
        raise ValueError("rt_inputs may not be empty.")
    values = match_row_splits_dtypes(*(ragged_or_dense(each) for each in values))
    rank, axis = _checked_axis(values, axis, 1 if stacks else 0)
    dense = not any(isinstance(each, RaggedTensor) for each in values)
    if dense and stacks and rank == 0:
        return joining.stack(values, axis)
    if dense and stacks and rank == 1 and axis == 0:
        lengths = joining.concat([array.shape(each) for each in values], axis=0)
        return RaggedTensor.from_row_lengths(joining.concat(values, axis=0), lengths, validate=False)
    if dense and not stacks and axis == 0:
        return joining.concat(values, axis=0)
    if dense and len(values) == 1 and not stacks:
        return values[0]
    deepest = max([1, *(each.ragged_rank for each in values if isinstance(each, RaggedTensor))])
    if dense:
        # Dimensions up to the joined axis differ between the tensors, and become ragged.
        deepest = max(1, min(axis, (rank or 2) - 1))
    dtype = next((each.row_splits.dtype for each in values if isinstance(each, RaggedTensor)), dtypes.int64)
    ragged = [_of_ragged_rank(each, deepest, dtype) for each in values]
    if axis == 0:
        return _stacked_rows(ragged) if stacks else _appended_rows(ragged)
    if axis == 1:
        return _interleaved(ragged, stacks)
    return _inner_joined(ragged, axis, stacks)


def _checked_axis(values: list[Any], axis: int, extra: int) -> tuple[int | None, int]:
    """(the rank of all values, the axis from the front). Raises ValueError if they differ, or it is out of bounds."""
    ranks = {each.shape.ndims for each in values if each.shape.ndims is not None}
    if len(ranks) > 1:
        raise ValueError(f"Shapes must have the same rank: {sorted(ranks)}")
    rank = ranks.pop() if ranks else None
    if rank is None:
        if axis < 0:
            raise ValueError("axis may only be negative if ndims is statically known.")
        return None, axis
    if not -(rank + extra) <= axis < rank + extra:
        raise ValueError(f"axis={axis} out of bounds: expected {-(rank + extra)}<=axis<{rank + extra}")
    return rank, axis + rank + extra if axis < 0 else axis


def _of_ragged_rank(value: Any, ragged_rank: int, dtype: Any) -> Any:
    if ragged_rank == 0:
        return value
    if isinstance(value, RaggedTensor):
        if value.ragged_rank < ragged_rank:
            return value.with_values(_of_ragged_rank(value.values, ragged_rank - 1, dtype))
        return value
    if value.shape.ndims is not None and value.shape.ndims <= ragged_rank:
        return value
    return RaggedTensor.from_tensor(value, ragged_rank=ragged_rank, row_splits_dtype=dtype)


def _appended_rows(values: list[Any]) -> Any:
    """The rows of all values, one after the other."""
    if not isinstance(values[0], RaggedTensor):
        return joining.concat(values, axis=0)
    inner = _appended_rows([each.values for each in values])
    splits, end = [values[0].row_splits], values[0].row_splits[-1]
    for each in values[1:]:
        splits.append(each.row_splits[1:] + end)
        end = end + each.row_splits[-1]
    lengths = {each._uniform_row_length for each in values}
    return RaggedTensor(
        inner, joining.concat(splits, axis=0), True, uniform_row_length=lengths.pop() if len(lengths) == 1 else None
    )


def _stacked_rows(values: list[Any]) -> RaggedTensor:
    """The values as rows of a new outermost dimension."""
    counts = joining.stack([each.nrows() for each in values])
    splits = joining.concat([dense_constant([0], counts.dtype), reductions.cumsum(counts)], axis=0)
    return RaggedTensor(_appended_rows(values), splits, True)


def _interleaved(values: list[Any], stacks: bool) -> RaggedTensor:
    """Row i of the first value, then row i of the second, and so on: joined or stacked along axis 1."""
    rows = values[0].nrows()
    checks = [
        check_ops.assert_equal(rows, each.nrows(), message="Input tensors have incompatible shapes")
        for each in values[1:]
    ]
    count = dense_constant(len(values), rows.dtype)
    rows = ordering.with_dependencies(checks, rows) if checks else rows
    order = array.reshape(
        math_ops.range(rows)[:, None] + math_ops.range(count)[None] * rows, [-1]
    )
    mixed = take_rows(_appended_rows(values), order)
    splits_shape = values[0].row_splits.shape
    if stacks:
        splits = math_ops.range(rows + 1) * count
        splits.set_shape(splits_shape)
        return RaggedTensor(mixed, splits, True, uniform_row_length=len(values))
    splits = mixed.row_splits[:: len(values)]
    splits.set_shape(splits_shape)
    return RaggedTensor(mixed.values, splits, True)


def _inner_joined(values: list[Any], axis: int, stacks: bool) -> Any:
    first = values[0]
    checks = [
        check_ops.assert_equal(first.row_splits, each.row_splits, message="Inputs must have identical ragged splits")
        for each in values[1:]
    ]
    inner = [each.values for each in values]
    if any(isinstance(each, RaggedTensor) for each in inner):
        whole = joined(inner, axis - 1, stacks)
    else:
        whole = joining.stack(inner, axis=axis - 1) if stacks else joining.concat(inner, axis=axis - 1)
    splits = ordering.with_dependencies(checks, first.row_splits) if checks else first.row_splits
    return RaggedTensor(whole, splits, True, uniform_row_length=first._uniform_row_length)


def _concat(original: Any, values: Any, axis: Any, name: str | None = "concat") -> Any:
    with name_scope(None, "RaggedConcat"):
        return joined(list(values), axis, stacks=False)


def _stack(original: Any, values: Any, axis: int = 0, name: str | None = "stack") -> Any:
    return stack(values, axis)


#: The handlers of `build.dispatch` that this module has.
HANDLERS: dict[str, Callable[..., Any]] = {
    "concat": _concat,
    "stack": _stack,
}
