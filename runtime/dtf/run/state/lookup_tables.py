"""Lookup tables: dictionaries from keys to values of fixed dtypes, shared by name like variables.

Owns `LookupTable`, initialised once or mutable. `kernels/lookup_table.py` binds it to nodes.
Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/lookup
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from types import MappingProxyType

import numpy as np

from dtf.run.kernels.arguments import invalid, shape_text, zero_of
from dtf.run.lib.fingerprints import murmur64
from dtf.run.lib.growth import Growth
from dtf.run.state.change_log import NOT_KEPT, ChangeLog, Entries, EntryKey, Parts
from dtf.run.value_types import Array, Scalar
from dtf.wire import errors
from dtf.wire.dtypes import DType
from dtf.wire.strings import filled

__all__ = ["LookupTable"]

_STATE = "state"
_BATCH_ROWS_MIN = 1024
"""Batches of a small table are not joined."""
_FULL_FROM = 0.8
"""A dense table with a greater part of its buckets in use gets twice as many."""


class LookupTable:
    """A dictionary from scalars to tensors of one shape. The lock guards it.

    Attributes:
      name: its name in its container.
      key_dtype, value_dtype: of the entries.
      value_shape: of each value.
      is_initialized: whether it may be used; a mutable table always may.
    """

    def __init__(
        self,
        name: str,
        key_dtype: DType,
        value_dtype: DType,
        is_mutable: bool,
        value_shape: Sequence[int] = (),
        reserved: Mapping[Scalar, str] = MappingProxyType({}),
        buckets: int = 0,
    ) -> None:
        """reserved: keys that stand for no entry in tables that say so (dense ones), and what each is called; the empty
        key comes first. buckets: how many such a table begins with.
        """
        self._buckets = buckets
        self.name = name
        self.value_shape = tuple(value_shape)
        self._reserved = reserved
        self.key_dtype = key_dtype
        self.value_dtype = value_dtype
        self.is_mutable = is_mutable
        self.is_initialized = is_mutable
        self._values: dict[Scalar, Scalar] = {}
        self._growth = Growth(f"table {name}")
        self._lock = threading.Lock()
        self._log: ChangeLog = NOT_KEPT
        self._batches = 0
        self._batch_rows = 0

    def __len__(self) -> int:
        self._check_initialized()
        return len(self._values)

    def read(self) -> np.ndarray:
        """The value of the old string handle: container and name."""
        return np.array([b"", self.name.encode()], object)

    def check_same(self, key_dtype: DType, value_dtype: DType) -> None:
        """Raises InvalidArgumentError when a node that shares this table by name has other dtypes."""
        if (key_dtype, value_dtype) != (self.key_dtype, self.value_dtype):
            raise errors.InvalidArgumentError.of(
                f"Conflicting key/value dtypes {key_dtype.name}->{value_dtype.name} with {self.key_dtype.name}->"
                f"{self.value_dtype.name} for table {self.name}",
            )

    def initialize(self, keys: np.ndarray, values: np.ndarray) -> None:
        """Fills a table once; doing it again with the same contents changes nothing.

        Raises:
          FailedPreconditionError: it holds something else already.
          InvalidArgumentError: one key with two values, or keys and values of different number.
        """
        if np.size(keys) != np.size(values):
            raise errors.InvalidArgumentError.of(
                f"Keys and values must have the same size: {np.size(keys)} vs {np.size(values)}"
            )
        given: dict[Scalar, Scalar] = {}
        for key, value in zip(np.ravel(keys).tolist(), np.ravel(values).tolist(), strict=True):
            if given.setdefault(key, value) != value:
                raise errors.InvalidArgumentError.of(
                    f"HashTable has different value for same key. Key {key!r} has {given[key]!r} and trying to add "
                    f"value {value!r}",
                )
        with self._lock:
            if self.is_initialized and given != self._values:
                raise errors.FailedPreconditionError.of("Table already initialized.")
            is_new = not self.is_initialized
            self._values = given
            self.is_initialized = True
            if self._log.is_kept and is_new:
                self._log.put(_STATE, self._state())
                self._log_batch([np.ravel(keys), np.ravel(values)])

    def find(self, keys: np.ndarray, default: Array) -> np.ndarray:
        """The value of each key, the default for unknown ones: [*keys.shape, *value_shape]."""
        self._check_initialized()
        self._check_keys(keys)
        if self.value_shape and np.shape(default) not in (self.value_shape, (1, *self.value_shape)):
            raise invalid(
                f"Expected shape {shape_text(self.value_shape)} or {shape_text((1, *self.value_shape))} for default "
                f"value, got {shape_text(np.shape(default))}"
            )
        fallback = np.reshape(default, self.value_shape) if self.value_shape else np.ravel(default)[0]
        out = np.empty(np.shape(keys) + self.value_shape, self.value_dtype.as_numpy_dtype)
        flat = out.reshape(-1, *self.value_shape)
        with self._lock:
            for i, key in enumerate(np.ravel(keys).tolist()):
                flat[i] = self._values.get(key, fallback)
        return out

    def insert(self, keys: np.ndarray, values: np.ndarray, replace_all: bool = False) -> None:
        """Adds or changes entries; first forgets the old ones when asked to. UnimplementedError unless mutable."""
        if not self.is_mutable:
            raise errors.UnimplementedError.of(f"Table {self.name} cannot be changed")
        if self._buckets and replace_all:
            keys = np.ravel(keys)  # [buckets, 1] as exported, and scalar values the same
            if np.size(values) == keys.size * math.prod(self.value_shape):
                values = np.reshape(values, (keys.size, *self.value_shape))
            self._buckets = max(self._buckets, 1 << max(0, keys.size - 1).bit_length())
        wanted = np.shape(keys) + self.value_shape
        if np.shape(values) != wanted:
            raise invalid(f"Expected shape {shape_text(wanted)} for value, got {shape_text(np.shape(values))}")
        if not replace_all:  # a dense table exports its free places too
            self._check_keys(keys)
        rows = np.reshape(values, (-1, *self.value_shape))
        pairs = dict(zip(np.ravel(keys).tolist(), np.array(rows) if self.value_shape else rows.tolist(), strict=True))
        with self._lock:
            self._growth.add(pairs.values(), len(self._values))
            if replace_all:
                self._values = {}
            self._update(pairs)
            if self._log.is_kept:
                if replace_all:
                    self._log.clear()
                    self._log.put(_STATE, self._state())
                    self._batch_rows = 0
                self._log_batch([np.ravel(keys), rows])

    def remove(self, keys: np.ndarray) -> None:
        """Forgets entries; unknown keys do not matter."""
        self._check_keys(keys)
        with self._lock:
            for key in np.ravel(keys).tolist():
                self._values.pop(key, None)
            if self._log.is_kept:
                self._log_batch([np.ravel(keys)])

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._log = log

    def entries(self) -> Entries:
        """See `change_log.Keepable`. One batch has all keys."""
        with self._lock:
            return self._joined()

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`. Batches of keys and values are added, and batches of keys removed, in order."""
        with self._lock:
            for key, parts in entries.items():
                if isinstance(key, str):
                    self.is_initialized, self._buckets = bool(parts[0][0]), int(parts[0][1])
                    continue
                self._batches = max(self._batches, key + 1)
                self._batch_rows += np.size(parts[0])
                keys = np.ravel(parts[0]).tolist()
                if len(parts) == 1:
                    for each in keys:
                        self._values.pop(each, None)
                else:
                    values = np.asarray(parts[1])
                    rows = np.array(values) if self.value_shape else values.tolist()
                    self._update(dict(zip(keys, rows, strict=True)))

    def _update(self, pairs: Mapping[Scalar, Scalar]) -> None:
        self._values.update((key, value) for key, value in pairs.items() if key not in self._reserved)

    def _log_batch(self, parts: Parts) -> None:
        """Reports a change. All batches become one when they have many more rows than the table."""
        self._batch_rows += np.size(parts[0])
        if self._batch_rows <= max(_BATCH_ROWS_MIN, 2 * len(self._values)):
            self._log.put(self._batches, parts)
            self._batches += 1
            return
        self._log.clear()
        for key, all_parts in self._joined().items():
            self._log.put(key, all_parts)

    def _joined(self) -> dict[EntryKey, Parts]:
        keys, values = self._arrays()
        key = self._batches
        self._batches += 1
        self._batch_rows = len(keys)
        return {_STATE: self._state(), key: [keys, values]}

    def _state(self) -> Parts:
        return [np.array([self.is_initialized, self._buckets], np.int64)]

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        keys, values = list(self._values), list(self._values.values())
        exported = np.empty((len(values), *self.value_shape), self.value_dtype.as_numpy_dtype)
        exported[:] = values or exported
        return _vector(keys, self.key_dtype), exported

    def export(self) -> tuple[np.ndarray, np.ndarray]:
        """All keys and all values, in the same order."""
        self._check_initialized()
        if self._buckets:
            return self._as_buckets()
        with self._lock:
            return self._arrays()

    def _as_buckets(self) -> tuple[np.ndarray, np.ndarray]:
        """Keys [buckets, 1] and values, those of scalars [buckets, 1] too, as TensorFlow's dense tables lay them out.

        They take them over as they are: a key is at its hash, or in growing steps from there at the first free place.
        """
        with self._lock:
            entries = list(self._values.items())
            while len(entries) > self._buckets * _FULL_FROM:
                self._buckets *= 2
            count = self._buckets
        empty = next(iter(self._reserved))
        keys = filled(count, empty, self.key_dtype.as_numpy_dtype)
        dtype = self.value_dtype.as_numpy_dtype
        values = filled((count, *self.value_shape), zero_of(dtype), dtype)
        taken: set[int] = set()
        for key, value in entries:
            at, step = (murmur64(key) if isinstance(key, bytes) else int(key)) % count, 0
            while at in taken:
                step += 1
                at = (at + step) % count
            taken.add(at)
            keys[at], values[at] = key, value
        return keys[:, None], values if self.value_shape else values[:, None]

    def _check_keys(self, keys: np.ndarray) -> None:
        if not self._reserved:
            return
        if np.ndim(keys) != 1:
            count = np.shape(keys)[:1]
            raise invalid(f"Expected key shape {shape_text(count)} got {shape_text(np.shape(keys))}")
        for key in keys.tolist():
            if key in self._reserved:
                raise invalid(f"Using the {self._reserved[key]} as a table key is not allowed")

    def _check_initialized(self) -> None:
        if not self.is_initialized:
            raise errors.FailedPreconditionError.of("Table not initialized.")


def _vector(values: list[Array], dtype: DType) -> np.ndarray:
    out = np.empty(len(values), dtype.as_numpy_dtype)
    out[:] = values
    return out
