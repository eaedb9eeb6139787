"""Elements in random order, drawn from a buffer.

The numbers are TensorFlow's: Philox words of the two seeds, one for each element, and for each pass that shuffles anew
two more seeds from a stream of the dataset's own. So a seed gives TensorFlow's order.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Callable

import numpy as np

from dtf.run.datasets.dataset import UNKNOWN, Dataset, Elements, Scope
from dtf.run.lib.growth import Growth
from dtf.run.lib.philox import word_source
from dtf.run.value_types import Element, Position
from dtf.wire import errors

__all__ = ["shuffled"]


def shuffled(
    dataset: Dataset, size: int, seeds: tuple[int, int], reshuffle_each_iteration: bool, count: int = 1
) -> Dataset:
    """The elements of `count` passes (for ever if negative), each drawn from the next `size` of its own pass.

    Raises:
      InvalidArgumentError: the size is not positive.
    """
    if size <= 0:
        raise errors.InvalidArgumentError.of(f"buffer_size must be greater than zero, got {size}")
    if seeds == (0, 0):
        seeds = secrets.randbits(63), secrets.randbits(63)
    owner = _Owner()

    def start(scope: Scope) -> Elements:
        own = scope.memory(owner, lambda: _Seeds(seeds, reshuffle_each_iteration))
        return _Shuffled(scope, dataset, size, own, count)

    return Dataset("ShuffleDataset", start, dataset.cardinality if count == 1 else UNKNOWN)


class _Owner:
    """Whose memory the stream of seeds is."""


class _Words:
    """A Philox stream whose position is known."""

    def __init__(self, seeds: tuple[int, int], taken: int = 0) -> None:
        self.seeds, self.taken = seeds, 0
        mask = (1 << 64) - 1
        self._draw: Callable[[], int] = word_source(seeds[0] & mask, (seeds[1] & mask) << 64)
        for _ in range(taken):
            self.draw()

    def draw(self) -> int:
        self.taken += 1
        return self._draw()


class _Seeds:
    """The seeds of one pass after the other."""

    def __init__(self, seeds: tuple[int, int], is_anew: bool) -> None:
        self._fixed = None if is_anew else seeds
        self.words = _Words(seeds)

    def next(self) -> tuple[int, int]:
        if self._fixed is not None:
            return self._fixed
        return self.words.draw(), self.words.draw()


class _Shuffled(Elements):
    """The buffer holds the rests of one pass after the other, `_rests` says how many elements of each; an element is
    drawn from the oldest.
    """

    def __init__(self, scope: Scope, dataset: Dataset, size: int, seeds: _Seeds, count: int) -> None:
        self._scope, self._dataset, self._size, self._seeds, self._count = scope, dataset, size, seeds, count
        self._words = _Words(seeds.next())
        self._buffer: list[Element] = []
        self._first = 0  # where the buffer begins: places before it have been drawn
        self._growth = Growth("a shuffle buffer")
        self._rests: deque[int] = deque()
        self._source: Elements | None = None
        self._passes = 0

    def __next__(self) -> Element:
        while self._count_in_buffer() < self._size and self._pull():
            pass
        while self._rests and not self._rests[0]:
            self._rests.popleft()
            if self._count_in_buffer():
                self._words = _Words(self._seeds.next())
        if not self._count_in_buffer():
            raise StopIteration
        index = self._first + self._words.draw() % self._rests[0]
        self._rests[0] -= 1
        chosen = self._buffer[index]
        self._buffer[index] = self._buffer[self._first]
        self._drop_first()
        return chosen

    def _count_in_buffer(self) -> int:
        return len(self._buffer) - self._first

    def _drop_first(self) -> None:
        """Moves the beginning; the list is cut only when half of it is empty, so that an element costs the same in a
        buffer of any size.
        """
        self._buffer[self._first] = ()
        self._first += 1
        if 2 * self._first >= len(self._buffer):
            del self._buffer[: self._first]
            self._first = 0

    def _pull(self) -> bool:
        """Takes one element more; False when there are none."""
        while self._count < 0 or self._passes < self._count:
            self._scope.check()
            if self._source is None:
                self._source = self._dataset.start(self._scope)
                self._rests.append(0)
            try:
                element = next(self._source)
            except StopIteration:
                self._source.close()
                self._source = None
                self._passes += 1
                if self._count < 0 and not self._count_in_buffer():
                    return False  # nothing, for ever
            else:
                self._growth.add(element, self._count_in_buffer())
                self._buffer.append(element)
                self._rests[-1] += 1
                return True
        return False

    def save(self) -> Position:
        return {
            "buffer": [[np.asarray(each) for each in element] for element in self._buffer[self._first :]],
            "rests": list(self._rests),
            "passes": self._passes,
            "seeds": list(self._words.seeds),
            "taken": self._words.taken,
            "seeds taken": self._seeds.words.taken,
            "source": None if self._source is None else self._source.save(),
        }

    def restore(self, state: Position) -> None:
        self._buffer, self._first = [tuple(element) for element in state["buffer"]], 0
        self._rests = deque(state["rests"])
        self._passes = state["passes"]
        self._words = _Words(tuple(state["seeds"]), state["taken"])
        self._seeds.words = _Words(self._seeds.words.seeds, state["seeds taken"])
        if state["source"] is not None:
            self._source = self._dataset.start(self._scope)
            self._source.restore(state["source"])

    def close(self) -> None:
        if self._source is not None:
            self._source.close()
