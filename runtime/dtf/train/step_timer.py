"""Timers of hooks: whether something that happens every so many seconds or steps is due."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]


def _now() -> float:
    return time.time()  # looked up at each call: programs' tests replace it


class SecondOrStepTimer:
    """Decides at which steps an action with an interval in seconds or steps is due.

    Raises:
      ValueError: both or neither of the intervals are given.
    """

    def __init__(
        self, every_secs: float | None = None, every_steps: int | None = None, clock: Clock | None = None
    ) -> None:
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")
        self._every_secs = every_secs
        self._every_steps = every_steps
        self._clock = clock or _now
        self.reset()

    def reset(self) -> None:
        """Forgets the last time, so that the next step is due."""
        self._last_step: int | None = None
        self._last_time = 0.0

    def should_trigger_for_step(self, step: int) -> bool:
        """Whether it is due at `step`; never twice for one step."""
        if self._last_step is None:
            return True
        if step == self._last_step:
            return False
        if self._every_secs is not None:
            return self._clock() >= self._last_time + self._every_secs
        assert self._every_steps is not None
        return step >= self._last_step + self._every_steps

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        """Notes that it happened. Returns (seconds, steps) since the time before, (None, None) at the first."""
        now = self._clock()
        elapsed: tuple[float | None, int | None] = (None, None)
        if self._last_step is not None:
            elapsed = (now - self._last_time, step - self._last_step)
        self._last_time, self._last_step = now, step
        return elapsed

    def last_triggered_step(self) -> int | None:
        """The step of the last time, or None."""
        return self._last_step


class NeverTriggerTimer:
    """Stands for a timer where nothing is ever due."""

    def reset(self) -> None:
        pass

    def should_trigger_for_step(self, step: int) -> bool:
        return False

    def update_last_triggered_step(self, step: int) -> tuple[float | None, int | None]:
        return (None, None)

    def last_triggered_step(self) -> int | None:
        return None
