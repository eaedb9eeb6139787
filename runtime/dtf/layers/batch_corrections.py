"""Batch normalisation with corrected statistics: batch renormalisation, virtual batches and adjustments.

Owns what `layers.normalization.BatchNormalization` computes if one of the three is requested.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/layers/BatchNormalization, arXiv 1702.03275
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies
from dtf.build.ops import array, filling, joining, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ops import normalization as normalization_ops
from dtf.build.ops.activations import relu
from dtf.build.tensor import Tensor
from dtf.layers.choices import either, static_bool
from dtf.train.moving_averages import assign_moving_average
from dtf.wire.tensor_shape import TensorShape

__all__ = ["corrected", "root_of", "virtual_parameters"]


class _BatchNormalization(Protocol):
    """What is read of a layer."""

    axis: list[int]
    momentum: float
    epsilon: float
    gamma: Any
    beta: Any
    moving_mean: Any
    moving_variance: Any
    moving_stddev: Any
    renorm: bool
    renorm_clipping: dict[str, Any]
    renorm_momentum: float
    renorm_mean: Any
    renorm_stddev: Any
    virtual_batch_size: int | None
    adjustment: Callable[[Tensor], tuple[Any, Any]] | None


def virtual_parameters(size: int, sizes: Mapping[int, int], rank: int, adjustment: Any) -> list[int]:
    """The shape of the variables of a layer with virtual batches, which lie in a second dimension of the inputs.

    Raises:
      ValueError: the size is not positive, a channel's axis is that of the batch, or there is an adjustment.
    """
    if size <= 0:
        raise ValueError("virtual_batch_size must be a positive integer that divides the true batch size of the input")
    if 0 in sizes:
        raise ValueError("When using virtual_batch_size, the batch dimension must be 0 and thus axis cannot contain 0.")
    if adjustment is not None:
        raise ValueError("When using virtual_batch_size, adjustment cannot be specified")
    shape = [sizes.get(axis, 1) for axis in range(rank)]
    return [shape[0], 1, *shape[1:]]


def root_of(initializer: Any) -> Callable[..., Tensor]:
    """The initializer of standard deviations for that of variances."""

    def initialize(shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return math_ops.sqrt(initializer(shape, dtype=dtype))

    return initialize


def corrected(layer: _BatchNormalization, inputs: Tensor, training: Any) -> tuple[Tensor, list[Any]]:
    """The normalised inputs of a layer, and the operations that move its statistics.

    Args:
      layer: a layer whose variables are made.
      inputs: of the layer.
      training: a bool, or a bool scalar tensor.
    """
    whole, given = inputs, inputs.dtype
    known = static_bool(training)
    if layer.virtual_batch_size is not None:
        inputs = _in_parts(inputs, layer.virtual_batch_size)
    if given.size == 2:
        inputs = math_ops.cast(inputs, layer.moving_mean.dtype.base_dtype)
    rank = inputs.shape.ndims
    assert rank is not None
    others = [axis for axis in range(rank) if axis not in layer.axis]
    if layer.virtual_batch_size is not None:
        others.remove(1)
    around = [-1 if axis in layer.axis else 1 for axis in range(rank)]

    def spread(vector: Any) -> Any:
        if vector is None or vector.shape.ndims == rank or layer.axis == [rank - 1]:
            return vector
        return array.reshape(vector, around)

    def cast(value: Any) -> Any:
        return None if value is None else math_ops.cast(value, inputs.dtype)

    def chosen(value: Any, otherwise: Any) -> Tensor:
        """`value` while training, else `otherwise`."""
        return either(training, known, lambda: [convert_to_tensor(value)], lambda: [convert_to_tensor(otherwise)])[0]

    scale, offset = spread(layer.gamma), spread(layer.beta)
    updates: list[Any] = []
    if known is False:
        mean, variance = convert_to_tensor(layer.moving_mean), convert_to_tensor(layer.moving_variance)
    else:
        if layer.adjustment is not None:
            more_scale, more_offset = map(convert_to_tensor, layer.adjustment(array.shape(inputs)))
            adjusted = chosen(more_scale, filling.ones_like(more_scale))
            scale, offset = _composed(adjusted, chosen(more_offset, filling.zeros_like(more_offset)), scale, offset)
        exact = math_ops.cast(inputs, layer.moving_mean.dtype.base_dtype)
        keeps = layer.virtual_batch_size is not None or len(layer.axis) > 1
        moments = normalization_ops.moments(exact, others, keep_dims=keeps)
        mean, variance = chosen(moments[0], layer.moving_mean), chosen(moments[1], layer.moving_variance)
        new_mean, new_variance = mean, variance
        if layer.virtual_batch_size is not None:
            new_mean, new_variance = (reductions.reduce_mean(each, 1, keepdims=True) for each in (mean, variance))

        def moved(variable: Any, value: Any, momentum: float) -> Any:
            return assign_moving_average(variable, value, chosen(momentum, 1.0), zero_debias=False)

        if layer.renorm:
            r, d, new_mean, new_variance = _renormalised(layer, new_mean, new_variance, chosen, moved)
            scale, offset = _composed(spread(r), spread(d), scale, offset)
        updates.append(moved(layer.moving_mean, new_mean, layer.momentum))
        if layer.renorm:
            updates.append(_moved_variance(layer, new_variance, chosen, moved))
        else:
            updates.append(moved(layer.moving_variance, new_variance, layer.momentum))
    normal = normalization_ops.batch_normalization(
        inputs, cast(spread(mean)), cast(spread(variance)), cast(offset), cast(scale), layer.epsilon
    )
    outputs = math_ops.cast(normal, given)
    if layer.virtual_batch_size is not None:
        outputs = array.reshape(outputs, joining.concat([constant([-1]), array.shape(whole)[1:]], 0))
    outputs.set_shape(whole.shape)
    return outputs, updates


def _in_parts(inputs: Tensor, size: int) -> Tensor:
    """Inputs [size, batch / size, ...]; a step raises InvalidArgumentError where the batch cannot be divided."""
    parts = array.reshape(inputs, joining.concat([constant([size, -1]), array.shape(inputs)[1:]], 0))
    count = inputs.shape.as_list()[0]
    parts.set_shape(TensorShape([size, None if count is None else count // size]).concatenate(inputs.shape[1:]))
    return parts


def _composed(scale: Any, offset: Any, then_scale: Any, then_offset: Any) -> tuple[Any, Any]:
    if then_scale is not None:
        scale, offset = scale * then_scale, offset * then_scale
    return scale, offset if then_offset is None else offset + then_offset


def _renormalised(
    layer: _BatchNormalization, mean: Tensor, variance: Tensor, chosen: Callable[[Any, Any], Tensor],
    moved: Callable[[Any, Any, float], Any],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """(r, d, mean, variance): the corrections, and the statistics after the averages of earlier batches moved."""
    deviation = math_ops.sqrt(variance + layer.epsilon)
    average = math_ops.maximum(layer.renorm_stddev, math_ops.sqrt(constant(layer.epsilon, deviation.dtype)))
    r, d = deviation / average, (mean - layer.renorm_mean) / average
    with control_dependencies([r, d]):  # the corrections use the averages from before this batch
        mean, deviation = array.identity(mean), array.identity(deviation)
    low, high, widest = (layer.renorm_clipping.get(key) for key in ("rmin", "rmax", "dmax"))
    if low is not None:
        r = math_ops.maximum(r, low)
    if high is not None:
        r = math_ops.minimum(r, high)
    if widest is not None:
        d = math_ops.minimum(math_ops.maximum(d, -widest), widest)
    r, d = chosen(r, filling.ones_like(r)), chosen(d, filling.zeros_like(d))
    averages = [
        moved(layer.renorm_mean, mean, layer.renorm_momentum),
        moved(layer.renorm_stddev, deviation, layer.renorm_momentum),
    ]
    with control_dependencies(averages):
        return array.stop_gradient(r), array.stop_gradient(d), array.identity(mean), array.identity(variance)


def _moved_variance(
    layer: _BatchNormalization, variance: Tensor, chosen: Callable[[Any, Any], Tensor],
    moved: Callable[[Any, Any, float], Any],
) -> Any:  # fmt: skip
    """Moves the standard deviation for inference; the variance follows it."""
    step = moved(layer.moving_stddev, math_ops.sqrt(variance + layer.epsilon), layer.momentum)
    with control_dependencies([step]):
        deviation = layer.moving_stddev.read_value()
        squared = relu(deviation * deviation - layer.epsilon)
        return layer.moving_variance.assign(chosen(squared, layer.moving_variance.read_value()))
