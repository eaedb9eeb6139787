"""Random numbers as TensorFlow draws them: Philox 4x32-10 counters, and the distributions made of their words.

Owns `philox_words`, `PhiloxDraws` (a stream of a seeded op) and how TensorFlow lays its samples out in the stream, so
that a seed gives the numbers that it gives there. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3"
(2011); the layout was found by comparing numbers. A distribution that rejects samples has 256 of them reserved for
each output, which is why one output does not depend on how many tries another needed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np

from dtf.run.value_types import NumpyType

__all__ = ["PhiloxDraws", "philox_words", "scrambled_seed", "word_source"]

_WEYL = (0x9E3779B9, 0xBB67AE85)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_RESERVED = 256
_CHUNK = 1 << 14
_COUNTERS = 1 << 128
_BITS64 = (1 << 64) - 1


def philox_words(key: int, counter: int, count: int, stride: int = 1) -> np.ndarray:
    """The 4 words of each of the counters `counter`, `counter + stride`, ...: uint32 [count, 4].

    key: 64 bits. counter: 128 bits; they wrap around.
    """
    words = np.empty((count, 4), np.uint32)
    for start in range(0, count, _CHUNK):
        part = words[start : start + _CHUNK]
        steps = np.arange(len(part), dtype=np.uint64) * np.uint64(stride)
        first = (counter + start * stride) % _COUNTERS
        low = steps + np.uint64(first & _BITS64)
        high = np.uint64(first >> 64) + (low < steps)
        part[:] = _rounds(key, low & _LOW, low >> _HALF, high & _LOW, high >> _HALF).T
    return words


def words_at(key: int, counter: int, steps: np.ndarray) -> np.ndarray:
    """The 4 words of each of the counters `counter + steps`: uint32 [len(steps), 4]."""
    steps = steps.astype(np.uint64)
    low = steps + np.uint64(counter & _BITS64)
    high = np.uint64(counter >> 64) + (low < steps)
    return _rounds(key, low & _LOW, low >> _HALF, high & _LOW, high >> _HALF).T.astype(np.uint32)


def _rounds(key: int, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    keys = [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (
            (second >> _HALF) ^ b ^ np.uint64(keys[0]),
            second & _LOW,
            (first >> _HALF) ^ d ^ np.uint64(keys[1]),
            first & _LOW,
        )
        keys = [(word + weyl) & 0xFFFFFFFF for word, weyl in zip(keys, _WEYL, strict=True)]
    return np.stack([a, b, c, d])


def scrambled_seed(first: int, second: int) -> tuple[int, int]:
    """The (key, counter) that the stateless ops make of their two seeds."""
    counter = (first & _BITS64) | (second & _BITS64) << 64
    mixed = philox_words(0x02461E293EC8F720, counter, 1)[0].tolist()
    return mixed[0] | mixed[1] << 32, (mixed[2] | mixed[3] << 32) << 64


def word_source(key: int, counter: int) -> Callable[[], int]:
    """A function that returns one word of the stream after the other, for samplers that go number by number."""
    buffer: list[int] = []
    at = counter

    def draw() -> int:
        nonlocal at
        if not buffer:
            buffer.extend(philox_words(key, at, 16).ravel()[::-1].tolist())
            at += 16
        return buffer.pop()

    return draw


class PhiloxDraws:
    """The stream of one op. `lock` guards the counter, which moves on with every draw."""

    def __init__(self, key: int, counter: int) -> None:
        self.key = key & _BITS64
        self._counter = counter % _COUNTERS
        self._lock = threading.Lock()

    @classmethod
    def of_seeds(cls, seed: int, seed2: int) -> PhiloxDraws:
        """The stream of a stateful op with these two seeds."""
        return cls(seed, (seed2 & _BITS64) << 64)

    @property
    def counter(self) -> int:
        """Where the stream is."""
        return self._counter

    def reserve(self, counters: int) -> int:
        """Takes that many counters off the stream; returns the first."""
        with self._lock:
            first = self._counter
            self._counter = (first + counters) % _COUNTERS
        return first

    def uniform(self, sizes: tuple[int, ...], dtype: NumpyType) -> np.ndarray:
        """In [0, 1), of a floating dtype."""
        dtype, count = np.dtype(dtype), _count(sizes)
        per_group = 2 if dtype.itemsize == 8 else 4
        words = philox_words(self.key, self.reserve(count * _RESERVED), -(-count // per_group))
        return _unit(words, dtype).reshape(-1)[:count].reshape(sizes)

    def normal(self, sizes: tuple[int, ...], dtype: NumpyType) -> np.ndarray:
        """Standard normal, of a floating dtype."""
        dtype, count = np.dtype(dtype), _count(sizes)
        per_group = 2 if dtype.itemsize == 8 else 4
        words = philox_words(self.key, self.reserve(count * _RESERVED), -(-count // per_group))
        return _box_muller(words, dtype).reshape(-1)[:count].reshape(sizes).astype(dtype, copy=False)

    def truncated_normal(self, sizes: tuple[int, ...], dtype: NumpyType) -> np.ndarray:
        """Standard normal, drawn again where it is two or more standard deviations away from 0."""
        dtype, count = np.dtype(dtype), _count(sizes)
        wide = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
        per_group = 2 if dtype.itemsize == 8 else 4
        first = self.reserve(count * _RESERVED)
        groups = -(-count // per_group)
        stride = per_group * _RESERVED // 4
        out = np.empty((groups, per_group), wide)
        filled = np.zeros(groups, np.int64)
        open_groups = np.arange(groups)
        tries = 0
        while open_groups.size:
            words = words_at(self.key, first, open_groups * stride + tries)
            for column in _box_muller(words, wide).T:
                good = (np.abs(column) < 2) & (filled[open_groups] < per_group)
                chosen = open_groups[good]
                out[chosen, filled[chosen]] = column[good]
                filled[chosen] += 1
            open_groups = open_groups[filled[open_groups] < per_group]
            tries += 1
        return out.reshape(-1)[:count].reshape(sizes).astype(dtype, copy=False)

    def integers(self, low: int, high: int, sizes: tuple[int, ...], dtype: NumpyType) -> np.ndarray:
        """In [low, high)."""
        unsigned = self.full_integers(sizes, np.dtype(dtype).str.replace("i", "u"))
        wide = unsigned.dtype.type
        span = wide((int(high) - int(low)) % (1 << 8 * unsigned.itemsize))
        shifted = unsigned % span + wide(int(low) % (1 << 8 * unsigned.itemsize))
        return shifted.view(dtype)

    def full_integers(self, sizes: tuple[int, ...], dtype: NumpyType) -> np.ndarray:
        """Any value of a 32 or 64 bit integer dtype."""
        dtype, count = np.dtype(dtype), _count(sizes)
        per_group = 16 // dtype.itemsize
        words = philox_words(self.key, self.reserve(count * _RESERVED), -(-count // per_group))
        return words.reshape(-1).view(dtype)[:count].reshape(sizes)

    def doubles(self, count: int, reserved: int | None = None) -> np.ndarray:
        """`count` numbers in [0, 1) of consecutive pairs of words; `reserved` counters are taken off the stream."""
        groups = -(-count // 2)
        words = philox_words(self.key, self.reserve(groups if reserved is None else reserved), groups)
        return _unit(words, np.dtype(np.float64)).reshape(-1)[:count]

    def permutation(self, count: int) -> np.ndarray:
        """The numbers below `count` in random order."""
        words = philox_words(self.key, self.reserve((count + 2) // 4), (count + 2) // 4).reshape(-1)
        order = list(range(count))
        jumps = words[: max(count - 1, 0)] % np.arange(count, 1, -1, dtype=np.uint32)
        for at, jump in enumerate(jumps.tolist()):
            order[at], order[at + jump] = order[at + jump], order[at]
        return np.array(order, np.int64)

    def gamma(self, sizes: tuple[int, ...], alpha: np.ndarray) -> np.ndarray:
        """Gamma(alpha, 1), [*sizes, *alpha.shape] of alpha's dtype, by Marsaglia and Tsang's method."""
        draws, alphas = _count(sizes), alpha.astype(np.float64).ravel()
        total = draws * alphas.size
        first = self.reserve(total * _RESERVED)
        made = _gamma(self.key, first, np.repeat(alphas, draws))
        return made.reshape(alphas.size, draws).T.reshape(*sizes, *alpha.shape).astype(alpha.dtype)


def _count(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes, dtype=np.int64))


def _unit(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Words as numbers in [0, 1): their low bits become the significand of a number in [1, 2)."""
    if dtype.itemsize == 8:
        high, low = words[:, 0::2].astype(np.uint64), words[:, 1::2]
        bits = (high & np.uint64(0xFFFFF) | np.uint64(1023 << 20)) << _HALF | low
        return bits.view(np.float64) - 1.0
    if dtype.itemsize == 4:
        return (words & np.uint32(0x7FFFFF) | np.uint32(127 << 23)).view(np.float32) - np.float32(1)
    kept, exponent = (0x3FF, 15 << 10) if dtype == np.float16 else (0x7F, 127 << 7)
    bits16 = (words & np.uint32(kept) | np.uint32(exponent)).astype(np.uint16)
    return bits16.view(dtype) - dtype.type(1)


