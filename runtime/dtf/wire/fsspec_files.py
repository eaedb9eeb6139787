"""Files that fsspec reaches (s3://, gs://, hdfs://, memory:// ...), where it and what it needs is installed.

Owns the one import of fsspec, and what its methods are called. A rename there is a copy and a removal: a save that is
killed meanwhile leaves the file as it was, or both.

Source: https://filesystem-spec.readthedocs.io/en/latest/api.html
"""

from __future__ import annotations

import datetime
import errno
import functools
import os
from typing import Any

from dtf.wire.file_system import FileSystem, Status

__all__ = ["FsspecFiles", "advice", "file_system"]

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


class FsspecFiles:
    """The files of one of fsspec's file systems."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def open(self, path: str, mode: str, encoding: str | None) -> Any:
        if "x" in mode:
            if self._system.exists(path):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
            mode = mode.replace("x", "w")
        return self._system.open(path, mode, **({"encoding": encoding} if "b" not in mode else {}))

    def status(self, path: str) -> Status:
        found = self._info(path)
        changed = next((found[key] for key in _MODIFIED if found.get(key)), 0)
        if isinstance(changed, datetime.datetime):
            changed = changed.timestamp()
        return Status(int(found.get("size") or 0), int(float(changed) * 1e9), found.get("type") == "directory")

    def names(self, folder: str) -> list[str]:
        if self._info(folder).get("type") != "directory":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        found = self._system.ls(folder, detail=False)
        return [os.path.basename(name.rstrip("/")) for name in found]

    def matching(self, pattern: str) -> list[str]:
        scheme, _, rest = pattern.partition("://")
        found = (path.partition("://")[2] if "://" in path else path for path in self._system.glob(pattern))
        return [f"{scheme}://{path if rest.startswith('/') else path.lstrip('/')}" for path in found]

    def make_folder(self, path: str) -> None:
        self._system.mkdir(path, create_parents=False)

    def make_folders(self, path: str) -> None:
        self._system.makedirs(path, exist_ok=True)

    def remove(self, path: str) -> None:
        self._info(path)
        self._system.rm_file(path)

    def remove_folder(self, path: str) -> None:
        if self.names(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._system.rmdir(path)

    def remove_tree(self, path: str) -> None:
        self._info(path)
        self._system.rm(path, recursive=True)

    def replace(self, source: str, target: str) -> None:
        is_folder = self._info(source).get("type") == "directory"
        self._system.mv(source, target, recursive=is_folder)

    def _info(self, path: str) -> dict[str, Any]:
        # Lists may be kept by the file system; other tasks write there too.
        self._system.invalidate_cache()
        return self._system.info(path)
