"""Files: atomic replacement, and the operating system's refusals as errors of our tree.

Owns nothing that lasts. Beside `checkpoint`, `events` and `gfile`, which all write files and say what went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
from collections.abc import Generator, Iterator
from typing import Any

from dtf.wire import errors, filesystems, limits
from dtf.wire.unfinished import new_token

_CODES = {
    errors.NotFoundError: "ENOENT ENODEV ENXIO ESRCH",
    errors.AlreadyExistsError: "EEXIST EADDRNOTAVAIL EALREADY",
    errors.PermissionDeniedError: "EACCES EPERM EROFS",
    errors.ResourceExhaustedError: "ENOSPC EDQUOT EMFILE EMLINK ENFILE ENOBUFS ENODATA ENOMEM",
    errors.FailedPreconditionError: "ENOTEMPTY EISDIR ENOTDIR EBADF EBUSY ETXTBSY EPIPE",
    errors.InvalidArgumentError: "EINVAL ENAMETOOLONG E2BIG EDOM EFAULT EILSEQ ENOTTY ESPIPE",
    errors.OutOfRangeError: "EFBIG EOVERFLOW ERANGE",
    errors.UnimplementedError: "ENOSYS ENOTSUP EXDEV",
    errors.DeadlineExceededError: "ETIMEDOUT",
    errors.AbortedError: "EDEADLK ESTALE",
    errors.UnavailableError: "EAGAIN EINTR ENOLCK ECONNREFUSED ECONNRESET EHOSTDOWN EHOSTUNREACH ENETDOWN ENETUNREACH",
}
"""The codes of TensorFlow's files for the numbers of the operating system; UnknownError for all others."""

_KINDS: dict[int, Any] = {
    getattr(errno, name): kind for kind, names in _CODES.items() for name in names.split() if hasattr(errno, name)
}

_PIECE_BYTES = 1 << 24
_RECORDS_BYTES = 1 << 16

_CLASSES: dict[type[OSError], Any] = {
    FileNotFoundError: errors.NotFoundError,
    NotADirectoryError: errors.FailedPreconditionError,
    FileExistsError: errors.AlreadyExistsError,
    PermissionError: errors.PermissionDeniedError,
    IsADirectoryError: errors.FailedPreconditionError,
}


