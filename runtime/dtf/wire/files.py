"""Files: atomic replacement, and the operating system's refusals as errors of our tree.

Owns nothing that lasts. Beside `checkpoint`, `events` and `gfile`, which all write files and say what went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from typing import Any

from dtf.wire import errors, filesystems
from dtf.wire.unfinished import new_token

_KINDS: dict[int, Any] = {
    errno.ENOENT: errors.NotFoundError,
    errno.ENOTDIR: errors.NotFoundError,
    errno.EEXIST: errors.AlreadyExistsError,
    errno.EACCES: errors.PermissionDeniedError,
    errno.EPERM: errors.PermissionDeniedError,
    errno.ENOSPC: errors.ResourceExhaustedError,
    errno.EDQUOT: errors.ResourceExhaustedError,
    errno.ENOTEMPTY: errors.FailedPreconditionError,
    errno.EISDIR: errors.FailedPreconditionError,
}


_CLASSES: dict[type[OSError], Any] = {
    FileNotFoundError: errors.NotFoundError,
    NotADirectoryError: errors.NotFoundError,
    FileExistsError: errors.AlreadyExistsError,
    PermissionError: errors.PermissionDeniedError,
    IsADirectoryError: errors.FailedPreconditionError,
}


class UnreadableFileError(errors.DataLossError, OSError, ValueError):
    """A file that holds no message of its kind: DATA_LOSS, and the OSError that TensorFlow raises for these."""

    def __init__(self, path: str, why: object) -> None:
        super().__init__(None, None, f"Cannot parse file {path}: {why}")

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


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file aside, syncs and renames it, so that it is complete or as it was before. Raises OSError."""
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
