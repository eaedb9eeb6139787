"""Histograms and images of a training: those of each tag that are kept, and the size of a picture by its first bytes.

    samples = Samples()
    samples.add_image(".", "digit", image)
    samples.images["."]["digit"][-1]

All of them together take at most BYTES_MAX: a tag that takes the most loses its oldest ones first.
"""

from __future__ import annotations

import struct
from collections import deque
from dataclasses import dataclass, field
from typing import TypeVar

SAMPLES_KEPT = 24
"""Of a tag, the newest ones."""

BYTES_MAX = 128 << 20
_FLOAT_BYTES = 32
"""What a Python float takes, with its place in a tuple."""

_MARKERS_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG's markers that begin a frame header. Source: ITU-T T.81, table B.1."""


@dataclass(frozen=True)
class Histogram:
    """`limits` are the upper ends of the buckets, `counts` what lies in each."""

    step: int
    at: float
    low: float
    high: float
    count: float
    limits: tuple[float, ...]
    counts: tuple[float, ...]

    @property
    def bytes(self) -> int:
        return _FLOAT_BYTES * (len(self.limits) + len(self.counts) + 8)


@dataclass(frozen=True)
class Image:
    """`data` is PNG, JPEG or GIF, as the trainer encoded it; `width` and `height` are the picture's own, in pixels."""

    step: int
    at: float
    width: int
    height: int
    data: bytes = field(repr=False)

    @property
    def bytes(self) -> int:
        return len(self.data) + 8 * _FLOAT_BYTES


_Sample = TypeVar("_Sample", Histogram, Image)
_Kept = deque[Histogram] | deque[Image]


class Samples:
    """By run and tag, in the order of steps. One thread."""

    def __init__(self, bytes_max: int = BYTES_MAX) -> None:
        self.histograms: dict[str, dict[str, deque[Histogram]]] = {}
        self.images: dict[str, dict[str, deque[Image]]] = {}
        self._bytes_max = bytes_max
        self._bytes = 0
        self._bytes_of: dict[int, int] = {}
        self._kept: dict[int, _Kept] = {}

    def add_histogram(self, run: str, tag: str, histogram: Histogram) -> None:
        """A restarted training repeats steps: what it writes replaces them."""
        kept = self.histograms.setdefault(run, {}).setdefault(tag, deque())
        while kept and kept[-1].step >= histogram.step:
            self._count(kept, -kept.pop().bytes)
        self._add(kept, histogram)

    def add_image(self, run: str, tag: str, image: Image) -> None:
        """A summary of several images repeats a tag and step; each is kept."""
        self._add(self.images.setdefault(run, {}).setdefault(tag, deque()), image)

    def _add(self, kept: deque[_Sample], sample: _Sample) -> None:
        kept.append(sample)
        self._count(kept, sample.bytes)
        if len(kept) > SAMPLES_KEPT:
            self._count(kept, -kept.popleft().bytes)
        while self._bytes > self._bytes_max:
            largest = self._kept[max(self._bytes_of, key=self._bytes_of.__getitem__)]
            self._count(largest, -largest.popleft().bytes)

    def _count(self, kept: _Kept, change: int) -> None:
        self._kept[id(kept)] = kept
        self._bytes_of[id(kept)] = self._bytes_of.get(id(kept), 0) + change
        self._bytes += change


def picture_size(data: bytes) -> tuple[int, int] | None:
    """(width, height) in pixels of a PNG, GIF or JPEG, as browsers would decode it; None for all else."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return struct.unpack(">II", data[16:24]) if data[12:16] == b"IHDR" and len(data) >= 24 else None
    if data.startswith((b"GIF87a", b"GIF89a")):
        return struct.unpack("<HH", data[6:10]) if len(data) >= 10 else None
    return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """Of the frame header, behind the segments before it."""
    position = 2
    while position + 9 <= len(data) and data[position] == 0xFF:
        marker = data[position + 1]
        if marker == 0xFF:
            position += 1
        elif marker in _MARKERS_WITHOUT_LENGTH:
            position += 2
        elif marker in _FRAMES:
            height, width = struct.unpack(">HH", data[position + 5 : position + 9])
            return width, height
        else:
            position += 2 + struct.unpack(">H", data[position + 2 : position + 4])[0]
    return None