class UnreadableFileError(errors.DataLossError, OSError, ValueError):
    """A file that holds no message of its kind: DATA_LOSS, and the OSError that TensorFlow raises for these."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(None, None, f"Cannot parse file {path}: {why}")

    __str__ = errors.OpError.__str__


class MissingFileError(errors.NotFoundError, OSError):
    """A file that does not exist: NOT_FOUND, and the OSError that TensorFlow raises for a MetaGraphDef."""

    def __init__(self, path: str) -> None:
        super().__init__(None, None, f"File {path} does not exist.")

    __str__ = errors.OpError.__str__


@contextlib.contextmanager
def file_errors(what: str) -> Iterator[None]:
    """Turns an OSError of its block into an OpError that begins with `what`, a path or prefix."""
    try:
        yield
    except OSError as error:
        raise error_of(error, what) from error


def error_of(error: OSError, what: str) -> errors.OpError:
    """The OpError for what the operating system refused; its message begins with `what`, a path or prefix."""
    if error.errno is None:  # raised by a program: only the class says what it is
        kind = next((kind for known, kind in _CLASSES.items() if isinstance(error, known)), errors.UnknownError)
        return kind.of(f"{what}; {error}")
    kind = _KINDS.get(error.errno, errors.UnknownError)
    where = f": {error.filename}" if error.filename and os.fspath(error.filename) != what else ""
    return kind.of(f"{what}; {error.strerror}{where}")


def read_within_memory(file: Any, what: str, size: int | None = None) -> bytes:
    """`size` bytes of an open file, or what there is; a size that is declared takes no memory before the file has
    shown it.

    Raises:
      ResourceExhaustedError: there is no memory for it, as for a file that is all hole; or the file's size is unknown,
        as that of a device without an end, and `limits.STREAM_BYTES` less than what is read.
    """
    there = _bytes_left(file) if size is None or size > _PIECE_BYTES else 0
    if there:
        limits.check_free(there if size is None else min(size, there), what)
    pieces: list[bytes] = []
    found = 0
    while size is None or found < size:
        piece = file.read(_PIECE_BYTES if size is None else min(_PIECE_BYTES, size - found))
        if not piece:
            break
        pieces.append(piece)
        found += len(piece)
        if len(pieces) > 1:  # they are joined: that takes as much again
            limits.check_free(found, what)
            if there is None:
                limits.STREAM_BYTES.check(found, what)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def lines_within_memory(file: Any, what: str) -> Iterator[bytes]:
    """The lines of an open file with their ends. Raises as `read_within_memory` does, for a line without an end."""
    for line in iter(functools.partial(file.readline, _PIECE_BYTES), b""):
        if len(line) < _PIECE_BYTES or line.endswith(b"\n"):
            yield line
            continue
        pieces = [line]
        is_stream = _bytes_left(file) is None
        while not pieces[-1].endswith(b"\n") and (piece := file.readline(_PIECE_BYTES)):
            pieces.append(piece)
            limits.check_free(len(pieces) * _PIECE_BYTES, what)
            if is_stream:
                limits.STREAM_BYTES.check(len(pieces) * _PIECE_BYTES, what)
        yield b"".join(pieces)


def fixed_length_records(
    file: Any, what: str, header: int, record: int, footer: int, step: int = 0
) -> Generator[bytes, None, int]:
    """The records of `record` bytes of an open file between a header and a footer, `step` bytes (or their own length)
    apart, until one is cut short. Returns the number of bytes of the file."""
    step = step or record
    position = _skip(file, header)
    ahead = bytearray()
    while position >= header:
        while len(ahead) < record + footer:
            piece = read_within_memory(file, what, max(_RECORDS_BYTES, record + footer - len(ahead)))
            if not piece:
                return position
            position += len(piece)
            ahead += piece
        yield bytes(memoryview(ahead)[:record])
        if step > len(ahead):
            position += _skip(file, step - len(ahead))
        del ahead[:step]
    return position


def _skip(file: Any, size: int) -> int:
    """Goes on by so many bytes, or to the end; returns by how many."""
    if there := _bytes_left(file):
        file.seek(min(size, there), os.SEEK_CUR)
        return min(size, there)
    skipped = 0
    while skipped < size and (piece := file.read(min(_PIECE_BYTES, size - skipped))):
        skipped += len(piece)
    return skipped


def _bytes_left(file: Any) -> int | None:
    """From the file's position to its end; None where nobody knows, as of devices, pipes and compressed files."""
    try:
        status = os.fstat(file.fileno())
        size = status.st_size if stat.S_ISREG(status.st_mode) else 0  # also of files that are made as they are read
    except (OSError, AttributeError):
        size = getattr(file, "size", None) or 0  # a file of an object store
    return max(0, size - file.tell()) if size else None


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file aside, syncs and renames it, so that it is complete or as it was before. Raises OSError.

    A device or a pipe, such as /dev/null, is written to: a rename would put a file in its place.
    """
    if filesystems.is_device(path):
        with filesystems.open(path, "wb") as device:
            device.write(data)
        return
    with written_aside(path, data) as aside:
        filesystems.replace(aside, path)


@contextlib.contextmanager
def written_aside(path: str, data: bytes) -> Iterator[str]:
    """The name under which a file is written and synced, for its block to rename to `path`; removed if that fails."""
    aside = f"{path}.tmp{new_token()}"
    try:
        with filesystems.open(aside, "wb") as file:
            file.write(data)
            filesystems.sync(file)
        yield aside
    except BaseException:
        with contextlib.suppress(OSError):
            filesystems.remove(aside)
        raise
