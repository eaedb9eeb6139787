"""A made-up language of which the meaning is known: words in groups that occur together.

Owns the data of the embedding example. A sentence is about one group; most of its words are of that group, the more
frequent ones more often, and some are of any. So good embeddings have the words of a group close to each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

WORDS = 10_000
GROUPS = 100
CONTEXT_MAX = 8
NOISE = 0.1  # of the words around


@dataclass(frozen=True)
class Sentences:
    """A batch: the words around the one that is missing, as the parts of a sparse tensor, and the missing ones.

    Attributes:
      indices: int64 [words, 2], the sentence and the place of each word.
      words: int64 [words].
      shape: of the sparse tensor.
      missing: int64 [sentences, 1].
    """

    indices: np.ndarray
    words: np.ndarray
    shape: tuple[int, int]
    missing: np.ndarray


def group_of_words() -> np.ndarray:
    """The group of each word, int64 [WORDS]. Words are numbered by frequency, a group's lie anywhere among them."""
    random = np.random.RandomState(0)
    return np.concatenate([random.permutation(GROUPS) for _ in range(WORDS // GROUPS)])


class Language:
    """Draws sentences for ever."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.RandomState(seed)
        # Row g: the words of group g, the most frequent first.
        self._words_of_group = np.argsort(group_of_words(), kind="stable").reshape(GROUPS, -1)
        frequency = 1.0 / (np.arange(WORDS // GROUPS) + 20.0)
        self._cumulative = np.cumsum(frequency / frequency.sum())

    def sentences(self, count: int) -> Sentences:
        """A batch of `count` sentences with 3 to CONTEXT_MAX words around the missing one."""
        random = self._random
        groups = random.randint(GROUPS, size=(count, 1))
        drawn_groups = np.broadcast_to(groups, (count, CONTEXT_MAX + 1)).copy()
        is_noise = random.rand(count, CONTEXT_MAX + 1) < NOISE
        is_noise[:, 0] = False
        drawn_groups[is_noise] = random.randint(GROUPS, size=is_noise.sum())
        ranks = np.minimum(
            np.searchsorted(self._cumulative, random.rand(count, CONTEXT_MAX + 1)), len(self._cumulative) - 1
        )
        words = self._words_of_group[drawn_groups, ranks]
        is_there = np.arange(CONTEXT_MAX) < random.randint(3, CONTEXT_MAX + 1, size=(count, 1))
        return Sentences(np.argwhere(is_there), words[:, 1:][is_there], (count, CONTEXT_MAX), words[:, :1])
