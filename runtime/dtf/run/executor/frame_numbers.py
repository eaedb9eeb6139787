"""The number by which rendezvous keys name an execution of a loop; TensorFlow's workers must come to the same one.

It follows from the frame's name, the number of the frame around it and that one's iteration, by the two hashes that
TensorFlow uses for it: MurmurHash64A (Austin Appleby, public domain) with a fixed seed, and a mix of two numbers.
"""

from __future__ import annotations

from dtf.run.lib.fingerprints import murmur64
from dtf.wire.text_cache import cached_by_text

_WORD = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7800


def frame_number(outer: int, iteration: int, name: bytes) -> int:
    """The number of the frame `name`, entered in this iteration of the frame numbered `outer` (0: no loop)."""
    return _combine(outer, _combine(iteration, _hash(name)))


def _combine(a: int, b: int) -> int:
    return a ^ ((b + _GOLDEN + (a << 10) + (a >> 4)) & _WORD)


_hash = cached_by_text(1024)(murmur64)
