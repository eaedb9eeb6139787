"""tf.python_io: TFRecord files from Python.

Owns compression and the public names; framing and checksums are `events`'.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/TFRecordWriter
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from dtf.wire import errors
from dtf.wire.events import read_records, record_bytes
from dtf.wire.files import file_errors

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """Options of a file; `compression_type` is "", "ZLIB", "GZIP" or a TFRecordCompressionType.

    Raises:
      ValueError: another compression.
    """

    _NAMES = {"": 0, None: 0, "ZLIB": 1, "GZIP": 2, 0: 0, 1: 1, 2: 2}

    def __init__(self, compression_type: str | int | None = None) -> None:
        if isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        if compression_type not in self._NAMES:
            raise ValueError(f'Not a valid compression_type: "{compression_type}"')
        self.compression_type: int = self._NAMES[compression_type]


class TFRecordWriter:
    """Writes records to one file, replacing it.

    Args:
      path: the file.
      options: TFRecordOptions, or a compression type.

    Raises:
      NotFoundError, PermissionDeniedError: the file cannot be made.
    """

    def __init__(self, path: str, options: Any = None) -> None:
        self._compression = TFRecordOptions(options).compression_type
        self._path = path
        self._zlib = zlib.compressobj() if self._compression == TFRecordCompressionType.ZLIB else None
        with file_errors(path):
            # A file without a time stamp: the same records make the same bytes.
            raw: BinaryIO = open(path, "wb")  # noqa: SIM115  (closed by close)
        self._raw = raw
        gzipped = self._compression == TFRecordCompressionType.GZIP
        self._file: Any = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if gzipped else raw

    def write(self, record: bytes) -> None:
        """Appends a record."""
        data = record_bytes(record)
        with file_errors(self._path):
            self._file.write(self._zlib.compress(data) if self._zlib else data)

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        with file_errors(self._path):
            if self._zlib:
                self._file.write(self._zlib.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
            self._raw.flush()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        if self._raw.closed:
            return
        with file_errors(self._path):
            if self._zlib:
                self._file.write(self._zlib.flush())
            self._file.close()
            self._raw.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def tf_record_iterator(path: str, options: Any = None) -> Iterator[bytes]:
    """Yields the records of a file.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: a record is damaged or cut short, or the compression is another one.
    """
    compression = TFRecordOptions(options).compression_type
    if compression == TFRecordCompressionType.NONE:
        yield from read_records(path)
        return
    with file_errors(path), open(path, "rb") as file:
        data = file.read()
    try:
        data = zlib.decompress(data) if compression == TFRecordCompressionType.ZLIB else gzip.decompress(data)
    except (zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise errors.DataLossError(None, None, f"{path}: {error}") from error
    yield from read_records(path, opened=io.BytesIO(data))
