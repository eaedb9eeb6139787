"""Asking a task that may not be there yet: again and again, within a bound, and saying so.

Owns the rhythm of the attempts and the words of the reports. Does not know how a task is asked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from dtf.wire import errors

ATTEMPT_TIMEOUT_S = 2.0
_LOG_PERIOD_S = 10.0
_PAUSE_S_MIN = 0.02
_PAUSE_S_MAX = 0.5
_PAUSE_PART = 0.25
"""How much longer than it has taken already a task's return may take to be noticed."""

_logger = logging.getLogger("dtf")
_Answer = TypeVar("_Answer")


def ask(
    attempt: Callable[[float], _Answer],
    where: str,
    timeout_s: float | None,
    stopped: threading.Event | None = None,
) -> _Answer:
    """The answer of `attempt(timeout_s of this attempt)`, tried until it gives one.

    Only UnavailableError and DeadlineExceededError are worth another attempt. A line is logged every 10 s.

    Args:
      where: whom is asked: "/job:ps/replica:0/task:0 at host:port".
      timeout_s: the bound for all attempts together; None: none.
      stopped: set by the caller to end the wait.

    Raises:
      DeadlineExceededError: `timeout_s` has passed; says who, how long, and the last error.
      CancelledError: `stopped` was set.
    """
    started = time.monotonic()
    next_log = started + _LOG_PERIOD_S
    while True:
        left_s = ATTEMPT_TIMEOUT_S
        if timeout_s is not None:
            left_s = max(0.001, min(left_s, timeout_s - (time.monotonic() - started)))
        try:
            return attempt(left_s)
        except (errors.UnavailableError, errors.DeadlineExceededError) as error:
            last = error
        waited_s = time.monotonic() - started
        if timeout_s is not None and waited_s >= timeout_s:
            raise errors.DeadlineExceededError.of(
                f"{where} did not answer for {waited_s:.1f} s. Last error: {last.message}"
            ) from last
        if time.monotonic() >= next_log:
            next_log += _LOG_PERIOD_S
            _logger.warning("Still waiting for %s after %.0f s. Last error: %s", where, waited_s, last.message)
        pause_s = min(max(_PAUSE_PART * waited_s, _PAUSE_S_MIN), _PAUSE_S_MAX)
        if timeout_s is not None:
            pause_s = min(pause_s, max(0.0, timeout_s - waited_s))
        if (stopped or _never).wait(pause_s):
            raise errors.CancelledError.of(f"The session was closed while it waited for {where}.")


_never = threading.Event()
