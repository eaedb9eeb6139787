"""Kernels of the array ops: constants, shapes, slicing, joining, gathering, scattering and rearranging.

Owns the arithmetic on one device's arrays. Does not own the ops' static shapes or gradients (`ops/array.py`,
`ops/array_grad.py`) nor the meaning of a slice specification (`slicing.py`).

Strings are object arrays; indexing such an array with integers alone gives a bare `bytes`, so every
index here ends with an Ellipsis, which keeps the array.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dtf.run.kernels import kernel
from dtf.wire import dtypes, errors
from dtf.wire.slicing import slice_index, sliced_shape
from dtf.wire.tensor_shape import TensorShape

_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


# From how many elements on a row is combined as a whole; measured.
_WIDE_ROW = 256


def scatter_rows(function: np.ufunc, out: np.ndarray, rows: np.ndarray, updates: np.ndarray) -> None:
    """Combines `updates[i]` into `out[rows[i]]` in place; a row that occurs often takes every update.

    Args:
      function: np.add, np.subtract, np.multiply, np.maximum ...
      out: [n, ...].
      rows: integers [k], all within [0, n).
      updates: [k, ...].

    ufunc.at has a fast loop for one dimension only, in which narrow rows are spread element by element. For wide rows
    it is faster to group equal rows by a sort, and rows that are all different need no grouping at all.
    """
    if rows.size == 0:
        return
    if out.ndim == 1:
        function.at(out, rows, updates)
        return
    width = math.prod(out.shape[1:])
    if width < _WIDE_ROW and out.flags.c_contiguous:
        positions = rows.astype(np.int64, copy=False)[:, None] * width + np.arange(width)
        function.at(out.reshape(-1), positions.reshape(-1), updates.reshape(-1))
        return
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_rows[1:] != sorted_rows[:-1])))
    if len(starts) == len(rows):
        out[rows] = function(out[rows], updates)
        return
    # Subtracting or dividing several times is subtracting or dividing the sum or the product.
    inverses: dict[Any, np.ufunc] = {np.subtract: np.add, np.true_divide: np.multiply}
    group = inverses.get(function, function)
    groups = group.reduceat(updates[order], starts, axis=0, dtype=updates.dtype)
    distinct = sorted_rows[starts]
    out[distinct] = function(out[distinct], groups)


def index_text(position: Sequence[int]) -> str:
    """Returns "[2,3]" for a position in an index tensor and "" in a scalar, as TensorFlow's messages have it."""
    return f"[{','.join(map(str, position))}]" if len(position) else ""


def shape_text(shape: Sequence[int]) -> str:
    """Returns a shape as TensorFlow's messages have it: "[2,3]"."""
    return f"[{','.join(map(str, shape))}]"


def check_indices(name: str, indices: np.ndarray, limit: int) -> None:
    """Raises InvalidArgumentError for the first of `indices` outside [0, limit)."""
    if indices.size and (indices.min() < 0 or indices.max() >= limit):
        position = np.argwhere((indices < 0) | (indices >= limit))[0]
        raise _invalid(f"{name}{index_text(position)} = {indices[tuple(position)]} is not in [0, {limit})")


def rows_of_nd_indices(indices: np.ndarray, shape: Sequence[int], what: str) -> np.ndarray:
    """Returns the row numbers that index vectors stand for, row-major over the leading dimensions of `shape`.

    Args:
      indices: integers [..., depth] with depth <= len(shape).
      shape: the shape indexed into.
      what: how the message names that shape ("shape", "param shape").

    Returns:
      int64, the shape of `indices` without its last dimension.

    Raises:
      InvalidArgumentError: an index vector outside of `shape`.
    """
    depth = indices.shape[-1]
    sizes = np.asarray(shape[:depth], np.int64)
    bad = ((indices < 0) | (indices >= sizes)).any(axis=-1)
    if bad.any():
        position = tuple(np.argwhere(bad)[0])
        vector = ", ".join(map(str, indices[position]))
        raise _invalid(f"indices{index_text(position)} = [{vector}] does not index into {what} {shape_text(shape)}")
    weights = np.concatenate((np.cumprod(sizes[:0:-1])[::-1], [1])).astype(np.int64)[:depth]
    return indices.astype(np.int64) @ weights if depth else np.zeros(indices.shape[:-1], np.int64)


def _invalid(message: str) -> errors.OpError:
    return errors.InvalidArgumentError(None, None, message)


def _numpy_dtype(node: Any, attr: str = "T") -> Any:
    return node.attr(attr).as_numpy_dtype


def _zero_of(dtype: Any) -> Any:
    """The value that fills what nobody wrote: b"" for strings, else the dtype's zero."""
    return b"" if dtype == np.object_ else np.zeros((), dtype)[()]


def _dimensions(shape: Any) -> tuple[int, ...]:
    """A shape tensor as a tuple; a negative dimension is the caller's error."""
    dims = tuple(np.asarray(shape).ravel().tolist())
    if any(dim < 0 for dim in dims):
        at = next(i for i, dim in enumerate(dims) if dim < 0)
        raise _invalid(f"Dimension {dims[at]} must be >= 0")
    return dims


def _axis(axis: Any, rank: int, what: str = "axis") -> int:
    """A scalar axis tensor as an int within [0, rank)."""
    value = int(axis)
    if not -rank <= value < rank:
        raise _invalid(f"Expected {what} in the range [{-rank}, {rank}), but got {value}")
    return value % rank


# -- constants, placeholders and what passes its input on


