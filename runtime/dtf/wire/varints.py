"""Varints: little-endian base-128 integers, as protobuf and LevelDB write them."""

from __future__ import annotations

__all__ = ["read_varint", "varint"]


def varint(value: int) -> bytes:
    """The bytes of a number that is not negative."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The number at a position, and the position after it.

    Raises:
      IndexError: the data end within the number, or the number has more than 64 bits.
    """
    value = shift = 0
    while shift <= 63:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
    raise IndexError("a number of more than 64 bits")
