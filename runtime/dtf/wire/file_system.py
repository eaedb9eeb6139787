"""The seam through which files are reached: what one kind of file system does for `filesystems`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["FileSystem", "Status"]


@dataclass(frozen=True)
class Status:
    """What there is at a path: its size in bytes, nanoseconds since the epoch of its last change, or a folder."""

    size: int
    mtime_ns: int
    is_folder: bool


class FileSystem(Protocol):
    """One kind of file system. Paths come without a scheme where it is `file`, with it elsewhere."""

    def open(self, path: str, mode: str, encoding: str | None) -> Any:
        """A file object. Raises FileNotFoundError, OSError."""

    def status(self, path: str) -> Status:
        """Raises FileNotFoundError."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder. Raises FileNotFoundError."""

    def matching(self, pattern: str) -> list[str]:
        """The paths that match a pattern, in no order."""

    def make_folder(self, path: str) -> None:
        """Raises FileExistsError, and FileNotFoundError when the one above is missing."""

    def make_folders(self, path: str) -> None:
        """Makes a folder and those above it; fine if it exists."""

    def remove(self, path: str) -> None:
        """Removes a file. Raises FileNotFoundError."""

    def remove_folder(self, path: str) -> None:
        """Removes an empty folder. Raises OSError when it is not."""

    def remove_tree(self, path: str) -> None:
        """Removes a folder and all in it."""

    def replace(self, source: str, target: str) -> None:
        """Renames a file or folder; a file that is there is replaced. Raises FileNotFoundError."""
