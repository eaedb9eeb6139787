"""Reductions and scans along axes: public functions and static shapes.

Names and arguments are TensorFlow 1.x's (https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math). Kernels:
`run.kernels.reductions`; gradients: `math_grad`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.array import rank
from dtf.build.ops.math import (
    add,
    cast,
    conj,
    exp,
    is_finite,
    log,
    multiply,
    not_equal,
    range,
    real,
    sqrt,
    square,
    subtract,
)
from dtf.build.shape_rules import shape_rule, unchanged
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "arg_max", "arg_min", "argmax", "argmin", "count_nonzero", "cumprod", "cumsum", "cumulative_logsumexp",
    "reduce_all", "reduce_any", "reduce_euclidean_norm", "reduce_logsumexp", "reduce_max", "reduce_mean",
    "reduce_min", "reduce_prod", "reduce_std", "reduce_sum", "reduce_variance",
]  # fmt: skip

# -- reductions --


@dispatched
def reduce_sum(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The sum along axes.

    Args:
      input_tensor: a tensor of numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_sum
    """
    return _reduce("Sum", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_mean(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The mean along axes. The mean of integers is an integer, cut toward zero.

    Args:
      input_tensor: a tensor of numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_mean
    """
    return _reduce("Mean", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_prod(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The product along axes.

    Args:
      input_tensor: a tensor of numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_prod
    """
    return _reduce("Prod", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_max(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The maximum along axes; of no elements, the least value of the dtype.

    Args:
      input_tensor: a tensor of numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_max
    """
    return _reduce("Max", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_min(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The minimum along axes; of no elements, the greatest value of the dtype.

    Args:
      input_tensor: a tensor of numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_min
    """
    return _reduce("Min", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_all(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether all elements are True along axes.

    Args:
      input_tensor: a tensor of bool.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_all
    """
    return _reduce("All", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


@dispatched
def reduce_any(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Whether any element is True along axes.

    Args:
      input_tensor: a tensor of bool.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_any
    """
    return _reduce("Any", input_tensor, axis, keepdims, name, reduction_indices, keep_dims)


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The square root of the sum of squares along `axis`."""
    return _reduce("EuclideanNorm", input_tensor, axis, keepdims, name)


def reduce_logsumexp(
    input_tensor: TensorLike,
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """The logarithm of the sum of exponentials along axes, without overflow.

    Args:
      input_tensor: a tensor of floating-point numbers.
      axis: an integer, or a list or tensor of integers in [-rank, rank); all axes by default.
      keepdims: keep the reduced axes, with size 1.
      name: the name of the operation.
      reduction_indices: the older name of `axis`.
      keep_dims: the older name of `keepdims`.

    Returns:
      A Tensor of the dtype of `input_tensor`, without the reduced axes.

    Raises:
      ValueError: both names of one argument are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/reduce_logsumexp
    """
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "ReduceLogSumExp", [input_tensor]) as name:
        x = convert_to_tensor(input_tensor, name="input_tensor")
        largest = reduce_max(x, axis, keepdims=True)
        # An infinite maximum would make inf - inf; the result does not depend on the subtracted value.
        finite = apply_op(
            "Select",
            condition=is_finite(largest),
            t=largest,
            e=apply_op("ZerosLike", x=largest),
        )
        shift = apply_op("StopGradient", input=finite)
        result = log(reduce_sum(exp(subtract(x, shift)), axis, keepdims=keep))
        if not keep:
            shift = apply_op("Reshape", tensor=shift, shape=apply_op("Shape", input=result))
        return add(result, shift, name=name)


@dispatched
def reduce_variance(
    input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """The population variance along `axis`: the mean square distance from the mean.

    Raises:
      TypeError: the input is of an integer type.
    """
    with name_scope(name or "reduce_variance", None, [input_tensor]):
        x = convert_to_tensor(input_tensor)
        if x.dtype.is_integer:
            raise TypeError(f"Input must be either real or complex. Received integer type {x.dtype}.")
        distance = subtract(x, reduce_mean(x, axis=axis, keepdims=True))
        squared = real(multiply(conj(distance), distance)) if x.dtype.is_complex else square(distance)
        return reduce_mean(squared, axis=axis, keepdims=keepdims)


@dispatched
def reduce_std(input_tensor: TensorLike, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """The square root of `reduce_variance`."""
    with name_scope(name or "reduce_std", None, [input_tensor]):
        return sqrt(reduce_variance(input_tensor, axis=axis, keepdims=keepdims))


def count_nonzero(
    input_tensor: TensorLike | None = None,
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """How many elements along `axis` are not zero (not empty, for strings); other arguments as for `reduce_sum`."""
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    value = one_of("input", input, "input_tensor", input_tensor)
    with name_scope(name, "count_nonzero", [value]):
        value = convert_to_tensor(value, name="input")
        zeros: dict[dtypes.DType, Any] = {dtypes.string: "", dtypes.bool: False}
        zero = constant(zeros.get(value.dtype.base_dtype, 0), dtype=value.dtype.base_dtype)
        counted = cast(not_equal(value, zero), dtypes.int64)
        return cast(reduce_sum(counted, axis=axis, keepdims=keep), dtypes.as_dtype(dtype))


def argmax(
    input: TensorLike,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """The index of the greatest element along one axis, the first of equal ones.

    Args:
      input: a tensor of numbers.
      axis: the axis; 0 by default.
      name: the name of the operation.
      dimension: the older name of `axis`.
      output_type: int32 or int64.

    Returns:
      A Tensor of `output_type` without that axis.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/argmax
    """
    axis = one_of("axis", axis, "dimension", dimension)
    return arg_max(input, 0 if axis is None else axis, output_type, name)


def argmin(
    input: TensorLike,
    axis: Any = None,
    name: str | None = None,
    dimension: Any = None,
    output_type: DTypeLike = dtypes.int64,
) -> Tensor:
    """The index of the least element along one axis, the first of equal ones.

    Args:
      input: a tensor of numbers.
      axis: the axis; 0 by default.
      name: the name of the operation.
      dimension: the older name of `axis`.
      output_type: int32 or int64.

    Returns:
      A Tensor of `output_type` without that axis.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/argmin
    """
    axis = one_of("axis", axis, "dimension", dimension)
    return arg_min(input, 0 if axis is None else axis, output_type, name)


def arg_max(
    input: TensorLike, dimension: Any, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """The older form of `argmax`."""
    return apply_op("ArgMax", name, input=input, dimension=dimension, output_type=dtypes.as_dtype(output_type))


def arg_min(
    input: TensorLike, dimension: Any, output_type: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """The older form of `argmin`."""
    return apply_op("ArgMin", name, input=input, dimension=dimension, output_type=dtypes.as_dtype(output_type))


def _reduce(
    op_type: str,
    input_tensor: Any,
    axis: Any,
    keepdims: bool | None,
    name: str | None,
    reduction_indices: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    axis = one_of("axis", axis, "reduction_indices", reduction_indices)
    keep = bool(one_of("keepdims", keepdims, "keep_dims", keep_dims))
    axes = _all_axes(input_tensor) if axis is None else axis
    result = apply_op(op_type, name, input=input_tensor, reduction_indices=axes, keep_dims=keep)
    if axis is None and not keep:
        result.set_shape([])
    return result


def _all_axes(x: Any) -> Any:
    if isinstance(x, Tensor) and x.shape.ndims is not None:
        return constant(np.arange(x.shape.ndims, dtype=np.int32))
    return range(0, rank(x))


# -- scans --


def cumsum(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running sums along one axis.

    Args:
      x: a tensor of numbers.
      axis: the axis, in [-rank, rank).
      exclusive: leave an element out of its own sum.
      reverse: sum from the end.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `x`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/math/cumsum
    """
    return apply_op("Cumsum", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumprod(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running products along `axis`; arguments as for `cumsum`."""
    return apply_op("Cumprod", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


def cumulative_logsumexp(
    x: TensorLike, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Running log-sum-exp along `axis`; arguments as for `cumsum`."""
    return apply_op("CumulativeLogsumexp", name, x=x, axis=axis, exclusive=exclusive, reverse=reverse)


# -- shape rules --

shape_rule("Cumprod", "Cumsum", "CumulativeLogsumexp")(unchanged)


@shape_rule("Sum", "Mean", "Prod", "Max", "Min", "All", "Any", "EuclideanNorm")
def _reduction_shape(op: Operation) -> list[TensorShape]:
    shape, keep = op.inputs[0].shape, op.get_attr("keep_dims")
    axes = constant_value(op.inputs[1])
    if shape.ndims is None:
        return [unknown_shape()]
    if axes is None:
        # The reduced axes are unknown, so no dimension can be kept for certain.
        return [unknown_shape(shape.ndims) if keep else unknown_shape()]
    reduced = set()
    for axis in np.reshape(axes, -1).tolist():
        if not -shape.ndims <= axis < shape.ndims:
            raise ValueError(f"Invalid reduction dimension {axis} for input with {shape.ndims} dimensions.")
        reduced.add(axis % shape.ndims)
    sizes = shape.as_list()
    if keep:
        return [TensorShape([1 if axis in reduced else size for axis, size in enumerate(sizes)])]
    return [TensorShape([size for axis, size in enumerate(sizes) if axis not in reduced])]


@shape_rule("ArgMax", "ArgMin")
def _arg_reduction_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    axis = constant_value(op.inputs[1])
    if shape.ndims is None:
        return [unknown_shape()]
    if shape.ndims == 0:
        return [TensorShape([])]
    if axis is None:
        return [unknown_shape(shape.ndims - 1)]
    if not -shape.ndims <= axis < shape.ndims:
        raise ValueError(f"Dimension {axis} must be in the range [{-shape.ndims}, {shape.ndims})")
    sizes = shape.as_list()
    del sizes[int(axis)]
    return [TensorShape(sizes)]
