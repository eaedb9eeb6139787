"""What is known of other machines, and what follows when one cannot be reached. Pure: no clock, no sockets.

    connected <---> unreachable ---(host_lost_after, while other hosts answer)---> lost
        ^------------------------------- it answers again -------------------------'

Of a host that is unreachable nothing is concluded: its tasks probably go on. When no other machine answers either,
it is this one that is cut off, and nobody is lost. The tasks of a lost host move to a spare, or count as ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dtfctl.values.plan import ClusterPlan, HostPlan, Requirements, Task

CONNECTED = "connected"
UNREACHABLE = "unreachable"
LOST = "lost"


@dataclass(frozen=True)
class HostStatus:
    """`since` is the wall clock's, `since_monotonic` this machine's monotonic clock; both in seconds. `found` is what
    the host was found to have when the run began (agent/check.py)."""

    name: str
    state: str = CONNECTED
    since: float = 0.0
    since_monotonic: float = 0.0
    why: str = ""
    found: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """What a program inherits there, as ssh gives it."""
        return dict(self.found.get("environment", {}))

    @property
    def cores(self) -> int:
        return int(self.found.get("cores", 1))

    def move(self, state: str, since: float, now: float, why: str = "") -> HostStatus:
        return replace(self, state=state, since=since, since_monotonic=now, why=why)


def resolved(host: HostPlan, plan: ClusterPlan, found: Mapping[str, Any]) -> HostPlan:
    """The host with the paths that it has there: without an interpreter in the file, that is the one that was found."""
    if host.is_local or not found:
        return host
    at = Task(plan.jobs[0], 0, replace(host, folder=found["folder"]), plan.folder)

    def path(text: str) -> str:
        home = found["environment"].get("HOME", "")
        text = home + text[1:] if text == "~" or text.startswith("~/") else text
        if "/" in text and not text.startswith("/"):
            text = f"{found['folder']}/{text}"
        return at.path(text)

    is_unsaid = host.python == "python3"
    return replace(
        host,
        folder=found["folder"],
        python=found["python"] if is_unsaid else path(host.python),
        venv=path(host.venv) if host.venv else "",
        working_dir=path(host.working_dir),
        address=found.get("interfaces", {}).get(plan.slurm.interface, host.address),
    )


def environments(host: HostPlan, plan: ClusterPlan) -> dict[str, Requirements]:
    """The virtual environments that are to be made on a host, each with its requirements: for its tasks and for those
    that it may take over. Paths are there as good as the `host`'s own are."""
    tasks = [Task(task.job, task.index, host, plan.folder) for task in plan.tasks_for(host.name)]
    found: dict[str, Requirements] = {}
    for task in tasks:
        wanted = task.settings.requirements
        if wanted.files and task.venv:
            before = found.get(task.venv, Requirements())
            files = tuple(dict.fromkeys((*before.files, *map(task.path, wanted.files))))
            found[task.venv] = Requirements(files, python=before.python or wanted.python)
    return found


def lost_at(plan: ClusterPlan, host: HostStatus) -> float:
    """When an unreachable host counts as lost, by the monotonic clock, if another one answers then."""
    return host.since_monotonic + plan.host_lost_after_s


def spares(plan: ClusterPlan, actual: ClusterPlan, hosts: Mapping[str, HostStatus]) -> dict[str, str]:
    """Task -> the spare host that takes it over, of all tasks on lost hosts that have one; `actual` is where tasks
    are, `plan` where they began. A spare takes over from one host only, as many tasks as it has slots for."""
    load: dict[str, int] = {}
    origins: dict[str, set[str]] = {}
    begun = {task.name: task.host.name for task in plan.tasks()}
    for task in actual.tasks():
        load[task.host.name] = load.get(task.host.name, 0) + 1
        if begun[task.name] != task.host.name:
            origins.setdefault(task.host.name, set()).add(begun[task.name])
    chosen: dict[str, str] = {}
    for task in actual.tasks():
        if task.host.name not in hosts or hosts[task.host.name].state != LOST:
            continue
        for spare in task.job.spares:
            slots = actual.host(spare).slots
            has_room = slots is None or load.get(spare, 0) < slots
            others = origins.get(spare, set()) - {begun[task.name]}
            is_there = spare not in hosts or hosts[spare].state == CONNECTED
            if has_room and is_there and not others and spare != task.host.name:
                chosen[task.name] = spare
                load[spare] = load.get(spare, 0) + 1
                origins.setdefault(spare, set()).add(begun[task.name])
                break
    return chosen


def as_found(found: Mapping[str, Mapping[str, Any]], since: float, now: float) -> dict[str, HostStatus]:
    """What the pre-flight says of machines, as the beginning of what is known of them."""
    return {name: HostStatus(name, CONNECTED, since, now, "", dict(host)) for name, host in found.items()}
