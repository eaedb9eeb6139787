"""Public functions and shape rules of sums, means and extremes over segments, the rows of one number.

Kernels: `run.kernels.segment`; gradients: `math_grad`.
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.math import cast, maximum, one_op, sqrt, subtract, truediv
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum", "sparse_segment_mean",
    "sparse_segment_sqrt_n", "sparse_segment_sum", "unsorted_segment_max", "unsorted_segment_mean",
    "unsorted_segment_min", "unsorted_segment_prod", "unsorted_segment_sqrt_n", "unsorted_segment_sum",
]  # fmt: skip


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """As `unsorted_segment_sum`, divided by the number of rows of the segment."""
    with name_scope(name, "UnsortedSegmentMean"):
        counts, data, segment_ids = _segment_sizes(data, segment_ids, num_segments)
        return truediv(unsorted_segment_sum(data, segment_ids, num_segments), counts)


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: TensorLike, name: str | None = None
) -> Tensor:
    """As `unsorted_segment_sum`, divided by the square root of the number of rows of the segment."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        counts, data, segment_ids = _segment_sizes(data, segment_ids, num_segments)
        return truediv(unsorted_segment_sum(data, segment_ids, num_segments), sqrt(counts))


def _segment_sizes(data: Any, segment_ids: Any, num_segments: Any) -> tuple[Tensor, Tensor, Tensor]:
    """The sizes of the segments, at least 1, as [num_segments, 1, ...] of the type of data; data and ids as tensors."""
    data = convert_to_tensor(data)
    segment_ids = convert_to_tensor(segment_ids)
    ones = apply_op("OnesLike", x=cast(segment_ids, data.dtype.base_dtype))
    counts = maximum(unsorted_segment_sum(ones, segment_ids, num_segments), cast(1, data.dtype.base_dtype))
    return append_ones(counts, data, segment_ids), data, segment_ids


def append_ones(x: Tensor, longer: Tensor, shorter: Tensor) -> Tensor:
    """x with as many dimensions of size 1 appended as `longer` has more dimensions than `shorter`."""
    if longer.shape.ndims is not None and shorter.shape.ndims is not None:
        for _ in builtins.range(longer.shape.ndims - shorter.shape.ndims):
            x = apply_op("ExpandDims", input=x, dim=-1)
        return x
    more = subtract(apply_op("Rank", input=longer), apply_op("Rank", input=shorter))
    ones = apply_op("Fill", dims=apply_op("Reshape", tensor=more, shape=[1]), value=constant(1))
    shape = apply_op("ConcatV2", values=[apply_op("Shape", input=x), ones], axis=0)
    return apply_op("Reshape", tensor=x, shape=shape)


