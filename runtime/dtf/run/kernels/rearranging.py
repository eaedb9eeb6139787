"""Kernels of the ops that move elements about: transpose, reverse, roll, space and batch and depth, image patches.

Static shapes: `build.ops.rearranging`.
"""

from __future__ import annotations

import itertools

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, room, scalar_axis, shape_text, vector, zero_of
from dtf.wire.strings import filled

# -- rearranging


def _permutation(perm: np.ndarray, rank: int) -> list[int]:
    axes = vector(perm, "perm")
    if len(axes) != rank:
        raise invalid(f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)}")
    axes = [axis % rank if -rank <= axis < rank else axis for axis in axes]
    for i in range(rank):
        if i not in axes:
            raise invalid(f"{i} is missing from {{{','.join(map(str, axes))}}}.")
    return axes


@kernel("Transpose")
def _(node: KernelNode) -> Function:
    return lambda value, perm: np.transpose(value, _permutation(perm, np.ndim(value)))


@kernel("ConjugateTranspose")
def _(node: KernelNode) -> Function:
    if not node.attr("T").is_complex:
        return lambda value, perm: np.transpose(value, _permutation(perm, np.ndim(value)))
    return lambda value, perm: np.conj(np.transpose(value, _permutation(perm, np.ndim(value))))


@kernel("InvertPermutation")
def _(node: KernelNode) -> Function:
    def invert_permutation(perm: np.ndarray) -> np.ndarray:
        size = len(vector(perm, "invert_permutation's input"))
        if size and (perm.min() < 0 or perm.max() >= size):
            bad = perm[(perm < 0) | (perm >= size)][0]
            raise invalid(f"{bad} is not between 0 and {size}")
        out = np.full(size, -1, perm.dtype)
        out[perm] = np.arange(size, dtype=perm.dtype)
        if (out < 0).any():
            values, counts = np.unique(perm, return_counts=True)
            raise invalid(f"{values[counts > 1][0]} is duplicated in the input.")
        return out

    return invert_permutation


@kernel("Reverse")
def _(node: KernelNode) -> Function:
    def reverse(value: np.ndarray, dims: np.ndarray) -> np.ndarray:
        if len(vector(dims, "'dims'")) != np.ndim(value):
            raise invalid(
                "'dims' must have the same number of values as 'input' has dimensions. 'input' has "
                f"{np.ndim(value)}, 'dims' has {len(dims)} values"
            )
        return np.flip(value, tuple(np.flatnonzero(dims).tolist()))

    return reverse


@kernel("ReverseV2")
def _(node: KernelNode) -> Function:
    def reverse(value: np.ndarray, axis: np.ndarray) -> np.ndarray:
        rank = np.ndim(value)
        axes = vector(axis, "'dims'")
        if rank == 0:
            return value
        for place, one in enumerate(axes):
            if not -rank <= one < rank:
                raise invalid(f"'axis'[{place}] = {one} is out of valid range [0, {rank - 1}]")
        axes = [one % rank for one in axes]
        repeated = next((one for one in axes if axes.count(one) > 1), None)
        if repeated is not None:
            raise invalid(f"axis {repeated} specified more than once.")
        return np.flip(value, tuple(axes))

    return reverse


