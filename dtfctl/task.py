"""What is known of one task, as a frozen value that the supervisor replaces and the store keeps.

Times are seconds of the machine's monotonic clock, which all processes of one boot share. Every change of state
goes through `TaskStatus.move`, and so through the table of state.py.
"""

from __future__ import annotations

import signal
from dataclasses import asdict, dataclass, replace
from typing import Any

from dtfctl import state


@dataclass(frozen=True)
class Exit:
    """How a process ended: a status, a signal, or the words of an `error` (not started, or lost from sight)."""

    at: float
    code: int | None = None
    signal: int | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        return self.code == 0

    def __str__(self) -> str:
        if self.error:
            return self.error
        if self.signal is not None:
            return f"killed by {_signal_name(self.signal)}"
        return f"exited with status {self.code}"


@dataclass(frozen=True)
class TaskStatus:
    """`generation` counts the processes that the task has had in this run, `restarts` all but the first.

    `failures` are the times of the present series of failures, `stop_why` is set once the end was asked for,
    `reason` says in words how the task came into its state, `restart_reason` why it was last started again,
    `waiting_for` what its readiness still lacks.
    """

    name: str
    state: str = state.PENDING
    generation: int = 0
    restarts: int = 0
    pid: int | None = None
    started_at: float | None = None
    ready_at: float | None = None
    exit: Exit | None = None
    failures: tuple[float, ...] = ()
    next_start_at: float | None = None
    stop_at: float | None = None
    stop_why: str = ""
    kill_at: float | None = None
    reason: str = ""
    restart_reason: str = ""
    waiting_for: str = ""

    @property
    def ready(self) -> bool:
        return self.state == state.RUNNING

    def move(self, event: str, **changes: Any) -> TaskStatus:
        return replace(self, state=state.after(self.state, event), **changes)


def after_restart_of_machine(status: TaskStatus, now: float) -> TaskStatus:
    """The same with times that a clock which began anew can be compared with."""
    return replace(
        status,
        failures=(),
        started_at=None,
        ready_at=None,
        next_start_at=None if status.next_start_at is None else now,
        stop_at=None if status.stop_at is None else now,
        kill_at=None if status.kill_at is None else now,
    )


def to_json(status: TaskStatus) -> dict[str, Any]:
    return asdict(status)


def from_json(document: dict[str, Any]) -> TaskStatus:
    exit_document = document["exit"]
    return TaskStatus(
        **{
            **document,
            "exit": None if exit_document is None else Exit(**exit_document),
            "failures": tuple(document["failures"]),
        }
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
