"""The readers of the MNIST tutorials: files of images and labels in the idx format, as batches of arrays.

    mnist = input_data.read_data_sets("MNIST_data", one_hot=True)
    images, labels = mnist.train.next_batch(100)

Owns the reading of the four files and their batches. Files are never downloaded: an error says which one is missing
and where it was looked for. They may be packed with gzip or not.

Source: http://yann.lecun.com/exdb/mnist (the format)
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np

from dtf.wire import dtypes, errors, filesystems
from dtf.wire.decompress import decompress
from dtf.wire.files import read_within_memory

__all__ = [
    "DEFAULT_SOURCE_URL", "DataSet", "Datasets", "SOURCE_URL", "dense_to_one_hot", "extract_images", "extract_labels",
    "load_mnist", "read_data_sets",
]  # fmt: skip

DEFAULT_SOURCE_URL = SOURCE_URL = "https://storage.googleapis.com/cvdf-datasets/mnist/"
"""Where the files once came from, for programs that pass it on; nothing is downloaded."""

_KINDS = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
_IMAGES_MAGIC = 0x803
_LABELS_MAGIC = 0x801
_ELEMENTS_MAX = 1 << 31


class DataSet:
    """Images with their labels, in batches.

    Args:
      images: [count, rows, columns, 1], uint8.
      labels: [count], or [count, classes].
      fake_data: whether to use batches of ones, without files; `one_hot` selects the form of their labels.
      dtype: uint8 for pixels of 0 to 255, float32 for 0 to 1.
      reshape: whether images become [count, rows * columns].
      seed: of the order of the batches, which is numpy's; the graph's seeds by default.

    Raises:
      TypeError: another dtype.
      InvalidArgumentError: there are not as many labels as images.
    """

    def __init__(
        self, images: Any, labels: Any, fake_data: bool = False, one_hot: bool = False,
        dtype: Any = dtypes.float32, reshape: bool = True, seed: int | None = None,
    ) -> None:  # fmt: skip
        from dtf.build.ops.random import get_seed

        graph_seed, op_seed = get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        dtype = dtypes.as_dtype(dtype).base_dtype
        if dtype not in (dtypes.uint8, dtypes.float32):
            raise TypeError(f"Invalid image dtype {dtype!r}, expected uint8 or float32")
        self._is_fake, self._is_one_hot = fake_data, one_hot
        if fake_data:
            self._num_examples = 10000
        else:
            if len(images) != len(labels):
                raise errors.InvalidArgumentError.of(f"there are {len(images)} images and {len(labels)} labels")
            self._num_examples = len(images)
            if reshape:
                images = images.reshape(len(images), images.shape[1] * images.shape[2])
            if dtype == dtypes.float32:
                images = np.multiply(images.astype(np.float32), 1.0 / 255.0)
        self._images, self._labels = images, labels
        self._epochs_completed = 0
        self._next = 0

    @property
    def images(self) -> Any:
        """All images, in the order of the last epoch."""
        return self._images

    @property
    def labels(self) -> Any:
        """Their labels."""
        return self._labels

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return self._num_examples

    @property
    def epochs_completed(self) -> int:
        """How often all have been in batches."""
        return self._epochs_completed

    def next_batch(self, batch_size: int, fake_data: bool = False, shuffle: bool = True) -> tuple[Any, Any]:
        """(images, labels) of the next examples; at an epoch's end the rest of it and the begin of the next one."""
        if fake_data:
            label: Any = [1] + [0] * 9 if self._is_one_hot else 0
            return [[1] * 784 for _ in range(batch_size)], [label for _ in range(batch_size)]
        start = self._next
        if self._epochs_completed == 0 and start == 0 and shuffle:
            self._shuffle()
        if start + batch_size <= self._num_examples:
            self._next = start + batch_size
            return self._images[start : self._next], self._labels[start : self._next]
        self._epochs_completed += 1
        rest = self._images[start:], self._labels[start:]
        if shuffle:
            self._shuffle()
        self._next = batch_size - len(rest[0])
        begin = self._images[: self._next], self._labels[: self._next]
        return np.concatenate((rest[0], begin[0])), np.concatenate((rest[1], begin[1]))

    def _shuffle(self) -> None:
        order = np.arange(self._num_examples)
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


class Datasets(NamedTuple):
    """The result of `read_data_sets`."""

    train: Any
    validation: Any
    test: Any


