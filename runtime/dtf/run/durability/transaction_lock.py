"""TransactionLock: a reentrant lock whose last release ends a transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dtf.run.interfaces import Done, Value
from dtf.wire import errors

__all__ = ["TransactionLock"]


class TransactionLock:
    """The lock of an update, whose release ends the transaction.

    Attributes:
      lock: the plain lock, for changes that are no transaction.
      waiting: calls that are answered when the transaction has ended.
    """

    def __init__(self, end: Callable[[], None]) -> None:
        self.lock = threading.RLock()
        self._end = end
        self._depth = 0
        self._thread = 0
        self.waiting: list[tuple[Done[Value], Value]] = []

    @property
    def is_mine(self) -> bool:
        """Whether this thread holds it."""
        return self._thread == threading.get_ident()

    def acquire(self, blocking: bool = True) -> bool:
        if not self.lock.acquire(blocking):
            return False
        self._depth += 1
        if self._depth == 1:
            self._thread = threading.get_ident()
        return True

    def release(self) -> None:
        """Raises OpError when the record cannot be written; the lock is free all the same."""
        if self._depth > 1:
            self._depth -= 1
            self.lock.release()
            return
        failure: errors.OpError | None = None
        waiting: list[tuple[Done[Value], Value]] = []
        try:
            self._end()
        except errors.OpError as error:
            failure = error
            raise
        finally:
            if self.waiting:
                waiting, self.waiting = self.waiting, []
            self._depth = self._thread = 0
            self.lock.release()
            for done, value in waiting:
                if failure is None:
                    done(value)
                else:
                    done(error=failure)

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()
