"""Buffers for large incoming bodies, used again once no array views them.

Fresh memory is expensive: the kernel clears each page at first use. Where a hypervisor reclaims its guest's freed
pages (free page reporting), the host must also find the page again. 100 MB then cost 12 to 250 ms, while receiving
them costs 20. The arrays decoded from a body are views of it. Its reference count thus shows when the last one is
freed; no explicit release is needed.

Owns what is kept: `KEPT_BYTES_MAX` at most, and nothing that was not needed for `cache_reaper.IDLE_S_MAX`. To forget
a buffer that is still looked at is harmless: it is freed with its last view.

    body = receive_buffers.take(100_000_000)
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np

from dtf.channel import cache_reaper

__all__ = ["KEPT_BYTES_MAX", "KEPT_FROM_BYTES", "ReceiveBuffers", "take"]

KEPT_FROM_BYTES = 1 << 17
"""Smaller bodies come from the allocator, which keeps memory of that size by itself."""
KEPT_BYTES_MAX = 1 << 29
_SLACK = 8
"""A buffer may be larger than the body by one part in so many."""


def take(length: int) -> memoryview:
    """Writable memory of `length` bytes with any content, kept by this process's buffers."""
    return _buffers.take(length)


class ReceiveBuffers:
    """Some buffers. The lock guards `_kept`, which is ordered by last use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[np.ndarray] = []
        self._taken_at_s: list[float] = []
        self._is_watched = False

    @property
    def kept_bytes(self) -> int:
        """The bytes kept, in use or not."""
        with self._lock:
            return sum(buffer.nbytes for buffer in self._kept)

    def take(self, length: int) -> memoryview:
        """Writable memory of `length` bytes with any content; it is in use as long as a view of it is."""
        if length < KEPT_FROM_BYTES or length > KEPT_BYTES_MAX or not _COUNTS_ARE_EXACT:
            return np.empty(length, np.uint8).data
        with self._lock:
            at = self._find(length)
            if at is None:
                buffer = np.empty(length, np.uint8)
            else:
                buffer = self._kept.pop(at)
                del self._taken_at_s[at]
            self._kept.append(buffer)
            self._taken_at_s.append(time.monotonic())
            spare = sum(each.nbytes for each in self._kept) - KEPT_BYTES_MAX
            forgotten = 0
            while spare > 0:
                spare -= self._kept[forgotten].nbytes
                forgotten += 1
            self._forget(forgotten)
            is_first, self._is_watched = not self._is_watched, True
        if is_first:
            cache_reaper.watch(self.forget_idle)
        return buffer.data[:length]

    def forget_idle(self, now_s: float) -> bool:
        """Frees buffers not used for `cache_reaper.IDLE_S_MAX` at `now_s` (monotonic clock); returns whether some are
        left."""
        with self._lock:
            self._forget(sum(taken_at_s <= now_s - cache_reaper.IDLE_S_MAX for taken_at_s in self._taken_at_s))
            self._is_watched = bool(self._kept)
            return self._is_watched

    def _find(self, length: int) -> int | None:
        """The index of a free buffer of this size; of several, the last used one, which is likeliest in the CPU
        caches."""
        kept = self._kept
        for at in range(len(kept) - 1, -1, -1):
            if length <= kept[at].nbytes <= length + length // _SLACK and sys.getrefcount(kept[at]) <= _FREE_COUNT:
                return at
        return None

    def _forget(self, count: int) -> None:
        del self._kept[:count], self._taken_at_s[:count]


# The getrefcount of an array that one list holds, measured because interpreters count differently. Without the global
# interpreter lock the count cannot be used.
_probe = [np.empty(1, np.uint8)]
_FREE_COUNT = sys.getrefcount(_probe[0])
_COUNTS_ARE_EXACT = getattr(sys, "_is_gil_enabled", lambda: True)()
_buffers = ReceiveBuffers()
