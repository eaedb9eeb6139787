"""How the C library's allocator treats what steps free: it keeps it, for the next step wants as much again.

Owns the one call into glibc. By itself glibc gives large arrays, and what is free at the end of its areas, back to the
kernel, which clears each page when it is touched again: hundreds of page faults a step, a third of a worker's time. The
user's settings stand, and another C library does what it does.
"""

from __future__ import annotations

import ctypes
import os

__all__ = ["AREAS_MAX", "KEPT_BYTES_MAX", "keep_freed_memory", "release_freed_memory"]

KEPT_BYTES_MAX = 64 << 20
"""How much free memory each area keeps at its end."""
AREAS_MAX = 2
"""Areas that threads share. More would hold more free memory, and threads of Python seldom allocate at once."""

_FROM_KERNEL_BYTES = 32 << 20
"""Arrays of this size and more come from the kernel one by one: the most that glibc allows."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # malloc.h
_SETTINGS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_ARENA_MAX")


def keep_freed_memory() -> None:
    """Sets this process's allocator, unless the user has. Harmless when repeated."""
    if any(os.environ.get(name) for name in _SETTINGS):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, _FROM_KERNEL_BYTES)
        mallopt(_TRIM_THRESHOLD, KEPT_BYTES_MAX)
        mallopt(_ARENA_MAX, AREAS_MAX)


def release_freed_memory() -> None:
    """Gives what is free back to the kernel: after work that is not done at every step, such as compiling."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
