"""Functions of tf.nn: bias and layers in one call, dropout, ranking.

Owns these functions and the shape rules of their ops. `activations`, `cross_entropy` and `normalization` have the other
elementwise functions of tf.nn, `conv` and `pools` those with windows, `embedding` the embeddings, `nn_grad` the
gradients. Each function computes the formula of its page under
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/nn
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import colocate_with, name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops import joining, reductions
from dtf.build.ops import linalg as linalg_ops
from dtf.build.ops import math as math_ops
from dtf.build.ops import random as random_ops
from dtf.build.ops.activations import relu
from dtf.build.shape_rules import merge_all, scalar, shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.window_shapes import channel_axis

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "bias_add",
    "dropout",
    "in_top_k",
    "nth_element",
    "relu_layer",
    "top_k",
    "xw_plus_b",
    "zero_fraction",
]


# Bias, layers in one call, dropout


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
    if data_format and not data_format.startswith("NC") and not (data_format[0] == "N" and data_format[-1] == "C"):
        raise ValueError(f"data_format must be of the form `N...C` or `NC...`, not {data_format!r}")
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


@dispatched
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
      rate: the probability that an element becomes 0.

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
            zeros = math_ops.equal(value, filling_ops.zeros([], value.dtype))
            return array_ops.identity(reductions.reduce_mean(math_ops.cast(zeros, dtypes.float32)), name="fraction")


# Shape rules

shape_rule(
    "Relu", "Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign"
)(unchanged)

shape_rule(
    "ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad"
)(merge_all)

shape_rule("L2Loss")(scalar)


@shape_rule("BiasAdd", "BiasAddV1")
def _(op: Operation) -> list[TensorShape]:
    value, bias = op.inputs[0].shape, op.inputs[1].shape.with_rank(1)
    if value.ndims is None:
        return [value]
    axis = channels_of(op, value.ndims)
    if axis >= value.ndims:
        raise ValueError(f"Shape must be at least rank {axis + 1} but is rank {value.ndims}")
    sizes = value.dims
    assert sizes is not None
    return [TensorShape([size.merge_with(bias[0]) if i == axis else size for i, size in enumerate(sizes)])]


@shape_rule("BiasAddGrad")
def _(op: Operation) -> list[TensorShape]:
    value = op.inputs[0].shape.with_rank_at_least(2)
    if value.ndims is None:
        return [TensorShape([None])]
    channels = channels_of(op, value.ndims)
    return [TensorShape([value[channels]])]


def channels_of(op: Operation, rank: int) -> int:
    return channel_axis("NHWC" if op.type == "BiasAddV1" else op.get_attr("data_format").decode(), rank)


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
