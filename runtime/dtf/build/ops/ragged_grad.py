"""Gradients of the ops on ragged tensors, by their values."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array, gathering
from dtf.build.ops.math import cast, range
from dtf.build.ops.reductions import reduce_sum
from dtf.build.ops.segment import unsorted_segment_sum
from dtf.build.tensor import Operation, Tensor

not_differentiable("RaggedFillEmptyRowsGrad", "RaggedRange", "RaggedTensorFromVariant", "RaggedTensorToVariant")


@gradient("RaggedFillEmptyRows")
def _fill_empty_rows(op: Operation, _: Any, grad: Any, __: Any, ___: Any) -> list[Any]:
    values, default = apply_op("RaggedFillEmptyRowsGrad", reverse_index_map=op.outputs[3], grad_values=grad)
    return [None, values, None, default]


@gradient("RaggedTensorToSparse")
def _to_sparse(op: Operation, _: Any, grad: Any, __: Any) -> list[Any]:
    values = op.inputs[-1]
    return [*[None] * (len(op.inputs) - 1), array.reshape(grad, array.shape(values))]


@gradient("RaggedGather")
def _gather(op: Operation, *grads: Any) -> list[Any]:
    count = op.get_attr("PARAMS_RAGGED_RANK")
    splits, values = op.inputs[:count], op.inputs[count]
    # The same gather of the values' numbers shows where each value went.
    size = array.shape(values)[0]
    numbers = apply_op(
        "RaggedGather", params_nested_splits=list(splits), params_dense_values=range(size),
        indices=op.inputs[count + 1], OUTPUT_RAGGED_RANK=op.get_attr("OUTPUT_RAGGED_RANK"),
    ).output_dense_values  # fmt: skip
    return [*[None] * count, unsorted_segment_sum(grads[-1], numbers, size), None]


@gradient("RaggedTensorToTensor")
def _to_tensor(op: Operation, grad: Any) -> list[Any]:
    shape, values, default, *partitions = op.inputs
    # The number of each value in the places that it fills, and in all others one more than the last.
    size = array.shape(values)[0]
    sizes = array.shape(grad)
    rank = len([kind for kind in op.get_attr("row_partition_types") if kind != b"FIRST_DIM_SIZE"]) + 1
    places = apply_op(
        "RaggedTensorToTensor", shape=cast(sizes[:rank], shape.dtype), values=range(size), default_value=size,
        row_partition_tensors=partitions, row_partition_types=op.get_attr("row_partition_types"),
    )  # fmt: skip
    rows = array.reshape(grad, _joined([[-1], sizes[rank:]]))
    sums = unsorted_segment_sum(rows, array.reshape(places, [-1]), size + 1)
    by_default = _summed_to(gathering.gather(sums, size), default)
    return [None, sums[:-1], by_default, *[None] * len(partitions)]


def _joined(parts: list[Any]) -> Tensor:
    return apply_op("ConcatV2", values=parts, axis=0)


def _summed_to(grad: Tensor, default: Tensor) -> Tensor:
    """The gradient of a default that was broadcast."""
    shape = array.shape(default)
    axes = apply_op("BroadcastGradientArgs", s0=shape, s1=array.shape(grad)).r0
    return array.reshape(reduce_sum(grad, axes), shape)
