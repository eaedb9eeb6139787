"""Elements made in advance, in a thread of the pool."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements, Scope
from dtf.run.lib.growth import Growth
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Element, Position
from dtf.wire import errors

__all__ = ["Prefetched", "prefetched"]


def prefetched(dataset: Dataset, size: int) -> Dataset:
    """The same elements, up to `size` of them made in advance."""
    return Dataset(
        "PrefetchDataset", lambda scope: Prefetched(dataset.start(scope), scope, size), dataset.cardinality
    )


class Prefetched(Elements):
    """`_condition` guards the buffer, whose items are elements, errors, or None for the end.

    The thread starts with the first element that is asked for, waits while the buffer is full, and ends with its input,
    with `close` and with the scope.
    """

    def __init__(self, source: Elements, scope: Scope, size: int) -> None:
        self.inputs = [source]
        self._source, self._scope, self._size = source, scope, size
        self._condition = threading.Condition()
        self._buffer: deque[Element | errors.OpError | None] = deque()
        self._growth = Growth("a prefetch buffer")
        self._is_running = self._is_closed = self._pause = False
        self._making = CancellationManager()
        self._token: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether the next element can be taken at once."""
        return bool(self._buffer)

    def __next__(self) -> Element:
        with self._condition:
            self._start()
            if not self._buffer:
                self._wait()
            item = self._buffer[0]
            if item is None:
                raise StopIteration
            self._buffer.popleft()
            self._condition.notify_all()
        if isinstance(item, errors.OpError):
            raise item
        return item

    def _wait(self) -> None:
        """Waits for an item; the condition is held. Who is interrupted here has waited too long for the thread."""
        current = self._scope.current
        token = None if current is self._scope.cancellation else current.register(self._wake)
        try:
            while not self._buffer:
                self._scope.check()
                self._start()  # the thread may have been interrupted
                self._condition.wait()
        except errors.CancelledError:
            making, self._making = self._making, CancellationManager()
            making.start_cancel()
            raise
        finally:
            current.deregister(token)

    def _start(self) -> None:
        if not self._is_running and not self._is_closed and (not self._buffer or self._buffer[-1] is not None):
            self._token = self._scope.cancellation.register(self._wake)
            self._scope.check()
            self._is_running = True
            growing_pool.submit(self._run)

    def _wake(self) -> None:
        with self._condition:
            self._condition.notify_all()

    def _run(self) -> None:
        making = self._making
        with self._scope.taking(making):
            self._make(making)
        with self._condition:
            self._is_running = False
            self._scope.cancellation.deregister(self._token)
            self._condition.notify_all()
        if self._is_closed:
            self._source.close()

    def _make(self, making: CancellationManager) -> None:
        while True:
            with self._condition:
                while len(self._buffer) >= self._size and not self._must_stop():
                    self._condition.wait()
                if self._must_stop() or making.is_cancelled:
                    break
            item: Element | errors.OpError | None
            try:
                item = next(self._source, None)
                self._growth.add(item or (), len(self._buffer))
            except errors.OpError as error:
                if making.is_cancelled:
                    break
                item = error
            except Exception as error:  # a fault of this runtime must not leave the taker waiting
                item = errors.InternalError.of(f"{type(error).__name__}: {error}")
            with self._condition:
                self._buffer.append(item)
                self._condition.notify_all()
                if item is None:
                    break

    def _must_stop(self) -> bool:
        return self._is_closed or self._pause or self._scope.cancellation.is_cancelled

    def save(self) -> Position:
        with self._condition:
            self._pause = True
            self._condition.notify_all()
            while self._is_running:
                self._condition.wait()
            self._pause = False
            return [[_saved(item) for item in self._buffer], self._source.save()]

    def restore(self, state: Position) -> None:
        self._buffer.extend(_restored(item) for item in state[0])
        self._source.restore(state[1])

    def close(self) -> None:
        with self._condition:
            self._is_closed = True
            self._condition.notify_all()
            is_running = self._is_running
        if not is_running:
            self._source.close()


def _saved(item: Element | errors.OpError | None) -> Position:
    if isinstance(item, errors.OpError):
        return {"code": item.error_code, "message": item.message}
    return item and [np.asarray(each) for each in item]


def _restored(item: Position) -> Element | errors.OpError | None:
    if isinstance(item, dict):
        return errors.error_from_code(item["code"], item["message"])
    return None if item is None else tuple(item)
