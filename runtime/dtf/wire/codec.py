"""Tensors and attributes between Python, protobuf and bytes.

Three directions, each with the layouts that TensorFlow writes and reads:

    python values <-> TensorProto    make_tensor_proto, make_ndarray    (constants, attributes: reads well as text)
    arrays        <-> TensorProto    array_to_proto, proto_to_array     (feeds, fetches: no loops over elements)
    arrays        <-> bytes          encode_*, decode_*                 (RecvTensor: no protobuf on tensor bytes)

and AttrValue <-> Python values: attr_to_python, python_to_attr.

Numbers are row-major and little-endian. Strings are object arrays of `bytes`, also when scalar. A scalar of type
resource is a `ResourceHandle`, one of type variant a `TensorList` or `Optional`, or the protobuf message of anything
else; arrays of them are object arrays. What is decoded may share the memory of the message and is read-only, but for
make_ndarray, whose result is the caller's own.

This module does not convert between graphs and messages (graph, importer), nor send anything (rpc).
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dtf.wire import dtypes, errors, limits
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.pb import attr_value_pb2, resource_handle_pb2, tensor_pb2, tensor_shape_pb2
from dtf.wire.tensor_shape import Dimension, TensorShape, as_shape, is_possible
from dtf.wire.variants import is_variant, variant_of

Buffer = Any  # bytes or memoryview


@dataclass(frozen=True)
class ResourceHandle:
    """The value of a tensor of dtype resource: which object, on which device.

    dtypes_and_shapes: one (DType, shape tuple or None) per tensor that the resource holds; empty when unknown.
    hash_code: of the type, as TensorFlow's own handles carry it; passed on unchanged.
    """

    device: str
    container: str
    name: str
    type_name: str
    dtypes_and_shapes: tuple[tuple[DType, tuple[int | None, ...] | None], ...] = ()
    hash_code: int = 0


class ReceivedTensor(NamedTuple):
    """What a RecvTensorResponse says. `value` is None when the tensor is dead."""

    value: Any
    is_dead: bool
    send_start_micros: int
    require_ack: bool


# ---- Python values <-> TensorProto


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
        raise ValueError(f"Too many elements provided. Takes at most {count}, but got {array.size}.")
    if array.size == 0 and count > 0:
        # Without any value TensorFlow's fast decoder would leave the memory as it is.
        array = np.zeros(1, array.dtype) if tensor_dtype != dtypes.string else np.array([b""], object)
    proto = _empty_proto(tensor_dtype, sizes)
    if array.size == count > 1 and tensor_dtype.size and tensor_dtype not in _WRITTEN_OUT:
        proto.tensor_content = _little_endian(array).tobytes()
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


def values_to_array(values: Any, dtype: Any = None) -> tuple[np.ndarray, DType]:
    """The array and the element type of Python values; see make_tensor_proto for the rules and errors."""
    if values is None:
        raise ValueError("None values not supported.")
    wanted = None if dtype is None else as_dtype(dtype).base_dtype
    if isinstance(values, ResourceHandle) or hasattr(values, "maybe_type_name"):
        return _object_array([values], ()), dtypes.resource
    if is_variant(values) or isinstance(values, tensor_pb2.VariantTensorDataProto):
        return _object_array([values], ()), dtypes.variant
    if isinstance(values, TensorShape):
        values = values.as_list()
    elif not isinstance(values, (np.ndarray, np.generic)) and hasattr(values, "__array__"):
        values = np.asarray(values)
    # An array of one of numpy's own strings would have lost its trailing zeros; they are Python's strings, too.
    if isinstance(values, (np.ndarray, np.generic)) and not isinstance(values, (bytes, str)):
        return _from_numpy(np.asarray(values), wanted)
    return _from_python(values, wanted)


# ---- arrays <-> TensorProto


def array_to_proto(array: Any, dtype: Any = None, as_content: bool = True) -> tensor_pb2.TensorProto:
    """The TensorProto of an array: dtype, shape, then tensor_content (strings and handles in their own fields).

    Args:
      array: an array, numpy scalar or ResourceHandle. Object arrays hold bytes, ResourceHandles or variants.
      dtype: the element type where numpy's does not tell it (quantized types, empty object arrays).
      as_content: with False numbers are in the field of their type, too.
    """
    array, tensor_dtype = _value_and_dtype(array, dtype)
    proto = _empty_proto(tensor_dtype, array.shape)
    if tensor_dtype.size and as_content:
        proto.tensor_content = _little_endian(array).tobytes()
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
    dtype = _decoded_dtype(proto.dtype)
    if proto.tensor_shape.unknown_rank:
        raise _malformed("its shape is unknown")
    sizes = tuple(dim.size for dim in proto.tensor_shape.dim)
    count = _count(sizes)
    content = proto.tensor_content
    if content:
        if dtype is dtypes.string:
            return _object_array(_split_strings(content, count), sizes)
        if dtype in (dtypes.resource, dtypes.variant):
            resource, variant = resource_handle_pb2.ResourceHandleProto, tensor_pb2.VariantTensorDataProto
            message = resource if dtype is dtypes.resource else variant
            elements = [_parse(message, memoryview(each)) for each in _split_strings(content, count)]
            return _object_value(elements, dtype, sizes, count)
        return _array_over(content, dtype, sizes, count)
    values = _load_values(proto, dtype)
    if len(values) > count:
        raise _malformed(f"{len(values)} values for shape {list(sizes)}")
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


def repeated_bytes(proto: Any) -> int:
    """How many bytes the value of a TensorProto takes beyond what the message says: those of repeated elements.

    Raises:
      InvalidArgumentError: the message contradicts itself.
    """
    count = 0 if proto.tensor_shape.unknown_rank else _count(dim.size for dim in proto.tensor_shape.dim)
    if count <= _LEAST_REPEATED:
        return 0
    dtype = _decoded_dtype(proto.dtype)
    if dtype is dtypes.string:
        stated = len(proto.string_val)
    elif dtype in (dtypes.resource, dtypes.variant):
        stated = len(proto.resource_handle_val) or len(proto.variant_val)
    else:
        stated = len(getattr(proto, _value_field(dtype)[0])) // (2 if dtype.is_complex else 1)
    if not stated and proto.tensor_content:  # looked at last: this copies it
        return 0
    return max(0, count - stated) * (dtype.size or _POINTER_BYTES)


# ---- arrays <-> bytes


def encode_tensor(array: Any, dtype: Any = None, position: int | None = None) -> list[Buffer]:
    """The serialized TensorProto of an array, in pieces; a large array's piece is its own memory, not a copy.

    Where `position`, the offset of the TensorProto in the whole message, is given, a large array's elements are aligned
    there.
    """
    array, tensor_dtype = _value_and_dtype(array, dtype)
    if not tensor_dtype.size:
        return [array_to_proto(array, tensor_dtype).SerializeToString()]
    array = _little_endian(array)
    head = _tensor_head(tensor_dtype.as_datatype_enum, array.shape, array.nbytes)
    if position is not None and array.nbytes >= BY_HAND_FROM_BYTES:
        head = _padding(-(position + len(head)) % _ALIGNMENT, b"\x18") + head
    return [head, _memory(array)] if array.nbytes else [head]


def encode_recv_tensor_response(
    array: Any,
    dtype: Any = None,
    *,
    is_dead: bool = False,
    send_start_micros: int = 0,
    require_ack: bool = False,
) -> list[Buffer]:
    """The serialized RecvTensorResponse, in pieces, in the order that TensorFlow's fast decoder takes.

    A dead tensor has no value: `array` is not looked at.
    """
    pieces = encode_tensor(_NO_VALUE if is_dead else array, None if is_dead else dtype)
    tensor_bytes = sum(map(len, pieces))
    head = b"\x18" + _varint(send_start_micros) if send_start_micros else b""
    if require_ack:
        head += b"\x28\x01"
    tail = b"\x0a" + _varint(tensor_bytes) + pieces[0]
    if is_dead:
        head = b"\x10\x01" + head
    elif tensor_bytes < BY_HAND_FROM_BYTES:
        return [b"".join((head, tail, *pieces[1:]))]
    else:
        head = _padding(-(len(head) + len(tail)) % _ALIGNMENT) + head
    return [head + tail, *pieces[1:]]


def decode_tensor(data: Buffer) -> Any:
    """The value of a serialized TensorProto, as proto_to_array gives it; a large array is a view of `data`.

    Raises:
      InvalidArgumentError: `data` is not a TensorProto, or contradicts itself.
    """
    view = memoryview(data)
    found = _scan_tensor(view) if len(view) >= BY_HAND_FROM_BYTES else None
    if found is None:
        return proto_to_array(_parse(tensor_pb2.TensorProto, view))
    dtype, sizes, content = found
    return _array_over(content, dtype, sizes, _count(sizes))


def decode_recv_tensor_response(data: Buffer) -> ReceivedTensor:
    """What a serialized RecvTensorResponse says; transport_options are not looked at.

    Raises:
      InvalidArgumentError: `data` is not a RecvTensorResponse, or its tensor contradicts itself.
    """
    view = memoryview(data)
    if len(view) < BY_HAND_FROM_BYTES:
        return _decode_any_response(view)
    tensor: memoryview | None = None
    numbers = {2: 0, 3: 0, 5: 0}
    for field, value, _ in message_fields(view):
        if field == 1:
            if tensor is not None or isinstance(value, int):
                return _decode_any_response(view)
            tensor = value
        elif isinstance(value, int):
            numbers[field] = value
    if tensor is None:
        return _decode_any_response(view)
    is_dead = bool(numbers[2])
    return ReceivedTensor(None if is_dead else decode_tensor(tensor), is_dead, numbers[3], bool(numbers[5]))


def plain_response_value(data: Buffer) -> np.ndarray | None:
    """The array in a RecvTensorResponse that is laid out as `encode_recv_tensor_response` does it; a view of `data`.

    None for every other message, be it right or wrong: `decode_recv_tensor_response` knows. What it finds in front of
    the elements is the same at every step, and looked up.
    """
    head = _PLAIN_HEAD.match(data)
    if head is None:
        return None
    content = _PLAIN_CONTENT.match(data, head.end() + head[2][0])
    if content is None:
        return None
    begin = content.end()
    known = _plain_tensor(bytes(data[head.start(1) : begin]))
    if known is None or begin + known[3] != len(data):
        return None
    numpy_dtype, sizes, count, _ = known
    return _aligned(np.frombuffer(data, numpy_dtype, count, begin)).reshape(sizes)


def length_delimited(field: int, size: int) -> bytes:
    """What stands before the `size` bytes of a string, bytes or message field."""
    return _varint(field << 3 | 2) + _varint(size)


def message_fields(view: memoryview) -> Iterator[tuple[int, Any, int]]:
    """(field number, int of a varint field | memoryview of any other, where it ends) for each field of a message.

    Raises:
      InvalidArgumentError: it is cut short, or no message.
    """
    at = 0
    while at < len(view):
        tag, at = _read_varint(view, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = _read_varint(view, at)
            yield tag >> 3, value, at
            continue
        if kind == 2:
            length, at = _read_varint(view, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise _malformed(f"field {tag >> 3} is of an unknown kind")
        if at + length > len(view):
            raise _malformed("it is cut short")
        value = view[at : at + length]
        at += length
        yield tag >> 3, value, at


# ---- AttrValue <-> Python values


def attr_to_python(attr: Any) -> Any:
    """The Python value of an AttrValue: bytes, int, float, bool, DType, TensorShape, array, NameAttrList, or a list.

    A placeholder gives its name (str); an AttrValue without a value, and DT_INVALID, give None.
    """
    kind = attr.WhichOneof("value")
    if kind is None:
        return None
    if kind == "list":
        for field, values in attr.list.ListFields():
            return [_attr_element(field.name, each) for each in values]
        return []
    return _attr_element(kind, getattr(attr, kind))


def python_to_attr(value: Any, attr_type: str | None = None) -> attr_value_pb2.AttrValue:
    """The AttrValue of a Python value.

    Args:
      value: what attr_to_python gives, and what converts to it: names of dtypes, lists for shapes, str, numpy scalars,
        values of tensors, the name of a function. An AttrValue is returned as it is.
      attr_type: the type as an OpDef names it: "int", "float", "bool", "string", "type", "shape", "tensor", "func" or
        "list(...)" of one; by default the type of `value`.

    Raises:
      TypeError: `value` is not of type `attr_type`.
    """
    if hasattr(value, "WhichOneof") and hasattr(value, "placeholder"):
        return value
    attr = attr_value_pb2.AttrValue()
    kind = attr_type or _guess_attr_type(value)
    if kind.startswith("list("):
        element = kind[5:-1]
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError(f"Expected {kind}, got {value!r} of type {type(value).__name__!r} instead.")
        attr.list.SetInParent()
        field = getattr(attr.list, _ATTR_FIELD[element])
        field.extend(_attr_value(each, element) for each in value)
        return attr
    converted = _attr_value(value, kind)
    if kind in ("shape", "tensor", "func"):
        getattr(attr, kind).CopyFrom(converted)
    else:
        setattr(attr, _ATTR_FIELD[kind], converted)
    return attr


# ---- Python values to arrays


def _from_numpy(array: np.ndarray, wanted: DType | None) -> tuple[np.ndarray, DType]:
    if wanted is None:
        wanted = as_dtype(array.dtype)
        if wanted is dtypes.string and array.size and isinstance(array.flat[0], ResourceHandle):
            wanted = dtypes.resource
        elif wanted is dtypes.string and array.size and is_variant(array.flat[0]):
            wanted = dtypes.variant
    if wanted is dtypes.string:
        return _string_array(array), wanted
    if not wanted.size:
        return array, wanted
    return _cast(array, wanted), wanted


def _from_python(values: Any, wanted: DType | None) -> tuple[np.ndarray, DType]:
    try:
        array = np.asarray(values)
    except OverflowError:
        array = np.asarray(values, object)
    if array.dtype.kind in "OSU":
        array = np.asarray(values, object)  # numpy's own byte strings would lose trailing zeros
        leaves = array.ravel().tolist()
        if all(isinstance(each, (str, bytes)) for each in leaves):
            if wanted not in (None, dtypes.string):
                raise _expected(wanted, values)
            return _string_array(array), dtypes.string
        array = _index_array(array, leaves, values, wanted)
    if wanted is None:
        wanted = _default_dtype(array)
    elif array.size and array.dtype.kind not in _TAKES[wanted._kind]:
        raise _expected(wanted, values)
    if wanted is dtypes.string:
        return np.empty(array.shape, object), wanted
    return _cast(array, wanted), wanted


# Which kinds of numpy arrays (made from Python numbers) each kind of DType takes.
_TAKES = {"f": "fiub", "i": "iub", "u": "iub", "c": "cfiub", "b": "b", "q": "iu", "Q": "iu", "s": "", "h": ""}


def _default_dtype(array: np.ndarray) -> DType:
    if array.dtype.kind == "f":
        return dtypes.float32
    if array.dtype == np.int64:
        fits = array.size == 0 or (array.min() >= -(2**31) and array.max() < 2**31)
        return dtypes.int32 if fits else dtypes.int64
    return as_dtype(array.dtype)


def _index_array(array: np.ndarray, leaves: list[Any], values: Any, wanted: DType | None) -> np.ndarray:
    """Integers of objects that stand for one (Dimensions); a TypeError for all other objects."""
    try:
        if any(isinstance(each, Dimension) for each in leaves):
            return np.array([operator.index(each) for each in leaves], np.int64).reshape(array.shape)
    except TypeError:
        pass
    if wanted is not None:
        raise _expected(wanted, values)
    raise TypeError(f"Cannot make a tensor of {values!r}: its elements are of no type that tensors have.")


def _cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    if array.dtype == dtype.as_numpy_dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(dtype.as_numpy_dtype)


def _string_array(array: np.ndarray) -> np.ndarray:
    leaves = array.ravel().tolist()
    return _object_array([each if type(each) is bytes else _as_bytes(each) for each in leaves], array.shape)


def _as_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    raise TypeError(f"Expected binary or unicode string, got {value!r}")


def _expected(dtype: DType, values: Any) -> TypeError:
    offender = next((each for each in _leaves(values) if not _fits(each, dtype)), values)
    return TypeError(f"Expected {dtype.name}, but got {offender} of type {type(offender).__name__!r}.")


def _fits(value: Any, dtype: DType) -> bool:
    if isinstance(value, (str, bytes)):
        return dtype is dtypes.string
    return np.asarray(value).dtype.kind in _TAKES[dtype._kind]


def _leaves(values: Any) -> Iterator[Any]:
    if isinstance(values, (list, tuple)):
        for each in values:
            yield from _leaves(each)
    else:
        yield values


# ---- the fields of a TensorProto

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


def _value_and_dtype(value: Any, dtype: Any) -> tuple[np.ndarray, DType]:
    if dtype is None:
        if type(value) is np.ndarray and value.dtype.kind in "fiubc":
            return value, as_dtype(value.dtype)
        return values_to_array(value)
    dtype = as_dtype(dtype).base_dtype
    if not isinstance(value, (np.ndarray, np.generic)):
        return values_to_array(value, dtype)
    return _from_numpy(np.asarray(value), dtype)


def _store_values(proto: Any, array: np.ndarray, dtype: DType) -> None:
    flat = array.reshape(-1)
    if dtype is dtypes.string:
        proto.string_val.extend(flat.tolist())
    elif dtype is dtypes.resource:
        proto.resource_handle_val.extend(_handle_proto(each) for each in flat)
    elif dtype is dtypes.variant:
        proto.variant_val.extend(each.to_proto() if is_variant(each) else each for each in flat)
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
        raise _malformed("an odd number of real and imaginary parts")
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
            raise _malformed(f"the shape of a resource: {error}") from None
        known.append((_decoded_dtype(each.dtype), tuple(shape.as_list()) if shape else None))
    return ResourceHandle(
        proto.device, proto.container, proto.name, proto.maybe_type_name, tuple(known), proto.hash_code
    )


def _object_value(values: Any, dtype: DType, sizes: tuple[int, ...], count: int) -> Any:
    if dtype is dtypes.resource:
        elements: list[Any] = [_handle_of(each) for each in values]
    elif dtype is dtypes.variant:
        elements = [variant_of(each) for each in values]
    else:
        elements = list(values)
    if len(elements) < count:
        if not elements and dtype is not dtypes.string:
            raise _malformed(f"no values of type {dtype.name}")
        if len(elements) <= 1 and count * _POINTER_BYTES >= _SHARED_FROM_BYTES and sizes:
            return np.broadcast_to(_object_array(elements or [b""], (1,)).reshape(()), sizes)
        elements += [elements[-1] if elements else b""] * (count - len(elements))
    if dtype is not dtypes.string and sizes == ():
        return elements[0]
    return _object_array(elements, sizes)


def _object_array(elements: list[Any], sizes: tuple[int, ...]) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(sizes)


def _split_strings(content: Buffer, count: int) -> list[bytes]:
    view, at = memoryview(content), 0
    lengths = []
    for _ in range(count):
        length, at = _read_varint(view, at)
        lengths.append(length)
    if at + sum(lengths) != len(view):
        raise _malformed(f"{len(view) - at} bytes where the lengths of its strings add up to {sum(lengths)}")
    strings = []
    for length in lengths:
        strings.append(bytes(view[at : at + length]))
        at += length
    return strings


def _decoded_dtype(enum: int) -> DType:
    try:
        return as_dtype(enum).base_dtype
    except TypeError:
        raise _malformed(f"there is no element type {enum}") from None


def _count(sizes: Iterable[int]) -> int:
    sizes = tuple(sizes)
    if not is_possible(sizes):
        raise _malformed(f"a tensor cannot have the shape {list(sizes)}")
    return math.prod(sizes)


def _array_over(content: Buffer, dtype: DType, sizes: tuple[int, ...], count: int) -> np.ndarray:
    if not dtype.size or len(content) != count * dtype.size:
        raise _malformed(f"{len(content)} bytes of content for type {dtype.name} and shape {list(sizes)}")
    return _aligned(np.frombuffer(content, dtype.as_numpy_dtype)).reshape(sizes)


def _aligned(array: np.ndarray) -> np.ndarray:
    if not array.flags.aligned:
        array = array.copy()  # every later use would be slower than this copy
        array.flags.writeable = False
    return array


def _malformed(why: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(None, None, f"Cannot decode a tensor: {why}.")


# ---- bytes by hand

# Below this size protobuf's C code is faster than ours in Python; from it on tensors are read in place, and are laid
# out so that their elements are aligned in the message.
_POINTER_BYTES = 8
_SHARED_FROM_BYTES = 1 << 24
_LEAST_REPEATED = 1024
"""So few elements are not counted."""
BY_HAND_FROM_BYTES = 4096
_ALIGNMENT = 8
_NO_VALUE = np.empty(0, np.float32)


def _little_endian(array: np.ndarray) -> np.ndarray:
    """The array row-major and little-endian; itself where it is both."""
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    if not array.flags.c_contiguous:
        array = np.array(array, order="C")
    return array


def _memory(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


@functools.lru_cache(maxsize=4096)
def _tensor_head(enum: int, sizes: tuple[int, ...], content_bytes: int) -> bytes:
    shape = b""
    for size in sizes:
        dim = b"\x08" + _varint(size) if size else b""
        shape += b"\x12" + _varint(len(dim)) + dim
    head = b"\x08" + _varint(enum) + b"\x12" + _varint(len(shape)) + shape
    return head + b"\x22" + _varint(content_bytes) if content_bytes else head


def _padding(length: int, tag: bytes = b"\x10") -> bytes:
    """`length` bytes (modulo the alignment) that say a field is 0, in a varint longer than it need be; by default
    is_dead = false.
    """
    if length == 0:
        return b""
    if length == 1:
        length += _ALIGNMENT
    return tag + b"\x80" * (length - 2) + b"\x00"


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _read_varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise _malformed("it is cut short")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def _scan_tensor(view: memoryview) -> tuple[DType, tuple[int, ...], memoryview] | None:
    """(dtype, sizes, content) of a TensorProto laid out as our and TensorFlow's encoders do; None for other layouts."""
    enum = 0
    sizes: tuple[int, ...] = ()
    content: memoryview | None = None
    for field, value, _ in message_fields(view):
        if field == 1 and isinstance(value, int):
            enum = value
        elif field == 2 and isinstance(value, memoryview):
            found = _scan_shape(value)
            if found is None or sizes:
                return None
            sizes = found
        elif field == 3 and isinstance(value, int):
            continue
        elif field == 4 and isinstance(value, memoryview):
            content = value
        else:
            return None
    if content is None or not len(content):
        return None
    dtype = _decoded_dtype(enum)
    return (dtype, sizes, content) if dtype.size else None


