"""Files that fsspec reaches (s3://, gs://, hdfs://, memory:// ...), where it and what it needs is installed.

Owns the one import of fsspec, and what its methods are called. A rename there is a copy and a removal: a save that is
killed meanwhile leaves the file as it was, or both.

Object stores (s3://, gs:// ...) differ in two ways. They have no empty folders, so this process remembers those that it
has made. They take a file as a whole, so one that is written is kept in a local temporary file until it is closed; a
flush uploads it too, unless little was added since the last upload.

Source: https://filesystem-spec.readthedocs.io/en/latest/api.html
"""

from __future__ import annotations

import atexit
import contextlib
import datetime
import errno
import functools
import io
import os
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

from dtf.wire.file_system import FileSystem, Status

__all__ = ["FsspecFiles", "advice", "file_system"]

Method = TypeVar("Method", bound=Callable[..., Any])

_UPLOAD_SHARE = 0.1
"""Flushes of little that is new upload it as long as uploads take no more than this share of the time."""
_PART_BYTES = 1 << 20
_MODIFIED = ("mtime", "LastModified", "last_modified", "modified", "created")


@functools.cache
def file_system(scheme: str) -> FileSystem | None:
    """What reaches the files of a scheme; None without fsspec, or without the package that it needs for the scheme."""
    try:
        import fsspec

        return FsspecFiles(fsspec.filesystem(scheme))
    except (ImportError, ValueError, OSError):
        return None


def advice(scheme: str) -> str:
    """What to install for a scheme, as the end of a message; "" for a scheme that fsspec does not know either."""
    try:
        from fsspec.registry import known_implementations
    except ImportError:
        return ". Other file systems need fsspec: pip install 'dtf[fs]'"
    found = known_implementations.get(scheme, {}).get("err", "")
    return f". {found}" if found else ""


def _as_os_errors(method: Method) -> Method:
    """`method(self, path, ...)` that raises OSError where a library below raises an error of its own type."""

    @functools.wraps(method)
    def guarded(self: Any, path: str, *arguments: Any) -> Any:
        with _os_errors(path):
            return method(self, path, *arguments)

    return guarded  # type: ignore[return-value]


@contextlib.contextmanager
def _os_errors(path: str) -> Iterator[None]:
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(errno.EIO, f"{type(error).__name__}: {error}", path) from error


