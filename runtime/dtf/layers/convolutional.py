"""Convolutions of sequences, images and volumes; transposed and separable ones.

Sizes, strides and dilations are one number, or one for each dimension of space.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/Conv2D and the pages of the others
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dtf.build.initializers import zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import conv as conv_ops
from dtf.build.ops import joining
from dtf.build.ops import nn as nn_ops
from dtf.build.ops import volume as volume_ops
from dtf.build.tensor import Tensor
from dtf.layers.base import InputSpec, Layer, layer_function
from dtf.layers.choices import (
    Activation,
    checked_activation,
    is_channels_first,
    known_size,
    numbers,
    op_format,
    op_padding,
)
from dtf.wire.tensor_shape import TensorShape

__all__ = [
    "Conv1D",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "SeparableConv1D",
    "SeparableConv2D",
    "conv1d",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "separable_conv1d",
    "separable_conv2d",
]


class _Filtered(Layer):
    """Base of all convolutions: windows, channels, the bias and the activation."""

    rank: ClassVar[int]

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any,
        padding: str,
        data_format: str,
        dilation_rate: Any,
        activation: Activation | None,
        use_bias: bool,
        bias: tuple[Any, Any, Any],
        **kwargs: Any,
    ) -> None:
        """`bias`: the initializer, the regularizer and the constraint of the bias."""
        super().__init__(**kwargs)
        self.filters = int(filters)
        self.kernel_size = numbers(kernel_size, self.rank, "kernel_size")
        self.strides = numbers(strides, self.rank, "strides")
        self.dilation_rate = numbers(dilation_rate, self.rank, "dilation_rate")
        self.padding = op_padding(padding)
        self.data_format = data_format
        self._channels_first = is_channels_first(data_format)
        self._op_format = op_format(data_format, self.rank)
        self.activation = checked_activation(activation)
        self.use_bias = use_bias
        self.bias_initializer, self.bias_regularizer, self.bias_constraint = bias
        self.bias: Any = None
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _take_channels(self, input_shape: TensorShape) -> int:
        axis = 1 if self._channels_first else -1
        channels = known_size(input_shape, axis, self.name)
        self.input_spec = InputSpec(ndim=self.rank + 2, axes={axis: channels})
        return channels

    def _add_bias(self) -> None:
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                [self.filters],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )

    def _finished(self, outputs: Tensor) -> Tensor:
        if self.use_bias:
            outputs = nn_ops.bias_add(outputs, self.bias, data_format="NCHW" if self._channels_first else "NHWC")
        return self.activation(outputs) if self.activation else outputs

    def _everywhere(self, values: Sequence[int]) -> list[int]:
        """Numbers of the dimensions of space as numbers of all dimensions."""
        return [1, 1, *values] if self._channels_first else [1, *values, 1]


class _Convolution(_Filtered):
    """activation(convolution with `filters` filters + bias).

    The variables are kernel [*sizes, channels, filters] and bias [filters].

    Raises, when called:
      ValueError: the number of channels is not known.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        activation: Activation | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008 - as TensorFlow's signature shows it
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            (bias_initializer, bias_regularizer, bias_constraint),
            trainable=trainable,
            name=name,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.kernel_initializer = kernel_initializer
        self.kernel_regularizer = kernel_regularizer
        self.kernel_constraint = kernel_constraint
        self.kernel: Any = None

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        self.kernel = self.add_weight(
            "kernel",
            [*self.kernel_size, *self._ends(self._take_channels(input_shape))],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self._add_bias()
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        if self.rank == 1:
            outputs = conv_ops.conv1d(
                inputs,
                self.kernel,
                self.strides,
                self.padding,
                data_format=self._op_format,
                dilations=self.dilation_rate,
            )
        else:
            convolve = conv_ops.conv2d if self.rank == 2 else volume_ops.conv3d
            outputs = convolve(
                inputs,
                self.kernel,
                self._everywhere(self.strides),
                self.padding,
                data_format=self._op_format,
                dilations=self._everywhere(self.dilation_rate),
            )
        return self._finished(outputs)

    def _ends(self, channels: int) -> tuple[int, int]:
        """The last dimensions of the kernel."""
        return channels, self.filters


class Conv1D(_Convolution):
    """A convolution of sequences [batch, length, channels]."""

    rank = 1


class Conv2D(_Convolution):
    """A convolution of images [batch, rows, columns, channels]."""

    rank = 2


class Conv3D(_Convolution):
    """A convolution of volumes [batch, depth, rows, columns, channels]."""

    rank = 3


class _Transposed(_Convolution):
    """The transpose of a convolution, which makes images larger; the kernel is [*sizes, filters, channels]."""

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        activation: Activation | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            1,
            activation,
            use_bias,
            kernel_initializer,
            bias_initializer,
            kernel_regularizer,
            bias_regularizer,
            activity_regularizer,
            kernel_constraint,
            bias_constraint,
            trainable,
            name,
            **kwargs,
        )

    def call(self, inputs: Tensor) -> Tensor:
        shape = array_ops.shape(inputs)
        first = 2 if self._channels_first else 1
        grown: list[Any] = []
        for axis, (window, step) in enumerate(zip(self.kernel_size, self.strides, strict=True), first):
            length = inputs.shape[axis].value
            length = shape[axis] if length is None else length
            grown.append(length * step + (max(window - step, 0) if self.padding == "VALID" else 0))
        sizes = [shape[0], *([self.filters, *grown] if self._channels_first else [*grown, self.filters])]
        transposed = conv_ops.conv2d_transpose if self.rank == 2 else volume_ops.conv3d_transpose
        outputs = transposed(
            inputs, self.kernel, joining.stack(sizes), self.strides, self.padding, data_format=self._op_format
        )
        static = [None if isinstance(each, Tensor) else each for each in sizes]
        outputs.set_shape([inputs.shape[0].value, *static[1:]])
        return self._finished(outputs)

    def _ends(self, channels: int) -> tuple[int, int]:
        return self.filters, channels


