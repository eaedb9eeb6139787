"""Datasets made by calling functions on elements: map, filter, scan, and map in parallel."""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np

from dtf.run.datasets.dataset import UNKNOWN, Answer, Dataset, Elements, Function, Scope
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Element, Position
from dtf.wire import errors

__all__ = ["filtered", "mapped", "mapped_in_parallel", "reduced", "scanned", "single", "taken_while"]


def mapped(dataset: Dataset, function: Function, preserve_cardinality: bool) -> Dataset:
    """The function's results, one after the other.

    A function that raises OutOfRangeError ends the dataset, or with `preserve_cardinality` is an
    InvalidArgumentError.
    """
    cardinality = dataset.cardinality if preserve_cardinality else UNKNOWN
    return Dataset(
        "MapDataset", lambda scope: _Mapped(scope, dataset.start(scope), function, preserve_cardinality), cardinality
    )


class _Mapped(Elements):
    def __init__(self, scope: Scope, source: Elements, function: Function, preserve_cardinality: bool) -> None:
        self.inputs = [source]
        self._scope, self._source, self._function = scope, source, function
        self._preserve_cardinality = preserve_cardinality

    def __next__(self) -> Element:
        element = next(self._source)
        try:
            return self._function.call(self._scope, element)
        except errors.OutOfRangeError as error:
            raise _end_or(error, self._preserve_cardinality) from error


def _end_or(error: errors.OpError, preserve_cardinality: bool) -> BaseException:
    if not preserve_cardinality:
        return StopIteration()
    return errors.InvalidArgumentError.of(f"Function invocation produced OutOfRangeError: {error.message}")


def filtered(dataset: Dataset, predicate: Function) -> Dataset:
    """The elements for which the predicate gives true."""
    return Dataset("FilterDataset", lambda scope: _Filtered(scope, dataset.start(scope), predicate))


class _Filtered(Elements):
    def __init__(self, scope: Scope, source: Elements, predicate: Function) -> None:
        self.inputs = [source]
        self._scope, self._source, self._predicate = scope, source, predicate

    def __next__(self) -> Element:
        while True:
            self._scope.check()
            element = next(self._source)
            if _truth(self._predicate, self._scope, element):
                return element


def taken_while(dataset: Dataset, predicate: Function) -> Dataset:
    """The elements before the first for which the predicate gives false."""
    return Dataset("TakeWhileDataset", lambda scope: _TakenWhile(scope, dataset.start(scope), predicate))


class _TakenWhile(Elements):
    def __init__(self, scope: Scope, source: Elements, predicate: Function) -> None:
        self.inputs = [source]
        self._scope, self._source, self._predicate = scope, source, predicate
        self._ended = False

    def __next__(self) -> Element:
        if not self._ended:
            element = next(self._source)
            if _truth(self._predicate, self._scope, element):
                return element
            self._ended = True
        raise StopIteration

    def save(self) -> Position:
        return [self._ended, self._source.save()]

    def restore(self, state: Position) -> None:
        self._ended = state[0]
        self._source.restore(state[1])


def _truth(predicate: Function, scope: Scope, element: Element) -> bool:
    values = predicate.call(scope, element)
    if len(values) != 1 or np.ndim(values[0]) or np.asarray(values[0]).dtype != bool:
        raise errors.InvalidArgumentError.of("Filter predicate must return a scalar bool")
    return bool(values[0])


def scanned(dataset: Dataset, function: Function, initial_state: Element) -> Dataset:
    """What function(*state, *element) gives behind the next state."""
    return Dataset("ScanDataset", lambda scope: _Scanned(scope, dataset.start(scope), function, initial_state))


class _Scanned(Elements):
    def __init__(self, scope: Scope, source: Elements, function: Function, state: Element) -> None:
        self.inputs = [source]
        self._scope, self._source, self._function, self._state = scope, source, function, state

    def __next__(self) -> Element:
        element = next(self._source)
        try:
            results = self._function.call(self._scope, (*self._state, *element))
        except errors.OutOfRangeError:
            raise StopIteration from None
        size = len(self._state)
        self._state = results[:size]
        return results[size:]

    def save(self) -> Position:
        return [[np.asarray(each) for each in self._state], self._source.save()]

    def restore(self, state: Position) -> None:
        self._state = tuple(state[0])
        self._source.restore(state[1])


