"""The namespace tf.layers: functions that make the variables of a layer and apply it.

A layer's variables are in the variable scope of its name: "dense/kernel", and "dense_1/kernel" for the second layer
without a name. A layer of the same name and `reuse=True` takes the same variables. The layer objects of TensorFlow
(`tf.layers.Dense` and so on) are not here.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dtf.build.constant import constant, constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import GraphKeys, add_to_collection, name_scope
from dtf.build.initializers import ones_initializer, zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import conv as conv_ops
from dtf.build.ops import joining, rearranging
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import nn as nn_ops
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable, variable_scope
from dtf.train.moving_averages import assign_moving_average
from dtf.wire import dtypes

__all__ = [
    "average_pooling2d",
    "batch_normalization",
    "conv2d",
    "conv2d_transpose",
    "dense",
    "dropout",
    "flatten",
    "max_pooling2d",
    "separable_conv2d",
]

Activation = Callable[[Tensor], Tensor]


def dense(
    inputs: Any,
    units: int,
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
    reuse: bool | None = None,
) -> Tensor:
    """activation(inputs @ kernel + bias), over the last dimension of `inputs`.

    Raises:
      ValueError: the last dimension is not known.
    """
    inputs = convert_to_tensor(inputs)
    with variable_scope(name, "dense", [inputs], reuse=reuse):
        width = _known(inputs, -1)
        kernel = get_variable(
            "kernel",
            [width, units],
            inputs.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        rank = inputs.shape.ndims
        if rank == 2:
            outputs = linalg_ops.matmul(inputs, kernel)
        else:
            outputs = linalg_ops.tensordot(inputs, kernel, [[rank - 1], [0]])
            outputs.set_shape([*inputs.shape.as_list()[:-1], units])
        if use_bias:
            outputs = _biased(outputs, units, bias_initializer, bias_regularizer, bias_constraint, trainable)
        return _activated(outputs, activation, activity_regularizer)


def conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
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
    reuse: bool | None = None,
) -> Tensor:
    """activation(convolution of images with `filters` filters + bias).

    Sizes, strides and dilations are one number, or one for rows and one for columns.
    """
    inputs = convert_to_tensor(inputs)
    with variable_scope(name, "conv2d", [inputs], reuse=reuse):
        nhwc = _image_format(data_format)
        channels = _known(inputs, -1 if nhwc == "NHWC" else 1)
        kernel = get_variable(
            "kernel",
            [*_pair(kernel_size), channels, filters],
            inputs.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        outputs = conv_ops.conv2d(
            inputs,
            kernel,
            _pair(strides),
            padding.upper(),
            data_format=nhwc,
            dilations=_pair(dilation_rate),
            name="Conv2D",
        )
        if use_bias:
            outputs = _biased(outputs, filters, bias_initializer, bias_regularizer, bias_constraint, trainable, nhwc)
        return _activated(outputs, activation, activity_regularizer)


def conv2d_transpose(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
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
    reuse: bool | None = None,
) -> Tensor:
    """The transpose of conv2d, which makes images larger; the kernel is [rows, columns, filters, channels]."""
    inputs = convert_to_tensor(inputs)
    with variable_scope(name, "conv2d_transpose", [inputs], reuse=reuse):
        nhwc = _image_format(data_format)
        first = nhwc == "NCHW"
        size, stride = _pair(kernel_size), _pair(strides)
        kernel = get_variable(
            "kernel",
            [*size, filters, _known(inputs, 1 if first else -1)],
            inputs.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        shape = array_ops.shape(inputs)
        axes = (2, 3) if first else (1, 2)
        grown: list[Any] = []
        for axis, window, step in zip(axes, size, stride, strict=True):
            length = inputs.shape[axis].value
            length = shape[axis] if length is None else length
            grown.append(length * step + (max(window - step, 0) if padding.lower() == "valid" else 0))
        output_shape = [shape[0], filters, *grown] if first else [shape[0], *grown, filters]
        outputs = conv_ops.conv2d_transpose(
            inputs, kernel, joining.stack(output_shape), stride, padding.upper(), data_format=nhwc
        )
        static = [None if isinstance(each, Tensor) else each for each in output_shape]
        outputs.set_shape([inputs.shape[0].value, *static[1:]])
        if use_bias:
            outputs = _biased(outputs, filters, bias_initializer, bias_regularizer, bias_constraint, trainable, nhwc)
        return _activated(outputs, activation, activity_regularizer)


def separable_conv2d(
    inputs: Any,
    filters: int,
    kernel_size: Any,
    strides: Any = (1, 1),
    padding: str = "valid",
    data_format: str = "channels_last",
    dilation_rate: Any = (1, 1),
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
    reuse: bool | None = None,
) -> Tensor:
    """A convolution of each channel alone, then one of 1x1 that mixes them."""
    inputs = convert_to_tensor(inputs)
    with variable_scope(name, "separable_conv2d", [inputs], reuse=reuse):
        nhwc = _image_format(data_format)
        channels = _known(inputs, -1 if nhwc == "NHWC" else 1)
        depthwise = get_variable(
            "depthwise_kernel",
            [*_pair(kernel_size), channels, depth_multiplier],
            inputs.dtype,
            depthwise_initializer,
            depthwise_regularizer,
            trainable,
            constraint=depthwise_constraint,
        )
        pointwise = get_variable(
            "pointwise_kernel",
            [1, 1, depth_multiplier * channels, filters],
            inputs.dtype,
            pointwise_initializer,
            pointwise_regularizer,
            trainable,
            constraint=pointwise_constraint,
        )
        outputs = conv_ops.separable_conv2d(
            inputs,
            depthwise,
            pointwise,
            _pair(strides),
            padding.upper(),
            rate=_pair(dilation_rate),
            data_format=nhwc,
        )
        if use_bias:
            outputs = _biased(outputs, filters, bias_initializer, bias_regularizer, bias_constraint, trainable, nhwc)
        return _activated(outputs, activation, activity_regularizer)


def max_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The maximum over windows of `pool_size`, every `strides` pixels."""
    with name_scope(name, "max_pooling2d", [inputs]):
        nhwc = _image_format(data_format)
        return conv_ops.max_pool(inputs, _pair(pool_size), _pair(strides), padding.upper(), nhwc)


