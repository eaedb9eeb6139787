"""Tensors made from shapes and numbers: fill, zeros, ones, one_hot, masks and grids.

Owns these functions and the shape rules of their ops; random numbers are in `random`, sequences in `math`.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf (the array functions of the tf namespace)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_scalar, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.array import (
    broadcast_to,
    expand_dims,
    reshape,
    shape_argument,
    shape_of,
    size,
    static_dims,
    with_dtype,
)
from dtf.build.ops.joining import stack
from dtf.build.shape_rules import axis_within, shape_rule, sizes_of, unknown
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "fill",
    "meshgrid",
    "one_hot",
    "ones",
    "ones_like",
    "sequence_mask",
    "zeros",
    "zeros_like",
]

# Up to this many elements zeros() and ones() are constants of the graph rather than ops.
_CONSTANT_ELEMENTS_MAX = 1000


def fill(dims: Any, value: TensorLike, name: str | None = None) -> Tensor:
    """A tensor whose elements all have one value.

    Args:
      dims: the shape, an int32 or int64 vector.
      value: a scalar.
      name: the name of the operation.

    Returns:
      A Tensor of shape `dims` and the dtype of `value`.

    Raises:
      InvalidArgumentError: at run time, a size is negative.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/fill
    """
    return apply_op("Fill", name, dims=shape_argument(dims), value=value)


def zeros(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Zeros; False for bool and empty strings for string.

    Args:
      shape: a list of integers, a TensorShape or an int32 or int64 vector.
      dtype: the element type.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and `dtype`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/zeros
    """
    return _filled(shape, dtypes.as_dtype(dtype), 0, name, "zeros")


