"""Values inside requests and responses.

Owns the fields of messages that carry tensors: a tensor's bytes go from the array into the message in one copy, and
out of it as a view. Protobuf allows fields of a message in any order and repeated fields anywhere, so a message is the
serialized rest of it followed by its tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtf import codec
from dtf.kernels import DEAD
from dtf.pb import named_tensor_pb2, tensor_pb2


def with_named_tensors(message: Any, field: int, named: Iterable[tuple[str, Any]]) -> bytes:
    """The serialized `message` with `named` values added to its repeated NamedTensorProto field of that number."""
    pieces: list[Any] = [message.SerializeToString()]
    for name, value in named:
        tensor = codec.encode_tensor(value)
        tensor_bytes = sum(map(len, tensor))
        key = name.encode()
        head = b"\x0a" + _varint(len(key)) + key + b"\x12" + _varint(tensor_bytes)
        pieces.append(_tag(field) + _varint(len(head) + tensor_bytes) + head)
        pieces.extend(tensor)
    return b"".join(pieces)


def with_tensors(message: Any, field: int, values: Iterable[Any]) -> bytes:
    """The serialized `message` with `values` added to its repeated TensorProto field of that number."""
    pieces: list[Any] = [message.SerializeToString()]
    for value in values:
        tensor = codec.encode_tensor(value)
        pieces.append(_tag(field) + _varint(sum(map(len, tensor))))
        pieces.extend(tensor)
    return b"".join(pieces)


def named_values(named: Iterable[named_tensor_pb2.NamedTensorProto]) -> dict[str, Any]:
    """The values by name."""
    return {entry.name: codec.proto_to_array(entry.tensor) for entry in named}


def values(tensors: Iterable[tensor_pb2.TensorProto]) -> list[Any]:
    """The values in order."""
    return [codec.proto_to_array(tensor) for tensor in tensors]


def recv_tensor_response(value: Any, send_start_micros: int) -> bytes:
    """The serialized RecvTensorResponse of a value, DEAD included."""
    is_dead = value is DEAD
    pieces = codec.encode_recv_tensor_response(
        None if is_dead else value, is_dead=is_dead, send_start_micros=send_start_micros
    )
    return b"".join(pieces)


def received_value(response: bytes) -> Any:
    """The value of a RecvTensorResponse, or DEAD."""
    received = codec.decode_recv_tensor_response(response)
    return DEAD if received.is_dead else received.value


def _tag(field: int) -> bytes:
    return _varint(field << 3 | 2)


def _varint(value: int) -> bytes:
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
