"""Array ops that cut a tensor: slices and boolean masks; public functions, then their static shapes.

`wire.slicing` defines slice specifications; `operators` has tensor[...]. Kernels: `run.kernels.slicing`;
gradients: `array_grad`.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_scalar, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import control_dependencies, name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.array import reshape, shape_of, squeeze
from dtf.build.ops.filling import ones_like
from dtf.build.ops.gathering import gather
from dtf.build.ops.joining import concat
from dtf.build.ops.searching import where
from dtf.build.shape_rules import shape_rule, sizes_of, unchanged, unknown
from dtf.build.tensor import Tensor
from dtf.wire.slicing import slice_index, sliced_shape
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "boolean_mask",
    "slice",
    "strided_slice",
]


def slice(input_: Any, begin: TensorLike, size: Any, name: str | None = None) -> Tensor:
    """A block of a tensor.

    Args:
      input_: the tensor.
      begin: an int32 or int64 vector: the first element along each dimension, from 0.
      size: a vector: how many elements; -1 means all that follow.
      name: the name of the operation.

    Returns:
      A Tensor of shape `size` and the dtype of `input_`.

    Raises:
      InvalidArgumentError: at run time, the block leaves the tensor.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/slice
    """
    return apply_op("Slice", name, input=input_, begin=begin, size=size)


def strided_slice(
    input_: Any,
    begin: TensorLike,
    end: TensorLike,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """`input_[begin:end:strides]`; the square brackets of Tensor call this function.

    Args:
      input_: the tensor.
      begin: an int32 or int64 vector: where each entry starts.
      end: a vector: where it ends, left out.
      strides: a vector of steps; 1 by default.
      begin_mask: a bit per entry: ignore `begin`.
      end_mask: a bit per entry: ignore `end`.
      ellipsis_mask: at most one bit: the entry is `...`.
      new_axis_mask: a bit per entry: insert a dimension of size 1.
      shrink_axis_mask: a bit per entry: take one element and lose the dimension.
      var: a variable with a reference; the result then has `.assign(value)`, which writes into the slice.
      name: the name of the operation.

    Returns:
      A Tensor of the dtype of `input_`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/strided_slice
    """
    if strides is None:
        strides = ones_like(convert_to_tensor(begin))
    masks = {
        "begin_mask": begin_mask,
        "end_mask": end_mask,
        "ellipsis_mask": ellipsis_mask,
        "new_axis_mask": new_axis_mask,
        "shrink_axis_mask": shrink_axis_mask,
    }
    sliced = apply_op("StridedSlice", name, input=input_, begin=begin, end=end, strides=strides, **masks)

    def assign(value: Any, name: str | None = None) -> Tensor:
        """Writes `value` into this slice of the variable; gives the variable."""
        if var is None:
            raise ValueError("Sliced assignment is only supported for variables")
        return assign_slice(var, {"begin": begin, "end": end, "strides": strides}, masks, value, name)

    if var is not None:
        sliced.assign = assign
    return sliced


def assign_slice(
    variable: Any, bounds: Mapping[str, Any], masks: Mapping[str, int], value: TensorLike, name: str | None = None
) -> Any:
    """Writes `value` into a slice of a variable.

    Args:
      bounds: begin, end and strides of the slice.
      masks: the masks of StridedSlice.

    Returns:
      The reference after the change; the variable's value, read after the change, if it is held by handle.
    """
    value = convert_to_tensor(value, variable.dtype.base_dtype)
    if not variable._storage.is_resource:
        return apply_op("StridedSliceAssign", name, ref=variable._ref(), value=value, **bounds, **masks)
    changed = apply_op("ResourceStridedSliceAssign", name, ref=variable.handle, value=value, **bounds, **masks)
    with control_dependencies([changed]):
        return variable.read_value()


@dispatched
def boolean_mask(tensor: TensorLike, mask: TensorLike, name: str = "boolean_mask", axis: int | None = None) -> Tensor:
    """The slices of a tensor where a mask is True, in order.

    Args:
      tensor: a tensor [d0, d1, ...].
      mask: bool, of a known rank K >= 1; it fits dimensions axis ... axis + K - 1 of `tensor`.
      name: the name of the operation.
      axis: where the mask applies; 0 by default.

    Returns:
      A Tensor of rank tensor.rank - K + 1.

    Raises:
      ValueError: the rank of `mask` is 0 or not known, or the shapes do not fit.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/boolean_mask
    """
    with name_scope(name, values=[tensor, mask]):
        tensor = convert_to_tensor(tensor, name="tensor")
        mask = convert_to_tensor(mask, name="mask")
        if mask.shape.ndims == 0:
            raise ValueError("mask cannot be scalar.")
        if mask.shape.ndims is None:
            raise ValueError(
                "Number of mask dimensions must be specified, even if some dimensions are None.  E.g. shape=[None] "
                "is ok, "
                "but shape=None is not."
            )
        place = 0 if axis is None else constant_scalar(convert_to_tensor(axis))
        if place is None:
            raise ValueError(f"The axis of boolean_mask must be known when the graph is made, got {axis}.")
        at, masked = int(place), mask.shape.ndims
        tensor.shape[at : at + masked].assert_is_compatible_with(mask.shape)
        whole = shape_of(tensor)
        count = apply_op("Prod", input=whole[at : at + masked], reduction_indices=[0])
        flat = reshape(tensor, concat([whole[:at], reshape(count, [1]), whole[at + masked :]], 0))
        known = tensor.shape[at : at + masked].num_elements()
        flat.set_shape(TensorShape(tensor.shape[:at]).concatenate([known]).concatenate(tensor.shape[at + masked :]))
        indices = squeeze(where(reshape(mask, [-1])), axis=[1])
        return gather(flat, indices, axis=at)


# -- shape rules

shape_rule("StridedSliceAssign", "TensorStridedSliceUpdate")(unchanged)


@shape_rule("Slice")
def _(op):
    dims, begins, sizes = sizes_of(op.inputs[0]), constant_value(op.inputs[1]), constant_value(op.inputs[2])
    if sizes is None:
        # The sizes may still be a shape that is known in part; an unknown one there is not a -1.
        rank = op.inputs[0].shape.ndims
        if rank is None:
            rank = op.inputs[2].shape.with_rank(1).merge_with(op.inputs[1].shape).as_list()[0]
        known = constant_value_as_shape(op.inputs[2])
        return [known if known.ndims is not None else unknown_shape(rank)]
    out: list[int | None] = []
    if dims is not None and len(dims) != sizes.size:
        raise ValueError(f"Shape must be rank {sizes.size} but is rank {len(dims)}")
    if begins is not None and begins.shape != sizes.shape:
        raise ValueError(f"Dimension 0 in both shapes must be equal, but are {begins.size} and {sizes.size}")
    for i, length in enumerate(sizes.tolist()):
        size = None if dims is None else dims[i]
        start = None if begins is None else int(begins[i])
        if size is not None and start is not None and not 0 <= start <= size:
            raise ValueError(f"Slice index {start} of dimension {i} out of bounds.")
        if length == -1:
            out.append(None if size is None or start is None else size - start)
            continue
        if size is not None and start is not None and start + length > size:
            raise ValueError(f"Expected size[{i}] in [0, {size - start}], but got {length}")
        out.append(length)
    return [TensorShape(out)]


@shape_rule("StridedSlice")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None:
        return unknown(op)
    masks = {
        mask: op.get_attr(mask)
        for mask in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
    }
    bounds = [constant_value(tensor) for tensor in op.inputs[1:4]]
    lengths = [tensor.shape.num_elements() for tensor in op.inputs[1:4] if tensor.shape.num_elements() is not None]
    if not lengths:
        return unknown(op)
    # Where a bound is not known, its entries still say which dimensions are kept, removed or added.
    begin, end, strides = ([1] * lengths[0] if bound is None else bound.tolist() for bound in bounds)
    index = slice_index(len(dims), begin, end, strides, **masks)
    if all(bound is not None for bound in bounds):
        return [TensorShape(sliced_shape(dims, index))]
    out: list[int | None] = []
    axis = 0
    for entry in index:
        if entry is None:
            out.append(1)
            continue
        if not isinstance(entry, int):
            out.append(dims[axis] if entry == builtins.slice(None, None, 1) else None)
        axis += 1
    return [TensorShape(out)]


@shape_rule("StridedSliceGrad")
def _(op):
    return [constant_value_as_shape(op.inputs[0])]
