"""Kernels that draw a few classes of many, for losses that do not look at all of them.

Owns the samplers and how they estimate how often a class is drawn. Their numbers are those of TensorFlow for the same
seeds. Source: https://www.tensorflow.org/extras/candidate_sampling.pdf
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Protocol

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room
from dtf.run.kernels.random import seeded_draws
from dtf.run.lib.philox import PhiloxDraws, word_source
from dtf.wire import filesystems
from dtf.wire.files import file_errors

# Counters that a call takes off the stream for each class that it draws.
_RESERVED = 2048 // 4


class _Sampler(Protocol):
    def draw(self, word: Callable[[], int]) -> int:
        """One class."""

    def probabilities(self, classes: np.ndarray) -> np.ndarray:
        """How likely one draw gives each of `classes`."""


class _Uniform:
    def __init__(self, node: KernelNode) -> None:
        self._range = node.attr("range_max")

    def draw(self, word: Callable[[], int]) -> int:
        low = word()
        return (low | word() << 32) % self._range

    def probabilities(self, classes: np.ndarray) -> np.ndarray:
        return np.full(classes.shape, 1 / self._range)


class _LogUniform:
    """Small numbers are likelier: as words sorted by how often they occur."""

    def __init__(self, node: KernelNode) -> None:
        self._range = node.attr("range_max")
        self._log_range = math.log1p(self._range)

    def draw(self, word: Callable[[], int]) -> int:
        high = word() & 0xFFFFF
        value = math.exp((high << 32 | word()) / 2**52 * self._log_range)
        return (int(value) - 1) % self._range

    def probabilities(self, classes: np.ndarray) -> np.ndarray:
        return np.log((classes + 2.0) / (classes + 1.0)) / self._log_range


class _Learned:
    """Every class that was ever a true one is likelier by one for each time. The lock guards the weights."""

    def __init__(self, node: KernelNode) -> None:
        room((2, node.attr("range_max")), np.int64)
        self._weights = np.ones(node.attr("range_max"), np.int64)
        self._lock = threading.Lock()
        self._sums: np.ndarray | None = None

    def draw(self, word: Callable[[], int]) -> int:
        if self._sums is None:
            self._sums = np.cumsum(self._weights)
        return int(self._sums.searchsorted(_below(word, int(self._sums[-1])), side="right"))

    def probabilities(self, classes: np.ndarray) -> np.ndarray:
        return self._weights[classes] / self._weights.sum()

    def learn(self, classes: np.ndarray) -> None:
        """Takes notice of true classes."""
        with self._lock:
            np.add.at(self._weights, classes.ravel(), 1)
            self._sums = None


class _Fixed:
    """Given weights, by Walker's alias method."""

    def __init__(self, node: KernelNode) -> None:
        reserved = node.attr("num_reserved_ids")
        if reserved > node.attr("range_max"):
            raise invalid(f"range_max is {node.attr('range_max')}, but {reserved} ids are reserved")
        room((2, max(reserved, 0)), np.float64)
        weights = [0.0] * reserved
        path = node.attr("vocab_file").decode()
        given = _vocabulary_weights(path) if path else list(node.attr("unigrams"))
        weights += [weight ** node.attr("distortion") for weight in given]
        shards, shard = node.attr("num_shards"), node.attr("shard")
        if len(weights) != node.attr("range_max"):
            raise invalid(
                f"range_max is {node.attr('range_max')}, but there are {len(weights)} weights with the reserved ids"
            )
        self._first, self._step = shard, shards
        self._weights = np.array(weights[shard::shards])
        self._total = float(np.sum(self._weights))
        count = len(self._weights)
        self._chances = (self._weights * count / self._total).tolist()
        self._aliases = list(range(count))
        low = [i for i, chance in enumerate(self._chances) if chance < 1]
        high = [i for i, chance in enumerate(self._chances) if chance >= 1]
        while low and high:
            small, large = low.pop(), high.pop()
            self._aliases[small] = large
            left = self._chances[large] - (1 - self._chances[small])
            final, self._chances[large] = self._chances[small], left
            self._chances[small] = final
            (low if left < 1 else high).append(large)

    def draw(self, word: Callable[[], int]) -> int:
        chance = (word() & 0x7FFFFF) / 2**23
        at = _below(word, len(self._chances))
        if chance >= self._chances[at]:
            at = self._aliases[at]
        return at * self._step + self._first

    def probabilities(self, classes: np.ndarray) -> np.ndarray:
        inside = (classes - self._first) % self._step == 0
        return np.where(inside, self._weights[(classes - self._first) // self._step] / self._total, 0)


def _vocabulary_weights(path: str) -> list[float]:
    """The last column of each line of a file of comma-separated values."""
    with file_errors(path), filesystems.open(path, encoding="utf-8") as file:
        return [float(line.rsplit(",", 1)[-1]) for line in file if line.strip()]


def _below(word: Callable[[], int], limit: int) -> int:
    """A number below `limit`, each as likely: words that would favour the small ones are passed over."""
    if limit & limit - 1 == 0:
        return word() & limit - 1
    least = 0xFFFFFFFF % limit + 1
    drawn = word()
    while drawn < least:
        drawn = word()
    return drawn % limit


def _sampler(op: str, kind: Callable[[KernelNode], _Sampler]) -> None:
    @kernel(op, stateful=True)
    def factory(node: KernelNode) -> Function:
        count, unique, limit = node.attr("num_sampled"), node.attr("unique"), node.attr("range_max")
        seeds = node.attr("seed"), node.attr("seed2")
        if unique and count > limit:
            raise invalid(f"Sampler's range is too small: {count} unique classes of {limit}")

        def sample(step: StepContext, true_classes: np.ndarray) -> Outputs:
            _check_true_classes(node, true_classes)
            if true_classes.size and (true_classes.min() < 0 or true_classes.max() >= limit):
                raise invalid(f"`true_classes` must be in [0, {limit})")
            sampler, draws = step.session.node_state(node.name, lambda: (kind(node), seeded_draws(*seeds)))
            result = _sample(sampler, draws, true_classes, count, unique)
            if isinstance(sampler, _Learned):
                sampler.learn(true_classes)
            return result

        return sample


_KINDS: dict[str, Callable[[KernelNode], _Sampler]] = {
    "UniformCandidateSampler": _Uniform,
    "LogUniformCandidateSampler": _LogUniform,
    "LearnedUnigramCandidateSampler": _Learned,
    "ThreadUnsafeUnigramCandidateSampler": _Learned,
    "FixedUnigramCandidateSampler": _Fixed,
}
for _op, _kind in _KINDS.items():
    _sampler(_op, _kind)


def _sample(
    sampler: _Sampler, draws: PhiloxDraws, true_classes: np.ndarray, count: int, unique: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    word = word_source(draws.key, draws.reserve(count * _RESERVED))
    sampled: list[int] = []
    tries = 0
    seen: set[int] = set()
    while len(sampled) < count:
        tries += 1
        drawn = sampler.draw(word)
        if unique and drawn in seen:
            continue
        seen.add(drawn)
        sampled.append(drawn)
    classes = np.array(sampled, np.int64)

    def expected(of: np.ndarray) -> np.ndarray:
        chance = sampler.probabilities(of)
        if tries == count:
            return (chance * count).astype(np.float32)
        return -np.expm1(tries * np.log1p(-chance)).astype(np.float32)

    return classes, expected(true_classes), expected(classes)


@kernel("AllCandidateSampler", stateful=True)
def _(node: KernelNode) -> Function:
    count = node.attr("num_sampled")

    def sample(step: StepContext, true_classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        _check_true_classes(node, true_classes)
        outside = true_classes[(true_classes < 0) | (true_classes >= count)]
        if outside.size:
            raise invalid(f"`true_candidate` out of range [0, {count}), received {outside[0]}")
        room((count,), np.int64)
        ones = np.ones(true_classes.shape, np.float32)
        return np.arange(count, dtype=np.int64), ones, np.ones(count, np.float32)

    return sample


def _check_true_classes(node: KernelNode, true_classes: np.ndarray) -> None:
    if true_classes.ndim != 2 or true_classes.shape[1] != node.attr("num_true"):
        raise invalid(
            f"true_classes must be a matrix of {node.attr('num_true')} columns, got shape {list(true_classes.shape)}"
        )


@kernel("ComputeAccidentalHits")
def _(node: KernelNode) -> Function:
    def hits(true_classes: np.ndarray, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        _check_true_classes(node, true_classes)
        places = {value: at for at, value in enumerate(sampled.tolist())}
        found = [
            (row, places[value])
            for row, values in enumerate(true_classes.tolist())
            for value in values
            if value in places
        ]
        rows, ids = np.array(found, np.int64).reshape(-1, 2).T
        return rows.astype(np.int32), ids, np.full(len(found), np.finfo(np.float32).min, np.float32)

    return hits
