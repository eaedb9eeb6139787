"""Snapshots: the values that variables had at one moment, read piece by piece while updates go on.

A save of a large variable takes seconds, and training must not wait for it, nor may it copy all variables. So a
snapshot takes no copy at first. It watches its variable: an update in place first keeps the old bytes of the rows that
it is about to change and that have not been read yet; an update of the whole keeps what is left. A variable that
replaces its array leaves the old one to the snapshot.

What all snapshots of a save keep is bounded by one `Budget`. When it is used up, the updating thread has the rest of
the variable written at once (`overflow`): the memory is bounded, and the price is one pause of that update.

Owns the kept bytes; the file is `kernels.saving`'s and `wire.checkpoint`'s. The lock of a snapshot is its variable's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from dtf.run.state.resources import Variable
from dtf.run.value_types import Array

__all__ = ["PIECE_BYTES", "Budget", "VariableSnapshot", "is_large"]

PIECE_BYTES = 1 << 20
"""About how much is read at once: an update waits for no longer than that takes."""
_UNIT_BYTES_MIN = 256
_ROW_BYTES_MAX = 1 << 16
_LARGE_BYTES = 1 << 16


def is_large(array: object) -> bool:
    """Whether a value is worth a snapshot; a smaller one is held, and its next update copies it."""
    if type(array) is not np.ndarray or array.nbytes < _LARGE_BYTES or array.dtype == object:
        return False
    return bool(array.flags.c_contiguous) and array.ndim > 0


class Budget:
    """How many bytes the snapshots of one save may keep. Its lock guards the number."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._lock = threading.Lock()

    def take(self, size: int) -> bool:
        """Whether `size` more bytes may be kept; they count from now on."""
        with self._lock:
            if self._used + size > self.limit:
                return False
            self._used += size
            return True

    def take_anyway(self, size: int) -> None:
        """Counts bytes that have to be kept whatever the limit is."""
        with self._lock:
            self._used += size

    def give_back(self, size: int) -> None:
        with self._lock:
            self._used -= size