class Conv2DTranspose(_Transposed):
    """The transpose of Conv2D, which makes images larger; the kernel is [rows, columns, filters, channels]."""

    rank = 2


class Conv3DTranspose(_Transposed):
    """The transpose of Conv3D, which makes volumes larger; the kernel is [depth, rows, columns, filters, channels]."""

    rank = 3


class _Separable(_Filtered):
    """A convolution of each channel alone, then one of size 1 that mixes them.

    The variables are depthwise_kernel [*sizes, channels, depth_multiplier], pointwise_kernel
    [1, ..., depth_multiplier * channels, filters] and bias [filters].

    Raises, when called:
      ValueError: the number of channels is not known.
    """

    def __init__(
        self,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: str = "valid",
        data_format: str = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Activation | None = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = zeros_initializer(),  # noqa: B008
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            filters,
            kernel_size,
            strides,
            padding,
            data_format,
            dilation_rate,
            activation,
            use_bias,
            (bias_initializer, bias_regularizer, bias_constraint),
            trainable=trainable,
            name=name,
            activity_regularizer=activity_regularizer,
            **kwargs,
        )
        self.depth_multiplier = int(depth_multiplier)
        self.depthwise_initializer, self.pointwise_initializer = depthwise_initializer, pointwise_initializer
        self.depthwise_regularizer, self.pointwise_regularizer = depthwise_regularizer, pointwise_regularizer
        self.depthwise_constraint, self.pointwise_constraint = depthwise_constraint, pointwise_constraint
        self.depthwise_kernel: Any = None
        self.pointwise_kernel: Any = None

    def build(self, input_shape: Any) -> None:
        input_shape = TensorShape(input_shape)
        channels = self._take_channels(input_shape)
        self.depthwise_kernel = self.add_weight(
            "depthwise_kernel",
            [*self.kernel_size, channels, self.depth_multiplier],
            initializer=self.depthwise_initializer,
            regularizer=self.depthwise_regularizer,
            constraint=self.depthwise_constraint,
        )
        self.pointwise_kernel = self.add_weight(
            "pointwise_kernel",
            [*[1] * self.rank, self.depth_multiplier * channels, self.filters],
            initializer=self.pointwise_initializer,
            regularizer=self.pointwise_regularizer,
            constraint=self.pointwise_constraint,
        )
        self._add_bias()
        super().build(input_shape)

    def call(self, inputs: Tensor) -> Tensor:
        depthwise, pointwise = self.depthwise_kernel, self.pointwise_kernel
        rate = self.dilation_rate
        height = 2 if self._channels_first else 1
        if self.rank == 1:
            # Sequences are images of height 1.
            inputs = array_ops.expand_dims(inputs, height)
            depthwise, pointwise = array_ops.expand_dims(depthwise, 0), array_ops.expand_dims(pointwise, 0)
            rate = (1, *rate)
        strides = self.strides if self.rank == 2 else self.strides * 2
        outputs = conv_ops.separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            [1, 1, *strides] if self._channels_first else [1, *strides, 1],
            self.padding,
            rate=rate,
            data_format=op_format(self.data_format, 2),
        )
        if self.rank == 1:
            outputs = array_ops.squeeze(outputs, [height])
        return self._finished(outputs)


class SeparableConv1D(_Separable):
    """A separable convolution of sequences [batch, length, channels]."""

    rank = 1


class SeparableConv2D(_Separable):
    """A separable convolution of images [batch, rows, columns, channels]."""

    rank = 2


conv1d = layer_function(Conv1D, "conv1d")
conv2d = layer_function(Conv2D, "conv2d")
conv3d = layer_function(Conv3D, "conv3d")
conv2d_transpose = layer_function(Conv2DTranspose, "conv2d_transpose")
conv3d_transpose = layer_function(Conv3DTranspose, "conv3d_transpose")
separable_conv1d = layer_function(SeparableConv1D, "separable_conv1d")
separable_conv2d = layer_function(SeparableConv2D, "separable_conv2d")
