"""The layers of tf.contrib.layers: as in tf.layers, but with other defaults and variables named weights and biases.

Owns the names: "fully_connected/weights", "Conv/biases", "BatchNorm/moving_mean". dtf.layers does the computation.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/layers (its README and docs)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from dtf import layers
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, get_collection_ref, name_scope
from dtf.build.graph import GraphKeys
from dtf.build.initializers import glorot_uniform_initializer, zeros_initializer
from dtf.build.ops import activations as activations_ops
from dtf.build.ops import array as array_ops
from dtf.build.ops import conv as conv_ops
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.contrib.arg_scopes import add_arg_scope
from dtf.contrib.averaged_batch_norm import averaged_batch_norm
from dtf.contrib.collecting import collect_named_outputs, collect_variable

__all__ = [
    "avg_pool2d", "convolution",
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


@add_arg_scope
def fully_connected(
    inputs: Any,
    num_outputs: int,
    activation_fn: Activation | None = activations_ops.relu,
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
    scope: Any = None,
) -> Tensor:
    """activation_fn(inputs @ weights + biases), over the last dimension of `inputs`.

    Args:
      activation_fn: relu by default.
      normalizer_fn: such as `batch_norm`, instead of biases; called with `normalizer_params`.
      weights_initializer: Glorot's uniform one by default.
      biases_initializer: None for no biases.
      variables_collections, outputs_collections: names of collections that get the variables and outputs.
    """
    make = functools.partial(layers.Dense, int(num_outputs))
    return _connected(
        make, "fully_connected", inputs, activation_fn, normalizer_fn, normalizer_params, weights_initializer,
        weights_regularizer, biases_initializer, biases_regularizer, reuse, variables_collections,
        outputs_collections, trainable, scope,
    )  # fmt: skip


@add_arg_scope
def conv2d(
    inputs: Any,
    num_outputs: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: str = "SAME",
    data_format: str | None = None,
    rate: Any = 1,
    activation_fn: Activation | None = activations_ops.relu,
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
    scope: Any = None,
) -> Tensor:
    """activation_fn(convolution of images + biases); the arguments are as in `fully_connected` and tf.layers.conv2d.

    The inputs may be sequences or volumes too: their rank says so.

    data_format: "NHWC" (the default) or "NCHW"; for sequences "NWC", for volumes "NDHWC" and so on.
    """
    inputs = convert_to_tensor(inputs)
    kinds = {3: layers.Conv1D, 4: layers.Conv2D, 5: layers.Conv3D}
    rank = inputs.get_shape().ndims
    if rank not in kinds:
        raise ValueError(f"Convolution not supported for input with rank {rank}")
    make = functools.partial(
        kinds[rank],
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


@add_arg_scope
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
    batch_weights: Any = None,
    fused: bool | None = None,
    data_format: str = "NHWC",
    zero_debias_moving_mean: bool = False,
    scope: Any = None,
    renorm: bool = False,
    renorm_clipping: Mapping[str, Any] | None = None,
    renorm_decay: float = 0.99,
    adjustment: Any = None,
) -> Tensor:
    """Batch normalisation with batch statistics while `is_training`, otherwise with the moving statistics; see
    tf.layers.batch_normalization.

    Args:
      param_initializers, param_regularizers: for "beta" and "gamma" (and "moving_mean", "moving_variance").
      updates_collections: where to put the updates of the moving statistics; with None the outputs wait for them.
      batch_weights: [batch], how much each example counts in the batch's statistics.
      zero_debias_moving_mean: correct the moving mean for its start at zero.

    Raises:
      ValueError: `batch_weights` or `zero_debias_moving_mean` come with `renorm` or `adjustment`, or `batch_weights`
          with `fused`.
    """
    if batch_weights is not None or zero_debias_moving_mean:
        if renorm or adjustment is not None or (fused and batch_weights is not None):
            raise ValueError("batch_weights and zero_debias_moving_mean go with neither renorm, adjustment nor fused")
        kinds = [*(["beta"] if center else []), *(["gamma"] if scale else []), "moving_mean", "moving_variance"]
        shown = {kind: ((param_initializers or {}).get(kind), (param_regularizers or {}).get(kind)) for kind in kinds}
        with variable_scope(scope, "BatchNorm", [inputs], custom_getter=_model_variable, reuse=reuse) as names:
            axis = 1 if _layer_format(data_format) == "channels_first" else -1
            outputs, variables = averaged_batch_norm(
                inputs, axis, shown, trainable, decay, epsilon, is_training, batch_weights, zero_debias_moving_mean,
                updates_collections,
            )  # fmt: skip
            outputs = activation_fn(outputs) if activation_fn else outputs
            for kind, variable in variables.items():
                collect_variable(variable, variables_collections, kind)
            return collect_named_outputs(outputs_collections, names.name, outputs)
    initializers = {f"{name}_initializer": value for name, value in (param_initializers or {}).items()}
    regularizers = {f"{name}_regularizer": value for name, value in (param_regularizers or {}).items()}
    with variable_scope(scope, "BatchNorm", [inputs], custom_getter=_model_variable, reuse=reuse) as names:
        layer = layers.BatchNormalization(
            1 if _layer_format(data_format) == "channels_first" else -1,
            momentum=decay,
            epsilon=epsilon,
            center=center,
            scale=scale,
            fused=fused,
            trainable=trainable,
            renorm=renorm,
            renorm_clipping=renorm_clipping,
            renorm_momentum=renorm_decay,
            adjustment=adjustment,
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
            for update in layer.updates:
                collect_variable(update, updates_collections, "")
        if updates_collections is None:
            with control_dependencies(layer.updates):
                outputs = array_ops.identity(outputs)
        outputs = activation_fn(outputs) if activation_fn else outputs
        for kind in ("beta", "gamma", "moving_mean", "moving_variance"):
            if getattr(layer, kind, None) is not None:
                collect_variable(getattr(layer, kind), variables_collections, kind)
        return collect_named_outputs(outputs_collections, names.name, outputs)


@add_arg_scope
def max_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """The maximum over windows of images, every second pixel by default."""
    with name_scope(scope, "MaxPool2D", [inputs]) as name:
        outputs = conv_ops.max_pool(inputs, _pair(kernel_size), _pair(stride), padding, data_format)
        return collect_named_outputs(outputs_collections, name, outputs)


@add_arg_scope
def avg_pool2d(
    inputs: Any,
    kernel_size: Any,
    stride: Any = 2,
    padding: str = "VALID",
    data_format: str = "NHWC",
    outputs_collections: Any = None,
    scope: Any = None,
) -> Tensor:
    """The mean over windows of images, every second pixel by default."""
    with name_scope(scope, "AvgPool2D", [inputs]) as name:
        outputs = conv_ops.avg_pool(inputs, _pair(kernel_size), _pair(stride), padding, data_format)
        return collect_named_outputs(outputs_collections, name, outputs)


@add_arg_scope
def dropout(
    inputs: Any,
    keep_prob: Any = 0.5,
    noise_shape: Any = None,
    is_training: Any = True,
    outputs_collections: Any = None,
    scope: Any = None,
    seed: int | None = None,
) -> Tensor:
    """tf.nn.dropout with `keep_prob` while `is_training`; otherwise returns the inputs."""
    with name_scope(scope, "Dropout", [inputs]) as name:
        outputs = layers.dropout(inputs, 1 - keep_prob, noise_shape, seed, is_training)
        return collect_named_outputs(outputs_collections, name, outputs)


@add_arg_scope
def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Tensor:
    """[batch, ...] as [batch, elements]."""
    with name_scope(scope, "Flatten", [inputs]) as name:
        return collect_named_outputs(outputs_collections, name, layers.flatten(inputs))


convolution2d = conv2d
convolution = conv2d
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
    scope: Any,
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
        for weight in layer.weights:
            collect_variable(weight, variables_collections, weight.op.name.rpartition("/")[2])
        return collect_named_outputs(outputs_collections, names.name, outputs)


_NAMES = {
    "kernel": "weights", "bias": "biases", "depthwise_kernel": "depthwise_weights",
    "pointwise_kernel": "pointwise_weights",
}  # fmt: skip


def _renamed(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
    """Makes or takes a variable under contrib's name."""
    scope, _, last = name.rpartition("/")
    last = _NAMES.get(last, last)
    return _model_variable(getter, f"{scope}/{last}" if scope else last, *args, **kwargs)


def _model_variable(getter: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Makes or takes a variable, which is a model's."""
    variable = getter(*args, **kwargs)
    for part in variable if hasattr(variable, "_get_variable_list") else [variable]:
        collect_variable(part, GraphKeys.MODEL_VARIABLES, "")
    return variable


def _layer_format(data_format: str | None) -> str:
    if data_format is None or data_format in ("NHWC", "NWC", "NDHWC"):
        return "channels_last"
    if data_format in ("NCHW", "NCW", "NCDHW"):
        return "channels_first"
    raise ValueError(f"data_format has to be either NCHW or NHWC, not {data_format}.")


def _pair(value: Any) -> Any:
    """A size for both dimensions, from one number too."""
    return [value, value] if isinstance(value, int) else list(value)
