"""Neural-network ops without windows: activations, softmax, losses, bias, normalisation, dropout, ranking.

Owns these public functions of tf.nn and the shape rules of their ops. Convolution and pooling are in `conv`, embeddings
in `embedding`, gradients in `nn_grad`. What each function computes is that of the page of the same name under
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant, constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import colocate_with, control_dependencies, name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import gathering, joining, rearranging, reductions, searching
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import random as random_ops
from dtf.build.shape_rules import broadcast_shape, merge_all, scalar, shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import channel_axis

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "batch_norm_with_global_normalization",
    "batch_normalization",
    "bias_add",
    "crelu",
    "dropout",
    "elu",
    "fused_batch_norm",
    "in_top_k",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "local_response_normalization",
    "log_poisson_loss",
    "log_softmax",
    "lrn",
    "moments",
    "normalize_moments",
    "nth_element",
    "relu",
    "relu6",
    "relu_layer",
    "selu",
    "sigmoid_cross_entropy_with_logits",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "sufficient_statistics",
    "swish",
    "top_k",
    "weighted_cross_entropy_with_logits",
    "weighted_moments",
    "xw_plus_b",
    "zero_fraction",
]

# Activations


def relu(features: TensorLike, name: str | None = None) -> Tensor:
    """max(features, 0), of any shape.

    Args:
      features: a tensor of real numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/relu
    """
    return apply_op("Relu", name, features=features)


def relu6(features: TensorLike, name: str | None = None) -> Tensor:
    """min(max(features, 0), 6), of any shape.

    Args:
      features: a tensor of real numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/relu6
    """
    return apply_op("Relu6", name, features=features)


def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """features where they are positive, else alpha * features. Integers are taken as float32.

    Args:
      features: a tensor of real numbers.
      alpha: the slope where features are negative.
      name: the name of the operation.

    Returns:
      A Tensor of the shape of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/leaky_relu
    """
    with name_scope(name, "LeakyRelu", [features, alpha]) as scope:
        features = convert_to_tensor(features, name="features")
        if features.dtype.is_integer:
            features = math_ops.cast(features, dtypes.float32)
        return apply_op("LeakyRelu", scope, features=features, alpha=alpha)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """relu of features and of -features, concatenated along `axis`, which is thereby doubled. arXiv 1603.05201."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return relu(joining.concat([features, -features], axis, name=scope))


def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """features where they are positive, else exp(features) - 1. arXiv 1511.07289.

    Args:
      features: a tensor of floating-point numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/elu
    """
    return apply_op("Elu", name, features=features)


def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """A scaled elu that keeps mean 0 and variance 1. arXiv 1706.02515."""
    return apply_op("Selu", name, features=features)


def softplus(features: TensorLike, name: str | None = None) -> Tensor:
    """log(exp(features) + 1).

    Args:
      features: a tensor of floating-point numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/softplus
    """
    return apply_op("Softplus", name, features=features)


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """features / (|features| + 1)."""
    return apply_op("Softsign", name, features=features)


def swish(features: TensorLike) -> Tensor:
    """features * sigmoid(features). arXiv 1710.05941."""
    features = convert_to_tensor(features, name="features")
    return features * math_ops.sigmoid(features)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """exp(logits) / sum of them along `axis`, the last one by default.

    Args:
      logits: a tensor of floating-point numbers.
      axis: the axis of the classes; the last one by default.
      name: the name of the operation.
      dim: the older name of `axis`.

    Returns:
      A Tensor of the shape and dtype of `logits`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/softmax
    """
    return _along_last("Softmax", logits, _one_of("axis", axis, "dim", dim, -1), name)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """log(softmax(logits)), without losing what is near 0.

    Args:
      logits: a tensor of floating-point numbers.
      axis: the axis of the classes; the last one by default.
      name: the name of the operation.
      dim: the older name of `axis`.

    Returns:
      A Tensor of the shape and dtype of `logits`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/log_softmax
    """
    return _along_last("LogSoftmax", logits, _one_of("axis", axis, "dim", dim, -1), name)


def _along_last(op_type: str, logits: Any, axis: int, name: str | None) -> Tensor:
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    if axis == -1 or rank is not None and axis == rank - 1:
        return apply_op(op_type, name, logits=logits)
    with name_scope(name, op_type.lower(), [logits]) as scope:
        moved = apply_op(op_type, logits=_with_axis_last(logits, axis))
        result = _with_axis_last(moved, axis, name=scope)
        result.set_shape(logits.shape)
        return result


