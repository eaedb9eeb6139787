"""Journal: the folder of a durable task: records, blocks and saved rows that outlive the process.

Owns the files, their layout and the lock on the folder. Does not know what a record says (`durable_resources`).

    lock        held by the owner's process (flock); the kernel releases it with the process
    current     the name of the file of records: a compaction writes a new one and replaces this file
    records.N   records, one after the other: bytes u32, CRC-32 u32, sequence number u64, text, padding to 8 bytes
    block.N     the value of one variable
    undo        old rows of blocks that the running transaction changes in place

A process that is killed leaves every store that it made: the files are mapped and shared, and their pages belong to the
system. A record counts if its checksum and its sequence number are right, so one that was cut off does not. Room is
reserved before it is used; a full disk is an error, never a bus error.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import stat
import struct
import sys
import time
import weakref
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from dtf.wire import errors, forks

__all__ = ["Block", "Journal"]

_HEAD = struct.Struct("=IIQ")
_SAVED = struct.Struct("=QQQ")  # number of the block, bytes of a row, count of rows; then the rows and their bytes
_UNDO_BEGIN = 16
_RECORDS_BYTES = 16 << 20
_UNDO_BYTES = 1 << 20
_OWNER_WAIT_S = 10.0
_LOOK_PERIOD_S = 0.01


class Block:
    """The memory of one value: an array on a mapped file. `array` is the only reference that the block holds."""

    __slots__ = ("array", "bytes", "number")

    def __init__(self, number: int, memory: mmap.mmap, dtype: np.dtype, shape: tuple[int, ...]) -> None:
        self.number = number
        self.array: np.ndarray = np.ndarray(shape, dtype, memory)
        self.bytes: np.ndarray = np.ndarray((self.array.nbytes,), np.uint8, memory)

    @property
    def nbytes(self) -> int:
        return self.bytes.nbytes

    def fits(self, dtype: np.dtype, shape: tuple[int, ...]) -> bool:
        """Whether it has this dtype and shape."""
        return self.array.dtype == dtype and self.array.shape == shape

    def has_readers(self) -> bool:
        """Whether anything but this block refers to the array or a part of it."""
        return sys.getrefcount(self.array) > _BLOCK_COUNT


class Journal:
    """The files of one folder. The owner's lock (`durable_resources`) guards all of it.

    Attributes:
      folder: where it is.
      bytes_written: of records since the last compaction, or the last attempt of one.
    """

    def __init__(self, folder: Path) -> None:
        """Takes the folder, which is made if it does not exist.

        Raises:
          FailedPreconditionError: another process has it, or all users can write into it.
          ResourceExhaustedError, UnavailableError: the folder cannot be written.
        """
        self.folder = folder
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _check_private(folder)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _failed(folder, error) from None
        self._take_lock()
        _journals.add(self)
        self._next_block = 1
        self._sequence = 0
        self._at = 0
        self._records_number = 0
        self._records: mmap.mmap | None = None
        self._undo: mmap.mmap | None = None
        self._undo_words: np.ndarray | None = None
        self._undo_at = 0
        self.bytes_written = 0

    def close(self) -> None:
        """Releases the folder to the next owner."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # -- records

    def read(self) -> Iterator[bytes]:
        """The text of every record of the last owner, in order. Then the journal continues behind them."""
        current = self.folder / "current"
        if not current.exists():
            return
        name = current.read_text(encoding="ascii").strip()
        self._records_number = int(name.rpartition(".")[2])
        self._records = memory = self._mapped(self.folder / name, 0)
        while True:
            text = self._record(memory, self._at)
            if text is None:
                return
            self._sequence = _HEAD.unpack_from(memory, self._at)[2]  # the first one's goes on from the file before
            self._at += _padded(_HEAD.size + len(text))
            yield text

    def append(self, text: bytes) -> None:
        """Writes a record: it counts from here on.

        Raises:
          ResourceExhaustedError: there is no room.
        """
        size = _padded(_HEAD.size + len(text))
        memory = self._records
        assert memory is not None
        if self._at + size > len(memory):
            memory = self._grown(self.folder / f"records.{self._records_number}", memory, self._at + size)
            self._records = memory
        sequence = self._sequence + 1
        memory[self._at + _HEAD.size : self._at + _HEAD.size + len(text)] = text
        _HEAD.pack_into(memory, self._at, len(text), _checksum(text, sequence), sequence)
        self._at += size
        self._sequence = sequence
        self.bytes_written += size

    def begin_anew(self, text: bytes) -> None:
        """Replaces all records by one, which says the same.

        Raises:
          ResourceExhaustedError, UnavailableError: the folder cannot be written. The records go on as they were.
        """
        former = self._records, self._records_number, self._at, self._sequence
        number = self._records_number + 1
        path = self.folder / f"records.{number}"
        before = self.folder / f"records.{self._records_number}"
        self.bytes_written = 0
        try:
            path.unlink(missing_ok=True)
            self._records = self._mapped(path, max(_RECORDS_BYTES, 2 * _padded(_HEAD.size + len(text))))
            self._records_number, self._at = number, 0
            self.append(text)
            self.bytes_written = 0
            temporary = self.folder / "current.new"
            temporary.write_text(path.name, encoding="ascii")
            temporary.replace(self.folder / "current")
        except (OSError, errors.OpError) as error:
            # `current` names the former file: a record in the new one would be lost at a restart.
            self._records, self._records_number, self._at, self._sequence = former
            raise (_failed(self.folder, error) if isinstance(error, OSError) else error) from None
        with suppress(OSError):  # the next owner removes it
            before.unlink(missing_ok=True)

    @property
    def is_long(self) -> bool:
        """Whether the records should be replaced by one."""
        return self.bytes_written > _RECORDS_BYTES

    # -- blocks

    def new_block(self, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        """Memory for a value, of zeros. Raises ResourceExhaustedError when there is no room."""
        number = self._next_block
        self._next_block += 1
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        path = self._block_path(number)
        path.unlink(missing_ok=True)  # left by a transaction that did not end
        return Block(number, self._mapped(path, size), dtype, shape)

    def load_block(self, number: int, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        """The value of a block that a record names. Raises DataLossError when its file is damaged."""
        self._next_block = max(self._next_block, number + 1)
        memory = self._mapped(self._block_path(number), 0)
        if len(memory) < int(np.prod(shape, dtype=np.int64)) * dtype.itemsize:
            raise errors.DataLossError.of(f"{self._block_path(number)} is too short for {list(shape)} of {dtype}")
        return Block(number, memory, dtype, shape)

    def block_at(self, number: int, size: int) -> Block:
        """Memory for a block of a number and a size that a primary has given, of bytes."""
        self.drop_block(number)  # of another size
        return Block(number, self._mapped(self._block_path(number), size), np.dtype(np.uint8), (size,))

    def adopt(self, number: int, memory: mmap.mmap, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        """As `load_block`, of a block that is mapped already."""
        self._next_block = max(self._next_block, number + 1)
        return Block(number, memory, dtype, shape)

    def drop_block(self, number: int) -> None:
        """Removes a block that no record names. Its memory stays until the last reader is gone."""
        self._block_path(number).unlink(missing_ok=True)

    def drop_other_blocks(self, kept: set[int]) -> None:
        """Removes the blocks that unfinished transactions have left."""
        for path in self.folder.glob("block.*"):
            number = int(path.name.rpartition(".")[2])
            if number not in kept:
                path.unlink(missing_ok=True)
        for path in self.folder.glob("records.*"):
            if path.name != f"records.{self._records_number}":
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Removes all blocks, records and saved rows."""
        for pattern in ("block.*", "records.*", "current", "undo"):
            for path in self.folder.glob(pattern):
                path.unlink(missing_ok=True)
        self._records = self._undo = self._undo_words = None
        self._at = self._undo_at = 0

    # -- old rows

    def save(self, block: Block, rows: np.ndarray, row_bytes: int) -> None:
        """Saves rows of `row_bytes` bytes of a block before the running transaction changes them.

        Raises:
          ResourceExhaustedError: there is no room.
        """
        count = rows.size
        needed = _SAVED.size + 8 * count + _padded(count * row_bytes)
        memory, words = self._undo, self._undo_words
        number = self._sequence + 1
        if words is None or int(words[0]) != number:
            self._undo_at = _UNDO_BEGIN
        if memory is None or words is None or self._undo_at + needed > len(memory):
            size = max(_UNDO_BYTES, 2 * (self._undo_at + needed))
            path = self.folder / "undo"
            memory = self._undo = self._mapped(path, size) if memory is None else self._grown(path, memory, size)
            words = self._undo_words = np.ndarray((2,), np.uint64, memory)
        if int(words[0]) != number:
            words[1] = 0  # before the number: what an old transaction has saved must never count for this one
            words[0] = number
        at = self._undo_at
        _SAVED.pack_into(memory, at, block.number, row_bytes, count)
        at += _SAVED.size
        np.ndarray((count,), np.int64, memory, at)[:] = rows.reshape(-1)
        at += 8 * count
        kept: np.ndarray = np.ndarray((count, row_bytes), np.uint8, memory, at)
        np.take(block.bytes.reshape(-1, row_bytes), rows.reshape(-1), axis=0, out=kept, mode="clip")
        self._undo_at += needed
        words[1] = self._undo_at  # from here on a restart would put them back

    def put_back(self, block_of: Callable[[int], Block | None]) -> int:
        """After a restart: puts back what a transaction without a record has changed. Returns how many rows."""
        path = self.folder / "undo"
        if not path.exists() or path.stat().st_size < _UNDO_BEGIN:
            return 0
        memory = self._mapped(path, 0)
        words: np.ndarray = np.ndarray((2,), np.uint64, memory)
        number, end = int(words[0]), int(words[1])
        saved = []
        at = _UNDO_BEGIN
        while number > self._sequence and at < end:
            block_number, row_bytes, count = _SAVED.unpack_from(memory, at)
            at += _SAVED.size
            rows: np.ndarray = np.ndarray((count,), np.int64, memory, at)
            at += 8 * count
            kept: np.ndarray = np.ndarray((count, row_bytes), np.uint8, memory, at)
            at += _padded(count * row_bytes)
            saved.append((block_number, rows, kept))
        for block_number, rows, kept in reversed(saved):
            block = block_of(block_number)
            if block is not None:
                block.bytes.reshape(-1, kept.shape[1])[rows] = kept
        words[1] = 0
        return sum(len(rows) for _, rows, _ in saved)

    # --

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _OWNER_WAIT_S
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except OSError:
                if time.monotonic() > deadline:
                    os.close(self._lock)
                    self._lock = -1
                    raise errors.FailedPreconditionError.of(
                        f"The state in {self.folder} belongs to another process that still runs; stop it, or give this "
                        "task another folder (durability_folder).",
                    ) from None
            time.sleep(_LOOK_PERIOD_S)

    def _record(self, memory: mmap.mmap, at: int) -> bytes | None:
        """The text of the record at this place, if it is whole and the next one."""
        if at + _HEAD.size > len(memory):
            return None
        size, checksum, sequence = _HEAD.unpack_from(memory, at)
        if at and sequence != self._sequence + 1 or at + _HEAD.size + size > len(memory):
            return None
        text = memory[at + _HEAD.size : at + _HEAD.size + size]
        return text if _checksum(text, sequence) == checksum else None

    def _block_path(self, number: int) -> Path:
        return self.folder / f"block.{number}"

    def _mapped(self, path: Path, size: int) -> mmap.mmap:
        """A file in memory, with at least `size` bytes of its own."""
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                size = max(size, os.fstat(descriptor).st_size, 16)
                os.posix_fallocate(descriptor, 0, size)
                return mmap.mmap(descriptor, size)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failed(path, error) from None

    def _grown(self, path: Path, memory: mmap.mmap, size: int) -> mmap.mmap:
        return self._mapped(path, max(2 * len(memory), size))


def _check_private(folder: Path) -> None:
    """Refuses a folder that another user has made, or that all may write into: /dev/shm is everybody's."""
    state = folder.stat()
    if state.st_uid != os.geteuid() or state.st_mode & stat.S_IWOTH:
        raise errors.FailedPreconditionError.of(
            f"The folder {folder} for durable state belongs to user {state.st_uid} with mode "
            f"{stat.S_IMODE(state.st_mode):o}; it must be this process's user's, and not writable by all."
        )


def _checksum(text: bytes, sequence: int) -> int:
    return zlib.crc32(text, sequence & 0xFFFFFFFF)


def _padded(size: int) -> int:
    return size + -size % 8


def _failed(path: Path, error: OSError) -> errors.OpError:
    words = f"The durable state at {path} cannot be written: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return errors.ResourceExhaustedError.of(f"{words}; free memory there, or set durability_folder elsewhere.")
    return errors.UnavailableError.of(words)


def _close_in_child() -> None:
    """A forked process must not keep the folder locked when its parent, the owner, has been killed."""
    for each in list(_journals):
        each.close()


_journals: weakref.WeakSet[Journal] = weakref.WeakSet()
forks.in_child(_close_in_child)

_probe = Block.__new__(Block)
_probe.array = np.zeros(1)
_BLOCK_COUNT = sys.getrefcount(_probe.array)
del _probe
