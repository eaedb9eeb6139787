"""Recovery: how often and how patiently a lost session is replaced, and the log lines about it.

Owns the policy, the count of recoveries in a row, their pauses and their words. Does not make sessions: a
MonitoredSession or `basic_train_loop` asks this module whether to retry.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from dtf import logging
from dtf.wire import errors

LOST = (errors.AbortedError, errors.UnavailableError)
"""The errors of a run after a task was lost or has restarted; recovery ignores all other errors."""

_LOG_EVERY_S = 10.0
_Made = TypeVar("_Made")


@dataclass(frozen=True)
class RecoveryPolicy:
    """The bounds of recovery.

    Attributes:
      recoveries_max: recoveries in a row without a successful run in between; after that the error is raised.
      wait_secs: how long one recovery tries to make a session before its error is raised.
      pause_secs: the pause before the second try in a row; it doubles with each further one. The first is immediate.
      pause_secs_max: the longest pause.
    """

    recoveries_max: int = 20
    wait_secs: float = 7200.0
    pause_secs: float = 0.05
    pause_secs_max: float = 2.0

    def pause_before(self, attempt: int) -> float:
        """Seconds of pause before the n-th try in a row, counted from 1."""
        if attempt <= 1:
            return 0.0
        return min(self.pause_secs_max, self.pause_secs * 2.0 ** min(attempt - 2, 60))


class Recovery:
    """Counts the recoveries of one training. `clock` and `sleep` are time in seconds, passed in for tests."""

    def __init__(
        self,
        policy: RecoveryPolicy | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Any] = time.sleep,
    ) -> None:
        self._policy = policy or RecoveryPolicy()
        self._clock = clock
        self._sleep = sleep
        self._in_a_row = 0

    def went_well(self) -> None:
        """A run has ended well: the next loss is the first one again."""
        self._in_a_row = 0

    def lost(self, error: errors.OpError) -> None:
        """A session was lost; returns after a pause if it is to be recreated.

        Raises:
          The error itself, when it is one too many.
        """
        most = self._policy.recoveries_max
        self._in_a_row += 1
        if self._in_a_row > most:
            logging.error("The session was lost %d times in a row; giving up. Cause: %s", most + 1, cause(error))
            raise error
        pause_s = self._policy.pause_before(self._in_a_row)
        logging.info(
            "A task was lost or restarted; recreating the session%s and restoring the last checkpoint (%d of %d). "
            "Cause: %s",
            f" after {pause_s:g} s" if pause_s else "",
            self._in_a_row,
            most,
            cause(error),
        )
        self._sleep(pause_s)

    def until_made(self, make: Callable[[], _Made]) -> _Made:
        """Calls `make` and returns its result; retries while tasks cannot be reached.

        Raises:
          OpError: the last error, when the policy's `wait_secs` have passed; at once what is not of `LOST`.
        """
        began = self._clock()
        log_at = began
        attempt = 1
        while True:
            try:
                return make()
            except LOST as error:
                attempt += 1
                pause_s = self._policy.pause_before(attempt)
                now = self._clock()
                if now + pause_s > began + self._policy.wait_secs:
                    logging.error(
                        "The session could not be created in %d tries within %.0f s. Cause: %s",
                        attempt - 1,
                        now - began,
                        cause(error),
                    )
                    raise
                if now >= log_at:
                    log_at = now + _LOG_EVERY_S
                    logging.info(
                        "The session cannot be created yet; try %d follows in %g s. Cause: %s",
                        attempt,
                        pause_s,
                        cause(error),
                    )
                self._sleep(pause_s)


def cause(error: errors.OpError) -> str:
    """One line that names the error, the task and the cause."""
    lines = [line for line in str(error.message).replace("[_Derived_]", "").splitlines() if line.strip()]
    told = next((line for line in lines if not _FROM.match(line)), "")
    origin = next((found[1] for found in map(_FROM.match, lines) if found), "")
    where = f" of {origin}" if origin and origin not in told else ""
    return f"{type(error).__name__}{where}: {told}"


_FROM = re.compile(r"From (/job:\S+?):?\s*$")
