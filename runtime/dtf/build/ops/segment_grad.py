"""Gradients of reductions by segments.

`math_grad` has the conventions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient
from dtf.build.ops.math import (
    cast,
    div_no_nan,
    divide,
    equal,
    greater,
    greater_equal,
    logical_and,
    maximum,
    multiply,
)
from dtf.build.ops.math_grad import Gradients, number_like, select, zeros_of
from dtf.build.ops.segment import append_ones, segment_prod, segment_sum, unsorted_segment_prod, unsorted_segment_sum
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes


def _rows(params: Any, ids: Tensor) -> Tensor:
    return apply_op("GatherV2", params=params, indices=ids, axis=0)


@gradient("SegmentSum")
def _segment_sum(op: Operation, grad: Any) -> Gradients:
    return [_rows(grad, op.inputs[1]), None]


@gradient("SegmentMean")
def _segment_mean(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    ones = apply_op("OnesLike", x=cast(ids, data.dtype.real_dtype.base_dtype))
    counts = cast(maximum(segment_sum(ones, ids), number_like(1, ones)), data.dtype.base_dtype)
    return [_rows(divide(grad, append_ones(counts, data, ids)), ids), None]


@gradient("SegmentMax", "SegmentMin")
def _segment_extreme(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    selected = equal(data, _rows(op.outputs[0], ids))
    counts = segment_sum(cast(selected, grad.dtype.base_dtype), ids)
    shared = _rows(div_no_nan(grad, counts), ids)
    return [select(selected, shared, zeros_of(shared)), None]


@gradient("SegmentProd")
def _segment_prod(op: Operation, grad: Any) -> Gradients:
    data, ids = op.inputs
    return [_prod_of_others(op, data, grad, lambda x: segment_sum(x, ids), lambda x: segment_prod(x, ids), ids), None]


@gradient("UnsortedSegmentSum")
def _unsorted_segment_sum(op: Operation, grad: Any) -> Gradients:
    return [_rows_or_zeros(grad, op.inputs[1])[0], None, None]


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_segment_extreme(op: Operation, grad: Any) -> Gradients:
    data, ids, count = op.inputs
    outputs, safe_ids, kept = _rows_or_zeros(op.outputs[0], ids)
    selected = logical_and(equal(data, outputs), kept)
    sharing = unsorted_segment_sum(cast(selected, grad.dtype.base_dtype), ids, count)
    shared = _rows(div_no_nan(grad, sharing), safe_ids)
    return [select(selected, shared, zeros_of(shared)), None, None]


@gradient("UnsortedSegmentProd")
def _unsorted_segment_prod(op: Operation, grad: Any) -> Gradients:
    data, ids, count = op.inputs

    def total(x: Tensor) -> Tensor:
        return unsorted_segment_sum(x, ids, count)

    def product(x: Tensor) -> Tensor:
        return unsorted_segment_prod(x, ids, count)

    _, safe_ids, kept = _rows_or_zeros(grad, ids)
    result = _prod_of_others(op, data, grad, total, product, safe_ids)
    return [select(kept, result, zeros_of(result)), None, None]


def _prod_of_others(
    op: Operation,
    data: Tensor,
    grad: Any,
    total: Callable[[Tensor], Tensor],
    product: Callable[[Tensor], Tensor],
    ids: Tensor,
) -> Tensor:
    """The gradient of products of segments: the product of the other elements, correct also for zeros."""
    is_zero = equal(data, number_like(0, data))
    zeros_in_segment = total(cast(is_zero, dtypes.int32))
    grad = select(greater(zeros_in_segment, constant(1)), zeros_of(grad), grad)
    product_of_nonzeros = product(select(is_zero, apply_op("OnesLike", x=data), data))
    others = select(is_zero, _rows(product_of_nonzeros, ids), divide(_rows(op.outputs[0], ids), data))
    return multiply(_rows(grad, ids), others)


def _rows_or_zeros(params: Any, ids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """params[ids] with zeros where an id is negative; the ids with 0 in place of those; and where they are kept."""
    zero = number_like(0, ids)
    safe_ids = maximum(ids, zero)
    rows = _rows(params, safe_ids)
    kept = append_ones(greater_equal(ids, zero), rows, ids)
    kept = logical_and(kept, cast(apply_op("OnesLike", x=rows), dtypes.bool))
    return select(kept, rows, zeros_of(rows)), safe_ids, kept


@gradient("SparseSegmentSum", "SparseSegmentSumWithNumSegments")
def _sparse_segment_sum(op: Operation, grad: Any) -> Gradients:
    data, indices, ids = op.inputs[:3]
    if op.get_attr("sparse_gradient"):
        return _by_rows(op, grad)
    by_data = unsorted_segment_sum(_rows(grad, ids), indices, _first_size(data))
    return [by_data] + [None] * (len(op.inputs) - 1)


def _by_rows(op: Operation, grad: Any) -> Gradients:
    """The gradient of those rows only that the segments read."""
    data, indices, ids = op.inputs[:3]
    rows, numbers = apply_op(
        f"{op.type.removesuffix('WithNumSegments')}GradV2", grad=grad, indices=indices, segment_ids=ids,
        dense_output_dim0=_first_size(data),
    )  # fmt: skip
    return [IndexedSlices(rows, numbers, apply_op("Shape", input=data))] + [None] * (len(op.inputs) - 1)


@gradient(
    "SparseSegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtN", "SparseSegmentSqrtNWithNumSegments"
)
def _sparse_segment_mean(op: Operation, grad: Any) -> Gradients:
    data, indices, ids = op.inputs[:3]
    if op.get_attr("sparse_gradient"):
        return _by_rows(op, grad)
    op_type = "SparseSegmentMeanGrad" if "Mean" in op.type else "SparseSegmentSqrtNGrad"
    by_data = apply_op(op_type, grad=grad, indices=indices, segment_ids=ids, output_dim0=_first_size(data))
    return [by_data] + [None] * (len(op.inputs) - 1)


def _first_size(data: Tensor) -> Tensor:
    return apply_op(
        "StridedSlice", input=apply_op("Shape", input=data), begin=[0], end=[1], strides=[1], shrink_axis_mask=1
    )
  # fmt: skip