def sparse_segment_sum(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """Row i of the result is the sum of data[indices[j]] over all j with segment_ids[j] = i; the ids are sorted."""
    return _sparse_segment("SparseSegmentSum", data, indices, segment_ids, name, num_segments)


def sparse_segment_mean(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """As `sparse_segment_sum`, divided by the number of rows of the segment."""
    return _sparse_segment("SparseSegmentMean", data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n(
    data: TensorLike,
    indices: TensorLike,
    segment_ids: TensorLike,
    name: str | None = None,
    num_segments: TensorLike | None = None,
) -> Tensor:
    """As `sparse_segment_sum`, divided by the square root of the number of rows of the segment."""
    return _sparse_segment("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments)


def _sparse_segment(
    op_type: str, data: Any, indices: Any, segment_ids: Any, name: str | None, num_segments: Any
) -> Tensor:
    if num_segments is None:
        return apply_op(op_type, name, data=data, indices=indices, segment_ids=segment_ids)
    return apply_op(
        op_type + "WithNumSegments", name, data=data, indices=indices, segment_ids=segment_ids,
        num_segments=num_segments,
    )  # fmt: skip


segment_max = one_op(
    "SegmentMax", "segment_max", ["data", "segment_ids"],
    "Row i is the maximum of the rows of data whose id is i; 0 if there are none. The ids are sorted.",
    "with one row for each segment",
)  # fmt: skip
segment_mean = one_op(
    "SegmentMean", "segment_mean", ["data", "segment_ids"],
    "Row i is the mean of the rows of data whose id is i; 0 if there are none. The ids are sorted.",
    "with one row for each segment",
)  # fmt: skip
segment_min = one_op(
    "SegmentMin", "segment_min", ["data", "segment_ids"],
    "Row i is the minimum of the rows of data whose id is i; 0 if there are none. The ids are sorted.",
    "with one row for each segment",
)  # fmt: skip
segment_prod = one_op(
    "SegmentProd", "segment_prod", ["data", "segment_ids"],
    "Row i is the product of the rows of data whose id is i; 1 if there are none. The ids are sorted.",
    "with one row for each segment",
)  # fmt: skip
segment_sum = one_op(
    "SegmentSum", "segment_sum", ["data", "segment_ids"],
    "Row i is the sum of the rows of data whose id is i; 0 if there are none. The ids are sorted.",
    "with one row for each segment",
)  # fmt: skip
unsorted_segment_max = one_op(
    "UnsortedSegmentMax", "unsorted_segment_max", ["data", "segment_ids", "num_segments"],
    "Row i is the maximum of the rows of data whose id is i; the least value of the type if there are none.",
    "with one row for each segment",
)  # fmt: skip
unsorted_segment_min = one_op(
    "UnsortedSegmentMin", "unsorted_segment_min", ["data", "segment_ids", "num_segments"],
    "Row i is the minimum of the rows of data whose id is i; the greatest value of the type if there are none.",
    "with one row for each segment",
)  # fmt: skip
unsorted_segment_prod = one_op(
    "UnsortedSegmentProd", "unsorted_segment_prod", ["data", "segment_ids", "num_segments"],
    "Row i is the product of the rows of data whose id is i; 1 if there are none.",
    "with one row for each segment",
)  # fmt: skip
unsorted_segment_sum = one_op(
    "UnsortedSegmentSum", "unsorted_segment_sum", ["data", "segment_ids", "num_segments"],
    "Row i is the sum of the rows of data whose id is i; rows with a negative id are dropped.",
    "with one row for each segment",
)  # fmt: skip


# -- shape rules --


@shape_rule("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
def _segment_shape(op: Operation) -> list[TensorShape]:
    data, ids = op.inputs[0].shape.with_rank_at_least(1), op.inputs[1].shape.with_rank(1)
    data[:1].merge_with(ids)
    return [TensorShape([None]).concatenate(data[1:])]


@shape_rule("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_segment_shape(op: Operation) -> list[TensorShape]:
    data, ids = op.inputs[0].shape, op.inputs[1].shape
    count = constant_value(op.inputs[2])
    if count is not None and count < 0:
        raise ValueError(f"num_segments must not be negative: {count}")
    if data.ndims is None or ids.ndims is None:
        return [unknown_shape()]
    data[: ids.ndims].merge_with(ids)
    return [TensorShape([None if count is None else int(count)]).concatenate(data[ids.ndims :])]


@shape_rule(
    "SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN", "SparseSegmentSumWithNumSegments",
    "SparseSegmentMeanWithNumSegments", "SparseSegmentSqrtNWithNumSegments", "SparseSegmentSumGrad",
    "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad",
)  # fmt: skip
def _sparse_segment_shape(op: Operation) -> list[TensorShape]:
    data = op.inputs[0].shape.with_rank_at_least(1)
    op.inputs[1].shape.with_rank(1).merge_with(op.inputs[2].shape)
    rows = constant_value(op.inputs[3]) if len(op.inputs) > 3 else None
    return [TensorShape([None if rows is None else int(rows)]).concatenate(data[1:])]


@shape_rule("SparseSegmentSumGradV2", "SparseSegmentMeanGradV2", "SparseSegmentSqrtNGradV2")
def _sparse_segment_grad_shape(op: Operation) -> list[TensorShape]:
    grad = op.inputs[0].shape.with_rank_at_least(1)
    op.inputs[1].shape.with_rank(1).merge_with(op.inputs[2].shape)
    return [TensorShape([None]).concatenate(grad[1:]), TensorShape([None])]
