"""Gradients of pooling by windows of differing sizes: they take the borders that were drawn."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.array import shape_of
from dtf.build.tensor import Operation
from dtf.wire import dtypes

not_differentiable("FractionalAvgPoolGrad", "FractionalMaxPoolGrad")


@gradient("FractionalAvgPool")
def _(op: Operation, grad: Any, *_: Any) -> list[Any]:
    return [
        apply_op(
            "FractionalAvgPoolGrad", out_backprop=grad,
            orig_input_tensor_shape=shape_of(op.inputs[0], out_type=dtypes.int64),
            row_pooling_sequence=op.outputs[1], col_pooling_sequence=op.outputs[2],
            overlapping=op.get_attr("overlapping"),
        )
    ]  # fmt: skip


@gradient("FractionalMaxPool")
def _(op: Operation, grad: Any, *_: Any) -> list[Any]:
    return [
        apply_op(
            "FractionalMaxPoolGrad", orig_input=op.inputs[0], orig_output=op.outputs[0], out_backprop=grad,
            row_pooling_sequence=op.outputs[1], col_pooling_sequence=op.outputs[2],
            overlapping=op.get_attr("overlapping"),
        )
    ]  # fmt: skip
