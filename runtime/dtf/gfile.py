"""tf.gfile: files and folders by TensorFlow's names, on this machine's file systems.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io/gfile
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from dtf.wire import errors, filesystems
from dtf.wire.files import file_errors

__all__ = [
    "Copy", "DeleteRecursively", "Exists", "FastGFile", "FileStatistics", "GFile", "Glob", "IsDirectory",
    "ListDirectory", "MakeDirs", "MkDir", "Open", "Remove", "Rename", "Stat", "Walk",
]  # fmt: skip

_MODES = frozenset(("r", "w", "a", "r+", "w+", "a+"))


class GFile:
    """A file, opened at the first read or write.

    Args:
      name: its path.
      mode: "r", "w", "a", "r+", "w+" or "a+"; with "b" reads give bytes, else strings of UTF-8. Both kinds can be
        written either way.

    Raises:
      InvalidArgumentError: another mode.
      NotFoundError, PermissionDeniedError, ...: raised by the methods, as reported by the file
      system.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gfile/GFile
    """

    def __init__(self, name: str | os.PathLike[str], mode: str = "r") -> None:
        if mode.replace("b", "") not in _MODES:
            raise errors.InvalidArgumentError.of(f"mode is not 'r' or 'w' or 'a': {mode!r}")
        self._name = os.fsdecode(name)
        self._mode = mode
        self._file: Any = None

    @property
    def name(self) -> str:
        """The path."""
        return self._name

    @property
    def mode(self) -> str:
        """The mode, as given."""
        return self._mode

    def read(self, n: int = -1) -> Any:
        """Up to `n` bytes, or all that is left."""
        return self._out(self._opened("r").read(n))

    def readline(self) -> Any:
        """The next line with its newline; empty at the end."""
        return self._out(self._opened("r").readline())

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return [self._out(line) for line in self._opened("r").readlines()]

    def __iter__(self) -> Iterator[Any]:
        return self

    def next(self) -> Any:
        """The next line. Raises StopIteration at the end."""
        return self.__next__()

    def __next__(self) -> Any:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def write(self, file_content: str | bytes) -> None:
        """Appends to the file."""
        with file_errors(self._name):
            self._opened("w").write(file_content.encode() if isinstance(file_content, str) else file_content)

    def seek(self, offset: int | None = None, whence: int = os.SEEK_SET, position: int | None = None) -> None:
        """Moves to a place counted in bytes; `position` is the older name of `offset`.

        Raises:
          TypeError: neither is given.
        """
        place = offset if position is None else position
        if place is None:
            raise TypeError("seek(): offset argument required")
        self._opened("r").seek(place, whence)

    def seekable(self) -> bool:
        """Whether `seek` is possible: always."""
        return True

    def tell(self) -> int:
        """The current place in bytes."""
        return self._opened("r").tell()

    def size(self) -> int:
        """The current size of the file on disk, in bytes."""
        return Stat(self._name).length

    def flush(self) -> None:
        """Hands what was written to the operating system."""
        if self._file is not None:
            with file_errors(self._name):
                self._file.flush()

    def close(self) -> None:
        """Flushes and closes; a file that was opened for writing exists afterwards, even if nothing was written."""
        if self._file is None and self._mode.startswith(("w", "a")):
            self._opened("w")
        if self._file is not None:
            with file_errors(self._name):
                self._file.close()
            self._file = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        # `GFile(name).read()` is a common way to write it.
        if getattr(self, "_file", None) is not None:
            self._file.close()

    def _opened(self, purpose: str) -> Any:
        """The open file. `purpose` is "r" or "w"."""
        plain = self._mode.replace("b", "")
        if "+" not in plain and (plain == "r") != (purpose == "r"):
            action = "reading" if purpose == "r" else "writing"
            raise errors.PermissionDeniedError.of(f"File isn't open for {action}: {self._name}")
        if self._file is None:
            with file_errors(self._name):
                self._file = filesystems.open(self._name, f"{plain}b")  # noqa: SIM115  (closed by close)
        return self._file

    def _out(self, data: bytes) -> Any:
        return data if "b" in self._mode else data.decode()


Open = GFile
FastGFile = GFile


@dataclass(frozen=True)
class FileStatistics:
    """The result of `Stat`: `length` in bytes, `mtime_nsec` since the epoch, `is_directory`."""

    length: int
    mtime_nsec: int
    is_directory: bool


def Exists(filename: str) -> bool:  # noqa: N802  (TensorFlow's name, as all of this module)
    """Whether there is a file or folder of that name.

    Args:
      filename: a path.

    Returns:
      A bool.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gfile/Exists
    """
    return filesystems.exists(filename)


def IsDirectory(dirname: str) -> bool:  # noqa: N802
    """Whether there is a folder of that name."""
    try:
        return filesystems.isdir(dirname)
    except errors.UnimplementedError:
        return False


def Stat(filename: str) -> FileStatistics:  # noqa: N802
    """Statistics of a file or folder. Raises NotFoundError."""
    with file_errors(filename):
        status = filesystems.stat(filename)
    return FileStatistics(status.size, status.mtime_ns, status.is_folder)


def MakeDirs(dirname: str) -> None:  # noqa: N802
    """Makes a folder and those above it; fine if it exists.

    Args:
      dirname: a path.

    Returns:
      Nothing.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gfile/MakeDirs
    """
    with file_errors(dirname):
        filesystems.makedirs(dirname)


def MkDir(dirname: str) -> None:  # noqa: N802
    """Makes one folder. Raises NotFoundError if the one above is missing, AlreadyExistsError."""
    with file_errors(dirname):
        filesystems.mkdir(dirname)


def Remove(filename: str) -> None:  # noqa: N802
    """Removes a file. Raises NotFoundError."""
    with file_errors(filename):
        filesystems.remove(filename)


def DeleteRecursively(dirname: str) -> None:  # noqa: N802
    """Removes a folder and all in it. Raises NotFoundError."""
    with file_errors(dirname):
        if filesystems.isdir(dirname) and not os.path.islink(dirname):
            filesystems.rmtree(dirname)
        else:
            filesystems.remove(dirname)


def Rename(oldname: str, newname: str, overwrite: bool = False) -> None:  # noqa: N802
    """Renames a file or folder. Raises NotFoundError, or AlreadyExistsError unless `overwrite`."""
    _refuse_to_overwrite(newname, overwrite)
    with file_errors(oldname):
        filesystems.replace(oldname, newname)


def Copy(oldpath: str, newpath: str, overwrite: bool = False) -> None:  # noqa: N802
    """Copies a file. Raises NotFoundError, or AlreadyExistsError unless `overwrite`."""
    _refuse_to_overwrite(newpath, overwrite)
    with file_errors(oldpath):
        filesystems.copyfile(oldpath, newpath)


def Glob(filename: str | Iterable[str]) -> list[str]:  # noqa: N802
    """The paths that match a pattern, or any of several, sorted per pattern."""
    patterns = [filename] if isinstance(filename, str | bytes | os.PathLike) else filename
    return [path for pattern in patterns for path in sorted(filesystems.glob(os.fsdecode(pattern)))]


def ListDirectory(dirname: str) -> list[str]:  # noqa: N802
    """The names in a folder, in no order. Raises NotFoundError."""
    dirname = os.fsdecode(dirname)
    if filesystems.scheme_of(dirname) and not IsDirectory(dirname):
        raise errors.NotFoundError.of(f"Could not find directory {dirname}")
    with file_errors(dirname):
        return filesystems.listdir(dirname)


def Walk(top: str, in_order: bool = True) -> Iterator[tuple[str, list[str], list[str]]]:  # noqa: N802
    """Yields (folder, names of folders in it, names of files in it) for a tree.

    Args:
      in_order: a folder before what it holds, otherwise after.
    """
    if IsDirectory(top):
        yield from filesystems.walk(top, topdown=in_order)


def _refuse_to_overwrite(path: str, overwrite: bool) -> None:
    if not overwrite and filesystems.exists(path):
        raise errors.AlreadyExistsError.of(f"file already exists: {path}")
