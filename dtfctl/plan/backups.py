"""Backups of durable parameter servers (`durability: host`): their job, their hosts, and what tasks must know. Pure.

Each task of the ps job has two places on two hosts. The second one is a task of a job of its own, `ps-backup`, which
no file names. Both run the same program, as the same task of the ClusterSpec; which of them serves they agree on
themselves (runtime/durability.md). Each place has a second port. The other place, the supervisor and commands reach it
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from dtfctl.values.plan import HOST, ClusterPlan, JobPlan, Place, Task

PLACES_VARIABLE, PLACE_VARIABLE = "DTF_DURABILITY_PLACES", "DTF_DURABILITY_PLACE"
SUFFIX = "-backup"
_PEER = "-peer"


def is_durable_on_hosts(job: JobPlan) -> bool:
    """Whether the tasks of a job are to have backups on other hosts."""
    return job.stops_last and not job.backs_up and job.settings.durability == HOST


def backup_of(job: JobPlan, hosts: Iterable[str], others: Iterable[Place] = ()) -> JobPlan:
    """The job of the backups: each on the host with the fewest tasks that does not have its primary. What it had so far
    is in `others`, in the order of the tasks.

    Raises ValueError, in words for the user, where there is no other host.
    """
    names, former = list(dict.fromkeys(hosts)), list(others)
    load = Counter(place.host for place in job.places)
    places = []
    for index, primary in enumerate(job.places):
        candidates = [name for name in names if name != primary.host]
        if not candidates:
            raise ValueError(
                f'"durability: host" needs a second host for the backup of {job.name}:{index}; the only one is '
                f"{primary.host}"
            )
        kept = former[index] if index < len(former) and former[index].host in candidates else None
        host = kept.host if kept else min(candidates, key=lambda name: load[name])
        load[host] += 1
        places.append(kept or Place(host))
    return replace(
        job,
        name=job.name + SUFFIX,
        backs_up=job.name,
        places=tuple(places),
        port_range=None,
        spares=(),
        candidates=tuple(names),
    )


def peer_of(name: str) -> str:
    """The name under which the second port of a place is known: ps-peer:0 of ps:0."""
    job, _, index = name.rpartition(":")
    return f"{job}{_PEER}:{index}"


def is_place(plan: ClusterPlan, task: Task) -> bool:
    """Whether a task is one of the two places of a durable one."""
    return bool(task.job.backs_up) or any(job.backs_up == task.job.name for job in plan.jobs)


def other_place(plan: ClusterPlan, name: str) -> str:
    """The name of the task that is the other place; "" for a task without one."""
    job, _, index = name.rpartition(":")
    for each in plan.jobs:
        if each.backs_up and job in (each.name, each.backs_up):
            return f"{each.backs_up if job == each.name else each.name}:{index}"
    return ""


def settings_of(plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> dict[str, str]:
    """What the environment of a task says of the places: all of them, and for a place which one it is."""
    listed = []
    for job in plan.jobs:
        if not job.backs_up:
            continue
        for index in range(job.replicas):
            pair = [_address(f"{name}:{index}", addresses) for name in (job.backs_up, job.name)]
            listed.append(f"{job.backs_up}:{index}={','.join(pair)}")
    if not listed:
        return {}
    found = {PLACES_VARIABLE: ";".join(listed)}
    if is_place(plan, task):
        found[PLACE_VARIABLE] = "1" if task.job.backs_up else "0"
    return found


def _address(name: str, addresses: Mapping[str, str]) -> str:
    return f"{addresses.get(name, '')}/{addresses.get(peer_of(name), '').rpartition(':')[2]}"
