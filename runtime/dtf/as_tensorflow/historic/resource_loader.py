"""tensorflow.python.platform.resource_loader: files in the program's folder."""

from __future__ import annotations

import inspect
import os

from dtf.wire import filesystems

__all__ = ["get_data_files_path", "get_path_to_datafile", "get_root_dir_with_all_resources", "load_resource"]


def get_data_files_path() -> str:
    """The folder of the module that calls this."""
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    return os.path.dirname(os.path.abspath(inspect.getfile(caller))) if caller is not None else os.getcwd()


def get_path_to_datafile(path: str) -> str:
    """A file in the folder of the calling module."""
    frame = inspect.currentframe()
    caller = frame.f_back if frame is not None else None
    folder = os.path.dirname(os.path.abspath(inspect.getfile(caller))) if caller is not None else os.getcwd()
    return os.path.join(folder, path)


def get_root_dir_with_all_resources() -> str:
    """The folder of the program."""
    import sys

    return os.path.dirname(os.path.abspath(sys.argv[0]))


def load_resource(path: str) -> bytes:
    """The content of a file, as bytes."""
    with filesystems.open(path, "rb") as file:
        return file.read()
