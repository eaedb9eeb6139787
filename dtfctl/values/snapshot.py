"""What is known of a cluster at one moment, in the form in which it is shown. Pure: `take` makes it.

Tables, JSON and live views are renderings of a Snapshot (show/view.py). It holds no secret and no environment, and
ages instead of times of the machine's monotonic clock, so that it means the same in another process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.hosts import CONNECTED
from dtfctl.values.pace import TaskPace
from dtfctl.values.run import Run
from dtfctl.values.task import TaskStatus

if TYPE_CHECKING:
    from dtfctl.launchers.usage import Usage
    from dtfctl.logs.progress import Progress
    from dtfctl.values.report import TaskReport

    Usages = Mapping[str, tuple[float | None, Usage]]


@dataclass(frozen=True)
class Disk:
    """The file system of a folder that the cluster writes to: `use` says what lies there."""

    use: str
    path: str
    free_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class GpuUse:
    """Of a task's GPUs: the part of the time in which they computed (None: unknown), and their memory."""

    numbers: tuple[int, ...]
    busy: float | None
    used_bytes: int
    total_bytes: int


@dataclass(frozen=True)
class TaskView:
    """`is_away`: its process is on a host that does not answer. `started_s` is the age of its last process, `ended_s`
    of the end of that, `next_start_s` the time until the next attempt. `reason` says how it came into its state,
    `earlier` why it was last started again, where that is something else. `stalled_since` is the wall clock's.
    `failures` is the number of failures in the present series, `traceback` that of the last process that has ended.
    `cores` in use, `usage`, `gpus`, `pace` and `steps_per_s` (session runs) are None where they are not known."""

    name: str
    state: str
    is_ready: bool
    is_away: bool
    generation: int
    restarts: int
    pid: int | None
    host: str
    address: str | None
    started_s: float | None
    ended_s: float | None
    next_start_s: float | None
    reason: str
    earlier: str
    waiting_for: str
    stalled: str
    stalled_since: float
    cores: float | None = None
    usage: Usage | None = None
    steps_per_s: float | None = None
    failures: int = 0
    traceback: str = ""
    gpus: GpuUse | None = None
    pace: TaskPace | None = None
    role: str = ""

    @property
    def job(self) -> str:
        return self.name.rpartition(":")[0]

    @property
    def since_s(self) -> float | None:
        """The age of the process, else of its end."""
        return self.started_s if self.state in state.WITH_PROCESS else self.ended_s

    @property
    def words(self) -> str:
        """The task's last change; that it was restarted, and why, is not forgotten over its end."""
        last = f"{self.reason}; earlier: {self.earlier}" if self.earlier else self.reason or self.waiting_for
        return "; ".join(part for part in (self.role, last) if part)


@dataclass(frozen=True)
class HostView:
    """`since` is the wall clock's."""

    name: str
    state: str
    since: float
    why: str

    @property
    def is_connected(self) -> bool:
        return self.state == CONNECTED


@dataclass(frozen=True)
class Snapshot:
    """`state` is starting, running, succeeded, failed or stopped; the last three only once nothing runs any more, when
    it `is_over`. `outcome` and `why` are set when the end is decided. `at` and `started_at` are the wall clock's.
    `history` is what has happened after an id that the reader named, `reports` what tasks say of themselves,
    `restarts_by_cause` counts by (task, cause); the last two are there only where the reader asked for them. `disks`
    are those that were looked at. `strain` is how many programs want a core of this machine, 1 where all find one."""

    at: float
    name: str
    file: str
    state: str
    outcome: str
    why: str
    is_over: bool
    started_at: float
    hosts: tuple[HostView, ...]
    tasks: tuple[TaskView, ...]
    strays: tuple[tuple[int, str, str], ...]
    progress: Progress | None = None
    history: tuple[Happening, ...] = ()
    reports: Mapping[str, TaskReport] = field(default_factory=dict)
    restarts_by_cause: Mapping[tuple[str, str], int] = field(default_factory=dict)
    disks: tuple[Disk, ...] = ()
    strain: float = 1.0

    @property
    def ready(self) -> int:
        return sum(task.is_ready for task in self.tasks)

    @property
    def restarts(self) -> int:
        return sum(task.restarts for task in self.tasks)


def take(
    run: Run,
    statuses: Mapping[str, TaskStatus],
    now: float,
    at: float,
    usages: Usages | None = None,
    progress: Progress | None = None,
    history: Sequence[Happening] = (),
    reports: Mapping[str, TaskReport] | None = None,
    restarts_by_cause: Mapping[tuple[str, str], int] | None = None,
    rates: Mapping[str, float] | None = None,
    disks: Sequence[Disk] = (),
    strain: float = 1.0,
    gpus: Mapping[str, GpuUse] | None = None,
    paces: Mapping[str, TaskPace] | None = None,
) -> Snapshot:
    """`now` is the monotonic clock's, `at` the wall clock's; `usages` are (cores in use, Usage) by task, `rates` the
    steps per second, `gpus` what the GPUs of tasks on this machine do."""
    return Snapshot(
        at=at,
        name=run.plan.name,
        file=run.plan.file,
        state=cluster_state(run),
        outcome=run.outcome,
        why=run.why,
        is_over=run.is_over,
        started_at=run.started_at,
        hosts=tuple(HostView(host.name, host.state, host.since, host.why) for host in run.hosts.values()),
        tasks=tuple(
            _task(run, status, now, usages or {}, rates or {}, gpus or {}, paces or {}) for status in statuses.values()
        ),
        strays=run.strays,
        progress=progress,
        history=tuple(history),
        reports=reports or {},
        restarts_by_cause=restarts_by_cause or {},
        disks=tuple(disks),
        strain=strain,
    )


def cluster_state(run: Run) -> str:
    if run.is_over:
        return run.outcome
    return "running" if run.all_were_ready else "starting"


def _task(
    run: Run,
    status: TaskStatus,
    now: float,
    usages: Usages,
    rates: Mapping[str, float],
    gpus: Mapping[str, GpuUse],
    paces: Mapping[str, TaskPace],
) -> TaskView:
    name = run.host_of(status)
    host = run.hosts.get(name)
    is_away = host is not None and host.state != CONNECTED and status.state in state.WITH_PROCESS and not run.is_over
    cores, usage = usages.get(status.name, (None, None))
    return TaskView(
        name=status.name,
        state=status.state,
        is_ready=status.ready,
        is_away=is_away,
        generation=status.generation,
        restarts=status.restarts,
        pid=status.pid,
        host=name,
        address=run.addresses.get(status.name),
        started_s=None if status.started_at is None else now - status.started_at,
        ended_s=None if status.exit is None else now - status.exit.at,
        next_start_s=None if status.next_start_at is None else status.next_start_at - now,
        reason=status.reason,
        earlier=status.restart_reason if status.restart_reason != status.reason else "",
        waiting_for=status.waiting_for,
        stalled=status.stalled,
        stalled_since=status.stalled_since or 0.0,
        cores=cores,
        usage=usage,
        steps_per_s=rates.get(status.name),
        failures=len(status.failures),
        traceback="" if status.exit is None else status.exit.traceback,
        gpus=gpus.get(status.name),
        pace=paces.get(status.name) if status.ready else None,
        role=status.role,
    )
