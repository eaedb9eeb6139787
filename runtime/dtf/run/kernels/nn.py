"""Kernels of neural-network ops without windows: activations, softmax and its losses, bias, normalisation, top k.

Convolution and pooling are in `conv` and `pooling`, the updates of the optimizers in `training`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel, with_into
from dtf.run.kernels.arguments import invalid, scalar, shape_text
from dtf.run.kernels.reductions import column_sums
from dtf.run.value_types import Array, ArrayFunction
from dtf.wire import errors
from dtf.wire.window_shapes import channel_axis

# Klambauer et al., "Self-Normalizing Neural Networks", arXiv 1706.02515.
_SELU_SCALE = 1.0507009873554805
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALED_ALPHA = _SELU_SCALE * _SELU_ALPHA


# Activations. The gradient ops take what TensorFlow's take: some the features, some the activations.


def _of_equal_shapes(node: KernelNode, function: ArrayFunction) -> Function:
    """A function of two arrays that refuses those that would have to be broadcast."""

    def run(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        if np.shape(first) != np.shape(second):
            raise invalid(
                f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                f"Input 0: {shape_text(np.shape(first))} != input 1: {shape_text(np.shape(second))}"
            )
        return function(first, second)

    return run


@kernel("Relu")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    zeros = np.full(_ZEROS, zero)

    def relu(features: Array) -> Array:
        if features.size < _ZEROS or not features.flags.c_contiguous:
            return np.maximum(features, zero)
        return into(np.empty(features.shape, features.dtype), features)

    def into(out: Array, features: Array) -> Array:
        """numpy is twice as fast with an array of zeros as with one."""
        if not (features.flags.c_contiguous and out.flags.c_contiguous):
            return np.maximum(features, zero, out=out)
        source, target = features.reshape(-1), out.reshape(-1)
        whole = source.size - source.size % _ZEROS
        np.maximum(source[:whole].reshape(-1, _ZEROS), zeros, out=target[:whole].reshape(-1, _ZEROS))
        np.maximum(source[whole:], zeros[: source.size - whole], out=target[whole:])
        return out

    return with_into(relu, into)


_ZEROS = 4096


@kernel("ReluGrad")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    function = _of_equal_shapes(node, lambda gradients, features: np.multiply(gradients, np.greater(features, zero)))

    def into(out: Array, gradients: Array, features: Array) -> Array | None:
        if gradients.shape != features.shape or gradients.dtype != features.dtype:
            return None
        return np.multiply(gradients, np.greater(features, zero), out=out)

    return with_into(function, into)


@kernel("Relu6")
def _(node: KernelNode) -> Function:
    zero, six = _number(node, 0), _number(node, 6)
    return lambda features: np.minimum(np.maximum(features, zero), six)


@kernel("Relu6Grad")
def _(node: KernelNode) -> Function:
    zero, six = _number(node, 0), _number(node, 6)
    return _of_equal_shapes(
        node, lambda gradients, features: np.multiply(gradients, (features > zero) & (features < six))
    )


@kernel("LeakyRelu")
def _(node: KernelNode) -> Function:
    alpha, zero = _number(node, node.attr("alpha")), _number(node, 0)
    if alpha <= 1:
        return lambda features: np.maximum(features, features * alpha)
    return lambda features: np.where(features > zero, features, features * alpha)


@kernel("LeakyReluGrad")
def _(node: KernelNode) -> Function:
    alpha, zero = _number(node, node.attr("alpha")), _number(node, 0)
    return _of_equal_shapes(node, lambda gradients, features: np.where(features > zero, gradients, gradients * alpha))


@kernel("Elu")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    return lambda features: np.where(features < zero, np.expm1(np.minimum(features, zero)), features)


@kernel("EluGrad")
def _(node: KernelNode) -> Function:
    zero, one = _number(node, 0), _number(node, 1)
    return _of_equal_shapes(
        node, lambda gradients, outputs: np.where(outputs < zero, gradients * (outputs + one), gradients)
    )


@kernel("Selu")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    scale, scaled_alpha = _number(node, _SELU_SCALE), _number(node, _SELU_SCALED_ALPHA)
    return lambda features: np.where(
        features < zero, np.expm1(np.minimum(features, zero)) * scaled_alpha, features * scale
    )


@kernel("SeluGrad")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    scale, scaled_alpha = _number(node, _SELU_SCALE), _number(node, _SELU_SCALED_ALPHA)
    return _of_equal_shapes(
        node, lambda gradients, outputs: gradients * np.where(outputs < zero, outputs + scaled_alpha, scale)
    )


@kernel("Softplus")
def _(node: KernelNode) -> Function:
    zero = _number(node, 0)
    return lambda features: np.logaddexp(features, zero)


@kernel("SoftplusGrad")
def _(node: KernelNode) -> Function:
    one = _number(node, 1)

    def softplus_grad(gradients: np.ndarray, features: np.ndarray) -> np.ndarray:
        # 1 / (1 + exp(-x)) overflows harmlessly for x far below zero: the quotient is then 0.
        with np.errstate(over="ignore"):
            return gradients / (np.exp(-features) + one)

    return _of_equal_shapes(node, softplus_grad)


@kernel("Softsign")
def _(node: KernelNode) -> Function:
    one = _number(node, 1)
    return lambda features: features / (np.abs(features) + one)


@kernel("SoftsignGrad")
def _(node: KernelNode) -> Function:
    one = _number(node, 1)
    return _of_equal_shapes(node, lambda gradients, features: gradients / np.square(np.abs(features) + one))


# Softmax and the losses on top of it


@kernel("Softmax")
def _(node: KernelNode) -> Function:
    return _of_rows(_softmax)


@kernel("LogSoftmax")
def _(node: KernelNode) -> Function:
    return _of_rows(_log_softmax)


def _of_rows(function: ArrayFunction) -> Function:
    """A function of logits that have at least one dimension; of none it makes none."""

    def run(logits: np.ndarray) -> np.ndarray:
        if np.ndim(logits) == 0:
            raise invalid("logits must have >= 1 dimension, got []")
        return function(logits) if logits.size else np.array(logits)

    return run


@kernel("SoftmaxCrossEntropyWithLogits")
def _(node: KernelNode) -> Function:
    def loss_and_backprop(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if features.shape != labels.shape:
            try:
                features, labels = np.broadcast_arrays(features, labels)
            except ValueError:
                raise errors.InvalidArgumentError.of(
                    "logits and labels must be broadcastable: "
                    f"logits_size={list(features.shape)} labels_size={list(labels.shape)}",
                ) from None
        if features.ndim != 2:
            raise errors.InvalidArgumentError.of("logits and labels must be 2-dimensional")
        probability = np.empty(features.shape, features.dtype)
        loss = np.empty(features.shape[:1], features.dtype)
        for part in _parts_of_rows(features):
            log_probability = _softmax_into(features[part], probability[part])
            log_probability *= labels[part]
            probability[part] -= labels[part]
            np.negative(log_probability.sum(axis=-1), out=loss[part])
        return loss, probability

    return loss_and_backprop


@kernel("SparseSoftmaxCrossEntropyWithLogits")
def _(node: KernelNode) -> Function:
    def loss_and_backprop(features: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if features.ndim != 2 or np.shape(labels) != features.shape[:1]:
            raise errors.InvalidArgumentError.of(
                "logits and labels must have the same first dimension, got logits shape "
                f"{list(np.shape(features))} and labels shape {list(np.shape(labels))}",
            )
        rows, classes = features.shape
        if rows and (labels.min() < 0 or labels.max() >= classes):
            wrong = labels[(labels < 0) | (labels >= classes)][0]
            raise errors.InvalidArgumentError.of(
                f"Received a label value of {wrong} which is outside the valid range of [0, {classes}).  "
                f"Label values: {' '.join(map(str, labels[:100]))}",
            )
        probability = np.empty(features.shape, features.dtype)
        loss = np.empty(rows, features.dtype)
        for part in _parts_of_rows(features):
            log_probability = _softmax_into(features[part], probability[part])
            at = np.arange(len(log_probability)), labels[part]
            np.negative(log_probability[at], out=loss[part])
            probability[part][at] -= 1
        return loss, probability

    return loss_and_backprop


def _softmax(logits: Array) -> Array:
    if logits.ndim != 2:
        return _softmax(_as_matrix(logits)).reshape(logits.shape)
    result = np.empty(logits.shape, logits.dtype)
    for part in _parts_of_rows(logits):
        shifted = np.subtract(logits[part], np.max(logits[part], axis=-1, keepdims=True), out=result[part])
        np.exp(shifted, out=shifted)
        shifted /= shifted.sum(axis=-1, keepdims=True)
    return result


def _log_softmax(logits: Array) -> Array:
    if logits.ndim != 2:
        return _log_softmax(_as_matrix(logits)).reshape(logits.shape)
    result = np.empty(logits.shape, logits.dtype)
    for part in _parts_of_rows(logits):
        shifted = np.subtract(logits[part], np.max(logits[part], axis=-1, keepdims=True), out=result[part])
        shifted -= np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def _softmax_into(logits: Array, out: Array) -> Array:
    """Writes the softmax of rows into `out`, and gives its logarithm."""
    if not logits.size:
        return np.array(logits)
    shifted = np.subtract(logits, np.max(logits, axis=-1, keepdims=True))
    np.exp(shifted, out=out)
    total = out.sum(axis=-1, keepdims=True)
    out /= total
    shifted -= np.log(total)
    return shifted


_PART_BYTES = 1 << 18
"""Rows that a cache holds between the passes over them: twice as fast as passes over all rows."""


def _parts_of_rows(matrix: Array) -> Iterator[slice]:
    """The rows of a matrix in parts of about `_PART_BYTES`."""
    rows = len(matrix)
    step = max(1, _PART_BYTES // max(1, matrix.shape[1] * matrix.itemsize))
    return (slice(start, start + step) for start in range(0, rows, step))


# Bias


@kernel("BiasAdd", "BiasAddV1")
def _(node: KernelNode) -> Function:
    data_format = node.attr("data_format").decode() if node.op == "BiasAdd" else "NHWC"

    def bias_add(value: np.ndarray, bias: np.ndarray) -> np.ndarray:
        axis = channel_axis(data_format, value.ndim)
        if np.ndim(bias) != 1 or value.shape[axis] != bias.shape[0]:
            raise errors.InvalidArgumentError.of(
                "Must provide as many biases as the last dimension of the input tensor: "
                f"{list(np.shape(bias))} vs. {list(np.shape(value))}",
            )
        if axis == value.ndim - 1:
            return value + bias
        return value + bias.reshape((-1,) + (1,) * (value.ndim - 2))

    def into(out: Array, value: Array, bias: Array) -> Array | None:
        if out is not value or value.ndim < 2 or channel_axis(data_format, value.ndim) != value.ndim - 1:
            return None
        if bias.shape != value.shape[-1:] or bias.dtype != value.dtype:
            return None
        return np.add(value, bias, out=out)

    return with_into(bias_add, into)


@kernel("BiasAddGrad")
def _(node: KernelNode) -> Function:
    data_format = node.attr("data_format").decode()

    def bias_add_grad(gradient: np.ndarray) -> np.ndarray:
        if np.ndim(gradient) < 2:
            raise invalid(f"Input tensor must be at least 2D: {shape_text(np.shape(gradient))}")
        if channel_axis(data_format, gradient.ndim) == gradient.ndim - 1:
            return column_sums(_as_matrix(gradient))
        others = tuple(axis for axis in range(gradient.ndim) if axis != 1)
        return gradient.sum(axis=others, dtype=gradient.dtype)

    return bias_add_grad


# Normalisation


@kernel("LRN")
def _(node: KernelNode) -> Function:
    norm = _local_norm(node)
    beta = _number(node, node.attr("beta"))
    return lambda images: images * norm(images)[0] ** -beta


@kernel("LRNGrad")
def _(node: KernelNode) -> Function:
    norm = _local_norm(node)
    alpha, beta = _number(node, node.attr("alpha")), _number(node, node.attr("beta"))
    two = _number(node, 2)

    def lrn_grad(gradients: np.ndarray, images: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        scale, band = norm(images)
        if not np.shape(gradients) == images.shape == np.shape(outputs):
            raise invalid("input_grads, input_image, and out_image should have the same shape")
        spread = _as_matrix(gradients * outputs / scale) @ band
        return gradients * scale**-beta - two * alpha * beta * images * spread.reshape(images.shape)

    return lrn_grad


def _local_norm(node: KernelNode) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """A function of images that gives bias + alpha * (sum of squares of near channels), and the band matrix."""
    radius = node.attr("depth_radius")
    bias, alpha = _number(node, node.attr("bias")), _number(node, node.attr("alpha"))

    def norm(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if images.ndim != 4:
            raise errors.InvalidArgumentError.of("in must be 4-dimensional")
        channel = np.arange(images.shape[-1])
        band = (np.abs(channel[:, None] - channel) <= radius).astype(images.dtype)
        return bias + alpha * (_as_matrix(np.square(images)) @ band).reshape(images.shape), band

    return norm


@kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _(node: KernelNode) -> Function:
    data_format = node.attr("data_format").decode()
    epsilon, training = node.attr("epsilon"), node.attr("is_training")
    factor = node.attr("exponential_avg_factor")
    reserves_third = node.op == "FusedBatchNormV3"

    def fused_batch_norm(
        x: np.ndarray, scale: np.ndarray, offset: np.ndarray, mean: np.ndarray, variance: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        axis, around = _channels(x, data_format)
        _check_channels(x, axis, scale=scale, offset=offset)
        for name, vector in (("estimated_mean", mean), ("estimated_variance", variance)):
            if np.ndim(vector) != 1:
                raise invalid(f"{name} must be 1-dimensional{shape_text(np.shape(vector))}")
        wide = x.astype(scale.dtype, copy=False)
        if training:
            count = x.size // max(x.shape[axis], 1)
            used_mean = _channel_mean(wide, axis)
            used_variance = _channel_mean(np.square(wide - used_mean.reshape(around)), axis)
            new_mean, new_variance = moved_statistics(used_mean, used_variance, mean, variance, count, factor)
            if not x.size:  # nothing has no mean
                new_mean = new_variance = np.full_like(used_mean, np.nan)
        else:
            new_mean = used_mean = mean
            new_variance = used_variance = variance
        slope = scale / np.sqrt(used_variance + scale.dtype.type(epsilon))
        y = wide * slope.reshape(around)
        y += (offset - used_mean * slope).reshape(around)
        outputs = y.astype(x.dtype, copy=False), new_mean, new_variance, used_mean, used_variance
        return (*outputs, np.zeros((), scale.dtype)) if reserves_third else outputs

    return fused_batch_norm


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _(node: KernelNode) -> Function:
    data_format = node.attr("data_format").decode()
    epsilon, training = node.attr("epsilon"), node.attr("is_training")

    def fused_batch_norm_grad(
        y_backprop: np.ndarray, x: np.ndarray, scale: np.ndarray, mean: np.ndarray, variance: np.ndarray, *_: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        axis, around = _channels(x, data_format)
        _check_channels(x, axis, scale=scale, mean=mean, variance=variance)
        if np.shape(y_backprop) != np.shape(x):
            raise invalid(
                f"x and y_backprop must have same shape, but x has shape {shape_text(np.shape(x))} and y_backprop has "
                f"shape {shape_text(np.shape(y_backprop))}"
            )
        gradient = y_backprop.astype(scale.dtype, copy=False)
        inverse = 1 / np.sqrt(variance + scale.dtype.type(epsilon))
        normal = (x.astype(scale.dtype, copy=False) - mean.reshape(around)) * inverse.reshape(around)
        offset_mean, scale_mean = _channel_mean(gradient, axis), _channel_mean(gradient * normal, axis)
        count = scale.dtype.type(x.size // max(x.shape[axis], 1))
        if training:
            normal *= scale_mean.reshape(around)
            gradient = gradient - offset_mean.reshape(around) - normal
        x_backprop = (gradient * (scale * inverse).reshape(around)).astype(x.dtype, copy=False)
        empty = np.zeros(0, scale.dtype)
        return x_backprop, scale_mean * count, offset_mean * count, empty, empty

    return fused_batch_norm_grad


def moved_statistics(
    used_mean: Array, used_variance: Array, mean: Array, variance: Array, count: int, factor: float
) -> tuple[Array, Array]:
    """The mean and the unbiased variance that a batch normalisation gives, averaged with the earlier ones by a factor.

    Args:
      used_mean, used_variance: those of this batch, biased, one element a channel.
      mean, variance: the earlier ones.
      count: how many elements of a channel the batch has.
      factor: the weight of this batch; with 1 the earlier ones do not count.
    """
    unbiased = used_variance * used_variance.dtype.type(count / max(count - 1, 1))
    if factor == 1:
        return used_mean, unbiased
    keep, take = used_mean.dtype.type(1 - factor), used_mean.dtype.type(factor)
    return keep * mean + take * used_mean, keep * variance + take * unbiased


def _channels(x: np.ndarray, data_format: str) -> tuple[int, tuple[int, ...]]:
    """The channels' axis, and the shape that spreads one number per channel over x."""
    if np.ndim(x) not in (4, 5):
        raise invalid(f"input must be 4 or 5-dimensional{shape_text(np.shape(x))}")
    axis = channel_axis(data_format, x.ndim)
    return axis, tuple(-1 if i == axis else 1 for i in range(x.ndim))