@kernel("Const")
def _(node):
    value = node.attr("value")
    return lambda: value


@kernel("Placeholder", "PlaceholderV2")
def _(node):
    dtype, shape = node.attr("dtype"), node.attr("shape")
    word = dtypes.runtime_name(dtype)
    message = f"You must feed a value for placeholder tensor '{node.name}' with dtype {word}"
    if shape is not None and shape.ndims:
        dims = ",".join("?" if dim is None else str(dim) for dim in shape.as_list())
        message += f" and shape [{dims}]"

    def placeholder():
        raise _invalid(message)

    return placeholder


@kernel(
    "Identity", "RefIdentity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault", "GuaranteeConst"
)
def _(node):
    return lambda value: value


@kernel("IdentityN")
def _(node):
    return lambda *values: values


@kernel("DeepCopy")
def _(node):
    return lambda value: np.array(value, copy=True)


@kernel("CheckNumerics")
def _(node):
    message = node.attr("message")
    message = message.decode() if isinstance(message, bytes) else message

    def check_numerics(value):
        if not np.isfinite(value).all():
            found = [word for word, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(value).any()]
            raise _invalid(f"{message} : Tensor had {' and '.join(found)} values")
        return value

    return check_numerics


@kernel("EnsureShape")
def _(node):
    expected = node.attr("shape")

    def ensure_shape(value):
        if not TensorShape(np.shape(value)).is_compatible_with(expected):
            wanted = "[" + ",".join("?" if dim is None else str(dim) for dim in expected.as_list()) + "]"
            raise _invalid(
                f"Shape of tensor {node.name} {shape_text(np.shape(value))} is not compatible with expected shape "
                f"{wanted}."
            )
        return value

    return ensure_shape


# -- shapes


@kernel("Shape")
def _(node):
    dtype = _numpy_dtype(node, "out_type")
    return lambda value: np.array(np.shape(value), dtype)


@kernel("ShapeN")
def _(node):
    dtype = _numpy_dtype(node, "out_type")
    return lambda *values: [np.array(np.shape(value), dtype) for value in values]


@kernel("Size")
def _(node):
    dtype = _numpy_dtype(node, "out_type")
    return lambda value: dtype(np.size(value))


@kernel("Rank")
def _(node):
    return lambda value: np.int32(np.ndim(value))


@kernel("Reshape")
def _(node):
    def reshape(tensor, shape):
        if np.ndim(shape) != 1:
            raise _invalid(f"sizes input must be 1-D, not {shape_text(np.shape(shape))}")
        dims = shape.tolist()
        try:
            return np.reshape(tensor, dims)
        except ValueError:
            raise _invalid(_reshape_message(np.size(tensor), dims)) from None

    return reshape


def _reshape_message(size: int, dims: list[int]) -> str:
    unknown = [i for i, dim in enumerate(dims) if dim == -1]
    negative = [i for i, dim in enumerate(dims) if dim < -1]
    known = int(np.prod([dim for dim in dims if dim >= 0], dtype=np.int64))
    if len(unknown) > 1:
        return f"Only one input size may be -1, not both {unknown[0]} and {unknown[1]}"
    if negative:
        return f"Size {negative[0]} must be non-negative, not {dims[negative[0]]}"
    if unknown and known == 0:
        return (
            "reshape cannot infer the missing input size for an empty tensor unless all specified input sizes "
            "are non-zero"
        )
    wants = f"requires a multiple of {known}" if unknown else f"has {known}"
    return f"Input to reshape is a tensor with {size} values, but the requested shape {wants}"


@kernel("Squeeze")
def _(node):
    axes = tuple(node.attr("squeeze_dims"))

    def squeeze(value):
        shape = np.shape(value)
        for axis in axes:
            if not -len(shape) <= axis < len(shape):
                raise _invalid(f"Tried to squeeze dim index {axis} for tensor with {len(shape)} dimensions.")
            if shape[axis] != 1:
                raise _invalid(
                    f"Can not squeeze dim[{axis % len(shape)}], expected a dimension of 1, got {shape[axis]}"
                )
        return np.squeeze(value, axes or None)

    return squeeze


@kernel("ExpandDims")
def _(node):
    def expand_dims(value, axis):
        rank = np.ndim(value)
        position = int(np.reshape(axis, ()))
        if not -rank - 1 <= position <= rank:
            raise _invalid(f"Tried to expand dim index {position} for tensor with {rank} dimensions.")
        return np.expand_dims(value, position)

    return expand_dims


@kernel("BroadcastArgs")
def _(node):
    def broadcast_args(left, right):
        try:
            return np.array(np.broadcast_shapes(tuple(left.tolist()), tuple(right.tolist())), left.dtype)
        except ValueError:
            raise _incompatible(left, right) from None

    return broadcast_args


@kernel("BroadcastGradientArgs")
def _(node):
    def broadcast_gradient_args(left, right):
        dtype = left.dtype
        a, b = left.tolist(), right.tolist()
        if a == b:
            return np.zeros(0, dtype), np.zeros(0, dtype)
        rank = max(len(a), len(b))
        a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
        if any(x != y and x != 1 and y != 1 for x, y in zip(a, b, strict=True)):
            raise _incompatible(left, right)
        axes = [np.array([i for i, dim in enumerate(dims) if dim == 1], dtype) for dims in (a, b)]
        return axes[0], axes[1]

    return broadcast_gradient_args


def _incompatible(left: np.ndarray, right: np.ndarray) -> errors.OpError:
    return _invalid(f"Incompatible shapes: {shape_text(left.tolist())} vs. {shape_text(right.tolist())}")


