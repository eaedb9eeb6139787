"""Messages of protobuf read and written by hand: varints, fields, and messages of bytes that a peer chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.message import DecodeError

from dtf.wire import errors
from dtf.wire.varints import varint

Buffer = Any  # bytes or memoryview

__all__ = ["Buffer", "length_delimited", "malformed", "message_fields", "parse_message", "read_varint"]


def length_delimited(field: int, size: int) -> bytes:
    """What stands before the `size` bytes of a string, bytes or message field."""
    return varint(field << 3 | 2) + varint(size)


def message_fields(view: memoryview) -> Iterator[tuple[int, Any, int]]:
    """(field number, int of a varint field | memoryview of any other, where it ends) for each field of a message.

    Raises:
      InvalidArgumentError: it is cut short, or no message.
    """
    at = 0
    while at < len(view):
        tag, at = read_varint(view, at)
        kind = tag & 7
        value: Any
        if kind == 0:
            value, at = read_varint(view, at)
            yield tag >> 3, value, at
            continue
        if kind == 2:
            length, at = read_varint(view, at)
        elif kind in (1, 5):
            length = 8 if kind == 1 else 4
        else:
            raise malformed(f"field {tag >> 3} is of an unknown kind")
        if at + length > len(view):
            raise malformed("it is cut short")
        value = view[at : at + length]
        at += length
        yield tag >> 3, value, at


def malformed(why: str) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(f"Cannot decode a tensor: {why}.")


def read_varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(view) or shift > 63:
            raise malformed("it is cut short")
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def parse_message(message_class: Any, view: memoryview) -> Any:
    try:
        return message_class.FromString(bytes(view))
    except DecodeError as error:
        raise malformed(str(error)) from None
