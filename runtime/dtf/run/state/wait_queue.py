"""FIFO queues of operations that cannot finish yet: queues and accumulators wait in them without holding a thread.

Owns `WaitQueue`. Does not know what is waited for: each operation brings an `attempt` that tries once more.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dtf.run.interfaces import Done, Outputs, Value
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors

__all__ = ["Done", "Operation", "Outputs", "WaitQueue", "flush"]


class Operation:
    """One operation that waits: `attempt()` returns True when it has finished and left `value` or `error` in it.

    An attempt that did only a part of its work sets `has_moved`, so that the other queues are tried again.
    """

    __slots__ = (
        "attempt", "cancellation", "cancelled_message", "done", "error", "has_moved", "since", "token", "value",
    )  # fmt: skip

    def __init__(
        self,
        attempt: Callable[[Operation], bool],
        done: Done[Any],
        cancellation: CancellationManager | None,
        cancelled_message: str,
    ) -> None:
        self.attempt = attempt
        self.done = done
        self.cancellation = cancellation
        self.cancelled_message = cancelled_message
        self.token: int | None = None
        self.has_moved = False
        self.since = time.monotonic()
        self.value: Value = ()
        self.error: errors.OpError | None = None

    def fail(self, error: errors.OpError) -> bool:
        """Finishes with an error; returns True, so that an attempt can end with it."""
        self.error = error
        return True

    def report(self) -> None:
        """Tells the caller. No lock may be held."""
        if self.cancellation is not None:
            self.cancellation.deregister(self.token)
        if self.error is not None:
            self.done(error=self.error)
        else:
            self.done(self.value)


class WaitQueue:
    """Operations in order of arrival; one that cannot finish keeps those behind it waiting.

    `lock` is the owner's: it guards the queue and what the attempts change. `neighbours` are the owner's wait queues,
    this one among them: all are tried again when the first operation is cancelled, since others may have waited behind
    it. `guard` is held then; it is for an owner whose changes are transactions (see `durability`).
    """

    def __init__(self, lock: threading.RLock) -> None:
        self.neighbours: tuple[WaitQueue, ...] = (self,)
        self.guard: AbstractContextManager[object] = nullcontext()
        self._lock = lock
        self._operations: deque[Operation] = deque()

    def __len__(self) -> int:
        return len(self._operations)

    @property
    def longest_s(self) -> float | None:
        """For how many seconds the first operation has waited, None without one. Needs no lock."""
        try:
            return time.monotonic() - self._operations[0].since
        except IndexError:
            return None

    def join(self, operation: Operation) -> bool:
        """Puts an operation at the end. False, and it is not in the queue, when its step has been cancelled already."""
        if operation.cancellation is not None:
            operation.token = operation.cancellation.register(lambda: self._cancel(operation))
            if operation.token is None:
                operation.fail(errors.CancelledError.of(operation.cancelled_message))
                return False
        with self._lock:
            # Cancellation may have come between the registration and here; it then left its mark in `error`.
            if operation.error is not None:
                return False
            self._operations.append(operation)
        return True

    def advance(self) -> list[Operation]:
        """Tries from the front until one cannot finish; returns the finished ones. The lock is held."""
        finished = []
        while self._operations and self._operations[0].attempt(self._operations[0]):
            finished.append(self._operations.popleft())
        return finished

    def take_moved(self) -> bool:
        """Whether the first operation has done a part of its work since this was last asked. The lock is held."""
        if not self._operations or not self._operations[0].has_moved:
            return False
        self._operations[0].has_moved = False
        return True

    def drain(self, error: Callable[[Operation], errors.OpError]) -> list[Operation]:
        """Ends all with an error; returns them. The lock is held."""
        ended = list(self._operations)
        self._operations.clear()
        for operation in ended:
            operation.fail(error(operation))
        return ended

    def _cancel(self, operation: Operation) -> None:
        with self._lock:
            if operation.error is None:
                operation.fail(errors.CancelledError.of(operation.cancelled_message))
            try:
                self._operations.remove(operation)
            except ValueError:
                return  # it has finished, or has not joined yet: its owner reports
        operation.report()
        with self.guard:
            flush(self._lock, *self.neighbours)


def flush(lock: threading.RLock, *wait_queues: WaitQueue) -> None:
    """Advances the queues until none of them moves, and reports what finished once the lock is free."""
    with lock:
        finished: list[Operation] = []
        moved = True
        while moved:
            moved = False
            for wait_queue in wait_queues:
                ended = wait_queue.advance()
                moved = bool(ended) or wait_queue.take_moved() or moved
                finished.extend(ended)
    for operation in finished:
        operation.report()
