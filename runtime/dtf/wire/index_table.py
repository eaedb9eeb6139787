"""Sorted string tables in LevelDB's file format: the `.index` file of a checkpoint.

Owns blocks, prefix compression, checksums and the footer; does not know what keys and values mean. Written
uncompressed as TensorFlow does; Snappy-compressed blocks are read too.

Source: https://github.com/google/leveldb/blob/main/doc/table_format.md
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

from dtf.wire import errors
from dtf.wire.crc import masked_crc32c
from dtf.wire.varints import read_varint, varint

_MAGIC = 0xDB4775248B80FB57
_FOOTER_SIZE = 48
_BLOCK_SIZE = 262_144
_RESTART_INTERVAL = 16
_UNCOMPRESSED, _SNAPPY = 0, 1
_ENLARGEMENT_MAX = 512
"""How much larger contents may be than their file: keys share beginnings 16 times at most, and Snappy gives 22."""


def write_table(items: Iterable[tuple[bytes, bytes]]) -> bytes:
    """The bytes of a table of (key, value) pairs, which must come in increasing order of keys."""
    out = bytearray()
    index: list[tuple[bytes, bytes]] = []
    block = _Block(_RESTART_INTERVAL)
    for key, value in items:
        if not block.out and index:
            index[-1] = (_between(index[-1][0], key), index[-1][1])
        block.add(key, value)
        if block.size >= _BLOCK_SIZE:
            index.append((key, _append_block(out, block.finish())))
            block = _Block(_RESTART_INTERVAL)
    if block.out:
        index.append((_after(block.last), _append_block(out, block.finish())))
    metaindex = _append_block(out, _Block(1).finish())
    block_index = _Block(1)
    for key, handle in index:
        block_index.add(key, handle)
    index_handle = _append_block(out, block_index.finish())
    out += (metaindex + index_handle).ljust(_FOOTER_SIZE - 8, b"\0") + struct.pack("<Q", _MAGIC)
    return bytes(out)


def read_table(data: bytes, what: str) -> Iterator[tuple[bytes, bytes]]:
    """Yields the (key, value) pairs of a table in order; `what` names the file in errors.

    Raises:
      DataLossError: the bytes are not a whole, undamaged table.
    """
    if len(data) < _FOOTER_SIZE:
        raise errors.DataLossError.of(f"{what}: file is too short to be an sstable ({len(data)} bytes)")
    footer = data[-_FOOTER_SIZE:]
    if struct.unpack("<Q", footer[-8:])[0] != _MAGIC:
        raise errors.DataLossError.of(f"{what}: not an sstable (bad magic number), or cut short")
    try:
        _, _, position = _read_handle(footer, 0)
        offset, size, _ = _read_handle(footer, position)
        left = _ENLARGEMENT_MAX * len(data) + _BLOCK_SIZE
        end, last = 0, None
        for _, handle in _entries(_read_block(data, offset, size, what)):
            offset, size, _ = _read_handle(handle, 0)
            if offset < end:
                raise IndexError("blocks overlap")
            end = offset + size
            for key, value in _entries(_read_block(data, offset, size, what)):
                left -= len(key) + len(value)
                if left < 0 or (last is not None and key <= last):
                    raise IndexError("its keys are not in order, or too long")
                last = key
                yield key, value
    except (IndexError, struct.error) as error:
        raise errors.DataLossError.of(f"{what}: damaged sstable: {error}") from error


class _Block:
    """A block in the making: entries that say only how their keys differ, and now and then a whole key."""

    def __init__(self, restart_interval: int) -> None:
        self._restart_interval = restart_interval
        self._restarts = [0]
        self._count = 0
        self.out = bytearray()
        self.last = b""

    @property
    def size(self) -> int:
        """In bytes, when finished."""
        return len(self.out) + 4 * (len(self._restarts) + 1)

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._count == self._restart_interval:
            self._restarts.append(len(self.out))
            self._count = 0
        elif self._count:
            shared = len(os.path.commonprefix([self.last, key]))
        self.out += varint(shared) + varint(len(key) - shared) + varint(len(value))
        self.out += key[shared:] + value
        self.last = key
        self._count += 1

    def finish(self) -> bytes:
        return bytes(self.out) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))


def _between(last: bytes, following: bytes) -> bytes:
    """A short key that is not before the last one of a block, and before the first of the next."""
    common = len(os.path.commonprefix([last, following]))
    if common < len(last) and last[common] < 0xFF and last[common] + 1 < following[common]:
        return last[:common] + bytes([last[common] + 1])
    return last


def _after(last: bytes) -> bytes:
    """A short key that is not before the last one of all."""
    for position, byte in enumerate(last):
        if byte != 0xFF:
            return last[:position] + bytes([byte + 1])
    return last


def _append_block(out: bytearray, contents: bytes) -> bytes:
    handle = varint(len(out)) + varint(len(contents))
    typed = contents + bytes([_UNCOMPRESSED])
    out += typed + struct.pack("<I", masked_crc32c(typed))
    return handle


def _read_handle(data: bytes, position: int) -> tuple[int, int, int]:
    offset, position = read_varint(data, position)
    size, position = read_varint(data, position)
    return offset, size, position


def _read_block(data: bytes, offset: int, size: int, what: str) -> bytes:
    typed = data[offset : offset + size + 1]
    trailer = data[offset + size + 1 : offset + size + 5]
    if len(typed) != size + 1 or len(trailer) != 4:
        raise errors.DataLossError.of(f"{what}: truncated block at byte {offset}")
    if struct.unpack("<I", trailer)[0] != masked_crc32c(typed):
        raise errors.DataLossError.of(f"{what}: block checksum mismatch at byte {offset}")
    if typed[-1] == _UNCOMPRESSED:
        return typed[:-1]
    if typed[-1] == _SNAPPY:
        return _unsnap(typed[:-1], what)
    raise errors.DataLossError.of(f"{what}: unknown block compression {typed[-1]}")


def _entries(block: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The (key, value) pairs of a block. Raises IndexError where its numbers do not fit."""
    count = struct.unpack("<I", block[-4:])[0]
    end = len(block) - 4 * (count + 1)
    if end < 0:
        raise IndexError("a block has more restarts than bytes")
    position, key = 0, b""
    while position < end:
        shared, position = read_varint(block, position)
        unshared, position = read_varint(block, position)
        length, position = read_varint(block, position)
        if shared > len(key) or position + unshared + length > end:
            raise IndexError("an entry reaches beyond its block")
        key = key[:shared] + block[position : position + unshared]
        position += unshared
        yield key, block[position : position + length]
        position += length


def _unsnap(data: bytes, what: str) -> bytes:
    """Raw Snappy decompression (https://github.com/google/snappy/blob/main/format_description.txt)."""
    size, position = read_varint(data, 0)
    out = bytearray()
    while position < len(data) and len(out) <= size:
        tag = data[position]
        position += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(data[position : position + extra], "little") + 1
                position += extra
            out += data[position : position + length]
            position += length
            continue
        if tag & 3 == 1:
            length, offset = (tag >> 2 & 7) + 4, (tag >> 5) << 8 | data[position]
            position += 1
        else:
            width = 2 if tag & 3 == 2 else 4
            length, offset = (tag >> 2) + 1, int.from_bytes(data[position : position + width], "little")
            position += width
        if not 0 < offset <= len(out):
            raise errors.DataLossError.of(f"{what}: damaged Snappy block")
        if offset >= length:
            out += out[len(out) - offset : len(out) - offset + length]
        else:  # the copy reads what it writes: what is there repeats itself
            out += (out[len(out) - offset :] * (length // offset + 1))[:length]
    if len(out) != size:
        raise errors.DataLossError.of(f"{what}: Snappy block of {len(out)} bytes instead of {size}")
    return bytes(out)
