"""Datasets made of others without calling functions: parts, repetitions, combinations, and those that only pass on."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from typing import cast

import numpy as np

from dtf.run.datasets.dataset import INFINITE, UNKNOWN, Dataset, Elements, Scope
from dtf.run.datasets.sources import indexed
from dtf.run.lib.growth import Growth
from dtf.run.value_types import Array, Element, Position
from dtf.wire import errors

__all__ = ["concatenate", "ignore_errors", "repeat", "shard", "skip", "take", "unbatch", "window", "zipped"]


def take(dataset: Dataset, count: int) -> Dataset:
    """The first `count` elements; all of them for a negative count."""
    if count < 0:
        return dataset
    known = dataset.cardinality
    cardinality = known if known == UNKNOWN else count if known == INFINITE else min(known, count)
    return Dataset("TakeDataset", lambda scope: _Taken(dataset.start(scope), count), cardinality)


class _Taken(Elements):
    def __init__(self, source: Elements, count: int) -> None:
        self.inputs = [source]
        self._source, self._left = source, count

    def __next__(self) -> Element:
        if self._left <= 0:
            raise StopIteration
        element = next(self._source)
        self._left -= 1
        if not self._left:
            self._source.close()
        return element

    def save(self) -> Position:
        return [self._left, self._source.save()]

    def restore(self, state: Position) -> None:
        self._left = state[0]
        self._source.restore(state[1])


def skip(dataset: Dataset, count: int) -> Dataset:
    """All but the first `count` elements; none for a negative count."""
    known = dataset.cardinality
    cardinality = 0 if count < 0 else known if known < 0 else max(0, known - count)
    return Dataset("SkipDataset", lambda scope: _Skipped(scope, dataset.start(scope), count), cardinality)


class _Skipped(Elements):
    def __init__(self, scope: Scope, source: Elements, count: int) -> None:
        self.inputs = [source]
        self._scope, self._source, self._left = scope, source, count

    def __next__(self) -> Element:
        if self._left < 0:
            raise StopIteration
        while self._left:
            self._scope.check()
            next(self._source)
            self._left -= 1
        return next(self._source)

    def save(self) -> Position:
        return [self._left, self._source.save()]

    def restore(self, state: Position) -> None:
        self._left = state[0]
        self._source.restore(state[1])


def shard(dataset: Dataset, count: int, index: int, require_non_empty: bool = False) -> Dataset:
    """Every `count`-th element, from number `index` on."""
    known = dataset.cardinality
    cardinality = known if known < 0 else len(range(index, known, count))
    return Dataset(
        "ShardDataset", lambda scope: _Shard(scope, dataset.start(scope), count, index, require_non_empty), cardinality
    )


class _Shard(Elements):
    def __init__(self, scope: Scope, source: Elements, count: int, index: int, require_non_empty: bool) -> None:
        self.inputs = [source]
        self._scope, self._source, self._count, self._index = scope, source, count, index
        self._require_non_empty = require_non_empty
        self._seen = 0

    def __next__(self) -> Element:
        while True:
            self._scope.check()
            try:
                element = next(self._source)
            except StopIteration:
                if self._require_non_empty and self._seen < self._count:
                    raise errors.InvalidArgumentError.of(
                        f"{self._seen} elements do not fill {self._count} shards that may not be empty"
                    ) from None
                raise
            self._seen += 1
            if (self._seen - 1) % self._count == self._index:
                return element

    def save(self) -> Position:
        return [self._seen, self._source.save()]

    def restore(self, state: Position) -> None:
        self._seen = state[0]
        self._source.restore(state[1])


def repeat(dataset: Dataset, count: int) -> Dataset:
    """The elements `count` times; for ever for a negative count."""
    known = dataset.cardinality
    if count < 0:
        cardinality = 0 if known == 0 else INFINITE
    else:
        cardinality = known * count if known >= 0 else 0 if count == 0 else known
    return Dataset("RepeatDataset", lambda scope: _Repeated(scope, dataset, count), cardinality)


class _Repeated(Elements):
    def __init__(self, scope: Scope, dataset: Dataset, count: int) -> None:
        self._scope, self._dataset, self._count = scope, dataset, count
        self._passes = 0
        self._source: Elements | None = None

    def __next__(self) -> Element:
        while self._count < 0 or self._passes < self._count:
            self._scope.check()
            is_first = self._source is None
            if self._source is None:
                self._source = self._dataset.start(self._scope)
            try:
                return next(self._source)
            except StopIteration:
                self._source.close()
                self._source = None
                self._passes += 1
                if is_first and self._count < 0:
                    break  # nothing, for ever
        raise StopIteration

    def save(self) -> Position:
        return [self._passes, None if self._source is None else self._source.save()]

    def restore(self, state: Position) -> None:
        self._passes = state[0]
        if state[1] is not None:
            self._source = self._dataset.start(self._scope)
            self._source.restore(state[1])

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


def concatenate(first: Dataset, second: Dataset) -> Dataset:
    """The elements of one, then those of the other."""
    sizes = first.cardinality, second.cardinality
    cardinality = INFINITE if INFINITE in sizes else UNKNOWN if UNKNOWN in sizes else sum(sizes)
    return Dataset("ConcatenateDataset", lambda scope: _Concatenated(scope, [first, second]), cardinality)


class _Concatenated(Elements):
    def __init__(self, scope: Scope, datasets: Sequence[Dataset]) -> None:
        self._scope, self._datasets = scope, datasets
        self._at = 0
        self._source: Elements | None = None

    def __next__(self) -> Element:
        while self._at < len(self._datasets):
            if self._source is None:
                self._source = self._datasets[self._at].start(self._scope)
            try:
                return next(self._source)
            except StopIteration:
                self.close()
                self._at, self._source = self._at + 1, None
        raise StopIteration

    def save(self) -> Position:
        return [self._at, None if self._source is None else self._source.save()]

    def restore(self, state: Position) -> None:
        self._at = state[0]
        if state[1] is not None:
            self._source = self._datasets[self._at].start(self._scope)
            self._source.restore(state[1])

    def close(self) -> None:
        if self._source is not None:
            self._source.close()


def zipped(datasets: Sequence[Dataset]) -> Dataset:
    """The components of all datasets' elements side by side, until one ends."""
    finite = [dataset.cardinality for dataset in datasets if dataset.cardinality != INFINITE]
    cardinality = INFINITE if not finite else UNKNOWN if UNKNOWN in finite else min(finite)
    return Dataset("ZipDataset", lambda scope: _Zipped([each.start(scope) for each in datasets]), cardinality)


