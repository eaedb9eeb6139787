"""Convolution and pooling: the public functions of tf.nn and the shape rules of their ops.

`dtf.wire.window_shapes` defines "SAME", "VALID" and explicit padding, for this module and for the kernels. Images are
[batch, height, width, channels] ("NHWC") or [batch, channels, height, width] ("NCHW"), filters [height, width,
channels in, channels out].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import channel_axis, spatial_axes, window_extent

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "atrous_conv2d",
    "avg_pool",
    "avg_pool2d",
    "conv1d",
    "conv2d",
    "conv2d_backprop_filter",
    "conv2d_backprop_input",
    "conv2d_transpose",
    "depthwise_conv2d",
    "depthwise_conv2d_backprop_filter",
    "depthwise_conv2d_backprop_input",
    "depthwise_conv2d_native",
    "depthwise_conv2d_native_backprop_filter",
    "depthwise_conv2d_native_backprop_input",
    "max_pool",
    "max_pool2d",
    "separable_conv2d",
]


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """The correlation of images with filters.

    Args:
      input: images, of a floating dtype.
      filter: of the same dtype; `filters` is another name for it.
      strides, dilations: one number for height and width, two, or four in the order of `data_format`.
      padding: "SAME", "VALID", or four pairs (before, after) in the order of `data_format`.

    Returns:
      Images with as many channels as there are filters.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/conv2d
    """
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "Conv2D",
        name,
        input=input,
        filter=one_of("filter", filter, "filters", filters),
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


def conv2d_backprop_input(
    input_sizes: Any,
    filter: TensorLike | None = None,
    out_backprop: TensorLike | None = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """The gradient of conv2d for its images, whose shape is `input_sizes`."""
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "Conv2DBackpropInput",
        name,
        input_sizes=input_sizes,
        filter=one_of("filter", filter, "filters", filters),
        out_backprop=out_backprop,
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


def conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: TensorLike,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of conv2d for its filters, whose shape is `filter_sizes`."""
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "Conv2DBackpropFilter",
        name,
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


