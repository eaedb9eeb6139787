"""Moves of tasks between hosts: which ones empty a host or spread parameter servers evenly, and in which order. Pure.

A durable ps has two places (plan/backups.py), and moves live: the place that is the backup is stopped and started on
another host, where it is filled; when it is in sync it may become the primary. So each plan of a ps is a few steps:

    promote ps-backup:0    it serves, and ps:0 is the backup: a pause of a moment
    move ps:0 to three     nobody waits for it; the task has no backup until it is in sync there

`moved` gives the plan of the cluster after one step; the CLI carries the steps out one after another (control/moving).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dtfctl.plan import backups
from dtfctl.values.plan import ClusterPlan, JobPlan, Place, Task, unreachable_task
from dtfctl.values.word import Word

BYTES_MIN = 1 << 20
"""A ps counts as many at least: those that hold nothing yet are spread by number."""

GAIN_MIN = 0.02
"""A change of hosts must make the spread better by this part, or it is not worth a move."""

STEPS_MAX = 1000
_SERVES, _HOLDS = "serves", "holds"


class Act(Word):
    """What a step does with a task."""

    PROMOTE = "promote"
    MOVE = "move"


@dataclass(frozen=True)
class Step:
    """`host` is the new one of a move, "" for a promotion."""

    act: Act
    task: str
    host: str = ""
    cause: str = ""

    def __str__(self) -> str:
        to = f"to {self.host}" if self.host else "serves"
        return f"{self.act:<10}{self.task:<16}{to:<16}{self.cause}".rstrip()


@dataclass(frozen=True)
class Held:
    """What a durable ps is at the moment: the name of the place that serves, and the bytes of its variables."""

    primary: str
    bytes: int = 0


@dataclass(frozen=True)
class _Pair:
    """The two places of a ps: names and hosts, the primary's first."""

    primary: str
    backup: str
    at: tuple[str, str]
    bytes: int
    candidates: tuple[str, ...]

    @property
    def weight(self) -> int:
        return max(self.bytes, BYTES_MIN)

    def swapped(self) -> _Pair:
        return replace(self, primary=self.backup, backup=self.primary, at=(self.at[1], self.at[0]))

    def steps_to(self, wanted: tuple[str, str], cause: str) -> tuple[Step, ...]:
        """What makes the primary and the backup run on these two hosts; the primary itself never stops first."""
        here, there = self.at
        primary, backup = wanted
        if wanted == self.at:
            return ()
        promote = Step(Act.PROMOTE, self.backup, "", cause)
        if primary == here:
            return (Step(Act.MOVE, self.backup, backup, cause),)
        if primary == there:
            follow = () if backup == here else (Step(Act.MOVE, self.primary, backup, cause),)
            return (promote, *follow)
        if backup == there:
            again = Step(Act.PROMOTE, self.primary, "", cause)
            return (promote, Step(Act.MOVE, self.primary, primary, cause), again)
        first = Step(Act.MOVE, self.backup, primary, cause)
        follow = () if backup == here else (Step(Act.MOVE, self.primary, backup, cause),)
        return (first, promote, *follow)

    def after(self, wanted: tuple[str, str]) -> _Pair:
        """This pair on these hosts; which name serves there follows from the steps."""
        promotions = sum(step.act == Act.PROMOTE for step in self.steps_to(wanted, ""))
        changed = self.swapped() if promotions % 2 else self
        return replace(changed, at=wanted)


