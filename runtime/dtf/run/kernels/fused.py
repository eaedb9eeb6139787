"""Kernels of ops that TensorFlow's graph optimizer makes of several: a product or convolution, then bias, activation.

Our own graphs do not have them; a real TensorFlow master that sends its partition to us does. Each is the plain
kernel, followed in place by what `fused_ops` names.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from dtf.run.kernels import Function, KernelNode, bind, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.value_types import Array, ArrayFunction, AttrValue
from dtf.wire import errors, opdef
from dtf.wire.window_shapes import channel_axis


@kernel("_FusedMatMul", "_FusedConv2D", "_FusedDepthwiseConv2dNative")
def _(node: KernelNode) -> Function:
    plain = _plain(node, node.op.removeprefix("_Fused"))
    stages = [name.decode() for name in node.attr("fused_ops")]
    unknown = [name for name in stages if name not in (*_ACTIVATIONS, *_ARGUMENTS)]
    if unknown:
        raise errors.UnimplementedError.of(f"Fusion of {unknown[0]} is not implemented: {stages}")
    expected = sum(_ARGUMENTS.get(name, 0) for name in stages)
    given = len(node.attr("TArgs")) if "TArgs" in node.attrs else node.attr("num_args")
    if given != expected:
        raise invalid(f"{node.op} with {[*stages]} must have {expected} extra arguments, but has {given}")
    data_format = node.attrs.get("data_format", b"NHWC").decode()
    epsilon = node.attrs.get("epsilon", 0.0)
    activations = [_plain(node, name, alpha=node.attr("leakyrelu_alpha")) for name in stages if name in _ACTIVATIONS]

    def fused(first: Array, second: Array, *arguments: Array) -> Array:
        result = plain(first, second)
        axis = channel_axis(data_format, result.ndim) if result.ndim == 4 else result.ndim - 1
        around = tuple(-1 if i == axis else 1 for i in range(result.ndim))
        rest = iter(arguments)
        for name in stages:
            if name == "BiasAdd":
                bias = next(rest)
                if bias.ndim != 1:
                    raise invalid(f"bias must be 1-dimensional, got shape {list(bias.shape)}")
                result += bias.reshape(around)
            elif name == "Add":
                result = result + next(rest)
            elif name == "FusedBatchNorm":
                scale, offset, mean, variance = (next(rest) for _ in range(4))
                slope = scale / np.sqrt(variance + scale.dtype.type(epsilon))
                result *= slope.reshape(around)
                result += (offset - mean * slope).reshape(around)
        for activation in activations:
            result = activation(result)
        return result

    return fused


@kernel("_FusedBatchNormEx")
def _(node: KernelNode) -> Function:
    plain = _plain(node, "FusedBatchNormV3")
    mode = node.attr("activation_mode").decode()
    if mode not in ("Identity", "Relu"):
        raise errors.UnimplementedError.of(f"Fusion of batch normalisation and {mode} is not implemented")

    def fused(
        x: Array, scale: Array, offset: Array, mean: Array, variance: Array, *side_inputs: Array
    ) -> tuple[Array, ...]:
        y, *statistics = plain(x, scale, offset, mean, variance)
        for side_input in side_inputs:
            y = y + side_input
        if mode == "Relu":
            y = np.maximum(y, y.dtype.type(0))
        return (y, *statistics)

    return fused


@kernel("FusedPadConv2D", "FusedResizeAndPadConv2D")
def _(node: KernelNode) -> Function:
    pad, convolve = _plain(node, "MirrorPad"), _plain(node, "Conv2D")

    def padded(images: Array, paddings: Array, filters: Array) -> Array:
        result = convolve(pad(images, paddings), filters)
        if not result.size:
            raise errors.InvalidArgumentError.of("Output tensor can't be empty")
        return result

    if node.op == "FusedPadConv2D":
        return padded
    resize = _plain(node, "ResizeBilinear", align_corners=node.attr("resize_align_corners"))

    def resized(images: Array, size: Array, paddings: Array, filters: Array) -> Array:
        return padded(resize(images, size).astype(images.dtype, copy=False), paddings, filters)

    return resized


_ARGUMENTS = {"BiasAdd": 1, "Add": 1, "FusedBatchNorm": 4}
"""How many of the further arguments a stage takes."""

_ACTIVATIONS = frozenset({"Relu", "Relu6", "Elu", "LeakyRelu", "Tanh", "Sigmoid"})


def _plain(node: KernelNode, op: str, **attrs: AttrValue) -> ArrayFunction:
    """The kernel of `op` with its defaults, the attributes of `node`, and these."""
    defaults = {attr.name: attr.default for attr in opdef.get(op).attrs if attr.has_default}
    return cast(ArrayFunction, bind(node._replace(op=op, attrs={**defaults, **node.attrs, **attrs}))[1])


@kernel("_UnaryOpsComposition")
def _(node: KernelNode) -> Function:
    functions = [_plain(node, name.decode()) for name in node.attr("op_names")]

    def composed(x: Array) -> Array:
        for function in functions:
            x = function(x)
        return x

    return composed
