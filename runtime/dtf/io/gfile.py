"""tf.io.gfile: `tf.gfile` by its later names. Only re-exports names.

Source: https://www.tensorflow.org/api_docs/python/tf/io/gfile
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from dtf import gfile as _gfile
from dtf.gfile import GFile
from dtf.wire import errors, filesystems

__all__ = [
    "GFile", "copy", "exists", "glob", "isdir", "join", "listdir", "makedirs", "mkdir", "remove", "rename", "rmtree",
    "stat", "walk",
]  # fmt: skip


def copy(src: str, dst: str, overwrite: bool = False) -> None:
    """Copies a file. Raises NotFoundError, or AlreadyExistsError unless `overwrite`."""
    _gfile.Copy(src, dst, overwrite)


def exists(path: str) -> bool:
    """Whether there is a file or folder of that name."""
    return _gfile.Exists(path)


def glob(pattern: Any) -> list[str]:
    """The paths that match a pattern, or any of several."""
    return _gfile.Glob(pattern)


def isdir(path: str) -> bool:
    """Whether there is a folder of that name."""
    return _gfile.IsDirectory(path)


def join(path: str, *paths: str) -> str:
    """The parts of a path as one."""
    return os.path.join(path, *paths)


def listdir(path: str) -> list[str]:
    """The names in a folder, in no order. Raises NotFoundError."""
    return _gfile.ListDirectory(path)


def makedirs(path: str) -> None:
    """Makes a folder and those above it; fine if it exists."""
    _gfile.MakeDirs(path)


def mkdir(path: str) -> None:
    """Makes one folder. Raises NotFoundError if the one above is missing, AlreadyExistsError."""
    _gfile.MkDir(path)


def remove(path: str) -> None:
    """Removes a file. Raises NotFoundError."""
    _gfile.Remove(path)


def rename(src: str, dst: str, overwrite: bool = False) -> None:
    """Renames a file or folder. Raises NotFoundError, or AlreadyExistsError unless `overwrite`."""
    _gfile.Rename(src, dst, overwrite)


def rmtree(path: str) -> None:
    """Removes a folder and all in it. Raises NotFoundError."""
    _gfile.DeleteRecursively(path)


def stat(path: str) -> _gfile.FileStatistics:
    """Statistics of a file or folder. Raises NotFoundError."""
    return _gfile.Stat(path)


def walk(
    top: str, topdown: bool = True, onerror: Callable[[errors.OpError], Any] | None = None
) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields (folder, names of folders in it, names of files in it) for a tree.

    Args:
      onerror: called with the error of an unreadable folder, which is skipped.
    """
    from dtf.wire.files import error_of

    def report(error: OSError) -> None:
        if onerror is not None:
            onerror(error_of(error, os.fsdecode(error.filename)))

    yield from filesystems.walk(top, topdown, report)
