"""tf.contrib.learn.datasets: small data sets, read from existing files."""

from __future__ import annotations

import csv
import os
from typing import Any, NamedTuple

import numpy as np

from dtf.contrib.learn import mnist
from dtf.wire import errors, filesystems
from dtf.wire.files import file_errors

__all__ = [
    "Dataset", "Datasets", "load_boston", "load_csv_with_header", "load_csv_without_header", "load_dataset",
    "load_iris", "maybe_download", "mnist", "shrink_csv",
]  # fmt: skip


class Dataset(NamedTuple):
    """The result of the CSV readers: one array of features, one of targets."""

    data: Any
    target: Any


Datasets = mnist.Datasets


def load_dataset(name: str, size: str = "small", test_with_fake_data: bool = False) -> Any:
    """The data set "mnist", from the folder MNIST-data.

    Raises:
      ValueError: another name: those files came with TensorFlow, and are not here.
    """
    if name == "mnist":
        return mnist.load_mnist()
    raise ValueError(f"The data set {name!r} is not part of dtf: read its file with load_csv_with_header")


def load_csv_with_header(filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """Reads a CSV file whose first line has the numbers of examples and features.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: a line does not fit.
    """
    rows = _rows(filename)
    try:
        count, width = int(rows[0][0]), int(rows[0][1])
    except (IndexError, ValueError):
        raise errors.DataLossError.of(f"{filename}: the first line must begin with two numbers") from None
    dataset = _split(filename, rows[1:], target_dtype, features_dtype, target_column)
    if dataset.data.shape != (count, width):
        raise errors.DataLossError.of(f"{filename}: {count} x {width} values announced, {dataset.data.shape} found")
    return dataset


def load_csv_without_header(filename: str, target_dtype: Any, features_dtype: Any, target_column: int = -1) -> Dataset:
    """Reads a CSV file of numbers.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: a line does not fit.
    """
    return _split(filename, _rows(filename), target_dtype, features_dtype, target_column)


def load_iris(data_path: str | None = None) -> Dataset:
    """The irises of a CSV file with header: float64 [150, 4], int64 [150].

    Raises:
      ValueError: no file is given: TensorFlow's came with it, and is not here.
    """
    return load_csv_with_header(_given("iris", data_path), np.int64, np.float64)


def load_boston(data_path: str | None = None) -> Dataset:
    """The houses of a CSV file with header: float64 [506, 13], float64 [506].

    Raises:
      ValueError: no file is given: TensorFlow's came with it, and is not here.
    """
    return load_csv_with_header(_given("boston", data_path), np.float64, np.float64)


def maybe_download(filename: str, work_directory: str, source_url: str) -> str:
    """The path of a file in a folder; it is never downloaded.

    Raises:
      NotFoundError: the folder lacks the file.
    """
    path = os.path.join(work_directory, filename)
    if not filesystems.exists(path):
        where = os.path.abspath(work_directory)
        advice = f"put it there from {source_url}; nothing is downloaded"
        raise errors.NotFoundError.of(f"{where} has no {filename}: {advice}")
    return path


def shrink_csv(filename: str, ratio: float) -> None:
    """Writes every `ratio`-th line of a file into "small_<name>" in the same folder."""
    folder, name = os.path.split(filename)
    with file_errors(filename), filesystems.open(filename) as source:
        lines = [line for number, line in enumerate(source) if number % ratio == 0]
    with filesystems.open(os.path.join(folder, f"small_{name}"), "w") as target:
        target.writelines(lines)


def _given(name: str, path: str | None) -> str:
    if path is None:
        raise ValueError(f"The data set {name!r} is not part of dtf: pass the path of its CSV file as data_path")
    return path


def _rows(filename: str) -> list[list[str]]:
    with file_errors(filename), filesystems.open(filename) as file:
        return [row for row in csv.reader(file) if row]


def _split(filename: str, rows: list[list[str]], target_dtype: Any, features_dtype: Any, column: int) -> Dataset:
    try:
        target = np.array([row.pop(column) for row in rows], dtype=target_dtype)
        return Dataset(np.array(rows, dtype=features_dtype), target)
    except (IndexError, ValueError) as error:
        raise errors.DataLossError.of(f"{filename}: not a table of numbers: {error}") from None
