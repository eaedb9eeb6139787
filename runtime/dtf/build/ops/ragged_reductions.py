"""Reductions of ragged tensors: tf.reduce_sum, tf.reduce_mean, tf.strings.reduce_join and their neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant as dense_constant
from dtf.build.default_graph import name_scope
from dtf.build.ops import array, filling, gathering, joining, reductions, segment
from dtf.build.ops import math as math_ops
from dtf.build.ops.ragged_arrays import expanded, positive_axis
from dtf.build.ragged import RaggedTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes

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
        axes = sorted(positive_axis(each, rank) for each in axis)
        inner = _reduced(function, segments, value, axes[-1], keepdims)
        return _reduced(function, segments, inner, axes[:-1], keepdims)
    axis = positive_axis(axis, rank)
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
        return expanded(array.expand_dims, result, 1) if keepdims else result
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


#: The handlers of `build.dispatch` that this module has.
HANDLERS: dict[str, Callable[..., Any]] = {
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
    "reduce_join": _reduce_join,
}