def _box_muller(words: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Normal numbers, as many as `_unit` gives. What is no float64 is computed as float32, each function rounded."""
    wide = np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)
    units = _unit(words, wide)
    numbers = units.reshape(len(words), units.size // max(2 * len(words), 1), 2)
    length = np.maximum(numbers[..., 0], wide.type(1e-7)).astype(np.float64)
    angle = (2 * np.pi * numbers[..., 1].astype(np.float64)).astype(wide).astype(np.float64)
    radius = np.sqrt(wide.type(-2) * np.log(length).astype(wide))
    return np.stack([np.sin(angle).astype(wide) * radius, np.cos(angle).astype(wide) * radius], -1).reshape(
        units.shape
    )


def _gamma(key: int, first: int, alpha: np.ndarray) -> np.ndarray:
    """One number per entry of alpha; entry i has the counters from first + 256 i on to itself."""
    count = alpha.size
    out = np.empty(count)
    exponential = np.flatnonzero(alpha == 1)
    double = np.dtype(np.float64)
    if exponential.size:
        out[exponential] = -np.log1p(-_unit(words_at(key, first, exponential * _RESERVED), double)[:, 1])
    lanes = np.flatnonzero(alpha != 1)
    used = np.zeros(count, np.int64)
    normals, uniforms = np.empty((count, 2)), np.empty((count, 2))
    normals_left, uniforms_left = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def take(of: np.ndarray, buffer: np.ndarray, left: np.ndarray, make: Callable[..., np.ndarray]) -> np.ndarray:
        empty = of[left[of] == 0]
        if empty.size:
            buffer[empty] = make(words_at(key, first, empty * _RESERVED + used[empty]), double)
            used[empty] += 1
            left[empty] = 2
        left[of] -= 1
        return buffer[of, left[of]]

    small = alpha < 1
    d = alpha + np.where(small, 2 / 3, -1 / 3)
    c = 1 / 3 / np.sqrt(d)
    while lanes.size:
        x = take(lanes, normals, normals_left, _box_muller)
        v = 1 + c[lanes] * x
        inside = v > 0
        tried, x, v = lanes[inside], x[inside], v[inside] ** 3
        u = take(tried, uniforms, uniforms_left, _unit)
        with np.errstate(divide="ignore"):
            good = (u < 1 - 0.0331 * x**4) | (np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v)))
        done = tried[good]
        out[done] = d[done] * v[good]
        less = done[small[done]]
        if less.size:
            out[less] *= take(less, uniforms, uniforms_left, _unit) ** (1 / alpha[less])
        finished = np.zeros(count, bool)
        finished[done] = True
        lanes = lanes[~finished[lanes]]
    return out
