"""Arrays as the bytes of a TensorProto or RecvTensorResponse, and back, without protobuf on the bytes of the tensor."""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import numpy as np

from dtf.wire import errors
from dtf.wire.dtypes import DType
from dtf.wire.pb import tensor_pb2
from dtf.wire.protobuf_bytes import Buffer, message_fields, parse_message, read_varint
from dtf.wire.python_values import no_tensor, value_and_dtype
from dtf.wire.tensor_proto import (
    aligned_array,
    array_over,
    array_to_proto,
    decoded_dtype,
    element_count,
    little_endian,
    proto_to_array,
)
from dtf.wire.varints import varint

__all__ = [
    "BY_HAND_FROM_BYTES", "ReceivedTensor", "decode_recv_tensor_response", "decode_tensor",
    "encode_recv_tensor_response", "encode_tensor", "plain_response_value",
]  # fmt: skip


class ReceivedTensor(NamedTuple):
    """What a RecvTensorResponse says. `value` is None when the tensor is dead."""

    value: Any
    is_dead: bool
    send_start_micros: int
    require_ack: bool



def encode_tensor(array: Any, dtype: Any = None, position: int | None = None) -> list[Buffer]:
    """The serialized TensorProto of an array, in pieces; a large array's piece is its own memory, not a copy.

    Where `position`, the offset of the TensorProto in the whole message, is given, a large array's elements are aligned
    there.

    Raises:
      InvalidArgumentError: the value is no tensor, such as the queue behind a reference.
    """
    try:
        array, tensor_dtype = value_and_dtype(array, dtype)
    except TypeError:
        raise no_tensor(array) from None
    if not tensor_dtype.size:
        return [array_to_proto(array, tensor_dtype).SerializeToString()]
    array = little_endian(array)
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
    head = b"\x18" + varint(send_start_micros) if send_start_micros else b""
    if require_ack:
        head += b"\x28\x01"
    tail = b"\x0a" + varint(tensor_bytes) + pieces[0]
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
        return proto_to_array(parse_message(tensor_pb2.TensorProto, view))
    dtype, sizes, content = found
    return array_over(content, dtype, sizes, element_count(sizes))



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
    return aligned_array(np.frombuffer(data, numpy_dtype, count, begin)).reshape(sizes)



BY_HAND_FROM_BYTES = 4096

_ALIGNMENT = 8

_NO_VALUE = np.empty(0, np.float32)



def _memory(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data



@functools.lru_cache(maxsize=4096)
def _tensor_head(enum: int, sizes: tuple[int, ...], content_bytes: int) -> bytes:
    shape = b""
    for size in sizes:
        dim = b"\x08" + varint(size) if size else b""
        shape += b"\x12" + varint(len(dim)) + dim
    head = b"\x08" + varint(enum) + b"\x12" + varint(len(shape)) + shape
    return head + b"\x22" + varint(content_bytes) if content_bytes else head



def _padding(length: int, tag: bytes = b"\x10") -> bytes:
    """`length` bytes (modulo the alignment) that say a field is 0, in a varint longer than it need be; by default
    is_dead = false.
    """
    if length == 0:
        return b""
    if length == 1:
        length += _ALIGNMENT
    return tag + b"\x80" * (length - 2) + b"\x00"



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
    dtype = decoded_dtype(enum)
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
        enum, at = read_varint(view, 1)
        length, at = read_varint(view, at + 1)
        sizes = _scan_shape(view[at : at + length])
        dtype = decoded_dtype(enum)
        content_bytes, _ = read_varint(view, at + length + 1)
        if sizes is None or not dtype.size or content_bytes != element_count(sizes) * dtype.size:
            return None
    except errors.InvalidArgumentError:
        return None
    return dtype.as_numpy_dtype, sizes, element_count(sizes), content_bytes



def _decode_any_response(view: memoryview) -> ReceivedTensor:
    from dtf.wire.pb import worker_pb2

    response = parse_message(worker_pb2.RecvTensorResponse, view)
    value = None if response.is_dead else proto_to_array(response.tensor)
    return ReceivedTensor(value, response.is_dead, response.send_start_micros, response.require_ack)
