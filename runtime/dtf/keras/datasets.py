"""tf.keras.datasets: readers of the files that Keras keeps in ~/.keras/datasets; nothing is downloaded.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/keras/datasets
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dtf.keras.data_files import found, read_bytes, read_npz, read_pickle
from dtf.wire.decompress import decompress

__all__ = ["boston_housing", "cifar10", "cifar100", "fashion_mnist", "imdb", "mnist", "reuters"]

Arrays = tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


class mnist:  # noqa: N801  (TensorFlow's name of a module)
    """Digits: mnist.npz."""

    @staticmethod
    def load_data(path: str = "mnist.npz") -> Arrays:
        """((x, y) to train, (x, y) to test) of images [n, 28, 28]."""
        file = read_npz(found(path))
        return (file["x_train"], file["y_train"]), (file["x_test"], file["y_test"])


class fashion_mnist:  # noqa: N801
    """Clothes: the four files of MNIST's format in fashion-mnist/."""

    @staticmethod
    def load_data() -> Arrays:
        """((x, y) to train, (x, y) to test) of images [n, 28, 28]."""
        def read(name: str, skip: int) -> np.ndarray:
            path = found(os.path.join("fashion-mnist", f"{name}.gz"))
            data = decompress(read_bytes(path), "GZIP", path)
            return np.frombuffer(data, np.uint8, offset=skip)

        def pair(part: str) -> tuple[np.ndarray, np.ndarray]:
            labels = read(f"{part}-labels-idx1-ubyte", 8)
            return read(f"{part}-images-idx3-ubyte", 16).reshape(len(labels), 28, 28), labels

        return pair("train"), pair("t10k")


def _cifar(path: str, label: str) -> tuple[np.ndarray, np.ndarray]:
    data = read_pickle(read_bytes(path), path)
    images = np.asarray(data[b"data"]).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return images, np.asarray(data[label.encode()]).reshape(-1, 1)


class cifar10:  # noqa: N801
    """Images of ten kinds: cifar-10-batches-py/."""

    @staticmethod
    def load_data() -> Arrays:
        """((x, y) to train, (x, y) to test) of images [n, 32, 32, 3]."""
        folder = found("cifar-10-batches-py")
        parts = [_cifar(os.path.join(folder, f"data_batch_{number}"), "labels") for number in range(1, 6)]
        train = (np.concatenate([x for x, _ in parts]), np.concatenate([y for _, y in parts]))
        return train, _cifar(os.path.join(folder, "test_batch"), "labels")


class cifar100:  # noqa: N801
    """Images of a hundred kinds: cifar-100-python/."""

    @staticmethod
    def load_data(label_mode: str = "fine") -> Arrays:
        """((x, y) to train, (x, y) to test) of images [n, 32, 32, 3]."""
        folder, label = found("cifar-100-python"), f"{label_mode}_labels"
        return _cifar(os.path.join(folder, "train"), label), _cifar(os.path.join(folder, "test"), label)


class boston_housing:  # noqa: N801
    """Prices of houses: boston_housing.npz."""

    @staticmethod
    def load_data(path: str = "boston_housing.npz", test_split: float = 0.2, seed: int = 113) -> Arrays:
        """((x, y) to train, (x, y) to test) of 13 numbers."""
        file = read_npz(found(path))
        x, y = file["x"], file["y"]
        order = np.arange(len(x))
        np.random.RandomState(seed).shuffle(order)
        x, y, count = x[order], y[order], int(len(x) * (1 - test_split))
        return (x[:count], y[:count]), (x[count:], y[count:])


class _Texts:
    """Texts as numbers of words; `start_char`, `oov_char` and `index_from` as in Keras."""

    _file: str
    _index: str
    _seed: int
    _split = 0.0

    @classmethod
    def load_data(
        cls, path: str | None = None, num_words: int | None = None, skip_top: int = 0, maxlen: int | None = None,
        seed: int | None = None, start_char: int | None = 1, oov_char: int | None = 2, index_from: int = 3,
        test_split: float = 0.2, **kwargs: Any,
    ) -> Arrays:  # fmt: skip
        """((x, y) to train, (x, y) to test): lists of numbers, and labels."""
        random = np.random.RandomState(cls._seed if seed is None else seed)
        file = read_npz(found(path or cls._file))
        parts = [(file[f"x{end}"], file[f"y{end}"]) for end in (["_train", "_test"] if not cls._split else [""])]
        shuffled = []
        for x, y in parts:
            order = np.arange(len(x))
            random.shuffle(order)
            shuffled.append((x[order], y[order]))
        texts = np.concatenate([x for x, _ in shuffled])
        labels = np.concatenate([y for _, y in shuffled])
        first = [] if start_char is None else [start_char]
        rows = [[*first, *(word + index_from for word in text)] for text in texts]
        if maxlen is not None:
            kept = [len(row) < maxlen for row in rows]
            labels = labels[kept]
            rows = [row for row, keep in zip(rows, kept, strict=True) if keep]
        most = num_words or max(max(row) for row in rows)
        if oov_char is None:
            rows = [[word for word in row if skip_top <= word < most] for row in rows]
        else:
            rows = [[word if skip_top <= word < most else oov_char for word in row] for row in rows]
        count = int(len(rows) * (1 - test_split)) if cls._split else len(parts[0][0])
        data = np.empty(len(rows), object)
        data[:] = rows
        return (data[:count], labels[:count]), (data[count:], labels[count:])

    @classmethod
    def get_word_index(cls, path: str | None = None) -> dict[str, int]:
        """word -> number."""
        import json

        index: dict[str, int] = json.loads(read_bytes(found(path or cls._index)))
        return index


class imdb(_Texts):  # noqa: N801
    """Reviews of films: imdb.npz."""

    _file, _index, _seed = "imdb.npz", "imdb_word_index.json", 113


class reuters(_Texts):  # noqa: N801
    """News by subject: reuters.npz."""

    _file, _index, _seed, _split = "reuters.npz", "reuters_word_index.json", 113, 0.2

