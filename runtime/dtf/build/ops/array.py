"""Array ops that keep the elements of a tensor: placeholders, identities, shapes.

Names, signatures and static shapes are TensorFlow 1.x's. Making tensors is in `filling`; taking tensors apart in
`slicing` and `gathering`; putting them together in `joining`; moving elements in `rearranging` and `diagonals`;
choosing by value in `searching`; arithmetic in `math`. `run.kernels.array` computes the ops; the gradients of all these
families are in `array_grad`.

Reader's order: public functions by theme, then the shape rules in the same order.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf (the array functions of the tf namespace)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.argument_names import one_of
from dtf.build.constant import constant
from dtf.build.constant_value import constant_scalar, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.joining import stack
from dtf.build.shape_rules import (
    axis_within,
    broadcast_shape,
    scalar,
    shape_rule,
    sizes_of,
    unchanged,
    unknown,
)
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, as_shape, bracketed, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "bitcast",
    "broadcast_dynamic_shape",
    "broadcast_static_shape",
    "broadcast_to",
    "check_numerics",
    "constant",
    "ensure_shape",
    "expand_dims",
    "guarantee_const",
    "identity",
    "identity_n",
    "newaxis",
    "placeholder",
    "placeholder_with_default",
    "rank",
    "reshape",
    "shape",
    "shape_n",
    "size",
    "sparse_placeholder",
    "squeeze",
    "stop_gradient",
]

newaxis = None

# -- placeholders and identities


def placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> Tensor:
    """A tensor that must be fed.

    Args:
      dtype: the element type.
      shape: the shape that fed values must fit; None accepts any shape.
      name: the name of the operation.

    Returns:
      A Tensor of `dtype` and `shape`. A step that uses it unfed raises InvalidArgumentError.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/placeholder
    """
    return apply_op("Placeholder", name, dtype=dtypes.as_dtype(dtype), shape=as_shape(shape))


def placeholder_with_default(input: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """A tensor that has the value of `input` unless it is fed.

    Args:
      input: the default value.
      shape: the shape that `input` and fed values must fit.
      name: the name of the operation.

    Returns:
      A Tensor of the dtype of `input` and of `shape`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/placeholder_with_default
    """
    return apply_op("PlaceholderWithDefault", name, input=input, shape=as_shape(shape))


def sparse_placeholder(dtype: DTypeLike, shape: Any = None, name: str | None = None) -> SparseTensor:
    """A SparseTensor that must be fed (with a SparseTensorValue, or a tuple of indices, values, shape)."""
    name = f"{name}/" if name else ""
    if isinstance(shape, Tensor):
        known_shape = constant_value_as_shape(shape)
    else:
        known_shape = unknown_shape() if shape is None else as_shape(shape)
    rank_ = known_shape.ndims
    dense_shape_name = f"{name}shape" if name else None
    if known_shape.is_fully_defined():
        default = shape if isinstance(shape, Tensor) else known_shape.as_list()
        dense_shape = placeholder_with_default(convert_to_tensor(default, dtypes.int64), [rank_], dense_shape_name)
    else:
        dense_shape = placeholder(dtypes.int64, [rank_], name=dense_shape_name)
    values = placeholder(dtype, [None], name=f"{name}values" if name else None)
    indices = placeholder(dtypes.int64, [None, rank_], name=f"{name}indices" if name else None)
    made = SparseTensor(indices, values, dense_shape)
    made._partial_shape = None if shape is None else known_shape
    return made


@dispatched
def identity(input: TensorLike, name: str | None = None) -> Tensor:
    """A tensor with the value of another: a name, a device or a control dependency of its own.

    Args:
      input: any tensor or variable.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `input`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/identity
    """
    return apply_op("Identity", name, input=input)


def identity_n(input: Sequence[Any], name: str | None = None) -> list[Tensor]:
    """`identity` of several tensors at once: none of them is ready before all are."""
    if any(each is None for each in input):
        raise TypeError("Tensors in list passed to 'input' of 'IdentityN' Op must not be None")
    return list(apply_op("IdentityN", name, input=input))


@dispatched
def stop_gradient(input: TensorLike, name: str | None = None) -> Tensor:
    """The value of a tensor, which gradients take for a constant.

    Args:
      input: any tensor.
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `input`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/stop_gradient
    """
    return apply_op("StopGradient", name, input=input)


def guarantee_const(input: TensorLike, name: str | None = None) -> Tensor:
    """The value of `input`, with the promise that it never changes."""
    return apply_op("GuaranteeConst", name, input=input)


@dispatched
def check_numerics(tensor: TensorLike, message: str, name: str | None = None) -> Tensor:
    """`tensor` itself; InvalidArgumentError with `message` when it holds an infinity or a NaN."""
    return apply_op("CheckNumerics", name, tensor=tensor, message=message)


def ensure_shape(x: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """`x`, known to be of `shape`; InvalidArgumentError when it is not."""
    return apply_op("EnsureShape", name, input=x, shape=as_shape(shape))


def bitcast(input: TensorLike, type: Any, name: str | None = None) -> Tensor:
    """The bytes of `input` read as another dtype; a last dimension comes or goes with the element size."""
    return apply_op("Bitcast", name, input=input, type=dtypes.as_dtype(type))


# -- shapes


def shape(input: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The shape of a tensor, as a tensor.

    Args:
      input: a Tensor or SparseTensor.
      name: the name of the operation.
      out_type: int32 or int64.

    Returns:
      A vector of `out_type`; a constant where the shape is known when the graph is made.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/shape
    """
    return shape_of(input, name, out_type)


