"""File systems: the seam through which every file that a program names is reached.

A path may begin with a scheme. `file://` and no scheme are this machine's files; for any other one fsspec is asked, if
it is installed (`pip install 'dtf[fs]'`), else the path is an UnimplementedError, as in TensorFlow, and never a folder
named "hdfs:". The functions have the names and the errors (OSError) of Python's os, os.path, glob and shutil.

    filesystems.open("file:///tmp/x", "rb")
    filesystems.exists("s3://bucket/key")

Owns schemes and the local files; other systems are `fsspec_files`. Does not know what is in files, nor the OpErrors for
what a system refuses (`files.file_errors`).

Source: https://www.tensorflow.org/api_docs/python/tf/io/gfile
"""

from __future__ import annotations

import builtins
import errno
import glob as _glob
import os
import re
import shutil
import stat as _stat
from collections.abc import Iterator
from typing import Any

import numpy as np

from dtf.wire import errors, limits
from dtf.wire.file_system import FileSystem, Status
from dtf.wire.fsspec_files import advice, file_system

__all__ = [
    "FileSystem", "LocalFiles", "Status", "check_answered", "copyfile", "dirname", "exists", "getmtime", "getsize",
    "glob", "is_device", "isdir", "isfile", "listdir", "makedirs", "mkdir", "open", "read_array", "read_pieces",
    "read_regular", "remove", "replace", "rmdir", "rmtree", "scheme_of", "stat", "sync", "walk",
]  # fmt: skip

Path = str | os.PathLike[str]


class LocalFiles:
    """This machine's files."""

    def open(self, path: str, mode: str, encoding: str | None) -> Any:
        return builtins.open(path, mode, encoding=encoding)

    def status(self, path: str) -> Status:
        found = os.stat(path)
        return Status(found.st_size, found.st_mtime_ns, _stat.S_ISDIR(found.st_mode))

    def names(self, folder: str) -> list[str]:
        return os.listdir(folder)

    def matching(self, pattern: str) -> list[str]:
        return _glob.glob(pattern)

    def make_folder(self, path: str) -> None:
        os.mkdir(path)

    def make_folders(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        os.remove(path)

    def remove_folder(self, path: str) -> None:
        os.rmdir(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def replace(self, source: str, target: str) -> None:
        os.replace(source, target)


_LOCAL = LocalFiles()
_ANSWERS = (FileNotFoundError, NotADirectoryError, PermissionError)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9.]*)://")
_OF_HOST = re.compile(r"file://[^/]*", re.IGNORECASE)


def scheme_of(path: Path) -> str:
    """The scheme of a path, "" where it has none."""
    found = _SCHEME.match(os.fsdecode(path))
    return found[1] if found else ""


def open(path: Path, mode: str = "r", encoding: str | None = None) -> Any:
    """A file object, as Python's own `open` gives it. Raises OSError."""
    system, inner = _system(path)
    return system.open(inner, mode, encoding)


def is_device(path: Path) -> bool:
    """Whether a local path is there and neither a regular file nor a folder: a device, a pipe, a socket."""
    system, inner = _system(path)
    if system is not _LOCAL:
        return False
    try:
        mode = os.stat(inner).st_mode
    except OSError:
        return False
    return not _stat.S_ISREG(mode) and not _stat.S_ISDIR(mode)


