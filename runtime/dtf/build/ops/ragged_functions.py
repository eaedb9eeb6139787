"""The functions of tf.ragged, and those of tf that accept ragged tensors: arithmetic, reductions, joining, gathering.

Owns the handlers of `build.dispatch` for RaggedTensor. Functions of each element act on the flat values
(`map_flat_values`). The container is `build.ragged`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ragged
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build import dispatch
from dtf.build.apply import apply_op
from dtf.build.composite import Composite
from dtf.build.constant import constant as dense_constant
from dtf.build.conversion import convert_to_tensor, is_dense_tensor_like
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, filling, gathering, joining, ordering, reductions, segment, slicing
from dtf.build.ops import math as math_ops
from dtf.build.ragged import RaggedTensor, RaggedTensorValue, match_row_splits_dtypes, ragged_or_dense, take_rows
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = [
    "boolean_mask", "constant", "constant_value", "map_flat_values", "placeholder", "range",
    "row_splits_to_segment_ids", "segment_ids_to_row_splits", "stack", "stack_dynamic_partitions",
]  # fmt: skip


def constant(
    pylist: Any, dtype: DTypeLike | None = None, ragged_rank: int | None = None, inner_shape: Any = None,
    name: str | None = None, row_splits_dtype: DTypeLike = dtypes.int64,
) -> Any:  # fmt: skip
    """A constant RaggedTensor of nested lists.

    Args:
      pylist: nested lists; those of one depth may have different lengths.
      dtype: the dtype of the values.
      ragged_rank: how many dimensions are ragged; by default all but those of `inner_shape`, or but the innermost
        dimension's values.
      inner_shape: the shape of the values of the innermost ragged dimension.
      name: a prefix of the names of the operations.
      row_splits_dtype: int32 or int64.

    Returns:
      A RaggedTensor; a Tensor if no dimension is ragged.

    Raises:
      ValueError: the nesting differs in depth, or does not fit `ragged_rank` and `inner_shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ragged/constant
    """
    splits_dtype = as_dtype(row_splits_dtype).as_numpy_dtype

    def ragged(values: Any, splits: Any) -> RaggedTensor:
        return RaggedTensor.from_row_splits(values, dense_constant(np.asarray(splits, splits_dtype)), validate=False)

    def dense(values: Any, shape: Any) -> Tensor:
        return dense_constant(values, dtype if dtype is None else as_dtype(dtype), shape)

    with name_scope(name, "RaggedConstant"):
        return _nested(ragged, dense, pylist, dtype, ragged_rank, inner_shape)


def constant_value(
    pylist: Any, dtype: Any = None, ragged_rank: int | None = None, inner_shape: Any = None,
    row_splits_dtype: Any = "int64",
) -> Any:  # fmt: skip
    """A RaggedTensorValue of nested lists: what a ragged placeholder is fed with. Arguments as for `constant`."""
    splits_dtype = as_dtype(row_splits_dtype).as_numpy_dtype
    if dtype is not None and isinstance(dtype, dtypes.DType):
        dtype = dtype.as_numpy_dtype

    def ragged(values: Any, splits: Any) -> RaggedTensorValue:
        return RaggedTensorValue(values, np.asarray(splits, splits_dtype))

    def dense(values: Any, shape: Any) -> np.ndarray:
        return np.reshape(np.array(values, dtype), shape)

    return _nested(ragged, dense, pylist, dtype, ragged_rank, inner_shape)


def placeholder(
    dtype: DTypeLike, ragged_rank: int, value_shape: Any = None, name: str | None = None
) -> Any:
    """A RaggedTensor that must be fed, with a RaggedTensorValue.

    Args:
      dtype: the dtype of the values.
      ragged_rank: how many dimensions are ragged; 0 gives a plain placeholder.
      value_shape: the shape of the values of the innermost ragged dimension; () by default.
      name: a prefix of the names of the placeholders.

    Returns:
      A RaggedTensor.
    """
    if ragged_rank == 0:
        return array.placeholder(dtype, value_shape, name)
    with name_scope(name, "RaggedPlaceholder"):
        sizes = [None, *(array.TensorShape(value_shape).as_list() if value_shape is not None else [])]
        result: Any = array.placeholder(dtype, sizes, "flat_values")
        for index in reversed(builtins.range(ragged_rank)):
            splits = array.placeholder(dtypes.int64, [None], f"row_splits_{index}")
            result = RaggedTensor.from_row_splits(result, splits, validate=False)
        return result


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


def map_flat_values(op: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`op` of the flat values of ragged arguments, in the rows of these.

    Args:
      op: a function of tensors whose result has the first dimension of the ragged arguments' flat values.
      *args: arguments of `op`; ragged ones, in lists too, must have the same rows.
      **kwargs: named arguments of `op`.

    Returns:
      A RaggedTensor; the plain result of `op` if no argument is ragged.

    Raises:
      ValueError: the ragged arguments differ in their number of ragged dimensions, or the result has another first
        dimension.
    """
    found: list[RaggedTensor] = []
    for each in [*args, *kwargs.values()]:
        found += [one for one in (each if isinstance(each, (list, tuple)) else [each]) if isinstance(one, RaggedTensor)]
    if not found:
        return op(*args, **kwargs)
    wide = len({each.row_splits.dtype for each in found}) > 1
    if wide:
        found = [each.with_row_splits_dtype(dtypes.int64) for each in found]
    ranks = {each.ragged_rank for each in found}
    if len(ranks) != 1:
        raise ValueError("All inputs must have the same ragged_rank.")

    def flat(value: Any) -> Any:
        if isinstance(value, RaggedTensor):
            return value.flat_values
        if isinstance(value, (list, tuple)) and any(isinstance(each, RaggedTensor) for each in value):
            return [flat(each) for each in value]
        return value

    first = found[0]
    with_checks = _same_rows(found)
    arguments = [flat(each) for each in args]
    named = {key: flat(each) for key, each in kwargs.items()}
    if with_checks:
        from_graph = first.flat_values.graph
        with from_graph.control_dependencies(with_checks):
            result = op(*arguments, **named)
    else:
        result = op(*arguments, **named)
    return first.with_flat_values(result)


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


def _masked(data: Any, mask: Any, rank: int) -> Any:
    if rank == 1:
        if not isinstance(data, RaggedTensor):
            return slicing.boolean_mask(data, mask)
        return take_rows(data, filling_where(mask))
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


def filling_where(mask: Tensor) -> Tensor:
    """The positions of the True elements of a vector."""
    return array.reshape(apply_op("Where", input=mask), [-1])


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
        return _joined(list(values), axis, stacks=True)


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
        dtype = data.row_splits.dtype if isinstance(data, RaggedTensor) else ids.dtype
        ordered = math_ops.cast(gathering.gather(ids, order), dtype)
        return RaggedTensor.from_value_rowids(
            take_rows(data, order), ordered, math_ops.cast(rows, dtype), validate=False
        )


def _stable_order(ids: Tensor) -> Tensor:
    """The positions of the elements of a vector of integers, in ascending order of these."""
    count = array.shape(ids, out_type=dtypes.int64)[0]
    keys = math_ops.cast(ids, dtypes.int64) * (count + 1) + math_ops.range(count)
    return apply_op("TopKV2", input=-keys, k=math_ops.cast(count, dtypes.int32), sorted=True)[1]


# -- nested lists --


def _nested(
    ragged: Callable[[Any, Any], Any], dense: Callable[[Any, Any], Any], pylist: Any, dtype: Any,
    ragged_rank: int | None, inner_shape: Any,
) -> Any:  # fmt: skip
    if isinstance(pylist, np.ndarray):
        pylist = pylist.tolist()
    elif isinstance(pylist, (list, tuple)):
        pylist = _plain_lists(pylist)
    if not isinstance(pylist, (list, tuple)):
        if ragged_rank:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank}")
        if inner_shape:
            raise ValueError(f"Invalid pylist={pylist!r}: incompatible with dim(inner_shape)={len(inner_shape)}")
        return dense(pylist, ())
    if ragged_rank is not None and ragged_rank < 0:
        raise ValueError(f"Invalid ragged_rank={ragged_rank}: must be nonnegative")
    depth = _checked_depth(pylist, ragged_rank, inner_shape)
    if ragged_rank == 0 or (ragged_rank is None and depth < 2 and inner_shape is None):
        return dense(pylist, inner_shape_of(pylist, depth if inner_shape is None else None, inner_shape))
    if inner_shape is None:
        inner_shape = () if ragged_rank is None else _common_shape(pylist, ragged_rank)
    if ragged_rank is None:
        ragged_rank = max(1, depth - 1) if inner_shape == () else max(1, depth - 1 - len(inner_shape))
    nested_splits = []
    values = pylist
    for _ in builtins.range(ragged_rank):
        splits: list[int] = [0]
        flat: list[Any] = []
        for row in values:
            if not isinstance(row, (list, tuple)):
                raise ValueError(f"all scalar values must have the same nesting depth in {pylist!r}")
            flat.extend(row)
            splits.append(len(flat))
        nested_splits.append(splits)
        values = flat
    result = dense(values, (len(values), *inner_shape))
    for splits in reversed(nested_splits):
        result = ragged(result, splits)
    return result


def _checked_depth(pylist: Any, ragged_rank: int | None, inner_shape: Any) -> int:
    """The depth of the lists. Raises ValueError if it does not fit the other arguments."""
    scalar_depth, depth = _depths(pylist)
    if scalar_depth is not None and depth > scalar_depth:
        raise ValueError(f"Invalid pylist={pylist!r}: empty list nesting is greater than scalar value nesting")
    if ragged_rank is not None and depth < ragged_rank:
        raise ValueError(f"Invalid pylist={pylist!r}, max_depth={depth} is less than ragged_rank={ragged_rank}")
    if inner_shape is not None and ragged_rank is not None:
        expected = ragged_rank + 1 + len(inner_shape)
        if (scalar_depth is not None and expected != scalar_depth) or (scalar_depth is None and expected < depth):
            raise ValueError(
                f"Invalid pylist={pylist!r}: incompatible with ragged_rank={ragged_rank} and "
                f"dim(inner_shape)={len(inner_shape)}"
            )
    return depth


def inner_shape_of(pylist: Any, depth: int | None, inner_shape: Any) -> tuple[int, ...]:
    """The shape of a dense constant."""
    if inner_shape is not None:
        return (len(pylist), *inner_shape)
    return np.shape(np.array(pylist, object)) if depth == 1 else np.shape(np.array(pylist))


def _plain_lists(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist() if value.ndim else value.item()
    return [_plain_lists(each) for each in value] if isinstance(value, (list, tuple)) else value


def _depths(value: Any) -> tuple[int | None, int]:
    """The depth of the scalars (None without any) and that of the lists. Raises ValueError if scalars differ in it."""
    if not isinstance(value, (list, tuple)):
        return 0, 0
    scalar, depth = None, 1
    for each in value:
        below, deep = _depths(each)
        if below is not None:
            if scalar is not None and scalar != below + 1:
                raise ValueError("all scalar values must have the same nesting depth")
            scalar = below + 1
        depth = max(depth, deep + 1)
    return scalar, depth


def _common_shape(value: Any, ragged_rank: int) -> tuple[int, ...]:
    """The shape of the values below the ragged dimensions, which must be one."""
    below = [value]
    for _ in builtins.range(ragged_rank + 1):
        below = [each for row in below if isinstance(row, (list, tuple)) for each in row]
    shapes = {np.shape(np.array(each, object)) if isinstance(each, (list, tuple)) else () for each in below}
    if len(shapes) > 1:
        raise ValueError("inner values have inconsistent shape")
    return shapes.pop() if shapes else ()


# -- rows --


def _same_rows(values: Sequence[RaggedTensor]) -> list[Any]:
    """Checks that ragged tensors have the same rows; none for those made of the same splits."""
    first, checks = values[0], []
    for other in values[1:]:
        for mine, its in zip(first.nested_row_splits, other.nested_row_splits, strict=True):
            if mine is not its:
                checks.append(
                    check_ops.assert_equal(mine, its, message="Inputs must have identical ragged splits")
                )
    return checks


def _joined(values: list[Any], axis: int, stacks: bool) -> Any:
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
        joined = _joined(inner, axis - 1, stacks)
    else:
        joined = joining.stack(inner, axis=axis - 1) if stacks else joining.concat(inner, axis=axis - 1)
    splits = ordering.with_dependencies(checks, first.row_splits) if checks else first.row_splits
    return RaggedTensor(joined, splits, True, uniform_row_length=first._uniform_row_length)


# -- arithmetic of ragged tensors and of tensors that broadcast --


def _elementwise(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """A function of one tensor, or of several whose shapes broadcast."""
    values = [*arguments, *named.values()]
    ragged = [each for each in values if isinstance(each, RaggedTensor)]
    if len(ragged) == 1 and not any(_may_broadcast(each) for each in values if each is not ragged[0]):
        return map_flat_values(function, *arguments, **named)
    ranks = [each.shape.ndims for each in ragged]
    if all(rank is not None for rank in ranks) and len(set(ranks)) == 1 and len(ragged) == len(
        [each for each in values if _may_broadcast(each) or isinstance(each, RaggedTensor)]
    ) and len({each.ragged_rank for each in ragged}) == 1:
        return map_flat_values(function, *arguments, **named)
    shape_of = max(ragged, key=lambda each: (each.shape.ndims or 0, each.ragged_rank))

    def fitting(value: Any) -> Any:
        if value is shape_of:
            return value
        if isinstance(value, RaggedTensor) or _may_broadcast(value):
            return _broadcast(value, shape_of)
        return value

    return map_flat_values(
        function, *[fitting(each) for each in arguments], **{key: fitting(each) for key, each in named.items()}
    )


def _may_broadcast(value: Any) -> bool:
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        return bool(value.shape.ndims != 0)
    return isinstance(value, (list, tuple, np.ndarray)) and np.ndim(value) > 0


def _broadcast(value: Any, wanted: RaggedTensor) -> Any:
    """`value` with an element for each flat value of `wanted`, in its rows."""
    value = ragged_or_dense(value) if isinstance(value, Composite) else convert_to_tensor(value, wanted.dtype)
    rank, size = wanted.shape.ndims, value.shape.ndims
    if rank is None or size is None or size > rank:
        raise ValueError(f"Unable to broadcast: the shapes {value.shape} and {wanted.shape} are not compatible")
    depth = wanted.ragged_rank + 1
    outer = depth - (rank - size)  # how many dimensions of `value` lie among the rows of `wanted`
    if outer <= 0:
        return value
    coordinates = _coordinates(wanted)[depth - outer :]
    taken: Any = value
    index, level = coordinates[0], 0
    checks: list[Any] = []
    while isinstance(taken, RaggedTensor):
        rows = taken.nrows(dtypes.int64)
        index = math_ops.minimum(index, rows - 1)
        starts = math_ops.cast(gathering.gather(taken.row_starts(), index), dtypes.int64)
        lengths = math_ops.cast(gathering.gather(taken.row_lengths(), index), dtypes.int64)
        level += 1
        if level >= outer:
            raise ValueError(f"Unable to broadcast: the shapes {value.shape} and {wanted.shape} are not compatible")
        wide = coordinates[level]
        fits = math_ops.logical_or(math_ops.equal(lengths, 1), math_ops.less(wide, lengths))
        checks.append(check_ops.assert_equal(reductions.reduce_all(fits), True, message="Unable to broadcast"))
        index = starts + math_ops.minimum(wide, lengths - 1)
        taken = taken.values
    sizes = array.shape(taken, out_type=dtypes.int64)
    columns = [index]
    columns += coordinates[level + 1 : outer]
    lengths_of = wanted.nested_row_lengths()
    bounded = []
    for place, column in enumerate(columns):
        if place == 0 and level:
            bounded.append(column)
            continue
        dimension = depth - outer + level + place
        width = sizes[place]
        if dimension > 0:
            rows_width = math_ops.cast(lengths_of[dimension - 1], dtypes.int64)
            exact = math_ops.logical_or(math_ops.equal(width, 1), reductions.reduce_all(
                math_ops.equal(rows_width, width)))  # fmt: skip
        else:
            exact = math_ops.logical_or(math_ops.equal(width, 1), math_ops.equal(wanted.nrows(dtypes.int64), width))
        checks.append(check_ops.assert_equal(exact, True, message="Unable to broadcast: dimension size mismatch"))
        bounded.append(math_ops.minimum(column, width - 1))
    with taken.graph.control_dependencies(checks):
        flat = gathering.gather_nd(taken, joining.stack(bounded, axis=1))
    flat.set_shape(wanted.flat_values.shape[:1].concatenate(flat.shape[1:]))
    return wanted.with_flat_values(flat)


def _coordinates(value: RaggedTensor) -> list[Tensor]:
    """For each flat value, its places in the outermost dimension and in the ragged ones, as int64 vectors."""
    below: Tensor | None = None
    places: list[Tensor] = []
    levels: list[RaggedTensor] = []
    level: Any = value
    while isinstance(level, RaggedTensor):
        levels.append(level)
        level = level.values
    for each in reversed(levels):
        ids = math_ops.cast(each.value_rowids(), dtypes.int64)
        starts = math_ops.cast(gathering.gather(each.row_starts(), ids), dtypes.int64)
        column = math_ops.range(array.shape(ids, out_type=dtypes.int64)[0]) - starts
        places.insert(0, column if below is None else gathering.gather(column, below))
        below = ids if below is None else gathering.gather(ids, below)
    assert below is not None
    return [below, *places]


def _of_lists(function: Callable[..., Any], inputs: Any, *arguments: Any, **named: Any) -> Any:
    """A function of a list of tensors of one shape."""
    return map_flat_values(function, list(inputs), *arguments, **named)


# -- reductions --

_Reduction = Callable[..., Any]


def _reduced(function: _Reduction, segments: _Reduction, value: Any, axis: Any, keepdims: bool) -> Any:
    if not isinstance(value, RaggedTensor):
        return function(value, axis, keepdims)
    rank = value.shape.ndims
    if axis is None:
        return function(value.flat_values, None, keepdims)
    if isinstance(axis, (Tensor, np.ndarray)):
        from_array = axis.tolist() if isinstance(axis, np.ndarray) else None
        if from_array is None:
            raise ValueError("axis must be known statically.")
        axis = from_array
    if isinstance(axis, (list, tuple)):
        if not axis:
            return value
        if len(axis) == 1:
            return _reduced(function, segments, value, axis[0], keepdims)
        axes = sorted(_positive(each, rank) for each in axis)
        inner = _reduced(function, segments, value, axes[-1], keepdims)
        return _reduced(function, segments, inner, axes[:-1], keepdims)
    axis = _positive(axis, rank)
    if axis == 0:
        lengths = value.row_lengths()
        count = math_ops.maximum(reductions.reduce_max(lengths), dense_constant(0, lengths.dtype))
        ids = math_ops.range(array.shape(value.value_rowids(), out_type=lengths.dtype)[0]) - gathering.gather(
            value.row_starts(), value.value_rowids()
        )
        result = _segmented(segments, value.values, ids, count)
        return array.expand_dims(result, 0) if keepdims else result
    if axis == 1:
        result = _segmented(segments, value.values, value.value_rowids(), value.nrows())
        return _expanded(array.expand_dims, result, 1) if keepdims else result
    return value.with_values(_reduced(function, segments, value.values, axis - 1, keepdims))


def _segmented(segments: _Reduction, data: Any, ids: Tensor, count: Tensor) -> Any:
    """The reduction of the rows of `data` with the same number; rows may be ragged."""
    if not isinstance(data, RaggedTensor):
        return segments(data, ids, count)
    lengths = data.row_lengths()
    longest = math_ops.maximum(segment.unsorted_segment_max(lengths, ids, count), dense_constant(0, lengths.dtype))
    splits = joining.concat([dense_constant([0], lengths.dtype), reductions.cumsum(longest)], axis=0)
    rows = data.value_rowids()
    columns = math_ops.range(array.shape(rows, out_type=rows.dtype)[0]) - gathering.gather(data.row_starts(), rows)
    places = gathering.gather(splits, gathering.gather(math_ops.cast(ids, rows.dtype), rows)) + columns
    return RaggedTensor(_segmented(segments, data.values, places, splits[-1]), splits, True)


def _positive(axis: int, rank: int | None) -> int:
    if axis >= 0:
        if rank is not None and axis >= rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
        return axis
    if rank is None:
        raise ValueError("axis may only be negative if ndims is statically known.")
    if axis < -rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis + rank


def _reduction(function: _Reduction, segments: _Reduction | None) -> Callable[..., Any]:
    def handler(
        original: _Reduction, input_tensor: Any, axis: Any = None, keepdims: Any = None, name: str | None = None,
        reduction_indices: Any = None, keep_dims: Any = None,
    ) -> Any:  # fmt: skip
        del original
        axis = reduction_indices if axis is None else axis
        keeps = bool(keepdims if keepdims is not None else keep_dims)
        with name_scope(name, "RaggedReduce"):
            return function(input_tensor, axis, keeps) if segments is None else _reduced(
                function, segments, input_tensor, axis, keeps
            )

    return handler


def _mean(value: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    if axis is None:
        return reductions.reduce_mean(value.flat_values, None, keepdims)
    total = _reduced(reductions.reduce_sum, segment.unsorted_segment_sum, value, axis, keepdims)
    ones = value.with_flat_values(filling.ones_like(value.flat_values))
    count = _reduced(reductions.reduce_sum, segment.unsorted_segment_sum, ones, axis, keepdims)
    if isinstance(total, RaggedTensor):
        return total.with_flat_values(total.flat_values / count.flat_values)
    return total / count


def _variance(value: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    squares = value.with_flat_values(math_ops.square(value.flat_values))
    of_squares, mean = _mean(squares, axis, keepdims), _mean(value, axis, keepdims)
    return of_squares - mean * mean


def _std(value: RaggedTensor, axis: Any, keepdims: bool) -> Any:
    found = _variance(value, axis, keepdims)
    if isinstance(found, RaggedTensor):
        return found.with_flat_values(math_ops.sqrt(found.flat_values))
    return math_ops.sqrt(found)


def _logical(function: _Reduction, segments: _Reduction) -> Callable[[RaggedTensor, Any, bool], Any]:
    def reduce(value: RaggedTensor, axis: Any, keepdims: bool) -> Any:
        numbers = value.with_flat_values(math_ops.cast(value.flat_values, dtypes.int32))
        found = _reduced(function, segments, numbers, axis, keepdims)
        if isinstance(found, RaggedTensor):
            return found.with_flat_values(math_ops.cast(found.flat_values, dtypes.bool))
        return math_ops.cast(found, dtypes.bool)

    return reduce


# -- functions of tf with another shape for ragged tensors --


def _gather(
    original: Any, params: Any, indices: Any, validate_indices: Any = None, name: str | None = None, axis: Any = None,
    batch_dims: int = 0,
) -> Any:  # fmt: skip
    with name_scope(name, "RaggedGather"):
        params, indices = ragged_or_dense(params), ragged_or_dense(indices)
        params, indices = match_row_splits_dtypes(params, indices)
        axis = 0 if axis is None else axis
        if batch_dims:
            return _gather_in_batches(params, indices, axis, batch_dims)
        if isinstance(axis, int) and axis < 0 and params.shape.ndims is not None:
            axis += params.shape.ndims
        if axis:
            if isinstance(params, RaggedTensor) and axis == 1:
                raise ValueError("tf.gather of a ragged dimension needs batch_dims=1")
            if isinstance(params, RaggedTensor):
                return params.with_values(_gather(original, params.values, indices, axis=axis - 1))
            if isinstance(indices, RaggedTensor):
                raise ValueError("tf.gather with ragged indices needs axis=0")
            return original(params, indices, axis=axis)
        return _gather_rows(original, params, indices)


def _gather_rows(original: Any, params: Any, indices: Any) -> Any:
    if isinstance(indices, RaggedTensor):
        return indices.with_values(_gather_rows(original, params, indices.values))
    if not isinstance(params, RaggedTensor):
        return original(params, indices)
    if indices.shape.ndims == 0:
        return params[indices]
    if indices.shape.ndims is None:
        raise ValueError("Indices must have statically known rank for ragged gather")
    return take_rows(params, indices)


def _gather_in_batches(params: Any, indices: Any, axis: Any, batch_dims: int) -> Any:
    if batch_dims != 1 or axis not in (0, 1, None):
        if isinstance(params, RaggedTensor) and isinstance(indices, RaggedTensor) and batch_dims > 1:
            inner = _gather_in_batches(params.values, indices.values, 1, batch_dims - 1)
            return indices.with_values(inner)
        raise ValueError(f"tf.gather of ragged tensors needs batch_dims=1, got {batch_dims} and axis={axis}")
    if not isinstance(params, RaggedTensor):
        params = RaggedTensor.from_tensor(params, row_splits_dtype=indices.row_splits.dtype)
    starts = params.row_starts()
    if isinstance(indices, RaggedTensor):
        places = math_ops.cast(indices.values, starts.dtype) if not isinstance(indices.values, RaggedTensor) else None
        if places is None:
            raise ValueError("indices must have one ragged dimension")
        places = places + gathering.gather(starts, indices.value_rowids())
        return indices.with_values(take_rows(params.values, places))
    rank = indices.shape.ndims
    if rank is None:
        raise ValueError("Indices must have statically known rank for ragged gather")
    offsets = array.reshape(starts, [-1, *[1] * (rank - 1)])
    return _gather_rows(gathering.gather, params.values, math_ops.cast(indices, starts.dtype) + offsets)


def _batch_gather(original: Any, params: Any, indices: Any, name: str | None = None) -> Any:
    return _gather(gathering.gather, params, indices, name=name, axis=1, batch_dims=1)


def _concat(original: Any, values: Any, axis: Any, name: str | None = "concat") -> Any:
    with name_scope(None, "RaggedConcat"):
        return _joined(list(values), axis, stacks=False)


def _stack(original: Any, values: Any, axis: int = 0, name: str | None = "stack") -> Any:
    return stack(values, axis)


def _expanded(original: Any, input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
    axis = dim if axis is None else axis
    if not isinstance(input, RaggedTensor):
        return array.expand_dims(input, axis)
    rank = input.shape.ndims
    if axis < 0:
        if rank is None:
            raise ValueError("axis may only be negative if ndims is statically known.")
        axis += rank + 1
    if axis == 0:
        return input[None]
    if axis == 1:
        return input[:, None]
    return input.with_values(_expanded(original, input.values, axis - 1))


def _size(original: Any, input: Any, name: str | None = None, out_type: Any = dtypes.int32) -> Tensor:
    return array.size(input.flat_values, name, out_type or dtypes.int32)


def _rank(original: Any, input: Any, name: str | None = None) -> Tensor:
    if input.shape.ndims is not None:
        return dense_constant(input.shape.ndims, dtypes.int32, name=name or "Const")
    return math_ops.add(input.ragged_rank, array.rank(input.flat_values), name=name)


def _tile(original: Any, input: Any, multiples: Any, name: str | None = None) -> Any:
    with name_scope(name, "RaggedTile"):
        counts = convert_to_tensor(multiples, input.row_splits.dtype if not isinstance(multiples, Tensor) else None)
        return _tiled(input, math_ops.cast(counts, input.row_splits.dtype))


def _tiled(value: Any, counts: Tensor) -> Any:
    if not isinstance(value, RaggedTensor):
        return joining.tile(value, counts)
    inner = value.with_values(_tiled(value.values, joining.concat([dense_constant([1], counts.dtype), counts[2:]], 0)))
    wide = _repeated(inner, counts[1])
    rows = wide.nrows()
    order = joining.tile(math_ops.range(rows), counts[:1])
    return take_rows(wide, order)


def _repeated(value: RaggedTensor, times: Tensor) -> RaggedTensor:
    """Each row repeated within itself."""
    rows = value.nrows()
    order = array.reshape(
        math_ops.range(rows)[:, None] + filling.zeros(joining.stack([rows, times]), rows.dtype), [-1]
    )
    many = take_rows(value, order)
    splits = gathering.gather(many.row_splits, math_ops.range(rows + 1) * times)
    splits.set_shape(value.row_splits.shape)
    return RaggedTensor(many.values, splits, True)


def _where(original: Any, condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        found = condition.to_sparse()
        return gathering.gather(found.indices, filling_where(math_ops.cast(found.values, dtypes.bool)))
    return _elementwise(original, condition, x, y)


def _reversed(original: Any, tensor: Any, axis: Any, name: str | None = None) -> Any:
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    result = tensor
    for each in axes:
        place = _positive(each, tensor.shape.ndims)
        keys = [slice(None)] * place + [slice(None, None, -1)]
        result = result[tuple(keys)]
    return result


def _squeezed(original: Any, input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    axes = squeeze_dims if axis is None else axis
    if axes is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    rank = input.shape.ndims
    result = input
    for each in sorted(_positive(one, rank) for one in (axes if isinstance(axes, (list, tuple)) else [axes]))[::-1]:
        result = _squeezed_once(result, each)
    return result


def _squeezed_once(value: Any, axis: int) -> Any:
    if not isinstance(value, RaggedTensor):
        return array.squeeze(value, [axis])
    if axis == 0:
        check = check_ops.assert_equal(value.nrows(), dense_constant(1, value.row_splits.dtype))
        with value.graph.control_dependencies([check]):
            inner = value.values
            return inner.with_flat_values(array.identity(inner.flat_values)) if isinstance(
                inner, RaggedTensor) else array.identity(inner)  # fmt: skip
    if axis == 1:
        check = check_ops.assert_equal(value.row_lengths(), dense_constant(1, value.row_splits.dtype),
                                       message="the given axis (axis = 1) is not squeezable!")  # fmt: skip
        with value.graph.control_dependencies([check]):
            inner = value.values
            return inner.with_flat_values(array.identity(inner.flat_values)) if isinstance(
                inner, RaggedTensor) else array.identity(inner)  # fmt: skip
    return value.with_values(_squeezed_once(value.values, axis - 1))


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


def _reduce_join(
    original: Any, inputs: Any, axis: Any = None, keep_dims: Any = None, separator: str = "", name: str | None = None,
    reduction_indices: Any = None, keepdims: Any = None,
) -> Any:  # fmt: skip
    axis = reduction_indices if axis is None else axis
    if axis is None:
        return original(inputs.flat_values, separator=separator)

    def join(data: Any, ids: Any, count: Any) -> Any:
        return apply_op("UnsortedSegmentJoin", inputs=data, segment_ids=ids, num_segments=count, separator=separator)

    def whole(value: Any, axes: Any, keeps: bool) -> Any:
        return original(value, axes, keeps, separator)

    return _reduced(whole, join, inputs, axis, bool(keepdims if keepdims is not None else keep_dims))


def _embedding_lookup(
    original: Any, params: Any, ids: Any, partition_strategy: str = "mod", name: str | None = None,
    validate_indices: bool = True, max_norm: Any = None,
) -> Any:  # fmt: skip
    if not isinstance(params, (list, tuple)) or not any(map(is_dense_tensor_like, params)):
        params = params if is_dense_tensor_like(params) else convert_to_tensor(params)

    def lookup(flat: Any) -> Any:
        return original(params, flat, partition_strategy, name, validate_indices, max_norm)

    return map_flat_values(lookup, ids)


def _one_hot(original: Any, indices: Any, *arguments: Any, **named: Any) -> Any:
    return map_flat_values(lambda flat: original(flat, *arguments, **named), indices)


def _like(fill: Callable[..., Any]) -> Callable[..., Any]:
    def handler(original: Any, tensor: Any = None, *arguments: Any, **named: Any) -> Any:
        named.pop("name", None)
        tensor = named.pop("input", tensor)
        dtype = arguments[0] if arguments else named.get("dtype")
        return tensor.with_flat_values(fill(tensor.flat_values, dtype))

    return handler


_ELEMENTWISE = """
abs acos acosh angle asin asinh atan atanh cast ceil conj cos cosh digamma erf erfc exp expm1 floor imag is_finite
is_inf is_nan lgamma log log1p log_sigmoid logical_not negative real reciprocal rint round rsqrt saturate_cast sigmoid
sign sin sinh sqrt square tan tanh invert identity stop_gradient check_numerics clip_by_value relu relu6 leaky_relu
elu selu softplus softsign dropout string_length string_lower string_upper string_strip string_to_number
string_to_hash_bucket string_to_hash_bucket_fast string_to_hash_bucket_strong regex_full_match regex_replace substr
as_string decode_base64 encode_base64 unicode_transcode decode_compressed
add atan2 bitwise_and bitwise_or bitwise_xor complex div div_no_nan divide equal floordiv floormod floor_div greater
greater_equal left_shift less less_equal logical_and logical_or logical_xor maximum minimum mod multiply not_equal pow
realdiv right_shift squared_difference subtract truediv truncatediv truncatemod xdivy xlogy
""".split()

dispatch.HANDLERS.update(
    {
        **dict.fromkeys(_ELEMENTWISE, _elementwise),
        **dict.fromkeys(("add_n", "string_join"), _of_lists),
        "reduce_sum": _reduction(reductions.reduce_sum, segment.unsorted_segment_sum),
        "reduce_prod": _reduction(reductions.reduce_prod, segment.unsorted_segment_prod),
        "reduce_max": _reduction(reductions.reduce_max, segment.unsorted_segment_max),
        "reduce_min": _reduction(reductions.reduce_min, segment.unsorted_segment_min),
        "reduce_mean": _reduction(_mean, None),
        "reduce_variance": _reduction(_variance, None),
        "reduce_std": _reduction(_std, None),
        "reduce_all": _reduction(
            _logical(reductions.reduce_prod, segment.unsorted_segment_prod), None),  # fmt: skip
        "reduce_any": _reduction(
            _logical(reductions.reduce_max, lambda data, ids, count: math_ops.minimum(
                segment.unsorted_segment_sum(data, ids, count), 1)), None),  # fmt: skip
        "gather": _gather,
        "batch_gather": _batch_gather,
        "concat": _concat,
        "stack": _stack,
        "expand_dims": _expanded,
        "size": _size,
        "rank": _rank,
        "tile": _tile,
        "where": _where,
        "where_v2": _where,
        "reverse": _reversed,
        "squeeze": _squeezed,
        "dynamic_partition": _dynamic_partition,
        "boolean_mask": _boolean_mask,
        "reduce_join": _reduce_join,
        "embedding_lookup": _embedding_lookup,
        "one_hot": _one_hot,
        "zeros_like": _like(filling.zeros_like),
        "ones_like": _like(filling.ones_like),
    }
)


# -- the operators of RaggedTensor --


def _operator(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(x, y)


def _reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda y, x: function(x, y)


def _install_operators() -> None:
    logical = {"and": math_ops.logical_and, "or": math_ops.logical_or, "xor": math_ops.logical_xor}
    numeric = {
        "add": math_ops.add, "sub": math_ops.subtract, "mul": math_ops.multiply, "truediv": math_ops.truediv,
        "floordiv": math_ops.floordiv, "mod": math_ops.floormod, "pow": math_ops.pow,
    }  # fmt: skip
    for name, function in {**numeric, **logical}.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
        setattr(RaggedTensor, f"__r{name}__", _reflected(function))
    compared = {
        "lt": math_ops.less, "le": math_ops.less_equal, "gt": math_ops.greater, "ge": math_ops.greater_equal,
    }  # fmt: skip
    for name, function in compared.items():
        setattr(RaggedTensor, f"__{name}__", _operator(function))
    for name, one in {"abs": math_ops.abs, "neg": math_ops.negative, "invert": math_ops.logical_not}.items():
        setattr(RaggedTensor, f"__{name}__", (lambda of: lambda x: of(x))(one))


_install_operators()
