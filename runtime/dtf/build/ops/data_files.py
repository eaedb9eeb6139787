"""Datasets of files: their names, and the records of TFRecord files, text files and files of fixed-length records.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/TFRecordDataset and neighbouring pages
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dtf.build.conversion import convert_to_tensor
from dtf.build.ops.array import reshape
from dtf.build.ops.data import Dataset, _made
from dtf.build.tensor import Tensor
from dtf.build.tensor_spec import TensorSpec
from dtf.wire import dtypes

__all__ = ["FixedLengthRecordDataset", "TFRecordDataset", "TextLineDataset"]

_BUFFER_BYTES = 256 * 1024


class TFRecordDataset(Dataset):
    """The records of TFRecord files, one file after the other, as string scalars.

    Args:
      filenames: a string tensor, or a dataset of string scalars.
      compression_type: "" or None, "ZLIB" or "GZIP".
      buffer_size: accepted for TensorFlow's sake.
      num_parallel_reads: how many files to read at the same time, in turns.
      name: for TensorFlow's sake.

    Raises (when it is iterated):
      NotFoundError: a file does not exist.
      DataLossError: a record is corrupt, or cut off.
    """

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        found = _read_whole("TFRecordDataset", filenames, compression_type, buffer_size, num_parallel_reads)
        super().__init__(found._variant_tensor, _RECORD)


class TextLineDataset(Dataset):
    """The lines of text files without their ends, as string scalars. Arguments and errors as `TFRecordDataset`."""

    def __init__(
        self, filenames: Any, compression_type: Any = None, buffer_size: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        found = _read_whole("TextLineDataset", filenames, compression_type, buffer_size, num_parallel_reads)
        super().__init__(found._variant_tensor, _RECORD)


class FixedLengthRecordDataset(Dataset):
    """Records of `record_bytes` bytes between a header and a footer of each file, as string scalars.

    Raises (when it is iterated):
      InvalidArgumentError: the records do not fill a file.
      NotFoundError: a file does not exist.
    """

    def __init__(
        self, filenames: Any, record_bytes: Any, header_bytes: Any = None, footer_bytes: Any = None,
        buffer_size: Any = None, compression_type: Any = None, num_parallel_reads: Any = None,
        name: str | None = None,
    ) -> None:  # fmt: skip
        sizes = {
            "header_bytes": _int64(0 if header_bytes is None else header_bytes),
            "record_bytes": _int64(record_bytes),
            "footer_bytes": _int64(0 if footer_bytes is None else footer_bytes),
        }
        compression, buffer = _string(compression_type), _size(buffer_size)

        def read_one_file(filename: Tensor) -> Dataset:
            return _made(
                "FixedLengthRecordDatasetV2",
                _RECORD,
                None,
                filenames=filename,
                **sizes,
                buffer_size=buffer,
                compression_type=compression,
            )

        super().__init__(_records(filenames, read_one_file, num_parallel_reads)._variant_tensor, _RECORD)


_RECORD = TensorSpec([], dtypes.string)


def _read_whole(
    op: str, filenames: Any, compression_type: Any, buffer_size: Any, parallel_reads: Any
) -> Dataset:
    """The records of whole files, which `op` finds."""
    compression, buffer = _string(compression_type), _size(buffer_size)

    def read_one_file(filename: Tensor) -> Dataset:
        return _made(op, _RECORD, None, filenames=filename, compression_type=compression, buffer_size=buffer)

    return _records(filenames, read_one_file, parallel_reads)


def _records(filenames: Any, read_one_file: Callable[[Tensor], Dataset], parallel_reads: Any) -> Dataset:
    if isinstance(filenames, Dataset):
        if filenames.element_spec != _RECORD:
            raise TypeError(f"`filenames` must be a dataset of string scalars, got {filenames.element_spec}")
        names = filenames
    else:
        given = convert_to_tensor(filenames, dtypes.string)
        names = Dataset.from_tensor_slices(reshape(given, [-1], name="flat_filenames"))
    if parallel_reads is None:
        return names.flat_map(read_one_file)
    return names.interleave(read_one_file, cycle_length=parallel_reads, num_parallel_calls=parallel_reads)


def _string(value: Any) -> Tensor:
    return convert_to_tensor("" if value is None else value, dtypes.string)


def _int64(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int64)


def _size(value: Any) -> Tensor:
    return _int64(_BUFFER_BYTES if value is None else value)
