"""Kernels of the ops that make arrays or change how one is read: constants, placeholders, identities, shapes, bitcast.

Owns the arithmetic on one device's arrays. Does not own the ops' static shapes or gradients (`build.ops.array`,
`build.ops.array_grad`). Its neighbours: `slicing`, `gathering`, `joining`, `rearranging`, `diagonals`, `searching`.
"""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from dtf.run.devices.backends import storage_of
from dtf.run.kernels import DEFAULT, Function, KernelNode, kernel
from dtf.run.kernels.arguments import (
    dimensions,
    invalid,
    numpy_dtype,
    room,
    scalar,
    shape_of,
    shape_text,
    vector,
    zero_of,
)
from dtf.run.kernels.tensor_list import zeros_like_variant
from dtf.wire import dtypes, errors
from dtf.wire.strings import filled
from dtf.wire.tensor_shape import TensorShape

# -- constants, placeholders and what passes its input on


@kernel("Const", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    value, storage = node.attr("value"), storage_of(node.device)
    if storage is not None:
        value = storage.backend.copy_in(storage.number, value)
    return lambda: value


@kernel("Placeholder", "PlaceholderV2", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    dtype, shape = node.attr("dtype"), node.attr("shape")
    word = dtypes.runtime_name(dtype)
    message = f"You must feed a value for placeholder tensor '{node.name}' with dtype {word}"
    if shape is not None and shape.ndims:
        dims = ",".join("?" if dim is None else str(dim) for dim in shape.as_list())
        message += f" and shape [{dims}]"

    def placeholder() -> NoReturn:
        raise invalid(message)

    return placeholder


@kernel(
    "Identity", "RefIdentity", "Snapshot", "StopGradient", "PreventGradient", "PlaceholderWithDefault",
    "GuaranteeConst", device_type=DEFAULT,
)  # fmt: skip
def _(node: KernelNode) -> Function:
    return lambda value: value


@kernel("IdentityN", device_type=DEFAULT)
def _(node: KernelNode) -> Function:
    return lambda *values: values


@kernel("DeepCopy")
def _(node: KernelNode) -> Function:
    return lambda value: np.array(value, copy=True)


@kernel("CheckNumerics")
def _(node: KernelNode) -> Function:
    message = node.attr("message")
    message = message.decode() if isinstance(message, bytes) else message

    def check_numerics(value: np.ndarray) -> np.ndarray:
        if not np.isfinite(value).all():
            found = [word for word, test in (("Inf", np.isinf), ("NaN", np.isnan)) if test(value).any()]
            raise invalid(f"{message} : Tensor had {' and '.join(found)} values")
        return value

    return check_numerics


@kernel("EnsureShape")
def _(node: KernelNode) -> Function:
    expected = node.attr("shape")

    def ensure_shape(value: np.ndarray) -> np.ndarray:
        if not TensorShape(np.shape(value)).is_compatible_with(expected):
            wanted = "[" + ",".join("?" if dim is None else str(dim) for dim in expected.as_list()) + "]"
            raise invalid(
                f"Shape of tensor {node.name} {shape_text(np.shape(value))} is not compatible with expected shape "
                f"{wanted}."
            )
        return value

    return ensure_shape


# -- shapes


@kernel("Shape")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_type")
    return lambda value: np.array(shape_of(value), dtype)


@kernel("ShapeN")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_type")
    return lambda *values: [np.array(np.shape(value), dtype) for value in values]


@kernel("Size")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_type")
    return lambda value: dtype(math.prod(shape_of(value)))


@kernel("Rank")
def _(node: KernelNode) -> Function:
    return lambda value: np.int32(len(shape_of(value)))


@kernel("Reshape")
def _(node: KernelNode) -> Function:
    def reshape(tensor: np.ndarray, shape: np.ndarray) -> np.ndarray:
        if len(shape_of(shape)) > 1:
            raise invalid(f"sizes input must be 1-D, not {shape_text(np.shape(shape))}")
        dims = shape.reshape(-1).tolist()
        try:
            if dims and min(dims) < -1:  # numpy would take it for -1
                raise ValueError
            return tensor.reshape(dims) if type(tensor) is np.ndarray else np.reshape(tensor, dims)
        except ValueError:
            raise invalid(_reshape_message(np.size(tensor), dims)) from None

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
def _(node: KernelNode) -> Function:
    axes = tuple(node.attr("squeeze_dims"))

    def squeeze(value: np.ndarray) -> np.ndarray:
        shape = np.shape(value)
        for axis in axes:
            if not -len(shape) <= axis < len(shape):
                raise invalid(f"Tried to squeeze dim index {axis} for tensor with {len(shape)} dimensions.")
            if shape[axis] != 1:
                raise invalid(
                    f"Can not squeeze dim[{axis % len(shape)}], expected a dimension of 1, got {shape[axis]}"
                )
        return np.squeeze(value, axes or None)

    return squeeze


@kernel("ExpandDims")
def _(node: KernelNode) -> Function:
    def expand_dims(value: np.ndarray, axis: np.ndarray) -> np.ndarray:
        rank = np.ndim(value)
        position = int(np.reshape(axis, ()))
        if not -rank - 1 <= position <= rank:
            raise invalid(f"Tried to expand dim index {position} for tensor with {rank} dimensions.")
        return np.expand_dims(value, position)

    return expand_dims


@kernel("BroadcastArgs")
def _(node: KernelNode) -> Function:
    def broadcast_args(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        shapes = tuple(vector(left, "In[0]")), tuple(vector(right, "In[1]"))
        try:
            return np.array(np.broadcast_shapes(*shapes), left.dtype)
        except ValueError:
            raise _incompatible(left, right) from None

    return broadcast_args


@kernel("BroadcastGradientArgs")
def _(node: KernelNode) -> Function:
    def broadcast_gradient_args(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dtype = left.dtype
        a, b = vector(left, "In[0]"), vector(right, "In[1]")
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
    return invalid(f"Incompatible shapes: {shape_text(left.tolist())} vs. {shape_text(right.tolist())}")


@kernel("BroadcastTo")
def _(node: KernelNode) -> Function:
    def broadcast_to(value: np.ndarray, shape: np.ndarray) -> np.ndarray:
        dims = dimensions(shape)
        room(dims, value.dtype)
        own = shape_of(value)
        own = (1,) * (len(dims) - len(own)) + own
        wider = [axis for axis, (old, new) in enumerate(zip(own, dims, strict=False)) if old != new]
        if len(own) == len(dims) and len(wider) == 1 and own[wider[0]] == 1:
            return np.repeat(np.reshape(value, own), dims[wider[0]], wider[0])  # a third of the time
        try:
            if value.ndim > len(dims):
                raise ValueError
            result = np.empty(dims, value.dtype)
            result[...] = value
            return result
        except ValueError:
            raise invalid(f"Incompatible shapes: {shape_text(np.shape(value))} vs. {shape_text(dims)}") from None

    return broadcast_to


# -- making arrays


@kernel("Fill")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)

    def fill(dims: np.ndarray, value: np.ndarray) -> np.ndarray:
        if np.ndim(dims) > 1:
            raise invalid(f"dims must represent a vector, got shape {shape_text(np.shape(dims))}")
        if np.ndim(value) > 1 or np.size(value) != 1:
            raise invalid(f"value must represent a scalar, got shape {shape_text(np.shape(value))}")
        return np.full(room(dimensions(np.reshape(dims, -1)), dtype), value, dtype)

    return fill


@kernel("Empty")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "dtype")
    return lambda shape: np.full(room(dimensions(shape), dtype), zero_of(dtype), dtype)


@kernel("ZerosLike")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)
    if node.attr("T") == dtypes.variant:
        return zeros_like_variant
    if dtype == np.object_:
        return lambda value: np.full(np.shape(value), b"", object)
    return lambda value: np.zeros(np.shape(value), dtype)


@kernel("OnesLike")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)
    return lambda value: np.ones(np.shape(value), dtype)


