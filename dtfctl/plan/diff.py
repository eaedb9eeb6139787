"""What another cluster file would change in a running cluster: which tasks start, restart or stop, each with its cause.

A task is restarted when what its process was given changes: its program, its environment, its place, or what it is told
of the others. All else takes effect without anybody noticing. Pure; the text is what the user is shown.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from dtfctl import hints
from dtfctl.plan import backups, expand
from dtfctl.values.plan import (
    ELASTIC,
    SPARSE,
    ClusterPlan,
    HostPlan,
    JobPlan,
    Place,
    Task,
    differences,
    unreachable_task,
)
from dtfctl.values.word import Word

_AT_ONCE = ("restart", "readiness", "liveness", "preemption", "grace_period_s", "stop_signal", "logs")
"""Settings of a task that its process does not know of."""

_SPECS = ("TF_CONFIG", "CLUSTER_SPEC")


class Effect(Word):
    """Of a change on a task."""

    START = "start"
    RESTART = "restart"
    STOP = "stop"
    ADOPT = "adopt"
    """It takes effect in the supervision of the running process."""


@dataclass(frozen=True)
class Given:
    """A plan as it is carried out, with the addresses of its tasks and the values of its secrets."""

    plan: ClusterPlan
    addresses: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Change:
    """Of a task, or of the cluster (then `task` is empty)."""

    verb: Effect
    task: str
    cause: str

    @property
    def makes_process(self) -> bool:
        return self.verb in (Effect.START, Effect.RESTART)

    def __str__(self) -> str:
        return f"{self.verb:<10}{self.task or 'the cluster':<12}{self.cause}"


def between(old: Given, new: Given, inherited: Callable[[Task], Mapping[str, str]]) -> tuple[Change, ...]:
    """In the order of the new plan, then what was removed. `inherited` is the environment below each task's own."""
    before = {task.name: task for task in old.plan.tasks()}
    given = old
    old = replace(old, addresses=backups.known_addresses(new.plan, old.addresses, new.addresses))
    told = _Told(old, new)
    found: list[Change] = []
    for task in new.plan.tasks():
        former = before.pop(task.name, None)
        if former is None:
            found.append(Change(Effect.START, task.name, f"added: {_sizes(old.plan, new.plan, task)}"))
        elif causes := list(_why_restart(old, former, new, task, inherited, told, given.addresses.get(task.name))):
            found.append(Change(Effect.RESTART, task.name, "; ".join(causes)))
        elif changed := [key for key in _AT_ONCE if getattr(former.settings, key) != getattr(task.settings, key)]:
            words = ", ".join(key.removesuffix("_s") for key in changed)
            found.append(Change(Effect.ADOPT, task.name, f"{words}: from now on"))
    for name, task in reversed(before.items()):
        found.append(Change(Effect.STOP, name, f"removed: {_sizes(old.plan, new.plan, task)}"))
    for difference in _of_the_cluster(old.plan, new.plan):
        found.append(Change(Effect.ADOPT, "", f"{difference}, from now on"))
    return tuple(found)


def _sizes(old: ClusterPlan, new: ClusterPlan, task: Task) -> str:
    """How many tasks the job of `task` has and will have, whether a file or `scale` asked for it."""
    job = task.name.partition(":")[0]
    before, after = (next((len(each.places) for each in plan.jobs if each.name == job), 0) for plan in (old, new))
    if not before or not after:
        return f"the job {job} is {'new' if after else 'gone'}"
    return f"{job} has {after} {'task' if after == 1 else 'tasks'}, before {before}"


