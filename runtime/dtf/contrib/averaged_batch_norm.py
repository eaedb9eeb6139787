"""Batch normalisation by weighted statistics, or with a moving mean that does not lean to its start at zero.

Owns the two options of `tf.contrib.layers.batch_norm` that tf.layers lacks; `layer_functions` has the rest.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/layers (its README and docs)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.initializers import ones_initializer, zeros_initializer
from dtf.build.ops import array as array_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops.normalization import batch_normalization, moments, weighted_moments
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable
from dtf.contrib.collecting import collect_variable
from dtf.layers.choices import either, static_bool
from dtf.train.moving_averages import assign_moving_average

_FUSED_RANKS = (2, 4)


def averaged_batch_norm(
    inputs: Any,
    axis: int,
    shown: Mapping[str, Any],
    trainable: bool,
    decay: float,
    epsilon: float,
    is_training: Any,
    batch_weights: Any,
    is_debiased: bool,
    updates_collections: Any,
) -> tuple[Tensor, dict[str, Any]]:
    """The normalised inputs, and the variables by name; within the variable scope of the layer.

    Args:
      inputs: float [batch, ...].
      axis: the channels, -1 or 1.
      shown: for each of beta, gamma, moving_mean and moving_variance that is there: (initializer, regularizer).
      is_training: a bool, or a boolean tensor.
      batch_weights: float [batch]; None for examples of the same weight.
      is_debiased: correct the moving mean for its start at zero.
      updates_collections: where to put the updates; None: the outputs wait for them.
    """
    inputs = convert_to_tensor(inputs)
    rank = int(inputs.shape.ndims)
    channels = axis % rank
    axes = [each for each in range(rank) if each != channels]
    width = inputs.shape[channels]
    defaults = {"gamma": ones_initializer(), "moving_variance": ones_initializer()}
    variables = {
        name: get_variable(
            name, [width], inputs.dtype.base_dtype, initializer or defaults.get(name, zeros_initializer()),
            regularizer=regularizer, trainable=trainable and not name.startswith("moving"),
        )
        for name, (initializer, regularizer) in shown.items()
    }  # fmt: skip
    moving = [variables["moving_mean"], variables["moving_variance"]]
    if batch_weights is None:
        mean, variance = moments(inputs, axes)
    else:
        weights = array_ops.reshape(convert_to_tensor(batch_weights), [-1] + [1] * (rank - 1))
        mean, variance = weighted_moments(inputs, axes, weights)
    followed = variance
    if batch_weights is None and rank in _FUSED_RANKS:  # the fused kernel's variance of the population
        count = math_ops.cast(math_ops.floordiv(array_ops.size(inputs), width), inputs.dtype)
        followed = variance * count / math_ops.maximum(count - 1.0, 1.0)

    def update() -> list[Any]:
        return [
            assign_moving_average(moving[0], mean, decay, zero_debias=is_debiased),
            assign_moving_average(moving[1], followed, decay, zero_debias=False),
        ]

    def wait() -> list[Any]:
        with control_dependencies(update()):
            return [array_ops.identity(mean), array_ops.identity(variance)]

    def recall() -> list[Any]:
        return [array_ops.identity(each) for each in moving]

    def current() -> list[Any]:
        return [array_ops.identity(mean), array_ops.identity(variance)]

    static = static_bool(is_training)
    if updates_collections is None:
        used = either(is_training, static, wait, recall)
    else:
        if static is not False:
            for each in either(is_training, static, update, recall):
                collect_variable(each, updates_collections, "")
        used = either(is_training, static, current, recall)
    shape = [1] * rank
    shape[channels] = -1
    parts = [
        None if each is None else array_ops.reshape(each, shape)
        for each in (*used, variables.get("beta"), variables.get("gamma"))
    ]
    outputs = batch_normalization(inputs, parts[0], parts[1], parts[2], parts[3], epsilon)
    outputs.set_shape(inputs.shape)
    return outputs, variables
