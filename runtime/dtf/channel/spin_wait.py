"""Lookout: whether it pays to look for the next message for a moment instead of going to sleep.

A thread that sleeps is woken some ten microseconds after the message has come; on a virtual machine whose processor has
gone idle, forty, and the sender pays as much again. Where messages follow each other fast, who looks for them meanwhile
gets them at once; between two looks it lets others have the processor. But it keeps the interpreter from other threads
of its process, so who has looked in vain does so less and less often.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TypeVar

__all__ = ["LOOKS_FOR_S", "Lookout"]

LOOKS_FOR_S = 0.001
_SKIPPED_MAX = 128

_Found = TypeVar("_Found")


class Lookout:
    """What one reader has learnt about its messages. Not for several threads at once."""

    __slots__ = ("_next_skips", "_skips")

    def __init__(self) -> None:
        self._skips = 0
        self._next_skips = 1

    def look(self, attempt: Callable[[], _Found | None]) -> _Found | None:
        """What `attempt()` gives as soon as that is something; None: the caller had better sleep."""
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
