"""zlib and gzip streams, decompressed within a limit: a kilobyte may stand for a megabyte, a megabyte for a gigabyte.

Of data that are cut short both give what there is, as TensorFlow does; records then show that they are incomplete.
Owns the streams and what is wrong with them; where they come from (files, strings, images) is the caller's.
"""

from __future__ import annotations

import zlib
from typing import BinaryIO

from dtf.wire import errors, limits
from dtf.wire.files import file_errors

__all__ = ["InflatingFile", "decompress"]

_WINDOW_BITS = {"ZLIB": zlib.MAX_WBITS, "GZIP": zlib.MAX_WBITS | 16}
_CHUNK_BYTES = 1 << 18


def decompress(data: bytes, kind: str, what: str, most_bytes: int | None = None) -> bytes:
    """What `data`, one stream or several one after another, stands for.

    Args:
      kind: "ZLIB", "GZIP", or "" for data as they are.
      what: names the data in errors.
      most_bytes: the limit; `limits.DECOMPRESSED_BYTES` by default.

    Raises:
      DataLossError: the data are damaged.
      ResourceExhaustedError: they stand for more than the limit.
    """
    if not kind:
        return data
    limit = limits.DECOMPRESSED_BYTES.value if most_bytes is None else most_bytes
    found: list[bytes] = []
    size = 0
    while True:
        stream = zlib.decompressobj(_WINDOW_BITS[kind])
        try:
            found.append(stream.decompress(data, limit - size + 1))
        except zlib.error as error:
            raise errors.DataLossError.of(f"{what}: {error}") from error
        size += len(found[-1])
        if size > limit:
            if most_bytes is None:
                limits.DECOMPRESSED_BYTES.check(size, f"{what}: decompressed, at least")
            message = f"{what}: more than {limit} bytes when decompressed"
            raise errors.ResourceExhaustedError.of(message)
        data = stream.unused_data
        if not data:
            return found[0] if len(found) == 1 else b"".join(found)


class InflatingFile:
    """A compressed file as the file that it holds, for reading from its beginning to its end.

    Raises (`read`):
      DataLossError: the data are damaged.
    """

    def __init__(self, path: str, file: BinaryIO, kind: str) -> None:
        """`file` is closed with this one. `kind` is "ZLIB" or "GZIP"."""
        self._path = path
        self._file = file
        self._bits = _WINDOW_BITS[kind]
        self._stream = zlib.decompressobj(self._bits)
        self._waiting = b""
        self._ready = bytearray()
        self._position = 0

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
        found = bytes(self._ready if size < 0 else self._ready[:size])
        del self._ready[: len(found)]
        self._position += len(found)
        return found

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _fill(self) -> bool:
        """Decompresses some more. False at the end."""
        if not self._waiting:
            with file_errors(self._path):
                self._waiting = self._file.read(_CHUNK_BYTES)
            if not self._waiting:
                return False
        if self._stream.eof:  # another stream follows, as when files are appended to each other
            self._stream = zlib.decompressobj(self._bits)
        try:
            self._ready += self._stream.decompress(self._waiting, _CHUNK_BYTES << 4)
        except zlib.error as error:
            raise errors.DataLossError.of(f"{self._path}: {error}") from error
        self._waiting = self._stream.unconsumed_tail or self._stream.unused_data
        return True

    def __enter__(self) -> InflatingFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
