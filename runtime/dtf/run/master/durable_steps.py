"""Steps of durable tasks: their identities, and what happens when such a task is lost while one runs.

Owns the slots of a session, and the decision whether a failed step is sent again (see runtime/durability.md). Does not
know how a step runs (`compiled_step`), nor how a task is joined (`session_tasks`).
"""

from __future__ import annotations

import heapq
import logging
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dtf.run.durability.once import ATTEMPTS_MAX, SESSION_BITS, SLOTS_MAX, StepName
from dtf.run.master.session_tasks import SessionTasks
from dtf.wire import errors

__all__ = ["DurableSteps", "Recovery", "Slot"]

_RETURN_WAIT_S = 120.0
"""How long a step waits for a durable task to be there again."""
_SAME_TASKS_MAX = 12
"""How often in a row a step is sent again although no task has restarted: connections were lost, or a task has not yet
found another one at its new place."""
_PAUSE_S_MAX = 0.5
"""Between such attempts: 10 ms, and twice as long each time."""
_OFTEN = 8
"""A step that was sent again so often waits in the same way each time: tasks restart faster than it runs."""
_OF_LOST_TASKS = frozenset({errors.UNAVAILABLE, errors.ABORTED, errors.UNKNOWN, errors.INTERNAL})


class Slot:
    """A step in a slot.

    Attributes:
      attempt: the present one, from 0.
      in_vain: how many attempts in a row have failed although no task had restarted.
    """

    def __init__(self, session: int, slot: int, number: int) -> None:
        self._name = StepName(session, slot, number, 0)
        self.attempt = 0
        self.in_vain = 0

    @property
    def step_id(self) -> int:
        """The id of the present attempt."""
        return self._name._replace(attempt=self.attempt).step_id


class DurableSteps:
    """The slots of one session. The lock guards them."""

    def __init__(self) -> None:
        self._session = secrets.randbits(SESSION_BITS)
        self._lock = threading.Lock()
        self._free: list[int] = []
        self._numbers: list[int] = []

    @contextmanager
    def slot(self) -> Iterator[Slot]:
        """A slot for one step and all of its attempts.

        Raises:
          ResourceExhaustedError: more steps run than there are slots.
        """
        with self._lock:
            if self._free:
                place = heapq.heappop(self._free)
            elif len(self._numbers) < SLOTS_MAX:
                place = len(self._numbers)
                self._numbers.append(0)
            else:
                raise errors.ResourceExhaustedError.of(
                    f"{SLOTS_MAX} steps of this session use durable tasks at the same time; no more are possible."
                )
            self._numbers[place] += 1
            slot = Slot(self._session, place, self._numbers[place])
        try:
            yield slot
        finally:
            with self._lock:
                heapq.heappush(self._free, place)


class Recovery:
    """Of the tasks of one session. One thread at a time looks for the lost ones; the lock is its.

    Attributes:
      count: how often tasks were found restarted; what was compiled before is of no use.
    """

    def __init__(self, tasks: SessionTasks) -> None:
        self._tasks = tasks
        self._lock = threading.Lock()
        self.count = 0

    def may_go_on(self, error: errors.OpError, slot: Slot, seen_count: int, timeout_s: float | None) -> bool:
        """Whether a step that failed is to be sent again, which is when its lost tasks are back with their state.

        Args:
          error: what the attempt failed with.
          slot: of the step.
          seen_count: `count` when the attempt began.
          timeout_s: the limit of the wait for lost tasks.

        Raises:
          AbortedError: a task is back without its state.
          OpError: a task does not come back; as `error`.
        """
        if error.error_code not in _OF_LOST_TASKS or slot.attempt + 1 >= ATTEMPTS_MAX:
            return False
        with self._lock:
            if self.count == seen_count:
                try:
                    has_changed = self._tasks.forget_restarted(timeout_s or _RETURN_WAIT_S)
                except errors.DeadlineExceededError:
                    raise error from None
                if has_changed:
                    self.count += 1
        if self.count != seen_count:
            slot.in_vain = 0
        elif error.error_code != errors.UNAVAILABLE or slot.in_vain >= _SAME_TASKS_MAX:
            return False
        else:
            slot.in_vain += 1
            time.sleep(min(0.005 * 2**slot.in_vain, _PAUSE_S_MAX))
        slot.attempt += 1
        if slot.attempt >= _OFTEN:
            time.sleep(min(0.005 * 2 ** min(slot.attempt - _OFTEN, 10), _PAUSE_S_MAX))
        _logger.warning("A step is sent again, attempt %d: %s", slot.attempt + 1, error.message.split("\n\t")[0])
        return True


_logger = logging.getLogger("dtf")
