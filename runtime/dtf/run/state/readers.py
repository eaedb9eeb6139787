"""Readers: files that queue runners name become keys and records, as tf.TextLineReader and its like have it.

Owns `Reader` and the kinds of records. A reader takes file names ("work units") from a queue; `kernels/readers.py`
binds it to nodes. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/ReaderBase
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

from dtf.wire import errors, filesystems
from dtf.wire.decompress import InflatingFile
from dtf.wire.events import read_records
from dtf.wire.files import file_errors, lines_within_memory, read_within_memory
from dtf.wire.files import fixed_length_records as records_of_file

__all__ = ["Reader", "Records", "fixed_length_records", "lines", "names", "tf_records", "whole_files"]

#: records(file name) -> (key, value) one after the other.
Records = Callable[[str], Iterator[tuple[bytes, bytes]]]


class Reader:
    """What one reader node has read so far. Reads are served one after the other; the lock guards everything.

    Attributes:
      name: the name of its node.
      records_produced, work_units_completed: counts since the last reset.
    """

    def __init__(self, name: str, records: Records) -> None:
        self.name = name
        self.records_produced = 0
        self.work_units_completed = 0
        self._open = records
        self._work: str | None = None
        self._records: Iterator[tuple[bytes, bytes]] | None = None
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[Callable[[], None]], None]] = deque()
        self._busy = False

    def read(self) -> np.ndarray:
        """The value of the old string handle: container and name."""
        return np.array([b"", self.name.encode()], object)

    def take_turn(self, work: Callable[[Callable[[], None]], None]) -> None:
        """Calls work(end) as soon as all earlier ones have called their `end`; no lock is held then."""
        with self._lock:
            self._waiting.append(work)
            if self._busy:
                return
            self._busy = True
        self._next_turn()

    def _next_turn(self) -> None:
        with self._lock:
            if not self._waiting:
                self._busy = False
                return
            work = self._waiting.popleft()
        work(self._next_turn)

    def next_record(self) -> tuple[bytes, bytes] | None:
        """The next record of the file that is open; None when a new file is needed."""
        with self._lock:
            if self._records is None:
                return None
            record = next(self._records, None)
            if record is None:
                self._records = self._work = None
                self.work_units_completed += 1
                return None
            self.records_produced += 1
            if self._open is names or self._open is whole_files:  # one record for each file, which ends it
                self._records = self._work = None
                self.work_units_completed += 1
            return record

    def start(self, work: str) -> None:
        """Opens the next file. Errors of the file system come with its first record."""
        with self._lock:
            self._work = work
            self._records = self._open(work)

    def reset(self) -> None:
        """As if nothing had been read."""
        with self._lock:
            self._records = self._work = None
            self.records_produced = self.work_units_completed = 0

    def state(self) -> bytes:
        """The counts, for `restore`. UnimplementedError in the middle of a file."""
        with self._lock:
            if self._records is not None:
                raise errors.UnimplementedError.of(f"{self.name} cannot be saved in the middle of a file")
            return json.dumps([self.records_produced, self.work_units_completed]).encode()

    def restore(self, state: bytes) -> None:
        """Takes on a state. InvalidArgumentError for what is none."""
        try:
            produced, completed = map(int, json.loads(state))
        except (ValueError, TypeError):
            raise errors.InvalidArgumentError.of(f"Could not parse state for {self.name}") from None
        with self._lock:
            self._records = self._work = None
            self.records_produced, self.work_units_completed = produced, completed


def names(path: str) -> Iterator[tuple[bytes, bytes]]:
    """The name itself, as key and record."""
    yield path.encode(), path.encode()


def whole_files(path: str) -> Iterator[tuple[bytes, bytes]]:
    """One record: the contents of the file."""
    with file_errors(path), filesystems.open(path, "rb") as file:
        yield path.encode(), read_within_memory(file, path)


def lines(skipped: int) -> Records:
    """Lines without their ends, after `skipped` first ones; keys are "path:number", from 1 on."""

    def of_file(path: str) -> Iterator[tuple[bytes, bytes]]:
        with file_errors(path), filesystems.open(path, "rb") as file:
            for number, line in enumerate(lines_within_memory(file, f"{path}: a line"), 1):
                if number > skipped:
                    text = line[:-1] if line.endswith(b"\n") else line
                    yield f"{path}:{number}".encode(), text.removesuffix(b"\r")

    return of_file


def tf_records(compression: str) -> Records:
    """Records of a TFRecord file; keys are "path:offset"."""

    def of_file(path: str) -> Iterator[tuple[bytes, bytes]]:
        opened = None
        if compression:
            with file_errors(path):
                opened = InflatingFile(path, filesystems.open(path, "rb"), compression)  # noqa: SIM115  (closed by read_records)
        offset = 0
        for record in read_records(path, opened=opened):
            yield f"{path}:{offset}".encode(), record
            offset += len(record) + 16

    return of_file


def fixed_length_records(header: int, record: int, footer: int, hop: int, is_compressed: bool) -> Records:
    """Records of `record` bytes, `hop` bytes (or their own length) apart, between a header and a footer."""

    def of_file(path: str) -> Iterator[tuple[bytes, bytes]]:
        with file_errors(path), filesystems.open(path, "rb") as file:
            opened = InflatingFile(path, file, "ZLIB") if is_compressed else file
            what = f"{path}: a record of {record} bytes"
            for number, data in enumerate(records_of_file(opened, what, header, record, footer, hop)):
                yield f"{path}:{number}".encode(), data

    return of_file
