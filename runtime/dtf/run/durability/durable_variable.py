"""DurableVariable: a variable whose value is in a block of the journal, and changes in transactions only.

Owns which block a value is in, which blocks are spare, and when a block may be overwritten. What a transaction is, and
what its record says, is `durable_resources`'s.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Protocol, cast

import numpy as np

from dtf.run.durability.journal import Block, Journal
from dtf.run.state.resources import Variable
from dtf.run.value_types import Array, Shape
from dtf.wire.dtypes import DType

__all__ = ["DurableVariable", "Transactions"]

_IN_RECORD_BYTES_MAX = 4096
_SAVED_PART_MAX = 2
"""A sparse update that touches more than one in so many rows copies the whole value."""


class Transactions(Protocol):
    """The transactions of a task, as its variables see them."""

    journal: Journal

    def touch(self, variable: DurableVariable) -> None:
        """The variable changes in the transaction that is open. Raises InternalError where none is open."""

    def rows_change(self, block: Block, rows: np.ndarray) -> None:
        """Rows of a block change in place in the transaction that is open."""


class DurableVariable(Variable):
    """A variable whose value is in a block, or in the record where it is small. It changes in transactions only.

    Attributes:
      number: its name in records.
      block: where its value is; None: in the array alone.
      kept: the block that the last record names, which the running transaction must not overwrite.
    """

    __slots__ = ("_owner", "_spares", "block", "described", "kept", "number")

    def __init__(self, owner: Transactions, number: int, name: str, dtype: DType, shape: Shape | None) -> None:
        super().__init__(name, dtype, shape)
        self._owner = owner
        self.number = number
        self.block: Block | None = None
        self.kept: Block | None = None
        self._spares: list[Block] = []
        self.described: tuple[DType, Shape | None] | None = None

    def assign(self, array: Array, check: Callable[[Shape | None, tuple[int, ...]], None] | None = None) -> None:
        """See `Variable.assign`; a large value is copied into a block."""
        with self.lock:
            if check is not None and (type(self._array) is not np.ndarray or self._array.shape != array.shape):
                check(self.shape, array.shape)
            self._owner.touch(self)
            if self._watchers:
                self._announce(True, None)
            if not _is_for_block(array):
                self._hold(None, array)
                return
            block = self._target(array.dtype, array.shape)
            np.copyto(block.array, array)
            self._hold(block, block.array)

    def clear(self) -> None:
        """See `Variable.clear`."""
        with self.lock:
            self._owner.touch(self)
            if self._watchers:
                self._announce(True, None)
            self._hold(None, None)

    def allocate(self, shape: tuple[int, ...]) -> None:
        """See `Variable.allocate`."""
        self.assign(np.zeros(shape, self.dtype.as_numpy_dtype))

    def writable(self, rows: np.ndarray | None = None) -> np.ndarray:
        """See `Variable.writable`. The rows that change are saved; without rows, all of the value is copied."""
        with self.lock:
            if self._array is None:
                self.read()
            self._owner.touch(self)
            if self.block is None:
                return super().writable(rows)
            if rows is not None:
                self.rows_touched += rows.size
            # A save that has just begun drops the value at once; without a wait for that, all of a table is copied.
            is_in_place = self._may_overwrite() or (
                rows is not None
                and self.block is self.kept
                and (self._is_exclusive() or self._settles())
                and self._save(rows)
            )
            if self._watchers:
                self._announce(not is_in_place, rows)
            if is_in_place:
                return self.block.array
            block = self._target(self.block.array.dtype, self.block.array.shape)
            np.copyto(block.array, self.block.array)
            self._hold(block, block.array)
            return block.array

    def update(self, operation: Callable[..., Array], operand: Array) -> Array:
        """See `Variable.update`."""
        with self.lock:
            if self._array is None:
                self.read()
            self._owner.touch(self)
            if self.block is None:
                value = super().update(operation, operand)
                if type(value) is np.ndarray and _is_for_block(value):
                    self.assign(value)
                return cast(Array, self._array)
            current = self.block
            is_in_place = self._may_overwrite()
            if self._watchers:
                self._announce(not is_in_place, None)
            target = current if is_in_place else self._target(current.array.dtype, current.array.shape)
            operation(current.array, operand, out=target.array)
            self._hold(target, target.array)
            return target.array

    def recovered(self, block: Block | None, array: Array | None) -> None:
        """Takes the value that the last record names."""
        self.block = self.kept = block
        self._array = array if block is None else block.array

    def settle(self, drop: Callable[[int], None]) -> None:
        """The record is written: the block that it does not name is free for the next update."""
        former, self.kept = self.kept, self.block
        if former is None or former is self.block:
            return
        if self.block is not None and former.nbytes == self.block.nbytes:
            self._spares.append(former)
        else:
            drop(former.number)
            for spare in self._spares:
                drop(spare.number)
            self._spares.clear()

    def remove(self, drop: Callable[[int], None]) -> None:
        """The variable is gone from the records."""
        for block in {each.number for each in (self.block, self.kept, *self._spares) if each is not None}:
            drop(block)
        self._spares.clear()

    def _may_overwrite(self) -> bool:
        """Whether the value is one that no record names and nobody else sees."""
        return self.block is not None and self.block is not self.kept and not self._has_readers()

    def _is_exclusive(self) -> bool:
        return super()._is_exclusive() if self.block is None else not self._has_readers()

    def _has_readers(self) -> bool:
        return sys.getrefcount(self._array) > _SHARED_WITH_BLOCK_COUNT

    def _target(self, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        """A block for the next value. The present one stays as it is."""
        for place, spare in enumerate(self._spares):
            if spare.fits(dtype, shape) and not spare.has_readers():
                return self._spares.pop(place)
        return self._owner.journal.new_block(dtype, shape)

    def _hold(self, block: Block | None, array: Array | None) -> None:
        """Changes to another value. A block that no record names is a spare again."""
        former = self.block
        self.block, self._array = block, array
        if former is not None and former is not block and former is not self.kept:
            self._spares.append(former)

    def _save(self, rows: np.ndarray) -> bool:
        """Saves rows before they change. False: there are so many that a copy of the whole value costs less."""
        assert self.block is not None
        array = self.block.array
        count = array.shape[0] if array.ndim else 0
        row_bytes = array.nbytes // max(1, count)
        if not row_bytes or rows.size * _SAVED_PART_MAX > count:
            return False
        if rows.size:
            self._owner.journal.save(self.block, rows, row_bytes)
            self._owner.rows_change(self.block, rows)
        return True


def _is_for_block(array: Array) -> bool:
    return type(array) is np.ndarray and array.nbytes > _IN_RECORD_BYTES_MAX and not array.dtype.hasobject


class _Probe:
    __slots__ = ("_array", "block")


_probe = _Probe()
_probe._array = np.zeros(1)  # type: ignore[attr-defined]
_probe.block = _probe._array  # type: ignore[attr-defined]
_SHARED_WITH_BLOCK_COUNT = sys.getrefcount(_probe._array)  # type: ignore[attr-defined]
del _probe
