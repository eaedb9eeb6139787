"""The resource that steps take elements from: `Iterator`.

Owns the pass that is going on, and who may take from it: one at a time. Does not know nodes or handles.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements, Scope, restored_state, saved_state
from dtf.run.datasets.prefetch import Prefetched
from dtf.run.interfaces import Done, Value
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Element, Position
from dtf.wire import errors
from dtf.wire.dtypes import DType, as_dtype
from dtf.wire.tensor_shape import TensorShape

__all__ = ["Iterator"]

GRACE_S = 2.0
"""How long an element may still be made for a step that has been cancelled."""


class Iterator:
    """An iterator over one dataset after the other.

    Attributes:
      name: for messages.
      types, shapes: what every element must have.
    """

    def __init__(self, name: str, types: Sequence[DType], shapes: Sequence[TensorShape]) -> None:
        self.name = name
        self.types, self.shapes = list(types), list(shapes)
        self._pass: _Pass | None = None
        self._start_lock = threading.Lock()

    @property
    def is_started(self) -> bool:
        """Whether there has been a pass."""
        return self._pass is not None

    def start_once(self, dataset: Dataset, scope: Callable[[], Scope]) -> None:
        """Begins a pass unless there has been one."""
        with self._start_lock:
            if self._pass is None:
                self.start(dataset, scope())

    def start(self, dataset: Dataset, scope: Scope) -> None:
        """Begins a pass over `dataset`; the one before ends, and what waits for it."""
        self._replace(_Pass(self, dataset, scope))

    def next(self, cancellation: CancellationManager, done: Done[Element]) -> None:
        """Calls done(element) or done(error=...): at once when it is there, else from another thread.

        Errors:
          FailedPreconditionError: the iterator has not been initialized.
          OutOfRangeError: the pass is over.
        """
        current = self._pass
        if current is None:
            done(
                error=errors.FailedPreconditionError.of(
                    "GetNext() failed because the iterator has not been initialized. Ensure that you have run the "
                    "initializer operation for this iterator before getting the next element.",
                )
            )
            return
        outcome = current.take_at_once()
        if outcome is None:
            _Waiting(current, cancellation, done).start()
        else:
            _report(outcome, done)

    def save(self) -> Position:
        """The position, an IteratorState; waits for an element that is being made.

        Raises:
          FailedPreconditionError: there is no pass, or what it reads cannot be saved.
        """
        if self._pass is None:
            raise errors.FailedPreconditionError.of(f"Iterator {self.name} has not been initialized")
        return saved_state(self._pass.save())

    def restore(self, position: Value) -> None:
        """Goes to a position of a pass over the same dataset.

        Raises:
          FailedPreconditionError: the iterator has not been initialized: nobody knows which dataset it is.
          InvalidArgumentError: it is no position, or one of another dataset.
        """
        state = restored_state(position)
        if self._pass is None:
            raise errors.FailedPreconditionError.of(
                f"Iterator {self.name} must be initialized before its position is restored"
            )
        fresh = _Pass(self, self._pass.dataset, self._pass.scope.fresh())
        try:
            fresh.restore(state)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            fresh.scope.close()
            raise errors.InvalidArgumentError.of(
                f"The position is not one of the dataset of iterator {self.name} ({fresh.dataset.kind})"
            ) from error
        self._replace(fresh)

    def close(self) -> None:
        """Ends the pass, as when the iterator is deleted."""
        if self._pass is not None:
            self._pass.scope.close()

    def _replace(self, fresh: _Pass) -> None:
        old, self._pass = self._pass, fresh
        if old is not None:
            old.scope.close()
        # The threads of a pass know its scope alone; they end when the iterator is no longer referenced.
        weakref.finalize(self, fresh.scope.close)


class _Pass:
    """One pass of an iterator. `_lock` guards it and is held while an element is made.

    An element that was made for a step which had been cancelled by then is kept for the next one, so that none is
    lost.
    """

    def __init__(self, iterator: Iterator, dataset: Dataset, scope: Scope) -> None:
        self.dataset, self.scope = dataset, scope
        self._types, self._shapes = iterator.types, iterator.shapes
        self._lock = threading.Lock()
        self._kept: deque[Element] = deque()
        self._has_ended = False
        self._elements: Elements = dataset.start(scope)

    def take_at_once(self) -> Element | errors.OpError | None:
        """The next element or error if it is there already."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            is_ready = self._kept or isinstance(self._elements, Prefetched) and self._elements.is_ready
            return self._take() if is_ready or self._has_ended else None
        finally:
            self._lock.release()

    def take(
        self, is_wanted: Callable[[], bool], claim: Callable[[], bool], take: CancellationManager
    ) -> Element | errors.OpError | None:
        """The next element, or why there is none; waits. None when it is not wanted by the time that its turn comes, or
        not claimed when it has been made: then it is kept, before anybody else's turn. `take` interrupts the making.
        """
        with self._lock:
            if not is_wanted():
                return None
            with self.scope.taking(take):
                outcome = self._take()
            if claim():
                return outcome
            if not isinstance(outcome, errors.OpError):
                self._kept.appendleft(outcome)
            return None

    def save(self) -> Position:
        """The position as a tree."""
        with self._lock:
            kept = [[np.asarray(each) for each in element] for element in self._kept]
            return [kept, self._has_ended, None if self._has_ended else self._elements.save()]

    def restore(self, state: Position) -> None:
        """Goes to such a position."""
        kept, self._has_ended, position = state
        self._kept = deque(tuple(element) for element in kept)
        if not self._has_ended:
            self._elements.restore(position)

    def _take(self) -> Element | errors.OpError:
        if self._kept:
            return self._kept.popleft()
        if self._has_ended:
            return _end()
        try:
            element = next(self._elements)
            self._check(element)
            return element
        except StopIteration:
            self._has_ended = True
            self._elements.close()
            return _end()
        except errors.OpError as error:
            return error

    def _check(self, element: Element) -> None:
        if len(element) != len(self._types):
            raise errors.InvalidArgumentError.of(
                f"Number of components does not match: expected {len(self._types)} types but got {len(element)}.",
            )
        for number, (value, dtype, shape) in enumerate(zip(element, self._types, self._shapes, strict=True)):
            sizes = getattr(value, "shape", ())
            if not shape.is_compatible_with(sizes):
                raise errors.InvalidArgumentError.of(
                    f"Number {number} of an element's components has shape {list(sizes)}, which is not compatible "
                    f"with the iterator's {shape}",
                )
            kind = getattr(value, "dtype", None)
            if kind is not None and kind != dtype.as_numpy_dtype:
                raise errors.InvalidArgumentError.of(
                    f"Data type mismatch at component {number}: expected {dtype.name} but got {as_dtype(kind).name}.",
                )