def moved(plan: ClusterPlan, tasks: Mapping[str, str], without: Collection[str] = ()) -> ClusterPlan:
    """The plan with these tasks on these hosts. The hosts `without` get no tasks any more.

    Raises ValueError, in words for the user, where a task cannot be there.
    """
    hosts = {host.name: host for host in (*plan.hosts, *plan.idle_hosts)}
    places = {job.name: list(job.places) for job in plan.jobs}
    for name in (*without, *tasks.values()):
        if name not in hosts:
            raise ValueError(f"no host is called {name} (hosts: {', '.join(hosts)})")
    for name, host in tasks.items():
        if not plan.has_task(name):
            raise ValueError(f"no task is called {name} (tasks: {', '.join(each.name for each in plan.tasks())})")
        task = plan.task(name)
        others = [each for job, listed in places.items() for index, each in enumerate(listed)
                  if f"{job}:{index}" != name]  # fmt: skip
        slots = hosts[host].slots
        if task.place.host != host and slots is not None and _count(others, host) >= slots:
            raise ValueError(f"no slot is left for {name} on {host}")
        places[task.job.name][task.index] = _placed(task, host, others)
    for name in tasks:
        other = backups.other_place(plan, name)
        if other and _at(places, name) == _at(places, other):
            raise ValueError(f"{other}, the other place of {name}, is on {_at(places, name)}; name another host")
    jobs = []
    for job in plan.jobs:
        names = [each for each in _candidates(job) if each not in without]
        spares = tuple(each for each in job.spares if each not in without)
        candidates = tuple(names) if without else job.candidates
        jobs.append(replace(job, places=tuple(places[job.name]), candidates=candidates, spares=spares))
    found = backups.with_jobs(plan, jobs)
    hidden = unreachable_task(found)
    if hidden is not None:
        raise ValueError(
            f"{hidden.name} runs on {hidden.host.name}, which other hosts cannot reach at {hidden.advertised_host}; "
            "give it an address in the cluster file"
        )
    return found


def moves_of(plan: ClusterPlan, tasks: Mapping[str, str], held: Mapping[str, Held]) -> tuple[Step, ...]:
    """The steps that bring tasks to these hosts. The place of a durable ps that serves there before serves there after.

    Raises ValueError, in words for the user.
    """
    steps: list[Step] = []
    pairs = {name: pair for pair in _pairs(plan, held) for name in (pair.primary, pair.backup)}
    for name, host in tasks.items():
        moved(plan, {name: host})
        pair = pairs.get(name)
        if pair is None:
            steps += [Step(Act.MOVE, name, host)] if plan.task(name).host.name != host else []
        else:
            steps += pair.steps_to((host, pair.at[1]) if name == pair.primary else (pair.at[0], host), "")
    return tuple(steps)


def drained(plan: ClusterPlan, host: str, held: Mapping[str, Held]) -> tuple[Step, ...]:
    """The steps that leave no task on a host. `held` has the durable ps by name.

    Raises ValueError, in words for the user, for a task that may run nowhere else.
    """
    names = {each.name for each in (*plan.hosts, *plan.idle_hosts)}
    if host not in names:
        raise ValueError(f"no host is called {host} (hosts: {', '.join(sorted(names))})")
    cause = f"{host} is drained"
    pairs = _pairs(plan, held)
    load = _load(pairs)
    steps: list[Step] = []
    for pair in pairs:
        if host not in pair.at:
            continue
        stays = pair.at[1] if pair.at[0] == host else pair.at[0]
        free = [name for name in pair.candidates if name not in (host, stays)]
        if not free:
            raise ValueError(
                f"{pair.primary if pair.at[0] == host else pair.backup} has no host to go to: its job may run on "
                f"{', '.join(pair.candidates)}, and its other place is on {stays}; add a host to the cluster file"
            )
        new = min(free, key=lambda name: load[name, _HOLDS])
        wanted = (stays, new)
        steps += pair.steps_to(wanted, cause)
        load[new, _HOLDS] += pair.weight
    rest = [task for task in plan.tasks() if task.host.name == host and not backups.is_place(plan, task)]
    counts = Counter(task.host.name for task in plan.tasks())
    counts.update(step.host for step in steps if step.host)
    slots = {each.name: each.slots for each in (*plan.hosts, *plan.idle_hosts)}
    for task in rest:
        free = [
            name for name in _candidates(task.job)
            if name != host and (slots.get(name) is None or counts[name] < (slots[name] or 0))
        ]  # fmt: skip
        if not free:
            raise ValueError(
                f"{task.name} has no host to go to: its job may run on {', '.join(_candidates(task.job))}, and no "
                "other one of these has a free slot; scale the job down, or add a host to the cluster file"
            )
        new = min(free, key=lambda name: counts[name])
        steps.append(Step(Act.MOVE, task.name, new, cause))
        counts[new] += 1
    return tuple(steps)