def read_data_sets(
    train_dir: str, fake_data: bool = False, one_hot: bool = False, dtype: Any = dtypes.float32,
    reshape: bool = True, validation_size: int = 5000, seed: int | None = None, source_url: str = "",
) -> Datasets:  # fmt: skip
    """Reads the four files of a folder.

    Args:
      train_dir: the folder.
      fake_data: nothing is read; batches are of ones.
      one_hot: labels as rows [10] of one 1 instead of numbers.
      dtype, reshape, seed: as in DataSet.
      validation_size: this many of the first training images are used for validation.
      source_url: not used: nothing is downloaded.

    Raises:
      NotFoundError: a file is missing; the message names all that are, and the folder.
      DataLossError: a file is not of the idx format, or is not whole.
      ValueError: `validation_size` does not fit.
    """
    if fake_data:
        fake = [DataSet([], [], True, one_hot, dtype, seed=seed) for _ in range(3)]
        return Datasets(*fake)
    paths = _paths(train_dir)
    train_images = extract_images(paths[0])
    train_labels = extract_labels(paths[1], one_hot)
    test_images = extract_images(paths[2])
    test_labels = extract_labels(paths[3], one_hot)
    if not 0 <= validation_size <= len(train_images):
        raise ValueError(
            f"Validation size should be between 0 and {len(train_images)}. Received: {validation_size}."
        )
    parts = (
        (train_images[validation_size:], train_labels[validation_size:]),
        (train_images[:validation_size], train_labels[:validation_size]),
        (test_images, test_labels),
    )
    return Datasets(*(DataSet(*part, dtype=dtype, reshape=reshape, seed=seed) for part in parts))


def load_mnist(train_dir: str = "MNIST-data") -> Datasets:
    """`read_data_sets` of a folder."""
    return read_data_sets(train_dir)


def extract_images(f: Any) -> np.ndarray:
    """The images of a file (its path, or an open file packed with gzip): uint8 [count, rows, columns, 1].

    Raises:
      DataLossError: it is not of the format, or is not whole.
    """
    data, name = _content(f)
    rows = _idx(data, name, _IMAGES_MAGIC, 3, "images")
    return rows.reshape(*rows.shape, 1)


def extract_labels(f: Any, one_hot: bool = False, num_classes: int = 10) -> np.ndarray:
    """The labels of a file: uint8 [count], or float64 [count, num_classes] with one_hot.

    Raises:
      DataLossError: it is not of the format, is not whole, or has labels beyond `num_classes`.
    """
    data, name = _content(f)
    labels = _idx(data, name, _LABELS_MAGIC, 1, "labels")
    if not one_hot:
        return labels
    if labels.size and labels.max() >= num_classes:
        raise errors.DataLossError.of(f"{name}: the label {labels.max()} is not below {num_classes}")
    return dense_to_one_hot(labels, num_classes)


def dense_to_one_hot(labels_dense: np.ndarray, num_classes: int) -> np.ndarray:
    """Labels [count] as float64 [count, num_classes]."""
    return np.eye(num_classes)[np.ravel(labels_dense)]


def _read32(bytestream: Any) -> int:
    """The next number of an idx file; programs read the headers of their own files with it."""
    return int(np.frombuffer(bytestream.read(4), ">u4")[0])


def _paths(folder: str) -> list[str]:
    found = []
    missing = []
    for kind in _KINDS:
        names = [f"{kind}.gz", kind, f"{kind.replace('-idx', '.idx')}.gz", kind.replace("-idx", ".idx")]
        path = next((path for path in (os.path.join(folder, name) for name in names) if filesystems.isfile(path)), "")
        found.append(path)
        if not path:
            missing.append(f"{kind}.gz")
    if missing:
        raise errors.NotFoundError.of(
            f"{os.path.abspath(folder)} has no {', '.join(missing)}: put the MNIST files there; nothing is downloaded"
        )
    return found


def _content(file: Any) -> tuple[bytes, str]:
    name = getattr(file, "name", str(file))
    if hasattr(file, "read"):
        data = file.read()
    else:
        with filesystems.open(file, "rb") as opened:
            data = read_within_memory(opened, name)
    if data[:2] == b"\x1f\x8b":
        data = decompress(data, "GZIP", name)
    return data, name


def _idx(data: bytes, name: str, magic: int, dimensions: int, kind: str) -> np.ndarray:
    """The array of uint8 in a file: its magic number, its sizes, its values."""
    header = 4 * (1 + dimensions)
    words = np.frombuffer(data[: len(data[:header]) // 4 * 4], ">u4")
    if len(words) < 1 + dimensions or words[0] != magic:
        found = f"{words[0]:#x}" if len(words) else "nothing"
        raise errors.DataLossError.of(f"{name}: not an idx file of {kind}: it begins with {found}, not {magic:#x}")
    shape = tuple(int(size) for size in words[1:])
    count = int(np.prod(shape, dtype=object))
    if count > _ELEMENTS_MAX or len(data) - header < count:
        raise errors.DataLossError.of(f"{name}: {count} bytes of {kind} expected, {len(data) - header} found")
    return np.frombuffer(data, np.uint8, count, header).reshape(shape)
