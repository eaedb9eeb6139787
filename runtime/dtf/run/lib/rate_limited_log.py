"""What peers can cause is logged in one line each, and not more often than a disk and a reader can bear.

Owns how often a line is written. The caller owns its text.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
from collections.abc import Callable

__all__ = ["RateLimitedLog", "place_of", "shared"]

LINES_MAX = 10
"""Of one kind, in each period."""
PERIOD_S = 60.0
_WORDS_MAX = 500


class RateLimitedLog:
    """Its lock guards the counts."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: dict[str, _Count] = {}

    def warn(self, kind: str, message: str, *arguments: object) -> None:
        """Logs `message % arguments` in one line, unless there were `LINES_MAX` of this kind lately; then it counts.

        Args:
          kind: a literal of the program, never of a peer.
        """
        with self._lock:
            now = self._clock()
            count = self._kinds.get(kind)
            if count is None:
                count = self._kinds[kind] = _Count(now)
            untold = 0
            if now >= count.since + PERIOD_S:
                untold, count.untold = count.untold, 0
                count.since, count.lines = now, 0
            is_told = count.lines < LINES_MAX
            if is_told:
                count.lines += 1
                is_last = count.lines == LINES_MAX
            else:
                count.untold += 1
        if untold:
            self._logger.warning("%s: %d more since then", kind, untold)
        if is_told:
            words = " ".join((message % arguments).split())[:_WORDS_MAX]
            self._logger.warning("%s%s", words, " (more of this kind are counted only)" if is_last else "")


class _Count:
    def __init__(self, since: float) -> None:
        self.since = since
        self.lines = 0
        self.untold = 0


def place_of(error: BaseException) -> str:
    """Where an error was raised, as "codec.py:12"; "" when that is not known."""
    frames = traceback.extract_tb(error.__traceback__, limit=-1)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


shared = RateLimitedLog(logging.getLogger("dtf"))
"""For all that serves peers in this process."""
