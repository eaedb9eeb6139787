"""tensorflow.python.lib.io.file_io: files and folders by their first names."""

from __future__ import annotations

import os
from typing import Any

from dtf import gfile

__all__ = [
    "FileIO", "copy", "create_dir", "delete_file", "delete_recursively", "file_exists", "get_matching_files",
    "is_directory", "list_directory", "read_file_to_string", "recursive_create_dir", "rename", "stat", "walk",
    "write_string_to_file",
]  # fmt: skip


class FileIO(gfile.GFile):
    """A file, opened at the first read or write; see tf.gfile.GFile."""

    def __init__(self, name: str | os.PathLike[str], mode: str) -> None:
        super().__init__(name, mode)


def read_file_to_string(filename: str, binary_mode: bool = False) -> Any:
    """The whole content."""
    with FileIO(filename, "rb" if binary_mode else "r") as file:
        return file.read()


def write_string_to_file(filename: str, file_content: Any) -> None:
    """Writes the whole content."""
    with FileIO(filename, "w") as file:
        file.write(file_content)


copy = gfile.Copy
create_dir = gfile.MkDir
delete_file = gfile.Remove
delete_recursively = gfile.DeleteRecursively
file_exists = gfile.Exists
get_matching_files = gfile.Glob
is_directory = gfile.IsDirectory
list_directory = gfile.ListDirectory
recursive_create_dir = gfile.MakeDirs
rename = gfile.Rename
stat = gfile.Stat
walk = gfile.Walk
