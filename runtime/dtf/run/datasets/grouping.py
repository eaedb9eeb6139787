"""Datasets that sort the elements of another: by a key into windows, by a choice among several, or by whether seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from dtf.run.datasets.dataset import UNKNOWN, Dataset, Elements, Function, Scope
from dtf.run.datasets.sources import indexed
from dtf.run.lib.growth import Growth
from dtf.run.value_types import Array, Element, Position
from dtf.wire import errors

__all__ = ["chosen", "grouped", "unique"]


def grouped(dataset: Dataset, key: Function, reduce: Function, window_size: Function) -> Dataset:
    """The elements of the datasets `reduce(key, window)`, for windows of elements that have one key.

    A window is complete when it has `window_size(key)` elements. At the end of the input the incomplete ones follow,
    by ascending keys.
    """
    return Dataset(
        "GroupByWindowDataset", lambda scope: _Grouped(scope, dataset.start(scope), key, reduce, window_size)
    )


class _Grouped(Elements):
    def __init__(self, scope: Scope, source: Elements, key: Function, reduce: Function, size: Function) -> None:
        self._scope, self._source = scope, source
        self._key, self._reduce, self._size = key, reduce, size
        self._groups: dict[int, list[Element]] = {}
        self._sizes: dict[int, int] = {}
        self._growth = Growth("the windows of group_by_window")
        self._count = 0
        self._current: tuple[int, list[Element], Elements] | None = None
        self._ended = False

    def __next__(self) -> Element:
        while True:
            self._scope.check()
            if self._current is not None:
                try:
                    return next(self._current[2])
                except StopIteration:
                    self._current[2].close()
                    self._current = None
            if not self._ended:
                self._pull()
            elif self._groups:
                self._open(min(self._groups))
            else:
                raise StopIteration

    def _pull(self) -> None:
        try:
            element = next(self._source)
        except StopIteration:
            self._ended = True
            return
        key = self._number(self._key, element, "key_func")
        if key not in self._sizes:
            size = self._number(self._size, (np.int64(key),), "window_size_func")
            if size <= 0:
                raise errors.InvalidArgumentError.of(f"Window size must be greater than zero, but got {size}.")
            self._sizes[key] = size
        group = self._groups.setdefault(key, [])
        self._growth.add(element, self._count)
        group.append(element)
        self._count += 1
        if len(group) == self._sizes[key]:
            self._open(key)

    def _number(self, function: Function, arguments: Element, name: str) -> int:
        results = function.call(self._scope, arguments)
        if len(results) != 1 or np.shape(results[0]) != ():
            raise errors.InvalidArgumentError.of(f"`{name}` must return a scalar int64.")
        return int(results[0])

    def _open(self, key: int) -> None:
        group = self._groups.pop(key)
        self._count -= len(group)
        self._current = key, group, self._started(key, group)

    def _started(self, key: int, group: list[Element]) -> Elements:
        window = indexed("Window", len(group), group.__getitem__)
        made = self._reduce.call(self._scope, (cast(Array, np.int64(key)), cast(Array, window)))[0]
        dataset = made[()] if isinstance(made, np.ndarray) else made
        if not isinstance(dataset, Dataset):
            raise errors.InvalidArgumentError.of("`reduce_func` must return a dataset")
        return dataset.start(self._scope)

    def save(self) -> Position:
        current = self._current and [self._current[0], _plain(self._current[1]), self._current[2].save()]
        groups = [[key, _plain(group)] for key, group in self._groups.items()]
        sizes = [[key, size] for key, size in self._sizes.items()]
        return [groups, sizes, current, self._ended, self._source.save()]

    def restore(self, state: Position) -> None:
        self._groups = {key: [tuple(each) for each in group] for key, group in state[0]}
        self._count = sum(map(len, self._groups.values()))
        self._sizes = {key: size for key, size in state[1]}
        if state[2] is not None:
            key, group = state[2][0], [tuple(each) for each in state[2][1]]
            elements = self._started(key, group)
            elements.restore(state[2][2])
            self._current = key, group, elements
        self._ended = state[3]
        self._source.restore(state[4])

    def close(self) -> None:
        self._source.close()
        if self._current is not None:
            self._current[2].close()


def _plain(elements: Sequence[Element]) -> list[list[Array]]:
    return [[each if isinstance(each, Dataset) else np.asarray(each) for each in element] for element in elements]


def chosen(selector: Dataset, datasets: Sequence[Dataset], stop_on_empty: bool) -> Dataset:
    """For each number of `selector` the next element of the dataset with this number.

    A number of a dataset that has ended is passed over; with `stop_on_empty` it ends all.
    """
    return Dataset(
        "DirectedInterleaveDataset",
        lambda scope: _Chosen(scope, selector.start(scope), [each.start(scope) for each in datasets], stop_on_empty),
        UNKNOWN,
    )


class _Chosen(Elements):
    def __init__(self, scope: Scope, selector: Elements, sources: list[Elements], stop_on_empty: bool) -> None:
        self.inputs = [selector, *sources]
        self._scope, self._selector, self._sources, self._stop_on_empty = scope, selector, sources, stop_on_empty
        self._left = set(range(len(sources)))

    def __next__(self) -> Element:
        while self._left:
            self._scope.check()
            index = int(next(self._selector)[0])
            if not 0 <= index < len(self._sources):
                raise errors.InvalidArgumentError.of(
                    f"Selector index out of range: {index} >= {len(self._sources)}"
                )
            if index not in self._left:
                continue
            try:
                return next(self._sources[index])
            except StopIteration:
                if self._stop_on_empty:
                    self._left.clear()
                self._left.discard(index)
        raise StopIteration

    def save(self) -> Position:
        return [sorted(self._left), [each.save() for each in self.inputs]]

    def restore(self, state: Position) -> None:
        self._left = set(state[0])
        for each, saved in zip(self.inputs, state[1], strict=True):
            each.restore(saved)


def unique(dataset: Dataset) -> Dataset:
    """The elements without those that came before."""
    return Dataset("UniqueDataset", lambda scope: _Unique(dataset.start(scope)))


class _Unique(Elements):
    def __init__(self, source: Elements) -> None:
        self.inputs = [source]
        self._source = source
        self._growth = Growth("the elements that unique has seen")
        self._seen: dict[tuple[object, ...], list[Array]] = {}

    def __next__(self) -> Element:
        while True:
            element = next(self._source)
            arrays = [np.asarray(each) for each in element]
            key = tuple((each.shape, tuple(each.ravel().tolist())) for each in arrays)
            if key not in self._seen:
                self._growth.add(element, len(self._seen))
                self._seen[key] = arrays
                return element

    def save(self) -> Position:
        return [list(self._seen.values()), self._source.save()]

    def restore(self, state: Position) -> None:
        for arrays in state[0]:
            self._seen[tuple((each.shape, tuple(each.ravel().tolist())) for each in map(np.asarray, arrays))] = arrays
        self._source.restore(state[1])
