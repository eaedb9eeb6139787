"""Whether it pays to look for the next message for a moment instead of going to sleep.

A sleeping thread wakes some ten microseconds after the message has arrived; on a virtual machine with an idle
processor, forty. The sender pays as much again. Where messages follow each other fast, a spinning thread gets them at
once; between two polls it yields the processor. Spinning takes the interpreter from other threads of its process, so a
thread that polls in vain spins less and less often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["LOOKS_FOR_S", "SpinWait"]

LOOKS_FOR_S = 0.001
_SKIPPED_MAX = 128

_Found = TypeVar("_Found")


class SpinWait:
    """One reader's record of when its messages arrive. Not for several threads at once."""

    __slots__ = ("_next_skips", "_skips")

    def __init__(self) -> None:
        self._skips = 0
        self._next_skips = 1

    def look(self, attempt: Callable[[], _Found | None]) -> _Found | None:
        """The first non-None result of `attempt()`; None: the caller should sleep."""
        if self._skips:
            self._skips -= 1
            return None
        until = time.perf_counter() + LOOKS_FOR_S
        while True:
            found = attempt()
            if found:
                self._next_skips = 1
                return found
            os.sched_yield()
            if time.perf_counter() > until:
                break
        self._skips = self._next_skips
        self._next_skips = min(2 * self._next_skips, _SKIPPED_MAX)
        return None