class VariableSnapshot:
    """The value of one variable at the moment when this is made; the caller holds the variable's lock then.

    Its pieces come in order, each once, from `take`, which any thread may call.

    Args:
      variable: one whose value `is_large`.
      budget: what may be kept.
      overflow: writes the rest of this snapshot at once, by `take`, and returns True; or returns False where that
        cannot be done, and the rest is kept though the budget is used up. It raises nothing.

    Attributes:
      shape, dtype, nbytes: of the value.
      is_young: see `Watcher`.
    """

    def __init__(
        self, variable: Variable, budget: Budget, overflow: Callable[[VariableSnapshot], bool] | None = None
    ) -> None:
        array = np.asarray(variable.read())
        self.is_young = True
        self.shape = array.shape
        self.dtype = array.dtype
        self.nbytes = array.nbytes
        self._variable = variable
        self._budget = budget
        self._overflow = overflow
        self._next = 0
        self._kept_bytes = 0
        self._frozen: np.ndarray | None = None
        self._frozen_start = 0
        row_bytes = self.nbytes // self.shape[0]
        # Old rows are kept by units of so many rows: one number per unit says where.
        self._unit_rows = max(1, _UNIT_BYTES_MIN // row_bytes)
        self._unit = row_bytes * self._unit_rows
        self._has_units = bool(row_bytes <= _ROW_BYTES_MAX)
        self._units = self.nbytes // self._unit
        self._piece = max(1, PIECE_BYTES // self._unit) * self._unit if self._has_units else PIECE_BYTES
        self._tail = _bytes_of(array)[self._units * self._unit :].copy() if self._has_units else None
        self._slots: np.ndarray | None = None
        self._log: np.ndarray | None = None
        self._logged = 0
        variable.watch(self)

    def take(self, room: np.ndarray | None = None) -> tuple[int, np.ndarray] | None:
        """The next piece: its offset in bytes, and the bytes. None after the last.

        Args:
          room: a uint8 array of at least `room_bytes`, to be reused for each piece.
        """
        with self._variable.lock:
            start = self._next
            if start >= self.nbytes:
                return None
            stop = min(start + self._piece, self.nbytes)
            piece = np.empty(stop - start, np.uint8) if room is None else room[: stop - start]
            self._copy(start, stop, piece)
            self._next = stop
            if stop == self.nbytes:
                self.close()
            return start, piece

    @property
    def is_by_rows(self) -> bool:
        """Whether each piece has whole rows, and updates of rows are known as such."""
        return self._has_units

    @property
    def room_bytes(self) -> int:
        """The largest size of a piece."""
        return min(self._piece, self.nbytes)

    def close(self) -> None:
        """Forgets what has been kept; no more pieces come."""
        with self._variable.lock:
            self._next = self.nbytes
            self._variable.unwatch(self)
            self._frozen = self._log = self._slots = None
            self._budget.give_back(self._kept_bytes)
            self._kept_bytes = 0

    # As a watcher: the variable's lock is held

    def before_update(self, array: Array, rows: np.ndarray | None) -> None:
        if self._frozen is not None or self._next >= self.nbytes:
            return
        if rows is None or not self._has_units or not self._keep_rows(np.asarray(array), rows):
            self._keep_rest(np.asarray(array))

    def before_release(self, array: Array) -> None:
        if self._frozen is not None or self._next >= self.nbytes:
            return
        if self._make_room(self.nbytes - self._next):
            self._freeze(_bytes_of(np.asarray(array)), 0)

    def _make_room(self, size: int) -> bool:
        """Whether the snapshot is still wanted and may keep so many bytes more."""
        if not self._budget.take(size):
            if self._overflow is not None and self._overflow(self):
                return False
            self._budget.take_anyway(size)
        self._kept_bytes += size
        return True

    def _keep_rest(self, array: np.ndarray) -> None:
        start = self._next
        if self._make_room(self.nbytes - start):
            rest = np.empty(self.nbytes - start, np.uint8)
            self._copy(start, self.nbytes, rest, array)
            self._forget_rows()
            self._freeze(rest, start)

    def _freeze(self, array: np.ndarray, start: int) -> None:
        self._frozen, self._frozen_start = array, start
        self._variable.unwatch(self)

    def _forget_rows(self) -> None:
        size = self._logged * self._unit
        self._log = self._slots = self._tail = None
        self._logged = 0
        self._budget.give_back(size)
        self._kept_bytes -= size

    def _keep_rows(self, array: np.ndarray, rows: np.ndarray) -> bool:
        """Keeps the old values of rows. False: there is no room for them."""
        if self._log is None:
            capacity = min(self._units, self._budget.limit // self._unit)
            self._slots = np.full(self._units, -1, np.int32)
            self._log = np.empty((capacity, self._unit), np.uint8)  # takes memory when it is written to
        slots, log = self._slots, self._log
        assert slots is not None
        units = np.unique(np.ravel(rows) // self._unit_rows)
        units = units[(units >= self._next // self._unit) & (units < self._units)]
        units = units[slots[units] < 0]
        end = self._logged + len(units)
        if end > len(log) or not self._budget.take(len(units) * self._unit):
            return False
        table = _bytes_of(array)[: self._units * self._unit].reshape(self._units, self._unit)
        log[self._logged : end] = table[units]
        slots[units] = np.arange(self._logged, end, dtype=np.int32)
        self._kept_bytes += len(units) * self._unit
        self._logged = end
        return True

    def _copy(self, start: int, stop: int, out: np.ndarray, array: np.ndarray | None = None) -> None:
        """The old bytes from start to stop; `array` is the variable's where it is not known otherwise."""
        if self._frozen is not None:
            out[:] = self._frozen[start - self._frozen_start : stop - self._frozen_start]
        else:
            live = np.asarray(self._variable.read()) if array is None else array
            out[:] = _bytes_of(live)[start:stop]
        if self._log is not None and self._slots is not None:
            first, last = start // self._unit, min(stop // self._unit, self._units)
            slots = self._slots[first:last]
            changed = np.flatnonzero(slots >= 0)
            if changed.size:
                table = out[: (last - first) * self._unit].reshape(-1, self._unit)
                table[changed] = self._log[slots[changed]]
        if stop == self.nbytes and self._tail is not None and self._tail.size:
            out[len(out) - len(self._tail) :] = self._tail


def _bytes_of(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1).view(np.uint8)
