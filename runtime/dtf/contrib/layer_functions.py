"""The layers of tf.contrib.layers: those of tf.layers with other defaults, and variables named weights and biases.

Owns the names: "fully_connected/weights", "Conv/biases", "BatchNorm/moving_mean". What they compute is in dtf.layers.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/layers (its README and docs)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from dtf import layers
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import GraphKeys, add_to_collection, control_dependencies, get_collection_ref, name_scope
from dtf.build.initializers import glorot_uniform_initializer, zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import conv as conv_ops
from dtf.build.ops import nn as nn_ops
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope

__all__ = [
    "avg_pool2d",
    "batch_norm",
    "conv2d",
    "convolution2d",
    "dropout",
    "flatten",
    "fully_connected",
    "linear",
    "max_pool2d",
    "relu",
]

Activation = Callable[[Tensor], Tensor]


def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Activation | None = nn_ops.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008 - as the signature of contrib shows it
    biases_regularizer: Any = None,
    reuse: bool | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: str | None = None,
) -> Tensor:
    """activation_fn(inputs @ weights + biases), over the last dimension of `inputs`.

    Args:
      activation_fn: relu by default.
      normalizer_fn: such as `batch_norm`, instead of biases; called with `normalizer_params`.
      weights_initializer: Glorot's uniform one by default.
      biases_initializer: None for no biases.
      variables_collections, outputs_collections: names of collections to which variables and outputs are added.
    """
    make = functools.partial(layers.Dense, int(num_outputs))
    return _connected(
        make, "fully_connected", inputs, activation_fn, normalizer_fn, normalizer_params, weights_initializer,
        weights_regularizer, biases_initializer, biases_regularizer, reuse, variables_collections,
        outputs_collections, trainable, scope,
    )  # fmt: skip


def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Activation | None = nn_ops.relu,
    normalizer_fn: Callable[..., Any] | None = None,
    normalizer_params: Mapping[str, Any] | None = None,
    weights_initializer: Any = None,
    weights_regularizer: Any = None,
    biases_initializer: Any = zeros_initializer(),  # noqa: B008
    biases_regularizer: Any = None,
    reuse: bool | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    scope: str | None = None,
) -> Tensor:
    """activation_fn(convolution of images + biases); the arguments are those of `fully_connected` and tf.layers.conv2d.

    data_format: "NHWC" (the default) or "NCHW".
    """
    make = functools.partial(
        layers.Conv2D,
        int(num_outputs),
        kernel_size,
        stride,
        padding,
        _layer_format(data_format),
        rate,
    )
    return _connected(
        make, "Conv", inputs, activation_fn, normalizer_fn, normalizer_params, weights_initializer,
        weights_regularizer, biases_initializer, biases_regularizer, reuse, variables_collections,
        outputs_collections, trainable, scope,
    )  # fmt: skip


def batch_norm(
    inputs: Any,
    decay: float = 0.999,
    center: bool = True,
    scale: bool = False,
    epsilon: float = 0.001,
    activation_fn: Activation | None = None,
    param_initializers: Mapping[str, Any] | None = None,
    param_regularizers: Mapping[str, Any] | None = None,
    updates_collections: Any = GraphKeys.UPDATE_OPS,
    is_training: Any = True,
    reuse: bool | None = None,
    variables_collections: Any = None,
    outputs_collections: Any = None,
    trainable: bool = True,
    fused: bool | None = None,
    data_format: str = "NHWC",
    scope: str | None = None,
) -> Tensor:
    """Batch normalisation while `is_training`, by the moving statistics else; see tf.layers.batch_normalization.

    Args:
      param_initializers, param_regularizers: for "beta" and "gamma" (and "moving_mean", "moving_variance").
      updates_collections: where to put the updates of the moving statistics; with None the outputs wait for them.
    """
    initializers = {f"{name}_initializer": value for name, value in (param_initializers or {}).items()}
    regularizers = {f"{name}_regularizer": value for name, value in (param_regularizers or {}).items()}
    with variable_scope(scope, "BatchNorm", [inputs], reuse=reuse) as names:
        layer = layers.BatchNormalization(
            1 if _layer_format(data_format) == "channels_first" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            fused=fused,
            trainable=trainable,
            name=names.name,
            _scope=names,
            _reuse=reuse,
            **initializers,
            **regularizers,
        )
        outputs = layer(inputs, training=is_training)
        if updates_collections != GraphKeys.UPDATE_OPS:
            collection = get_collection_ref(GraphKeys.UPDATE_OPS)
            collection[:] = [each for each in collection if not any(each is update for update in layer.updates)]
            _collect(updates_collections, *layer.updates)
        if updates_collections is None:
            with control_dependencies(layer.updates):
                outputs = array_ops.identity(outputs)
        outputs = activation_fn(outputs) if activation_fn else outputs
        _collect(variables_collections, *layer.weights)
        _collect(outputs_collections, outputs)
        return outputs


def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:
    """The maximum over windows of images, every second pixel by default."""
    with name_scope(scope, "MaxPool2D", [inputs]):
        return _collected(
            conv_ops.max_pool(inputs, kernel_size, stride, padding, data_format), outputs_collections
        )


def avg_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Tensor:
    """The mean over windows of images, every second pixel by default."""
    with name_scope(scope, "AvgPool2D", [inputs]):
        return _collected(
            conv_ops.avg_pool(inputs, kernel_size, stride, padding, data_format), outputs_collections
        )


def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: str | None = None,
    seed: int | None = None,
) -> Tensor:
    """While `is_training`, tf.nn.dropout with `keep_prob`; else the inputs."""
    with name_scope(scope, "Dropout", [inputs]):
        outputs = layers.dropout(inputs, 1 - keep_prob, noise_shape, seed, is_training)
        return _collected(outputs, outputs_collections)


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """[batch, ...] as [batch, elements]."""
    with name_scope(scope, "Flatten", [inputs]):
        return _collected(layers.flatten(inputs), outputs_collections)


convolution2d = conv2d
relu = fully_connected
linear = functools.partial(fully_connected, activation_fn=None)


def _connected(
    make: Callable[..., layers.Layer],
    default_name: str,
    inputs: Any,
    activation_fn: Activation | None,
    normalizer_fn: Callable[..., Any] | None,
    normalizer_params: Mapping[str, Any] | None,
    weights_initializer: Any,
    weights_regularizer: Any,
    biases_initializer: Any,
    biases_regularizer: Any,
    reuse: bool | None,
    variables_collections: Any,
    outputs_collections: Any,
    trainable: bool,
    scope: str | None,
) -> Tensor:
    inputs = convert_to_tensor(inputs)
    with variable_scope(scope, default_name, [inputs], custom_getter=_renamed, reuse=reuse) as names:
        layer = make(
            use_bias=normalizer_fn is None and biases_initializer is not None,
            kernel_initializer=weights_initializer or glorot_uniform_initializer(),
            bias_initializer=biases_initializer,
            kernel_regularizer=weights_regularizer,
            bias_regularizer=biases_regularizer,
            trainable=trainable,
            name=names.name,
            _scope=names,
            _reuse=reuse,
        )
        outputs = layer(inputs)
        if normalizer_fn is not None:
            outputs = normalizer_fn(outputs, **(normalizer_params or {}))
        outputs = activation_fn(outputs) if activation_fn else outputs
        _collect(variables_collections, *layer.weights)
        _collect(outputs_collections, outputs)
        return outputs


def _renamed(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """Makes or takes a variable under contrib's name."""
    scope, _, last = name.rpartition("/")
    last = {"kernel": "weights", "bias": "biases"}.get(last, last)
    return getter(f"{scope}/{last}" if scope else last, *args, **kwargs)


def _layer_format(data_format: str | None) -> str:
    formats = {None: "channels_last", "NHWC": "channels_last", "NCHW": "channels_first"}
    if data_format not in formats:
        raise ValueError(f"data_format has to be either NCHW or NHWC, not {data_format}.")
    return formats[data_format]


def _collected(outputs: Tensor, collections: Any) -> Tensor:
    _collect(collections, outputs)
    return outputs


def _collect(collections: Any, *members: Any) -> None:
    for collection in [collections] if isinstance(collections, str) else collections or ():
        for member in members:
            add_to_collection(collection, member)