@kernel("OneHot")
def _(node: KernelNode) -> Function:
    axis, dtype = node.attr("axis"), numpy_dtype(node)

    def one_hot(indices: np.ndarray, depth: np.ndarray, on_value: np.ndarray, off_value: np.ndarray) -> np.ndarray:
        count = scalar(depth, "depth")
        on_value, off_value = scalar(on_value, "on_value"), scalar(off_value, "off_value")
        if count < 0:
            raise invalid(f"depth must be non-negative, got: {count}")
        indices = np.asarray(indices)
        flat = indices.ravel()
        out = filled(room((flat.size, count), dtype), off_value, dtype)
        rows = np.flatnonzero((flat >= 0) & (flat < count))
        out[rows, flat[rows]] = on_value
        out = out.reshape(*indices.shape, count)
        return out if axis in (-1, indices.ndim) else np.moveaxis(out, -1, axis)

    return one_hot


@kernel("Bitcast")
def _(node: KernelNode) -> Function:
    source, target = np.dtype(numpy_dtype(node)), np.dtype(numpy_dtype(node, "type"))

    def bitcast(value: np.ndarray) -> np.ndarray:
        array: np.ndarray = np.ascontiguousarray(value).reshape(np.shape(value))
        if target.itemsize > source.itemsize:
            ratio = target.itemsize // source.itemsize
            if array.ndim == 0 or array.shape[-1] != ratio:
                raise invalid(
                    f"Cannot bitcast from {node.attr('T').name} to {node.attr('type').name}: shape "
                    f"{shape_text(array.shape)}"
                )
            return array.view(target).reshape(array.shape[:-1])
        if target.itemsize < source.itemsize:
            return array[..., None].view(target)
        return array.view(target)

    return bitcast
