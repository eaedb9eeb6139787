"""Datasets whose elements each become a dataset: one after the other (flat_map), or several in turns (interleave)."""

from __future__ import annotations

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements, Function, Scope
from dtf.run.datasets.prefetch import Prefetched
from dtf.run.value_types import Element, Position
from dtf.wire import errors

__all__ = ["flat_mapped", "interleaved"]


def flat_mapped(dataset: Dataset, function: Function) -> Dataset:
    """The elements of the datasets that the function makes, one dataset after the other."""
    return Dataset("FlatMapDataset", lambda scope: _Interleaved(scope, dataset.start(scope), function, 1, 1, 0))


def interleaved(dataset: Dataset, function: Function, cycle: int, block: int, ahead: int = 0) -> Dataset:
    """`block` elements of each of `cycle` datasets in turns.

    Args:
      ahead: how many elements of each are made in advance, in a thread of its own; 0: none.

    Raises:
      InvalidArgumentError: a length is not positive.
    """
    for name, value in (("cycle_length", cycle), ("block_length", block)):
        if value <= 0:
            raise errors.InvalidArgumentError.of(f"`{name}` must be > 0, got {value}")
    return Dataset(
        "InterleaveDataset", lambda scope: _Interleaved(scope, dataset.start(scope), function, cycle, block, ahead)
    )


class _Interleaved(Elements):
    """Slot number `_at` has its turn; it has given `_given` elements of its block. A slot without a dataset takes the
    next one of the input.
    """

    def __init__(
        self, scope: Scope, source: Elements, function: Function, cycle: int, block: int, ahead: int
    ) -> None:
        self._scope, self._source, self._function = scope, source, function
        self._block, self._ahead = block, ahead
        self._slots: list[tuple[Element, Elements] | None] = [None] * cycle
        self._at = self._given = 0
        self._input_ended = False

    def __next__(self) -> Element:
        while True:
            self._scope.check()
            slot = self._slots[self._at]
            if slot is not None:
                try:
                    element = next(slot[1])
                except StopIteration:
                    slot[1].close()
                    self._slots[self._at] = None
                    self._turn()
                    continue
                self._given += 1
                if self._given == self._block:
                    self._turn()
                return element
            if self._input_ended:
                if not any(self._slots):
                    raise StopIteration
                self._turn()
            else:
                self._open_ahead()

    def _turn(self) -> None:
        self._at, self._given = (self._at + 1) % len(self._slots), 0

    def _open_ahead(self) -> None:
        """Opens the dataset of this slot; those that are made in advance all begin at once."""
        for offset in range(len(self._slots) if self._ahead else 1):
            index = (self._at + offset) % len(self._slots)
            if self._slots[index] is None and not self._input_ended:
                try:
                    argument = next(self._source)
                except StopIteration:
                    self._input_ended = True
                    return
                self._slots[index] = argument, self._start(argument)

    def _start(self, argument: Element) -> Elements:
        made = self._function.call(self._scope, argument)[0]
        dataset = made[()] if isinstance(made, np.ndarray) else made
        if not isinstance(dataset, Dataset):
            raise errors.InvalidArgumentError.of("The function must return a dataset")
        elements = dataset.start(self._scope)
        return Prefetched(elements, self._scope, self._ahead) if self._ahead else elements

    def save(self) -> Position:
        slots = [slot and [[np.asarray(each) for each in slot[0]], slot[1].save()] for slot in self._slots]
        return [slots, self._at, self._given, self._input_ended, self._source.save()]

    def restore(self, state: Position) -> None:
        for index, slot in enumerate(state[0]):
            if slot is not None:
                elements = self._start(tuple(slot[0]))
                elements.restore(slot[1])
                self._slots[index] = tuple(slot[0]), elements
        self._at, self._given, self._input_ended = state[1:4]
        self._source.restore(state[4])

    def close(self) -> None:
        self._source.close()
        for slot in self._slots:
            if slot is not None:
                slot[1].close()
