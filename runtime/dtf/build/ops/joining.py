"""Array ops that join, split, pad and repeat tensors: public functions, then their static shapes.

Kernels: `run.kernels.joining`; gradients: `array_grad`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_scalar, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.dispatch import dispatched
from dtf.build.shape_rules import axis_of_rank, axis_within, shape_rule, sizes_of, unknown
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "concat",
    "pad",
    "parallel_stack",
    "split",
    "stack",
    "tile",
    "unstack",
]


# -- joining and splitting


@dispatched
def concat(values: TensorLike, axis: Any, name: str = "concat") -> Tensor:
    """Joins tensors along an existing dimension.

    Args:
      values: tensors of one dtype and rank, whose other dimensions are equal; or one tensor.
      axis: the dimension, in [-rank, rank); an int32 scalar.
      name: the name of the operation.

    Returns:
      A Tensor whose size along `axis` is the sum of the sizes.

    Raises:
      ValueError: the shapes do not fit.
      InvalidArgumentError: the same at run time.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/concat
    """
    if not isinstance(values, (list, tuple)):
        values = [values]
    if len(values) == 1:
        return apply_op("Identity", name, input=values[0])
    return apply_op("ConcatV2", name, values=list(values), axis=axis)


@dispatched
def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Joins tensors of one shape along a new dimension.

    Args:
      values: tensors of one shape and dtype.
      axis: the place of the new dimension, in [-(rank + 1), rank + 1).
      name: the name of the operation.

    Returns:
      A Tensor with one more dimension, of size len(values).

    Raises:
      ValueError: `axis` is out of range, or the shapes differ.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/stack
    """
    if axis == 0 and isinstance(values, Tensor):
        return values
    if axis == 0 and not any(isinstance(value, Tensor) or hasattr(value, "_as_graph_element") for value in values):
        try:
            return convert_to_tensor(values, name=name)
        except (TypeError, ValueError):
            pass
    values = list(unstack(values) if isinstance(values, Tensor) else values)
    if not values and axis != 0:
        raise IndexError("tf.stack needs at least one tensor")
    ranks = {each.shape.rank for each in values if isinstance(each, Tensor) and each.shape.rank is not None}
    rank = ranks.pop() + 1 if len(ranks) == 1 else None
    if rank is not None and not -rank <= axis < rank:
        raise ValueError(f"Argument `axis` = {axis} not in range [{-rank}, {rank})")
    return apply_op("Pack", name, values=values, axis=axis)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along dimension 0 of tensors whose shapes are known."""
    tensors = [apply_op("ExpandDims", input=value, dim=0) for value in values]
    whole = TensorShape([len(tensors)]).concatenate(tensors[0].shape[1:])
    return apply_op("ParallelConcat", name, values=tensors, shape=whole)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Cuts a tensor into the slices along one dimension.

    Args:
      value: a tensor of rank 1 or more.
      num: the size of the dimension; taken from the shape by default.
      axis: the dimension, which the slices lose.
      name: the name of the operation.

    Returns:
      A list of `num` Tensors.

    Raises:
      ValueError: `num` is not given and the size is not known, or `axis` is out of range.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/unstack
    """
    value = convert_to_tensor(value)
    if num is None:
        dims = value.shape.as_list() if value.shape.ndims is not None else None
        if dims is not None and not -len(dims) <= axis < len(dims):
            raise ValueError(f"axis = {axis} not in [{-len(dims)}, {len(dims)})")
        num = None if dims is None else dims[axis]
        if num is None:
            raise ValueError(f"Cannot infer num from shape {value.shape}")
    return list(apply_op("Unpack", name, value=value, num=num, axis=axis))


