"""The dataset of random numbers: each pass begins at the same seed."""

from __future__ import annotations

import numpy as np

from dtf.run.datasets.dataset import INFINITE, Dataset, Elements, Scope
from dtf.run.lib.philox import PhiloxDraws, philox_words
from dtf.run.value_types import Element, Position

__all__ = ["random_numbers"]

_WORDS = 256


def random_numbers(seed: int, seed2: int) -> Dataset:
    """Numbers of 32 bits as int64 scalars, without end; two seeds of 0 draw others in every pass."""

    def start(scope: Scope) -> Elements:
        seeds = (seed, seed2)
        if seeds == (0, 0):
            entropy = np.random.SeedSequence().generate_state(2, np.uint64)
            seeds = (int(entropy[0]), int(entropy[1]))
        draws = PhiloxDraws.of_seeds(*seeds)
        return _Random(scope, draws.key, draws.counter)

    return Dataset("RandomDataset", start, INFINITE)


class _Random(Elements):
    """Position: the key and the counter of the stream, and how many numbers were given."""

    def __init__(self, scope: Scope, key: int, counter: int) -> None:
        self._scope, self._key, self._counter = scope, key, counter
        self._taken = 0
        self._first, self._words = -1, np.zeros(0, np.int64)

    def __next__(self) -> Element:
        self._scope.check()
        block, place = divmod(self._taken, _WORDS)
        if block != self._first:
            words = philox_words(self._key, self._counter + block * _WORDS // 4, _WORDS // 4)
            self._first, self._words = block, words.ravel().astype(np.int64)
        self._taken += 1
        return (self._words[place],)

    def save(self) -> Position:
        return [str(self._key), str(self._counter), self._taken]

    def restore(self, state: Position) -> None:
        self._key, self._counter, self._taken = int(state[0]), int(state[1]), state[2]
        self._first = -1
