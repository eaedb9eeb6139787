"""Files of data sets: npz archives and pickled batches, read as data. Nothing in a file is executed.

The files of CIFAR, IMDB and Reuters are pickles. A pickle may name any function of Python; here it may name those that
make arrays, and no other.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import tokenize
import zipfile
import zlib
from typing import Any

import numpy as np

from dtf.wire import filesystems, limits

__all__ = ["found", "read_bytes", "read_npz", "read_pickle"]

_ARRAY_MAKERS = frozenset(
    {
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
        ("_codecs", "encode"),
    }
)


_DAMAGED = (
    zipfile.BadZipFile, zlib.error, tokenize.TokenError, EOFError, KeyError, TypeError, OverflowError, MemoryError,
    NotImplementedError, RuntimeError,
)  # fmt: skip


def found(path: str) -> str:
    """The path of a data set's file, below Keras' folder if it is relative. Raises FileNotFoundError."""
    folder = os.path.join(os.path.expanduser(os.environ.get("KERAS_HOME", "~/.keras")), "datasets")
    whole = os.path.join(folder, path)
    if not filesystems.exists(whole):
        raise FileNotFoundError(f"{whole} does not exist; put the file there, as datasets are not downloaded")
    return whole


def read_bytes(path: str) -> bytes:
    """The contents of a file. Raises OSError, or DataLossError for a device."""
    return filesystems.read_regular(path)


def read_pickle(data: bytes, source: str) -> Any:
    """The lists, dictionaries, numbers, texts and arrays of a pickle of Python 2 or 3.

    Raises:
      ValueError: it is damaged, or names anything else. `source` is the file in the message.
    """
    try:
        return _ArraysOnly(io.BytesIO(data), encoding="bytes").load()
    except Exception as error:  # a damaged pickle fails in any way
        raise ValueError(f"{source} is not a file of this data set: {error}") from None


def read_npz(path: str) -> dict[str, np.ndarray]:
    """The arrays of an npz archive, those of objects too.

    Raises:
      ValueError: the file is damaged, or another kind of file.
      ResourceExhaustedError: an array is larger than DTF_MAX_DECOMPRESSED_BYTES.
    """
    arrays: dict[str, np.ndarray] = {}
    try:
        with filesystems.open(path, "rb") as file, zipfile.ZipFile(file) as archive:
            for entry in archive.infolist():
                limits.DECOMPRESSED_BYTES.check(entry.file_size, f"{path}, {entry.filename}")
                arrays[entry.filename.removesuffix(".npy")] = _array(archive.read(entry), path)
    except _DAMAGED as error:
        raise ValueError(f"{path} is not an npz archive: {error}") from None
    return arrays


def _array(data: bytes, path: str) -> np.ndarray:
    file = io.BytesIO(data)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError(f"{path} has an array of an unknown version")
    shape, _, dtype = read_header(file)
    if not dtype.hasobject and math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"{path} has an array of the shape {shape} and of {len(data) - file.tell()} bytes")
    if dtype.hasobject:
        array = read_pickle(data[file.tell() :], path)
        if not isinstance(array, np.ndarray) or array.shape != shape:
            raise ValueError(f"{path} has an array whose contents do not fit its header")
        return array
    return np.load(io.BytesIO(data), allow_pickle=False)


class _ArraysOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        module = module.replace("numpy.core.", "numpy._core.")  # numpy 1 wrote the file
        if (module, name) not in _ARRAY_MAKERS:
            raise ValueError(f"it names {module}.{name}, which is not part of an array")
        return super().find_class(module, name)