def balanced(plan: ClusterPlan, held: Mapping[str, Held]) -> tuple[Step, ...]:
    """The steps that spread the durable ps over the hosts that they may run on.

    Each host has two loads: the bytes that serve there, for the messages, and the bytes of all places, for its memory.
    Each change lowers the sum of their squares by a part of GAIN_MIN at least for each ps and step, the largest first.
    """
    pairs = _pairs(plan, held)
    steps: list[Step] = []
    while len(steps) < STEPS_MAX:
        load = _load(pairs)
        total = sum(value * value for value in load.values())
        best: tuple[float, int, tuple[str, str]] | None = None
        for number, pair in enumerate(pairs):
            for wanted in _choices(pair):
                cost = len(pair.steps_to(wanted, ""))
                after = Counter(load)
                _add(after, pair, -1)
                _add(after, pair.after(wanted), 1)
                gain = (total - sum(value * value for value in after.values())) / cost
                if gain > GAIN_MIN * total / max(1, len(pairs)) and (best is None or gain > best[0]):
                    best = gain, number, wanted
        if best is None:
            break
        _, number, wanted = best
        pair = pairs[number]
        steps += pair.steps_to(wanted, f"{pair.bytes / 1e6:,.0f} MB")
        pairs[number] = pair.after(wanted)
    return tuple(steps)


def loads(plan: ClusterPlan, held: Mapping[str, Held]) -> dict[str, tuple[int, int]]:
    """Host -> (bytes of the ps that serve there, bytes of all places there), of all hosts that ps may run on."""
    found: dict[str, tuple[int, int]] = {}
    for pair in _pairs(plan, held):
        for name in pair.candidates:
            found.setdefault(name, (0, 0))
        for name, serves in zip(pair.at, (1, 0), strict=True):
            serving, every = found.get(name, (0, 0))
            found[name] = (serving + serves * pair.bytes, every + pair.bytes)
    return found


def after(plan: ClusterPlan, held: Mapping[str, Held], steps: Sequence[Step]) -> tuple[ClusterPlan, dict[str, Held]]:
    """What the steps lead to."""
    now = dict(held)
    for step in steps:
        if step.act == Act.MOVE:
            plan = moved(plan, {step.task: step.host})
        else:
            name = _primary_name(plan, step.task)
            now[name] = replace(now[name], primary=step.task)
    return plan, now


def _primary_name(plan: ClusterPlan, task: str) -> str:
    """The name by which `held` knows the ps of a place."""
    job = plan.task(task).job
    return f"{job.backs_up}:{plan.task(task).index}" if job.backs_up else task


def _pairs(plan: ClusterPlan, held: Mapping[str, Held]) -> list[_Pair]:
    found = []
    for job in plan.jobs:
        if not job.backs_up:
            continue
        primaries = next(each for each in plan.jobs if each.name == job.backs_up)
        candidates = tuple(dict.fromkeys((*_candidates(primaries), *_candidates(job))))
        for index in range(min(job.replicas, primaries.replicas)):
            names = f"{job.backs_up}:{index}", f"{job.name}:{index}"
            state = held.get(names[0], Held(names[0]))
            pair = _Pair(*names, (primaries.places[index].host, job.places[index].host), state.bytes, candidates)
            found.append(pair.swapped() if state.primary == names[1] else pair)
    return found


def _choices(pair: _Pair) -> Iterator[tuple[str, str]]:
    for primary in pair.candidates:
        for backup in pair.candidates:
            if primary != backup and (primary, backup) != pair.at:
                yield primary, backup


def _load(pairs: Sequence[_Pair]) -> Counter[tuple[str, str]]:
    load: Counter[tuple[str, str]] = Counter()
    for pair in pairs:
        _add(load, pair, 1)
    return load


def _add(load: Counter[tuple[str, str]], pair: _Pair, sign: int) -> None:
    load[pair.at[0], _SERVES] += sign * pair.weight
    for host in pair.at:
        load[host, _HOLDS] += sign * pair.weight


def _candidates(job: JobPlan) -> tuple[str, ...]:
    return job.candidates or tuple(dict.fromkeys(place.host for place in job.places))


def _placed(task: Task, host: str, others: Sequence[Place]) -> Place:
    place = task.place
    if place.host == host:
        return place
    if place.cpus or place.gpus:
        raise ValueError(
            f"{task.name} has cores or GPUs dealt out: change its host in the cluster file, then dtfctl up"
        )
    if place.port and any(each.port == place.port and each.host == host for each in others):
        raise ValueError(f"port {place.port} for {task.name} on {host} is another task's")
    return replace(place, host=host)


def _count(places: Sequence[Place], host: str) -> int:
    return sum(each.host == host for each in places)


def _at(places: Mapping[str, Sequence[Place]], name: str) -> str:
    job, _, index = name.rpartition(":")
    return places[job][int(index)].host
