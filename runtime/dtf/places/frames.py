"""Frames from a primary to its backup, and the acknowledgements that come back.

    frame    kind u32, number of parts u32, sequence number u64, bytes of the text u64; heads of the parts; text; data
    part     kind u64, block u64, bytes of the block u64, offset or rows u64, bytes of the data u64
    back     sequence number u64 of the last frame that is in the backup's folder; REVOKED: the right is given back

Owns the layout and the reading of a stream. All numbers are little-endian.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dtf.run.durability.replicated_resources import Part, Record, Rows
from dtf.wire import errors

__all__ = [
    "ACKNOWLEDGEMENT", "BASE", "FILLED", "PARTS", "PING", "RECORD", "REVOKE", "REVOKED", "WHOLE",
    "Frame", "PartHead", "Reader", "packed", "read_frame",
]  # fmt: skip

BASE, PARTS, RECORD, WHOLE, FILLED, PING, REVOKE = range(1, 8)
"""The state begins; parts of blocks; a transaction; one record that says all; the last of the filling; no change; give
the right back."""
ACKNOWLEDGEMENT = struct.Struct("<Q")
REVOKED = (1 << 64) - 1

_BLOCK, _PART, _ROWS, _DROP = range(1, 5)
_HEAD = struct.Struct("<IIQQ")
_PART_HEAD = struct.Struct("<QQQQQ")
_PARTS_MAX = 1 << 20
_TEXT_BYTES_MAX = 1 << 32
_BUFFER_BYTES = 1 << 18
_SOCKET_BUFFER_BYTES = 4 << 20

Buffer = bytes | memoryview


class PartHead(NamedTuple):
    """What comes with a frame, besides the text."""

    kind: int
    block: int
    size: int
    at: int
    data_bytes: int


class Frame(NamedTuple):
    """The head of a frame, and its text. The data of the parts are still to be read."""

    kind: int
    number: int
    parts: Sequence[PartHead]
    text: bytes


def packed(kind: int, number: int, record: Record | None = None, parts: Sequence[Part] = ()) -> list[Buffer]:
    """The buffers of a frame. Those of blocks refer to the blocks' own memory."""
    heads: list[bytes] = []
    data: list[Buffer] = []
    text = b""
    if record is not None:
        text = record.text
        for block, array in record.blocks:
            heads.append(_PART_HEAD.pack(_BLOCK, block, array.nbytes, 0, array.nbytes))
            data.append(_bytes_of(array))
        for rows in record.rows:
            count = rows.rows.size
            row_bytes = rows.values.shape[1]
            heads.append(_PART_HEAD.pack(_ROWS, rows.block, rows.size, count, count * (8 + row_bytes)))
            data += [_bytes_of(rows.rows), _bytes_of(rows.values)]
        heads += [_PART_HEAD.pack(_DROP, block, 0, 0, 0) for block in record.dropped]
    for part in parts:
        heads.append(_PART_HEAD.pack(_PART, part.block, part.size, part.offset, part.data.nbytes))
        data.append(_bytes_of(part.data))
    return [b"".join([_HEAD.pack(kind, len(heads), number, len(text)), *heads, text]), *data]


def _bytes_of(array: np.ndarray) -> memoryview:
    return np.ascontiguousarray(array).data.cast("B")


class Reader:
    """Reads a socket. Small pieces come out of a buffer, large ones go where they belong without a copy."""

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._at = self._end = 0

    @property
    def is_at_end(self) -> bool:
        """Whether everything that was received has been read."""
        return self._at == self._end

    def take(self, count: int) -> bytes:
        """The next bytes.

        Raises:
          EOFError: the connection is closed.
          OSError: it is lost, or silent.
        """
        if count <= self._end - self._at:
            self._at += count
            return bytes(self._buffer[self._at - count : self._at])
        found = bytearray(count)
        self.fill(memoryview(found))
        return bytes(found)

    def fill(self, view: memoryview) -> None:
        """The next bytes, into `view`. Raises as `take`."""
        done = 0
        while done < len(view):
            if self._at < self._end:
                count = min(len(view) - done, self._end - self._at)
                view[done : done + count] = self._buffer[self._at : self._at + count]
                self._at += count
            elif len(view) - done >= _BUFFER_BYTES:
                count = self._received(view[done:])
            else:
                self._at, self._end = 0, self._received(self._buffer)
                count = 0
            done += count

    def line(self, bytes_max: int) -> bytes:
        """The next line, without its end. Raises as `take`; ValueError for one that is too long."""
        found = bytearray()
        while True:
            if self.is_at_end:
                self._at, self._end = 0, self._received(self._buffer)
            there = bytes(self._buffer[self._at : self._end])
            head, separator, _ = there.partition(b"\n")
            found += head
            self._at += len(head) + len(separator)
            if len(found) > bytes_max:
                raise ValueError("the line is too long")
            if separator:
                return bytes(found)

    def _received(self, view: memoryview) -> int:
        count: int = self._socket.recv_into(view, 0, 0)
        if not count:
            raise EOFError
        return count


def read_frame(reader: Reader) -> Frame:
    """The next frame. Raises EOFError, OSError as `Reader.take`; DataLossError for what is no frame."""
    kind, count, number, text_bytes = _HEAD.unpack(reader.take(_HEAD.size))
    if not BASE <= kind <= REVOKE or count > _PARTS_MAX or text_bytes > _TEXT_BYTES_MAX:
        raise errors.DataLossError.of("The primary has sent what is no frame")
    heads = reader.take(count * _PART_HEAD.size)
    parts = [PartHead(*head) for head in _PART_HEAD.iter_unpack(heads)] if count else []
    return Frame(kind, number, parts, reader.take(text_bytes))


def set_silence(sock: Any, silence_s: float) -> None:
    """A read or write that makes no progress for so long fails."""
    sock.settimeout(None)
    limit = struct.pack("ll", int(silence_s), int(silence_s % 1 * 1e6))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, buffer, _SOCKET_BUFFER_BYTES)


is_block, is_part, is_rows, is_drop = (kind.__eq__ for kind in (_BLOCK, _PART, _ROWS, _DROP))


def rows_of(head: PartHead, data: bytes) -> Rows:
    """The rows that a part carries. Raises DataLossError when its sizes do not fit."""
    count = head.at
    if not count or head.data_bytes < 8 * count or (head.data_bytes - 8 * count) % count:
        raise errors.DataLossError.of("The primary has sent rows whose sizes do not fit")
    rows = np.frombuffer(data, np.int64, count)
    values = np.frombuffer(data, np.uint8, offset=8 * count).reshape(count, -1)
    if rows.min() < 0 or not values.shape[1] or (rows.max() + 1) * values.shape[1] > head.size:
        raise errors.DataLossError.of("The primary has sent rows that the block does not have")
    return Rows(head.block, head.size, rows, values)