def read_regular(path: Path) -> bytes:
    """All that a file holds. A pipe or a device, as a stranger's model may have, could keep its reader for ever.

    Raises:
      OSError: the file cannot be read.
      DataLossError: it is a pipe, a device or the like.
      ResourceExhaustedError: it is larger than the memory that is free.
    """
    system, inner = _system(path)
    if system is not _LOCAL:
        with system.open(inner, "rb", None) as file:
            return bytes(file.read())
    descriptor = os.open(inner, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    status = os.fstat(descriptor)
    mode = status.st_mode
    if _stat.S_ISREG(mode):
        with builtins.open(descriptor, "rb") as file:
            limits.check_free(status.st_size, os.fspath(path))
            return file.read()
    os.close(descriptor)
    if _stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    raise errors.DataLossError.of(f"{os.fspath(path)}: neither a file nor a folder, but a pipe, a device or the like")


def stat(path: Path) -> Status:
    """What there is. Raises FileNotFoundError."""
    system, inner = _system(path)
    return system.status(inner)


def exists(path: Path) -> bool:
    """Whether there is a file or folder. Raises UnavailableError: see `_status_if_there`."""
    return _status_if_there(path) is not None


def isdir(path: Path) -> bool:
    """Whether there is a folder. Raises UnavailableError: see `_status_if_there`."""
    found = _status_if_there(path)
    return found is not None and found.is_folder


def isfile(path: Path) -> bool:
    """Whether there is a file. Raises UnavailableError: see `_status_if_there`."""
    found = _status_if_there(path)
    return found is not None and not found.is_folder


def _status_if_there(path: Path) -> Status | None:
    """What there is; None without it.

    Raises:
      UnavailableError: a remote store gives no answer. A trainer that took this for "no checkpoint" would begin anew,
        over the checkpoints that it has.
    """
    try:
        return stat(path)
    except OSError as error:
        check_answered(path, error)
    except ValueError:
        pass
    return None


def check_answered(path: Path, error: OSError) -> None:
    """Raises UnavailableError for an error that does not say whether a remote file is there."""
    if scheme_of(path) not in ("", "file") and not isinstance(error, _ANSWERS):
        why = error.strerror or str(error)
        raise errors.UnavailableError.of(f"{os.fsdecode(path)}: the store gives no answer: {why}") from error


def getsize(path: Path) -> int:
    """The size in bytes. Raises FileNotFoundError."""
    return stat(path).size


def getmtime(path: Path) -> float:
    """When it was last changed, in seconds since the epoch. Raises FileNotFoundError."""
    return stat(path).mtime_ns / 1e9


def listdir(path: Path) -> list[str]:
    """The names in a folder. Raises FileNotFoundError."""
    system, inner = _system(path)
    return system.names(inner)


def glob(pattern: Path) -> list[str]:
    """The paths that match a pattern, with its scheme, in no order.

    Raises:
      UnavailableError: a remote store gives no answer.
    """
    pattern = os.fsdecode(pattern)
    if "\0" in pattern:
        return []
    system, inner = _system(pattern)
    before = pattern[: -len(inner)] if inner and system is _LOCAL else ""
    try:
        return [before + path for path in system.matching(inner)]
    except OSError as error:
        check_answered(pattern, error)
        return []


def walk(top: Path, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yields (folder, names of folders in it, names of files in it) for a tree, as os.walk does."""
    top = os.fsdecode(top)
    system, inner = _system(top)
    if system is _LOCAL:
        before = top[: len(top) - len(inner)]
        for folder, folders, files in os.walk(inner, topdown, onerror):
            yield before + folder, folders, files
        return
    try:
        names = sorted(listdir(top))
    except OSError as error:
        if onerror is not None:
            onerror(error)
        return
    folders = [name for name in names if isdir(os.path.join(top, name))]
    here = (top, folders, [name for name in names if name not in folders])
    if topdown:
        yield here
    for name in folders:
        yield from walk(os.path.join(top, name), topdown, onerror)
    if not topdown:
        yield here


def mkdir(path: Path) -> None:
    """Makes one folder. Raises FileExistsError, FileNotFoundError."""
    system, inner = _system(path)
    system.make_folder(inner)


def makedirs(path: Path) -> None:
    """Makes a folder and those above it; fine if it exists."""
    system, inner = _system(path)
    system.make_folders(inner)


def remove(path: Path) -> None:
    """Removes a file. Raises FileNotFoundError."""
    system, inner = _system(path)
    system.remove(inner)


def rmdir(path: Path) -> None:
    """Removes an empty folder. Raises OSError."""
    system, inner = _system(path)
    system.remove_folder(inner)


def rmtree(path: Path, ignore_errors: bool = False) -> None:
    """Removes a folder and all in it."""
    system, inner = _system(path)
    try:
        system.remove_tree(inner)
    except OSError:
        if not ignore_errors:
            raise


def replace(source: Path, target: Path) -> None:
    """Renames a file or folder within one file system; a file that is there is replaced.

    Raises:
      FileNotFoundError: there is no `source`.
      UnimplementedError: the two are of different file systems.
    """
    system, inner = _system(source)
    other, target_inner = _system(target)
    if type(system) is not type(other) or (system is not _LOCAL and scheme_of(source) != scheme_of(target)):
        message = f"Renaming {os.fspath(source)} to {os.fspath(target)} not implemented"
        raise errors.UnimplementedError.of(message)
    system.replace(inner, target_inner)


def copyfile(source: Path, target: Path) -> None:
    """Copies the contents of a file, also from one file system to another. Raises FileNotFoundError."""
    (system, inner), (other, target_inner) = _system(source), _system(target)
    if system is _LOCAL and other is _LOCAL:
        shutil.copyfile(inner, target_inner)
        return
    with open(source, "rb") as reader, open(target, "wb") as writer:
        shutil.copyfileobj(reader, writer)


def dirname(path: Path) -> str:
    """The folder of a path; never less than its scheme."""
    text = os.fspath(path)
    found = _SCHEME.match(text)
    start = found.end() if found else 0
    return text[:start] + os.path.dirname(text[start:])


def read_array(path: Path, offset: int, size: int) -> tuple[np.ndarray, int]:
    """`size` bytes of a file, and how many there are from `offset` on: if they are fewer, none is read.

    Raises:
      OSError: FileNotFoundError, or the file cannot be read.
    """
    there = max(0, getsize(path) - offset)  # 0 of a pipe, whose reader would wait
    if there < size or not there:
        return np.empty(0, np.uint8), there
    with open(path, "rb") as file:
        if _system(path)[0] is _LOCAL:
            return np.fromfile(file, np.uint8, size, offset=offset), there
        file.seek(offset)
        return np.frombuffer(file.read(size), np.uint8), there


def read_pieces(path: Path, offset: int, room: np.ndarray, piece_bytes: int) -> Iterator[np.ndarray]:
    """Fills `room` (contiguous uint8) with the bytes of a file from `offset` on, and yields each piece once it is
    there. Fewer bytes than `room` has come where the file ends before.

    Raises:
      OSError: the file cannot be read.
    """
    system, inner = _system(path)
    with builtins.open(inner, "rb", buffering=0) if system is _LOCAL else system.open(inner, "rb", None) as file:
        file.seek(offset)
        position = 0
        while position < len(room):
            piece = room[position : position + piece_bytes]
            if system is _LOCAL:
                count = file.readinto(piece.data)
            else:
                found = file.read(len(piece))
                count = len(found)
                piece[:count] = np.frombuffer(found, np.uint8)
            if not count:
                return
            yield piece[:count]
            position += count


def sync(file: Any) -> None:
    """Has the file's contents written to the disk, where the system knows of such a thing."""
    file.flush()
    try:
        descriptor = file.fileno()
    except (OSError, AttributeError):
        return
    os.fsync(descriptor)


def _system(path: Path) -> tuple[FileSystem, str]:
    """The file system of a path, and the path as that system has it.

    Raises:
      UnimplementedError: its scheme has no file system.
      FileNotFoundError: no file can have this name.
    """
    text = os.fspath(path)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if "\0" in text:  # Python's own functions raise ValueError, which nobody expects of a file
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)
    scheme = scheme_of(text) if "://" in text else ""
    if not scheme:
        return _LOCAL, text
    if scheme == "file":
        return _LOCAL, _OF_HOST.sub("", text, count=1) or "/"
    found = file_system(scheme)
    if found is None:
        message = f"File system scheme '{scheme}' not implemented (file: '{text}'){advice(scheme)}"
        raise errors.UnimplementedError.of(message)
    return found, text