def conv2d_transpose(
    value: TensorLike | None = None,
    filter: TensorLike | None = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """The transpose of conv2d; filters are [height, width, channels out, channels in].

    Args:
      value: [batch, height, width, channels in], or as `data_format` says.
      filter: [height, width, channels out, channels in].
      output_shape: the shape of the result, an integer vector.
      strides: one number, two, or four in the order of `data_format`.
      padding: "SAME" or "VALID".
      data_format: "NHWC" or "NCHW".
      name: the name of the operation.
      input: the newer name of `value`.
      filters: the newer name of `filter`.
      dilations: the distance between the elements of a filter.

    Returns:
      A Tensor of shape `output_shape` and the dtype of `value`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/conv2d_transpose
    """
    value, filter = one_of("value", value, "input", input), one_of("filter", filter, "filters", filters)
    with name_scope(name, "conv2d_transpose", [value, filter, output_shape]) as scope:
        return conv2d_backprop_input(
            output_shape,
            filter,
            value,
            strides,
            padding,
            data_format=data_format,
            dilations=1 if dilations is None else dilations,
            name=scope,
        )


def conv1d(
    value: TensorLike | None = None,
    filters: Any = None,
    stride: Any = None,
    padding: str | None = None,
    use_cudnn_on_gpu: bool | None = None,
    data_format: str | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """The correlation of sequences [batch, width, channels] ("NWC") or [batch, channels, width] ("NCW") with filters.

    filters: [width, channels in, channels out]. Done as images of height 1.
    """
    value = one_of("value", value, "input", input)
    with name_scope(name, "conv1d", [value, filters]):
        data_format = data_format or "NWC"
        first = channel_axis(data_format, 3) == 1
        axis = 2 if first else 1
        images = array_ops.expand_dims(value, axis)
        result = conv2d(
            images,
            array_ops.expand_dims(filters, 0),
            [1, _single(stride)],
            padding,
            use_cudnn_on_gpu=use_cudnn_on_gpu is not False,
            data_format="NCHW" if first else "NHWC",
            dilations=[1, _single(dilations)],
        )
        return array_ops.squeeze(result, [axis])


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: int, padding: str, name: str | None = None) -> Tensor:
    """conv2d of stride 1 whose filter samples every `rate`-th pixel."""
    if rate < 1:
        raise ValueError(f"rate must be positive, got {rate}")
    return conv2d(value, filters, 1, padding, dilations=rate, name=name)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Any,
    rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """Filters [height, width, channels, multiplier] over each channel alone: channels * multiplier channels.

    Args:
      input: [batch, height, width, channels], or as `data_format` says.
      filter: [height, width, channels, multiplier].
      strides: four numbers in the order of `data_format`.
      padding: "SAME" or "VALID".
      rate: the distance between the elements of a filter, for height and width.
      name: the name of the operation.
      data_format: "NHWC" (the default) or "NCHW".
      dilations: the newer name of `rate`.

    Returns:
      A Tensor [batch, height, width, channels * multiplier].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/depthwise_conv2d
    """
    rate = one_of("rate", rate, "dilations", dilations)
    with name_scope(name, "depthwise", [input, filter]) as scope:
        return depthwise_conv2d_native(
            input, filter, strides, padding, data_format or "NHWC", 1 if rate is None else rate, scope
        )


def depthwise_conv2d_native(
    input: TensorLike,
    filter: TensorLike,
    strides: Sequence[int],
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The op under `depthwise_conv2d`."""
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "DepthwiseConv2dNative",
        name,
        input=input,
        filter=filter,
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


def depthwise_conv2d_backprop_input(
    input_sizes: Any,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d for its images."""
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "DepthwiseConv2dNativeBackpropInput",
        name,
        input_sizes=input_sizes,
        filter=filter,
        out_backprop=out_backprop,
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


def depthwise_conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: Any,
    out_backprop: TensorLike,
    strides: Sequence[int],
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of depthwise_conv2d for its filters."""
    padding, explicit_paddings = _padding(padding)
    return apply_op(
        "DepthwiseConv2dNativeBackpropFilter",
        name,
        input=input,
        filter_sizes=filter_sizes,
        out_backprop=out_backprop,
        strides=_four(strides, data_format, "strides"),
        padding=padding,
        explicit_paddings=explicit_paddings,
        data_format=data_format,
        dilations=_four(dilations, data_format, "dilations"),
    )


depthwise_conv2d_native_backprop_input = depthwise_conv2d_backprop_input
depthwise_conv2d_native_backprop_filter = depthwise_conv2d_backprop_filter


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Sequence[int],
    padding: Any,
    rate: Sequence[int] | None = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Sequence[int] | None = None,
) -> Tensor:
    """depthwise_conv2d, then a 1x1 conv2d with `pointwise_filter` [1, 1, channels * multiplier, channels out]."""
    rate = one_of("rate", rate, "dilations", dilations)
    with name_scope(name, "separable_conv2d", [input, depthwise_filter, pointwise_filter]) as scope:
        depthwise = depthwise_conv2d(
            input, depthwise_filter, strides, padding, rate, name="depthwise", data_format=data_format
        )
        return conv2d(depthwise, pointwise_filter, 1, "VALID", data_format=data_format or "NHWC", name=scope)


def max_pool(
    value: TensorLike | None = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The maximum over windows of `ksize`, every `strides` pixels.

    ksize, strides: one number for height and width, two, or four in the order of `data_format`.

    Args:
      value: [batch, height, width, channels], or as `data_format` says.
      ksize: the size of the window: one number, two, or four in the order of `data_format`.
      strides: the distance between windows, in the same form.
      padding: "SAME" or "VALID".
      data_format: "NHWC", "NCHW" or "NCHW_VECT_C".
      name: the name of the operation.
      input: the newer name of `value`.

    Returns:
      A Tensor of the dtype of `value`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/max_pool
    """
    value = one_of("value", value, "input", input)
    padding, explicit_paddings = _padding(padding)
    with name_scope(name, "MaxPool", [value]) as scope:
        return apply_op(
            "MaxPool",
            scope,
            input=value,
            ksize=_four(ksize, data_format, "ksize"),
            strides=_four(strides, data_format, "strides"),
            padding=padding,
            explicit_paddings=explicit_paddings,
            data_format=data_format,
        )


def max_pool2d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`max_pool` with its arguments' newer names."""
    return max_pool(input, ksize, strides, padding, data_format, name)


def avg_pool(
    value: TensorLike | None = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The mean over windows of `ksize`, every `strides` pixels; padding does not count.

    Args:
      value: [batch, height, width, channels], or as `data_format` says.
      ksize: the size of the window: one number, two, or four in the order of `data_format`.
      strides: the distance between windows, in the same form.
      padding: "SAME" or "VALID".
      data_format: "NHWC" or "NCHW".
      name: the name of the operation.
      input: the newer name of `value`.

    Returns:
      A Tensor of the dtype of `value`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/avg_pool
    """
    value = one_of("value", value, "input", input)
    with name_scope(name, "AvgPool", [value]) as scope:
        return apply_op(
            "AvgPool",
            scope,
            value=value,
            ksize=_four(ksize, data_format, "ksize"),
            strides=_four(strides, data_format, "strides"),
            padding=padding,
            data_format=data_format,
        )


def avg_pool2d(
    input: TensorLike, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC", name: str | None = None
) -> Tensor:
    """`avg_pool` with its arguments' newer names."""
    return avg_pool(input, ksize, strides, padding, data_format, name)


# Shape rules


@shape_rule("Conv2D")
def _(op: Operation) -> list[TensorShape]:
    images, filters = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.with_rank(4)
    channels = images[channel_axis(op.get_attr("data_format").decode())].value
    depth = filters[2].value
    if channels is not None and depth is not None and (depth == 0 or channels % depth != 0):
        raise ValueError(f"Dimensions must be equal, but are {channels} and {depth}")
    return [_windowed(op, images, filters.as_list()[:2], op.get_attr("strides"), filters.as_list()[3])]


@shape_rule("DepthwiseConv2dNative")
def _(op: Operation) -> list[TensorShape]:
    images, filters = op.inputs[0].shape.with_rank(4), op.inputs[1].shape.with_rank(4)
    height, width, depth, multiplier = filters.as_list()
    channels = images[channel_axis(op.get_attr("data_format").decode())].merge_with(depth).value
    out = None if channels is None or multiplier is None else channels * multiplier
    return [_windowed(op, images, [height, width], op.get_attr("strides"), out)]


@shape_rule("Conv2DBackpropInput", "DepthwiseConv2dNativeBackpropInput")
def _(op: Operation) -> list[TensorShape]:
    sizes = constant_value_as_shape(op.inputs[0]).with_rank(4).as_list()
    if sizes[0] is None:
        sizes[0] = op.inputs[2].shape.with_rank(4)[0].value
    return [TensorShape(sizes)]


@shape_rule("Conv2DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[1]).with_rank(4)]


@shape_rule("MaxPool", "AvgPool")
def _(op: Operation) -> list[TensorShape]:
    return [_pooled(op, op.get_attr("ksize"), op.get_attr("strides"))]


@shape_rule("MaxPoolV2")
def _(op: Operation) -> list[TensorShape]:
    ksize, strides = constant_value(op.inputs[1]), constant_value(op.inputs[2])
    if ksize is None or strides is None:
        return [TensorShape([None] * 4)]
    return [_pooled(op, ksize.tolist(), strides.tolist())]


@shape_rule("MaxPoolGrad", "MaxPoolGradV2")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(4)]


@shape_rule("MaxPoolGradGrad", "MaxPoolGradGradV2")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[1].shape.with_rank(4)]


@shape_rule("AvgPoolGrad")
def _(op: Operation) -> list[TensorShape]:
    return [constant_value_as_shape(op.inputs[0]).with_rank(4)]


def _pooled(op: Operation, ksize: Sequence[int], strides: Sequence[int]) -> TensorShape:
    images = op.inputs[0].shape.with_rank(4)
    data_format = op.get_attr("data_format").decode()
    window = [ksize[axis] for axis in spatial_axes(data_format)]
    axis = channel_axis(data_format)
    channels = images.as_list()[axis]
    if channels is not None and strides[axis] > 1:
        channels = -(-channels // strides[axis])
    return _windowed(op, images, window, strides, channels)


def _windowed(
    op: Operation, images: TensorShape, window: Sequence[int | None], strides: Sequence[int], channels: int | None
) -> TensorShape:
    """The output shape of a window over images."""
    data_format, padding = op.get_attr("data_format").decode(), op.get_attr("padding").decode()
    assert op._op_def is not None
    attrs = op._op_def.attr_by_name
    dilations = op.get_attr("dilations") if "dilations" in attrs else [1] * 4
    explicit = (op.get_attr("explicit_paddings") if "explicit_paddings" in attrs else []) or [0] * 8
    result = images.as_list()
    result[channel_axis(data_format)] = channels
    for axis, size in zip(spatial_axes(data_format), window, strict=True):
        length = result[axis]
        if length is None or size is None and not (padding == "SAME" and length is not None):
            result[axis] = None
        else:
            result[axis] = window_extent(
                length, size or 1, strides[axis], padding, dilations[axis], explicit[2 * axis : 2 * axis + 2]
            ).output
    return TensorShape(result)


# Arguments in their several forms


def _four(value: Any, data_format: str, name: str) -> list[int]:
    """Strides and similar arguments as one number per dimension."""
    value = [1] if value is None else list(value) if isinstance(value, Sequence) else [value]
    if len(value) == 4:
        return value
    if len(value) not in (1, 2):
        raise ValueError(f"{name} should be of length 1, 2 or 4 but was {len(value)}")
    height, width = value if len(value) == 2 else value * 2
    return [1, 1, height, width] if channel_axis(data_format) == 1 else [1, height, width, 1]


def _single(value: Any) -> int:
    if value is None:
        return 1
    if isinstance(value, Sequence):
        if len(value) not in (1, 3):
            raise ValueError(f"stride should be of length 1 or 3 but was {len(value)}")
        return value[0] if len(value) == 1 else max(value)
    return value


def _padding(padding: Any) -> tuple[str, list[int]]:
    """The attributes padding and explicit_paddings."""
    if isinstance(padding, list | tuple):
        if len(padding) != 4 or any(len(pair) != 2 for pair in padding):
            raise ValueError("Explicit padding must be four pairs (before, after), one for each dimension")
        return "EXPLICIT", [number for pair in padding for number in pair]
    if padding == "EXPLICIT":
        raise ValueError('"EXPLICIT" is not a valid value for padding; give the four pairs of padding instead.')
    return padding, []