@kernel("ReverseSequence")
def _(node: KernelNode) -> Function:
    seq_dim, batch_dim = node.attr("seq_dim"), node.attr("batch_dim")

    def reverse_sequence(value: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        if seq_dim >= np.ndim(value) or batch_dim >= np.ndim(value) or np.ndim(lengths) != 1:
            raise invalid(
                f"input of shape {shape_text(np.shape(value))} must have the dimensions seq_dim {seq_dim} and "
                f"batch_dim {batch_dim}, and seq_lengths one, not {np.ndim(lengths)}"
            )
        size = value.shape[seq_dim]
        if lengths.shape != (value.shape[batch_dim],):
            raise invalid(
                f"Length of seq_lengths != input.dims({batch_dim}), ({lengths.size} vs. {value.shape[batch_dim]})"
            )
        for i, length in enumerate(lengths.tolist()):
            if not 0 <= length <= size:
                raise invalid(f"seq_lengths({i}) must be in [0, input.dims({seq_dim})={size}], got {length}")
        steps = np.arange(size)
        sources = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
        moved = np.moveaxis(value, (batch_dim, seq_dim), (0, 1))
        return np.moveaxis(moved[np.arange(len(lengths))[:, None], sources], (0, 1), (batch_dim, seq_dim))

    return reverse_sequence


@kernel("Roll")
def _(node: KernelNode) -> Function:
    def roll(value: np.ndarray, shift: np.ndarray, axis: np.ndarray) -> np.ndarray:
        if np.ndim(value) < 1:
            raise invalid("input must be 1-D or higher")
        for what, numbers in (("shift", shift), ("axis", axis)):
            if np.ndim(numbers) > 1:
                raise invalid(f"{what} must be a scalar or a 1-D vector. Found: {shape_text(np.shape(numbers))}")
        if np.shape(shift) != np.shape(axis):
            raise invalid("shift and axis must have the same size")
        axes = tuple(scalar_axis(one, np.ndim(value), "axis") for one in np.ravel(axis).tolist())
        return np.roll(value, tuple(np.ravel(shift).tolist()), axes)

    return roll


@kernel("SpaceToBatchND")
def _(node: KernelNode) -> Function:
    return lambda value, block, paddings: _space_to_batch(
        value, vector(block, "block_shape"), _pairs(paddings, "paddings", len(block))
    )


@kernel("SpaceToBatch")
def _(node: KernelNode) -> Function:
    size = node.attr("block_size")
    return lambda value, paddings: _space_to_batch(value, [size, size], _pairs(paddings, "paddings", 2))


def _pairs(pairs: np.ndarray, what: str, count: int) -> list[list[int]]:
    """Paddings or crops, one (before, after) for each of `count` dimensions."""
    if np.shape(pairs) != (count, 2):
        raise invalid(f"{what} should have shape [{count}, 2] instead of {shape_text(np.shape(pairs))}")
    if pairs.size and pairs.min() < 0:
        raise invalid(f"{what.capitalize()} must be non-negative")
    return pairs.tolist()


def _check_blocks(value: np.ndarray, block: list[int]) -> None:
    if value.ndim < 1 + len(block):
        raise invalid(f"input rank should be >= {1 + len(block)} instead of {value.ndim}")
    for i, size in enumerate(block):
        if size <= 0:
            raise invalid(f"All values in block_shape must be positive, got value, {size} at index {i}.")


def _space_to_batch(value: np.ndarray, block: list[int], paddings: list[list[int]]) -> np.ndarray:
    _check_blocks(value, block)
    spatial = len(block)
    rest = value.ndim - 1 - spatial
    sizes = [size + before + after for size, (before, after) in zip(value.shape[1:], paddings, strict=False)]
    shape = room((value.shape[0], *sizes, *value.shape[1 + spatial :]), value.dtype)
    if value.dtype == object:
        padded = filled(shape, zero_of(value.dtype), object)
        starts = [before for before, _ in paddings]
        inside = tuple(slice(at, at + size) for at, size in zip([0, *starts], value.shape, strict=False))
        padded[inside] = value
    else:
        padded = np.pad(value, [(0, 0), *map(tuple, paddings), *[(0, 0)] * rest])
    for i, size in enumerate(block):
        if padded.shape[i + 1] % size:
            raise invalid(f"padded_shape[{i}]={padded.shape[i + 1]} is not divisible by block_shape[{i}]={size}")
    batch, sizes = value.shape[0], [padded.shape[i + 1] // size for i, size in enumerate(block)]
    split = padded.reshape(batch, *itertools.chain(*zip(sizes, block, strict=True)), *value.shape[1 + spatial :])
    blocks, outer = range(2, 2 + 2 * spatial, 2), range(1, 1 + 2 * spatial, 2)
    moved = split.transpose(*blocks, 0, *outer, *range(1 + 2 * spatial, split.ndim))
    return moved.reshape(batch * int(np.prod(block)), *sizes, *value.shape[1 + spatial :])


@kernel("BatchToSpaceND")
def _(node: KernelNode) -> Function:
    return lambda value, block, crops: _batch_to_space(
        value, vector(block, "block_shape"), _pairs(crops, "crops", len(block))
    )


@kernel("BatchToSpace")
def _(node: KernelNode) -> Function:
    size = node.attr("block_size")
    return lambda value, crops: _batch_to_space(value, [size, size], _pairs(crops, "crops", 2))


def _batch_to_space(value: np.ndarray, block: list[int], crops: list[list[int]]) -> np.ndarray:
    _check_blocks(value, block)
    spatial, blocks = len(block), int(np.prod(block))
    if value.shape[0] % blocks:
        raise invalid(
            f"Input batch dimension ({value.shape[0]}) is not divisible by product of block sizes ({blocks})"
        )
    sizes, rest = value.shape[1 : 1 + spatial], value.shape[1 + spatial :]
    split = value.reshape(*block, value.shape[0] // blocks, *sizes, *rest)
    pairs = itertools.chain(*((spatial + 1 + i, i) for i in range(spatial)))
    moved = split.transpose(spatial, *pairs, *range(1 + 2 * spatial, split.ndim))
    batch = value.shape[0] // blocks
    whole = moved.reshape(batch, *(size * factor for size, factor in zip(sizes, block, strict=True)), *rest)
    for i, (before, after) in enumerate(crops):
        if before + after > whole.shape[i + 1]:
            raise invalid(f"cropped_shape[{i}]={whole.shape[i + 1] - before - after} must be non-negative")
    index = [slice(before, size - after) for (before, after), size in zip(crops, whole.shape[1:], strict=False)]
    return whole[(slice(None),) + tuple(index)]


@kernel("SpaceToDepth")
def _(node: KernelNode) -> Function:
    size, channels_first = node.attr("block_size"), as_text(node.attr("data_format")) == "NCHW"

    def space_to_depth(value: np.ndarray) -> np.ndarray:
        value = np.moveaxis(value, 1, -1) if channels_first else value
        batch, height, width, depth = value.shape
        if height % size or width % size:
            raise invalid(f"Image width {width} and height {height} should be divisible by block_size: {size}")
        split = value.reshape(batch, height // size, size, width // size, size, depth).transpose(0, 1, 3, 2, 4, 5)
        out = split.reshape(batch, height // size, width // size, size * size * depth)
        return np.moveaxis(out, -1, 1) if channels_first else out

    return space_to_depth


@kernel("DepthToSpace")
def _(node: KernelNode) -> Function:
    size, channels_first = node.attr("block_size"), as_text(node.attr("data_format")) == "NCHW"

    def depth_to_space(value: np.ndarray) -> np.ndarray:
        value = np.moveaxis(value, 1, -1) if channels_first else value
        batch, height, width, depth = value.shape
        if depth % (size * size):
            raise invalid(f"Input depth dimension {depth} should be divisible by: {size * size}")
        split = value.reshape(batch, height, width, size, size, depth // size**2).transpose(0, 1, 3, 2, 4, 5)
        out = split.reshape(batch, height * size, width * size, depth // size**2)
        return np.moveaxis(out, -1, 1) if channels_first else out

    return depth_to_space


@kernel("ExtractImagePatches")
def _(node: KernelNode) -> Function:
    (_, rows, columns, _), (_, row_step, column_step, _) = node.attr("ksizes"), node.attr("strides")
    (_, row_rate, column_rate, _), same = node.attr("rates"), as_text(node.attr("padding")) == "SAME"
    row_span, column_span = (rows - 1) * row_rate + 1, (columns - 1) * column_rate + 1

    def extract_image_patches(images: np.ndarray) -> np.ndarray:
        batch, height, width, depth = images.shape
        if same:
            pads = [
                max((-(-size // step) - 1) * step + span - size, 0)
                for size, step, span in ((height, row_step, row_span), (width, column_step, column_span))
            ]
            halves = [(pad // 2, pad - pad // 2) for pad in pads]
            room((batch, height + pads[0], width + pads[1], depth), images.dtype)
            images = np.pad(images, [(0, 0), *halves, (0, 0)])
        extents = [
            (size - span + step) // step if size - span + step >= 0 else -1
            for size, span, step in (
                (images.shape[1], row_span, row_step),
                (images.shape[2], column_span, column_step),
            )
        ]
        if min(extents) < 0:
            raise invalid(f"Computed output size would be negative for images of shape {shape_text(images.shape)}")
        if min(extents) == 0:
            return np.zeros((batch, *extents, rows * columns * depth), images.dtype)
        windows = np.lib.stride_tricks.sliding_window_view(images, (row_span, column_span), axis=(1, 2))
        windows = windows[:, ::row_step, ::column_step, :, ::row_rate, ::column_rate].transpose(0, 1, 2, 4, 5, 3)
        return windows.reshape(room((*windows.shape[:3], rows * columns * depth), images.dtype))

    return extract_image_patches