def shape_of(input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True) -> Tensor:
    """`shape`; without `optimize` an operation computes it even where it is known."""
    with name_scope(name, "Shape", [input]) as scope:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return with_dtype(convert_to_tensor(input.dense_shape, dtypes.int64), out_type)
        tensor = convert_to_tensor(input)
        if optimize and tensor.shape.is_fully_defined():
            return constant(tensor.shape.as_list(), out_type, name=scope)
        return apply_op("Shape", scope, input=tensor, out_type=dtypes.as_dtype(out_type))


def shape_n(input: Sequence[Any], out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """The shapes of several tensors."""
    return list(apply_op("ShapeN", name, input=input, out_type=dtypes.as_dtype(out_type)))


@dispatched
def size(input: TensorLike, name: str | None = None, out_type: DTypeLike = dtypes.int32) -> Tensor:
    """The number of elements of a tensor.

    Args:
      input: a Tensor or SparseTensor.
      name: the name of the operation.
      out_type: int32 or int64.

    Returns:
      A scalar of `out_type`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/size
    """
    return size_of(input, name, out_type)


def size_of(input: Any, name: str | None = None, out_type: Any = dtypes.int32, optimize: bool = True) -> Tensor:
    """`size`; without `optimize` an operation computes it even where it is known."""
    with name_scope(name, "Size", [input]) as scope:
        if isinstance(input, SparseTensor | SparseTensorValue):
            sizes = with_dtype(convert_to_tensor(input.dense_shape, dtypes.int64), out_type)
            return apply_op("Prod", scope, input=sizes, reduction_indices=[0])
        tensor = convert_to_tensor(input)
        elements = tensor.shape.num_elements()
        if optimize and elements is not None:
            return constant(elements, out_type, name=scope)
        return apply_op("Size", scope, input=tensor, out_type=dtypes.as_dtype(out_type))


@dispatched
def rank(input: TensorLike, name: str | None = None) -> Tensor:
    """The number of dimensions of a tensor.

    Args:
      input: a Tensor or SparseTensor.
      name: the name of the operation.

    Returns:
      An int32 scalar.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/rank
    """
    return rank_of(input, name)


def rank_of(input: Any, name: str | None = None, optimize: bool = True) -> Tensor:
    """`rank`; without `optimize` an operation computes it even where it is known."""
    with name_scope(name, "Rank", [input]) as scope:
        if isinstance(input, SparseTensor | SparseTensorValue):
            return apply_op("Size", scope, input=convert_to_tensor(input.dense_shape, dtypes.int64))
        tensor = convert_to_tensor(input)
        if optimize and tensor.shape.ndims is not None:
            return constant(tensor.shape.ndims, dtypes.int32, name=scope)
        return apply_op("Rank", scope, input=tensor)


def reshape(tensor: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """The elements of a tensor, in row-major order, under another shape.

    Args:
      tensor: any tensor.
      shape: an int32 or int64 vector. One size may be -1: it becomes what the number of elements leaves.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and the dtype of `tensor`.

    Raises:
      ValueError: the number of elements does not fit, where both shapes are known.
      InvalidArgumentError: the same at run time.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/reshape
    """
    return apply_op("Reshape", name, tensor=tensor, shape=shape_argument(shape))


@dispatched
def squeeze(input: TensorLike, axis: Any = None, name: str | None = None, squeeze_dims: Any = None) -> Tensor:
    """Removes dimensions of size 1.

    Args:
      input: any tensor.
      axis: an integer or list of integers; all dimensions of size 1 by default.
      name: the name of the operation.
      squeeze_dims: the older name of `axis`.

    Returns:
      A Tensor with the elements of `input`.

    Raises:
      ValueError: a dimension in `axis` is not of size 1, or both names are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/squeeze
    """
    axis = one_of("axis", axis, "squeeze_dims", squeeze_dims)
    axes = [] if axis is None else list(axis) if isinstance(axis, (list, tuple)) else [axis]
    return apply_op("Squeeze", name, input=input, squeeze_dims=[int(one) for one in axes])


@dispatched
def expand_dims(input: TensorLike, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Inserts a dimension of size 1.

    Args:
      input: any tensor.
      axis: the place of the new dimension, in [-rank - 1, rank].
      name: the name of the operation.
      dim: the older name of `axis`.

    Returns:
      A Tensor with the elements of `input` and one more dimension.

    Raises:
      ValueError: `axis` is out of range, or both names are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/expand_dims
    """
    axis = dim if axis is None else axis
    if axis is None:
        raise ValueError("Must specify an axis argument to tf.expand_dims()")
    return apply_op("ExpandDims", name, input=input, dim=axis)


def broadcast_to(input: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """`input` repeated to `shape` by numpy's rule."""
    return apply_op("BroadcastTo", name, input=input, shape=shape_argument(shape))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """The shape vector that two shapes broadcast to."""
    return apply_op("BroadcastArgs", s0=shape_x, s1=shape_y)


def broadcast_static_shape(shape_x: TensorShape, shape_y: TensorShape) -> TensorShape:
    """The same for static shapes. Raises ValueError when they do not broadcast."""
    return broadcast_shape(shape_x, shape_y)


def with_dtype(value: Any, dtype: Any) -> Tensor:
    """`value` as `dtype`, without an op when it already is."""
    tensor = convert_to_tensor(value)
    wanted = dtypes.as_dtype(dtype).base_dtype
    return tensor if tensor.dtype.base_dtype == wanted else apply_op("Cast", x=tensor, DstT=wanted)


def static_dims(shape: Any) -> list[int] | None:
    """A shape given as Python numbers, a TensorShape or an array, or None when a tensor is among the sizes."""
    if isinstance(shape, TensorShape):
        if not shape.is_fully_defined():
            raise ValueError(f"Cannot convert a partially known TensorShape to a Tensor: {shape}")
        return shape.as_list()  # type: ignore[return-value]
    if isinstance(shape, (int, np.integer)):
        return [int(shape)]
    sizes = list(shape)
    if any(isinstance(one, Tensor) or hasattr(one, "_as_graph_element") for one in sizes):
        return None
    return [int(one) for one in sizes]


def shape_argument(shape: Any) -> Any:
    """A shape as apply_op takes it: sizes may be numbers, Dimensions or scalar tensors."""
    if isinstance(shape, TensorShape):
        sizes = static_dims(shape) or []
        return constant(sizes, dtypes.int64 if max(sizes, default=0) >> 31 else dtypes.int32, shape=[shape.ndims])
    if isinstance(shape, (list, tuple)):
        if not shape:
            return constant([], dtypes.int32, shape=[0])
        if not any(isinstance(one, Tensor) for one in shape):
            return [one if isinstance(one, (np.ndarray, np.generic)) else int(one) for one in shape]
        wide = any(isinstance(one, Tensor) and one.dtype == dtypes.int64 for one in shape)
        return stack([with_dtype(convert_to_tensor(one), dtypes.int64 if wide else dtypes.int32) for one in shape])
    return shape


# -- shape rules

shape_rule(
    "Identity", "RefIdentity", "Snapshot", "StopGradient", "PreventGradient", "CheckNumerics", "GuaranteeConst",
    "DeepCopy", "ZerosLike", "OnesLike",
)(unchanged)  # fmt: skip

shape_rule("Rank", "Size")(scalar)


@shape_rule("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "ParallelConcat")
def _(op):
    return [op.get_attr("shape")]


@shape_rule("EnsureShape")
def _(op):
    return [op.inputs[0].shape.merge_with(op.get_attr("shape"))]


@shape_rule("IdentityN")
def _(op):
    return [tensor.shape for tensor in op.inputs]


@shape_rule("Shape")
def _(op):
    return [TensorShape([op.inputs[0].shape.ndims])]


@shape_rule("ShapeN")
def _(op):
    return [TensorShape([tensor.shape.ndims]) for tensor in op.inputs]


@shape_rule("Bitcast")
def _(op):
    dims = sizes_of(op.inputs[0])
    before, after = op.inputs[0].dtype.size, op.get_attr("type").size
    if dims is None:
        return unknown(op)
    if after > before:
        if not dims or dims[-1] not in (None, after // before):
            raise ValueError(
                f"Cannot bitcast due to shape. {dims[-1] if dims else 'a scalar'} does not match {after // before}"
            )
        return [TensorShape(dims[:-1])]
    return [TensorShape([*dims, before // after] if after < before else dims)]


@shape_rule("Reshape")
def _(op):
    wanted = constant_value_as_shape(op.inputs[1])
    if wanted.ndims is None:
        return [wanted]
    dims = wanted.as_list()
    elements = op.inputs[0].shape.num_elements()
    unknown_at = [i for i, dim in enumerate(dims) if dim is None]
    product = math.prod(dim for dim in dims if dim is not None)
    if elements is None:
        return [wanted]
    value = constant_value(op.inputs[1])
    if not unknown_at:
        if product != elements:
            target = f"shape {bracketed(wanted)} ({product} elements)"
            raise ValueError(f"Cannot reshape a tensor with {elements} elements to {target}")
    elif len(unknown_at) == 1 and product:
        if elements % product:
            raise ValueError(
                f"Dimension size must be evenly divisible by {product} but is {elements}: "
                f"cannot reshape to shape {bracketed(wanted)}"
            )
        dims[unknown_at[0]] = elements // product
    elif value is not None and len(unknown_at) > 1:
        raise ValueError(f"Only one size of a shape may be -1, not {len(unknown_at)}: {value.tolist()}")
    return [TensorShape(dims)]


@shape_rule("Squeeze")
def _(op):
    dims, axes = sizes_of(op.inputs[0]), op.get_attr("squeeze_dims")
    if dims is None:
        return unknown(op)
    if not axes:
        if None in dims:
            return unknown(op)
        return [TensorShape([dim for dim in dims if dim != 1])]
    words = "squeeze_dims[{place}] not in [{{low}},{{rank}})."
    removed = {axis_within(axis, len(dims), words.format(place=place)) for place, axis in enumerate(axes)}
    for axis in removed:
        if dims[axis] not in (None, 1):
            raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
    return [TensorShape([dim for axis, dim in enumerate(dims) if axis not in removed])]


@shape_rule("ExpandDims")
def _(op):
    if op.inputs[1].shape.num_elements() not in (1, None):
        raise ValueError("'dim' input must be a tensor with a single value")
    dims, axis = sizes_of(op.inputs[0]), constant_scalar(op.inputs[1])
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * (len(dims) + 1))]
    at = axis_within(axis, len(dims) + 1, "dim {axis} not in the interval [{low}, {last}].")
    return [TensorShape([*dims[:at], 1, *dims[at:]])]


@shape_rule("BroadcastTo")
def _(op):
    given, wanted = op.inputs[0].shape, constant_value_as_shape(op.inputs[1])
    if given.ndims is not None and wanted.ndims is not None:
        tail = wanted.as_list()[wanted.ndims - given.ndims :] if given.ndims <= wanted.ndims else None
        pairs = [] if tail is None else zip(given.as_list(), tail, strict=True)
        if tail is None or any(size not in (1, to) and None not in (size, to) for size, to in pairs):
            raise ValueError(f"Incompatible shapes: {bracketed(given)} cannot be broadcast to {bracketed(wanted)}")
    return [wanted]


@shape_rule("BroadcastArgs")
def _(op):
    sizes = [tensor.shape.with_rank(1).as_list()[0] for tensor in op.inputs]
    return [TensorShape([None if None in sizes else max(sizes)])]


@shape_rule("BroadcastGradientArgs")
def _(op):
    return [TensorShape([None])] * 2
