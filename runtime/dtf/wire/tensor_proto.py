"""Arrays and Python values as TensorProto, and back, in each layout that TensorFlow writes."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtf.wire import dtypes, limits
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import resource_handle_pb2, tensor_pb2, tensor_shape_pb2
from dtf.wire.protobuf_bytes import Buffer, malformed, parse_message, read_varint
from dtf.wire.python_values import ResourceHandle, object_array, value_and_dtype, values_to_array
from dtf.wire.tensor_shape import as_shape, is_possible
from dtf.wire.variants import is_variant, variant_of

__all__ = [
    "aligned_array", "array_over", "array_to_proto", "decoded_dtype", "element_count", "little_endian",
    "make_ndarray", "make_tensor_proto", "proto_to_array", "repeated_bytes",
]  # fmt: skip


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False
) -> tensor_pb2.TensorProto:
    """The TensorProto of Python values, as `tf.make_tensor_proto` makes it.

    Args:
      values: a scalar, nested sequences of scalars, a numpy array or scalar, or a TensorProto (returned as it is).
      dtype: the element type; by default that of a numpy value, else float32, int32 (int64 where the numbers need
        it), complex128, bool or string.
      shape: the shape; where it has more elements than `values`, the last value stands for the rest.
      verify_shape: raise where `values` does not have exactly the shape `shape`.

    Raises:
      TypeError: `values` is of no type, or not of type `dtype`, or (verify_shape) not of the shape.
      ValueError: `values` is None, is a ragged sequence, or has more elements than `shape`.
    """
    if hasattr(values, "tensor_content"):
        return values
    array, tensor_dtype = values_to_array(values, dtype)
    sizes = array.shape if shape is None else _known_sizes(shape)
    if verify_shape and sizes != array.shape:
        raise TypeError(f"Expected Tensor's shape: {sizes}, but got {array.shape}.")
    count = math.prod(sizes)
    if array.size > count:
        raise ValueError(f"Too many elements provided. Needed at most {count}, but received {array.size}")
    if array.size == 0 and count > 0:
        # Without any value TensorFlow's fast decoder would leave the memory as it is.
        array = np.zeros(1, array.dtype) if tensor_dtype != dtypes.string else np.array([b""], object)
    proto = _empty_proto(tensor_dtype, sizes)
    if array.size == count > 1 and tensor_dtype.size and tensor_dtype not in _WRITTEN_OUT:
        proto.tensor_content = little_endian(array).tobytes()
    else:
        _store_values(proto, array, tensor_dtype)
    return proto



def make_ndarray(tensor: Any) -> np.ndarray:
    """The numpy array of a TensorProto (ours or TensorFlow's); writable, the caller's own.

    Raises:
      InvalidArgumentError: the message contradicts itself.
    """
    value = proto_to_array(tensor)
    if not isinstance(value, np.ndarray):
        boxed = np.empty((), object)
        boxed[()] = value
        return boxed
    return value if value.flags.writeable else value.copy()



def array_to_proto(array: Any, dtype: Any = None, as_content: bool = True) -> tensor_pb2.TensorProto:
    """The TensorProto of an array: dtype, shape, then tensor_content (strings and handles in their own fields).

    Args:
      array: an array, numpy scalar or ResourceHandle. Object arrays hold bytes, ResourceHandles or variants.
      dtype: the element type where numpy's does not tell it (quantized types, empty object arrays).
      as_content: with False numbers are in the field of their type, too.
    """
    array, tensor_dtype = value_and_dtype(array, dtype)
    proto = _empty_proto(tensor_dtype, array.shape)
    if tensor_dtype.size and as_content:
        proto.tensor_content = little_endian(array).tobytes()
    else:
        _store_values(proto, array, tensor_dtype)
    return proto



def proto_to_array(proto: Any) -> Any:
    """The value of a TensorProto: an array (read-only where it shares the message's memory), or a ResourceHandle.

    Every layout is read: tensor_content, or the *_val field of the type, where the last value stands for all that
    are missing and no value at all means zeros.

    Raises:
      InvalidArgumentError: the message contradicts itself.
      ResourceExhaustedError: the values that are missing take more than `limits.REPEATED_BYTES`.
    """
    dtype = decoded_dtype(proto.dtype)
    if proto.tensor_shape.unknown_rank:
        raise malformed("its shape is unknown")
    sizes = tuple(dim.size for dim in proto.tensor_shape.dim)
    count = element_count(sizes)
    content = proto.tensor_content
    if content:
        if dtype is dtypes.string:
            return object_array(_split_strings(content, count), sizes)
        if dtype in (dtypes.resource, dtypes.variant):
            resource, variant = resource_handle_pb2.ResourceHandleProto, tensor_pb2.VariantTensorDataProto
            message = resource if dtype is dtypes.resource else variant
            elements = [parse_message(message, memoryview(each)) for each in _split_strings(content, count)]
            return _object_value(elements, dtype, sizes, count)
        return array_over(content, dtype, sizes, count)
    values = _load_values(proto, dtype)
    if len(values) > count:
        raise malformed(f"{len(values)} values for shape {list(sizes)}")
    if len(values) < count:
        limits.REPEATED_BYTES.check(
            (count - len(values)) * (dtype.size or _POINTER_BYTES),
            f"Cannot decode a tensor of shape {list(sizes)} with {len(values)} values: what is missing",
        )
    if not dtype.size:
        return _object_value(values, dtype, sizes, count)
    array: np.ndarray
    if len(values) == count:
        array = values
    elif len(values) <= 1 and count * dtype.size >= _SHARED_FROM_BYTES:
        # One element stands for all of them in memory, too: few bytes of a message take few bytes here.
        return np.broadcast_to(values[0] if len(values) else np.zeros((), dtype.as_numpy_dtype), sizes)
    elif len(values) == 0:
        array = np.zeros(count, dtype.as_numpy_dtype)
    else:
        array = np.empty(count, dtype.as_numpy_dtype)
        array[: len(values)] = values
        array[len(values) :] = values[-1]
    return array.reshape(sizes)



def variant_to_proto(value: Any) -> tensor_pb2.VariantTensorDataProto:
    """The message of an element of a variant tensor, which may be one already."""
    return value.to_proto(array_to_proto) if is_variant(value) else value


def variant_from_proto(proto: tensor_pb2.VariantTensorDataProto) -> Any:
    """The element of such a message; the message itself for what is not known here."""
    return variant_of(proto, proto_to_array)


def repeated_bytes(proto: Any) -> int:
    """How many bytes the value of a TensorProto takes beyond what the message says: those of repeated elements.

    Raises:
      InvalidArgumentError: the message contradicts itself.
    """
    count = 0 if proto.tensor_shape.unknown_rank else element_count(dim.size for dim in proto.tensor_shape.dim)
    if count <= _LEAST_REPEATED:
        return 0
    dtype = decoded_dtype(proto.dtype)
    if dtype is dtypes.string:
        stated = len(proto.string_val)
    elif dtype in (dtypes.resource, dtypes.variant):
        stated = len(proto.resource_handle_val) or len(proto.variant_val)
    else:
        stated = len(getattr(proto, _value_field(dtype)[0])) // (2 if dtype.is_complex else 1)
    if not stated and proto.tensor_content:  # looked at last: this copies it
        return 0
    return max(0, count - stated) * (dtype.size or _POINTER_BYTES)



# The numeric types whose constants TensorFlow writes element by element, so that they print alike.
_WRITTEN_OUT = frozenset(
    {
        dtypes.bool,
        dtypes.uint16,
        dtypes.complex64,
        dtypes.complex128,
        dtypes.int4,
        dtypes.uint4,
        dtypes.int2,
        dtypes.uint2,
    }
)



def _known_sizes(shape: Any) -> tuple[int, ...]:
    return tuple(operator.index(size) for size in as_shape(shape).as_list())  # type: ignore[arg-type]



def _empty_proto(dtype: DType, sizes: Sequence[int]) -> Any:
    dim = tensor_shape_pb2.TensorShapeProto.Dim
    shape = tensor_shape_pb2.TensorShapeProto(dim=[dim(size=size) for size in sizes])
    enum: Any = dtype.as_datatype_enum
    return tensor_pb2.TensorProto(dtype=enum, tensor_shape=shape)



def _store_values(proto: Any, array: np.ndarray, dtype: DType) -> None:
    flat = array.reshape(-1)
    if dtype is dtypes.string:
        proto.string_val.extend(flat.tolist())
    elif dtype is dtypes.resource:
        proto.resource_handle_val.extend(_handle_proto(each) for each in flat)
    elif dtype is dtypes.variant:
        proto.variant_val.extend(map(variant_to_proto, flat))
    else:
        field, stored = _value_field(dtype)
        if field == "float8_val":
            proto.float8_val = flat.tobytes()
        elif stored is None:
            getattr(proto, field).extend(flat.astype(np.int64).tolist())
        else:
            getattr(proto, field).extend(np.ascontiguousarray(flat).view(stored).tolist())



def _load_values(proto: Any, dtype: DType) -> Any:
    """The *_val field of the type: an array, or the repeated field itself for strings, handles and variants."""
    if dtype is dtypes.string:
        return proto.string_val
    if dtype is dtypes.resource:
        return proto.resource_handle_val
    if dtype is dtypes.variant:
        return proto.variant_val
    field, stored = _value_field(dtype)
    numpy_dtype = dtype.as_numpy_dtype
    if field == "float8_val":
        return np.frombuffer(proto.float8_val, numpy_dtype)
    values = getattr(proto, field)
    if stored is None:
        return np.array(values, np.int64).astype(numpy_dtype)
    if stored is np.uint16:
        return np.array(values, np.int64).astype(np.uint16).view(numpy_dtype)
    if dtype.is_complex and len(values) % 2:
        raise malformed("an odd number of real and imaginary parts")
    return np.array(values, stored).view(numpy_dtype)



@functools.cache
def _value_field(dtype: DType) -> tuple[str, Any]:
    """The repeated field of a numeric type, and the numpy type to see its elements as (None: convert them)."""
    if dtype.name.startswith("float8"):
        return "float8_val", None
    return {
        "float32": ("float_val", np.float32),
        "float64": ("double_val", np.float64),
        "float16": ("half_val", np.uint16),
        "bfloat16": ("half_val", np.uint16),
        "complex64": ("scomplex_val", np.float32),
        "complex128": ("dcomplex_val", np.float64),
        "int64": ("int64_val", np.int64),
        "bool": ("bool_val", np.bool_),
        "uint32": ("uint32_val", np.uint32),
        "uint64": ("uint64_val", np.uint64),
    }.get(dtype.name, ("int_val", None))



def _handle_proto(handle: Any) -> Any:
    if not isinstance(handle, ResourceHandle):
        return handle
    known = resource_handle_pb2.ResourceHandleProto.DtypeAndShape
    return resource_handle_pb2.ResourceHandleProto(
        device=handle.device,
        container=handle.container,
        name=handle.name,
        hash_code=handle.hash_code,
        maybe_type_name=handle.type_name,
        dtypes_and_shapes=[
            known(dtype=int(dtype), shape=as_shape(shape).as_proto())  # type: ignore[arg-type]
            for dtype, shape in handle.dtypes_and_shapes
        ],
    )



def _handle_of(proto: Any) -> ResourceHandle:
    known = []
    for each in proto.dtypes_and_shapes:
        try:
            shape = as_shape(each.shape)
        except ValueError as error:
            raise malformed(f"the shape of a resource: {error}") from None
        known.append((decoded_dtype(each.dtype), tuple(shape.as_list()) if shape else None))
    return ResourceHandle(
        proto.device, proto.container, proto.name, proto.maybe_type_name, tuple(known), proto.hash_code
    )



def _object_value(values: Any, dtype: DType, sizes: tuple[int, ...], count: int) -> Any:
    if dtype is dtypes.resource:
        elements: list[Any] = [_handle_of(each) for each in values]
    elif dtype is dtypes.variant:
        elements = [variant_from_proto(each) for each in values]
    else:
        elements = list(values)
    if len(elements) < count:
        if not elements and dtype is not dtypes.string:
            raise malformed(f"no values of type {dtype.name}")
        if len(elements) <= 1 and count * _POINTER_BYTES >= _SHARED_FROM_BYTES and sizes:
            return np.broadcast_to(object_array(elements or [b""], (1,)).reshape(()), sizes)
        elements += [elements[-1] if elements else b""] * (count - len(elements))
    if dtype is not dtypes.string and sizes == ():
        return elements[0]
    return object_array(elements, sizes)



def _split_strings(content: Buffer, count: int) -> list[bytes]:
    view, at = memoryview(content), 0
    lengths = []
    for _ in range(count):
        length, at = read_varint(view, at)
        lengths.append(length)
    if at + sum(lengths) != len(view):
        raise malformed(f"{len(view) - at} bytes where the lengths of its strings add up to {sum(lengths)}")
    strings = []
    for length in lengths:
        strings.append(bytes(view[at : at + length]))
        at += length
    return strings



def decoded_dtype(enum: int) -> DType:
    try:
        return as_dtype(enum).base_dtype
    except TypeError:
        raise malformed(f"unknown element type {enum}") from None



def element_count(sizes: Iterable[int]) -> int:
    sizes = tuple(sizes)
    if not is_possible(sizes):
        raise malformed(f"a tensor cannot have the shape {list(sizes)}")
    return math.prod(sizes)



def array_over(content: Buffer, dtype: DType, sizes: tuple[int, ...], count: int) -> np.ndarray:
    if not dtype.size or len(content) != count * dtype.size:
        raise malformed(f"{len(content)} bytes of content for type {dtype.name} and shape {list(sizes)}")
    return aligned_array(np.frombuffer(content, dtype.as_numpy_dtype)).reshape(sizes)



def aligned_array(array: np.ndarray) -> np.ndarray:
    if not array.flags.aligned:
        array = array.copy()  # every later use would be slower than this copy
        array.flags.writeable = False
    return array



# Below this size protobuf's C code is faster than ours in Python; from it on tensors are read in place, and are laid
# out so that their elements are aligned in the message.
_POINTER_BYTES = 8

_SHARED_FROM_BYTES = 1 << 24

_LEAST_REPEATED = 1024
"""So few elements are not counted."""



def little_endian(array: np.ndarray) -> np.ndarray:
    """The array row-major and little-endian; itself where it is both."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        array = np.array(array, order="C")
    return array
