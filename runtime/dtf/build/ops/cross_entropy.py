"""Losses of tf.nn: cross entropies of softmax and sigmoid, the Poisson loss, the L2 loss.

Owns these functions and the shape rules of their ops; gradients are in `nn_grad`. Losses that average over a batch are
in `dtf.losses`. Each function computes the formula of its page under
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant import constant
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.ops import array as array_ops
from dtf.build.ops import control_flow as control_flow_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, rearranging, reductions, searching
from dtf.build.ops import math as math_ops
from dtf.build.ops.activations import relu
from dtf.build.ops.normalization import as_float32, cast_back
from dtf.build.shape_rules import broadcast_shape, shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "l2_loss",
    "log_poisson_loss",
    "sigmoid_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits",
    "softmax_cross_entropy_with_logits_v2",
    "sparse_softmax_cross_entropy_with_logits",
    "weighted_cross_entropy_with_logits",
]


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
            labels, logits, axis=one_of("axis", axis, "dim", dim, -1), name=scope
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
    axis = one_of("axis", axis, "dim", dim, -1)
    with name_scope(name, "softmax_cross_entropy_with_logits", [logits, labels]) as scope:
        logits = convert_to_tensor(logits, name="logits")
        labels = convert_to_tensor(labels, dtype=None, preferred_dtype=logits.dtype.base_dtype, name="labels")
        precise = as_float32(logits)
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
        return cast_back(loss, logits.dtype)


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
        precise = as_float32(logits)
        if rank == 2:
            op = apply_op("SparseSoftmaxCrossEntropyWithLogits", name, features=precise, labels=labels)
            return cast_back(op.loss, logits.dtype)
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
        return cast_back(loss, logits.dtype)


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
        zeros = filling_ops.zeros_like(logits)
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
      pos_weight: the factor of the term of positive labels.
      name: the name of the operation.
      targets: the older name of `labels`.

    Returns:
      A Tensor of the shape and dtype of `logits`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/weighted_cross_entropy_with_logits
    """
    labels = one_of("labels", labels, "targets", targets)
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
            result += searching.where(small, filling_ops.zeros_like(targets), stirling)
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


@shape_rule("SoftmaxCrossEntropyWithLogits")
def _(op: Operation) -> list[TensorShape]:
    shape = broadcast_shape(op.inputs[0].shape, op.inputs[1].shape).with_rank(2)
    return [TensorShape([shape[0]]), shape]


@shape_rule("SparseSoftmaxCrossEntropyWithLogits")
def _(op: Operation) -> list[TensorShape]:
    features, labels = op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(1)
    rows = features[0].merge_with(labels[0])
    return [TensorShape([rows]), TensorShape([rows, features[1]])]


# Helpers of several of the functions above


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


def _moved_to_end(tensor: Tensor, axis: int) -> Tensor:
    """Moves `axis` after the others, which keep their order."""
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