def average_pooling2d(
    inputs: Any,
    pool_size: Any,
    strides: Any,
    padding: str = "valid",
    data_format: str = "channels_last",
    name: str | None = None,
) -> Tensor:
    """The mean over windows of `pool_size`, every `strides` pixels."""
    with name_scope(name, "average_pooling2d", [inputs]):
        nhwc = _image_format(data_format)
        return conv_ops.avg_pool(inputs, _pair(pool_size), _pair(strides), padding.upper(), nhwc)


def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = zeros_initializer(),  # noqa: B008
    gamma_initializer: Any = ones_initializer(),  # noqa: B008
    moving_mean_initializer: Any = zeros_initializer(),  # noqa: B008
    moving_variance_initializer: Any = ones_initializer(),  # noqa: B008
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: bool | None = None,
    fused: bool | None = None,
) -> Tensor:
    """Batch normalisation (arXiv 1502.03167) with moving statistics for inference.

    While training, the ops that move the statistics are added to the collection UPDATE_OPS; the training op must
    depend on them::

        with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
            train_op = optimizer.minimize(loss)

    Args:
      axis: the dimension of the channels, which is not averaged over.
      momentum: how much of the moving statistics is kept at each step.
      training: a Python bool or a bool scalar tensor: whether to use the batch's statistics or the moving ones.
      fused: whether to use the one op for it; where it can be (rank 4) by default.

    Raises:
      ValueError: the number of channels is not known, or `fused` is asked for where it cannot be.
    """
    inputs = convert_to_tensor(inputs)
    with variable_scope(name, "batch_normalization", [inputs], reuse=reuse):
        rank = inputs.shape.ndims
        axis = axis + rank if axis < 0 else axis
        can_fuse = rank == 4 and axis in (1, 3)
        if fused and not can_fuse:
            raise ValueError("Fused batch norm takes images, with the channels in dimension 1 or 3.")
        channels = _known(inputs, axis)
        kept = dtypes.float32 if inputs.dtype.size == 2 else inputs.dtype.base_dtype

        def make(
            key: str, initializer: Any, regularizer: Any = None, constraint: Any = None, trainable: bool = False
        ) -> Any:
            return get_variable(key, [channels], kept, initializer, regularizer, trainable, constraint=constraint)

        gamma = make("gamma", gamma_initializer, gamma_regularizer, gamma_constraint, trainable) if scale else None
        beta = make("beta", beta_initializer, beta_regularizer, beta_constraint, trainable) if center else None
        moving_mean = make("moving_mean", moving_mean_initializer)
        moving_variance = make("moving_variance", moving_variance_initializer)
        constant_training = _static_bool(training)

        if can_fuse and fused is not False and kept == dtypes.float32:
            normalize = _fused(inputs, axis, gamma, beta, moving_mean, moving_variance, epsilon)
        else:
            normalize = _plain(inputs, axis, gamma, beta, moving_mean, moving_variance, epsilon)
        outputs, mean, variance = _either(
            training, constant_training, lambda: normalize(True), lambda: normalize(False)
        )
        outputs.set_shape(inputs.shape)
        if constant_training is not False:
            decay = momentum if constant_training else _either(
                training, None, lambda: [constant(momentum)], lambda: [constant(1.0)]
            )[0]
            for moving, value in ((moving_mean, mean), (moving_variance, variance)):
                update = assign_moving_average(moving, value, decay, zero_debias=False)
                add_to_collection(GraphKeys.UPDATE_OPS, update)
        return outputs


Normalize = Callable[[bool], list[Tensor]]


