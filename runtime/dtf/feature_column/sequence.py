"""Sequence columns: features of several time steps, and `sequence_input_layer`, which makes [batch, steps, width].

A sequence feature is a SparseTensor [batch, steps]. Embedding and indicator columns of sequence columns give a vector
for each step.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/feature_column/sequence_input_layer
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dtf.build.ops import array as array_ops
from dtf.build.ops import check_ops, joining
from dtf.build.ops.math import cast, ceil
from dtf.build.ops.ordering import with_dependencies
from dtf.build.ops.parsing import VarLenFeature
from dtf.build.ops.segment import unsorted_segment_max
from dtf.build.ops.sparse import sparse_tensor_to_dense
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import variable_scope
from dtf.feature_column.categorical import (
    CategoricalColumn,
    categorical_column_with_hash_bucket,
    categorical_column_with_identity,
    categorical_column_with_vocabulary_list,
)
from dtf.feature_column.crossed import categorical_column_with_vocabulary_file
from dtf.feature_column.dense import CategoryColumn, DenseColumn
from dtf.feature_column.features import Entries
from dtf.wire import dtypes
from dtf.wire.dtypes import as_dtype

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = [
    "sequence_categorical_column_with_hash_bucket", "sequence_categorical_column_with_identity",
    "sequence_categorical_column_with_vocabulary_file", "sequence_categorical_column_with_vocabulary_list",
    "sequence_input_layer", "sequence_numeric_column",
]  # fmt: skip


def sequence_input_layer(
    features: Mapping[str, Any],
    feature_columns: Any,
    weight_collections: Iterable[str] | None = None,
    trainable: bool = True,
    scope: Any = None,
) -> tuple[Tensor, Tensor]:
    """The vectors of the steps of sequence columns side by side, in the order of the columns' names.

    Args:
      features: name -> a SparseTensor [batch, steps].
      feature_columns: sequence columns: numeric ones, and embedding or indicator columns of categorical ones.
      weight_collections: collections that the variables are added to.
      trainable: whether the variables are trainable.
      scope: the variable scope, or its name.

    Returns:
      (float32 [batch, most steps, all widths], int64 [batch]: the number of steps of each example).

    Raises:
      ValueError: a column is not a sequence column, or a feature is missing.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/feature_column/sequence_input_layer
    """
    columns = list(feature_columns) if isinstance(feature_columns, (list, tuple)) else [feature_columns]
    for column in columns:
        if not (isinstance(column, _SequenceNumeric) or _is_sequence(column)):
            raise ValueError(
                "All feature_columns must be of type _SequenceDenseColumn. You can wrap a "
                f"sequence_categorical_column with an embedding_column or indicator_column. Given: {column!r}"
            )
    parts, lengths = [], []
    with variable_scope(scope, "sequence_input_layer", list(features.values())):
        for column in sorted(columns, key=lambda each: each.name):
            with variable_scope(None, column.scope):
                values, length = _sequence_of(column, features, trainable, weight_collections)
                parts.append(values)
                lengths.append(length)
        checks = [
            check_ops.assert_equal(lengths[0], each, message="the sequences of the columns differ in their lengths")
            for each in lengths[1:]
        ]
        whole = parts[0] if len(parts) == 1 else joining.concat(parts, axis=-1)
        return whole, with_dependencies(checks, lengths[0]) if checks else lengths[0]


def sequence_numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: float = 0.0,
    dtype: DTypeLike = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> DenseColumn:
    """Numbers of each step, as they are or as `normalizer_fn` gives them.

    Args:
      key: the name of the feature.
      shape: of one step.
      default_value: for the steps after the end of a sequence.
      dtype: of the feature.
      normalizer_fn: a function of the values of the sequence.

    Raises:
      ValueError: the dtype is not of numbers, or the shape is not positive.
      TypeError: `normalizer_fn` is not a function.
    """
    sizes = (int(shape),) if isinstance(shape, int) else tuple(int(size) for size in shape)
    if any(size <= 0 for size in sizes):
        raise ValueError(f"shape dimensions must be greater than 0, shape: {sizes}, key: {key}")
    kind = as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {kind.name}, key: {key}")
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn!r}")
    return _SequenceNumeric(key, sizes, default_value, kind, normalizer_fn)


def sequence_categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> CategoricalColumn:
    """The classes of each step: integers below `num_buckets`. See `categorical_column_with_identity`."""
    return _SequenceCategorical(categorical_column_with_identity(key, num_buckets, default_value))


def sequence_categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> CategoricalColumn:
    """The hashes of each step's values. See `categorical_column_with_hash_bucket`."""
    return _SequenceCategorical(categorical_column_with_hash_bucket(key, hash_bucket_size, dtype))


