"""The folder that a training writes to, as its readers see it: of this machine, or in a store that fsspec reaches.

A store is asked over a network, which may be slow or gone. So `StoredFolder` is read in a thread of its own (see
`progress.StoredProgress`), and nothing in dtfctl waits for it.

Source: https://filesystem-spec.readthedocs.io/en/latest/api.html
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path
from typing import Any, BinaryIO, Protocol

__all__ = ["LocalFolder", "StoredFolder", "TrainingFolder"]

_EVENTS = "*tfevents*"
_STATE = "checkpoint"
_MODIFIED = ("mtime", "LastModified", "last_modified", "modified", "created")
_STATE_BYTES_MAX = 1 << 20


class TrainingFolder(Protocol):
    """All methods take a folder or a file that is absent for an empty one."""

    def event_files(self) -> list[str]:
        """The paths of its event files, in order."""

    def size(self, path: str) -> int:
        """The bytes of an event file."""

    def written_at(self, path: str) -> float:
        """When an event file was written last, in seconds since the epoch."""

    def open(self, path: str) -> BinaryIO:
        """An event file, to be read. Raises OSError."""

    def state(self) -> str:
        """The text of the file that names the newest checkpoint."""


class LocalFolder:
    """A folder of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def event_files(self) -> list[str]:
        try:
            return sorted(map(str, self._folder.glob(_EVENTS)))
        except OSError:
            return []

    def size(self, path: str) -> int:
        try:
            return os.stat(path).st_size
        except OSError:
            return 0

    def written_at(self, path: str) -> float:
        try:
            return os.stat(path).st_mtime
        except OSError:
            return 0.0

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    def state(self) -> str:
        try:
            return (self._folder / _STATE).read_text()
        except (OSError, UnicodeDecodeError):
            return ""


class StoredFolder:
    """A folder in a store: s3://bucket/training."""

    def __init__(self, url: str) -> None:
        """Opens the store.

        Raises:
          ImportError: fsspec, or its package for the scheme, is not installed.
          ValueError: fsspec does not know the scheme.
        """
        import fsspec

        scheme, _, _ = url.partition("://")
        self._system: Any = fsspec.filesystem(scheme)
        self._url = url.rstrip("/")
        self._found: dict[str, dict[str, Any]] = {}

    def event_files(self) -> list[str]:
        self._system.invalidate_cache()
        try:
            self._found = self._system.glob(f"{self._url}/{_EVENTS}", detail=True)
        except OSError:
            self._found = {}
        return sorted(self._found)

    def size(self, path: str) -> int:
        return int(self._found.get(path, {}).get("size") or 0)

    def written_at(self, path: str) -> float:
        found = self._found.get(path, {})
        at = next((found[key] for key in _MODIFIED if found.get(key)), 0.0)
        return at.timestamp() if isinstance(at, datetime.datetime) else float(at)

    def open(self, path: str) -> BinaryIO:
        opened: BinaryIO = self._system.open(path, "rb")
        return opened

    def state(self) -> str:
        try:
            with self._system.open(f"{self._url}/{_STATE}", "rb") as file:
                return str(file.read(_STATE_BYTES_MAX).decode())
        except (OSError, UnicodeDecodeError):
            return ""