def _with_axis_last(tensor: Tensor, axis: int, name: str = "transpose") -> Tensor:
    """`axis` and the last one change places; done twice it is undone."""
    rank = tensor.shape.ndims
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in the valid range [{-rank}, {rank - 1}]")
    if rank is not None:
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        return rearranging.transpose(tensor, order, name=name)
    size = array_ops.rank(tensor)
    position = axis if axis >= 0 else size + axis
    numbers_ = math_ops.range(size)
    order_ = searching.where(
        math_ops.equal(numbers_, position),
        array_ops.fill([size], size - 1),
        searching.where(math_ops.equal(numbers_, size - 1), array_ops.fill([size], position), numbers_),
    )
    return rearranging.transpose(tensor, order_, name=name)


def _moved_to_end(tensor: Tensor, axis: int) -> Tensor:
    """`axis` behind the others, which stay in their order."""
    rank = tensor.shape.ndims
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"axis {axis} is not in the valid range [{-rank}, {rank - 1}]")
    if rank is not None:
        others = [each for each in range(rank) if each != axis % rank]
        return rearranging.transpose(tensor, [*others, axis % rank])
    size = array_ops.rank(tensor)
    position = axis if axis >= 0 else size + axis
    order = joining.concat([math_ops.range(position), math_ops.range(position + 1, size), [position]], 0)
    return rearranging.transpose(tensor, order)


# Losses


