"""Normalisation and statistics of tf.nn: moments, batch normalisation, local response normalisation.

Owns these functions and the shape rules of their ops; gradients are in `nn_grad`. Each function computes the formula of
its page under https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import gathering, reductions
from dtf.build.ops import math as math_ops
from dtf.build.ops.nn import channels_of
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "fused_batch_norm",
    "l2_normalize",
    "local_response_normalization",
    "lrn",
    "moments",
    "normalize_moments",
    "sufficient_statistics",
    "weighted_moments",
]


def l2_normalize(
    x: TensorLike, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """x / sqrt(max(sum(x ** 2 along axis), epsilon)).

    Args:
      x: a tensor of floating-point numbers.
      axis: the axes along which the norm is taken; all by default.
      epsilon: the least square of a norm.
      name: the name of the operation.
      dim: the older name of `axis`.

    Returns:
      A Tensor of the shape and dtype of `x`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/l2_normalize
    """
    axis = one_of("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        square_sum = reductions.reduce_sum(math_ops.square(x), axis, keepdims=True)
        return math_ops.multiply(x, math_ops.rsqrt(math_ops.maximum(square_sum, epsilon)), name=scope)


def moments(
    x: TensorLike,
    axes: Sequence[int],
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along `axes`, of the dtype of `x`. `shift` is accepted and not needed.

    Args:
      x: a tensor of floating-point numbers.
      axes: a list of axes.
      shift: accepted and not needed.
      name: a name scope.
      keep_dims: keep the reduced axes, with size 1.
      keepdims: the newer name of `keep_dims`.

    Returns:
      (mean, variance).

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/moments
    """
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x)
        precise = as_float32(x)
        mean = reductions.reduce_mean(precise, axes, keepdims=True, name="mean")
        variance = reductions.reduce_mean(
            math_ops.squared_difference(precise, array_ops.stop_gradient(mean)), axes, keepdims=True, name="variance"
        )
        if not keep:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        return cast_back(mean, x.dtype), cast_back(variance, x.dtype)


