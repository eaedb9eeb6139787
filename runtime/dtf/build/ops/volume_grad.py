"""Gradients of the ops in `volume`; each gradient op is linear in its gradient input, so it also has a gradient."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.ops import array as array_ops
from dtf.build.ops import joining, rearranging
from dtf.build.ops.math import range as range_of
from dtf.build.tensor import Operation

Gradients = list[Any]

not_differentiable(
    "Dilation2DBackpropFilter", "Dilation2DBackpropInput", "MaxPoolGradGradWithArgmax", "MaxPoolGradWithArgmax"
)


def _settings(op: Operation, *without: str) -> dict[str, Any]:
    """All attributes but the types, under their names."""
    assert op._op_def is not None
    return {
        attr.name: op.get_attr(attr.name)
        for attr in op._op_def.attrs
        if attr.type != "type" and attr.name not in without
    }


def _conv(input: Any, filter: Any, settings: dict[str, Any]) -> Any:
    return apply_op("Conv3D", input=input, filter=filter, **settings)


def _by_input(sizes: Any, filter: Any, grad: Any, settings: dict[str, Any]) -> Any:
    return apply_op("Conv3DBackpropInputV2", input_sizes=sizes, filter=filter, out_backprop=grad, **settings)


def _by_filter(input: Any, sizes: Any, grad: Any, settings: dict[str, Any]) -> Any:
    return apply_op("Conv3DBackpropFilterV2", input=input, filter_sizes=sizes, out_backprop=grad, **settings)


@gradient("Conv3D")
def _(op: Operation, grad: Any) -> Gradients:
    input, filter = op.inputs
    settings = _settings(op)
    return [
        _by_input(array_ops.shape(input), filter, grad, settings),
        _by_filter(input, array_ops.shape(filter), grad, settings),
    ]


@gradient("Conv3DBackpropInputV2")
def _(op: Operation, grad: Any) -> Gradients:
    _, filter, backprop = op.inputs
    settings = _settings(op)
    return [None, _by_filter(grad, array_ops.shape(filter), backprop, settings), _conv(grad, filter, settings)]


@gradient("Conv3DBackpropFilterV2")
def _(op: Operation, grad: Any) -> Gradients:
    input, _, backprop = op.inputs
    settings = _settings(op)
    return [_by_input(array_ops.shape(input), grad, backprop, settings), None, _conv(input, grad, settings)]


@gradient("AvgPool3D")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("AvgPool3DGrad", orig_input_shape=array_ops.shape(op.inputs[0]), grad=grad, **_settings(op))]


@gradient("AvgPool3DGrad")
def _(op: Operation, grad: Any) -> Gradients:
    return [None, apply_op("AvgPool3D", input=grad, **_settings(op))]


@gradient("MaxPool3D")
def _(op: Operation, grad: Any) -> Gradients:
    return [_of_max("MaxPool3DGrad", op, op.inputs[0], op.outputs[0], grad)]


@gradient("MaxPool3DGrad", "MaxPool3DGradGrad")
def _(op: Operation, grad: Any) -> Gradients:
    """The one spreads a gradient to where the maxima stand, the other gathers from there."""
    other = "MaxPool3DGrad" if op.type == "MaxPool3DGradGrad" else "MaxPool3DGradGrad"
    return [None, None, _of_max(other, op, op.inputs[0], op.inputs[1], grad)]


def _of_max(op_type: str, op: Operation, input: Any, pooled: Any, grad: Any) -> Any:
    return apply_op(op_type, orig_input=input, orig_output=pooled, grad=grad, **_settings(op))


@gradient("MaxPoolWithArgmax")
def _(op: Operation, grad: Any, _: Any) -> Gradients:
    made = apply_op("MaxPoolGradWithArgmax", input=op.inputs[0], grad=grad, argmax=op.outputs[1], **_settings(op))
    return [made]


@gradient("Dilation2D")
def _(op: Operation, grad: Any) -> Gradients:
    given = {"input": op.inputs[0], "filter": op.inputs[1], "out_backprop": grad, **_settings(op)}
    return [apply_op("Dilation2DBackpropInput", **given), apply_op("Dilation2DBackpropFilter", **given)]


@gradient("ExtractVolumePatches")
def _(op: Operation, grad: Any) -> Gradients:
    # Patches of a volume of voxel numbers say which voxel each place of a patch came from; 0 is the padding.
    shape = array_ops.shape(op.inputs[0])
    batch, channels, voxels = shape[0], shape[4], shape[1] * shape[2] * shape[3]
    numbers = array_ops.reshape(range_of(1, voxels + 1), joining.concat([[1], shape[1:4], [1]], 0))
    rows = array_ops.reshape(apply_op("ExtractVolumePatches", input=numbers, **_settings(op)), [-1])
    by_place = array_ops.reshape(grad, joining.stack([batch, -1, channels]))
    by_voxel = apply_op(
        "UnsortedSegmentSum",
        data=rearranging.transpose(by_place, [1, 0, 2]),
        segment_ids=rows,
        num_segments=voxels + 1,
    )
    return [array_ops.reshape(rearranging.transpose(by_voxel[1:], [1, 0, 2]), shape)]
