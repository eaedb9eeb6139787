"""What becomes of the tasks when another machine cannot be reached, is lost, or comes back. Pure: values in and out.

The supervisor takes each Change in as a whole; values/hosts.py says which hosts are lost and which spare takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dtfctl.plan import backups, expand
from dtfctl.values import hosts, state
from dtfctl.values.hosts import HostStatus
from dtfctl.values.plan import LOCALHOST, NEVER, ClusterPlan, Task
from dtfctl.values.run import Run
from dtfctl.values.statuses import Statuses
from dtfctl.values.task import Exit, TaskStatus


@dataclass(frozen=True)
class Change:
    """The run as it is now, the statuses that differ, and what the history says: (task or "", what, cause)."""

    run: Run
    statuses: tuple[TaskStatus, ...] = ()
    notes: tuple[tuple[str, str, str], ...] = ()


def reached(run: Run, name: str, since: float, now: float) -> Change:
    """`since` is the wall clock, `now` the monotonic one."""
    host = run.hosts.get(name)
    if host is None or host.state == hosts.CONNECTED:
        return Change(run)
    notes = (("", "host", f"{name} is reachable again"),)
    return Change(run.with_host(host.move(hosts.CONNECTED, since, now)), (), notes)


def unreachable(run: Run, name: str, why: str, since: float, now: float) -> Change:
    """Nothing is concluded of its tasks."""
    host = run.hosts.get(name)
    if host is None or host.state == hosts.LOST:
        return Change(run)
    if host.state == hosts.UNREACHABLE:
        return Change(run if host.why == why else run.with_host(replace(host, why=why)))
    notes = (("", "host", f"{name} cannot be reached: {why}; its tasks are not changed"),)
    return Change(run.with_host(host.move(hosts.UNREACHABLE, since, now, why)), (), notes)


def losses(run: Run, statuses: Statuses, since: float, now: float) -> Change:
    """What was unreachable for too long is lost. Of its tasks those end with it that a spare takes over, and those that
    are to run once only; the others are as they are when it answers again, for nobody else could do their work."""
    lost = [host.name for host in _at_risk(run) if now >= hosts.lost_at(run.plan, host)]
    if not lost:
        return Change(run)
    changed: list[TaskStatus] = []
    notes: list[tuple[str, str, str]] = []
    for name in lost:
        why = f"{name} could not be reached for {run.plan.host_lost_after_s:g}s ({run.hosts[name].why})"
        run = run.with_host(run.hosts[name].move(hosts.LOST, since, now, why))
        notes.append(("", "host", f"{why} and is lost"))
    taken_over = due(run, statuses)
    for name in statuses.in_order(name for host in lost for name in statuses.on_host(host)):
        status = statuses[name]
        is_there = run.actual.has_task(name) and status.state in state.WITH_PROCESS
        if is_there and name not in taken_over and run.actual.task(name).settings.restart.policy == NEVER:
            error = f"its host is lost: {run.hosts[status.host].why}"
            changed.append(status.ended(Exit(now, error=error, preempted=error)))
            notes.append((name, "ended", error))
    return Change(run, tuple(changed), tuple(notes))


def due(run: Run, statuses: Statuses) -> dict[str, str]:
    """Task -> spare host, of tasks on lost hosts that are wanted still."""
    if run.outcome:
        return {}
    return {name: host for name, host in run.spares.items() if statuses[name].state not in state.ENDED}


def look_again_at(run: Run) -> float | None:
    """When the next host may be lost, by the monotonic clock."""
    return min((hosts.lost_at(run.plan, host) for host in _at_risk(run)), default=None)


def _at_risk(run: Run) -> list[HostStatus]:
    """The hosts that may be lost next. While no other machine answers, it is this one that is cut off."""
    if len(run.away) == len(run.hosts):
        return []
    return [run.hosts[name] for name in sorted(run.away) if run.hosts[name].state == hosts.UNREACHABLE]


def moved(run: Run, statuses: Statuses, addresses: Mapping[str, str], now: float) -> Change:
    """Moves these tasks to their spares, where they have these addresses ("" for none), unless their hosts have come
    back. Every other task whose ClusterSpec is changed by that gets a new process too."""
    spares = {name: host for name, host in due(run, statuses).items() if name in addresses}
    new = {name: addresses[name] for name in spares if addresses[name]}
    peers = {name: addresses[name] for name in map(backups.peer_of, new) if name in addresses}
    after = run.but(moves={**run.moves, **spares}, addresses={**run.addresses, **new, **peers})
    changed: list[TaskStatus] = []
    notes: list[tuple[str, str, str]] = []
    for name, spare in spares.items():
        status, lost = statuses[name], run.actual.task(name).host.name
        why = f"moved from {lost} to {spare}: {run.hosts[lost].why}"
        if status.state in state.WITH_PROCESS:
            status = status.ended(Exit(now, error=f"its host {lost} is lost"))
        changed.append(replace(status, renew=why, waiting_for=""))
        notes.append((name, "moved", why))
    # The other place of a durable task serves meanwhile, and is known: nobody restarts for the new one.
    is_seen = {
        name
        for name, address in new.items()
        if run.addresses.get(name) != address and not backups.other_place(run.plan, name)
    }
    words = f"{' and '.join(new)} moved, and its ClusterSpec changed"
    for name in statuses.in_state(*state.ALIVE) if is_seen else ():
        if name in spares or not after.actual.has_task(name):
            continue
        task = after.actual.task(name)
        if any(expand.is_told_of(task, after.actual.task(other)) for other in is_seen):
            changed.append(replace(statuses[name], renew=words))
    return Change(after, tuple(changed), tuple(notes))


def inherited(run: Run, task: Task) -> Mapping[str, str]:
    """The environment to which a task's own is added: that of the shell of `up`, or another machine's."""
    if task.host.is_local:
        return run.environment
    host = run.hosts.get(task.host.name)
    if host is None:
        # It is not known yet.
        return {}
    return {**expand.thread_defaults(run.plan, host.cores), **host.environment}


def launcher_host(task: Task) -> str:
    """A task's host as the launchers know it: this machine may have any name in the file."""
    return LOCALHOST if task.host.is_local else task.host.name


