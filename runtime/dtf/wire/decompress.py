"""zlib and gzip streams, decompressed within a limit: a kilobyte may stand for a megabyte, a megabyte for a gigabyte.

Of data that are cut short both give what there is, as TensorFlow does; records then show that they are incomplete.
Owns the streams and what is wrong with them; where they come from (files, strings, images) is the caller's.
"""

from __future__ import annotations

import io
import zlib
from typing import Any, BinaryIO

from dtf.wire import errors, limits
from dtf.wire.files import file_errors

__all__ = ["InflatingFile", "decompress"]

_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_CHUNK_BYTES = 1 << 18
_FIRST_BYTES = 1 << 12
_OUTPUT_BYTES = _CHUNK_BYTES << 4


def decompress(data: bytes, kind: str, what: str, most_bytes: int | None = None) -> bytes:
    """What `data`, one stream or several one after another, stands for.

    Args:
      kind: "ZLIB", "GZIP", or "" for data as they are.
      what: names the data in errors.
      most_bytes: the limit; `limits.DECOMPRESSED_BYTES` by default.

    Raises:
      DataLossError: the data are damaged.
      ResourceExhaustedError: they stand for more than the limit, or for more than the memory that is free.
    """
    if not kind:
        return data
    limit = limits.DECOMPRESSED_BYTES.value if most_bytes is None else most_bytes
    streams = _Streams(kind, what)
    streams.give(data)
    found: list[bytes] = []
    size = 0
    while not streams.is_hungry:
        found.append(streams.some(min(_OUTPUT_BYTES, limit - size + 1)))
        size += len(found[-1])
        if size > limit:
            if most_bytes is None:
                limits.DECOMPRESSED_BYTES.check(size, f"{what}: decompressed, at least")
            message = f"{what}: more than {limit} bytes when decompressed"
            raise errors.ResourceExhaustedError.of(message)
        if found[-1]:
            limits.check_free(size, f"{what}: decompressed, at least")
    return found[0] if len(found) == 1 else b"".join(found)


class _Streams:
    """Compressed streams one after another, as pieces of what they stand for."""

    def __init__(self, kind: str, what: str) -> None:
        self._bits = _WINDOW_BITS[kind]
        self._what = what
        self._stream = zlib.decompressobj(self._bits)
        self._data = b""
        self._position = 0
        self._step = _CHUNK_BYTES  # damage in the first chunk is found before its first record, as by TensorFlow

    @property
    def is_hungry(self) -> bool:
        """Whether all that was given is used up."""
        return self._position >= len(self._data)

    def give(self, data: bytes) -> None:
        """What comes next."""
        self._data, self._position = data, 0

    def some(self, most_bytes: int) -> bytes:
        """At most so many bytes; it may be none. Raises DataLossError."""
        if self._stream.eof:  # another stream follows, as when files are appended to each other
            self._stream = zlib.decompressobj(self._bits)
            # Each stream copies what follows it in the piece, and a megabyte may hold fifty thousand empty ones.
            self._step = _FIRST_BYTES
        piece = self._data[self._position : self._position + self._step]
        try:
            found = self._stream.decompress(piece, most_bytes)
        except zlib.error as error:
            raise errors.DataLossError.of(f"{self._what}: {error}") from error
        self._position += len(piece) - len(self._stream.unconsumed_tail) - len(self._stream.unused_data)
        self._step = min(2 * self._step, _CHUNK_BYTES)
        return found


class InflatingFile(io.RawIOBase):
    """A compressed file as the file that it holds, for reading from its beginning to its end.

    `io.BufferedReader` makes one with lines of it.

    Raises (`read`):
      DataLossError: the data are damaged.
    """

    def __init__(self, path: str, file: BinaryIO, kind: str) -> None:
        """`file` is closed with this one. `kind` is "ZLIB" or "GZIP"."""
        super().__init__()
        self._path = path
        self._file = file
        self._streams = _Streams(kind, path)
        self._ready = bytearray()
        self._position = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills a buffer as far as the file goes."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def tell(self) -> int:
        """How much has been read."""
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Up to `size` bytes, or all that is left; no more than that is decompressed, but for a part of a chunk."""
        while size < 0 or len(self._ready) < size:
            if not self._fill():
                break
            if size < 0:
                limits.DECOMPRESSED_BYTES.check(len(self._ready), f"{self._path}: decompressed, at least")
        found = bytes(self._ready if size < 0 else memoryview(self._ready)[:size])
        del self._ready[: len(found)]
        self._position += len(found)
        return found

    def close(self) -> None:
        """Closes the file."""
        self._file.close()
        super().close()

    def _fill(self) -> bool:
        """Decompresses some more. False at the end."""
        if self._streams.is_hungry:
            with file_errors(self._path):
                data = self._file.read(_CHUNK_BYTES)
            if not data:
                return False
            self._streams.give(data)
        self._ready += self._streams.some(_OUTPUT_BYTES)
        return True

    def __enter__(self) -> InflatingFile:
        return self
