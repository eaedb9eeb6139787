"""TFRecord files and the event files that TensorBoard reads.

Owns framing, checksums and file names; does not know summaries' contents or when they are written
(train.summary_writer). A record is its length, the length's checksum, the bytes, and their checksum.

    writer = EventsWriter("logs")
    writer.write(event)
    for event in read_events(writer.path): ...

Source: https://www.tensorflow.org/tutorials/load_data/tfrecord ("TFRecords format details")
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from google.protobuf.message import DecodeError

from dtf.wire import errors, filesystems, forks, limits
from dtf.wire.crc import masked_crc32c
from dtf.wire.decompress import InflatingFile
from dtf.wire.files import error_of, file_errors, read_within_memory

_Opened = BinaryIO | InflatingFile
_FILE_VERSION = "brain.Event:2"
_READ_AT_ONCE_BYTES = 1 << 24


def record_bytes(data: bytes) -> bytes:
    """One framed record."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, struct.pack("<I", masked_crc32c(length)), data, struct.pack("<I", masked_crc32c(data))))


def read_records(path: str, allow_cut_end: bool = False, opened: _Opened | None = None) -> Iterator[bytes]:
    """Yields the records of a file.

    Args:
      allow_cut_end: the file may still be growing, or its writer was killed: a last record that is cut short ends
        the iteration.
      opened: what to read, for contents that do not lie in the file as they are; closed at the end.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: a record is damaged, or cut short unless that is allowed.
    """
    try:
        file: _Opened = opened or filesystems.open(path, "rb")  # noqa: SIM115  (closed by the with below)
    except OSError as error:
        raise error_of(error, path) from error
    with file:
        while True:
            offset = file.tell()
            header = file.read(12)
            if not header:
                return
            length = struct.unpack("<Q", header[:8])[0] if len(header) == 12 else 0
            if len(header) == 12 and struct.unpack("<I", header[8:])[0] != masked_crc32c(header[:8]):
                raise errors.DataLossError.of(f"{path}: corrupted record at {offset}")
            data, trailer = (_read(file, length, path), file.read(4)) if len(header) == 12 else (b"", b"")
            if len(data) != length or len(trailer) != 4:
                if allow_cut_end:
                    return
                raise errors.DataLossError.of(f"{path}: truncated record at {offset}")
            if struct.unpack("<I", trailer)[0] != masked_crc32c(data):
                raise errors.DataLossError.of(f"{path}: corrupted record at {offset}")
            yield data


def _read(file: _Opened, length: int, path: str) -> bytes:
    """`length` bytes, or what there is: what a length declares takes no memory before the file has shown it."""
    if length <= _READ_AT_ONCE_BYTES:
        return file.read(length)
    if not isinstance(file, InflatingFile):
        return read_within_memory(file, f"{path}: a record of {length} bytes", length)
    pieces, left = [], length
    while left > 0 and (piece := file.read(min(left, _READ_AT_ONCE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
        limits.DECOMPRESSED_BYTES.check(length - left, f"{path}: a decompressed record of {length} bytes")
    return b"".join(pieces)


def read_events(path: str, allow_cut_end: bool = True) -> Iterator[Any]:
    """Yields the Event messages of one event file.

    Args:
      allow_cut_end: as a killed writer leaves it, or one that still writes: iteration just ends there.

    Raises:
      NotFoundError, DataLossError: as `read_records`.
    """
    from dtf.wire.pb import event_pb2

    for record in read_records(path, allow_cut_end):
        try:
            yield event_pb2.Event.FromString(record)
        except DecodeError as error:
            raise errors.DataLossError.of(f"{path}: a record holds no Event: {error}") from error


class EventsWriter:
    """Appends events to one new file in `folder`, which is made if need be. Thread-safe by its one lock.

    Args:
      clock: returns the wall time in seconds since the epoch.

    Raises:
      PermissionDeniedError, AlreadyExistsError (the folder is a file), ResourceExhaustedError, UnknownError: the folder
        or file cannot be made; the message names it.
    """

    def __init__(self, folder: str, suffix: str = "", clock: Callable[[], float] | None = None) -> None:
        import time

        from dtf.wire.pb import event_pb2

        now = (clock or time.time)()
        self._lock = threading.Lock()
        base = f"events.out.tfevents.{int(now):010d}.{socket.gethostname()}"
        with file_errors(folder):
            filesystems.makedirs(folder)
            self.path, self._file = _open_new(os.path.join(folder, base), suffix)
            try:
                self.write(event_pb2.Event(wall_time=now, file_version=_FILE_VERSION))
                self.flush()
            except OSError:
                # A full disk. Closing fails as well, for what is still buffered; the file is closed all the same.
                with contextlib.suppress(OSError):
                    self._file.close()
                with contextlib.suppress(OSError):
                    filesystems.remove(self.path)
                raise

        _writers.add(self)

    def write(self, event: Any) -> None:
        """Appends one Event message, or the bytes of one."""
        data = event if isinstance(event, bytes) else event.SerializeToString()
        with self._lock:
            self._file.write(record_bytes(data))

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        with self._lock:
            if not self._file.closed:
                self._file.flush()

    def close(self) -> None:
        """Flushes and closes; writing afterwards raises ValueError."""
        with self._lock:
            self._file.close()


def _open_new(base: str, suffix: str) -> tuple[str, BinaryIO]:
    """Two writers of one second get files of their own."""
    number = 0
    while True:
        path = base + (f".{number}" if number else "") + suffix
        try:
            return path, filesystems.open(path, "xb")
        except FileExistsError:
            number += 1


_writers: weakref.WeakSet[EventsWriter] = weakref.WeakSet()


def _begin_anew() -> None:
    """In a forked process: what the parent has not written yet must not be written twice."""
    for writer in list(_writers):
        writer._lock = threading.Lock()
        if writer._file.closed:
            continue
        with contextlib.suppress(OSError):  # a file of another scheme has no descriptor
            descriptor = writer._file.fileno()
            nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            os.dup2(nowhere, descriptor, inheritable=False)
            os.close(nowhere)


forks.in_child(_begin_anew)