def _why_restart(
    old: Given,
    former: Task,
    new: Given,
    task: Task,
    inherited: Callable[[Task], Mapping[str, str]],
    news: _Told,
    address: str | None,
) -> Iterator[str]:
    former, task = _without_others(former, task)
    moves = former.host.name != task.host.name
    if moves:
        yield f"it moves from {former.host.name} to {task.host.name}"
    told = news.of(former, task)
    if told:
        avoid = "" if task.settings.cluster_spec == SPARSE else " (cluster_spec: elastic or sparse may avoid this)"
        yield f"its ClusterSpec changes: {', '.join(told)}{avoid}"
    if moves:
        # All else is another there as a matter of course.
        return
    if not told and expand.argv(old.plan, former, old.addresses) != expand.argv(new.plan, task, new.addresses):
        yield "its command line changes"
    given = expand.environment(old.plan, former, old.addresses, inherited(former), old.secrets)
    wanted = expand.environment(new.plan, task, new.addresses, inherited(task), new.secrets)
    keys = sorted(key for key in given.keys() | wanted.keys() if given.get(key) != wanted.get(key))
    # Of secrets only the names are ever said.
    keys = [key for key in keys if not (told and key in _SPECS)]
    if keys:
        yield f"its environment changes: {', '.join(keys)}"
    for what, one, other in (
        ("Python environment", former.settings.requirements, task.settings.requirements),
        ("folder", former.working_dir, task.working_dir),
        ("limits", former.settings.limits, task.settings.limits),
        ("cores", former.place.cpus, task.place.cpus),
        ("address to bind", former.bind_host, task.bind_host),
    ):
        if one != other:
            verb = "change" if what.endswith("s") and what != "address to bind" else "changes"
            yield f"its {what} {verb}"
    if not told and address != new.addresses.get(task.name):
        yield f"its address changes to {new.addresses.get(task.name, 'none')}"


def _without_others(former: Task, task: Task) -> tuple[Task, Task]:
    """Two lives of an elastic task, as they differ for it: the tasks that join and leave are no news to it, the ps are.
    A process is given all addresses when it starts.
    """
    if former.settings.cluster_spec != ELASTIC or task.settings.cluster_spec != ELASTIC:
        return former, task
    return _sparse(former), _sparse(task)


def _sparse(task: Task) -> Task:
    settings = replace(task.settings, cluster_spec=SPARSE)
    return replace(task, job=replace(task.job, overrides={**task.job.overrides, task.index: settings}))


class _Told:
    """What the ClusterSpecs of tasks say that they did not before. A full one is the same for all: one look."""

    def __init__(self, old: Given, new: Given) -> None:
        self._old = old
        self._new = new
        self._of_all: list[str] | None = None

    def of(self, former: Task, task: Task) -> list[str]:
        if SPARSE in (former.settings.cluster_spec, task.settings.cluster_spec):
            return self._look(former, task)
        if self._of_all is None:
            self._of_all = self._look(former, task)
        return self._of_all

    def _look(self, former: Task, task: Task) -> list[str]:
        before = _addresses(expand.cluster_spec(self._old.plan, former, self._old.addresses))
        after = _addresses(expand.cluster_spec(self._new.plan, task, self._new.addresses))
        return list(_news(before, after))


def _addresses(spec: expand.ClusterSpec) -> dict[str, str]:
    return {
        f"{job}:{index}": address
        for job, known in spec.items()
        for index, address in (enumerate(known) if isinstance(known, list) else known.items())
    }


