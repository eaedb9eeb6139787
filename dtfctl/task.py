"""What is known of one task, as a frozen value that the supervisor replaces and the store keeps.

Times are seconds of the machine's monotonic clock, which all processes of one boot share. Every change of state
goes through `TaskStatus.move`, and so through the table of state.py.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from dtfctl import state


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
            return f"{words} for want of memory" if self.signal == signal.SIGKILL and self.is_out_of_memory else words
        return f"exited with status {self.code}"


@dataclass(frozen=True)
class Life:
    """What is remembered of a process that failed: how it ended in words, how long it had lived, and the traceback that
    it left before it was ready."""

    words: str
    lived_s: float
    traceback: str = ""


@dataclass(frozen=True)
class TaskStatus:
    """`generation` counts the processes that the task has had in this run, `restarts` all but the first.

    `failures` and `preemptions` are the times of the present series of each, `alike` counts the last failures that look
    like `former`, the one before. `stop_why` is set once the end was asked for, and `after_stop` says what follows:
    succeed, stop, renew, retry (a failure of the task) or preempt. `renew` is why a new process is wanted, `ailing` why
    the present one is thought to hang, `notice` why its machine is about to go. `host` is where its last process is or
    was, as the launchers know it. `reason` says in words how the task
    came into its state, `restart_reason` why it was last started again, `waiting_for` what its readiness still lacks.
    `stalled` is why it gets nowhere though it runs, `stalled_since` since when by the wall clock.
    `planned_at` is when somebody last planned that a process of it ends while the cluster goes on, `planned_why` why.
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
    stalled: str = ""
    stalled_since: float | None = None

    @property
    def ready(self) -> bool:
        return self.state == state.RUNNING

    @property
    def troubles(self) -> tuple[float, ...]:
        """When anything went wrong with it, whoever is to blame."""
        return tuple(sorted((*self.failures, *self.preemptions)))

    def move(self, event: str, **changes: Any) -> TaskStatus:
        return replace(self, state=state.after(self.state, event), **changes)


def after_restart_of_machine(status: TaskStatus, now: float) -> TaskStatus:
    """The same with times that a clock which began anew can be compared with."""
    return replace(
        status,
        failures=(),
        preemptions=(),
        alike=0,
        former=None,
        started_at=None,
        ready_at=None,
        next_start_at=None if status.next_start_at is None else now,
        stop_at=None if status.stop_at is None else now,
        kill_at=None if status.kill_at is None else now,
        planned_at=None,
    )


_FIELDS = tuple(each.name for each in fields(TaskStatus) if each.name not in ("exit", "former"))


def to_json(status: TaskStatus) -> dict[str, Any]:
    # A shallow copy: dataclasses.asdict copies every value deeply, and this is done at each change of a task.
    return {
        **{name: getattr(status, name) for name in _FIELDS},
        "exit": None if status.exit is None else asdict(status.exit),
        "former": None if status.former is None else asdict(status.former),
    }


def from_json(document: dict[str, Any]) -> TaskStatus:
    ended, former = document["exit"], document["former"]
    return TaskStatus(
        **{
            **document,
            "exit": None if ended is None else Exit(**ended),
            "former": None if former is None else Life(**former),
            "failures": tuple(document["failures"]),
            "preemptions": tuple(document["preemptions"]),
        }
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
