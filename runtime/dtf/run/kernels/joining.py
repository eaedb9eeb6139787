"""Kernels of the ops that join, split, pad and repeat arrays. Static shapes: `build.ops.joining`.

Strings are object arrays; indexing such an array with integers alone gives a bare `bytes`, so every
index here ends with an Ellipsis, which keeps the array.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import (
    as_text,
    invalid,
    legacy_scalar,
    numpy_dtype,
    room,
    scalar_axis,
    shape_text,
    vector,
    zero_of,
)
from dtf.run.kernels.gathering import scatter_rows
from dtf.run.value_types import Array
from dtf.wire.strings import filled

# -- joining and splitting


@kernel("Concat")
def _(node: KernelNode) -> Function:
    return lambda axis, *values: _concatenate(values, axis)


_FEW = 8
"""Inputs that nobody counts: together they are not far larger than the largest of them."""


@kernel("ConcatV2")
def _(node: KernelNode) -> Function:
    return lambda *values_and_axis: _concatenate(values_and_axis[:-1], values_and_axis[-1])


def _concatenate(values: Sequence[np.ndarray], axis: Array) -> np.ndarray:
    _check_together(values)
    try:
        return np.concatenate(values, axis=legacy_scalar(axis, "concat dimension"))
    except ValueError:
        raise invalid(_concat_message([np.shape(value) for value in values], int(axis))) from None


def _check_together(values: Sequence[np.ndarray]) -> None:
    """Looks at the room for all inputs in one: a graph may name one large tensor many times."""
    if len(values) > _FEW:
        room((sum(value.size for value in values),), values[0].dtype)


def _concat_message(shapes: list[tuple[int, ...]], axis: int) -> str:
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        return f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {axis}"
    for i, shape in enumerate(shapes):
        if len(shape) != rank:
            return (
                f"ConcatOp : Ranks of all input tensors should match: shape[0] = {shape_text(shapes[0])} vs. "
                f"shape[{i}] = {shape_text(shape)}"
            )
    other = next(i for i, s in enumerate(shapes) if any(s[d] != shapes[0][d] for d in range(rank) if d != axis % rank))
    dim = next(d for d in range(rank) if d != axis % rank and shapes[other][d] != shapes[0][d])
    return (
        f"ConcatOp : Dimension {dim} in both shapes must be equal: shape[0] = {shape_text(shapes[0])} vs. "
        f"shape[{other}] = {shape_text(shapes[other])}"
    )


@kernel("ParallelConcat")
def _(node: KernelNode) -> Function:
    expected = node.attr("shape")

    def parallel_concat(*values: np.ndarray) -> np.ndarray:
        for i, value in enumerate(values):
            if np.shape(value)[:1] != (1,) or not expected[1:].is_compatible_with(np.shape(value)[1:]):
                raise invalid(f"Input {i} of shape {shape_text(np.shape(value))} is not a row of {expected}")
        return np.concatenate(values, axis=0)

    return parallel_concat


@kernel("ConcatOffset")
def _(node: KernelNode) -> Function:
    def concat_offset(axis: np.ndarray, *shapes: np.ndarray) -> list[np.ndarray]:
        for i, shape in enumerate(shapes):
            if shape.ndim != 1:
                raise invalid(f"input {i} should be a vector, but got shape {shape_text(shape.shape)}")
            if len(shape) != len(shapes[0]):
                raise invalid(f"input {i} should contain {len(shapes[0])} elements, but got {len(shape)}")
        if not axis.ndim and not -len(shapes[0]) <= axis < len(shapes[0]):
            raise invalid(f"Concat dim is out of range: {axis} vs. {len(shapes[0])}")
        position = scalar_axis(axis, len(shapes[0]), "concat dimension")
        offsets, total = [], 0
        for i, shape in enumerate(shapes):
            different = [d for d in range(len(shape)) if d != position and shape[d] != shapes[0][d]]
            if different:
                sizes, first = (f"[{' '.join(map(str, each.tolist()))}]" for each in (shape, shapes[0]))
                raise invalid(
                    f"All dimensions except {position} must match. Input {i} has shape {sizes} and doesn't match "
                    f"input 0 with shape {first}."
                )
            offset = np.zeros_like(shape)
            offset[position] = total
            offsets.append(offset)
            total += shape[position]
        return offsets

    return concat_offset


@kernel("Pack")
def _(node: KernelNode) -> Function:
    axis = node.attr("axis")

    def pack(*values: np.ndarray) -> np.ndarray:
        _check_together(values)
        try:
            return np.stack(values, axis)
        except ValueError:
            first = np.shape(values[0])
            other = next((i for i, value in enumerate(values) if np.shape(value) != first), None)
            if other is None:
                raise
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} != "
                f"values[{other}].shape = {shape_text(np.shape(values[other]))}"
            ) from None

    return pack


@kernel("Unpack")
def _(node: KernelNode) -> Function:
    axis, count = node.attr("axis"), node.attr("num")

    def unpack(value: np.ndarray) -> list[np.ndarray]:
        position = scalar_axis(axis, np.ndim(value))
        if value.shape[position] != count:
            raise invalid(f"Input shape axis {position} must equal {count}, got shape {shape_text(value.shape)}")
        leading = (slice(None),) * position
        return [value[leading + (i, ...)] for i in range(count)]

    return unpack


@kernel("Split")
def _(node: KernelNode) -> Function:
    count = node.attr("num_split")

    def split(axis: np.ndarray, value: np.ndarray) -> list[np.ndarray]:
        position = scalar_axis(axis, np.ndim(value), "-input rank(-dims) <= split_dim < input rank: split_dim")
        size = value.shape[position]
        if size % count:
            raise invalid(
                "Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{position} (size = {size}) and num_split {count}"
            )
        return _pieces(value, position, [size // count] * count)

    return split


@kernel("SplitV")
def _(node: KernelNode) -> Function:
    count = node.attr("num_split")

    def split_v(value: np.ndarray, size_splits: np.ndarray, axis: np.ndarray) -> list[np.ndarray]:
        position = scalar_axis(legacy_scalar(axis, "split_dim"), np.ndim(value), "split_dim")
        sizes, total = vector(size_splits, "size_splits"), value.shape[position]
        if len(sizes) != count:
            raise invalid(f"size of the split_tensor must be equal to num_split {count}, got {len(sizes)}")
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = total - sum(sizes) - 1
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise invalid(
                "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
                f"than the size of the input along split_dim if not fully specified.  Got: {int(size_splits.sum())}"
            )
        return _pieces(value, position, sizes)

    return split_v


def _pieces(value: np.ndarray, axis: int, sizes: Sequence[int]) -> list[np.ndarray]:
    leading = (slice(None),) * axis
    ends = list(itertools.accumulate(sizes))
    return [value[leading + (slice(end - size, end),)] for size, end in zip(sizes, ends, strict=True)]


def _check_paddings(value: np.ndarray, paddings: np.ndarray) -> list[list[int]]:
    if np.shape(paddings) != (np.ndim(value), 2):
        raise invalid(
            "The first dimension of paddings must be the rank of inputs and the second 2, got "
            f"{shape_text(np.shape(paddings))} for inputs of shape {shape_text(np.shape(value))}"
        )
    pairs = paddings.tolist()
    for before, after in pairs:
        if before < 0 or after < 0:
            raise invalid(f"Paddings must be non-negative: {before} {after}")
    return pairs


@kernel("Pad", "PadV2")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)
    zero = zero_of(dtype)

    def pad(value: np.ndarray, paddings: np.ndarray, constant: np.ndarray = zero) -> np.ndarray:
        pairs = _check_paddings(value, paddings)
        shape = np.shape(value)
        sizes = [size + before + after for size, (before, after) in zip(shape, pairs, strict=True)]
        out = filled(room(sizes, dtype), constant, dtype)
        out[tuple(slice(before, before + size) for size, (before, _) in zip(shape, pairs, strict=True))] = value
        return out

    return pad


def _mirror_sources(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """For each position of a padded dimension the position that it copies."""
    limit = size - (mode == "REFLECT")
    if before > limit or after > limit:
        raise invalid(
            f"paddings must be {'less than' if mode == 'REFLECT' else 'no greater than'} the dimension size: "
            f"{before}, {after} {'not less than' if mode == 'REFLECT' else 'greater than'} {size}"
        )
    return np.pad(np.arange(size), (before, after), "reflect" if mode == "REFLECT" else "symmetric")


@kernel("MirrorPad")
def _(node: KernelNode) -> Function:
    mode = as_text(node.attr("mode"))

    def mirror_pad(value: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        for axis, (before, after) in enumerate(_check_paddings(value, paddings)):
            if before or after or not value.shape[axis]:
                value = np.take(value, _mirror_sources(value.shape[axis], before, after, mode), axis)
        return value

    return mirror_pad


@kernel("MirrorPadGrad")
def _(node: KernelNode) -> Function:
    mode = as_text(node.attr("mode"))

    def mirror_pad_grad(gradient: np.ndarray, paddings: np.ndarray) -> np.ndarray:
        for axis, (before, after) in enumerate(_check_paddings(gradient, paddings)):
            if before or after or not gradient.shape[axis]:
                sources = _mirror_sources(gradient.shape[axis] - before - after, before, after, mode)
                moved = np.moveaxis(gradient, axis, 0)
                out = np.zeros((moved.shape[0] - before - after, *moved.shape[1:]), gradient.dtype)
                scatter_rows(np.add, out, sources, moved)
                gradient = np.moveaxis(out, 0, axis)
        return gradient

    return mirror_pad_grad


@kernel("Tile")
def _(node: KernelNode) -> Function:
    def tile(value: np.ndarray, multiples: np.ndarray) -> np.ndarray:
        if np.shape(multiples) != (np.ndim(value),):
            raise invalid(
                f"Expected multiples argument to be a vector of length {np.ndim(value)} but got length "
                f"{np.size(multiples)}"
            )
        counts = multiples.tolist()
        if any(count < 0 for count in counts):
            at = next(i for i, count in enumerate(counts) if count < 0)
            raise invalid(f"Expected multiples[{at}] >= 0, but got {counts[at]}")
        room([size * count for size, count in zip(np.shape(value), counts, strict=True)], value.dtype)
        return np.tile(value, counts)

    return tile


@kernel("_ParallelConcatStart")
def _(node: KernelNode) -> Function:
    shape, dtype = tuple(node.attr("shape").as_list()), numpy_dtype(node, "dtype")
    return lambda: np.full(room(shape, dtype), zero_of(dtype), dtype)


@kernel("_ParallelConcatUpdate")
def _(node: KernelNode) -> Function:
    row = node.attr("loc")

    def update(whole: np.ndarray, part: np.ndarray) -> np.ndarray:
        if not 0 <= row < whole.shape[0]:
            raise invalid(f"loc {row} is not in [0, {whole.shape[0]})")
        # In place on purpose: the optimizer's graph reads the tensor of the _ParallelConcatStart after all updates.
        whole[row] = part[0]
        return whole

    return update