def ones(shape: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Ones; True for bool.

    Args:
      shape: a list of integers, a TensorShape or an int32 or int64 vector.
      dtype: the element type.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and `dtype`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ones
    """
    return _filled(shape, dtypes.as_dtype(dtype), 1, name, "ones")


def _filled(shape: Any, dtype: Any, number: int, name: str | None, default_name: str) -> Tensor:
    dtype = dtype.base_dtype
    value: Any = b"" if dtype == dtypes.string else bool(number) if dtype == dtypes.bool else number
    with name_scope(name, default_name, [shape] if isinstance(shape, Tensor) else []) as scope:
        if not isinstance(shape, Tensor):
            static = static_dims(shape)
            if static is not None and math.prod(static) < _CONSTANT_ELEMENTS_MAX:
                return constant(value if math.prod(static) else [], dtype, shape=static, name=scope)
            shape = shape_argument(shape)
        return apply_op("Fill", scope, dims=shape, value=constant(value, dtype))


@dispatched
def zeros_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Zeros of the shape of another tensor.

    Args:
      tensor: the tensor whose shape is used.
      dtype: the element type; by default the dtype of `tensor`.
      name: the name of the operation.
      optimize: make a constant where the shape is known.

    Returns:
      A Tensor of the shape of `tensor`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/zeros_like
    """
    return _like(tensor, dtype, name, optimize, "zeros_like", "ZerosLike", zeros)


@dispatched
def ones_like(
    tensor: TensorLike, dtype: DTypeLike | None = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Ones of the shape of another tensor.

    Args:
      tensor: the tensor whose shape is used.
      dtype: the element type; by default the dtype of `tensor`.
      name: the name of the operation.
      optimize: make a constant where the shape is known.

    Returns:
      A Tensor of the shape of `tensor`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ones_like
    """
    return _like(tensor, dtype, name, optimize, "ones_like", "OnesLike", ones)


def _like(
    tensor: Any, dtype: Any, name: str | None, optimize: bool, default_name: str, op_type: str, make: Any
) -> Tensor:
    with name_scope(name, default_name, [tensor]) as scope:
        tensor = convert_to_tensor(tensor, name="tensor")
        wanted = tensor.dtype.base_dtype if dtype is None else dtypes.as_dtype(dtype)
        if optimize and tensor.shape.is_fully_defined() and wanted != dtypes.variant:
            # Ones are filled, as TensorFlow's are; zeros are one constant.
            return make(shape_of(tensor) if op_type == "OnesLike" else tensor.shape, wanted, name=scope)
        if wanted != tensor.dtype.base_dtype:
            return make(shape_of(tensor), wanted, name=scope)
        if op_type == "OnesLike":
            return apply_op("OnesLike", scope, x=tensor)
        return apply_op("ZerosLike", scope, x=tensor)


@dispatched
def one_hot(
    indices: TensorLike,
    depth: TensorLike,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Rows that have `on_value` at the place that each index names.

    Args:
      indices: integers of any shape. An index outside [0, depth) gives a row of `off_value`.
      depth: the size of the new dimension, a scalar.
      on_value: 1 by default.
      off_value: 0 by default.
      axis: where the new dimension goes; -1, the default, makes it the last.
      dtype: the element type; by default the dtype of the values, or float32 without values.
      name: the name of the operation.

    Returns:
      A Tensor of the shape of `indices` with a dimension of size `depth` inserted.

    Raises:
      TypeError: the dtypes of `on_value`, `off_value` and `dtype` differ.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/one_hot
    """
    with name_scope(name, "one_hot", [indices, depth, on_value, off_value]) as scope:
        given = [value for value in (on_value, off_value) if value is not None]
        if dtype is None:
            dtype = convert_to_tensor(given[0]).dtype.base_dtype if given else dtypes.float32
        on = convert_to_tensor(1 if on_value is None else on_value, dtype, name="on_value")
        off = convert_to_tensor(0 if off_value is None else off_value, dtype, name="off_value")
        return apply_op(
            "OneHot", scope, indices=indices, depth=depth, on_value=on, off_value=off, axis=-1 if axis is None else axis
        )


def sequence_mask(
    lengths: TensorLike, maxlen: Any = None, dtype: DTypeLike = dtypes.bool, name: str | None = None
) -> Tensor:
    """A mask of the first n places for each length n.

    Args:
      lengths: integers of any shape.
      maxlen: the size of the new last dimension; the greatest length by default.
      dtype: the element type of the mask.
      name: the name of the operation.

    Returns:
      A Tensor of shape lengths.shape + [maxlen]; True, or 1, in the first lengths[i] places.

    Raises:
      ValueError: `maxlen` is not a scalar.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sequence_mask
    """
    with name_scope(name, "SequenceMask", [lengths]):
        lengths = convert_to_tensor(lengths)
        longest = None
        if maxlen is None:
            longest = apply_op("Max", input=reshape(lengths, [-1]), reduction_indices=[0])
            maxlen = apply_op("Maximum", x=constant(0, longest.dtype), y=longest)
        else:
            maxlen = convert_to_tensor(maxlen)
        positions = apply_op("Range", start=constant(0, maxlen.dtype), limit=maxlen, delta=constant(1, maxlen.dtype))
        row = with_dtype(positions, lengths.dtype)
        mask = apply_op("Less", x=row, y=expand_dims(lengths, -1))
        known = None if longest is None else constant_value(lengths)
        if known is not None and known.size:
            mask.set_shape([*known.shape, max(0, int(known.max()))])
        return mask if dtypes.as_dtype(dtype) == dtypes.bool else with_dtype(mask, dtype)


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Coordinate arrays of a grid over the given vectors, as numpy.meshgrid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing parameter must be either 'xy' or 'ij', got '{indexing}'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        columns = [reshape(stack([arg]), [1] * i + [-1] + [1] * (count - i - 1)) for i, arg in enumerate(args)]
        sizes = [size(arg) for arg in args]
        if indexing == "xy" and count > 1:
            columns[0] = reshape(columns[0], [1, -1] + [1] * (count - 2))
            columns[1] = reshape(columns[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        return [broadcast_to(column, stack(sizes)) for column in columns]


@shape_rule("Fill", "Empty")
def _(op):
    known = constant_value(op.inputs[0])
    if known is not None and known.size and known.min() < 0:
        raise ValueError(f"Fill dimensions must be >= 0, got {known.tolist()}")
    return [constant_value_as_shape(op.inputs[0])]


@shape_rule("OneHot")
def _(op):
    dims, depth, axis = sizes_of(op.inputs[0]), constant_scalar(op.inputs[1]), op.get_attr("axis")
    if dims is None:
        return unknown(op)
    at = axis_within(axis, len(dims) + 1)
    return [TensorShape([*dims[:at], depth, *dims[at:]])]
