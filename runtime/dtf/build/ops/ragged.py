"""Static shapes of the ops on ragged tensors. Kernels: `run.kernels.ragged`; gradients: `ragged_grad`."""

from __future__ import annotations

from dtf.build.constant_value import constant_value_as_shape
from dtf.build.shape_rules import shape_rule, unknown
from dtf.build.tensor import Operation
from dtf.wire.tensor_shape import TensorShape

_VECTOR = TensorShape([None])


@shape_rule("RaggedRange")
def _(op: Operation) -> list[TensorShape]:
    rows = next((each.shape.as_list()[0] for each in op.inputs if each.shape.ndims == 1), None)
    if all(each.shape.ndims == 0 for each in op.inputs):
        rows = 1
    return [TensorShape([None if rows is None else rows + 1]), _VECTOR]


@shape_rule("RaggedGather")
def _(op: Operation) -> list[TensorShape]:
    values = op.inputs[-2].shape.with_rank_at_least(1)
    return [*[_VECTOR] * (len(op.outputs) - 1), TensorShape([None]).concatenate(values[1:])]


@shape_rule("RaggedTensorToSparse")
def _(op: Operation) -> list[TensorShape]:
    values = op.inputs[-1].shape
    rank = None if values.ndims is None else len(op.inputs) - 1 + values.ndims
    return [TensorShape([None, rank]), _VECTOR, TensorShape([rank])]


@shape_rule("RaggedTensorToTensor")
def _(op: Operation) -> list[TensorShape]:
    return unknown(op) if op.inputs[0].shape.ndims != 1 else [constant_value_as_shape(op.inputs[0])]


@shape_rule("RaggedFillEmptyRows")
def _(op: Operation) -> list[TensorShape]:
    return [_VECTOR, _VECTOR, _VECTOR, op.inputs[0].shape.with_rank(1)]


@shape_rule("RaggedFillEmptyRowsGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(1), TensorShape([])]


@shape_rule("RaggedTensorToVariant")
def _(op: Operation) -> list[TensorShape]:
    if not op.get_attr("batched_input"):
        return [TensorShape([])]
    first = op.inputs[0].shape
    rows = None if first.ndims is None else first.with_rank_at_least(1).as_list()[0]
    if rows is not None and op.get_attr("RAGGED_RANK"):
        rows -= 1
    return [TensorShape([rows])]


@shape_rule("RaggedTensorFromVariant")
def _(op: Operation) -> list[TensorShape]:
    return [*[_VECTOR] * (len(op.outputs) - 1), TensorShape(None)]