def _end() -> errors.OpError:
    return errors.OutOfRangeError.of("End of sequence")


def _report(outcome: Element | errors.OpError, done: Done[Element]) -> None:
    if isinstance(outcome, errors.OpError):
        done(error=errors.error_from_code(outcome.error_code, outcome.message))
    else:
        done(outcome)


class _Waiting:
    """A step that waits for an element: it gets that, or its cancellation. `_lock` guards which came first."""

    def __init__(self, source: _Pass, cancellation: CancellationManager, done: Done[Element]) -> None:
        self._source, self._cancellation, self._done = source, cancellation, done
        self._lock = threading.Lock()
        self._is_over = False
        self._token: int | None = None
        self._take = CancellationManager()
        self._taken = threading.Event()

    def start(self) -> None:
        self._token = self._cancellation.register(self._cancel)
        if self._token is None:
            self._done(error=_cancelled())
            return
        growing_pool.submit(self._run)

    def _run(self) -> None:
        try:
            outcome = self._source.take(lambda: not self._is_over, self._ends, self._take)
        except Exception as error:  # a fault of this runtime must not leave the step waiting
            if not self._ends():
                return
            outcome = errors.InternalError.of(f"{type(error).__name__}: {error}")
        finally:
            self._taken.set()
        if outcome is not None:
            self._cancellation.deregister(self._token)
            _report(outcome, self._done)

    def _cancel(self) -> None:
        if self._ends():
            self._done(error=_cancelled())
            growing_pool.submit(self._interrupt)

    def _interrupt(self) -> None:
        """What is being made for the step is kept for the next one; if it takes too long, it may never come."""
        if not self._taken.wait(GRACE_S):
            self._take.start_cancel()

    def _ends(self) -> bool:
        with self._lock:
            was_over, self._is_over = self._is_over, True
            return not was_over


def _cancelled() -> errors.OpError:
    return errors.CancelledError.of("The step was cancelled while it waited for the next element")