def _check_channels(x: np.ndarray, axis: int, **vectors: np.ndarray) -> None:
    """Refuses what is not one number per channel of x."""
    for name, vector in vectors.items():
        if np.ndim(vector) != 1:
            raise invalid(f"{name} must be 1-dimensional{shape_text(np.shape(vector))}")
        if len(vector) != x.shape[axis]:
            raise invalid(f"{name} must have the same number of elements as the channels of x, got {len(vector)} and "
                          f"{x.shape[axis]}")


def _channel_mean(x: np.ndarray, axis: int) -> np.ndarray:
    if axis == x.ndim - 1:
        return column_sums(_as_matrix(x)) / x.dtype.type(max(x.size // max(x.shape[-1], 1), 1))
    if not x.size:
        return np.zeros(x.shape[axis], x.dtype)
    return x.mean(axis=tuple(i for i in range(x.ndim) if i != axis), dtype=x.dtype)


def _as_matrix(x: np.ndarray) -> np.ndarray:
    """[..., n] as [m, n], also where there is nothing in it."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


# Losses of whole tensors, ranking


@kernel("L2Loss")
def _(node: KernelNode) -> Function:
    half = _number(node, 0.5)

    def l2_loss(tensor: np.ndarray) -> np.ndarray:
        flat = np.reshape(tensor, -1)
        return np.dot(flat, flat) * half

    return l2_loss


@kernel("InTopK")
def _(node: KernelNode) -> Function:
    k = node.attr("k")
    return lambda predictions, targets: _in_top_k(predictions, targets, k)


@kernel("InTopKV2")
def _(node: KernelNode) -> Function:
    return lambda predictions, targets, k: _in_top_k(predictions, targets, scalar(k, "k"))


def _in_top_k(predictions: np.ndarray, targets: np.ndarray, k: int) -> np.ndarray:
    if predictions.ndim != 2 or np.shape(targets) != predictions.shape[:1]:
        raise errors.InvalidArgumentError.of(
            "First dimension of predictions must match length of targets: "
            f"{list(np.shape(predictions))} against {list(np.shape(targets))}",
        )
    valid = (targets >= 0) & (targets < predictions.shape[1])
    if not predictions.size:
        return np.zeros(len(predictions), bool)
    chosen = predictions[np.arange(len(predictions)), np.where(valid, targets, 0)]
    higher = (predictions > chosen[:, None]).sum(axis=1)
    return valid & np.isfinite(predictions).all(axis=1) & (higher < k)


@kernel("TopK")
def _(node: KernelNode) -> Function:
    k = node.attr("k")
    return lambda values: _top_k(values, k, np.int32)


@kernel("TopKV2")
def _(node: KernelNode) -> Function:
    index_type = node.attr("index_type").as_numpy_dtype
    return lambda values, k: _top_k(values, int(k), index_type)


def _top_k(values: np.ndarray, k: int, index_type: type[np.generic]) -> tuple[np.ndarray, np.ndarray]:
    """The k largest of each row and their indices, in descending order, of equal ones the first first."""
    if np.ndim(values) < 1:
        raise errors.InvalidArgumentError.of("input must be >= 1-D, got shape []")
    size = values.shape[-1]
    if k < 0:
        raise errors.InvalidArgumentError.of(f"Need k >= 0, got {k}")
    if size < k:
        raise errors.InvalidArgumentError.of(f"input must have at least k columns. Had {size}, needed {k}")
    if k == 1:
        indices = np.argmax(values, axis=-1)[..., None]
    else:
        # Ascending and stable over the reversed row: of equal values the first of the row comes last.
        ascending = np.argsort(values[..., ::-1], axis=-1, kind="stable")
        indices = size - 1 - ascending[..., ::-1][..., :k]
    return np.take_along_axis(values, indices, axis=-1), indices.astype(index_type)


@kernel("NthElement")
def _(node: KernelNode) -> Function:
    reverse = node.attr("reverse")

    def nth_element(values: np.ndarray, n: np.ndarray) -> np.ndarray:
        place = int(n)
        if place < 0:
            raise errors.InvalidArgumentError.of(f"n must be non-negative, got {place}")
        if np.ndim(values) < 1 or values.shape[-1] <= place:
            raise errors.InvalidArgumentError.of(
                f"Input must have last dimension > n = {place}, got shape {list(np.shape(values))}"
            )
        position = values.shape[-1] - 1 - place if reverse else place
        return np.partition(values, position, axis=-1)[..., position]

    return nth_element


def _number(node: KernelNode, value: float) -> Array:
    """`value` as a scalar of the node's dtype, so that no arithmetic leaves that dtype."""
    return node.attr("T").as_numpy_dtype(value)
