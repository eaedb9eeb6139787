"""tensorflow.python.ops.lookup_ops: the bases of tables and initializers, and how unknown keys are hashed."""

from __future__ import annotations

import collections
from typing import Any

from dtf.build.ops.lookup import HashTable, LookupTableBase
from dtf.wire import dtypes

__all__ = [
    "FastHashSpec", "HasherSpec", "InitializableLookupTableBase", "LookupInterface", "StrongHashSpec",
    "TableInitializerBase",
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
