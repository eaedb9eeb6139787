"""Gradients of the tensor array ops: each acts on the gradient array of its array, which the gradients computation
names.

A write's gradient is a read of the gradient array, a read's is a write to it, and so for the ops on many elements.
"""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
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
    *"Stack StackPush StackPop StackClose TensorArray TensorArrayV2 TensorArrayGrad TensorArrayGradV2 TensorArraySize "
    "TensorArraySizeV2 TensorArrayClose TensorArrayCloseV2 TensorArrayPack TensorArrayUnpack".split(),
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


# -- the first two versions, whose handles are strings and whose gradients have no flow of their own


def _gradient_handle(op: Any, flow: Tensor, source: Tensor) -> Tensor:
    version = "V2" if op.type.endswith("V2") else ""
    return apply_op(f"TensorArrayGrad{version}", handle=op.inputs[0], source=_source(source.name), flow_in=flow)


def _take_and_give(take: str, give: str, places: str) -> None:
    """The gradients of two ops, each of which is the other one on the gradient array. `places`: their argument."""

    @gradient(f"TensorArray{take}", f"TensorArray{take}V2")
    def _(op, grad):
        handle = _gradient_handle(op, op.inputs[2], grad)
        arguments = {"handle": handle, places: op.inputs[1], "value": grad, "flow_in": op.inputs[2]}
        return [None, None, apply_op(op.type.replace(take, give), **arguments)]

    @gradient(f"TensorArray{give}", f"TensorArray{give}V2")
    def _(op, flow):
        handle = _gradient_handle(op, flow, flow)
        arguments = {"handle": handle, places: op.inputs[1], "flow_in": flow, "dtype": op.get_attr("T")}
        return [None, None, apply_op(op.type.replace(give, take), **arguments), flow]


_take_and_give("Read", "Write", "index")
_take_and_give("Gather", "Scatter", "indices")


@gradient("TensorArrayConcat", "TensorArrayConcatV2")
def _(op, grad, lengths_grad):
    handle = _gradient_handle(op, op.inputs[1], grad)
    name = op.type.replace("Concat", "Split")
    return [None, apply_op(name, handle=handle, value=grad, lengths=op.outputs[1], flow_in=op.inputs[1])]


@gradient("TensorArraySplit", "TensorArraySplitV2")
def _(op, flow):
    handle = _gradient_handle(op, flow, flow)
    name, dtype = op.type.replace("Split", "Concat"), op.get_attr("T")
    return [None, apply_op(name, handle=handle, flow_in=flow, dtype=dtype).value, None, flow]
