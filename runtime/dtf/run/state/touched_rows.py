"""Which rows of variables have changed since a save, for saves that hold only these.

A record begins when a save takes its snapshot and is confirmed when that save is on the disk; only then does it replace
the record of the save before. A save that fails leaves everything as it was.

Owns the records; they stand among the watchers of their variable. The lock of a record is its variable's.
"""

from __future__ import annotations

import numpy as np

from dtf.run.state.resources import Variable
from dtf.run.value_types import Array

__all__ = ["TouchedRows", "record_of"]

_RECORDS_MAX = 4
"""How many records one variable has at most. The oldest ends first: its Saver may be gone."""


class TouchedRows:
    """The rows of one variable that have changed since the save `since`, from now on; the caller holds the variable's
    lock.
    """

    def __init__(self, variable: Variable, since: str) -> None:
        self.since = since
        self.is_young = False
        self._variable = variable
        self._shape = np.shape(variable.read())
        self._touched: np.ndarray | None = np.zeros(self._shape[0], bool)
        records = [each for each in variable.watchers if isinstance(each, TouchedRows)]
        for old in records:
            if old.since == since or len(records) >= _RECORDS_MAX:
                old.end()
                records = [each for each in records if each is not old]
        variable.watch(self)

    def rows(self) -> np.ndarray | None:
        """The indices of the rows, in order; None where an update did not say which rows it changed."""
        return None if self._touched is None else np.flatnonzero(self._touched)

    def end(self) -> None:
        self._variable.unwatch(self)

    def before_update(self, array: Array, rows: np.ndarray | None) -> None:
        if rows is None:
            self._touched = None
        elif self._touched is not None:
            self._touched[np.ravel(rows)] = True

    def before_release(self, array: Array) -> None:
        """The array is another one; its values are `before_update`'s."""


def record_of(variable: Variable, since: str) -> TouchedRows | None:
    """The record that began with the save `since`, or None."""
    for watcher in variable.watchers:
        if isinstance(watcher, TouchedRows) and watcher.since == since:
            return watcher
    return None