@kernel("BroadcastTo")
def _(node):
    def broadcast_to(value, shape):
        dims = _dimensions(shape)
        try:
            return np.array(np.broadcast_to(value, dims))
        except ValueError:
            raise _invalid(f"Incompatible shapes: {shape_text(np.shape(value))} vs. {shape_text(dims)}") from None

    return broadcast_to


# -- making arrays


@kernel("Fill")
def _(node):
    dtype = _numpy_dtype(node)

    def fill(dims, value):
        if np.ndim(dims) != 1:
            raise _invalid(f"dims must represent a vector, got shape {shape_text(np.shape(dims))}")
        if np.ndim(value):
            raise _invalid(f"value must represent a scalar, got shape {shape_text(np.shape(value))}")
        return np.full(_dimensions(dims), value, dtype)

    return fill


@kernel("Empty")
def _(node):
    dtype = _numpy_dtype(node, "dtype")
    return lambda shape: np.full(_dimensions(shape), _zero_of(dtype), dtype)


@kernel("ZerosLike")
def _(node):
    dtype = _numpy_dtype(node)
    if dtype == np.object_:
        return lambda value: np.full(np.shape(value), b"", object)
    return lambda value: np.zeros(np.shape(value), dtype)


@kernel("OnesLike")
def _(node):
    dtype = _numpy_dtype(node)
    return lambda value: np.ones(np.shape(value), dtype)


@kernel("OneHot")
def _(node):
    axis, dtype = node.attr("axis"), _numpy_dtype(node)

    def one_hot(indices, depth, on_value, off_value):
        if int(depth) < 0:
            raise _invalid(f"depth must be non-negative, got: {int(depth)}")
        indices = np.asarray(indices)
        flat = indices.ravel()
        out = np.full((flat.size, int(depth)), off_value, dtype)
        rows = np.flatnonzero((flat >= 0) & (flat < int(depth)))
        out[rows, flat[rows]] = on_value
        out = out.reshape(*indices.shape, int(depth))
        return out if axis in (-1, indices.ndim) else np.moveaxis(out, -1, axis)

    return one_hot


@kernel("Diag")
def _(node):
    dtype = _numpy_dtype(node)

    def diag(diagonal):
        shape = np.shape(diagonal)
        size = np.size(diagonal)
        out = np.zeros((size, size), dtype)
        np.fill_diagonal(out, np.ravel(diagonal))
        return out.reshape(shape + shape)

    return diag


@kernel("DiagPart")
def _(node):
    def diag_part(value):
        half = value.ndim // 2
        if value.ndim % 2 or value.ndim == 0 or value.shape[:half] != value.shape[half:]:
            raise _invalid(
                "The rank of the tensor should be even and positive, with equal halves, got shape "
                f"{shape_text(value.shape)}"
            )
        size = int(np.prod(value.shape[:half], dtype=np.int64))
        return np.diagonal(value.reshape(size, size)).reshape(value.shape[:half])

    return diag_part


@kernel("MatrixDiag")
def _(node):
    dtype = _numpy_dtype(node)

    def matrix_diag(diagonal):
        size = diagonal.shape[-1]
        out = np.zeros((*diagonal.shape, size), dtype)
        steps = np.arange(size)
        out[..., steps, steps] = diagonal
        return out

    return matrix_diag


@kernel("MatrixDiagPart")
def _(node):
    return lambda value: np.diagonal(_matrices(value), axis1=-2, axis2=-1)


@kernel("MatrixSetDiag")
def _(node):
    def matrix_set_diag(value, diagonal):
        size = min(_matrices(value).shape[-2:])
        if diagonal.shape != (*value.shape[:-2], size):
            raise _invalid(
                f"must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but received input shape: "
                f"{shape_text(value.shape)} and diagonal shape: {shape_text(diagonal.shape)}"
            )
        out = value.copy()
        steps = np.arange(size)
        out[..., steps, steps] = diagonal
        return out

    return matrix_set_diag


@kernel("MatrixBandPart")
def _(node):
    def matrix_band_part(value, num_lower, num_upper):
        rows, columns = _matrices(value).shape[-2:]
        distance = np.arange(rows)[:, None] - np.arange(columns)
        lower, upper = int(num_lower), int(num_upper)
        kept = ((lower < 0) | (distance <= lower)) & ((upper < 0) | (-distance <= upper))
        return np.where(kept, value, np.zeros((), value.dtype))

    return matrix_band_part


def _matrices(value: np.ndarray) -> np.ndarray:
    if np.ndim(value) < 2:
        raise _invalid(f"input must be at least 2-dim, received shape: {shape_text(np.shape(value))}")
    return value


# -- joining and splitting


@kernel("Concat")
def _(node):
    return lambda axis, *values: _concatenate(values, axis)


@kernel("ConcatV2")
def _(node):
    return lambda *values_and_axis: _concatenate(values_and_axis[:-1], values_and_axis[-1])


def _concatenate(values: Sequence[np.ndarray], axis: Any) -> np.ndarray:
    try:
        return np.concatenate(values, axis=int(axis))
    except ValueError:
        raise _invalid(_concat_message([np.shape(value) for value in values], int(axis))) from None


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
def _(node):
    return lambda *values: np.concatenate(values, axis=0)