def split(
    value: TensorLike, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Cuts a tensor into pieces along one dimension.

    Args:
      value: the tensor.
      num_or_size_splits: a number of equal pieces, or a vector of sizes; one size may be -1.
      axis: the dimension.
      num: the number of sizes, where it is not known from the shape of `num_or_size_splits`.
      name: the name of the operation.

    Returns:
      A list of Tensors.

    Raises:
      ValueError: the number of pieces is not known, or does not divide the dimension.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/split
    """
    if isinstance(num_or_size_splits, (int, np.integer)):
        return list(apply_op("Split", name, split_dim=axis, value=value, num_split=int(num_or_size_splits)))
    sizes = convert_to_tensor(num_or_size_splits)
    if sizes.shape.ndims == 0:
        raise ValueError(
            "Rank-0 tensors are not supported as the num_or_size_splits argument to split. Argument provided: "
            f"{num_or_size_splits}"
        )
    if num is None:
        num = sizes.shape.as_list()[0] if sizes.shape.ndims is not None else None
        if num is None:
            raise ValueError(f"Cannot infer num from shape {sizes.shape}")
    return list(apply_op("SplitV", name, value=value, size_splits=sizes, split_dim=axis, num_split=num))


# -- padding and rearranging


def pad(
    tensor: TensorLike, paddings: TensorLike, mode: str = "CONSTANT", name: str | None = None, constant_values: Any = 0
) -> Tensor:
    """Adds elements before and after each dimension.

    Args:
      tensor: any tensor.
      paddings: an integer tensor [rank, 2]: how many elements before and after each dimension.
      mode: "CONSTANT" adds `constant_values`, "REFLECT" mirrors without the border, "SYMMETRIC" with it.
      name: the name of the operation.
      constant_values: a scalar of the dtype of `tensor`.

    Returns:
      A Tensor of the dtype of `tensor`.

    Raises:
      ValueError: `mode` is unknown.
      InvalidArgumentError: at run time, a padding is negative or too large to mirror.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/pad
    """
    mode = mode.upper()
    if mode == "CONSTANT":
        if isinstance(constant_values, Tensor) or constant_values != 0:
            return apply_op("PadV2", name, input=tensor, paddings=paddings, constant_values=constant_values)
        return apply_op("Pad", name, input=tensor, paddings=paddings)
    if mode not in ("REFLECT", "SYMMETRIC"):
        raise ValueError(f"Unknown padding mode: {mode}")
    return apply_op("MirrorPad", name, input=tensor, paddings=paddings, mode=mode)


@dispatched
def tile(input: TensorLike, multiples: TensorLike, name: str | None = None) -> Tensor:
    """Repeats a tensor along each dimension.

    Args:
      input: a tensor of rank 1 or more.
      multiples: an int32 or int64 vector: how often along each dimension.
      name: the name of the operation.

    Returns:
      A Tensor whose dimension d has size input.shape[d] * multiples[d].

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/tile
    """
    return apply_op("Tile", name, input=input, multiples=multiples)


# -- shape rules


@shape_rule("Concat", "ConcatV2")
def _(op):
    first, last = list(op.inputs[:1]), list(op.inputs[-1:])
    values, (axis_tensor,) = (op.inputs[1:], first) if op.type == "Concat" else (op.inputs[:-1], last)
    axis_tensor.shape.with_rank(0)
    known = [tensor.shape for tensor in values if tensor.shape.ndims is not None]
    if not known:
        return unknown(op)
    rank, axis = known[0].ndims, constant_scalar(axis_tensor)
    if rank == 0:
        raise ValueError("Can't concatenate scalars (use tf.stack instead)")
    for shape in known:
        if shape.ndims != rank:
            raise ValueError(f"Shapes must be equal rank, but are {known[0].ndims} and {shape.ndims}")
    if axis is None:
        return [TensorShape([None] * rank)]
    at = axis_of_rank(axis, rank)
    merged = TensorShape([None] * rank)
    for shape in known:
        sizes = shape.as_list()
        sizes[at] = None
        merged = merged.merge_with(sizes)
    dims = merged.as_list()
    lengths = [shape.as_list()[at] for shape in known]
    dims[at] = None if len(known) < len(values) or None in lengths else sum(lengths)
    return [TensorShape(dims)]


@shape_rule("ConcatOffset")
def _(op):
    return [tensor.shape for tensor in op.inputs[1:]]


@shape_rule("Pack")
def _(op):
    merged = TensorShape(None)
    for tensor in op.inputs:
        merged = merged.merge_with(tensor.shape)
    if merged.ndims is None:
        return unknown(op)
    at = axis_within(op.get_attr("axis"), merged.ndims + 1)
    dims = merged.as_list()
    return [TensorShape([*dims[:at], len(op.inputs), *dims[at:]])]


@shape_rule("Unpack")
def _(op):
    dims, count = sizes_of(op.inputs[0]), op.get_attr("num")
    if dims is None:
        return unknown(op)
    at = axis_within(op.get_attr("axis"), len(dims))
    if dims[at] not in (None, count):
        raise ValueError(f"Dimension must be {count} but is {dims[at]}")
    return [TensorShape(dims[:at] + dims[at + 1 :])] * count


_SPLIT_AXIS = "Dimension size, given by scalar input {axis} must be in range [{low}, {rank})"


@shape_rule("Split")
def _(op):
    dims, axis, count = sizes_of(op.inputs[1]), constant_scalar(op.inputs[0]), op.get_attr("num_split")
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * len(dims))] * count
    at = axis_within(axis, len(dims), _SPLIT_AXIS)
    if dims[at] is not None:
        if dims[at] % count:
            raise ValueError(f"Dimension size must be evenly divisible by {count} but is {dims[at]}")
        dims[at] //= count
    return [TensorShape(dims)] * count


@shape_rule("SplitV")
def _(op):
    dims, axis, count = sizes_of(op.inputs[0]), constant_scalar(op.inputs[2]), op.get_attr("num_split")
    sizes = constant_value(op.inputs[1])
    if dims is None:
        return unknown(op)
    if axis is None:
        return [TensorShape([None] * len(dims))] * count
    at = axis_within(axis, len(dims), _SPLIT_AXIS)
    lengths: list[int | None] = [None] * count
    if sizes is not None:
        given, size = sizes.tolist(), dims[at]
        rest = None if size is None else size - sum(one for one in given if one != -1)
        if rest is not None and (rest < 0 or (rest and -1 not in given)):
            raise ValueError(f"can't split axis of size {size} into pieces of size {given}")
        lengths = [rest if one == -1 else one for one in given]
    return [TensorShape([*dims[:at], one, *dims[at + 1 :]]) for one in lengths]


@shape_rule("Pad", "PadV2", "MirrorPad")
def _(op):
    return _padded(op, 1)


@shape_rule("MirrorPadGrad")
def _(op):
    return _padded(op, -1)


def _padded(op: Any, sign: int) -> list[TensorShape]:
    dims, paddings = sizes_of(op.inputs[0]), constant_value(op.inputs[1])
    if paddings is not None and paddings.size and paddings.min() < 0:
        raise ValueError(f"Paddings must be non-negative: {paddings.tolist()}")
    if dims is None:
        rows = op.inputs[1].shape.with_rank(2).as_list()[0]
        return [unknown_shape(rows)]
    op.inputs[1].shape.assert_is_compatible_with([len(dims), 2])
    if paddings is None:
        return [TensorShape([None] * len(dims))]
    added = np.sum(paddings, axis=1).tolist()
    return [TensorShape([None if dim is None else dim + sign * extra for dim, extra in zip(dims, added, strict=True)])]


@shape_rule("Tile")
def _(op):
    dims, multiples = sizes_of(op.inputs[0]), constant_value(op.inputs[1])
    if dims is None:
        length = op.inputs[1].shape.with_rank(1).as_list()[0]
        return [unknown_shape(length) if multiples is None else TensorShape([None if n else 0 for n in multiples])]
    op.inputs[1].shape.assert_is_compatible_with([len(dims)])
    if multiples is None:
        known = constant_value_as_shape(op.inputs[1])
        counts = [None] * len(dims) if known.ndims is None else known.as_list()
    else:
        counts = multiples.tolist()
    pairs = zip(dims, counts, strict=True)
    return [TensorShape([0 if n == 0 else None if dim is None or n is None else dim * n for dim, n in pairs])]
