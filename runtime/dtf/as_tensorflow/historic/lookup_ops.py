"""tensorflow.python.ops.lookup_ops: the bases of tables and initializers, and how unknown keys are hashed."""

from __future__ import annotations

import collections
from typing import Any

from dtf.build.ops.lookup import HashTable, LookupTableBase
from dtf.wire import dtypes

__all__ = [
    "FastHashSpec", "HasherSpec", "InitializableLookupTableBase", "LookupInterface", "StrongHashSpec",
    "TableInitializerBase", "index_table_from_tensor", "index_to_string_table_from_tensor",
]  # fmt: skip

InitializableLookupTableBase = HashTable
LookupInterface = LookupTableBase

HasherSpec = collections.namedtuple("HasherSpec", ["hasher", "key"])

FastHashSpec = HasherSpec("fasthash", None)


class StrongHashSpec(HasherSpec):
    """A hash with a secret key: two unsigned integers.

    Raises:
      ValueError: the key is not a pair.
      TypeError: a part of it is not an integer.
    """

    __slots__ = ()

    def __new__(cls, key: Any) -> StrongHashSpec:
        if len(key) != 2:
            raise ValueError(f"`key` must have size 2, received {len(key)}")
        if not all(isinstance(each, int) for each in key):
            raise TypeError(f"Invalid key {key}. Must be unsigned integer values.")
        return super().__new__(cls, "stronghash", key)


class TableInitializerBase:
    """Base of a program's own initializers; a subclass fills the table in `initialize`."""

    def __init__(self, key_dtype: Any, value_dtype: Any) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        self._value_dtype = dtypes.as_dtype(value_dtype)

    @property
    def key_dtype(self) -> Any:
        """The dtype of the keys."""
        return self._key_dtype

    @property
    def value_dtype(self) -> Any:
        """The dtype of the values."""
        return self._value_dtype

    def initialize(self, table: Any) -> Any:
        """Returns the op that fills the table."""
        raise NotImplementedError


def index_table_from_tensor(
    vocabulary_list: Any,
    num_oov_buckets: int = 0,
    default_value: int = -1,
    hasher_spec: Any = None,
    dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """The table from words to their places in a list; see `contrib.lookup.index_table_from_tensor`.

    Raises:
      ValueError: `vocabulary_list` is missing, or the buckets are negative.
    """
    from dtf.contrib import lookup

    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    return lookup.index_table_from_tensor(vocabulary_list, num_oov_buckets, default_value, hasher_spec, dtype, name)


def index_to_string_table_from_tensor(
    vocabulary_list: Any, default_value: str = "UNK", name: str | None = None
) -> Any:
    """The table from places in a list to its words.

    Raises:
      ValueError: `vocabulary_list` is missing.
    """
    from dtf.contrib import lookup

    if vocabulary_list is None:
        raise ValueError("vocabulary_list must be specified.")
    return lookup.index_to_string_table_from_tensor(vocabulary_list, default_value, name)
