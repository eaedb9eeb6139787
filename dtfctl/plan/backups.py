"""Backups of durable parameter servers (`durability: host`): their job, their hosts, and what tasks must know. Pure.

Each task of the ps job has two places on two hosts. The second one is a task of a job of its own, `ps-backup`, which
no file names. Both run the same program, as the same task of the ClusterSpec; which of them serves they agree on
themselves (runtime/durability.md). Each place has a second port. The other place, the supervisor and commands reach it
there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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


def kept(old: ClusterPlan, new: ClusterPlan) -> ClusterPlan:
    """The new plan, where each place of a durable ps stays where it is as long as the file lets it: places were moved
    by hand or by dtfctl, and a file that says nothing else is no reason to move them back.

    Raises ValueError when both places of one ps would move at once, which would lose its state.
    """
    hosts = [host.name for host in (*new.hosts, *new.idle_hosts)]
    former = {job.name: job for job in old.jobs}
    jobs = {job.name: job for job in new.jobs}
    for backup in new.jobs:
        before = former.get(backup.name), former.get(backup.backs_up)
        if not backup.backs_up or before[0] is None or before[1] is None or not before[0].backs_up:
            continue
        primary = jobs[backup.backs_up]
        # Either place may be on the hosts of both jobs: which of them serves changes.
        given_hosts = (place.host for job in (primary, backup) for place in job.places)
        wanted = dict.fromkeys((*primary.candidates, *backup.candidates, *given_hosts))
        candidates = [name for name in wanted if name in hosts]
        pairs = list(zip(primary.places, backup.places, strict=True))
        for index, were in enumerate(zip(before[1].places, before[0].places, strict=True)):
            if index < len(pairs):
                pairs[index] = _kept_pair(f"{primary.name}:{index}", pairs[index], were, candidates)
        jobs[primary.name] = replace(primary, places=tuple(place for place, _ in pairs))
        jobs[backup.name] = replace(backup, places=tuple(place for _, place in pairs))
    return with_jobs(new, list(jobs.values()))


def _kept_pair(
    name: str, given: tuple[Place, Place], were: tuple[Place, Place], candidates: list[str]
) -> tuple[Place, Place]:
    """The places of one ps: as the file has `given` them, on the hosts where they `were`."""
    stays = [place.host in candidates for place in were]
    if not any(stays):
        raise ValueError(
            f"both places of {name} would move at once, and its state would be lost; keep "
            f"{were[0].host} or {were[1].host} in the cluster file until dtfctl drain has moved the other one"
        )
    first, second = (
        replace(place, host=former.host) if is_kept else place
        for place, former, is_kept in zip(given, were, stays, strict=True)
    )
    if first.host != second.host:
        return first, second
    free = [each for each in candidates if each != first.host]
    if not free:
        raise ValueError(f'"durability: host" needs a second host for {name} beside {first.host}')
    return (first, replace(second, host=free[0])) if stays[0] else (replace(first, host=free[0]), second)


def with_jobs(plan: ClusterPlan, jobs: Sequence[JobPlan]) -> ClusterPlan:
    """The plan with other jobs; hosts that have no task and are nobody's spare are idle."""
    hosts = {host.name: host for host in (*plan.hosts, *plan.idle_hosts)}
    used = {place.host for job in jobs for place in job.places} | {name for job in jobs for name in job.spares}
    return replace(
        plan,
        jobs=tuple(jobs),
        hosts=tuple(host for host in hosts.values() if host.name in used),
        idle_hosts=tuple(host for host in hosts.values() if host.name not in used),
    )


def known_addresses(plan: ClusterPlan, former: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str]:
    """The former addresses, with those that the places of durable ps have now: who was given the former ones follows
    a place that moves (runtime/durability.md), and needs no new process for it.
    """
    names = {task.name for task in plan.tasks() if is_place(plan, task)}
    names |= {peer_of(name) for name in names}
    return {name: now.get(name, address) if name in names else address for name, address in former.items()}


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
