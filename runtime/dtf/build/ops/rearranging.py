"""Array ops that move elements about: transpose, reverse, roll, space and batch and depth; their static shapes.

Kernels: `run.kernels.rearranging`; gradients: `array_grad`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.array import rank
from dtf.build.ops.joining import concat
from dtf.build.shape_rules import axis_within, shape_rule, sizes_of, unchanged, unknown
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "batch_to_space",
    "batch_to_space_nd",
    "depth_to_space",
    "extract_image_patches",
    "extract_patches",
    "invert_permutation",
    "matrix_transpose",
    "required_space_to_batch_paddings",
    "reverse",
    "reverse_sequence",
    "reverse_v2",
    "roll",
    "space_to_batch",
    "space_to_batch_nd",
    "space_to_depth",
    "transpose",
]


def transpose(
    a: TensorLike, perm: TensorLike | None = None, name: str = "transpose", conjugate: bool = False
) -> Tensor:
    """Permutes the dimensions of a tensor.

    Args:
      a: any tensor.
      perm: dimension i of the result is dimension perm[i] of `a`; by default the order is reversed.
      name: the name of the operation.
      conjugate: conjugate complex elements as well.

    Returns:
      A Tensor with the elements of `a`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/transpose
    """
    with name_scope(name, "transpose", [a]) as scope:
        op_type = "ConjugateTranspose" if conjugate else "Transpose"
        a = convert_to_tensor(a, name="a")
        if perm is None:
            if a.shape.ndims is not None:
                perm = np.arange(a.shape.ndims, dtype=np.int32)[::-1]
            else:
                last = apply_op("Sub", x=rank(a), y=1)
                perm = apply_op("Sub", x=last, y=apply_op("Range", start=0, limit=rank(a), delta=1))
        return apply_op(op_type, scope, x=a, perm=perm)


def matrix_transpose(a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Swaps the last two dimensions."""
    with name_scope(name, "matrix_transpose", [a]):
        a = convert_to_tensor(a, name="a")
        dims = a.shape.ndims
        if dims is None:
            order = apply_op("Range", start=0, limit=rank(a), delta=1)
            perm: Any = concat([order[:-2], order[-1:], order[-2:-1]], 0)
        else:
            if dims < 2:
                raise ValueError(f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {a.shape}")
            perm = [*range(dims - 2), dims - 1, dims - 2]
        return transpose(a, perm, conjugate=conjugate)


@dispatched
def reverse(tensor: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """Turns dimensions round.

    Args:
      tensor: any tensor of up to 8 dimensions.
      axis: the dimensions, a vector of integers in [-rank, rank).
      name: the name of the operation.

    Returns:
      A Tensor of the shape and dtype of `tensor`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/reverse
    """
    return apply_op("ReverseV2", name, tensor=tensor, axis=axis)


reverse_v2 = reverse


def reverse_sequence(
    input: TensorLike,
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
    seq_dim: int | None = None,
    batch_dim: int | None = None,
) -> Tensor:
    """For each slice i along the batch dimension turns the first seq_lengths[i] steps round, and leaves the rest."""
    along = seq_dim if seq_axis is None else seq_axis
    batch = batch_dim if batch_axis is None else batch_axis
    if along is None:
        raise ValueError("seq_axis must be given")
    return apply_op(
        "ReverseSequence",
        name,
        input=input,
        seq_lengths=seq_lengths,
        seq_dim=along,
        batch_dim=0 if batch is None else batch,
    )


def roll(input: TensorLike, shift: TensorLike, axis: Any, name: str | None = None) -> Tensor:
    """Shifts along each axis; elements leaving at one end re-enter at the other."""
    return apply_op("Roll", name, input=input, shift=shift, axis=axis)


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """The y with y[x[i]] = i."""
    return apply_op("InvertPermutation", name, x=x)


def space_to_batch_nd(input: TensorLike, block_shape: Any, paddings: TensorLike, name: str | None = None) -> Tensor:
    """Pads, cuts the spatial dimensions into blocks, and moves the places within a block into the batch."""
    return apply_op("SpaceToBatchND", name, input=input, block_shape=block_shape, paddings=paddings)


def batch_to_space_nd(input: TensorLike, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """The inverse of `space_to_batch_nd`, cropping instead of padding."""
    return apply_op("BatchToSpaceND", name, input=input, block_shape=block_shape, crops=crops)


def space_to_batch(
    input: TensorLike,
    paddings: TensorLike,
    block_size: int | None = None,
    name: str | None = None,
    block_shape: Any = None,
) -> Tensor:
    """`space_to_batch_nd` of images [batch, height, width, depth] with square blocks."""
    block = block_shape if block_shape is not None else [block_size, block_size]
    result = space_to_batch_nd(input, block, paddings, name)
    if block_shape is None and result.shape.ndims is None:
        result.set_shape([None] * 4)
    return result


def batch_to_space(
    input: TensorLike, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """`batch_to_space_nd` to images [batch, height, width, depth] with square blocks."""
    block = block_shape if block_shape is not None else [block_size, block_size]
    result = batch_to_space_nd(input, block, crops, name)
    if block_shape is None and result.shape.ndims is None:
        result.set_shape([None] * 4)
    return result


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings and crops, each [N, 2], for `space_to_batch_nd` to divide evenly and to undo it.

    Args:
      input_shape: int32 [N], known; the spatial sizes.
      block_shape: int32 [N], known.
      base_paddings: int32 [N, 2], at least this much padding; none by default.
    """
    with name_scope(name, "required_space_to_batch_paddings"):
        sizes, block = (np.asarray(constant_value(convert_to_tensor(each))) for each in (input_shape, block_shape))
        if sizes.dtype == object or block.dtype == object:
            return _required_when_run(input_shape, block_shape, base_paddings)
        base = np.zeros((len(block), 2), np.int32)
        if base_paddings is not None:
            base = np.asarray(constant_value(convert_to_tensor(base_paddings)), np.int32)
        extra = (-(sizes + base.sum(axis=1))) % block
        paddings = np.stack([base[:, 0], base[:, 1] + extra], axis=1)
        crops = np.stack([np.zeros_like(extra), extra], axis=1)
        return constant(paddings, dtypes.int32, name="paddings"), constant(crops, dtypes.int32, name="crops")


def _required_when_run(input_shape: Any, block_shape: Any, base_paddings: Any) -> tuple[Tensor, Tensor]:
    """The same for sizes known only in the step."""
    sizes, block = (convert_to_tensor(each, dtypes.int32) for each in (input_shape, block_shape))
    count = next((each.shape[0].value for each in (block, sizes) if each.shape.ndims == 1), None)
    if base_paddings is None:
        base = apply_op("Fill", dims=apply_op("Pack", values=[apply_op("Shape", input=block)[0], 2]), value=0)
    else:
        base = convert_to_tensor(base_paddings, dtypes.int32)
    low, high = base[:, 0], base[:, 1]
    extra = -(sizes + low + high) % block
    paddings = apply_op("Pack", values=[low, high + extra], axis=1)
    crops = apply_op("Pack", values=[apply_op("ZerosLike", x=extra), extra], axis=1)
    for each in (paddings, crops):
        each.set_shape([count, 2])
    return paddings, crops


def space_to_depth(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves blocks of pixels into the depth: [b, h, w, d] -> [b, h/s, w/s, d*s*s]."""
    return apply_op("SpaceToDepth", name, input=input, block_size=block_size, data_format=data_format)


def depth_to_space(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """The inverse of `space_to_depth`."""
    return apply_op("DepthToSpace", name, input=input, block_size=block_size, data_format=data_format)


def extract_image_patches(
    images: TensorLike,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Patches of [batch, height, width, depth] images, each flattened into the depth of its output pixel."""
    return apply_op(
        "ExtractImagePatches",
        name,
        images=images,
        ksizes=list(ksizes if sizes is None else sizes),
        strides=list(strides),
        rates=list(rates),
        padding=padding,
    )


def extract_patches(
    images: TensorLike, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """`extract_image_patches` with its arguments' newer names."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


# -- shape rules

shape_rule("Reverse", "InvertPermutation")(unchanged)


@shape_rule("Transpose", "ConjugateTranspose")
def _(op):
    dims, perm = sizes_of(op.inputs[0]), constant_value(op.inputs[1])
    if perm is None:
        rank = op.inputs[0].shape.ndims
        if rank is None:
            rank = op.inputs[1].shape.with_rank(1).as_list()[0]
        return [unknown_shape(rank)]
    if dims is None:
        return [TensorShape([None] * len(perm))]
    if len(perm) != len(dims):
        raise ValueError(f"Dimension must be {len(dims)} but is {len(perm)}")
    axes = [axis_within(int(axis), len(dims), "perm dim {axis} is out of range of input rank {rank}") for axis in perm]
    if sorted(axes) != list(range(len(dims))):
        raise ValueError(f"perm {axes} is not a permutation of the dimensions")
    return [TensorShape([dims[axis] for axis in axes])]


@shape_rule("ReverseV2")
def _(op):
    op.inputs[1].shape.assert_has_rank(1)
    dims, axes = sizes_of(op.inputs[0]), constant_value(op.inputs[1])
    if dims is not None and axes is not None:
        used = [axis_within(int(axis), len(dims), "axis {axis} is out of valid range [0, {last}]") for axis in axes]
        twice = [axis for place, axis in enumerate(used) if axis in used[:place]]
        if twice:
            raise ValueError(f"axis {twice[0]} specified more than once.")
    return unchanged(op)


@shape_rule("ReverseSequence")
def _(op):
    dims, at = sizes_of(op.inputs[0]), op.get_attr("batch_dim")
    op.inputs[1].shape.assert_has_rank(1)
    if dims is None:
        return unchanged(op)
    for name in ("batch_dim", "seq_dim"):
        if op.get_attr(name) >= len(dims):
            raise ValueError(f"{name} must be < input rank: {op.get_attr(name)} vs. {len(dims)}")
    [batch] = op.inputs[1].shape.merge_with([dims[at]]).as_list()
    return [TensorShape([*dims[:at], batch, *dims[at + 1 :]])]


@shape_rule("Roll")
def _(op):
    shift, axis = op.inputs[1].shape, op.inputs[2].shape
    if shift.ndims is not None and axis.ndims is not None:
        pair = [1 if each.ndims == 0 else each.as_list()[0] for each in (shift, axis)]
        if max(shift.ndims, axis.ndims) > 1 or None not in pair and pair[0] != pair[1]:
            raise ValueError(f"shift and axis must have the same size, got {shift} and {axis}")
    return unchanged(op)


@shape_rule("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None and not op.type.endswith("ND"):
        dims = [None] * 4
    if dims is None:
        return unknown(op)
    if op.type.endswith("ND"):
        block, amounts = constant_value(op.inputs[1]), constant_value(op.inputs[2])
    else:
        block, amounts = np.array([op.get_attr("block_size")] * 2), constant_value(op.inputs[1])
    if block is None:
        return [TensorShape([None] * len(dims))]
    if len(dims) <= block.size:
        raise ValueError(f"Shape must be at least rank {block.size + 1} but is rank {len(dims)}")
    if amounts is not None and amounts.shape != (block.size, 2):
        raise ValueError(f"Shapes must be equal, but are {list(amounts.shape)} and {[block.size, 2]}")
    to_batch = op.type.startswith("SpaceToBatch")
    out = list(dims)
    total = int(np.prod(block))
    if dims[0] is not None:
        if not to_batch and dims[0] % total:
            raise ValueError(f"Dimension size must be evenly divisible by {total} but is {dims[0]}")
        out[0] = dims[0] * total if to_batch else dims[0] // total
    for i, factor in enumerate(block.tolist()):
        size = dims[i + 1]
        if size is None or amounts is None:
            out[i + 1] = None
            continue
        extra = int(np.sum(amounts[i]))
        if to_batch and (size + extra) % factor:
            raise ValueError(f"Dimension size must be evenly divisible by {factor} but is {size + extra}")
        out[i + 1] = (size + extra) // factor if to_batch else size * factor - extra
    return [TensorShape(out)]


@shape_rule("SpaceToDepth", "DepthToSpace")
def _(op):
    dims, block = sizes_of(op.inputs[0]), op.get_attr("block_size")
    if dims is None:
        return [TensorShape([None] * 4)]
    op.inputs[0].shape.assert_has_rank(4)
    channels_first = op.get_attr("data_format") in ("NCHW", b"NCHW")
    depth_at, spatial = (1, (2, 3)) if channels_first else (3, (1, 2))
    to_depth = op.type == "SpaceToDepth"
    out = list(dims)
    for axis in spatial:
        out[axis] = _scaled(dims[axis], block, not to_depth)
    out[depth_at] = _scaled(dims[depth_at], block * block, to_depth)
    return [TensorShape(out)]


def _scaled(size: int | None, factor: int, up: bool) -> int | None:
    if size is None:
        return None
    if not up and size % factor:
        raise ValueError(f"Dimension size must be evenly divisible by {factor} but is {size}")
    return size * factor if up else size // factor


@shape_rule("ExtractImagePatches")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None:
        return [TensorShape([None] * 4)]
    op.inputs[0].shape.assert_has_rank(4)
    sizes, strides, rates = op.get_attr("ksizes"), op.get_attr("strides"), op.get_attr("rates")
    same = op.get_attr("padding") in ("SAME", b"SAME")
    out = list(dims)
    for axis in (1, 2):
        span = (sizes[axis] - 1) * rates[axis] + 1
        size = dims[axis]
        if size is not None:
            out[axis] = -(-size // strides[axis]) if same else -(-(size - span + 1) // strides[axis])
    out[3] = None if dims[3] is None else dims[3] * sizes[1] * sizes[2]
    return [TensorShape(out)]
