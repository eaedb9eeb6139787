"""Categorical columns derived from other columns or files: crosses, weights, vocabulary files.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dtf.build.ops import array as array_ops
from dtf.build.ops.joining import stack
from dtf.build.ops.lookup import StaticHashTable, StaticVocabularyTable, TextFileIndex, TextFileInitializer
from dtf.build.ops.math import cast, not_equal
from dtf.build.ops.math import range as math_range
from dtf.build.ops.parsing import VarLenFeature
from dtf.build.ops.slicing import boolean_mask
from dtf.build.ops.sparse import cross_hashed
from dtf.build.sparse import SparseTensor
from dtf.feature_column.categorical import CategoricalColumn
from dtf.feature_column.dense import _Bucketized
from dtf.feature_column.features import Entries, cast_like, entries_of, feature_of
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["categorical_column_with_vocabulary_file", "crossed_column", "weighted_categorical_column"]

def crossed_column(keys: Sequence[Any], hash_bucket_size: int, hash_key: int | None = None) -> CategoricalColumn:
    """The combinations of features, hashed to `hash_bucket_size` classes.

    Args:
      keys: names of features with strings or integers, categorical columns that are not hashed, or bucketized columns;
        two at least.
      hash_key: of the hash function.

    Raises:
      ValueError: the size is not positive, there are fewer than two keys, or a key cannot be crossed.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/crossed_column
    """
    from dtf.feature_column.categorical import _Hashed

    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, str | CategoricalColumn | _Bucketized):
            raise ValueError(
                f"Unsupported key type. All keys must be either string, or categorical column. Given: {key}"
            )
        if isinstance(key, _Hashed):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will "
                f"increase the probability of collision. Instead, use the feature name as a string. Given: {key}"
            )
    return _Crossed(tuple(keys), hash_bucket_size, hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: DTypeLike = dtypes.float32
) -> CategoricalColumn:
    """A categorical column whose entries are weighted by another feature of the same shape.

    Raises:
      ValueError: the dtype is not of numbers.
    """
    kind = dtypes.as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {kind.name} is not convertible to float.")
    return _Weighted(categorical_column, weight_feature_key, kind)


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: DTypeLike = dtypes.string,
) -> CategoricalColumn:
    """Words, or integers, of the lines of a file; the class is the number of the line.

    Args:
      vocabulary_size: how many lines count; all by default.
      num_oov_buckets: the number of classes after the list, which the other values are hashed to.
      default_value: instead: the class of values that are not in the file; -1, the default, leaves them out.

    Raises:
      ValueError: the file is not named or not there, a number is out of range, or there are both ways for the others.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/categorical_column_with_vocabulary_file
    """
    from dtf import gfile

    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not gfile.Exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist: {vocabulary_file}")
        with gfile.GFile(vocabulary_file, "rb") as file:
            vocabulary_size = sum(1 for _ in file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    if num_oov_buckets and default_value is not None:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
    kind = dtypes.as_dtype(dtype)
    if kind != dtypes.string and not kind.is_integer:
        raise ValueError(f"dtype must be string or integer. dtype: {kind.name}, column_name: {key}")
    default = -1 if default_value is None else default_value
    return _InFile(key, vocabulary_file, vocabulary_size, kind, default, num_oov_buckets)


@dataclass(frozen=True)
class _Crossed(CategoricalColumn):
    keys: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    dtype: Any = dtypes.int64

    @property
    def key(self) -> str:  # type: ignore[override]
        return self.name

    @property
    def name(self) -> str:
        return "_X_".join(sorted(_leaves(self)))

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key in self.keys:
            found.update({key: VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec)
        return found

    def ids(self, features: Mapping[str, Any]) -> Entries:
        parts = [_part(leaf, features) for leaf in _leaf_columns(self)]
        found = cross_hashed(parts, self.hash_bucket_size, self.hash_key)
        return Entries(found.indices[:, 0], found.values, found.dense_shape[0])


@dataclass(frozen=True)
class _Weighted(CategoricalColumn):
    categorical: CategoricalColumn
    weight_key: str
    weight_dtype: Any

    @property
    def key(self) -> str:  # type: ignore[override]
        return self.categorical.key

    @property
    def name(self) -> str:
        return f"{self.categorical.name}_weighted_by_{self.weight_key}"

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        return self.categorical.num_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {**self.categorical.parse_example_spec, self.weight_key: VarLenFeature(self.weight_dtype)}

    def ids(self, features: Mapping[str, Any]) -> Entries:
        weights = feature_of(features, self.weight_key)
        keys = feature_of(features, self.categorical.key)
        numbers = weights.values if isinstance(weights, SparseTensor) else array_ops.reshape(weights, [-1])
        if not isinstance(weights, SparseTensor) and not isinstance(keys, SparseTensor):
            numbers = boolean_mask(numbers, array_ops.reshape(_are_present(keys), [-1]))
        return self.categorical.ids_of(replace(entries_of(keys), weights=cast(numbers, dtypes.float32)))


@dataclass(frozen=True)
class _InFile(CategoricalColumn):
    key: str
    file: str
    size: int
    dtype: Any
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        return self.size + self.num_oov_buckets

    def _ids(self, entries: Entries) -> Entries:
        keys = entries.values if self.dtype == dtypes.string else cast(entries.values, dtypes.int64)
        initializer = TextFileInitializer(
            self.file, keys.dtype, TextFileIndex.WHOLE_LINE, dtypes.int64, TextFileIndex.LINE_NUMBER, self.size,
            name=f"{self.key}_lookup",
        )  # fmt: skip
        if self.num_oov_buckets:
            table = StaticVocabularyTable(initializer, self.num_oov_buckets, lookup_key_dtype=keys.dtype)
            return entries.with_values(table.lookup(keys))
        return entries.with_values(StaticHashTable(initializer, self.default_value).lookup(keys))

    @property
    def leaves_out(self) -> bool:
        return self.default_value < 0 and not self.num_oov_buckets


def _leaf_columns(column: Any) -> list[Any]:
    """The columns and names of a cross; a cross inside a cross is expanded."""
    if isinstance(column, _Crossed):
        return [leaf for key in column.keys for leaf in _leaf_columns(key)]
    return [column]


def _leaves(column: Any) -> list[str]:
    return [leaf if isinstance(leaf, str) else leaf.name for leaf in _leaf_columns(column)]


def _part(leaf: Any, features: Mapping[str, Any]) -> Any:
    """A feature as a cross takes it: a SparseTensor, or a tensor [batch, values]."""
    if isinstance(leaf, str):
        return feature_of(features, leaf)
    if isinstance(leaf, _Bucketized):
        classes = leaf.classes_of(features)
        entries = entries_of(classes)  # no class is below 0: all entries
    elif isinstance(leaf, _Weighted):
        raise ValueError(f"crossed_column does not support weights, but there are weights for column {leaf.name}.")
    else:
        entries = leaf.all_ids_of(entries_of(feature_of(features, leaf.key)))
    number = array_ops.size(entries.rows, out_type=dtypes.int64)
    indices = stack([entries.rows, math_range(number)], 1)
    return SparseTensor(indices, entries.values, stack([entries.count, number]))


def _are_present(keys: Any) -> Any:
    """Which entries of a dense feature count."""
    return not_equal(keys, cast_like("" if keys.dtype == dtypes.string else -1, keys))
