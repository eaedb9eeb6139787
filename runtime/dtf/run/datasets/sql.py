"""The dataset of the rows that a query of an SQLite database gives.

A query may only read the named database; it cannot attach another one.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
import urllib.parse
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements, Scope
from dtf.run.value_types import Array, Element, Position
from dtf.wire import errors
from dtf.wire.dtypes import DType
from dtf.wire.strings import string_scalar

__all__ = ["query"]

_Value: TypeAlias = int | float | bytes | None
"""What a column of a row holds, with texts as bytes."""

_STEPS_BETWEEN_CHECKS = 10_000
_ALLOWED = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
_NUMBER = re.compile(rb"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)")


def query(driver: str, source: str, text: str, kinds: Sequence[DType]) -> Dataset:
    """The rows of a query, a scalar of the given dtype for each column.

    Raises:
      InvalidArgumentError: the driver is not "sqlite"; or, when a row is taken, the number of columns does not fit.
      UnknownError (when a row is taken): the database cannot be read, or the query fails.
    """
    if driver != "sqlite":
        raise errors.InvalidArgumentError.of(
            f"The database type, {driver}, is not supported by SqlDataset. The set of supported databases is: "
            "{'sqlite'}."
        )
    return Dataset("SqlDataset", lambda scope: _Rows(scope, source, text, kinds))


class _Rows(Elements):
    """Position: how many rows have been given."""

    def __init__(self, scope: Scope, source: str, text: str, kinds: Sequence[DType]) -> None:
        self._scope, self._source, self._text = scope, source, text
        self._made = [_reader(kind) for kind in kinds]
        self._connection: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._taken = 0
        self._ended = False

    def __next__(self) -> Element:
        if self._ended:
            raise StopIteration
        row = self._following()
        if row is None:
            self.close()
            raise StopIteration
        self._taken += 1
        return tuple(read(value) for read, value in zip(self._made, row, strict=True))

    def _following(self) -> Sequence[_Value] | None:
        self._scope.check()
        try:
            if self._cursor is None:
                self._cursor = self._opened()
                for _ in range(self._taken):
                    self._cursor.fetchone()
            row: Sequence[_Value] | None = self._cursor.fetchone()
            return row
        except sqlite3.Error as error:
            self.close()
            self._scope.check()
            if "not authorized" in str(error):  # it changes something: it gives no columns
                raise self._unfit(0) from None
            raise errors.UnknownError.of(f"{self._source}: {error}") from None

    def _opened(self) -> sqlite3.Cursor:
        connection = self._connection = sqlite3.connect(
            f"file:{urllib.parse.quote(self._source)}?mode=ro", uri=True, check_same_thread=False
        )
        connection.text_factory = bytes
        connection.set_authorizer(
            lambda action, *_: sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY
        )
        connection.set_progress_handler(self._is_over, _STEPS_BETWEEN_CHECKS)
        cursor = connection.execute(self._text)
        count = len(cursor.description or ())
        if count != len(self._made):
            self.close()
            raise self._unfit(count)
        return cursor

    def _unfit(self, count: int) -> errors.OpError:
        return errors.InvalidArgumentError.of(
            f"The number of columns in query ({count}) must match the number of elements in output_types "
            f"({len(self._made)})."
        )

    def _is_over(self) -> bool:
        try:
            self._scope.check()
        except errors.CancelledError:
            return True
        return False

    def save(self) -> Position:
        return [self._taken, self._ended]

    def restore(self, state: Position) -> None:
        self.close()
        self._taken, self._ended = state

    def close(self) -> None:
        self._ended = True
        connection, self._connection, self._cursor = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(sqlite3.Error):
                connection.close()


def _reader(kind: DType) -> Callable[[_Value], Array]:
    """Turns a value of SQLite, an int, a float, bytes or None, into a scalar of a dtype."""
    if kind.name == "string":
        return lambda value: string_scalar(_text(value))
    dtype = kind.as_numpy_dtype
    if kind.name == "bool":
        return lambda value: np.asarray(_whole(value) != 0)[()]
    if kind.is_floating:
        return lambda value: np.asarray(_number(value), dtype)[()]
    return lambda value: np.array(_whole(value), np.int64).astype(dtype)[()]


def _text(value: _Value) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, float):
        mantissa, mark, exponent = f"{value:.15g}".partition("e")
        return (mantissa + ("" if "." in mantissa else ".0") + mark + exponent).encode()
    return b"" if value is None else str(value).encode()


def _number(value: _Value) -> int | float:
    """The number of a value; of a text, that of its beginning."""
    if not isinstance(value, bytes):
        return value or 0
    found = _NUMBER.match(value)
    if found is None:
        return 0
    return int(found[1]) if found[1].strip(b"+-").isdigit() else float(found[1])


def _whole(value: _Value) -> int:
    """The integer of a value, within 64 bits."""
    number = _number(value)
    if isinstance(number, float) and not np.isfinite(number):
        number = 0 if np.isnan(number) else np.copysign(2.0**64, number)
    return min(max(int(number), -(1 << 63)), (1 << 63) - 1)
