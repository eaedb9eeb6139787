"""Gradients of convolution and pooling, and of their gradient ops (each is linear in its gradient input)."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.gradients import gradient
from dtf.build.ops import array as array_ops
from dtf.build.tensor import Operation

Gradients = list[Any]


@gradient("Conv2D", "DepthwiseConv2dNative")
def _(op: Operation, grad: Any) -> Gradients:
    images, filters = op.inputs
    return [
        _backprop_input(op, op.type, array_ops.shape(images), filters, grad),
        _backprop_filter(op, op.type, images, array_ops.shape(filters), grad),
    ]


@gradient("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput")
def _(op: Operation, grad: Any) -> Gradients:
    _, filters, out_backprop = op.inputs
    forward = op.type.removesuffix("BackpropInput")
    return [
        None,
        _backprop_filter(op, forward, grad, array_ops.shape(filters), out_backprop),
        _forward(op, forward, grad, filters),
    ]


@gradient("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def _(op: Operation, grad: Any) -> Gradients:
    images, _, out_backprop = op.inputs
    forward = op.type.removesuffix("BackpropFilter")
    return [
        _backprop_input(op, forward, array_ops.shape(images), grad, out_backprop),
        None,
        _forward(op, forward, images, grad),
    ]


def _forward(op: Operation, forward: str, images: Any, filters: Any) -> Any:
    return apply_op(forward, input=images, filter=filters, **_settings(op))


def _backprop_input(op: Operation, forward: str, sizes: Any, filters: Any, grad: Any) -> Any:
    return apply_op(
        f"{forward}BackpropInput", input_sizes=sizes, filter=filters, out_backprop=grad, **_settings(op)
    )


def _backprop_filter(op: Operation, forward: str, images: Any, sizes: Any, grad: Any) -> Any:
    return apply_op(
        f"{forward}BackpropFilter", input=images, filter_sizes=sizes, out_backprop=grad, **_settings(op)
    )


@gradient("AvgPool")
def _(op: Operation, grad: Any) -> Gradients:
    return [apply_op("AvgPoolGrad", orig_input_shape=array_ops.shape(op.inputs[0]), grad=grad, **_settings(op))]


@gradient("AvgPoolGrad")
def _(op: Operation, grad: Any) -> Gradients:
    return [None, apply_op("AvgPool", value=grad, **_settings(op))]


@gradient("MaxPool", "MaxPoolV2")
def _(op: Operation, grad: Any) -> Gradients:
    version = op.type.removeprefix("MaxPool")
    made = _of_max(f"MaxPoolGrad{version}", op, op.inputs[0], op.outputs[0], grad, op.inputs[1:])
    return [made, *[None] * (len(op.inputs) - 1)]


@gradient("MaxPoolGrad", "MaxPoolGradV2", "MaxPoolGradGrad", "MaxPoolGradGradV2")
def _(op: Operation, grad: Any) -> Gradients:
    """The one spreads a gradient to where the maxima stand, the other gathers from there."""
    version = "V2" if op.type.endswith("V2") else ""
    transposed = "MaxPoolGrad" if "GradGrad" in op.type else "MaxPoolGradGrad"
    made = _of_max(transposed + version, op, op.inputs[0], op.inputs[1], grad, op.inputs[3:])
    return [None, None, made, *[None] * (len(op.inputs) - 3)]


def _of_max(op_type: str, op: Operation, images: Any, pooled: Any, grad: Any, window: Any) -> Any:
    settings = _settings(op)
    if "explicit_paddings" in settings and op_type == "MaxPoolGradGrad":
        if settings["explicit_paddings"]:
            raise LookupError("MaxPoolGrad with explicit paddings has no gradient.")
        del settings["explicit_paddings"]
    if window:
        settings["ksize"], settings["strides"] = window
    return apply_op(op_type, orig_input=images, orig_output=pooled, grad=grad, **settings)


def _settings(op: Operation) -> dict[str, Any]:
    """All attributes but the dtype, under their names."""
    assert op._op_def is not None
    return {attr.name: op.get_attr(attr.name) for attr in op._op_def.attrs if attr.name != "T"}
