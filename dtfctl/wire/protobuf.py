"""The fields of a protobuf message, for readers of a few fields: starting the protobuf library takes longer."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED_64, BYTES, FIXED_32 = 0, 1, 2, 5
"""Wire types. Source: https://protobuf.dev/programming-guides/encoding"""

_VARINT_BITS_MAX = 64


def varint(number: int) -> bytes:
    """A number that is not negative, as messages hold it."""
    result = b""
    while number >= 0x80:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])


def fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Yields (field number, wire type, value) of each field: integers as they are, everything else as its bytes.

    Raises:
      IndexError: the message ends within a field's number or length.
      ValueError: it is no message.
    """
    position = 0

    def whole() -> int:
        nonlocal position
        result = shift = 0
        while shift < _VARINT_BITS_MAX:
            byte = message[position]
            position += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return result
        raise ValueError(f"an integer of more than {_VARINT_BITS_MAX} bits")

    while position < len(message):
        key = whole()
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            yield number, kind, whole()
            continue
        if kind not in (FIXED_64, BYTES, FIXED_32):
            raise ValueError(f"wire type {kind}")
        length = whole() if kind == BYTES else 8 if kind == FIXED_64 else 4
        yield number, kind, message[position : position + length]
        position += length