def sequence_categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: DTypeLike | None = None, default_value: int = -1,
    num_oov_buckets: int = 0,
) -> CategoricalColumn:  # fmt: skip
    """The places of each step's values in a list. See `categorical_column_with_vocabulary_list`."""
    return _SequenceCategorical(
        categorical_column_with_vocabulary_list(key, vocabulary_list, dtype, default_value, num_oov_buckets)
    )


def sequence_categorical_column_with_vocabulary_file(
    key: str, vocabulary_file: str, vocabulary_size: int | None = None, num_oov_buckets: int = 0,
    default_value: int | None = None, dtype: DTypeLike = dtypes.string,
) -> CategoricalColumn:  # fmt: skip
    """The line numbers of each step's values in a file. See `categorical_column_with_vocabulary_file`."""
    return _SequenceCategorical(
        categorical_column_with_vocabulary_file(
            key, vocabulary_file, vocabulary_size, num_oov_buckets, default_value, dtype
        )
    )


@dataclass(frozen=True)
class _SequenceCategorical(CategoricalColumn):
    column: CategoricalColumn

    @property
    def key(self) -> str:  # type: ignore[override]
        return self.column.key

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        return self.column.num_buckets

    @property
    def dtype(self) -> Any:
        return self.column.dtype

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.column.parse_example_spec

    def ids(self, features: Mapping[str, Any]) -> Entries:
        raise ValueError(
            f"In column {self.name}: a sequence column can be used by sequence_input_layer only, not by input_layer or "
            "linear_model."
        )

    def ids_of(self, entries: Entries) -> Entries:
        return self.column.ids_of(entries)


@dataclass(frozen=True)
class _SequenceNumeric(DenseColumn):
    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: Any
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.key

    @property
    def width(self) -> int:  # type: ignore[override]
        return math.prod(self.shape)

    @property
    def parse_example_spec(self) -> dict[str, Any]:  # type: ignore[override]
        return {self.key: VarLenFeature(self.dtype)}

    def values(self, features: Mapping[str, Any], trainable: bool) -> Tensor:
        raise ValueError(f"The sequence column {self.key} can be used by sequence_input_layer only, not by input_layer")


def _is_sequence(column: Any) -> bool:
    return isinstance(column, CategoryColumn) and isinstance(column.categorical, _SequenceCategorical)


def _sequence_of(
    column: Any, features: Mapping[str, Any], trainable: bool, collections: Iterable[str] | None
) -> tuple[Tensor, Tensor]:
    """(float32 [batch, steps, width], int64 [batch])"""
    key = column.key if isinstance(column, _SequenceNumeric) else column.categorical.key
    if key not in features:
        raise ValueError(f"Feature {key} is not in features dictionary. It has {sorted(features)}")
    feature = features[key]
    if not isinstance(feature, SparseTensor):
        raise ValueError(f"The feature of a sequence column must be a SparseTensor: {key}")
    if isinstance(column, _SequenceNumeric):
        values = feature.values if column.normalizer_fn is None else column.normalizer_fn(feature.values)
        dense = sparse_tensor_to_dense(SparseTensor(feature.indices, values, feature.dense_shape), column.default_value)
        batch = array_ops.shape(dense)[0]
        whole = array_ops.reshape(cast(dense, dtypes.float32), joining.stack([batch, -1, column.width]))
        return whole, _lengths(feature, column.width if (feature.shape.ndims or 2) == 2 else 1)
    batch, steps = feature.dense_shape[0], feature.dense_shape[1]
    rows = feature.indices[:, 0] * steps + feature.indices[:, 1]
    entries = column.categorical.ids_of(Entries(rows, feature.values, batch * steps))
    vectors = column.vectors_of(entries, trainable, collections)
    whole = array_ops.reshape(vectors, joining.stack([batch, steps, cast(column.width, dtypes.int64)]))
    whole.set_shape([None, None, column.width])
    return whole, _lengths(feature, 1)


def _lengths(feature: SparseTensor, numbers: int) -> Tensor:
    """int64 [batch]: the number of steps of each example, of so many numbers each."""
    last = unsorted_segment_max(feature.indices[:, 1] + 1, feature.indices[:, 0], feature.dense_shape[0])
    counts = cast(ceil(cast(last, dtypes.float64) / numbers), dtypes.int64)
    present = cast(last > 0, dtypes.int64)
    return counts * present
