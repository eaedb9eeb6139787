"""Gradients of the tensor array ops: each acts on the gradient array of its array, which the gradients computation
names.

A write's gradient is a read of the gradient array, a read's is a write to it, and so for the ops on many elements.
"""

from __future__ import annotations

from typing import Any

from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops.tensor_array import TensorArray
from dtf.build.tensor import Tensor

not_differentiable(
    "StackV2",
    "StackPushV2",
    "StackPopV2",
    "StackCloseV2",
    "TensorArrayV3",
    "TensorArrayGradV3",
    "TensorArrayGradWithShape",
    "TensorArraySizeV3",
    "TensorArrayCloseV3",
)


def _gradient_array(op: Any, flow: Tensor, dtype: Any) -> TensorArray:
    """The gradient array of the array that `op` acts on, for the gradients computation that `flow` belongs to."""
    return TensorArray(dtype, handle=op.inputs[0], flow=flow, infer_shape=False).grad(_source(flow.name), flow=flow)


def _source(name: str) -> str:
    """The name of a gradients computation: the outermost scope that begins with "gradients"."""
    scope = name.split(":")[0].split("/")
    positions = [i for i, part in enumerate(scope) if part.startswith("gradients")]
    if not positions:
        raise ValueError(f"Expected tf.gradients to be the scope of {name}, got none")
    return "/".join(scope[: positions[-1] + 1])


@gradient("TensorArrayReadV3")
def _(op, grad):
    flow = op.inputs[2]
    array = TensorArray(op.get_attr("dtype"), handle=op.inputs[0], flow=flow, infer_shape=False)
    written = array.grad(_source(grad.name), flow=flow).write(op.inputs[1], grad)
    return [None, None, written.flow]


@gradient("TensorArrayWriteV3")
def _(op, flow):
    value = _gradient_array(op, flow, op.get_attr("T")).read(op.inputs[1])
    return [None, None, value, flow]


@gradient("TensorArrayGatherV3")
def _(op, grad):
    flow = op.inputs[2]
    array = TensorArray(op.get_attr("dtype"), handle=op.inputs[0], flow=flow, infer_shape=False)
    written = array.grad(_source(grad.name), flow=flow).scatter(op.inputs[1], grad)
    return [None, None, written.flow]


@gradient("TensorArrayScatterV3")
def _(op, flow):
    values = _gradient_array(op, flow, op.get_attr("T")).gather(op.inputs[1])
    return [None, None, values, flow]


@gradient("TensorArrayConcatV3")
def _(op, grad, lengths_grad):
    flow = op.inputs[1]
    array = TensorArray(op.get_attr("dtype"), handle=op.inputs[0], flow=flow, infer_shape=False)
    written = array.grad(_source(grad.name), flow=flow).split(grad, op.outputs[1])
    return [None, written.flow]


@gradient("TensorArraySplitV3")
def _(op, flow):
    value = _gradient_array(op, flow, op.get_attr("T")).concat()
    return [None, value, None, flow]
