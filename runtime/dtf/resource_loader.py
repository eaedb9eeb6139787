"""The namespace tf.resource_loader: files in the folder of the calling program.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/compat/v1/resource_loader
"""

from __future__ import annotations

import os
import sys

from dtf.wire import filesystems

__all__ = [
    "get_data_files_path", "get_path_to_datafile", "get_root_dir_with_all_resources", "load_resource",
    "readahead_file_path",
]  # fmt: skip


def _folder(depth: int) -> str:
    return os.path.dirname(os.path.realpath(sys._getframe(depth + 1).f_code.co_filename))


def get_data_files_path() -> str:
    """The folder of the caller's file."""
    return _folder(1)


def get_path_to_datafile(path: str) -> str:
    """`path`, relative to the folder of the caller's file."""
    return os.path.join(_folder(1), path)


def get_root_dir_with_all_resources() -> str:
    """The folder of the caller's file."""
    return _folder(1)


def load_resource(path: str) -> bytes:
    """The content of a file, by its path relative to the folder of the caller's file.

    Raises:
      OSError: the file cannot be read.
    """
    with filesystems.open(os.path.join(_folder(1), path), "rb") as file:
        return file.read()


def readahead_file_path(path: str, readahead: str = "128M") -> str:
    """`path` itself: the system reads ahead."""
    return path
