"""The less common layers of tf.contrib.layers, and how layers are repeated and stacked.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/layers
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dtf as tf
from dtf.contrib import layer_functions as basic
from dtf.contrib.arg_scopes import add_arg_scope
from dtf.contrib.collecting import collect_named_outputs, collect_variable
from dtf.contrib.scoped_variables import model_variable

__all__ = [
    "avg_pool3d", "bias_add", "bow_encoder", "conv1d", "conv2d_in_plane", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "convolution1d", "convolution2d_in_plane", "convolution2d_transpose", "convolution3d",
    "convolution3d_transpose", "elu", "embed_sequence", "group_norm", "instance_norm", "layer_norm",
    "legacy_fully_connected", "max_pool3d", "maxout", "one_hot_encoding", "poincare_normalize", "pool", "relu6",
    "repeat", "safe_embedding_lookup_sparse", "scale_gradient", "separable_conv2d", "separable_convolution2d",
    "softmax", "spatial_softmax", "stack", "unit_norm",
]  # fmt: skip

conv1d = convolution1d = conv3d = convolution3d = basic.conv2d
_nn: Any = tf.nn
relu6 = functools.partial(basic.fully_connected, activation_fn=tf.nn.relu6)
elu = functools.partial(basic.fully_connected, activation_fn=tf.nn.elu)


def _transposed(layer: Callable[..., Any], default_name: str) -> Callable[..., Any]:
    @add_arg_scope
    def convolution(
        inputs: Any, num_outputs: int, kernel_size: Any, stride: Any = 1, padding: str = "SAME",
        data_format: str | None = None, activation_fn: Any = tf.nn.relu, normalizer_fn: Any = None,
        normalizer_params: Mapping[str, Any] | None = None, weights_initializer: Any = None,
        weights_regularizer: Any = None, biases_initializer: Any = tf.zeros_initializer(),  # noqa: B008
        biases_regularizer: Any = None, reuse: bool | None = None, variables_collections: Any = None,
        outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    ) -> Any:  # fmt: skip
        """The transposed convolution, as used in decoders; arguments as in conv2d."""
        make = functools.partial(
            layer, int(num_outputs), kernel_size, stride, padding, basic._layer_format(data_format)
        )
        return basic._connected(
            make, default_name, inputs, activation_fn, normalizer_fn, normalizer_params, weights_initializer,
            weights_regularizer, biases_initializer, biases_regularizer, reuse, variables_collections,
            outputs_collections, trainable, scope,
        )  # fmt: skip

    return convolution


conv2d_transpose = convolution2d_transpose = _transposed(tf.layers.Conv2DTranspose, "Conv2d_transpose")
conv3d_transpose = convolution3d_transpose = _transposed(tf.layers.Conv3DTranspose, "Conv3d_transpose")


@add_arg_scope
def separable_conv2d(
    inputs: Any, num_outputs: int | None, kernel_size: Any, depth_multiplier: int = 1, stride: Any = 1,
    padding: str = "SAME", data_format: str | None = None, rate: Any = 1, activation_fn: Any = tf.nn.relu,
    normalizer_fn: Any = None, normalizer_params: Mapping[str, Any] | None = None, weights_initializer: Any = None,
    pointwise_initializer: Any = None, weights_regularizer: Any = None,
    biases_initializer: Any = tf.zeros_initializer(), biases_regularizer: Any = None,  # noqa: B008
    reuse: bool | None = None, variables_collections: Any = None, outputs_collections: Any = None,
    trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """A convolution of each channel, then one over the channels (none where `num_outputs` is None)."""
    inputs = tf.convert_to_tensor(inputs)
    start = weights_initializer or tf.glorot_uniform_initializer()
    with tf.variable_scope(scope, "SeparableConv2d", [inputs], custom_getter=basic._renamed, reuse=reuse) as names:
        if num_outputs is not None:
            layer = tf.layers.SeparableConv2D(
                num_outputs, kernel_size, stride, padding, basic._layer_format(data_format), rate, depth_multiplier,
                use_bias=normalizer_fn is None and biases_initializer is not None, depthwise_initializer=start,
                pointwise_initializer=pointwise_initializer or start, bias_initializer=biases_initializer,
                depthwise_regularizer=weights_regularizer, pointwise_regularizer=weights_regularizer,
                bias_regularizer=biases_regularizer, trainable=trainable, name=names.name, _scope=names,
                _reuse=reuse,
            )  # fmt: skip
            outputs = layer(inputs)
            weights = list(layer.weights)
        else:
            outputs, weights = _depthwise(
                inputs, kernel_size, depth_multiplier, stride, padding, rate, start, weights_regularizer, trainable,
                None if normalizer_fn else biases_initializer, biases_regularizer,
            )  # fmt: skip
        for weight in weights:
            collect_variable(weight, variables_collections, weight.op.name.rpartition("/")[2])
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


def _depthwise(
    inputs: Any, kernel_size: Any, depth_multiplier: int, stride: Any, padding: str, rate: Any, initializer: Any,
    regularizer: Any, trainable: bool, biases_initializer: Any, biases_regularizer: Any,
) -> tuple[Any, list[Any]]:  # fmt: skip
    channels = inputs.get_shape()[3].value
    shape = [*basic._pair(kernel_size), channels, depth_multiplier]
    dtype = inputs.dtype.base_dtype
    weights = tf.get_variable(
        "depthwise_weights", shape, dtype, initializer, regularizer=regularizer, trainable=trainable
    )
    steps = basic._pair(stride)
    outputs = tf.nn.depthwise_conv2d(inputs, weights, [1, *steps, 1], padding, rate=basic._pair(rate))
    if biases_initializer is None:
        return outputs, [weights]
    count = channels * depth_multiplier
    biases = tf.get_variable(
        "biases", [count], dtype, biases_initializer, regularizer=biases_regularizer, trainable=trainable
    )
    return tf.nn.bias_add(outputs, biases), [weights, biases]


separable_convolution2d = separable_conv2d


@add_arg_scope
def conv2d_in_plane(
    inputs: Any, kernel_size: Any, stride: Any = 1, padding: str = "SAME", activation_fn: Any = tf.nn.relu,
    normalizer_fn: Any = None, normalizer_params: Mapping[str, Any] | None = None, weights_initializer: Any = None,
    weights_regularizer: Any = None, biases_initializer: Any = tf.zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None, reuse: bool | None = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
) -> Any:  # fmt: skip
    """Applies the same filter to each channel."""
    with tf.variable_scope(scope, "ConvInPlane", [inputs], reuse=reuse) as names:
        inputs = tf.convert_to_tensor(inputs)
        channels = inputs.get_shape()[3].value
        shape = [*basic._pair(kernel_size), 1, 1]
        weights = model_variable(
            "weights", shape, inputs.dtype.base_dtype, weights_initializer or tf.glorot_uniform_initializer(),
            weights_regularizer, trainable,
        )  # fmt: skip
        collect_variable(weights, variables_collections, "weights")
        outputs = tf.nn.depthwise_conv2d(
            inputs, tf.tile(weights, [1, 1, channels, 1]), [1, *basic._pair(stride), 1], padding
        )
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        elif biases_initializer is not None:
            biases = model_variable(
                "biases", [channels], inputs.dtype.base_dtype, biases_initializer, biases_regularizer, trainable
            )
            collect_variable(biases, variables_collections, "biases")
            outputs = tf.nn.bias_add(outputs, biases)
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


convolution2d_in_plane = conv2d_in_plane


def _pool3d(default_name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @add_arg_scope
    def pool3d(
        inputs: Any, kernel_size: Any, stride: Any = 2, padding: str = "VALID", data_format: str = "NDHWC",
        outputs_collections: Any = None, scope: Any = None,
    ) -> Any:  # fmt: skip
        """Over windows of volumes."""
        with tf.name_scope(scope, default_name, [inputs]) as name:
            outputs = function(inputs, kernel_size, stride, padding, basic._layer_format(data_format))
            return collect_named_outputs(outputs_collections, name, outputs)

    return pool3d


max_pool3d = _pool3d("MaxPool3D", tf.layers.max_pooling3d)
avg_pool3d = _pool3d("AvgPool3D", tf.layers.average_pooling3d)


@add_arg_scope
def pool(
    inputs: Any, kernel_size: Any, pooling_type: str, padding: str = "VALID", data_format: str | None = None,
    dilation_rate: Any = 1, stride: Any = 1, outputs_collections: Any = None, scope: Any = None,
) -> Any:  # fmt: skip
    """`tf.nn.pool` by its name: "MAX" or "AVG"."""
    with tf.name_scope(scope, f"{pooling_type.lower()}_pool", [inputs]) as name:
        inputs = tf.convert_to_tensor(inputs)
        count = inputs.get_shape().ndims - 2
        windows, rates, strides = (
            [each] * count if isinstance(each, int) else list(each) for each in (kernel_size, dilation_rate, stride)
        )
        outputs = _nn.pool(
            inputs, windows, pooling_type, padding, dilation_rate=rates, strides=strides, data_format=data_format
        )
        return collect_named_outputs(outputs_collections, name, outputs)


@add_arg_scope
def bias_add(
    inputs: Any, activation_fn: Any = None, initializer: Any = tf.zeros_initializer(),  # noqa: B008
    regularizer: Any = None, reuse: bool | None = None, variables_collections: Any = None,
    outputs_collections: Any = None, trainable: bool = True, data_format: str = "NHWC", scope: Any = None,
) -> Any:  # fmt: skip
    """activation_fn(inputs + biases), over the channels."""
    with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as names:
        inputs = tf.convert_to_tensor(inputs)
        size = inputs.get_shape()[1 if data_format == "NCHW" else -1].value
        biases = model_variable("biases", [size], inputs.dtype.base_dtype, initializer, regularizer, trainable)
        collect_variable(biases, variables_collections, "biases")
        outputs = tf.nn.bias_add(inputs, biases, data_format=data_format)
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


@add_arg_scope
def layer_norm(
    inputs: Any, center: bool = True, scale: bool = True, activation_fn: Any = None, reuse: bool | None = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    begin_norm_axis: int = 1, begin_params_axis: int = -1, scope: Any = None,
) -> Any:  # fmt: skip
    """Each example with the mean 0 and the variance 1 over the dimensions from `begin_norm_axis` on.

    Raises:
      ValueError: the parameters' dimensions are not among the normalized ones, or are not known.
    """
    with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as names:
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        first = begin_norm_axis + rank if begin_norm_axis < 0 else begin_norm_axis
        first_of_params = begin_params_axis + rank if begin_params_axis < 0 else begin_params_axis
        if first >= rank or first_of_params >= rank:
            raise ValueError(f"begin_params_axis and begin_norm_axis must be < rank({inputs.name}) = {rank}")
        shape = inputs.get_shape()[first_of_params:]
        if not shape.is_fully_defined():
            raise ValueError(f"Inputs {inputs.name}: shape[{first_of_params}:] is not fully defined: {shape}")
        beta, gamma = _scale_and_center(
            shape.as_list(), inputs.dtype.base_dtype, center, scale, variables_collections, trainable
        )
        mean, variance = tf.nn.moments(inputs, list(range(first, rank)), keep_dims=True)
        epsilon = 1e-3 if inputs.dtype.base_dtype == tf.float16 else 1e-12
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.get_shape())
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


def _scale_and_center(
    shape: Any, dtype: Any, center: bool, scale: bool, collections: Any, trainable: bool
) -> tuple[Any, Any]:
    """(beta or None, gamma or None)."""
    beta = gamma = None
    if center:
        beta = model_variable("beta", shape, dtype, tf.zeros_initializer(), trainable=trainable)
        collect_variable(beta, collections, "beta")
    if scale:
        gamma = model_variable("gamma", shape, dtype, tf.ones_initializer(), trainable=trainable)
        collect_variable(gamma, collections, "gamma")
    return beta, gamma


@add_arg_scope
def instance_norm(
    inputs: Any, center: bool = True, scale: bool = True, epsilon: float = 1e-6, activation_fn: Any = None,
    param_initializers: Mapping[str, Any] | None = None, reuse: bool | None = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True,
    data_format: str = "NHWC", scope: Any = None,
) -> Any:  # fmt: skip
    """Each channel of each example with the mean 0 and the variance 1 over its pixels."""
    with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as names:
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        axis = 1 if data_format == "NCHW" else rank - 1
        size = inputs.get_shape()[axis].value
        beta, gamma = _scale_and_center(
            [size], inputs.dtype.base_dtype, center, scale, variables_collections, trainable
        )
        spread = [size if dimension == axis else 1 for dimension in range(rank)]
        beta, gamma = (None if each is None else tf.reshape(each, spread) for each in (beta, gamma))
        pixels = [dimension for dimension in range(1, rank) if dimension != axis]
        mean, variance = tf.nn.moments(inputs, pixels, keep_dims=True)
        outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        outputs.set_shape(inputs.get_shape())
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


@add_arg_scope
def group_norm(
    inputs: Any, groups: int = 32, channels_axis: int = -1, reduction_axes: Sequence[int] = (-3, -2),
    center: bool = True, scale: bool = True, epsilon: float = 1e-6, activation_fn: Any = None,
    param_initializers: Mapping[str, Any] | None = None, reuse: bool | None = None,
    variables_collections: Any = None, outputs_collections: Any = None, trainable: bool = True, scope: Any = None,
    mean_close_to_zero: bool = False,
) -> Any:  # fmt: skip
    """Each group of channels of each example with the mean 0 and the variance 1; the channels come last.

    Raises:
      ValueError: the channels do not make `groups` groups.
      NotImplementedError: the channels do not come last.
    """
    with tf.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as names:
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.get_shape().ndims
        if channels_axis not in (-1, rank - 1):
            raise NotImplementedError("group_norm takes channels in the last dimension only")
        size = inputs.get_shape()[-1].value
        if size % groups:
            raise ValueError(f"{size} channels is not commensurate with {groups} groups.")
        beta, gamma = _scale_and_center(
            [size], inputs.dtype.base_dtype, center, scale, variables_collections, trainable
        )
        shape = tf.shape(inputs)
        grouped = tf.reshape(inputs, tf.concat([shape[:-1], [groups, size // groups]], 0))
        axes = [axis % rank for axis in reduction_axes]
        mean, variance = tf.nn.moments(grouped, [*axes, rank], keep_dims=True)
        normal = tf.reshape(tf.nn.batch_normalization(grouped, mean, variance, None, None, epsilon), shape)
        outputs = normal if gamma is None else normal * gamma
        outputs = outputs if beta is None else outputs + beta
        outputs.set_shape(inputs.get_shape())
        outputs = activation_fn(outputs) if activation_fn else outputs
        return collect_named_outputs(outputs_collections, names.name, outputs)


@add_arg_scope
def one_hot_encoding(
    labels: Any, num_classes: int, on_value: float = 1.0, off_value: float = 0.0, outputs_collections: Any = None,
    scope: Any = None,
) -> Any:  # fmt: skip
    """Labels [batch] as rows [batch, num_classes]."""
    with tf.name_scope(scope, "OneHotEncoding", [labels, num_classes]) as name:
        labels = tf.convert_to_tensor(labels)
        labels = tf.to_int64(labels) if labels.dtype == tf.int32 else labels
        outputs = tf.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
        return collect_named_outputs(outputs_collections, name, outputs)


@add_arg_scope
def softmax(logits: Any, scope: Any = None) -> Any:
    """`tf.nn.softmax` over the last dimension."""
    with tf.variable_scope(scope, "softmax", [logits]):
        return tf.nn.softmax(logits)


@add_arg_scope
def spatial_softmax(
    features: Any, temperature: Any = None, name: str | None = None, variables_collections: Any = None,
    trainable: bool = True, data_format: str = "NHWC",
) -> Any:  # fmt: skip
    """For each channel the expected place (x, y) of its pixels, from -1 to 1: [batch, 2 * channels].

    Args:
      features: float32 images with known channels.
      temperature: the first value of the variable that divides the features; 1 by default.
      trainable: whether training changes that variable.

    Raises:
      ValueError: another format, or the number of channels is not known.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError("data_format has to be either NCHW or NHWC.")
    with tf.variable_scope(name, "spatial_softmax"):
        features = tf.convert_to_tensor(features)
        channels = features.get_shape()[-1 if data_format == "NHWC" else 1].value
        if channels is None:
            raise ValueError(
                "The num_channels dimension of the inputs to `spatial_softmax` should be defined. Found `None`."
            )
        if data_format == "NHWC":
            features = tf.transpose(features, [0, 3, 1, 2])
        size = features.get_shape().as_list()[2:]
        height, width = tf.unstack(tf.shape(features)[2:]) if None in size else size
        scale = model_variable(
            "temperature", [], tf.float32, tf.constant_initializer(1.0 if temperature is None else temperature),
            trainable=trainable,
        )  # fmt: skip
        collect_variable(scale, variables_collections if trainable else None, "temperature")
        xs, ys = tf.meshgrid(tf.lin_space(-1.0, 1.0, height), tf.lin_space(-1.0, 1.0, width), indexing="ij")
        attention = tf.nn.softmax(tf.reshape(features, [-1, height * width]) / scale)
        places = [tf.reduce_sum(tf.reshape(each, [-1]) * attention, [1], keep_dims=True) for each in (xs, ys)]
        return tf.reshape(tf.concat(places, 1), [-1, channels * 2])


