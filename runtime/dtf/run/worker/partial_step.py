"""PartialStep: a step at one task that its master feeds and fetches by several calls of RunGraph.

Owns when each call is answered. The step itself is an ordinary one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dtf.run.exchange.rendezvous import StepRendezvous
from dtf.run.interfaces import Done, GraphResult, Value
from dtf.run.worker.worker_session import WorkerStep
from dtf.wire import errors


class PartialStep:
    """A step that several calls feed and fetch. Its lock guards the end and who waits for it."""

    def __init__(self, running: WorkerStep, table: StepRendezvous) -> None:
        self.running = running
        self._table = table
        self._lock = threading.Lock()
        self._is_over = False
        self._error: errors.OpError | None = None
        self._waiters: list[Callable[[errors.OpError | None], None]] = []

    def finished(self, error: errors.OpError | None) -> None:
        with self._lock:
            self._is_over, self._error = True, error
            waiters = list(self._waiters)
            self._waiters.clear()
        for waiter in waiters:
            waiter(error)

    def part(
        self, sends: Sequence[tuple[str, Value]], recv_keys: Sequence[str], done: Done[GraphResult], is_last: bool
    ) -> None:
        """One call: feeds, then waits for its fetches, and for the end if it is the last."""
        try:
            for key, value in sends:
                self._table.send(key, value)
        except errors.OpError as error:
            done(error=self._error or error)
            return

        def received(values: dict[str, Value], error: errors.OpError | None) -> None:
            if error is not None:
                self._when_over(lambda cause: done(error=cause or error))
            elif is_last:
                self._when_over(lambda cause: done(error=cause) if cause is not None else done(GraphResult(values)))
            else:
                done(GraphResult(values))

        _receive_all(self._table, recv_keys, received)

    def _when_over(self, callback: Callable[[errors.OpError | None], None]) -> None:
        with self._lock:
            if not self._is_over:
                self._waiters.append(callback)
                return
        callback(self._error)


def _receive_all(
    table: StepRendezvous, keys: Sequence[str], done: Callable[[dict[str, Value], errors.OpError | None], None]
) -> None:
    """Receives several keys and calls done(values, the first error or None) when all have been answered."""
    if not keys:
        done({}, None)
        return
    lock = threading.Lock()
    values: dict[str, Value] = {}
    failures: list[errors.OpError] = []
    missing = len(keys)

    def receive(key: str) -> None:
        def received(value: Value = None, error: errors.OpError | None = None) -> None:
            nonlocal missing
            with lock:
                if error is not None:
                    failures.append(error)
                else:
                    values[key] = value
                missing -= 1
                is_last = missing == 0
            if is_last:
                done(values, failures[0] if failures else None)

        table.recv(key, received)

    for key in keys:
        receive(key)
