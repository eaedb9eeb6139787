"""What becomes of the tasks when another machine cannot be reached, is lost, or comes back. Pure: values in and out.

The supervisor takes each Change in as a whole; hosts.py says which hosts are lost and which spare takes over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from dtfctl import expand, hosts, state
from dtfctl.hosts import HostStatus
from dtfctl.plan import LOCALHOST, Task
from dtfctl.store import Run
from dtfctl.task import Exit, TaskStatus

Statuses = Mapping[str, TaskStatus]


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
    return Change(_with(run, host.move(hosts.CONNECTED, since, now)), (), notes)


def unreachable(run: Run, name: str, why: str, since: float, now: float) -> Change:
    """Nothing is concluded of its tasks."""
    host = run.hosts.get(name)
    if host is None or host.state == hosts.LOST:
        return Change(run)
    if host.state == hosts.UNREACHABLE:
        return Change(run if host.why == why else _with(run, replace(host, why=why)))
    notes = (("", "host", f"{name} cannot be reached: {why}; its tasks are left as they are"),)
    return Change(_with(run, host.move(hosts.UNREACHABLE, since, now, why)), (), notes)


def losses(run: Run, statuses: Statuses, since: float, now: float) -> Change:
    """What was unreachable for too long is lost; its tasks that no spare takes over have ended with it."""
    lost = hosts.newly_lost(run.plan, run.hosts, now)
    changed: list[TaskStatus] = []
    notes: list[tuple[str, str, str]] = []
    for name in lost:
        why = f"{name} could not be reached for {run.plan.host_lost_after_s:g}s ({run.hosts[name].why})"
        run = _with(run, run.hosts[name].move(hosts.LOST, since, now, why))
        notes.append(("", "host", f"{why} and is lost"))
    taken_over = due(run, statuses) if lost else {}
    for task in run.actual.tasks() if lost else ():
        status = statuses[task.name]
        if task.host.name in lost and status.state in state.WITH_PROCESS and task.name not in taken_over:
            error = f"its host is lost: {run.hosts[task.host.name].why}"
            changed.append(status.move("exit", exit=Exit(now, error=error, preempted=error), pid=None, waiting_for=""))
            notes.append((task.name, "ended", error))
    return Change(run, tuple(changed), tuple(notes))


def due(run: Run, statuses: Statuses) -> dict[str, str]:
    """Task -> spare host, of tasks on lost hosts that are wanted still."""
    if run.outcome or not any(host.state == hosts.LOST for host in run.hosts.values()):
        return {}
    chosen = hosts.spares(run.plan, run.actual, run.hosts)
    return {name: host for name, host in chosen.items() if statuses[name].state not in state.ENDED}


def moved(run: Run, statuses: Statuses, addresses: Mapping[str, str], now: float) -> Change:
    """Moves these tasks to their spares, where they have these addresses ("" for none), unless their hosts have come
    back. Every other task whose ClusterSpec is changed by that gets a new process too."""
    spares = {name: host for name, host in due(run, statuses).items() if name in addresses}
    new = {name: addresses[name] for name in spares if addresses[name]}
    after = replace(run, moves={**run.moves, **spares}, addresses={**run.addresses, **new})
    changed: list[TaskStatus] = []
    notes: list[tuple[str, str, str]] = []
    for name, spare in spares.items():
        status, lost = statuses[name], run.actual.task(name).host.name
        why = f"moved from {lost} to {spare}: {run.hosts[lost].why}"
        if status.state in state.WITH_PROCESS:
            status = status.move("exit", exit=Exit(now, error=f"its host {lost} is lost"), pid=None)
        changed.append(replace(status, renew=why, waiting_for=""))
        notes.append((name, "moved", why))
    for task in after.actual.tasks():
        status = statuses[task.name]
        if task.name in spares or status.state not in (state.STARTING, state.RUNNING):
            continue
        before = expand.cluster_spec(run.plan, task, run.addresses)
        if before != expand.cluster_spec(after.plan, task, after.addresses):
            words = f"{' and '.join(new)} moved, and it must know the new address"
            changed.append(replace(status, renew=words))
    return Change(after, tuple(changed), tuple(notes))


def away(run: Run) -> frozenset[str]:
    """The hosts that cannot be asked for anything now."""
    return frozenset(host.name for host in run.hosts.values() if host.state != hosts.CONNECTED)


def inherited(run: Run, task: Task) -> Mapping[str, str]:
    """The environment on top of which a task gets its own: that in which `up` was typed, or another machine's."""
    host = run.hosts.get(task.host.name)
    if host is None or task.host.is_local:
        return run.environment
    return {**expand.thread_defaults(run.plan, host.cores), **host.environment}


def launcher_host(task: Task) -> str:
    """A task's host as the launchers know it: this machine may have any name in the file."""
    return LOCALHOST if task.host.is_local else task.host.name


def _with(run: Run, host: HostStatus) -> Run:
    return replace(run, hosts={**run.hosts, host.name: host})
