"""tf.data.experimental's datasets of whole files: comma-separated values and Examples, in batches of features."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.build.ops.data import AUTOTUNE, Dataset
from dtf.wire.dtypes import DType

__all__ = ["CsvDataset", "make_batched_features_dataset", "make_csv_dataset"]


class CsvDataset(Dataset):
    """The records of files of comma-separated values, each a tuple with one scalar for each column.

    A quoted field must not hold line breaks.

    Args:
      filenames: a string tensor.
      record_defaults: for each column a dtype (the field must not be empty), or the value of empty fields.
      compression_type: "" or None, "ZLIB" or "GZIP".
      buffer_size: accepted for TensorFlow's sake.
      header: whether to skip the first line of each file.
      field_delim, use_quote_delim, na_value: as in `tf.decode_csv`.
      select_cols: the numbers of the columns to keep, ascending.
      exclude_cols: the numbers of the columns to leave out, instead of `select_cols`.

    Raises:
      ValueError: columns are selected and excluded.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Sequence[Any],
        compression_type: Any = None,
        buffer_size: Any = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Sequence[int] | None = None,
        exclude_cols: Sequence[int] | None = None,
    ) -> None:
        defaults = [_default(each) for each in record_defaults]
        if exclude_cols is not None:
            if select_cols is not None:
                raise ValueError("Either select_cols or exclude_cols should be provided, not both")
            left_out = {int(each) for each in exclude_cols}
            select_cols = [each for each in range(len(defaults) + len(left_out)) if each not in left_out]

        def lines(name: Any) -> Dataset:
            text = tf.data.TextLineDataset(name, compression_type, buffer_size)
            return text.skip(1) if header else text

        def fields(line: Any) -> tuple[Any, ...]:
            return tuple(
                tf.decode_csv(line, defaults, field_delim, use_quote_delim, na_value=na_value, select_cols=select_cols)
            )

        names = tf.reshape(tf.convert_to_tensor(filenames, tf.string), [-1])
        records = Dataset.from_tensor_slices(names).flat_map(lines).map(fields)
        super().__init__(records._variant_tensor, records.element_spec)


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Sequence[str] | None = None,
    column_defaults: Sequence[Any] | None = None,
    label_name: str | None = None,
    select_columns: Sequence[Any] | None = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: str | None = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Batches of the rows of files of comma-separated values: dictionaries of columns, or (columns, label).

    Without `column_names` the header has them; without `column_defaults` the first rows show the columns' types.

    Raises:
      ValueError: no file matches, names come twice or are missing, a column or the label is unknown, or there is not
        one default for each column.
    """
    names = _matching(file_pattern)
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = _rows(names[0], field_delim, use_quote_delim, compression_type, 0, 1, encoding)[0]
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    kept = list(range(len(column_names))) if select_columns is None else _numbers(select_columns, column_names)
    if column_defaults is None:
        rows = [
            row
            for name in names
            for row in _rows(
                name, field_delim, use_quote_delim, compression_type, int(header), num_rows_for_inference, encoding
            )
        ]
        column_defaults = [_inferred([row[number] for row in rows], na_value) for number in kept]
    elif len(column_defaults) != len(kept):
        raise ValueError(f"column_defaults must have one value for each of {len(kept)} columns, got "
                         f"{len(column_defaults)}.")  # fmt: skip
    keys = [column_names[number] for number in kept]
    if label_name is not None and label_name not in keys:
        raise ValueError("`label_name` provided must be one of the columns.")
    defaults = list(column_defaults)

    def records(name: Any) -> Dataset:
        return CsvDataset(
            name, defaults, compression_type, None, header, field_delim, use_quote_delim, na_value, kept
        )

    def features(*columns: Any) -> Any:
        found = dict(zip(keys, columns, strict=True))
        if label_name is None:
            return found
        label = found.pop(label_name)
        return found, label

    dataset = Dataset.from_tensor_slices(names)
    if shuffle:
        dataset = dataset.shuffle(len(names), shuffle_seed)
    dataset = dataset.interleave(records, cycle_length=num_parallel_reads or 1)
    if ignore_errors:
        dataset = dataset.apply(tf.data.experimental.ignore_errors())
    dataset = _in_order(dataset, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None).map(features)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: Any,
    reader: Any = None,
    label_key: str | None = None,
    reader_args: Sequence[Any] | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the Examples in files: dictionaries of tensors, or (features, label).

    Args:
      features: as in `tf.parse_example`.
      reader: a class or function from file names to a dataset of serialised Examples.

    Raises:
      ValueError: no file matches, or the label is no feature.
    """
    kind: Callable[..., Dataset] = tf.data.TFRecordDataset if reader is None else reader
    if kind is tf.TFRecordReader:
        kind = tf.data.TFRecordDataset
    names = _matching(file_pattern)
    if label_key is not None and label_key not in features:
        raise ValueError(f"The `label_key` provided ({label_key!r}) must be one of the `features` keys.")
    dataset = Dataset.from_tensor_slices(names)
    if shuffle:
        dataset = dataset.shuffle(len(names), shuffle_seed)
    dataset = dataset.interleave(lambda name: kind(name, *(reader_args or ())), cycle_length=reader_num_threads or 1)
    dataset = _in_order(dataset, shuffle, shuffle_buffer_size, shuffle_seed, num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)

    def parsed(records: Any) -> Any:
        found = tf.parse_example(records, features)
        if label_key is None:
            return found
        label = found.pop(label_key)
        return found, label

    dataset = dataset.map(parsed, num_parallel_calls=parser_num_threads or 2)
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _in_order(dataset: Dataset, shuffle: bool, size: int, seed: int | None, epochs: int | None) -> Dataset:
    if shuffle:
        dataset = dataset.shuffle(size, seed)
    return dataset if epochs == 1 else dataset.repeat(epochs)