def _fused(inputs: Tensor, axis: int, gamma: Any, beta: Any, mean: Any, variance: Any, epsilon: float) -> Normalize:
    """(training -> outputs, mean, variance) by the one op; its variance is that of the population."""
    channels = inputs.shape[axis].value
    scale = constant(1.0, shape=[channels]) if gamma is None else gamma
    offset = constant(0.0, shape=[channels]) if beta is None else beta

    def normalize(training: bool) -> list[Tensor]:
        return list(
            nn_ops.fused_batch_norm(
                inputs,
                scale,
                offset,
                mean=None if training else mean,
                variance=None if training else variance,
                epsilon=epsilon,
                data_format="NHWC" if axis == 3 else "NCHW",
                is_training=training,
            )
        )

    return normalize


def _plain(inputs: Tensor, axis: int, gamma: Any, beta: Any, mean: Any, variance: Any, epsilon: float) -> Normalize:
    """The same in simple ops, for any rank; the variance is that of the batch."""
    rank = inputs.shape.ndims
    assert rank is not None
    others = [i for i in range(rank) if i != axis]
    around = [-1 if i == axis else 1 for i in range(rank)]

    def spread(vector: Any) -> Any:
        return vector if vector is None or axis == rank - 1 else array_ops.reshape(vector, around)

    def normalize(training: bool) -> list[Tensor]:
        if training:
            used_mean, used_variance = nn_ops.moments(math_ops.cast(inputs, mean.dtype.base_dtype), others)
        else:
            used_mean, used_variance = convert_to_tensor(mean), convert_to_tensor(variance)
        def cast(vector: Any) -> Any:
            return None if vector is None else math_ops.cast(spread(vector), inputs.dtype)

        outputs = nn_ops.batch_normalization(
            inputs, cast(used_mean), cast(used_variance), cast(beta), cast(gamma), epsilon
        )
        return [outputs, used_mean, used_variance]

    return normalize


def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: int | None = None,
    training: Any = False,
    name: str | None = None,
) -> Tensor:
    """While `training` (a Python bool or a bool scalar tensor), tf.nn.dropout with `rate`; else the inputs."""
    with name_scope(name, "dropout", [inputs]):
        inputs = convert_to_tensor(inputs)
        return _either(
            training,
            _static_bool(training),
            lambda: [nn_ops.dropout(inputs, noise_shape=noise_shape, seed=seed, rate=rate)],
            lambda: [array_ops.identity(inputs)],
        )[0]


def flatten(inputs: Any, name: str | None = None, data_format: str = "channels_last") -> Tensor:
    """[batch, ...] as [batch, elements]."""
    with name_scope(name, "flatten", [inputs]):
        inputs = convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        if rank is not None and rank > 2 and _image_format(data_format) == "NCHW":
            inputs = rearranging.transpose(inputs, [0, *range(2, rank), 1])
        elements = inputs.shape[1:].num_elements() if rank is not None else None
        if rank == 1:
            elements = 1
        if elements is not None:
            outputs = array_ops.reshape(inputs, [-1, elements])
        else:
            outputs = array_ops.reshape(inputs, joining.stack([array_ops.shape(inputs)[0], -1]))
        outputs.set_shape([inputs.shape[0] if rank is not None else None, elements])
        return outputs


def _either(
    predicate: Any, static: bool | None, if_true: Callable[[], list[Tensor]], if_false: Callable[[], list[Tensor]]
) -> list[Tensor]:
    """The one or the other now if the predicate is known, else at run time."""
    if static is not None:
        return if_true() if static else if_false()
    result = control_flow_ops.cond(predicate, if_true, if_false)
    return list(result) if isinstance(result, list | tuple) else [result]


def _static_bool(value: Any) -> bool | None:
    if isinstance(value, Tensor):
        value = constant_value(value)
        return None if value is None else bool(value)
    return None if hasattr(value, "initializer") else bool(value)


def _biased(
    outputs: Tensor,
    units: int,
    initializer: Any,
    regularizer: Any,
    constraint: Any,
    trainable: bool,
    data_format: str | None = None,
) -> Tensor:
    bias = get_variable("bias", [units], outputs.dtype, initializer, regularizer, trainable, constraint=constraint)
    return nn_ops.bias_add(outputs, bias, data_format=data_format)


def _activated(outputs: Tensor, activation: Activation | None, activity_regularizer: Any) -> Tensor:
    if activation is not None:
        outputs = activation(outputs)
    if activity_regularizer is not None:
        add_to_collection(GraphKeys.REGULARIZATION_LOSSES, activity_regularizer(outputs))
    return outputs


def _image_format(data_format: str) -> str:
    formats = {"channels_last": "NHWC", "channels_first": "NCHW"}
    if data_format not in formats:
        raise ValueError(f"The `data_format` argument must be one of {sorted(formats)}. Received: {data_format}")
    return formats[data_format]


def _known(inputs: Tensor, axis: int) -> int:
    size = inputs.shape[axis].value if inputs.shape.ndims is not None else None
    if size is None:
        raise ValueError(f"Dimension {axis} of the inputs of a layer must be known; the shape is {inputs.shape}.")
    return size


def _pair(value: Any) -> list[int]:
    if isinstance(value, Sequence):
        if len(value) != 2:
            raise ValueError(f"Expected one number or two, got {value}")
        return list(value)
    return [value, value]