def weighted_moments(
    x: TensorLike,
    axes: Sequence[int],
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along `axes` of elements that count `frequency_weights` (broadcast to x) times each."""
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        precise = as_float32(x)
        weights = math_ops.cast(convert_to_tensor(frequency_weights, name="frequency_weights"), precise.dtype)
        weights += filling_ops.zeros_like(precise)
        total = reductions.reduce_sum(weights, axes, keepdims=True, name="sum_of_weights")
        mean = reductions.reduce_sum(weights * precise, axes, keepdims=True) / total
        distances = math_ops.squared_difference(precise, mean)
        variance = reductions.reduce_sum(weights * distances, axes, keepdims=True) / total
        if not keep:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        return cast_back(mean, x.dtype), cast_back(variance, x.dtype)


def sufficient_statistics(
    x: TensorLike,
    axes: Sequence[int],
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Number of elements, sum and sum of squares along `axes` (of x - shift, when given), and the shift."""
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        sizes = gathering.gather(array_ops.shape(x), list(axes))
        count = math_ops.cast(reductions.reduce_prod(sizes), x.dtype)
        centred = x
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift")
            centred = x - shift
        total = reductions.reduce_sum(centred, axes, keepdims=keep, name="mean_ss")
        squares = reductions.reduce_sum(math_ops.square(centred), axes, keepdims=keep, name="var_ss")
        return count, total, squares, shift


def normalize_moments(
    counts: TensorLike, mean_ss: Any, variance_ss: Any, shift: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Mean and variance from the results of `sufficient_statistics`."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        inverse = math_ops.reciprocal(counts, name="divisor")
        centred_mean = math_ops.multiply(mean_ss, inverse, name="shifted_mean" if shift is not None else "mean")
        mean = centred_mean if shift is None else math_ops.add(centred_mean, shift, name="mean")
        variance = math_ops.subtract(variance_ss * inverse, math_ops.square(centred_mean), name="variance")
        return mean, variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = None
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + epsilon) + offset; offset and scale may be None. arXiv 1502.03167.

    Args:
      x: a tensor of floating-point numbers.
      mean: of a shape that broadcasts to the shape of `x`.
      variance: the same.
      offset: the same, or None.
      scale: the same, or None.
      variance_epsilon: a small number that keeps the root from 0.
      name: a name scope.

    Returns:
      A Tensor of the shape and dtype of `x`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/batch_normalization
    """
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        inverse = math_ops.rsqrt(variance + variance_epsilon)
        if scale is not None:
            inverse *= scale
        x = convert_to_tensor(x)
        shift = -mean * inverse if offset is None else offset - mean * inverse
        return x * math_ops.cast(inverse, x.dtype) + math_ops.cast(shift, x.dtype)


def batch_norm_with_global_normalization(
    t: TensorLike | None = None,
    m: Any = None,
    v: Any = None,
    beta: TensorLike | None = None,
    gamma: TensorLike | None = None,
    variance_epsilon: float | None = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
) -> Tensor:
    """The old spelling of `batch_normalization`."""
    t, m, v = one_of("t", t, "input", input), one_of("m", m, "mean", mean), one_of("v", v, "variance", variance)
    assert variance_epsilon is not None
    return batch_normalization(t, m, v, beta, gamma if scale_after_normalization else None, variance_epsilon, name)


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalisation of images in one op.

    Args:
      x: [batch, height, width, channels], or as `data_format` says.
      scale, offset, mean, variance: [channels]. When not training, mean and variance are used directly. When training,
        they are averaged with the batch's if `exponential_avg_factor` is not 1.

    Returns:
      (y, mean, variance): when training, the variance is the unbiased estimate for the population.

    Raises:
      ValueError: mean or variance is missing where it is needed.
    """
    needed = not is_training or exponential_avg_factor != 1.0
    if needed and (mean is None or variance is None):
        raise ValueError("Both mean and variance must be given unless the op trains with exponential_avg_factor 1.0.")
    x = convert_to_tensor(x, name="input")
    scale = convert_to_tensor(scale, name="scale")
    mean = constant([], dtype=scale.dtype) if mean is None else mean
    variance = constant([], dtype=scale.dtype) if variance is None else variance
    result = apply_op(
        "FusedBatchNormV3",
        name,
        x=x,
        scale=scale,
        offset=offset,
        mean=mean,
        variance=variance,
        epsilon=max(epsilon, 1.001e-5),
        exponential_avg_factor=exponential_avg_factor,
        data_format=data_format,
        is_training=is_training,
    )
    return result.y, result.batch_mean, result.batch_variance


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """input / (bias + alpha * (sum of squares of the channels within depth_radius)) ** beta, for rank 4.

    Args:
      input: [batch, height, width, channels] of floating-point numbers.
      depth_radius: how many channels on each side count.
      bias: see above.
      alpha: see above.
      beta: see above.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `input`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/local_response_normalization
    """
    return apply_op("LRN", name, input=input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)

lrn = local_response_normalization


@shape_rule("LRN", "LRNGrad")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank(4)]


@shape_rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _(op: Operation) -> list[TensorShape]:
    x = op.inputs[0].shape.with_rank(4)
    axis = channels_of(op, 4)
    channels = x[axis]
    for statistics in op.inputs[1 : 3 if op.get_attr("is_training") else 5]:
        channels = channels.merge_with(statistics.shape.with_rank(1)[0])
    y = TensorShape([channels if i == axis else x[i] for i in range(4)])
    third = [TensorShape(None)] if len(op.outputs) == 6 else []
    return [y, *[TensorShape([channels])] * 4, *third]


@shape_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _(op: Operation) -> list[TensorShape]:
    x = op.inputs[0].shape.merge_with(op.inputs[1].shape).with_rank(4)
    channels = TensorShape([x[channels_of(op, 4)]])
    return [x, channels, channels, TensorShape([0]), TensorShape([0])]


def as_float32(tensor: Tensor) -> Tensor:
    """16-bit floats as float32."""
    return math_ops.cast(tensor, dtypes.float32) if tensor.dtype.is_floating and tensor.dtype.size == 2 else tensor


def cast_back(tensor: Tensor, dtype: dtypes.DType) -> Tensor:
    """A result of `as_float32` arithmetic in the original dtype."""
    return tensor if tensor.dtype.base_dtype == dtype.base_dtype else math_ops.cast(tensor, dtype.base_dtype)