def _scan_shape(view: memoryview) -> tuple[int, ...] | None:
    sizes = []
    for field, dim, _ in message_fields(view):
        if field != 2 or not isinstance(dim, memoryview):
            return None
        size = 0
        for dim_field, value, _ in message_fields(dim):
            if dim_field == 1 and isinstance(value, int):
                size = value - (1 << 64) if value >> 63 else value
        sizes.append(size)
    return tuple(sizes)


def _parse(message_class: Any, view: memoryview) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message_class.FromString(bytes(view))
    except DecodeError as error:
        raise _malformed(str(error)) from None


# The padding, the time, then the TensorProto: its type, and its shape up to the shape's length. And its content.
_PLAIN_HEAD = re.compile(
    rb"(?:\x10\x80*\x00)?(?:\x18[\x80-\xff]*[\x00-\x7f])?\x0a[\x80-\xff]*[\x00-\x7f]"
    rb"(\x08[\x80-\xff]?[\x00-\x7f]\x12([\x00-\x7f]))",
    re.DOTALL,
)
_PLAIN_CONTENT = re.compile(rb"\x22[\x80-\xff]{0,8}[\x00-\x7f]", re.DOTALL)


@functools.lru_cache(maxsize=4096)
def _plain_tensor(head: bytes) -> tuple[Any, tuple[int, ...], int, int] | None:
    """(numpy type, sizes, number of elements, bytes of content) of a TensorProto that begins like this."""
    view = memoryview(head)
    try:
        enum, at = _read_varint(view, 1)
        length, at = _read_varint(view, at + 1)
        sizes = _scan_shape(view[at : at + length])
        dtype = _decoded_dtype(enum)
        content_bytes, _ = _read_varint(view, at + length + 1)
        if sizes is None or not dtype.size or content_bytes != _count(sizes) * dtype.size:
            return None
    except errors.InvalidArgumentError:
        return None
    return dtype.as_numpy_dtype, sizes, _count(sizes), content_bytes