def maxout(inputs: Any, num_units: int, axis: int = -1, scope: Any = None) -> Any:
    """The greatest of each group of channels, `num_units` groups.

    Raises:
      ValueError: the channels do not make so many groups.
    """
    with tf.name_scope(scope, "MaxOut", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        shape = inputs.get_shape().as_list()
        axis %= len(shape)
        if shape[axis] % num_units:
            raise ValueError(f"number of features({shape[axis]}) is not a multiple of num_units({num_units})")
        sizes = [-1 if size is None else size for size in shape]
        sizes[axis : axis + 1] = [num_units, shape[axis] // num_units]
        outputs = tf.reduce_max(tf.reshape(inputs, sizes), axis + 1)
        return outputs


@add_arg_scope
def unit_norm(inputs: Any, dim: int, epsilon: float = 1e-7, scope: Any = None) -> Any:
    """The inputs divided by their length along a dimension."""
    with tf.variable_scope(scope, "UnitNorm", [inputs]):
        inputs = tf.convert_to_tensor(inputs)
        length = tf.sqrt(epsilon + tf.reduce_sum(tf.square(inputs), dim, keepdims=True))
        return inputs / length


@add_arg_scope
def poincare_normalize(x: Any, axis: Any = 1, epsilon: float = 1e-5, name: str | None = None) -> Any:
    """The vectors along a dimension, shortened to a length of at most 1 - epsilon."""
    with tf.name_scope(name, "poincare_normalize", [x]) as scope:
        x = tf.convert_to_tensor(x, name="x")
        inverse = tf.rsqrt(tf.reduce_sum(tf.square(x), axis, keepdims=True))
        return tf.multiply(x, tf.minimum((1.0 - epsilon) * inverse, 1.0), name=scope)


def scale_gradient(inputs: Any, gradient_multiplier: Any) -> Any:
    """`inputs`, whose gradients are multiplied by a number."""

    @tf.custom_gradient
    def scaled(values: Any, factor: Any) -> Any:
        return tf.identity(values), lambda gradient: (gradient * factor, None)

    return scaled(inputs, tf.convert_to_tensor(gradient_multiplier))


def repeat(inputs: Any, repetitions: int, layer: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """The layer, applied `repetitions` times; the scopes are named scope_1, scope_2 and so on."""
    scope = kwargs.pop("scope", None)
    with tf.variable_scope(scope, "Repeat", [inputs]):
        scope = scope or getattr(layer, "__name__", None) or getattr(layer.func, "__name__", "repeat")  # type: ignore[attr-defined]
        outputs = tf.convert_to_tensor(inputs)
        for index in range(repetitions):
            outputs = layer(outputs, *args, scope=f"{scope}_{index + 1}", **kwargs)
        return outputs


def stack(inputs: Any, layer: Callable[..., Any], stack_args: Any, **kwargs: Any) -> Any:
    """The layer, applied with each of several arguments, e.g. numbers of units."""
    scope = kwargs.pop("scope", None)
    if scope is None and not isinstance(stack_args, list | tuple):
        raise ValueError("stack_args need to be a list or tuple")
    with tf.variable_scope(scope, "Stack", [inputs]):
        scope = scope or getattr(layer, "__name__", None) or getattr(layer.func, "__name__", "stack")  # type: ignore[attr-defined]
        outputs = inputs
        for index, arguments in enumerate(stack_args):
            given = arguments if isinstance(arguments, list | tuple) else [arguments]
            outputs = layer(outputs, *given, scope=f"{scope}_{index + 1}", **kwargs)
        return outputs


def embed_sequence(
    ids: Any, vocab_size: int | None = None, embed_dim: int | None = None, unique: bool = False,
    initializer: Any = None, regularizer: Any = None, trainable: bool = True, scope: Any = None,
    reuse: bool | None = None,
) -> Any:  # fmt: skip
    """The embeddings [batch, length, embed_dim] of ids [batch, length].

    Raises:
      ValueError: the sizes are missing, and no variables exist for reuse.
    """
    if not (reuse or (vocab_size and embed_dim)):
        raise ValueError(
            f"Must specify vocab size and embedding dimension when not reusing. Got {vocab_size} and {embed_dim}"
        )
    with tf.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        shape = [vocab_size, embed_dim] if not (reuse and vocab_size is None) else None
        embeddings = model_variable(
            "embeddings", shape, initializer=initializer, regularizer=regularizer, trainable=trainable
        )
        return tf.nn.embedding_lookup(embeddings, ids)


def bow_encoder(
    ids: Any, vocab_size: int, embed_dim: int, sparse_lookup: bool = True, initializer: Any = None,
    regularizer: Any = None, trainable: bool = True, scope: Any = None, reuse: bool | None = None,
) -> Any:  # fmt: skip
    """The mean of the embeddings of each row's ids: [batch, embed_dim]."""
    with tf.variable_scope(scope, "bow_encoder", [ids], reuse=reuse):
        embeddings = model_variable(
            "embeddings", [vocab_size, embed_dim], initializer=initializer, regularizer=regularizer,
            trainable=trainable,
        )  # fmt: skip
        if isinstance(ids, tf.SparseTensor):
            return tf.nn.safe_embedding_lookup_sparse(embeddings, ids, combiner="mean")
        return tf.reduce_mean(tf.nn.embedding_lookup(embeddings, ids), 1)


def safe_embedding_lookup_sparse(
    embedding_weights: Any, sparse_ids: Any, sparse_weights: Any = None, combiner: str | None = None,
    default_id: int | None = None, name: str | None = None, partition_strategy: str = "div",
    max_norm: float | None = None,
) -> Any:  # fmt: skip
    """`tf.nn.safe_embedding_lookup_sparse`, by the mean of a row's embeddings by default."""
    return tf.nn.safe_embedding_lookup_sparse(
        embedding_weights, sparse_ids, sparse_weights, combiner or "mean", default_id, name, partition_strategy,
        max_norm,
    )  # fmt: skip


@add_arg_scope
def legacy_fully_connected(
    x: Any, num_output_units: int, activation_fn: Any = None, weight_init: Any = None,
    bias_init: Any = tf.zeros_initializer(), name: str | None = None,  # noqa: B008
    weight_collections: Any = (tf.GraphKeys.WEIGHTS,), bias_collections: Any = (tf.GraphKeys.BIASES,),
    output_collections: Any = (tf.GraphKeys.ACTIVATIONS,), trainable: bool = True, weight_regularizer: Any = None,
    bias_regularizer: Any = None,
) -> Any:  # fmt: skip
    """activation_fn(x @ weights + bias), in the collections of weights, biases and activations."""
    with tf.variable_scope(name, "fully_connected", [x]):
        x = tf.convert_to_tensor(x)
        width = x.get_shape()[-1].value
        start = weight_init or tf.glorot_uniform_initializer()
        weights = tf.get_variable("weights", [width, num_output_units], x.dtype.base_dtype, start,
                                  regularizer=weight_regularizer, trainable=trainable)  # fmt: skip
        collect_variable(weights, list(weight_collections or ()), "")
        outputs = tf.tensordot(x, weights, [[-1], [0]]) if x.get_shape().ndims > 2 else tf.matmul(x, weights)
        if bias_init is not None:
            bias = tf.get_variable("bias", [num_output_units], x.dtype.base_dtype, bias_init,
                                   regularizer=bias_regularizer, trainable=trainable)  # fmt: skip
            collect_variable(bias, list(bias_collections or ()), "")
            outputs = tf.nn.bias_add(outputs, bias)
        outputs = activation_fn(outputs) if activation_fn else outputs
        for collection in output_collections or ():
            tf.add_to_collection(collection, outputs)
        return outputs
