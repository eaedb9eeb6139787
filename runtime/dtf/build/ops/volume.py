"""Convolution and pooling of volumes, morphological dilation, and max pooling that tells where its maxima stand.

Volumes are [batch, depth, height, width, channels] ("NDHWC") or [batch, channels, depth, height, width] ("NCDHW").
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value_as_shape
from dtf.build.ops import math as math_ops
from dtf.build.ops import rearranging
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import channel_axis, window_extent

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "avg_pool3d", "conv3d", "conv3d_backprop_filter", "conv3d_backprop_filter_v2", "conv3d_transpose", "dilation2d",
    "erosion2d", "max_pool3d", "max_pool_with_argmax",
]  # fmt: skip


def conv3d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """The correlation of volumes with filters [depth, height, width, channels in, channels out]."""
    return apply_op(
        "Conv3D",
        name,
        input=input,
        filter=filter if filters is None else filters,
        strides=list(strides),
        padding=padding,
        data_format=data_format,
        dilations=list(dilations),
    )


def conv3d_transpose(
    value: TensorLike,
    filter: TensorLike | None = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: str = "SAME",
    data_format: str = "NDHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to its input. filter: [depth, height, width, channels out, channels
    in]."""
    return apply_op(
        "Conv3DBackpropInputV2",
        name or "conv3d_transpose",
        input_sizes=output_shape,
        filter=filter if filters is None else filters,
        out_backprop=value if input is None else input,
        strides=five(strides, data_format),
        padding=padding,
        data_format=data_format,
        dilations=None if dilations is None else five(dilations, data_format),
    )


def five(values: Any, data_format: str) -> list[int]:
    """Numbers of the spatial dimensions, or one for all of them, as a list for all five dimensions."""
    inner = [values] * 3 if isinstance(values, int) else list(values)
    if len(inner) == 5:
        return inner
    inner = inner * 3 if len(inner) == 1 else inner
    return [1, *inner, 1] if channel_axis(data_format, 5) == 4 else [1, 1, *inner]


def conv3d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: TensorLike,
    strides: Any,
    padding: str,
    data_format: str = "NDHWC",
    dilations: Any = (1, 1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `conv3d` with respect to its filter."""
    return apply_op(
        "Conv3DBackpropFilterV2",
        name,
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        strides=list(strides),
        padding=padding,
        data_format=data_format,
        dilations=list(dilations),
    )


conv3d_backprop_filter_v2 = conv3d_backprop_filter


def avg_pool3d(
    input: TensorLike, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The mean of each window."""
    return _pooled("AvgPool3D", input, ksize, strides, padding, data_format, name)


def max_pool3d(
    input: TensorLike, ksize: Any, strides: Any, padding: str, data_format: str = "NDHWC", name: str | None = None
) -> Tensor:
    """The largest element of each window."""
    return _pooled("MaxPool3D", input, ksize, strides, padding, data_format, name)


def _pooled(op: str, input: Any, ksize: Any, strides: Any, padding: str, data_format: str, name: Any) -> Tensor:
    return apply_op(
        op,
        name,
        input=input,
        ksize=five(ksize, data_format),
        strides=five(strides, data_format),
        padding=padding,
        data_format=data_format,
    )


def max_pool_with_argmax(
    input: TensorLike,
    ksize: Any,
    strides: Any,
    padding: str,
    data_format: str = "NHWC",
    Targmax: Any = None,
    name: str | None = None,
    output_dtype: DTypeLike | None = None,
    include_batch_in_index: bool = False,
) -> Any:
    """(the largest element of each window, its number within its flattened image or, with the batch, of all)."""
    if data_format != "NHWC":
        raise ValueError(f"data_format must be 'NHWC', got {data_format!r}")
    return apply_op(
        "MaxPoolWithArgmax",
        name,
        input=input,
        ksize=list(ksize),
        strides=list(strides),
        padding=padding,
        Targmax=Targmax if output_dtype is None else output_dtype,
        include_batch_in_index=include_batch_in_index,
    )


def dilation2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Any = None,
    rates: Any = None,
    padding: Any = None,
    name: str | None = None,
    filters: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """The largest sum of input and filter [height, width, channels] in each window."""
    return apply_op(
        "Dilation2D",
        name,
        input=input,
        filter=filter if filters is None else filters,
        strides=list(strides),
        rates=list(rates if dilations is None else dilations),
        padding=padding,
    )


def erosion2d(
    value: TensorLike, kernel: Any, strides: Sequence[int], rates: Sequence[int], padding: str, name: str | None = None
) -> Tensor:
    """The smallest difference of input and kernel [height, width, channels] in each window."""
    turned = rearranging.reverse(kernel, [0, 1])
    dilated = dilation2d(math_ops.negative(value), turned, strides, rates, padding)
    return math_ops.negative(dilated, name=name)


# -- shape rules


def _outputs(
    op: Operation, shape: TensorShape, window: Sequence[int | None], channels: Any, dilations: Any
) -> TensorShape:
    """The output shape of a window of these sizes."""
    rank = len(window) + 2
    sizes = shape.with_rank(rank).as_list()
    attrs = {attr.name for attr in op._op_def.attrs} if op._op_def is not None else set()
    first = "data_format" in attrs and channel_axis(op.get_attr("data_format").decode(), rank) == 1
    spatial = range(2, rank) if first else range(1, rank - 1)
    strides, padding = op.get_attr("strides"), op.get_attr("padding").decode()
    inner: list[int | None] = []
    for axis, width in zip(spatial, window, strict=True):
        size, dilation = sizes[axis], dilations[axis] if dilations else 1
        known = size is not None and width is not None
        inner.append(window_extent(size, width, strides[axis], padding, dilation).output if known else None)  # type: ignore[arg-type]
    depth = sizes[1 if first else -1] if channels is _SAME else channels
    return TensorShape([sizes[0], depth, *inner] if first else [sizes[0], *inner, depth])


_SAME = object()


@shape_rule("Conv3D")
def _(op: Operation) -> list[TensorShape]:
    filters = op.inputs[1].shape.with_rank(5).as_list()
    return [_outputs(op, op.inputs[0].shape, filters[:3], filters[4], op.get_attr("dilations"))]


@shape_rule("MaxPool3DGrad", "MaxPoolGradWithArgmax", "Dilation2DBackpropInput")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape]


@shape_rule("Dilation2DBackpropFilter", "MaxPool3DGradGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape]


@shape_rule("MaxPoolGradGradWithArgmax")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[2].shape]


@shape_rule("Conv3DBackpropInputV2", "AvgPool3DGrad")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[0]).with_rank(5)]


@shape_rule("Conv3DBackpropFilterV2")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[1]).with_rank(5)]


@shape_rule("AvgPool3D", "MaxPool3D", "MaxPoolWithArgmax")
def _(op: Operation) -> list[TensorShape]:
    ksize = op.get_attr("ksize")
    is_first = len(ksize) == 5 and channel_axis(op.get_attr("data_format").decode(), 5) == 1
    window = ksize[2:] if is_first else ksize[1:-1]
    return [_outputs(op, op.inputs[0].shape, window, _SAME, None)] * len(op.outputs)


@shape_rule("Dilation2D")
def _(op: Operation) -> list[TensorShape]:
    filters = op.inputs[1].shape.with_rank(3).as_list()
    [result] = [_outputs(op, op.inputs[0].shape, filters[:2], _SAME, op.get_attr("rates"))]
    sizes = [None] * 4 if result.ndims is None else result.as_list()
    return [TensorShape([*sizes[:3], filters[2] if sizes[3] is None else sizes[3]])]
