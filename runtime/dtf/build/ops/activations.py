"""Activation functions: relu and related functions, softplus, softmax.

Owns these functions of tf.nn and the shape rule of softmax; gradients are in `nn_grad`. Each function computes the
formula of its page under https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, rearranging, searching
from dtf.build.ops import math as math_ops
from dtf.build.shape_rules import shape_rule
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes, errors
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "crelu",
    "elu",
    "leaky_relu",
    "log_softmax",
    "relu",
    "relu6",
    "selu",
    "softmax",
    "softplus",
    "softsign",
    "swish",
]


@dispatched
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


@dispatched
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


@dispatched
def leaky_relu(features: TensorLike, alpha: float = 0.2, name: str | None = None) -> Tensor:
    """features where positive, else alpha * features. Integers are taken as float32.

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
    """relu of features and of -features, concatenated along `axis`, which doubles. arXiv 1603.05201."""
    with name_scope(name, "CRelu", [features]) as scope:
        features = convert_to_tensor(features, name="features")
        return relu(joining.concat([features, -features], axis, name=scope))


@dispatched
def elu(features: TensorLike, name: str | None = None) -> Tensor:
    """features where positive, else exp(features) - 1. arXiv 1511.07289.

    Args:
      features: a tensor of floating-point numbers.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `features`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn/elu
    """
    return apply_op("Elu", name, features=features)


@dispatched
def selu(features: TensorLike, name: str | None = None) -> Tensor:
    """A scaled elu that keeps mean 0 and variance 1. arXiv 1706.02515."""
    return apply_op("Selu", name, features=features)


@dispatched
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


@dispatched
def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """features / (|features| + 1)."""
    return apply_op("Softsign", name, features=features)


def swish(features: TensorLike, beta: TensorLike = 1.0) -> Tensor:
    """features * sigmoid(beta * features). arXiv 1710.05941."""
    features = convert_to_tensor(features, name="features")
    if isinstance(beta, float) and beta == 1.0:
        return features * math_ops.sigmoid(features)
    return features * math_ops.sigmoid(convert_to_tensor(beta, features.dtype) * features)


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
    return _along_last("Softmax", logits, one_of("axis", axis, "dim", dim, -1), name)


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
    return _along_last("LogSoftmax", logits, one_of("axis", axis, "dim", dim, -1), name)


def _along_last(op_type: str, logits: Any, axis: Any, name: str | None) -> Tensor:
    logits = convert_to_tensor(logits)
    rank = logits.shape.ndims
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            with name_scope(name, op_type.lower(), [logits]) as scope:
                moved = apply_op(op_type, logits=_with_axis_last(logits, axis))
                return _with_axis_last(moved, axis, name=scope)
        axis = int(known)
    if axis == -1 or rank is not None and axis == rank - 1:
        return apply_op(op_type, name, logits=logits)
    with name_scope(name, op_type.lower(), [logits]) as scope:
        moved = apply_op(op_type, logits=_with_axis_last(logits, axis))
        result = _with_axis_last(moved, axis, name=scope)
        result.set_shape(logits.shape)
        return result


def _with_axis_last(tensor: Tensor, axis: Any, name: str = "transpose") -> Tensor:
    """`axis` and the last one change places; done twice it is undone."""
    rank = tensor.shape.ndims
    if isinstance(axis, Tensor):
        rank, axis = None, searching.where(axis < 0, axis + array_ops.rank(tensor), axis)
    if rank is not None and not -rank <= axis < rank:
        raise errors.InvalidArgumentError.of(f"`dim` must be in the range [{-rank}, {rank}), got {axis}")
    if rank is not None:
        order = list(range(rank))
        order[axis], order[-1] = order[-1], order[axis]
        return rearranging.transpose(tensor, order, name=name)
    size = array_ops.rank(tensor)
    position = axis if isinstance(axis, Tensor) or axis >= 0 else size + axis
    numbers_ = math_ops.range(size)
    order_ = searching.where(
        math_ops.equal(numbers_, position),
        filling_ops.fill([size], size - 1),
        searching.where(math_ops.equal(numbers_, size - 1), filling_ops.fill([size], position), numbers_),
    )
    return rearranging.transpose(tensor, order_, name=name)


@shape_rule("Softmax", "LogSoftmax")
def _(op: Operation) -> list[TensorShape]:
    return [op.inputs[0].shape.with_rank_at_least(1)]