def reduced(dataset: Dataset, function: Function, state: Element, scope: Scope) -> Element:
    """The last state of function(*state, *element) over one pass."""
    elements = dataset.start(scope)
    try:
        for element in elements:
            scope.check()
            state = function.call(scope, (*state, *element))
    finally:
        elements.close()
    return state


def single(dataset: Dataset, scope: Scope) -> Element:
    """The only element of one pass.

    Raises:
      InvalidArgumentError: the dataset is empty or has more elements.
    """
    elements = dataset.start(scope)
    try:
        found = list(itertools.islice(elements, 2))
    finally:
        elements.close()
    if len(found) != 1:
        raise errors.InvalidArgumentError.of(
            "Dataset had more than one element." if found else "Dataset was empty."
        )
    return found[0]


# -- in parallel


def mapped_in_parallel(
    dataset: Dataset, function: Function, calls: int, is_ordered: bool, preserve_cardinality: bool
) -> Dataset:
    """As `mapped`, with up to `calls` calls at the same time; in the order of the input, or as they end."""
    cardinality = dataset.cardinality if preserve_cardinality else UNKNOWN
    return Dataset(
        "ParallelMapDataset",
        lambda scope: _MappedInParallel(scope, dataset.start(scope), function, calls, is_ordered, preserve_cardinality),
        cardinality,
    )


class _MappedInParallel(Elements):
    """Input is taken only while an element is requested, so at most `calls` elements are in flight."""

    def __init__(
        self,
        scope: Scope,
        source: Elements,
        function: Function,
        calls: int,
        is_ordered: bool,
        preserve_cardinality: bool,
    ) -> None:
        self.inputs = [source]
        self._scope, self._source, self._function = scope, source, function
        self._calls, self._is_ordered, self._preserve_cardinality = calls, is_ordered, preserve_cardinality
        self._started: deque[Answer] = deque()
        self._ended = False
        self._running = CancellationManager()
        scope.adopt(self._running)

    def __next__(self) -> Element:
        self._fill()
        if not self._started:
            raise StopIteration
        answer = self._started.popleft() if self._is_ordered else self._first_ended()
        self._fill()
        try:
            return answer.wait(self._scope.current)
        except errors.OutOfRangeError as error:
            raise _end_or(error, self._preserve_cardinality) from error
        except errors.CancelledError:
            if self._scope.current.is_cancelled:
                self._stop()
            raise

    def _stop(self) -> None:
        """Interrupts the calls that are on their way, which have taken too long."""
        running, self._running = self._running, CancellationManager()
        self._scope.disown(running)
        self._scope.adopt(self._running)
        self._started.clear()
        running.start_cancel()

    def close(self) -> None:
        self._scope.disown(self._running)
        super().close()

    def _fill(self) -> None:
        while len(self._started) < self._calls and not self._ended:
            answer = Answer()
            try:
                element = next(self._source)
            except StopIteration:
                self._ended = True
                return
            except errors.OpError as error:
                answer(error=error)
            else:
                growing_pool.submit(self._function.run, self._scope, element, answer, self._running)
            self._started.append(answer)

    def _first_ended(self) -> Answer:
        for answer in self._started:
            if answer.is_here:
                self._started.remove(answer)
                return answer
        return self._started.popleft()

    def save(self) -> Position:
        results: list[Position] = []
        for answer in self._started:
            try:
                results.append([np.asarray(each) for each in answer.wait()])
            except errors.OpError as error:
                results.append({"code": error.error_code, "message": error.message})
        return [results, self._ended, self._source.save()]

    def restore(self, state: Position) -> None:
        for result in state[0]:
            answer = Answer()
            if isinstance(result, dict):
                answer(error=errors.error_from_code(result["code"], result["message"]))
            else:
                answer(tuple(result))
            self._started.append(answer)
        self._ended = state[1]
        self._source.restore(state[2])