def _news(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    added = [name for name in after if name not in before]
    removed = [name for name in before if name not in after]
    moved = [name for name in after if before.get(name, after[name]) != after[name]]
    if added:
        yield f"{_names(added)} {_were(added)} added"
    if removed:
        yield f"{_names(removed)} {_were(removed)} removed"
    if moved:
        yield f"{_names(moved)} moved"


def _were(names: list[str]) -> str:
    return "was" if len(names) == 1 else "were"


def _names(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"


_OF_THE_CLUSTER = ("autoscale", "success", "success_rule", "host_lost_after_s", "fence_after_s", "checkpoint_dir")


def _of_the_cluster(old: ClusterPlan, new: ClusterPlan) -> Iterator[str]:
    for difference in differences(old, new):
        if difference.partition(":")[0] in _OF_THE_CLUSTER:
            yield difference


def scaled(
    plan: ClusterPlan, job_name: str, replicas: int, only: Collection[str] | None = None
) -> ClusterPlan:
    """The plan with so many tasks in a job. New ones go to those of the hosts that the file gives it, used so far or
    not, that have the fewest of its tasks; a host that has none any more is idle. With `only` no other hosts count.

    Raises ValueError, in words for the user, where only the cluster file can say what they get.
    """
    job = _scalable(plan, job_name, replicas)
    hosts = {host.name: host for host in (*plan.hosts, *plan.idle_hosts)}
    others = [place for each in plan.jobs if each is not job for place in each.places]
    places = list(job.places[:replicas])
    while len(places) < replicas:
        places.append(_next_place(job, places, others, hosts, only))
    after = _with_places(plan, job, places)
    backed = next((each for each in plan.jobs if each.backs_up == job_name), None)
    if backed is not None:
        primaries = next(each for each in after.jobs if each.name == job_name)
        wanted = backups.backup_of(primaries, backed.candidates, backed.places)
        after = _with_places(after, backed, list(wanted.places))
    _check_reachable(after)
    return after


def _scalable(plan: ClusterPlan, job_name: str, replicas: int) -> JobPlan:
    """The job of that name. Raises ValueError where it cannot have so many tasks."""
    job = next((job for job in plan.jobs if job.name == job_name), None)
    if job is None:
        raise ValueError(f"no job is called {job_name} (jobs: {', '.join(each.name for each in plan.jobs)})")
    if job.backs_up:
        raise ValueError(f"{job_name} follows {job.backs_up}: scale that")
    if replicas < 1:
        stop = hints.command("stop", plan.name, job_name)
        raise ValueError(f"{job_name} needs at least one task; to stop all of them: {stop}")
    if replicas > len(job.places) and any(place.gpus or place.cpus for place in job.places):
        up = hints.command("up", plan.file)
        raise ValueError(f"{job_name} has cores or GPUs dealt out: change replicas in {plan.file}, then {up}")
    return job


def _next_place(
    job: JobPlan,
    places: list[Place],
    others: list[Place],
    hosts: Mapping[str, HostPlan],
    only: Collection[str] | None,
) -> Place:
    """Where the next task of a job runs that has `places` so far; `others` are those of all other jobs.

    Raises ValueError when no host has a slot left, or its port is taken.
    """
    own, all_of_them = (Counter(place.host for place in some) for some in (places, [*others, *places]))
    names = job.candidates or tuple(dict.fromkeys(place.host for place in job.places))
    names = tuple(name for name in names if only is None or name in only)
    free = [name for name in names if hosts[name].slots is None or all_of_them[name] < (hosts[name].slots or 0)]
    if not free:
        raise ValueError(f"no slot is left for {job.name}:{len(places)} on {', '.join(names)}")
    host = min(free, key=lambda name: (own[name], all_of_them[name]))
    ports = [place.port for place in places if place.host == host]
    port = max(ports) + 1 if any(ports) else min(place.port for place in job.places)
    if port and any(place.port == port and place.host == host for place in others):
        raise ValueError(f"port {port} for {job.name}:{len(places)} is another task's: name it in the cluster file")
    return Place(host, port, gpus=places[0].gpus)


def _with_places(plan: ClusterPlan, job: JobPlan, places: list[Place]) -> ClusterPlan:
    """The plan with these places for a job; hosts that have no task and are nobody's spare are idle."""
    overrides = {index: settings for index, settings in job.overrides.items() if index < len(places)}
    wanted = replace(job, places=tuple(places), overrides=overrides)
    return backups.with_jobs(plan, [wanted if each is job else each for each in plan.jobs])


def _check_reachable(plan: ClusterPlan) -> None:
    """Raises ValueError for a task whose address other hosts cannot reach."""
    task = unreachable_task(plan)
    if task is not None:
        raise ValueError(
            f"{task.name} runs on {task.host.name}, which other hosts cannot reach at {task.advertised_host}; "
            "give it an address in the cluster file"
        )
