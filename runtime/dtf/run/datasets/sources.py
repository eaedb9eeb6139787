"""Datasets that begin a pipeline: tensors, their slices, ranges, Python generators and the records of files."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements, Function, Scope
from dtf.run.value_types import Element, Position
from dtf.wire import errors, filesystems
from dtf.wire.decompress import InflatingFile
from dtf.wire.events import read_records
from dtf.wire.files import file_errors, lines_within_memory
from dtf.wire.files import fixed_length_records as records_of_file
from dtf.wire.strings import string_scalar

__all__ = ["fixed_length_records", "generator", "indexed", "lines", "number_range", "tf_records"]


def indexed(kind: str, count: int, element: Callable[[int], Element]) -> Dataset:
    """`count` elements that can be made of their number."""
    return Dataset(kind, lambda scope: _Indexed(scope, count, element), count)


def number_range(start: int, stop: int, step: int, dtype: type[np.generic]) -> Dataset:
    """The numbers of a range, as scalars."""
    numbers = range(start, stop, step)
    return indexed("RangeDataset", len(numbers), lambda index: (dtype(numbers[index]),))


class _Indexed(Elements):
    def __init__(self, scope: Scope, count: int, element: Callable[[int], Element]) -> None:
        self._scope, self._count, self._element = scope, count, element
        self._next = 0

    def __next__(self) -> Element:
        self._scope.check()  # it may be all that an endless loop takes from
        if self._next >= self._count:
            raise StopIteration
        self._next += 1
        return self._element(self._next - 1)

    def save(self) -> Position:
        return self._next

    def restore(self, state: Position) -> None:
        self._next = state


# -- Python generators


def generator(init: Function, following: Function, finalize: Function) -> Dataset:
    """What `following(state)` gives until it raises OutOfRangeError; `init()` makes the state, `finalize` ends it."""
    return Dataset("GeneratorDataset", lambda scope: _Generated(scope, init, following, finalize))


class _Generated(Elements):
    def __init__(self, scope: Scope, init: Function, following: Function, finalize: Function) -> None:
        self._scope, self._init, self._following, self._finalize = scope, init, following, finalize
        self._state: Element | None = None
        self._ended = False

    def __next__(self) -> Element:
        if self._ended:
            raise StopIteration
        if self._state is None:
            self._state = self._init.call(self._scope, ())
        try:
            return self._following.call(self._scope, self._state)
        except errors.OutOfRangeError:
            self.close()
            raise StopIteration from None

    def save(self) -> Position:
        raise errors.FailedPreconditionError.of(
            "The position of a dataset made from a Python generator cannot be saved"
        )

    def close(self) -> None:
        state, self._state, self._ended = self._state, None, True
        if state is not None and not self._scope.cancellation.is_cancelled:
            self._finalize.call(self._scope, state)


# -- files

_BUFFER_BYTES = 1 << 18


def tf_records(files: Sequence[str], compression: str) -> Dataset:
    """The records of TFRecord files, one file after the other."""
    check_compression(compression)

    def records(path: str) -> Iterator[bytes]:
        return read_records(path, opened=_opened(path, compression))

    return Dataset("TFRecordDataset", lambda scope: _Records(files, records))


def lines(files: Sequence[str], compression: str) -> Dataset:
    """The lines of text files, without their ends."""
    check_compression(compression)

    def records(path: str) -> Iterator[bytes]:
        opened = _opened(path, compression)
        text = io.BufferedReader(opened, _BUFFER_BYTES) if isinstance(opened, InflatingFile) else opened
        with file_errors(path), text as file:
            for line in lines_within_memory(file, f"{path}: a line"):
                yield (line[:-1] if line.endswith(b"\n") else line).removesuffix(b"\r")

    return Dataset("TextLineDataset", lambda scope: _Records(files, records))


def fixed_length_records(files: Sequence[str], header: int, record: int, footer: int, compression: str) -> Dataset:
    """Records of `record` bytes between a header and a footer of each file.

    Raises (when a file is read):
      InvalidArgumentError: its records do not fill it.
    """
    check_compression(compression)

    def records(path: str) -> Iterator[bytes]:
        def check(size: int) -> None:
            body = size - header - footer
            if body < 0 or body % record:
                raise errors.InvalidArgumentError.of(
                    f"Excluding the header ({header} bytes) and footer ({footer} bytes), input file \"{path}\" has "
                    f"body length {body} bytes, which is not an exact multiple of the record length ({record} bytes).",
                )

        with file_errors(path), _opened(path, compression) as file:
            if not compression:
                check(filesystems.getsize(path))
            what = f"{path}: a record of {record} bytes"
            check((yield from records_of_file(file, what, header, record, footer)))

    return Dataset("FixedLengthRecordDataset", lambda scope: _Records(files, records))


class _Records(Elements):
    """Position: which file, and how many of its records have been given."""

    def __init__(self, files: Sequence[str], records: Callable[[str], Iterator[bytes]]) -> None:
        self._files, self._open = files, records
        self._file = self._taken = 0
        self._records: Iterator[bytes] | None = None

    def __next__(self) -> Element:
        while self._file < len(self._files):
            if self._records is None:
                self._records = self._open(self._files[self._file])
                for _ in range(self._taken):
                    next(self._records, None)
            try:
                record = next(self._records, None)
            except BaseException:
                # An error ends this file; a pass that ignores errors goes on with the next file.
                self._next_file()
                raise
            if record is not None:
                self._taken += 1
                return (string_scalar(record),)
            self._next_file()
        raise StopIteration

    def _next_file(self) -> None:
        self._file, self._taken, self._records = self._file + 1, 0, None

    def save(self) -> Position:
        return [self._file, self._taken]

    def restore(self, state: Position) -> None:
        self._file, self._taken = state
        self._records = None


def check_compression(compression: str) -> None:
    """Raises InvalidArgumentError for a compression that is none."""
    if compression not in ("", "ZLIB", "GZIP"):
        raise errors.InvalidArgumentError.of(f"Unsupported compression_type: {compression}")


def _opened(path: str, compression: str) -> BinaryIO | InflatingFile:
    with file_errors(path):
        file = filesystems.open(path, "rb")  # noqa: SIM115  (closed by the reader)
    return InflatingFile(path, file, compression) if compression else file
