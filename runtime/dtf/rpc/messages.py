"""Values inside requests and responses.

Owns the message fields that carry tensors. Encoding adds a tensor's bytes as a separate piece, without a copy;
decoding gives a view of the message. Protobuf allows fields in any order and repeated fields anywhere. A message is
therefore its other fields serialized, followed by its tensors. Below a few kB protobuf itself is faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from google.protobuf.message import Message

from dtf.run.kernels import DEAD
from dtf.wire import codec, errors
from dtf.wire.pb import named_tensor_pb2, tensor_pb2

Buffer = codec.Buffer
_Message = TypeVar("_Message", bound=Message)


def parse(message_class: type[_Message], data: Buffer) -> _Message:
    """The message. Raises InternalError, gRPC's code for it, when `data` is not one."""
    try:
        return message_class.FromString(data if type(data) is bytes else bytes(data))
    except Exception:
        raise errors.InternalError.of(f"Malformed {message_class.__name__}") from None


def parse_apart(message_class: Any, field: int, data: Buffer) -> tuple[Any, list[Any]]:
    """The message without its repeated message field of that number, and that field's entries: messages, or views of
    the bytes of large ones.
    """
    if len(data) < codec.BY_HAND_FROM_BYTES:
        message = parse(message_class, data)
        name = message_class.DESCRIPTOR.fields_by_number[field].name
        entries = list(getattr(message, name))
        message.ClearField(name)
        return message, entries
    view = memoryview(data)
    rest, views, begin = [], [], 0
    for number, value, end in codec.message_fields(view):
        if number == field:
            views.append(value)
        else:
            rest.append(view[begin:end])
        begin = end
    return parse(message_class, b"".join(rest)), views


def with_named_tensors(message: Any, field: int, named: Iterable[tuple[str, Any]]) -> list[Buffer]:
    """The serialized `message`, in pieces, with `named` values added to its repeated NamedTensorProto field of that
    number.
    """
    pieces: list[Any] = [message.SerializeToString()]
    at = len(pieces[0])
    for name, value in named:
        key = name.encode()
        head = codec.length_delimited(1, len(key)) + key
        at = _add_tensor(pieces, at, field, head, value)
    return pieces


def with_tensors(message: Any, field: int, values: Iterable[Any]) -> list[Buffer]:
    """The serialized `message`, in pieces, with `values` added to its repeated TensorProto field of that number."""
    pieces: list[Any] = [message.SerializeToString()]
    for value in values:
        tensor = codec.encode_tensor(value)
        pieces.append(codec.length_delimited(field, sum(map(len, tensor))))
        pieces.extend(tensor)
    return pieces


def named_values(named: Iterable[Any]) -> dict[str, Any]:
    """The values by name, of NamedTensorProtos or views of them."""
    values: dict[str, Any] = {}
    for entry in named:
        if isinstance(entry, named_tensor_pb2.NamedTensorProto):
            values[entry.name] = codec.proto_to_array(entry.tensor)
            continue
        name, tensor = "", memoryview(b"")
        for number, value, _ in codec.message_fields(entry):
            if number == 1:
                name = bytes(value).decode()
            elif number == 2:
                tensor = value
        values[name] = codec.decode_tensor(tensor)
    return values


def values(tensors: Iterable[Any]) -> list[Any]:
    """The values in order, of TensorProtos or views of them."""
    return [
        codec.proto_to_array(tensor) if isinstance(tensor, tensor_pb2.TensorProto) else codec.decode_tensor(tensor)
        for tensor in tensors
    ]


def recv_tensor_response(value: Any, send_start_micros: int) -> list[Buffer]:
    """The serialized RecvTensorResponse of a value, DEAD included, in pieces."""
    is_dead = value is DEAD
    return codec.encode_recv_tensor_response(
        None if is_dead else value, is_dead=is_dead, send_start_micros=send_start_micros
    )


def received_value(response: Buffer) -> Any:
    """The value of a RecvTensorResponse, or DEAD."""
    value = codec.plain_response_value(response)
    if value is not None:
        return value
    received = codec.decode_recv_tensor_response(response)
    return DEAD if received.is_dead else received.value


def joined(pieces: Iterable[Buffer]) -> bytes:
    """The pieces as one message."""
    return pieces if isinstance(pieces, bytes) else b"".join(pieces)


def _add_tensor(pieces: list[Buffer], at: int, field: int, head: bytes, value: Any) -> int:
    """Adds a NamedTensorProto whose name is `head`; returns the new end of the message."""
    tensor = codec.encode_tensor(value)
    size = sum(map(len, tensor))
    if size >= codec.BY_HAND_FROM_BYTES:
        lengths = _lengths(field, head, size)
        tensor = codec.encode_tensor(value, position=at + len(lengths))
        size = sum(map(len, tensor))
    lengths = _lengths(field, head, size)
    pieces.append(lengths)
    pieces.extend(tensor)
    return at + len(lengths) + size


def _lengths(field: int, head: bytes, size: int) -> bytes:
    inner = head + codec.length_delimited(2, size)
    return codec.length_delimited(field, len(inner) + size) + inner
