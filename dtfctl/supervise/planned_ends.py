"""Planned ends (`down`, `restart`, `stop`, `scale`, a changed file, a machine's notice): in which
order they come, what they cost, and which ends of other tasks only follow from them. Pure.

Workers end first, then the chief, which saves what they have done, then the parameter servers, which hold it. What the
same change starts comes after the last of them: a worker that starts before would train what is about to go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from dtfctl.plan import backups
from dtfctl.values import state
from dtfctl.values.plan import ClusterPlan, Task
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import Exit, TaskStatus, Then

CHIEF_WAITS_S = 3.0
"""How long the chief waits for workers that do not end: it must save within the same grace period of the machine."""

FOLLOWS_WITHIN_S = 30.0
"""A failure may be the consequence of an end that was planned at most so long before it."""

PLANNED = frozenset({Then.RENEW, Then.STOP, Then.PREEMPT})
"""What follows (`after_stop`) an end that was planned, while the cluster is kept up."""

_WORKERS, _CHIEF, _SERVERS = range(3)


def wave(task: Task, chief: str) -> int:
    """The lower one ends first."""
    if task.job.stops_last:
        return _SERVERS
    return _CHIEF if task.name == chief else _WORKERS


def due(
    ending: Sequence[Task],
    chief: str,
    observed: Mapping[str, TaskStatus],
    now: float,
    chief_waits_s: float = CHIEF_WAITS_S,
) -> tuple[frozenset[str], float | None]:
    """Which of those that are `ending`, or are to end, may be asked to now; and when to look again."""
    names: dict[int, list[str]] = {}
    for task in ending:
        names.setdefault(wave(task, chief), []).append(task.name)
    if not names:
        return frozenset(), None
    first = min(names)
    may_end, look_again_at = names[first], None
    if first == _WORKERS and _CHIEF in names and all(observed[name].state == state.STOPPING for name in may_end):
        enough_at = max(observed[name].stop_at or now for name in may_end) + chief_waits_s
        if now >= enough_at:
            may_end = [*may_end, *names[_CHIEF]]
        else:
            look_again_at = enough_at
    return frozenset(may_end), look_again_at


def holds_up_starts(ending: Iterable[Task]) -> bool:
    """Whether those that need the parameter servers have to wait until these have ended."""
    return any(task.job.stops_last for task in ending)


def excuse(
    plan: ClusterPlan, name: str, status: TaskStatus, ended: Exit, observed: Statuses
) -> str:
    """Why the failure of a task follows from the planned end of another one and is nobody's; "" when it does not."""
    if ended.ok or ended.error or ended.is_out_of_memory or status.stop_why:
        return ""
    if not _is_member(plan, name):
        return ""
    for other in map(observed.__getitem__, observed.planned()):
        if other.name == name or other.planned_at is None or not _is_member(plan, other.name):
            continue
        # Without a parameter server nobody can train, however long it is away.
        until = other.planned_at
        if plan.task(other.name).job.stops_last:
            is_back = other.state == state.RUNNING and other.ready_at is not None
            until = (other.ready_at or 0.0) if is_back else ended.at
        was_there = status.started_at is None or status.started_at <= until
        if was_there and other.planned_at <= ended.at <= until + FOLLOWS_WITHIN_S:
            return f"{ended} after the end of {other.name} ({other.planned_why})"
    return ""


def _is_member(plan: ClusterPlan, name: str) -> bool:
    return plan.has_task(name) and not plan.task(name).job.is_sidecar


def needs_checkpoint(plan: ClusterPlan, ends: Collection[str]) -> bool:
    """Whether parameter servers are among these and the chief, which saves at its own end, is not."""
    return plan.chief not in ends and any(_loses_state(plan, name, ends) for name in ends)


def _loses_state(plan: ClusterPlan, name: str, ends: Collection[str]) -> bool:
    """Whether a task is a parameter server whose state is nowhere else: a durable one has it at another place."""
    if not plan.has_task(name) or not plan.task(name).job.stops_last:
        return False
    other = backups.other_place(plan, name)
    return not other or other in ends


def in_words(plan: ClusterPlan, ends: Collection[str], has_saved: bool = False) -> list[str]:
    """What the user is told before these tasks of the plan end: the order, and what it costs. `has_saved` says that
    the chief has just saved because of it."""
    if not any(_loses_state(plan, name, ends) for name in ends):
        return []
    tasks = [task for task in plan.tasks() if task.name in ends]
    chief = plan.chief
    servers = _names(task.name for task in tasks if task.job.stops_last)
    workers = _names(task.name for task in tasks if wave(task, chief) == _WORKERS and not task.job.is_sidecar)
    lines = []
    if chief in ends or workers:
        saves = f"{chief} (it saves)" if chief in ends else ""
        order = ", then ".join(filter(None, (workers, saves, servers)))
        lines.append(f"{'order':<10}{order}; new tasks start after that")
    if chief in ends:
        cost = f"no step if {chief} saves at SIGTERM, as dtf's sessions do; else the steps since its checkpoint"
    elif chief and has_saved:
        cost = f"only the steps of other tasks since {chief} saved, just now"
    elif chief:
        cost = f"the steps since the last checkpoint of {chief}, which is asked for one (dtf's sessions save then)"
    else:
        cost = f"the variables that {servers} holds"
    lines.append(f"{'cost':<10}{cost}")
    return lines


def _names(names: Iterable[str]) -> str:
    listed = list(names)
    return ", ".join(listed) if len(listed) <= 6 else f"{', '.join(listed[:5])} and {len(listed) - 5} more"