@kernel("ConcatOffset")
def _(node):
    def concat_offset(axis, *shapes):
        position = _axis(axis, len(shapes[0]), "concat dimension")
        offsets, total = [], 0
        for i, shape in enumerate(shapes):
            different = [d for d in range(len(shape)) if d != position and shape[d] != shapes[0][d]]
            if len(shape) != len(shapes[0]) or different:
                raise _invalid(
                    f"All dimensions except {position} must match. Input {i} has shape {shape.tolist()} and doesn't "
                    f"match input 0 with shape {shapes[0].tolist()}."
                )
            offset = np.zeros_like(shape)
            offset[position] = total
            offsets.append(offset)
            total += shape[position]
        return offsets

    return concat_offset


@kernel("Pack")
def _(node):
    axis = node.attr("axis")

    def pack(*values):
        try:
            return np.stack(values, axis)
        except ValueError:
            first = np.shape(values[0])
            other = next((i for i, value in enumerate(values) if np.shape(value) != first), None)
            if other is None:
                raise
            raise _invalid(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} != "
                f"values[{other}].shape = {shape_text(np.shape(values[other]))}"
            ) from None

    return pack


@kernel("Unpack")
def _(node):
    axis, count = node.attr("axis"), node.attr("num")

    def unpack(value):
        position = _axis(axis, np.ndim(value))
        if value.shape[position] != count:
            raise _invalid(f"Input shape axis {position} must equal {count}, got shape {shape_text(value.shape)}")
        leading = (slice(None),) * position
        return [value[leading + (i, ...)] for i in range(count)]

    return unpack