class _Zipped(Elements):
    def __init__(self, sources: Sequence[Elements]) -> None:
        self.inputs = sources

    def __next__(self) -> Element:
        element: list[Array] = []
        failed: errors.OpError | None = None
        for source in self.inputs:
            # All move on together, also where one of them fails.
            try:
                element.extend(next(source))
            except errors.OpError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return tuple(element)


def unbatch(dataset: Dataset) -> Dataset:
    """The slices of each element along its components' first dimension."""
    return Dataset("UnbatchDataset", lambda scope: _Unbatched(dataset.start(scope)))


class _Unbatched(Elements):
    def __init__(self, source: Elements) -> None:
        self.inputs = [source]
        self._source = source
        self._batch: tuple[Array | list[Array], ...] = ()
        self._at = self._count = 0

    def __next__(self) -> Element:
        while self._at >= self._count:
            self._take(next(self._source))
        self._at += 1
        return tuple(component[self._at - 1] for component in self._batch)

    def _take(self, batch: Element) -> None:
        sizes = {component.shape[0] if component.ndim else None for component in batch}
        if len(sizes) != 1 or None in sizes:
            shapes = ", ".join(str(list(component.shape)) for component in batch)
            raise errors.InvalidArgumentError.of(
                f"Input element must have the same batch size in each component, got shapes {shapes}"
            )
        # A view of each row would keep an object scalar's dtype only as an array.
        self._batch = tuple(
            [np.array(row, object) if row_is_scalar else row for row in component]
            if (row_is_scalar := component.dtype == object and component.ndim == 1)
            else component
            for component in batch
        )
        self._at, self._count = 0, len(batch[0])

    def save(self) -> Position:
        rest = [_whole(component)[self._at :] for component in self._batch]
        return [rest if self._at < self._count else None, self._source.save()]

    def restore(self, state: Position) -> None:
        if state[0] is not None:
            self._take(tuple(state[0]))
        self._source.restore(state[1])


def _whole(component: Array | list[Array]) -> Array:
    if not isinstance(component, list):
        return component
    array = np.empty(len(component), object)
    array[:] = [each[()] for each in component]
    return array


