"""Watch: minds a step in flight, so that every wait for one ends.

Owns the deadline, the grace for errors that only follow from another, and heartbeats to the tasks that have not
answered; and the thread that does all that for steps for which none waits.
"""

from __future__ import annotations

import threading
import time
from typing import Protocol

from dtf.run.master.registered_partition import RegisteredPartition
from dtf.run.threads import reader_thread
from dtf.wire import errors, forks

__all__ = ["Watch", "WatchedStep", "watchman"]

_PATROL_PERIOD_S = 0.1
_PATROL_IDLE_ROUNDS = 20
_DERIVED_GRACE_S = 1.0
_STOP_GRACE_S = 2.0
"""What computes when a step is stopped, and does not look whether it should go on, has so long to end."""
_LOOK_PERIOD_S = 1.0
_HEARTBEAT_PERIOD_S = 10.0
_HEARTBEAT_TIMEOUT_S = 10.0


class WatchedStep(reader_thread.Waiting, Protocol):
    """A step in flight, as its watch sees it.

    Attributes:
      error: its error so far.
      is_stopped: whether it has been cancelled.
    """

    error: errors.OpError | None
    is_stopped: bool

    def cancel(self, error: errors.OpError) -> None:
        """Stops the step for the reason `error`, unless it has ended or has a root cause already."""

    def give_up(self) -> None:
        """Ends a step that has been stopped, although not every partition has answered."""

    def pending_partitions(self) -> list[RegisteredPartition]:
        """The partitions that have not answered yet."""


class Looks(Protocol):
    """Minds something in flight: a `Watch`, or a collective."""

    def look(self) -> None:
        """Does what is due."""


class Watch:
    """Minds a step that did not end at once: its deadline, lone derived errors, tasks that vanish, and what goes on
    though the step has been stopped. Its time begins when it is made.
    """

    __slots__ = ("_derived_since", "_next_heartbeat", "_started", "_step", "_stopped_since", "_timeout_s")

    def __init__(self, step: WatchedStep, timeout_s: float | None) -> None:
        self._step = step
        self._timeout_s = timeout_s
        self._started = time.monotonic()
        self._derived_since: float | None = None
        self._stopped_since: float | None = None
        self._next_heartbeat = self._started + _HEARTBEAT_PERIOD_S

    def wait(self) -> None:
        """Returns when the step has ended."""
        while not reader_thread.wait(self._step, self._until_next_duty()):
            self.look()

    def look(self) -> None:
        """Does what is due."""
        step = self._step
        now = time.monotonic()
        if self._timeout_s is not None and now >= self._started + self._timeout_s:
            self._timeout_s = None
            step.cancel(self._deadline_error())
        if step.error is not None and step.error.derived:
            # Its root cause should be on the way from another task. If it is not, this error must do.
            self._derived_since = self._derived_since or now
            if now >= self._derived_since + _DERIVED_GRACE_S:
                step.cancel(step.error)
                step.error.derived = False
        if step.is_stopped:
            self._stopped_since = self._stopped_since or now
            if now >= self._stopped_since + _STOP_GRACE_S:
                step.give_up()
        if now >= self._next_heartbeat:
            self._next_heartbeat = now + _HEARTBEAT_PERIOD_S
            self._send_heartbeats()

    def _until_next_duty(self) -> float:
        now = time.monotonic()
        wait_s = min(self._next_heartbeat - now, _LOOK_PERIOD_S)
        if self._timeout_s is not None:
            wait_s = min(wait_s, self._started + self._timeout_s - now)
        return max(0.0, wait_s)

    def _send_heartbeats(self) -> None:
        for partition in self._step.pending_partitions():
            if not partition.is_local:
                self._send_heartbeat(partition)

    def _send_heartbeat(self, partition: RegisteredPartition) -> None:
        def done(_: object = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                message = f"{partition.task} at {partition.address} has stopped answering: {error.message}"
                self._step.cancel(errors.UnavailableError.of(message))

        partition.worker.heartbeat(done, _HEARTBEAT_TIMEOUT_S)

    def _deadline_error(self) -> errors.OpError:
        waited = time.monotonic() - self._started
        whom = ", ".join(partition.task for partition in self._step.pending_partitions())
        return errors.DeadlineExceededError.of(
            f"Timed out waiting for notification: the step has run for {waited:.1f} s; waiting for {whom}"
        )


class _Watchman:
    """A thread that looks at the steps for which none waits, now and then; it sleeps when there are none. Its condition
    guards `_is_awake`; `_watches` is changed by single operations only.
    """

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._watches: dict[Looks, None] = {}
        self._is_awake = False

    def add(self, watch: Looks) -> None:
        """Looks at a step until it is forgotten."""
        self._watches[watch] = None
        if self._is_awake:
            return
        with self._condition:
            if self._is_awake:
                return
            self._is_awake = True
        threading.Thread(target=self._patrol, name="dtf-watch", daemon=True).start()

    def forget(self, watch: Looks) -> None:
        """Its step has ended, and all that the step holds, large tensors perhaps, is free at once."""
        self._watches.pop(watch, None)

    def _patrol(self) -> None:
        idle_rounds = 0
        while True:
            time.sleep(_PATROL_PERIOD_S)
            with self._condition:
                idle_rounds = 0 if self._watches else idle_rounds + 1
                if idle_rounds > _PATROL_IDLE_ROUNDS:
                    self._is_awake = False
                    if not self._watches:  # who adds one looks whether it is awake after that
                        return
                    self._is_awake = True
            self._look()

    def _look(self) -> None:
        for watch in list(self._watches):
            watch.look()


    def begin_anew(self) -> None:
        """In a forked process: the thread and the steps are the parent's."""
        self._condition = threading.Condition()
        self._watches = {}
        self._is_awake = False


watchman = _Watchman()
forks.in_child(watchman.begin_anew)