@kernel("Split")
def _(node):
    count = node.attr("num_split")

    def split(axis, value):
        position = _axis(axis, np.ndim(value), "-input rank(-dims) <= split_dim < input rank: split_dim")
        size = value.shape[position]
        if size % count:
            raise _invalid(
                "Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{position} (size = {size}) and num_split {count}"
            )
        return _pieces(value, position, [size // count] * count)

    return split


@kernel("SplitV")
def _(node):
    def split_v(value, size_splits, axis):
        position = _axis(axis, np.ndim(value), "split_dim")
        sizes, total = size_splits.tolist(), value.shape[position]
        if sizes.count(-1) == 1:
            sizes[sizes.index(-1)] = total - sum(sizes) - 1
        if sum(sizes) != total or min(sizes, default=0) < 0:
            raise _invalid(
                "Determined shape must either match input shape along split_dim exactly if fully specified, or be less "
                f"than the size of the input along split_dim if not fully specified.  Got: {int(size_splits.sum())}"
            )
        return _pieces(value, position, sizes)

    return split_v


def _pieces(value: np.ndarray, axis: int, sizes: Sequence[int]) -> list[np.ndarray]:
    leading = (slice(None),) * axis
    ends = list(itertools.accumulate(sizes))
    return [value[leading + (slice(end - size, end),)] for size, end in zip(sizes, ends, strict=True)]


# -- slicing and padding


@kernel("Slice")
def _(node):
    def slice_(value, begin, size):
        shape = np.shape(value)
        begins, sizes = begin.tolist(), size.tolist()
        if not len(begins) == len(sizes) == len(shape):
            raise _invalid(
                "Expected begin and size arguments to be 1-D tensors of size "
                f"{len(shape)}, but got shapes {shape_text(begin.shape)} and {shape_text(size.shape)} instead."
            )
        index = []
        for i, (start, length, dim) in enumerate(zip(begins, sizes, shape, strict=True)):
            if not 0 <= start <= dim:
                raise _invalid(f"Expected begin[{i}] in [0, {dim}], but got {start}")
            length = dim - start if length == -1 else length
            if not 0 <= length <= dim - start:
                raise _invalid(f"Expected size[{i}] in [0, {dim - start}], but got {length}")
            index.append(slice(start, start + length))
        return value[tuple(index) + (...,)]

    return slice_


def _index_maker(node: Any) -> Callable[..., Any]:
    """The function from a shape and the three index tensors to the numpy index, with the node's masks."""
    masks = {mask: node.attr(mask) for mask in _MASKS}

    def make(shape, begin, end, strides):
        try:
            index = slice_index(len(shape), begin.tolist(), end.tolist(), strides.tolist(), **masks)
            sliced_shape(shape, index)
        except ValueError as error:
            raise _invalid(str(error)) from None
        return (*index, ...)

    return make


@kernel("StridedSlice")
def _(node):
    index = _index_maker(node)
    return lambda value, begin, end, strides: value[index(np.shape(value), begin, end, strides)]


@kernel("StridedSliceGrad")
def _(node):
    index, dtype = _index_maker(node), _numpy_dtype(node)

    def strided_slice_grad(shape, begin, end, strides, gradient):
        out = np.zeros(_dimensions(shape), dtype)
        out[index(out.shape, begin, end, strides)] = gradient
        return out

    return strided_slice_grad


@kernel("StridedSliceAssign")
def _(node):
    index = _index_maker(node)

    def strided_slice_assign(variable, begin, end, strides, value):
        with variable.lock:
            array = variable.writable()
            array[index(array.shape, begin, end, strides)] = value
        return variable

    return strided_slice_assign


@kernel("TensorStridedSliceUpdate")
def _(node):
    index = _index_maker(node)

    def tensor_strided_slice_update(tensor, begin, end, strides, value):
        out = np.array(tensor)
        out[index(out.shape, begin, end, strides)] = value
        return out

    return tensor_strided_slice_update


def _check_paddings(value: np.ndarray, paddings: np.ndarray) -> list[list[int]]:
    if np.shape(paddings) != (np.ndim(value), 2):
        raise _invalid(
            "The first dimension of paddings must be the rank of inputs and the second 2, got "
            f"{shape_text(np.shape(paddings))} for inputs of shape {shape_text(np.shape(value))}"
        )
    pairs = paddings.tolist()
    for before, after in pairs:
        if before < 0 or after < 0:
            raise _invalid(f"Paddings must be non-negative: {before} {after}")
    return pairs


@kernel("Pad", "PadV2")
def _(node):
    dtype = _numpy_dtype(node)
    zero = _zero_of(dtype)

    def pad(value, paddings, constant=zero):
        pairs = _check_paddings(value, paddings)
        shape = np.shape(value)
        out = np.full(
            [size + before + after for size, (before, after) in zip(shape, pairs, strict=True)], constant, dtype
        )
        out[tuple(slice(before, before + size) for size, (before, _) in zip(shape, pairs, strict=True))] = value
        return out

    return pad


def _mirror_sources(size: int, before: int, after: int, mode: str) -> np.ndarray:
    """For each position of a padded dimension the position that it copies."""
    limit = size - (mode == "REFLECT")
    if before > limit or after > limit:
        raise _invalid(
            f"paddings must be {'less than' if mode == 'REFLECT' else 'no greater than'} the dimension size: "
            f"{before}, {after} {'not less than' if mode == 'REFLECT' else 'greater than'} {size}"
        )
    return np.pad(np.arange(size), (before, after), "reflect" if mode == "REFLECT" else "symmetric")


@kernel("MirrorPad")
def _(node):
    mode = _text(node.attr("mode"))

    def mirror_pad(value, paddings):
        for axis, (before, after) in enumerate(_check_paddings(value, paddings)):
            if before or after:
                value = np.take(value, _mirror_sources(value.shape[axis], before, after, mode), axis)
        return value

    return mirror_pad


@kernel("MirrorPadGrad")
def _(node):
    mode = _text(node.attr("mode"))

    def mirror_pad_grad(gradient, paddings):
        for axis, (before, after) in enumerate(_check_paddings(gradient, paddings)):
            if before or after:
                sources = _mirror_sources(gradient.shape[axis] - before - after, before, after, mode)
                moved = np.moveaxis(gradient, axis, 0)
                out = np.zeros((moved.shape[0] - before - after, *moved.shape[1:]), gradient.dtype)
                scatter_rows(np.add, out, sources, moved)
                gradient = np.moveaxis(out, 0, axis)
        return gradient

    return mirror_pad_grad


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else value


@kernel("Tile")
def _(node):
    def tile(value, multiples):
        if np.shape(multiples) != (np.ndim(value),):
            raise _invalid(
                f"Expected multiples argument to be a vector of length {np.ndim(value)} but got length "
                f"{np.size(multiples)}"
            )
        counts = multiples.tolist()
        if any(count < 0 for count in counts):
            at = next(i for i, count in enumerate(counts) if count < 0)
            raise _invalid(f"Expected multiples[{at}] >= 0, but got {counts[at]}")
        return np.tile(value, counts)

    return tile


# -- rearranging


def _permutation(perm: np.ndarray, rank: int) -> list[int]:
    axes = perm.tolist()
    if len(axes) != rank:
        raise _invalid(f"transpose expects a vector of size {rank}. But input(1) is a vector of size {len(axes)}")
    axes = [axis % rank if -rank <= axis < rank else axis for axis in axes]
    for i in range(rank):
        if i not in axes:
            raise _invalid(f"{i} is missing from {{{','.join(map(str, axes))}}}.")
    return axes


@kernel("Transpose")
def _(node):
    return lambda value, perm: np.transpose(value, _permutation(perm, np.ndim(value)))


@kernel("ConjugateTranspose")
def _(node):
    return lambda value, perm: np.conj(np.transpose(value, _permutation(perm, np.ndim(value))))


@kernel("InvertPermutation")
def _(node):
    def invert_permutation(perm):
        size = len(perm)
        if size and (perm.min() < 0 or perm.max() >= size):
            bad = perm[(perm < 0) | (perm >= size)][0]
            raise _invalid(f"{bad} is not between 0 and {size}")
        out = np.full(size, -1, perm.dtype)
        out[perm] = np.arange(size, dtype=perm.dtype)
        if (out < 0).any():
            values, counts = np.unique(perm, return_counts=True)
            raise _invalid(f"{values[counts > 1][0]} is duplicated in the input.")
        return out

    return invert_permutation


@kernel("Reverse")
def _(node):
    return lambda value, dims: np.flip(value, tuple(np.flatnonzero(dims).tolist()))


@kernel("ReverseV2")
def _(node):
    def reverse(value, axis):
        rank = np.ndim(value)
        axes = [_axis(one, rank) for one in axis.tolist()]
        repeated = next((one for one in axes if axes.count(one) > 1), None)
        if repeated is not None:
            raise _invalid(f"axis {repeated} specified more than once.")
        return np.flip(value, tuple(axes))

    return reverse


@kernel("ReverseSequence")
def _(node):
    seq_dim, batch_dim = node.attr("seq_dim"), node.attr("batch_dim")

    def reverse_sequence(value, lengths):
        size = value.shape[seq_dim]
        if lengths.shape != (value.shape[batch_dim],):
            raise _invalid(
                f"Length of seq_lengths != input.dims({batch_dim}), ({lengths.size} vs. {value.shape[batch_dim]})"
            )
        for i, length in enumerate(lengths.tolist()):
            if not 0 <= length <= size:
                raise _invalid(f"seq_lengths({i}) must be in [0, input.dims({seq_dim})={size}], got {length}")
        steps = np.arange(size)
        sources = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
        moved = np.moveaxis(value, (batch_dim, seq_dim), (0, 1))
        return np.moveaxis(moved[np.arange(len(lengths))[:, None], sources], (0, 1), (batch_dim, seq_dim))

    return reverse_sequence


@kernel("Roll")
def _(node):
    def roll(value, shift, axis):
        if np.ndim(value) < 1:
            raise _invalid("input must be 1-D or higher")
        axes = tuple(_axis(one, np.ndim(value), "axis") for one in np.ravel(axis).tolist())
        return np.roll(value, tuple(np.ravel(shift).tolist()), axes)

    return roll


@kernel("SpaceToBatchND")
def _(node):
    return lambda value, block, paddings: _space_to_batch(value, block.tolist(), paddings.tolist())


@kernel("SpaceToBatch")
def _(node):
    size = node.attr("block_size")
    return lambda value, paddings: _space_to_batch(value, [size, size], paddings.tolist())


def _space_to_batch(value: np.ndarray, block: list[int], paddings: list[list[int]]) -> np.ndarray:
    spatial = len(block)
    rest = value.ndim - 1 - spatial
    padded = np.pad(value, [(0, 0), *map(tuple, paddings), *[(0, 0)] * rest])
    for i, size in enumerate(block):
        if padded.shape[i + 1] % size:
            raise _invalid(f"padded_shape[{i}]={padded.shape[i + 1]} is not divisible by block_shape[{i}]={size}")
    batch, sizes = value.shape[0], [padded.shape[i + 1] // size for i, size in enumerate(block)]
    split = padded.reshape(batch, *itertools.chain(*zip(sizes, block, strict=True)), *value.shape[1 + spatial :])
    blocks, outer = range(2, 2 + 2 * spatial, 2), range(1, 1 + 2 * spatial, 2)
    moved = split.transpose(*blocks, 0, *outer, *range(1 + 2 * spatial, split.ndim))
    return moved.reshape(batch * int(np.prod(block)), *sizes, *value.shape[1 + spatial :])


@kernel("BatchToSpaceND")
def _(node):
    return lambda value, block, crops: _batch_to_space(value, block.tolist(), crops.tolist())


@kernel("BatchToSpace")
def _(node):
    size = node.attr("block_size")
    return lambda value, crops: _batch_to_space(value, [size, size], crops.tolist())


def _batch_to_space(value: np.ndarray, block: list[int], crops: list[list[int]]) -> np.ndarray:
    spatial, blocks = len(block), int(np.prod(block))
    if value.shape[0] % blocks:
        raise _invalid(
            f"Input batch dimension ({value.shape[0]}) is not divisible by product of block sizes ({blocks})"
        )
    sizes, rest = value.shape[1 : 1 + spatial], value.shape[1 + spatial :]
    split = value.reshape(*block, value.shape[0] // blocks, *sizes, *rest)
    pairs = itertools.chain(*((spatial + 1 + i, i) for i in range(spatial)))
    moved = split.transpose(spatial, *pairs, *range(1 + 2 * spatial, split.ndim))
    whole = moved.reshape(-1, *(size * factor for size, factor in zip(sizes, block, strict=True)), *rest)
    index = [slice(before, size - after) for (before, after), size in zip(crops, whole.shape[1:], strict=False)]
    return whole[(slice(None),) + tuple(index)]


@kernel("SpaceToDepth")
def _(node):
    size, channels_first = node.attr("block_size"), _text(node.attr("data_format")) == "NCHW"

    def space_to_depth(value):
        value = np.moveaxis(value, 1, -1) if channels_first else value
        batch, height, width, depth = value.shape
        if height % size or width % size:
            raise _invalid(f"Image width {width} and height {height} should be divisible by block_size: {size}")
        split = value.reshape(batch, height // size, size, width // size, size, depth).transpose(0, 1, 3, 2, 4, 5)
        out = split.reshape(batch, height // size, width // size, size * size * depth)
        return np.moveaxis(out, -1, 1) if channels_first else out

    return space_to_depth


@kernel("DepthToSpace")
def _(node):
    size, channels_first = node.attr("block_size"), _text(node.attr("data_format")) == "NCHW"

    def depth_to_space(value):
        value = np.moveaxis(value, 1, -1) if channels_first else value
        batch, height, width, depth = value.shape
        if depth % (size * size):
            raise _invalid(f"Input depth dimension {depth} should be divisible by: {size * size}")
        split = value.reshape(batch, height, width, size, size, depth // size**2).transpose(0, 1, 3, 2, 4, 5)
        out = split.reshape(batch, height * size, width * size, depth // size**2)
        return np.moveaxis(out, -1, 1) if channels_first else out

    return depth_to_space


@kernel("ExtractImagePatches")
def _(node):
    (_, rows, columns, _), (_, row_step, column_step, _) = node.attr("ksizes"), node.attr("strides")
    (_, row_rate, column_rate, _), same = node.attr("rates"), _text(node.attr("padding")) == "SAME"
    row_span, column_span = (rows - 1) * row_rate + 1, (columns - 1) * column_rate + 1

    def extract_image_patches(images):
        batch, height, width, depth = images.shape
        if same:
            pads = [
                max((-(-size // step) - 1) * step + span - size, 0)
                for size, step, span in ((height, row_step, row_span), (width, column_step, column_span))
            ]
            halves = [(pad // 2, pad - pad // 2) for pad in pads]
            images = np.pad(images, [(0, 0), *halves, (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(images, (row_span, column_span), axis=(1, 2))
        windows = windows[:, ::row_step, ::column_step, :, ::row_rate, ::column_rate].transpose(0, 1, 2, 4, 5, 3)
        return windows.reshape(*windows.shape[:3], rows * columns * depth)

    return extract_image_patches


@kernel("Bitcast")
def _(node):
    source, target = np.dtype(_numpy_dtype(node)), np.dtype(_numpy_dtype(node, "type"))

    def bitcast(value):
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        if target.itemsize > source.itemsize:
            ratio = target.itemsize // source.itemsize
            if array.ndim == 0 or array.shape[-1] != ratio:
                raise _invalid(
                    f"Cannot bitcast from {node.attr('T').name} to {node.attr('type').name}: shape "
                    f"{shape_text(array.shape)}"
                )
            return array.view(target).reshape(array.shape[:-1])
        if target.itemsize < source.itemsize:
            return array[..., None].view(target)
        return array.view(target)

    return bitcast


# -- gathering and scattering


@kernel("Gather")
def _(node):
    return lambda params, indices: _gather(params, indices, 0, 0)


@kernel("GatherV2")
def _(node):
    batch_dims = node.attr("batch_dims")
    return lambda params, indices, axis: _gather(params, indices, int(axis), batch_dims)


def _gather(params: np.ndarray, indices: Any, axis: int, batch_dims: int) -> np.ndarray:
    if np.ndim(params) < 1:
        raise _invalid("params must be at least 1 dimensional")
    position = _axis(axis, np.ndim(params))
    indices = np.asarray(indices)
    batch_dims = batch_dims + indices.ndim if batch_dims < 0 else batch_dims
    check_indices("indices", indices, params.shape[position])
    if batch_dims == 0:
        out = np.take(params, indices, position)
        return out if isinstance(out, np.ndarray) else np.asarray(out, params.dtype)
    if params.shape[:batch_dims] != indices.shape[:batch_dims]:
        raise _invalid(
            f"params.shape[:{batch_dims}]: {shape_text(params.shape[:batch_dims])} should be equal to "
            f"indices.shape[:{batch_dims}]: {shape_text(indices.shape[:batch_dims])}"
        )
    # The gathered axis goes right behind the batch dimensions, so that one index array per batch does it.
    moved = np.moveaxis(params, position, batch_dims)
    grid = np.ogrid[tuple(slice(size) for size in indices.shape[:batch_dims])]
    extra = indices.ndim - batch_dims
    places = tuple(part.reshape(part.shape + (1,) * extra) for part in grid)
    gathered = moved[places + (indices,)]
    inner = position - batch_dims
    sources = range(batch_dims + extra, batch_dims + extra + inner)
    return np.moveaxis(gathered, tuple(sources), tuple(range(batch_dims, batch_dims + inner)))


@kernel("GatherNd")
def _(node):
    def gather_nd(params, indices):
        depth = indices.shape[-1]
        if depth > np.ndim(params):
            raise _invalid(
                f"index innermost dimension length must be <= params rank; saw: {depth} vs. {np.ndim(params)}"
            )
        rows = rows_of_nd_indices(indices, params.shape, "param shape")
        return params.reshape(-1, *params.shape[depth:])[rows] if params.size else _empty_rows(params, rows, depth)

    return gather_nd


def _empty_rows(params: np.ndarray, rows: np.ndarray, depth: int) -> np.ndarray:
    return np.zeros((*rows.shape, *params.shape[depth:]), params.dtype)


def scatter_nd(function: np.ufunc | None, out: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> None:
    """Combines `updates` into the slices of `out` that index vectors name, in place (None: the last one wins).

    Args:
      out: contiguous, [d0, d1, ...].
      indices: integers [..., depth].
      updates: [..., d_depth, ...].

    Raises:
      InvalidArgumentError: an index vector outside of `out`, or updates of another shape.
    """
    indices = np.asarray(indices)
    if indices.ndim == 0:
        raise _invalid("Indices must be at least a vector")
    depth = indices.shape[-1]
    if np.shape(updates) != indices.shape[:-1] + out.shape[depth:]:
        raise _invalid(
            f"Must have updates.shape = indices.shape[:-1] + shape[{depth}:], got updates.shape: "
            f"{shape_text(np.shape(updates))}, indices.shape: {shape_text(indices.shape)}, shape: "
            f"{shape_text(out.shape)}"
        )
    rows = rows_of_nd_indices(indices, out.shape, "shape").ravel()
    if not np.size(updates):
        return
    width = out.shape[depth:]
    flat = out.reshape(-1, *width)
    values = np.reshape(updates, (-1, *width))
    if function is None:
        flat[rows] = values
    else:
        scatter_rows(function, flat, rows, values)


@kernel("ScatterNd")
def _(node):
    dtype = _numpy_dtype(node)
    zero = _zero_of(dtype)

    def scatter_into_zeros(indices, updates, shape):
        out = np.full(_dimensions(shape), zero, dtype)
        scatter_nd(np.add, out, indices, updates)
        return out

    return scatter_into_zeros


def _tensor_scatter(function: np.ufunc | None) -> Callable[..., np.ndarray]:
    def tensor_scatter(tensor, indices, updates):
        out = np.array(tensor, order="C")
        scatter_nd(function, out, indices, updates)
        return out

    return tensor_scatter


@kernel("ScatterNdNonAliasingAdd", "TensorScatterAdd")
def _(node):
    return _tensor_scatter(np.add)


@kernel("TensorScatterSub")
def _(node):
    return _tensor_scatter(np.subtract)


@kernel("TensorScatterMax")
def _(node):
    return _tensor_scatter(np.maximum)


@kernel("TensorScatterMin")
def _(node):
    return _tensor_scatter(np.minimum)


@kernel("TensorScatterUpdate")
def _(node):
    return _tensor_scatter(None)


@kernel("DynamicStitch", "ParallelDynamicStitch")
def _(node):
    count, dtype = node.attr("N"), _numpy_dtype(node)

    def dynamic_stitch(*indices_and_data):
        indices, data = indices_and_data[:count], indices_and_data[count:]
        rest = np.shape(data[0])[np.ndim(indices[0]) :]
        for i, (index, values) in enumerate(zip(indices, data, strict=True)):
            if np.shape(values) != np.shape(index) + rest:
                raise _invalid(
                    f"Need data[{i}].shape to start with indices[{i}].shape and to continue like data[0], got "
                    f"data[{i}].shape = {shape_text(np.shape(values))}, indices[{i}].shape = "
                    f"{shape_text(np.shape(index))}"
                )
        size = max((int(np.max(index)) for index in indices if np.size(index)), default=-1) + 1
        out = np.full((size, *rest), _zero_of(dtype), dtype)
        for i, (index, values) in enumerate(zip(indices, data, strict=True)):
            if np.size(index):
                check_indices(f"indices[{i}]", np.asarray(index), size)
                out[np.ravel(index)] = np.reshape(values, (-1, *rest))
        return out

    return dynamic_stitch


@kernel("DynamicPartition")
def _(node):
    count = node.attr("num_partitions")

    def dynamic_partition(data, partitions):
        if np.shape(data)[: np.ndim(partitions)] != np.shape(partitions):
            raise _invalid(
                f"data.shape must start with partitions.shape, got data.shape = {shape_text(np.shape(data))}, "
                f"partitions.shape = {shape_text(np.shape(partitions))}"
            )
        check_indices("partitions", np.asarray(partitions), count)
        return [data[np.asarray(partitions == i)] for i in range(count)]

    return dynamic_partition


# -- choosing and searching


@kernel("Select")
def _(node):
    def select(condition, then, otherwise):
        shape, chosen = np.shape(then), np.shape(condition)
        if chosen == shape[:1] and len(shape) > 1:
            condition = condition.reshape(-1, *[1] * (len(shape) - 1))
        elif chosen not in ((), shape):
            raise _different_sizes(0, chosen, shape)
        if np.shape(otherwise) != shape:
            raise _different_sizes(2, np.shape(otherwise), shape)
        return np.where(condition, then, otherwise)

    return select


def _different_sizes(number: int, found: Sequence[int], wanted: Sequence[int]) -> errors.OpError:
    return _invalid(
        "Inputs to operation Select of type Select must have the same size and shape.  "
        f"Input {number}: {shape_text(found)} != input 1: {shape_text(wanted)}"
    )


@kernel("SelectV2")
def _(node):
    return lambda condition, then, otherwise: np.where(condition, then, otherwise)


@kernel("Where")
def _(node):
    return lambda condition: np.argwhere(condition).astype(np.int64)


@kernel("Unique")
def _(node):
    dtype = _numpy_dtype(node, "out_idx")

    def unique(values):
        if np.ndim(values) != 1:
            raise _invalid("unique expects a 1D vector.")
        return _unique(values, 0, dtype)[:2]

    return unique


@kernel("UniqueWithCounts")
def _(node):
    dtype = _numpy_dtype(node, "out_idx")
    return lambda values: _unique(values, 0, dtype)


@kernel("UniqueV2")
def _(node):
    dtype = _numpy_dtype(node, "out_idx")
    return lambda values, axis: _unique(values, int(axis[0]) if axis.size else 0, dtype)[:2]


@kernel("UniqueWithCountsV2")
def _(node):
    dtype = _numpy_dtype(node, "out_idx")
    return lambda values, axis: _unique(values, int(axis[0]) if axis.size else 0, dtype)


def _unique(values: np.ndarray, axis: int, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct slices in the order of their first occurrence, each slice's place among them, and counts."""
    # numpy sorts along an axis only what is not an object; a vector needs no axis.
    along = None if values.ndim == 1 else axis
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype)
    place[order] = np.arange(len(order))
    return np.take(values, first[order], axis), place[inverse.reshape(-1)], counts[order].astype(dtype)


@kernel("ListDiff")
def _(node):
    dtype = _numpy_dtype(node, "out_idx")

    def list_diff(values, excluded):
        unwanted = set(excluded.tolist())
        kept = np.array([i for i, value in enumerate(values.tolist()) if value not in unwanted], dtype)
        return values[kept], kept

    return list_diff


@kernel("LowerBound")
def _(node):
    return _search("left", _numpy_dtype(node, "out_type"))


@kernel("UpperBound")
def _(node):
    return _search("right", _numpy_dtype(node, "out_type"))


def _search(side: Any, dtype: Any) -> Callable[..., np.ndarray]:
    def search(sorted_inputs, values):
        if sorted_inputs.shape[:1] != values.shape[:1]:
            raise _invalid("Leading dim_size of both tensors must match.")
        rows = [np.searchsorted(row, wanted, side) for row, wanted in zip(sorted_inputs, values, strict=True)]
        return np.array(rows, dtype).reshape(values.shape)

    return search