def _matching(file_pattern: Any) -> list[str]:
    patterns = [file_pattern] if isinstance(file_pattern, str | bytes) else list(file_pattern)
    names = sorted(itertools.chain.from_iterable(tf.gfile.Glob(tf.compat.as_str(each)) for each in patterns))
    if not names:
        raise ValueError(f"No files match `file_pattern` {file_pattern}.")
    return names


def _rows(
    name: str, delimiter: str, quotes: bool, compression: str | None, start: int, count: int | None,
    encoding: str = "utf-8",
) -> list[list[str]]:
    if compression:
        raise ValueError("column names and types are not read from compressed files: pass column_names and "
                         "column_defaults")  # fmt: skip
    with tf.gfile.GFile(name, "rb") as raw:
        lines = (line.decode(encoding) for line in iter(raw.readline, b""))
        rows = (
            csv.reader(lines, delimiter=delimiter)
            if quotes
            else csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
        )
        return list(itertools.islice(rows, start, None if count is None else start + count))


def _numbers(selected: Sequence[Any], names: Sequence[str]) -> list[int]:
    try:
        numbers = [each if isinstance(each, int) else list(names).index(each) for each in selected]
    except ValueError:
        raise ValueError(f"select_columns must name columns of {list(names)}, got {list(selected)}.") from None
    if len(numbers) != len(set(numbers)) or any(not 0 <= each < len(names) for each in numbers):
        raise ValueError(f"select_columns must be different columns of {len(names)}, got {list(selected)}.")
    return sorted(numbers)


def _default(value: Any) -> Any:
    if isinstance(value, DType | type):
        return tf.constant([], value)
    given = tf.convert_to_tensor(value)
    return tf.reshape(given, [1]) if given.shape.ndims == 0 else given


def _inferred(fields: Sequence[str], na_value: str) -> Any:
    """An empty field's value, of the first type that all fields have."""
    kinds: tuple[tuple[Any, Callable[[str], Any]], ...] = (
        (np.int32, _whole(np.int32)), (np.int64, _whole(np.int64)), (np.float32, _real(np.float32)),
        (np.float64, _real(np.float64)),
    )  # fmt: skip
    given = [field for field in fields if field not in ("", na_value)]
    for kind, read in kinds:
        try:
            for field in given:
                read(field)
        except (ValueError, OverflowError):
            continue
        return np.zeros(1, kind)
    return np.array([""], object)


def _whole(kind: Any) -> Callable[[str], None]:
    def read(field: str) -> None:
        if not np.iinfo(kind).min <= int(field) <= np.iinfo(kind).max:
            raise OverflowError

    return read


def _real(kind: Any) -> Callable[[str], None]:
    def read(field: str) -> None:
        if abs(float(field)) > np.finfo(kind).max and np.isfinite(float(field)):
            raise OverflowError

    return read
