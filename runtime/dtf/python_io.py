"""tf.python_io: TFRecord files from Python.

Owns compression and the public names; framing and checksums are `events`'.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/TFRecordWriter
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

from dtf.wire import filesystems
from dtf.wire.decompress import InflatingFile
from dtf.wire.events import read_records, record_bytes
from dtf.wire.files import file_errors

__all__ = ["TFRecordCompressionType", "TFRecordOptions", "TFRecordWriter", "tf_record_iterator"]


class TFRecordCompressionType:
    """How a file is compressed."""

    NONE = 0
    ZLIB = 1
    GZIP = 2


class TFRecordOptions:
    """Options of a file.

    Args:
      compression_type: "", "ZLIB", "GZIP" or a TFRecordCompressionType.
      compression_level: 0 for none to 9 for the smallest; zlib's own by default.
      window_bits: size of the window, as a power of two, that repetitions are looked for in; 15 by default.
      mem_level: 1 to 9, how much memory compressing takes; 8 by default.
      compression_strategy: one of zlib's Z_ constants.
      flush_mode, input_buffer_size, output_buffer_size, compression_method: accepted; zlib's own are taken.

    Raises:
      ValueError: another compression.
    """

    compression_type_map = {0: "", 1: "ZLIB", 2: "GZIP"}

    _NAMES = {"": 0, None: 0, "ZLIB": 1, "GZIP": 2, 0: 0, 1: 1, 2: 2}

    def __init__(
        self,
        compression_type: Any = None,
        flush_mode: int | None = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        if compression_type not in self._NAMES:
            raise ValueError(f'Not a valid compression_type: "{compression_type}"')
        self.compression_type: int = self._NAMES[compression_type]
        self._window_bits = abs(window_bits or zlib.MAX_WBITS)
        self._level = zlib.Z_DEFAULT_COMPRESSION if compression_level is None else compression_level
        self._mem_level = mem_level or zlib.DEF_MEM_LEVEL
        self._strategy = compression_strategy or zlib.Z_DEFAULT_STRATEGY

    @classmethod
    def get_compression_type_string(cls, options: Any) -> str:
        """ "", "ZLIB" or "GZIP", of TFRecordOptions or anything that names a compression."""
        return cls.compression_type_map[_options(options).compression_type]

    def _compressor(self) -> Any:
        """A compressor of zlib, whose window bits also say which of the two headers it writes."""
        if self.compression_type == TFRecordCompressionType.NONE:
            return None
        bits = self._window_bits + (16 if self.compression_type == TFRecordCompressionType.GZIP else 0)
        return zlib.compressobj(self._level, zlib.DEFLATED, bits, self._mem_level, self._strategy)


def _options(options: Any) -> TFRecordOptions:
    return options if isinstance(options, TFRecordOptions) else TFRecordOptions(options)


class TFRecordWriter:
    """Writes records to one file, replacing it.

    Args:
      path: the file.
      options: TFRecordOptions, or a compression type.

    Raises:
      NotFoundError, PermissionDeniedError: the file cannot be made.
    """

    def __init__(self, path: str, options: Any = None) -> None:
        self._path = path
        self._compressor = _options(options)._compressor()
        with file_errors(path):
            self._file: BinaryIO = filesystems.open(path, "wb")  # noqa: SIM115  (closed by close)

    def write(self, record: bytes) -> None:
        """Appends a record."""
        data = record_bytes(record)
        with file_errors(self._path):
            self._file.write(self._compressor.compress(data) if self._compressor else data)

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        with file_errors(self._path):
            if self._compressor:
                self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        if self._file.closed:
            return
        with file_errors(self._path):
            try:
                if self._compressor:
                    self._file.write(self._compressor.flush())
            finally:
                self._file.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def tf_record_iterator(path: str, options: Any = None) -> Iterator[bytes]:
    """Yields the records of a file.

    Raises:
      NotFoundError: the file does not exist.
      DataLossError: a record is damaged or cut short, or the compression is another one.
    """
    compression = _options(options).compression_type
    if compression == TFRecordCompressionType.NONE:
        yield from read_records(path)
        return
    with file_errors(path):
        file = filesystems.open(path, "rb")  # noqa: SIM115  (closed by read_records)
    kind = "GZIP" if compression == TFRecordCompressionType.GZIP else "ZLIB"
    yield from read_records(path, opened=InflatingFile(path, file, kind))
