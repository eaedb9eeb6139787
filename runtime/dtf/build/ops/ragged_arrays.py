"""Functions of tf with another shape for ragged tensors: tf.gather, tf.expand_dims, tf.tile, tf.where, tf.squeeze."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.constant import constant as dense_constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, check_ops, filling, gathering, joining
from dtf.build.ops import math as math_ops
from dtf.build.ops.ragged_arithmetic import elementwise
from dtf.build.ops.ragged_partitions import true_positions
from dtf.build.ragged import RaggedTensor, ragged_or_dense
from dtf.build.ragged_rows import match_row_splits_dtypes
from dtf.build.ragged_slices import take_rows
from dtf.build.tensor import Tensor
from dtf.wire import dtypes


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


def expanded(original: Any, input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Any:
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
    return input.with_values(expanded(original, input.values, axis - 1))


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
        return gathering.gather(found.indices, true_positions(math_ops.cast(found.values, dtypes.bool)))
    return elementwise(original, condition, x, y)


def _reversed(original: Any, tensor: Any, axis: Any, name: str | None = None) -> Any:
    axes = list(axis) if isinstance(axis, (list, tuple)) else [axis]
    result = tensor
    for each in axes:
        place = positive_axis(each, tensor.shape.ndims)
        keys = [slice(None)] * place + [slice(None, None, -1)]
        result = result[tuple(keys)]
    return result


def _squeezed(original: Any, input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Any:
    axes = squeeze_dims if axis is None else axis
    if axes is None:
        raise ValueError("Ragged.squeeze must have an axis argument.")
    rank = input.shape.ndims
    result = input
    for each in sorted(positive_axis(one, rank) for one in (axes if isinstance(axes, (list, tuple)) else [axes]))[::-1]:
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


def positive_axis(axis: int, rank: int | None) -> int:
    if axis >= 0:
        if rank is not None and axis >= rank:
            raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
        return axis
    if rank is None:
        raise ValueError("axis may only be negative if ndims is statically known.")
    if axis < -rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis + rank


#: The handlers of `build.dispatch` that this module has.
HANDLERS: dict[str, Callable[..., Any]] = {
    "gather": _gather,
    "batch_gather": _batch_gather,
    "expand_dims": expanded,
    "size": _size,
    "rank": _rank,
    "tile": _tile,
    "where": _where,
    "where_v2": _where,
    "reverse": _reversed,
    "squeeze": _squeezed,
}