def _decode_any_response(view: memoryview) -> ReceivedTensor:
    from dtf.wire.pb import worker_pb2

    response = _parse(worker_pb2.RecvTensorResponse, view)
    value = None if response.is_dead else proto_to_array(response.tensor)
    return ReceivedTensor(value, response.is_dead, response.send_start_micros, response.require_ack)


# ---- one attribute

_ATTR_FIELD = {
    "string": "s",
    "int": "i",
    "float": "f",
    "bool": "b",
    "type": "type",
    "shape": "shape",
    "tensor": "tensor",
    "func": "func",
}


def _attr_element(kind: str, value: Any) -> Any:
    if kind == "type":
        return as_dtype(value) if value else None
    if kind == "shape":
        return TensorShape(value)
    if kind == "tensor":
        return proto_to_array(value)
    return value


def _attr_value(value: Any, kind: str) -> Any:
    try:
        if kind == "int":
            return operator.index(value)
        if kind == "float":
            if isinstance(value, (str, bytes)):
                raise TypeError
            return float(value)
        if kind == "bool":
            if not isinstance(value, (bool, np.bool_)) and value not in (0, 1):
                raise TypeError
            return bool(value)
        if kind == "string":
            return _as_bytes(value)
        if kind == "shape":
            return as_shape(value).as_proto()
        if kind == "func":
            return attr_value_pb2.NameAttrList(name=value) if isinstance(value, str) else value
    except (TypeError, ValueError):
        raise TypeError(f"Expected {kind}, got {value!r} of type {type(value).__name__!r} instead.") from None
    if kind == "type":
        return 0 if value is None else as_dtype(value).as_datatype_enum
    if kind == "tensor":
        return make_tensor_proto(value)
    raise TypeError(f"There is no attribute type {kind!r}.")


def _guess_attr_type(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, (int, np.integer)):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (str, bytes)):
        return "string"
    if isinstance(value, DType):
        return "type"
    if isinstance(value, TensorShape) or hasattr(value, "unknown_rank"):
        return "shape"
    if isinstance(value, np.ndarray) or hasattr(value, "tensor_content"):
        return "tensor"
    if isinstance(value, (list, tuple)):
        return f"list({_guess_attr_type(value[0])})" if value else "list(string)"
    if hasattr(value, "attr") and hasattr(value, "name"):
        return "func"
    raise TypeError(f"{value!r} of type {type(value).__name__!r} is no attribute value.")