def at(task: Task, status: TaskStatus) -> str:
    """Where its last process is or was, whatever the file says by now."""
    return status.host or launcher_host(task)


def joined(run: Run, plan: ClusterPlan, joining: Mapping[str, HostStatus]) -> Run:
    """The run with another plan: the machines that come with it, and those that are to be let go."""
    kept = {host.name for host in plan.remote_hosts}
    gone = {host.name: host for host in (*run.parting, *run.plan.remote_hosts) if host.name not in kept}
    # A task that the plan moves is where the plan says, and on no spare any more.
    tasks = {
        task.name
        for task in plan.tasks()
        if run.plan.has_task(task.name) and run.plan.task(task.name).host.name == task.host.name
    }
    names = {host.name for host in plan.hosts}
    return run.but(
        plan=plan,
        former=run.plan,
        hosts={**run.hosts, **joining},
        moves={task: host for task, host in run.moves.items() if task in tasks and host in names},
        parting=tuple(gone.values()),
    )


def parting(run: Run, statuses: Statuses) -> list[str]:
    """The machines that can be let go now: they answer, and nothing of the cluster file runs there any more."""
    busy = {status.host for status in statuses.values() if status.state in state.WITH_PROCESS} if run.parting else set()
    names = [host.name for host in run.parting if host.name not in busy]
    return [name for name in names if name not in run.away]


def parted(run: Run, name: str) -> Run:
    return run.but(
        hosts={each: host for each, host in run.hosts.items() if each != name},
        parting=tuple(host for host in run.parting if host.name != name),
    )