class FsspecFiles:
    """The files of one of fsspec's file systems."""

    def __init__(self, system: Any) -> None:
        self._system = system
        self._is_store = isinstance(system, _object_stores())
        self._made: set[str] = set()

    @_as_os_errors
    def open(self, path: str, mode: str, encoding: str | None) -> Any:
        if "x" in mode:
            if self._system.exists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            mode = mode.replace("x", "w")
        is_text = "b" not in mode
        if not self._is_store:
            return self._system.open(path, mode, **({"encoding": encoding} if is_text else {}))
        file: Any
        if "r" in mode:
            file = io.BufferedReader(_Fetched(path, self._system.open(path, "rb")))
        else:
            file = StoredFile(functools.partial(self._upload, path), self._old(path) if "a" in mode else b"")
        return io.TextIOWrapper(file, encoding) if is_text else file

    @_as_os_errors
    def status(self, path: str) -> Status:
        try:
            found = self._info(path)
        except FileNotFoundError:
            if self._key(path) not in self._made:
                raise
            return Status(0, 0, True)
        changed = next((found[key] for key in _MODIFIED if found.get(key)), 0)
        if isinstance(changed, datetime.datetime):
            changed = changed.timestamp()
        return Status(int(found.get("size") or 0), int(float(changed) * 1e9), found.get("type") == "directory")

    @_as_os_errors
    def names(self, folder: str) -> list[str]:
        if not self.status(folder).is_folder:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        key = self._key(folder)
        try:
            found = [name.rstrip("/") for name in self._system.ls(folder, detail=False)]
        except FileNotFoundError:
            found = []  # an object store's, made here and empty
        found += [made for made in self._made if os.path.dirname(made) == key]
        return list(dict.fromkeys(os.path.basename(name) for name in found if self._key(name) != key))

    @_as_os_errors
    def matching(self, pattern: str) -> list[str]:
        scheme, _, rest = pattern.partition("://")
        found = (path.partition("://")[2] if "://" in path else path for path in self._system.glob(pattern))
        return [f"{scheme}://{path if rest.startswith('/') else path.lstrip('/')}" for path in found]

    @_as_os_errors
    def make_folder(self, path: str) -> None:
        if self._is_there(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._system.mkdir(path, create_parents=False)
        self._remember(path)

    @_as_os_errors
    def make_folders(self, path: str) -> None:
        self._system.makedirs(path, exist_ok=True)
        self._remember(path)

    @_as_os_errors
    def remove(self, path: str) -> None:
        self._info(path)
        self._remember(os.path.dirname(path))
        self._system.rm_file(path)

    @_as_os_errors
    def remove_folder(self, path: str) -> None:
        if self.names(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._forget(path)
        if self._is_stored(path):
            self._system.rmdir(path)

    @_as_os_errors
    def remove_tree(self, path: str) -> None:
        self.status(path)
        self._forget(path)
        if self._is_stored(path):
            self._system.rm(path, recursive=True)

    @_as_os_errors
    def replace(self, source: str, target: str) -> None:
        is_folder = self.status(source).is_folder
        if is_folder:
            old, new = self._key(source), self._key(target)
            moved = {new + made[len(old) :] for made in self._made if _is_in(made, old)}
            self._forget(source)
            self._made |= moved
        if self._is_stored(source):
            self._system.mv(source, target, recursive=is_folder)

    # -- object stores

    def _upload(self, path: str, contents: IO[bytes]) -> None:
        with _os_errors(path), self._system.open(path, "wb") as file:
            while part := contents.read(_PART_BYTES):
                file.write(part)

    def _old(self, path: str) -> bytes:
        return bytes(self._system.cat_file(path)) if self._is_stored(path) else b""

    def _remember(self, path: str) -> None:
        """Keeps a folder, and those above it, that are not there although they were made."""
        while path and not self._is_there(path):
            self._made.add(self._key(path))
            path = os.path.dirname(path)

    def _forget(self, path: str) -> None:
        key = self._key(path)
        self._made -= {made for made in self._made if _is_in(made, key)}

    def _key(self, path: str) -> str:
        return str(self._system._strip_protocol(path)).rstrip("/")

    def _is_there(self, path: str) -> bool:
        return self._key(path) in self._made or self._is_stored(path)

    def _is_stored(self, path: str) -> bool:
        try:
            self._info(path)
        except FileNotFoundError:
            return False
        return True

    def _info(self, path: str) -> dict[str, Any]:
        # Lists may be kept by the file system; other tasks write there too.
        self._system.invalidate_cache()
        return self._system.info(path)


class _Fetched(io.RawIOBase):
    """A file of fsspec's that is read, as what Python's buffers read from."""

    def __init__(self, path: str, file: Any) -> None:
        self._path = path
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def readinto(self, buffer: Any) -> int:
        with _os_errors(self._path):
            found = self._file.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def tell(self) -> int:
        return int(self._file.tell())

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def close(self) -> None:
        self._file.close()
        super().close()


class StoredFile(io.BufferedIOBase):
    """A file that is written here, and uploaded as a whole when it is closed and at some flushes."""

    def __init__(self, upload: Callable[[IO[bytes]], None], old: bytes) -> None:
        """`upload(file)` stores what it reads from a file; `old` is what the file holds already."""
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  (closed by close)
        self._file.write(old)
        self._upload = upload
        self._uploaded_bytes = -1
        self._upload_at = 0.0
        _open_files.add(self)

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def flush(self) -> None:
        """Uploads what was written, unless that is little and the last upload was just now."""
        if self._file.closed:
            return
        size = self._file.tell()
        if size > 1.25 * self._uploaded_bytes or (size != self._uploaded_bytes and time.monotonic() >= self._upload_at):
            self._store()

    def close(self) -> None:
        """Uploads the file. Raises OSError: the store does not take it."""
        if self.closed:
            return
        try:
            if self._file.tell() != self._uploaded_bytes:
                self._store()
        finally:
            self._file.close()
            super().close()

    def _store(self) -> None:
        position, begin = self._file.tell(), time.monotonic()
        self._file.seek(0)
        self._upload(self._file)
        now = time.monotonic()
        self._uploaded_bytes, self._upload_at = self._file.tell(), now + (now - begin) / _UPLOAD_SHARE
        self._file.seek(position)


_open_files: weakref.WeakSet[StoredFile] = weakref.WeakSet()


def _upload_the_rest() -> None:
    """At the end of the process: stores what writers have flushed, for they are not always closed."""
    for file in list(_open_files):
        with contextlib.suppress(OSError):
            file.close()


# Not atexit's, whose functions run after the end of the thread pools that the stores' libraries use.
getattr(threading, "_register_atexit", atexit.register)(_upload_the_rest)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _object_stores() -> type:
    """The type of systems that are reached by web requests."""
    from fsspec.asyn import AsyncFileSystem

    found: type = AsyncFileSystem
    return found
