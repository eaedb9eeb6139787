"""Categorical columns: features that are one or several of a number of classes.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.default_graph import control_dependencies
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.ops.check_ops import assert_less
from dtf.build.ops.lookup import KeyValueTensorInitializer, StaticHashTable, StaticVocabularyTable
from dtf.build.ops.math import cast, greater_equal, less, logical_and
from dtf.build.ops.parsing import VarLenFeature
from dtf.build.ops.searching import where
from dtf.build.ops.string import as_string, string_to_hash_bucket_fast
from dtf.feature_column.features import Entries, entries_of, feature_of
from dtf.wire import dtypes

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike


class CategoricalColumn:
    """Base of the kinds.

    Attributes:
      key: of the feature.
      num_buckets: how many classes there are.
      dtype: of the feature.
    """

    key: str
    num_buckets: int
    dtype: Any

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        """How the feature is read from an Example."""
        return {self.key: VarLenFeature(self.dtype)}

    def ids(self, features: Mapping[str, Any]) -> Entries:
        """The classes of the examples, from 0 to num_buckets - 1."""
        return self.ids_of(entries_of(feature_of(features, self.key)))

    def ids_of(self, entries: Entries) -> Entries:
        """The classes of entries of the feature."""
        found = self.all_ids_of(entries)
        return found.where(greater_equal(found.values, 0)) if self.leaves_out else found

    @property
    def leaves_out(self) -> bool:
        """Whether an entry may be of no class: its id is negative."""
        return False

    def all_ids_of(self, entries: Entries) -> Entries:
        """The classes of entries, -1 and others below 0 for entries without a class."""
        if (entries.values.dtype == dtypes.string) != (self.dtype == dtypes.string):
            raise ValueError(f"Column {self.key} takes {self.dtype.name}; the feature is {entries.values.dtype.name}")
        return self._ids(entries)

    def _ids(self, entries: Entries) -> Entries:
        raise NotImplementedError("a CategoricalColumn must have the method _ids")


def categorical_column_with_identity(key: str, num_buckets: int, default_value: int | None = None) -> CategoricalColumn:
    """Integers from 0 to `num_buckets` - 1. Others become `default_value`, or are errors without it.

    Raises:
      ValueError: `num_buckets` is not positive, or `default_value` is out of range.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    return _Identity(key, num_buckets, default_value)


def categorical_column_with_vocabulary_list(
    key: str,
    vocabulary_list: Sequence[Any],
    dtype: DTypeLike | None = None,
    default_value: int = -1,
    num_oov_buckets: int = 0,
) -> CategoricalColumn:
    """Words, or integers, of a list; the class is the place in it.

    Args:
      default_value: the class of values that are not in the list; -1 leaves them out.
      num_oov_buckets: instead: the number of classes after the list, which the other values are hashed to.

    Returns:
      A categorical column.

    Raises:
      ValueError: the list is empty or has something twice, is of another dtype, or there are both ways for the others.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/feature_column/categorical_column_with_vocabulary_list
    """
    words = np.array(list(vocabulary_list))
    if words.dtype.kind in "SU":  # numpy's own strings, without the NULs at their ends
        words = np.array(list(vocabulary_list), object)
    if not words.size:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(words.tolist())) != words.size:
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    found = dtypes.int64 if np.issubdtype(words.dtype, np.integer) else dtypes.string
    wanted = found if dtype is None else dtypes.as_dtype(dtype)
    if (wanted == dtypes.string) != (found == dtypes.string):
        raise ValueError(f"dtype {wanted.name} and vocabulary dtype {found.name} do not match, column_name: {key}")
    if num_oov_buckets < 0 or (num_oov_buckets and default_value != -1):
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}, nor fewer than 0 buckets")
    return _Vocabulary(key, tuple(words.tolist()), wanted, default_value, num_oov_buckets)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: DTypeLike = dtypes.string
) -> CategoricalColumn:
    """Words, or integers, hashed to `hash_bucket_size` classes.

    Raises:
      ValueError: the size is not positive, or the dtype neither string nor integer.
    """
    dtype = dtypes.as_dtype(dtype)
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1; it is {hash_bucket_size}, key: {key}")
    if dtype != dtypes.string and not dtype.is_integer:
        raise ValueError(f"dtype must be string or integer. dtype: {dtype.name}, column_name: {key}")
    return _Hashed(key, hash_bucket_size, dtype)


@dataclass(frozen=True)
class _Identity(CategoricalColumn):
    key: str
    num_buckets: int
    default_value: int | None
    dtype: Any = dtypes.int64

    def _ids(self, entries: Entries) -> Entries:
        ids = cast(entries.values, dtypes.int64)
        if self.default_value is not None:
            default = self.default_value * filling_ops.ones_like(ids)
            is_one = logical_and(greater_equal(ids, 0), less(ids, self.num_buckets))
            return entries.with_values(where(is_one, ids, default))
        names = f"Column {self.key} has classes from 0 to {self.num_buckets - 1}"
        checks = [
            assert_less(ids, cast(self.num_buckets, dtypes.int64), message=names),
            assert_less(cast(-1, dtypes.int64), ids, message=names),
        ]
        with control_dependencies(checks):
            return entries.with_values(array_ops.identity(ids))


@dataclass(frozen=True)
class _Vocabulary(CategoricalColumn):
    key: str
    words: tuple[Any, ...]
    dtype: Any
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:  # type: ignore[override]
        return len(self.words) + self.num_oov_buckets

    def _ids(self, entries: Entries) -> Entries:
        keys = entries.values if self.dtype == dtypes.string else cast(entries.values, dtypes.int64)
        initializer = KeyValueTensorInitializer(
            list(self.words), list(range(len(self.words))), keys.dtype, dtypes.int64, name=f"{self.key}_lookup"
        )
        if self.num_oov_buckets:
            table = StaticVocabularyTable(initializer, self.num_oov_buckets)
            return entries.with_values(table.lookup(keys))
        return entries.with_values(StaticHashTable(initializer, self.default_value).lookup(keys))

    @property
    def leaves_out(self) -> bool:
        return self.default_value < 0 and not self.num_oov_buckets


@dataclass(frozen=True)
class _Hashed(CategoricalColumn):
    key: str
    num_buckets: int
    dtype: Any

    def _ids(self, entries: Entries) -> Entries:
        words = entries.values if self.dtype == dtypes.string else as_string(entries.values)
        return entries.with_values(string_to_hash_bucket_fast(words, self.num_buckets))
