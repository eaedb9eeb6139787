"""Files: atomic replacement, and the operating system's refusals as errors of our tree.

Owns nothing that lasts. Beside `checkpoint`, `events` and `gfile`, which all write files and say what went wrong.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterator
from typing import Any

from dtf.wire import errors

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


@contextlib.contextmanager
def file_errors(what: str) -> Iterator[None]:
    """Turns an OSError of its block into an OpError that begins with `what`, a path or prefix."""
    try:
        yield
    except OSError as error:
        raise error_of(error, what) from error


def error_of(error: OSError, what: str) -> errors.OpError:
    """The OpError for what the operating system refused; its message begins with `what`, a path or prefix."""
    kind = _KINDS.get(error.errno or 0, errors.UnknownError)
    where = f": {error.filename}" if error.filename and os.fspath(error.filename) != what else ""
    return kind(None, None, f"{what}; {error.strerror}{where}")


def write_atomically(path: str, data: bytes) -> None:
    """Writes a file aside, syncs and renames it, so that it is complete or as it was before. Raises OSError."""
    aside = f"{path}.tmp{secrets.token_hex(8)}"
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(aside)
        raise