def window(dataset: Dataset, size: int, shift: int, stride: int, drop_remainder: bool) -> Dataset:
    """Datasets of `size` elements each, `stride` apart in the input; a new one begins every `shift` elements.

    Raises:
      InvalidArgumentError: a number is not positive.
    """
    for name, value in (("size", size), ("shift", shift), ("stride", stride)):
        if value <= 0:
            raise errors.InvalidArgumentError.of(f"Window {name} must be greater than zero, got {value}")
    return Dataset("WindowDataset", lambda scope: _Windows(dataset.start(scope), size, shift, stride, drop_remainder))


class _Windows(Elements):
    def __init__(self, source: Elements, size: int, shift: int, stride: int, drop_remainder: bool) -> None:
        self.inputs = [source]
        self._source, self._size, self._shift, self._stride = source, size, shift, stride
        self._drop_remainder = drop_remainder
        self._buffer: deque[Element] = deque()
        self._growth = Growth("a window")
        self._to_skip = 0
        self._ended = False

    def __next__(self) -> Element:
        while self._to_skip and not self._ended:
            self._pull(keep=False)
        span = (self._size - 1) * self._stride + 1
        while len(self._buffer) < span and not self._ended:
            self._pull(keep=True)
        elements = list(self._buffer)[:span:self._stride]
        if not elements or self._drop_remainder and len(elements) < self._size:
            raise StopIteration
        gone = min(self._shift, len(self._buffer))
        for _ in range(gone):
            self._buffer.popleft()
        self._to_skip = self._shift - gone
        components = list(zip(*elements, strict=True))
        return tuple(cast(Array, _listed(each)) for each in components)

    def _pull(self, keep: bool) -> None:
        try:
            element = next(self._source)
        except StopIteration:
            self._ended = True
            return
        if keep:
            self._growth.add(element, len(self._buffer))
            self._buffer.append(element)
        else:
            self._to_skip -= 1

    def save(self) -> Position:
        return [[list(each) for each in self._buffer], self._to_skip, self._ended, self._source.save()]

    def restore(self, state: Position) -> None:
        self._buffer = deque(map(tuple, state[0]))
        self._to_skip, self._ended = state[1:3]
        self._source.restore(state[3])


def _listed(values: Sequence[Array]) -> Dataset:
    return indexed("WindowDataset", len(values), lambda index: (values[index],))


def ignore_errors(dataset: Dataset, log_warning: bool) -> Dataset:
    """Without the elements that could not be made."""

    return Dataset("IgnoreErrorsDataset", lambda scope: _Ignoring(scope, dataset.start(scope), log_warning))


class _Ignoring(Elements):
    def __init__(self, scope: Scope, source: Elements, log_warning: bool) -> None:
        self.inputs = [source]
        self._scope, self._source, self._log_warning = scope, source, log_warning

    def __next__(self) -> Element:
        while True:
            self._scope.check()
            try:
                return next(self._source)
            except errors.OpError as error:
                if self._scope.cancellation.is_cancelled:
                    raise
                if self._log_warning:
                    logging.getLogger("dtf").warning("Element skipped: %s", error.message)




def counted(dataset: Dataset, count: int) -> Dataset:
    """The same elements; a pass with another number of them ends in an error."""
    return Dataset("AssertCardinalityDataset", lambda scope: _Counted(dataset.start(scope), count), count)


class _Counted(Elements):
    def __init__(self, source: Elements, count: int) -> None:
        self.inputs = [source]
        self._source, self._count = source, count
        self._seen = 0

    def __next__(self) -> Element:
        try:
            element = next(self._source)
        except StopIteration:
            if self._seen != self._count:
                expected = "an infinite number of" if self._count == INFINITE else f"{self._count}"
                raise errors.FailedPreconditionError.of(
                    f"Input dataset was expected to contain {expected} elements but contained only {self._seen} "
                    "elements."
                ) from None
            raise
        self._seen += 1
        if self._count >= 0 and self._seen > self._count:
            raise errors.FailedPreconditionError.of(
                f"Input dataset was expected to contain {self._count} elements but contained at least {self._seen} "
                "elements."
            )
        return element

    def save(self) -> Position:
        return [self._seen, self._source.save()]

    def restore(self, state: Position) -> None:
        self._seen = state[0]
        self._source.restore(state[1])