def softmax_cross_entropy_with_logits(
    _sentinel: Any = None,
    labels: Any = None,
    logits: Any = None,
    dim: int | None = None,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """As the _v2 form, but nothing flows back into the labels.

    Args:
      _sentinel: refuses arguments by position.
      labels: probabilities, of the shape and dtype of `logits`.
      logits: a tensor of floating-point numbers.
      dim: the axis of the classes; the last one by default.
      name: the name of the operation.
      axis: the newer name of `dim`.

    Returns:
      A Tensor of the shape of `logits` without that axis.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/softmax_cross_entropy_with_logits
    """
    _only_named("softmax_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    with name_scope(name, "softmax_cross_entropy_with_logits_sg", [logits, labels]) as scope:
        labels = array_ops.stop_gradient(labels, name="labels_stop_gradient")
        return softmax_cross_entropy_with_logits_v2(
            labels, logits, axis=_one_of("axis", axis, "dim", dim, -1), name=scope
        )


def softmax_cross_entropy_with_logits_v2(
    labels: Any, logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """-sum(labels * log_softmax(logits)) along `axis` (the last one by default), which the result lacks.

    labels are probabilities of the logits' shape and floating dtype. float16 logits are computed with as float32.

    Args:
      labels: probabilities, of the shape and dtype of `logits`.
      logits: a tensor of floating-point numbers.
      axis: the axis of the classes; the last one by default.
      name: the name of the operation.
      dim: the older name of `axis`.

    Returns:
      A Tensor of the shape of `logits` without that axis.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/softmax_cross_entropy_with_logits_v2
    """
    axis = _one_of("axis", axis, "dim", dim, -1)
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=None, preferred_dtype=logits.dtype.base_dtype, name="labels")
        precise = _precise(logits)
        labels = math_ops.cast(labels, precise.dtype)
        rank = precise.shape.ndims
        if axis != -1 and (rank is None or axis != rank - 1):
            precise, labels = _moved_to_end(precise, axis), _moved_to_end(labels, axis)
        if rank == 2 and labels.shape.ndims == 2:
            loss = apply_op("SoftmaxCrossEntropyWithLogits", scope, features=precise, labels=labels).loss
        else:
            shape = array_ops.shape(precise)
            flat = apply_op(
                "SoftmaxCrossEntropyWithLogits", scope, features=_matrix(precise), labels=_matrix(labels)
            ).loss
            loss = array_ops.reshape(flat, shape[:-1])
            loss.set_shape(precise.shape[:-1])
        return _as_dtype(loss, logits.dtype)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-log_softmax(logits)[label] for each label.

    Args:
      labels: int32 or int64, of the shape of `logits` without the last dimension; each in [0, number of classes).
      logits: [..., number of classes].

    Returns:
      A tensor of the shape of `labels` and the dtype of `logits`.

    Raises:
      ValueError: the ranks do not fit.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/sparse_softmax_cross_entropy_with_logits
    """
    _only_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    with name_scope(name, "SparseSoftmaxCrossEntropyWithLogits", [labels, logits]):
        labels = convert_to_tensor(labels, name="labels")
        logits = convert_to_tensor(logits, name="logits")
        rank, labels_rank = logits.shape.ndims, labels.shape.ndims
        if rank is not None and rank == 0:
            raise ValueError(f"Logits cannot be scalars - received shape {logits.shape}.")
        if rank is not None and labels_rank is not None and labels_rank != rank - 1:
            raise ValueError(
                f"Rank mismatch: Rank of labels (received {labels_rank}) should equal rank of logits minus 1 "
                f"(received {rank})."
            )
        precise = _precise(logits)
        if rank == 2:
            op = apply_op("SparseSoftmaxCrossEntropyWithLogits", name, features=precise, labels=labels)
            return _as_dtype(op.loss, logits.dtype)
        labels_shape = array_ops.shape(labels)
        checks = []
        if not (labels.shape.is_fully_defined() and logits.shape[:-1].is_fully_defined()):
            logits_shape = array_ops.shape(logits)
            fits = reductions.reduce_all(math_ops.equal(labels_shape, logits_shape[:-1]))
            checks.append(control_flow_ops.Assert(fits, ["labels and logits differ:", labels_shape, logits_shape]))
        with control_dependencies(checks):
            flat = apply_op(
                "SparseSoftmaxCrossEntropyWithLogits",
                name,
                features=_matrix(precise),
                labels=array_ops.reshape(labels, [-1]),
            ).loss
            loss = array_ops.reshape(flat, labels_shape)
            loss.set_shape(labels.shape)
        return _as_dtype(loss, logits.dtype)


def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """-labels * log(sigmoid(logits)) - (1 - labels) * log(1 - sigmoid(logits)), by element and without overflow.

    Args:
      _sentinel: refuses arguments by position.
      labels: probabilities, of the shape and dtype of `logits`.
      logits: a tensor of floating-point numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `logits`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/sigmoid_cross_entropy_with_logits
    """
    _only_named("sigmoid_cross_entropy_with_logits", _sentinel, labels=labels, logits=logits)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=logits.dtype.base_dtype, name="labels")
        _check_same_shape(labels, logits, "labels")
        zeros = array_ops.zeros_like(logits)
        positive = logits >= zeros
        return math_ops.add(
            searching.where(positive, logits, zeros) - logits * labels,
            math_ops.log1p(math_ops.exp(searching.where(positive, -logits, logits))),
            name=scope,
        )


def weighted_cross_entropy_with_logits(
    labels: TensorLike | None = None,
    logits: Any = None,
    pos_weight: Any = None,
    name: str | None = None,
    targets: TensorLike | None = None,
) -> Tensor:
    """The sigmoid cross entropy with the term of positive labels multiplied by `pos_weight`.

    Args:
      labels: probabilities, of the shape and dtype of `logits`.
      logits: a tensor of floating-point numbers.
      pos_weight: what the term of positive labels is multiplied by.
      name: the name of the operation.
      targets: the older name of `labels`.

    Returns:
      A Tensor of the shape and dtype of `logits`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/weighted_cross_entropy_with_logits
    """
    labels = _one_of("labels", labels, "targets", targets)
    with name_scope(name, "logistic_loss", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=logits.dtype.base_dtype, name="labels")
        _check_same_shape(labels, logits, "labels")
        weight = 1 + (pos_weight - 1) * labels
        return math_ops.add(
            (1 - labels) * logits,
            weight * (math_ops.log1p(math_ops.exp(-math_ops.abs(logits))) + relu(-logits)),
            name=scope,
        )


def log_poisson_loss(
    targets: TensorLike, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """exp(log_input) - log_input * targets, plus Stirling's approximation of log(targets!) if `compute_full_loss`."""
    with name_scope(name, "log_poisson_loss", [log_input, targets]):
        log_input = convert_to_tensor(log_input, name="log_input")
        targets = convert_to_tensor(targets, dtype=log_input.dtype.base_dtype, name="targets")
        _check_same_shape(targets, log_input, "targets")
        result = math_ops.exp(log_input) - log_input * targets
        if compute_full_loss:
            half = constant(0.5, dtype=targets.dtype)
            stirling = targets * math_ops.log(targets) - targets + half * math_ops.log(2 * np.pi * targets)
            small = math_ops.logical_and(targets >= 0, targets <= 1)
            result += searching.where(small, array_ops.zeros_like(targets), stirling)
        return result


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """sum(t ** 2) / 2, a scalar.

    Args:
      t: a tensor of floating-point numbers.
      name: the name of the operation.

    Returns:
      A scalar of the dtype of `t`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/l2_loss
    """
    return apply_op("L2Loss", name, t=t)


# Bias and layers in one call


def bias_add(value: TensorLike, bias: Any, data_format: str | None = None, name: str | None = None) -> Tensor:
    """value + bias, the bias (a vector) along the channels: the last dimension, or the second for "NC..." formats.

    Args:
      value: a tensor of rank 2 or more.
      bias: a vector of the number of channels, of the dtype of `value`.
      data_format: "N...C" (the default) or "NC...".
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `value`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/bias_add
    """
    with name_scope(name, "BiasAdd", [value, bias]) as scope:
        first = data_format is not None and data_format.startswith("NC")
        value = convert_to_tensor(value, name="input")
        bias = convert_to_tensor(bias, dtype=value.dtype.base_dtype, name="bias")
        return apply_op("BiasAdd", scope, value=value, bias=bias, data_format="NCHW" if first else "NHWC")


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """matmul(x, weights) + biases.

    Args:
      x: [batch, width].
      weights: [width, units].
      biases: [units].
      name: the name of the operation.

    Returns:
      A Tensor [batch, units].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/xw_plus_b
    """
    with name_scope(name, "xw_plus_b", [x, weights, biases]) as scope:
        return bias_add(linalg_ops.matmul(x, weights), biases, name=scope)


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """relu(matmul(x, weights) + biases)."""
    with name_scope(name, "relu_layer", [x, weights, biases]) as scope:
        return relu(bias_add(linalg_ops.matmul(x, weights), biases), name=scope)


# Normalisation and statistics


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
    axis = _one_of("axis", axis, "dim", dim)
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
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x)
        precise = _precise(x)
        mean = reductions.reduce_mean(precise, axes, keepdims=True, name="mean")
        variance = reductions.reduce_mean(
            math_ops.squared_difference(precise, array_ops.stop_gradient(mean)), axes, keepdims=True, name="variance"
        )
        if not keep:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        return _as_dtype(mean, x.dtype), _as_dtype(variance, x.dtype)


def weighted_moments(
    x: TensorLike,
    axes: Sequence[int],
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Mean and variance along `axes` of elements that count `frequency_weights` (broadcast to x) times each."""
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        precise = _precise(x)
        weights = math_ops.cast(convert_to_tensor(frequency_weights, name="frequency_weights"), precise.dtype)
        weights += array_ops.zeros_like(precise)
        total = reductions.reduce_sum(weights, axes, keepdims=True, name="sum_of_weights")
        mean = reductions.reduce_sum(weights * precise, axes, keepdims=True) / total
        distances = math_ops.squared_difference(precise, mean)
        variance = reductions.reduce_sum(weights * distances, axes, keepdims=True) / total
        if not keep:
            mean, variance = array_ops.squeeze(mean, axes), array_ops.squeeze(variance, axes)
        return _as_dtype(mean, x.dtype), _as_dtype(variance, x.dtype)


def sufficient_statistics(
    x: TensorLike,
    axes: Sequence[int],
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Number of elements, sum and sum of squares along `axes` (of x - shift, when given), and the shift."""
    keep = bool(_one_of("keepdims", keepdims, "keep_dims", keep_dims, False))
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
    """Mean and variance from what `sufficient_statistics` gives."""
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
      mean: of a shape that broadcasts to that of `x`.
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
    t, m, v = _one_of("t", t, "input", input), _one_of("m", m, "mean", mean), _one_of("v", v, "variance", variance)
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
      scale, offset, mean, variance: [channels]. mean and variance are those to use when not training; when training,
        those to average with the batch's if `exponential_avg_factor` is not 1.

    Returns:
      (y, mean, variance): when training the variance is that of the population of which the batch is a sample.

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


def dropout(
    x: TensorLike,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: TensorLike | None = None,
) -> Tensor:
    """Sets each element to 0 with probability `rate`, and divides the others by 1 - rate.

    Args:
      x: a tensor of floating-point numbers.
      keep_prob: 1 - rate, the older way to say it; a number or a scalar tensor.
      noise_shape: an int32 vector; dimensions of size 1 are kept or dropped as a whole.
      seed: the seed of this operation.
      name: the name of the operation.
      rate: the probability with which an element becomes 0.

    Returns:
      A Tensor of the shape and dtype of `x`.

    Raises:
      ValueError: both or none of `rate` and `keep_prob`, a rate outside [0, 1), or `x` of an integer dtype.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/dropout
    """
    if (keep_prob is None) == (rate is None):
        raise ValueError("Exactly one of the arguments rate and keep_prob must be given.")
    if rate is None:
        rate = 1 - keep_prob
    with name_scope(name, "dropout", [x]):
        x = convert_to_tensor(x, name="x")
        if not x.dtype.is_floating:
            raise ValueError(f"x has to be a floating point tensor because it will be scaled. Got a {x.dtype} tensor.")
        if isinstance(rate, int | float | np.number) and not 0 <= rate < 1:
            raise ValueError(f"rate must be a scalar tensor or a float in the range [0, 1), got {rate}")
        rate = convert_to_tensor(rate, dtype=x.dtype.base_dtype, name="rate")
        rate.shape.assert_has_rank(0)
        known = constant_value(rate)
        if known is not None and known == 0:
            return x
        shape = array_ops.shape(x) if noise_shape is None else _noise_shape(x, noise_shape)
        noise = random_ops.random_uniform(shape, seed=seed, dtype=x.dtype)
        kept = math_ops.cast(noise >= rate, x.dtype)
        result = x * (1 / (1 - rate)) * kept
        result.set_shape(x.shape)
        return result


def _noise_shape(x: Tensor, noise_shape: Any) -> Any:
    """None entries mean the size of x there."""
    if isinstance(noise_shape, Tensor):
        return noise_shape
    sizes = TensorShape(noise_shape).as_list()
    known = x.shape.as_list() if x.shape.ndims == len(sizes) else [None] * len(sizes)
    merged = [size if given is None else given for given, size in zip(sizes, known, strict=True)]
    return merged if None not in merged else joining.stack(
        [array_ops.shape(x)[i] if size is None else size for i, size in enumerate(merged)]
    )


# Ranking


def in_top_k(predictions: TensorLike, targets: TensorLike, k: TensorLike, name: str | None = None) -> Tensor:
    """Whether the class targets[i] is among the k highest of predictions[i]; bool [batch]. Ties count as in.

    Args:
      predictions: float32 [batch, classes].
      targets: int32 or int64 [batch].
      k: how many of the highest count.
      name: the name of the operation.

    Returns:
      A bool vector [batch].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/in_top_k
    """
    with name_scope(name, "in_top_k"):
        return apply_op("InTopKV2", name, predictions=predictions, targets=targets, k=k)


def top_k(input: TensorLike, k: TensorLike = 1, sorted: bool = True, name: str | None = None) -> Any:
    """(values, indices) of the k largest entries of each row (last dimension), in descending order.

    Args:
      input: a tensor of real numbers, of rank 1 or more.
      k: how many entries, an int32 scalar.
      sorted: False accepts any order.
      name: the name of the operation.

    Returns:
      (values, indices): the last dimension has size k; indices are int32.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/top_k
    """
    return apply_op("TopKV2", name, input=input, k=k, sorted=sorted)


def nth_element(input: TensorLike, n: TensorLike, reverse: bool = False, name: str | None = None) -> Tensor:
    """The n-th smallest (largest if `reverse`) value of each row."""
    return apply_op("NthElement", name, input=input, n=n, reverse=reverse)


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """The fraction of zeros, a float32 scalar; NaN for no elements."""
    with name_scope(name, "zero_fraction", [value]):
        value = convert_to_tensor(value, name="value")
        with colocate_with(value.op):
            zeros = math_ops.equal(value, array_ops.zeros([], value.dtype))
            return array_ops.identity(reductions.reduce_mean(math_ops.cast(zeros, dtypes.float32)), name="fraction")


# Shape rules

shape_rule(
    "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "LRN", "LRNGrad"
)(unchanged)
shape_rule(
    "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"
)(merge_all)
shape_rule("L2Loss")(scalar)


@shape_rule("Softmax", "LogSoftmax")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(1)]


@shape_rule("SoftmaxCrossEntropyWithLogits")
def _(op: Operation) -> list[TensorShape]:
    shape = broadcast_shape(op.inputs[0].shape, op.inputs[1].shape).with_rank(2)
    return [TensorShape([shape[0]]), shape]


@shape_rule("SparseSoftmaxCrossEntropyWithLogits")
def _(op: Operation) -> list[TensorShape]:
    features, labels = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(1)
    rows = features[0].merge_with(labels[0])
    return [TensorShape([rows]), TensorShape([rows, features[1]])]


@shape_rule("BiasAdd", "BiasAddV1")
def _(op: Operation) -> list[TensorShape]:
    value, bias = op.inputs[0].shape, op.inputs[1].shape.with_rank(1)
    if value.ndims is None:
        return [value]
    axis = _channels_of(op, value.ndims)
    if axis >= value.ndims:
        raise ValueError(f"Shape must be at least rank {axis + 1} but is rank {value.ndims}")
    sizes = value.dims
    assert sizes is not None
    return [TensorShape([size.merge_with(bias[0]) if i == axis else size for i, size in enumerate(sizes)])]


@shape_rule("BiasAddGrad")
def _(op: Operation) -> list[TensorShape]:
    value = op.inputs[0].shape
    return [TensorShape([None if value.ndims is None else value[_channels_of(op, value.ndims)]])]


def _channels_of(op: Operation, rank: int) -> int:
    return channel_axis("NHWC" if op.type == "BiasAddV1" else op.get_attr("data_format").decode(), rank)


@shape_rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _(op: Operation) -> list[TensorShape]:
    x = op.inputs[0].shape.with_rank(4)
    axis = _channels_of(op, 4)
    channels = x[axis]
    for statistics in op.inputs[1 : 3 if op.get_attr("is_training") else 5]:
        channels = channels.merge_with(statistics.shape.with_rank(1)[0])
    y = TensorShape([channels if i == axis else x[i] for i in range(4)])
    third = [TensorShape(None)] if len(op.outputs) == 6 else []
    return [y, *[TensorShape([channels])] * 4, *third]


@shape_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _(op: Operation) -> list[TensorShape]:
    x = op.inputs[0].shape.merge_with(op.inputs[1].shape).with_rank(4)
    channels = TensorShape([x[_channels_of(op, 4)]])
    return [x, channels, channels, TensorShape([0]), TensorShape([0])]


@shape_rule("InTopK", "InTopKV2")
def _(op: Operation) -> list[TensorShape]:
    predictions, targets = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(1)
    return [TensorShape([predictions[0].merge_with(targets[0])])]


@shape_rule("TopK", "TopKV2")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank_at_least(1)
    k = op.get_attr("k") if op.type == "TopK" else constant_value(op.inputs[1])
    if shape.ndims is None:
        return [shape, shape]
    last = shape[-1].value
    if k is not None and last is not None and last < k:
        raise ValueError(f"input must have last dimension >= k = {k} but is {last}")
    result = shape[:-1].concatenate([None if k is None else int(k)])
    return [result, result]


@shape_rule("NthElement")
def _(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape.with_rank_at_least(1)
    return [shape if shape.ndims is None else shape[:-1]]


# What several of the functions above need


def _one_of(name: str, value: Any, old_name: str, old_value: Any, default: Any = None) -> Any:
    """An argument that TensorFlow renamed: whichever is given."""
    if value is not None and old_value is not None:
        raise ValueError(f"Cannot specify both '{old_name}' and '{name}'.")
    if value is None:
        value = old_value
    return default if value is None else value


def _only_named(function: str, sentinel: Any, **arguments: Any) -> None:
    if sentinel is not None:
        raise ValueError(f"Only call `{function}` with named arguments (labels=..., logits=..., ...)")
    if any(value is None for value in arguments.values()):
        raise ValueError(f"Both {' and '.join(arguments)} must be provided.")


def _check_same_shape(first: Tensor, logits: Tensor, name: str) -> None:
    try:
        first.shape.assert_is_compatible_with(logits.shape)
    except ValueError:
        raise ValueError(f"logits and {name} must have the same shape ({logits.shape} vs {first.shape})") from None


def _matrix(tensor: Tensor) -> Tensor:
    """All dimensions but the last as one."""
    last = tensor.shape[-1].value if tensor.shape.ndims is not None else None
    return array_ops.reshape(tensor, [-1, array_ops.shape(tensor)[-1] if last is None else last])


def _precise(tensor: Tensor) -> Tensor:
    """16-bit floats as float32."""
    return math_ops.cast(tensor, dtypes.float32) if tensor.dtype.is_floating and tensor.dtype.size == 2 else tensor


def _as_dtype(tensor: Tensor, dtype: dtypes.DType) -> Tensor:
    return tensor if tensor.dtype.base_dtype == dtype.base_dtype else math_ops.cast(tensor, dtype.base_dtype)
