"""What is known of one task, as a frozen value that the supervisor replaces and the store keeps.

Times are seconds of the machine's monotonic clock, which all processes of one boot share. Every change of state
is a method of TaskStatus, and goes through the table of state.py.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dtfctl.values import state
from dtfctl.values.word import Word


@dataclass(frozen=True)
class Exit:
    """How a process ended: a status, a signal, or the words of an `error` (not started, hung, or lost from sight).

    `preempted` says why it was taken away, where that was told; `is_out_of_memory` that the kernel killed something on
    that host for want of memory while it lived. `traceback` is the Python traceback at the end of its log, "" for none.
    """

    at: float
    code: int | None = None
    signal: int | None = None
    error: str = ""
    preempted: str = ""
    is_out_of_memory: bool = False
    traceback: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        if self.error:
            return self.error
        if self.signal is not None:
            words = f"killed by {_signal_name(self.signal)}"
            return f"{words}: out of memory" if self.signal == signal.SIGKILL and self.is_out_of_memory else words
        return f"exited with status {self.code}"


@dataclass(frozen=True)
class Life:
    """What is remembered of a process that failed: how it ended in words, how long it had lived, and the traceback that
    it left before it was ready."""

    words: str
    lived_s: float
    traceback: str = ""


class Then(Word):
    """What follows the end of a process that was asked for."""

    SUCCEED = "succeed"
    STOP = "stop"
    RENEW = "renew"
    RETRY = "retry"
    """It counts as a failure of the task."""
    PREEMPT = "preempt"


@dataclass(frozen=True)
class TaskStatus:
    """`generation` counts the processes that the task has had in this run, `restarts` all but the first.

    `failures` and `preemptions` are the times of the present series of each, `alike` counts the last failures that look
    like `former`, the one before. `stop_why` is set once the end was asked for, and `after_stop` says what follows
    (Then). `renew` is why a new process is wanted, `ailing` why
    the present one is thought to hang, `notice` why its machine is about to go. `host` is where its last process is or
    was, as the launchers know it. `reason` says in words how the task
    came into its state, `restart_reason` why it was last started again, `waiting_for` what its readiness still lacks.
    `stalled` is why it gets nowhere though it runs, `stalled_since` since when by the wall clock.
    `role` is what the process of a durable ps says of its place: primary or backup, and its term.
    `planned_at` is when an end of its process was last planned while the cluster continues, `planned_why` why.
    """

    name: str
    state: str = state.PENDING
    generation: int = 0
    restarts: int = 0
    pid: int | None = None
    host: str = ""
    started_at: float | None = None
    ready_at: float | None = None
    exit: Exit | None = None
    failures: tuple[float, ...] = ()
    preemptions: tuple[float, ...] = ()
    alike: int = 0
    former: Life | None = None
    next_start_at: float | None = None
    stop_at: float | None = None
    stop_why: str = ""
    after_stop: str = ""
    kill_at: float | None = None
    renew: str = ""
    ailing: str = ""
    notice: str = ""
    reason: str = ""
    restart_reason: str = ""
    waiting_for: str = ""
    planned_at: float | None = None
    planned_why: str = ""
    role: str = ""
    stalled: str = ""
    stalled_since: float | None = None

    @property
    def ready(self) -> bool:
        return self.state == state.RUNNING

    @property
    def troubles(self) -> tuple[float, ...]:
        """The times of all its failures and preemptions, in order."""
        return tuple(sorted((*self.failures, *self.preemptions)))

    # -- the life of a process, each step by the table of state.py

    def starting(self, host: str, is_restart: bool) -> TaskStatus:
        """Another process is about to be started on `host`; what was known of the last one is forgotten."""
        return self._move(
            state.START,
            host=host,
            generation=self.generation + 1,
            restarts=self.restarts + is_restart,
            pid=None,
            started_at=None,
            ready_at=None,
            next_start_at=None,
            stop_at=None,
            stop_why="",
            after_stop="",
            kill_at=None,
            renew="",
            ailing="",
            restart_reason=self.renew or self.restart_reason,
        )

    def started(self, pid: int, at: float) -> TaskStatus:
        return replace(self, pid=pid, started_at=at)

    def became_ready(self, now: float) -> TaskStatus:
        return self._move(state.READY, ready_at=now, waiting_for="", stalled="", stalled_since=None)

    def ended(self, how: Exit) -> TaskStatus:
        """Its process is gone, and nothing that was found of it holds any longer."""
        return self._move(
            state.EXIT, exit=how, pid=None, waiting_for="", ailing="", role="", stalled="", stalled_since=None
        )

    def terminated(self, now: float, why: str, then: str, is_planned: bool) -> TaskStatus:
        """Its process was asked to end; `then` says what follows. `is_planned`: while the cluster goes on."""
        status = self._move(state.STOP, stop_at=now, stop_why=why, after_stop=then, waiting_for="")
        return replace(status, planned_at=now, planned_why=why) if is_planned else status

    def killed(self, now: float) -> TaskStatus:
        return replace(self, kill_at=now)

    def abandoned(self, why: str) -> TaskStatus:
        """Its process outlived SIGKILL."""
        return self._move(state.ABANDON, reason=why)

    def stopped(self, why: str) -> TaskStatus:
        """It has no process, and is to have none."""
        return self._move(state.STOP, stop_why=why, after_stop=Then.STOP, reason=why, next_start_at=None, renew="")

    def renewed(self, why: str) -> TaskStatus:
        """A new process is wanted whatever became of the last: the user's word counts for more than any history."""
        return replace(self._move(state.RENEW, reason=why, next_start_at=None), **_NO_HISTORY)

    def settled(self, event: str, why: str, next_start_at: float | None = None) -> TaskStatus:
        """What the end of its process means: `event` is succeed, fail, give-up, or retry with the time of that."""
        if next_start_at is None:
            return self._move(event, reason=why)
        return self._move(event, reason=why, next_start_at=next_start_at, restart_reason=why)

    def _move(self, event: str, **changes: Any) -> TaskStatus:
        return replace(self, state=state.after(self.state, event), **changes)

    # -- what is found of it, and wished for it

    def after_restart_of_machine(self, now: float) -> TaskStatus:
        """The same with times that a clock which began anew can be compared with."""
        return replace(
            self,
            started_at=None,
            ready_at=None,
            next_start_at=None if self.next_start_at is None else now,
            stop_at=None if self.stop_at is None else now,
            kill_at=None if self.kill_at is None else now,
            planned_at=None,
            **_NO_HISTORY,
        )


_NO_HISTORY: dict[str, Any] = {"failures": (), "preemptions": (), "alike": 0, "former": None}
"""Of a task against which nothing is held."""


_FIELDS = tuple(each.name for each in fields(TaskStatus) if each.name not in ("exit", "former"))


def to_json(status: TaskStatus) -> dict[str, Any]:
    # A shallow copy: dataclasses.asdict copies every value deeply, and this is done at each change of a task.
    return {
        **{name: getattr(status, name) for name in _FIELDS},
        "exit": None if status.exit is None else asdict(status.exit),
        "former": None if status.former is None else asdict(status.former),
    }


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
