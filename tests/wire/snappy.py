"""A small compressor of Snappy's raw format, to make what our reader must understand.

Source: https://github.com/google/snappy/blob/main/format_description.txt
"""

from __future__ import annotations

from dtf.wire.varints import varint


def compress(data: bytes) -> bytes:
    """Compresses greedily; what repeats within reach becomes copies of all three forms."""
    out = bytearray(varint(len(data)))
    seen: dict[bytes, int] = {}
    literal = position = 0
    while position < len(data):
        found = seen.get(data[position : position + 4])
        seen[data[position : position + 4]] = position
        length = 0
        if found is not None:
            while position + length < len(data) and data[found + length] == data[position + length] and length < 64:
                length += 1
        if length < 4:
            position += 1
            continue
        out += _literal(data[literal:position]) + _copy(position - found, length)
        position += length
        literal = position
    return bytes(out + _literal(data[literal:]))


def _literal(data: bytes) -> bytes:
    if not data:
        return b""
    size = len(data) - 1
    if size < 60:
        return bytes([size << 2]) + data
    width = (size.bit_length() + 7) // 8
    return bytes([(59 + width) << 2]) + size.to_bytes(width, "little") + data


def _copy(offset: int, length: int) -> bytes:
    if length <= 11 and offset < 2048:
        return bytes([1 | (length - 4) << 2 | offset >> 8 << 5, offset & 255])
    if offset < 1 << 16:
        return bytes([2 | (length - 1) << 2]) + offset.to_bytes(2, "little")
    return bytes([3 | (length - 1) << 2]) + offset.to_bytes(4, "little")
