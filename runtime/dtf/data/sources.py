"""tf.data.experimental's further sources and sinks: random numbers, databases, variants, snapshots, record files.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.ops import data_structure as structure
from dtf.build.ops.data import Dataset, _int64, _made
from dtf.build.ops.random import get_seed
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Operation, Tensor
from dtf.build.tensor_spec import TensorSpec
from dtf.wire import dtypes, filesystems
from dtf.wire.files import file_errors

__all__ = [
    "RandomDataset", "SqlDataset", "StatsAggregator", "TFRecordWriter", "assert_cardinality", "bytes_produced_stats",
    "from_sparse_tensor_slices", "from_variant", "latency_stats", "snapshot", "to_variant",
]  # fmt: skip

_Transformation = Callable[[Dataset], Dataset]


class RandomDataset(Dataset):
    """Random int64 numbers below 2**32, without end; a seed gives the same numbers in every pass.

    Args:
      seed: an integer, or None: that of the graph.
      rerandomize_each_iteration: whether every pass has other numbers; refused with a seed.
      name: for TensorFlow's sake.
    """

    def __init__(
        self, seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> None:
        if rerandomize_each_iteration and seed is not None:
            raise ValueError("a random dataset with a seed gives the same numbers in every pass: leave out the seed, "
                             "or rerandomize_each_iteration")  # fmt: skip
        first, second = (0, 0) if rerandomize_each_iteration else (each or 0 for each in get_seed(seed))
        spec = TensorSpec([], dtypes.int64)
        made = _made("RandomDataset", spec, name, seed=_int64(first), seed2=_int64(second))
        super().__init__(made._variant_tensor, spec)


class SqlDataset(Dataset):
    """The rows of a query, each a tuple of scalars; the query may only read.

    Args:
      driver_name: "sqlite".
      data_source_name: the file of the database.
      query: SQL.
      output_types: a tuple with the dtype of each column.

    Raises (when it is iterated):
      InvalidArgumentError: the driver is another one, or the query has another number of columns.
      UnknownError: the database cannot be read, or the query fails.
    """

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        spec = structure.map_structure(lambda dtype: TensorSpec([], dtype), output_types)
        names = {"driver_name": driver_name, "data_source_name": data_source_name, "query": query}
        given = {name: convert_to_tensor(value, dtypes.string) for name, value in names.items()}
        super().__init__(_made("SqlDataset", spec, None, **given)._variant_tensor, spec)


def from_sparse_tensor_slices(sparse_tensor: Any) -> Dataset:
    """An element (indices, values, dense shape) for each row of a SparseTensor.

    Raises:
      TypeError: it is not a SparseTensor.
    """
    if isinstance(sparse_tensor, SparseTensorValue):
        sparse_tensor = SparseTensor.from_value(sparse_tensor)
    if not isinstance(sparse_tensor, SparseTensor):
        raise TypeError(f"`sparse_tensor` must be a `tf.SparseTensor` object. Was {sparse_tensor}.")
    rank = sparse_tensor.get_shape().ndims
    row_rank = None if rank is None else rank - 1
    spec = (
        TensorSpec([None, row_rank], dtypes.int64), TensorSpec([None], sparse_tensor.dtype),
        TensorSpec([row_rank], dtypes.int64),
    )  # fmt: skip
    return _made(
        "SparseTensorSliceDataset",
        spec,
        None,
        indices=sparse_tensor.indices,
        values=sparse_tensor.values,
        dense_shape=sparse_tensor.dense_shape,
    )


class TFRecordWriter:
    """Writes a dataset of string scalars to one TFRecord file.

    Args:
      filename: a string or string tensor.
      compression_type: "" or None, "ZLIB" or "GZIP".
    """

    def __init__(self, filename: Any, compression_type: Any = None) -> None:
        self._filename = convert_to_tensor(filename, dtypes.string, name="filename")
        kind = "" if compression_type is None else compression_type
        self._compression_type = convert_to_tensor(kind, dtypes.string, name="compression_type")

    def write(self, dataset: Dataset) -> Operation:
        """The operation that writes all elements.

        Raises:
          TypeError: it is not a dataset, or one of other elements.
        """
        if not isinstance(dataset, Dataset):
            raise TypeError(f"Invalid `dataset.` Expected a `tf.data.Dataset` object but got {type(dataset)}.")
        if not structure.same_structure(dataset.element_spec, TensorSpec([], dtypes.string)):
            raise TypeError("Cannot create a dataset writer for elements with more than one component: "
                            f"{dataset.element_spec}")  # fmt: skip
        if structure.flat_types(dataset.element_spec) != [dtypes.string]:
            raise TypeError(f"Cannot write a dataset of {dataset.output_types} to a TFRecord file: its elements must "
                            "be strings")  # fmt: skip
        return apply_op(
            "DatasetToTFRecord",
            None,
            input_dataset=dataset._variant_tensor,
            filename=self._filename,
            compression_type=self._compression_type,
        )


def assert_cardinality(expected_cardinality: Any) -> _Transformation:
    """The same elements; FailedPreconditionError in a pass with another number of them."""
    return lambda dataset: dataset._with("AssertCardinalityDataset", cardinality=_int64(expected_cardinality))


def from_variant(variant: Tensor, structure: Any) -> Dataset:
    """The dataset in a variant tensor, whose elements have this spec."""
    return Dataset(variant, structure)


def to_variant(dataset: Dataset) -> Tensor:
    """The variant tensor of a dataset."""
    return dataset._variant_tensor


def snapshot(
    path: str, compression: Any = "AUTO", reader_func: Any = None, shard_func: Any = None, **options: Any
) -> _Transformation:
    """The same elements; the first whole pass writes them to a file in the folder `path`, later ones read them there.

    Args:
      path: a folder, which is made.
      compression, reader_func, shard_func, options: for TensorFlow's sake; there is one uncompressed file.
    """
    del compression, reader_func, shard_func, options

    def apply(dataset: Dataset) -> Dataset:
        with file_errors(path):
            filesystems.makedirs(path)
        return dataset.cache(os.path.join(path, "snapshot"))

    return apply


class StatsAggregator:
    """A place for statistics of datasets, which are not counted here: its summary is empty."""

    def get_summary(self) -> Tensor:
        """A string scalar: a Summary without values."""
        return convert_to_tensor(b"", dtypes.string)


def latency_stats(tag: Any) -> _Transformation:
    """The dataset as it is: statistics are not counted here."""
    return lambda dataset: dataset


bytes_produced_stats = latency_stats
