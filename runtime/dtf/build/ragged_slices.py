"""Slices of ragged tensors, rows by their numbers, and dimensions merged into one."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import array, filling, gathering, joining
from dtf.build.ops import math as math_ops
from dtf.build.ragged_rows import RaggedRows, count_values
from dtf.build.row_partitions import product
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

__all__ = ["item_of", "merged_dims", "take_rows"]


def merged_dims(value: Any, outer: int, inner: int) -> Any:
    for _ in range(inner - outer):
        value = _merged_with_next(value, outer)
    return value


def _merged_with_next(value: Any, axis: int) -> Any:
    """`value`, whose dimensions `axis` and `axis + 1` are one."""
    if isinstance(value, RaggedRows):
        if axis == 0:
            return value.values
        if axis > 1:
            return value.with_values(_merged_with_next(value.values, axis - 1))
        inner = value.values
        if isinstance(inner, RaggedRows):
            return type(value)(inner.values, gathering.gather(inner.row_splits, value.row_splits), True)
        width = array.shape(inner, out_type=value.row_splits.dtype)[1]
        return type(value)(_merged_with_next(inner, 0), value.row_splits * width, True)
    sizes = array.shape(value)
    result = array.reshape(value, joining.concat([sizes[:axis], [-1], sizes[axis + 2 :]], axis=0))
    if value.shape.ndims is not None:
        known = value.shape.as_list()
        pair = known[axis : axis + 2]
        result.set_shape([*known[:axis], product(pair), *known[axis + 2 :]])
    return result


def item_of(value: Any, keys: list[Any]) -> Any:
    """value[keys]."""
    if not keys:
        return value
    if not isinstance(value, RaggedRows):
        return value[tuple(keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        return item_of(value, _without_ellipsis(rest, value.shape.ndims))
    if key is None:
        inner = item_of(value, rest)
        kind: Any = type(value)
        return kind.from_uniform_row_length(
            inner, count_values(inner, value.row_splits.dtype), nrows=1, validate=False
        )
    if isinstance(key, slice):
        rows = value if _is_whole(key) else _sliced_rows(value, key)
        return _inner_item(rows, rest)
    splits = value.row_splits
    start = splits[:-1][key]
    limit = splits[1:][key]
    return item_of(value.values[start:limit], rest)


def _inner_item(value: Any, keys: list[Any]) -> Any:
    """The keys applied to each row."""
    if not keys:
        return value
    if not isinstance(value, RaggedRows):
        return value[tuple([slice(None)] + keys)]
    key, rest = keys[0], keys[1:]
    if key is Ellipsis:
        rank = value.shape.ndims
        return _inner_item(value, _without_ellipsis(rest, None if rank is None else rank - 1))
    if key is None:
        inner = _inner_item(value, rest)
        kind: Any = type(value)
        return kind.from_uniform_row_length(
            inner, 1, nrows=count_values(inner, value.row_splits.dtype), validate=False
        )
    if isinstance(key, slice):
        if not _is_whole(key):
            value = _sliced_columns(value, key)
        return value.with_values(_inner_item(value.values, rest))
    if value._uniform_row_length is None:
        raise ValueError("Cannot index into an inner ragged dimension.")
    length = value._uniform_row_length
    if isinstance(key, int) and not -length <= key < length:
        raise ValueError(f"Index {key} is out of bounds for a dimension of size {length}")
    places = value.row_starts() + (key % length if isinstance(key, int) else math_ops.cast(key, value.row_splits.dtype))
    return _inner_item(take_rows(value.values, places), rest)


def _without_ellipsis(rest: list[Any], rank: int | None) -> list[Any]:
    if not rest:
        return []
    if rank is None:
        raise ValueError("Ellipsis not supported for unknown shape RaggedTensors")
    used = sum(each is not None for each in rest)
    return [slice(None)] * max(0, rank - used) + rest


def _is_whole(key: slice) -> bool:
    return key.start is None and key.stop is None and key.step is None


def _sliced_rows(value: RaggedRows, key: slice) -> RaggedRows:
    places = math_ops.range(value.nrows())[key]
    return take_rows(value, places)


def _sliced_columns(value: RaggedRows, key: slice) -> RaggedRows:
    """Each row[key]."""
    lengths, dtype = value.row_lengths(), value.row_splits.dtype
    step = 1 if key.step is None else key.step
    if isinstance(step, int) and step == 0:
        raise ValueError("slice step cannot be zero")
    zero, forward = constant(0, dtype), not isinstance(step, int) or step > 0
    low, high = (zero, lengths) if forward else (zero - 1, lengths - 1)

    def bound(place: Any, default: Any) -> Any:
        if place is None:
            return default
        place = math_ops.cast(convert_to_tensor(place), dtype)
        from_end = lengths + place
        chosen = apply_op("SelectV2", condition=math_ops.less(place, zero), t=from_end,
                          e=filling.zeros_like(lengths) + place)  # fmt: skip
        return math_ops.minimum(math_ops.maximum(chosen, low), high)

    starts = bound(key.start, filling.zeros_like(lengths) if forward else lengths - 1)
    limits = bound(key.stop, lengths if forward else filling.zeros_like(lengths) - 1)
    offsets = value.row_starts()
    splits, places = apply_op(
        "RaggedRange", starts=starts + offsets, limits=limits + offsets,
        deltas=math_ops.cast(convert_to_tensor(step), dtype), Tsplits=dtype,
    )  # fmt: skip
    splits.set_shape(value.row_splits.shape)
    return type(value)(take_rows(value.values, places), splits, True)


def take_rows(params: Any, indices: Tensor) -> Any:
    """Rows of a Tensor or RaggedTensor, by a vector of their numbers."""
    if not isinstance(params, RaggedRows):
        return gathering.gather(params, indices)
    outputs = apply_op(
        "RaggedGather", params_nested_splits=list(params.nested_row_splits), params_dense_values=params.flat_values,
        indices=indices, OUTPUT_RAGGED_RANK=params.ragged_rank + (indices.shape.ndims or 1) - 1,
    )  # fmt: skip
    splits, flat = list(outputs[0]), outputs[1]
    if params.flat_values.shape.ndims is not None:
        flat.set_shape(TensorShape([None]).concatenate(params.flat_values.shape[1:]))
    count = indices.shape.as_list()[0] if indices.shape.ndims else None
    if splits and count is not None:
        splits[0].set_shape([count + 1])
    result = flat
    for each in reversed(splits):
        result = type(params)(result, each, True)
    return result
