"""What the cluster file means, as frozen values, and their way through JSON (to the daemon and into its store).

Owns the values and nothing else: config.py makes them from text, expand.py turns them into command lines.
Durations are seconds, paths are absolute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

ALWAYS = "always"
ON_FAILURE = "on-failure"
NEVER = "never"
POLICIES = (ALWAYS, ON_FAILURE, NEVER)

LOCALHOST = "localhost"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class RestartPolicy:
    """When an ended task is started again. At most `attempts` restarts within `window_s`; the n-th waits
    `backoff_s * 2**(n-1)`, at most `backoff_max_s`; a task that was ready for `healthy_s` begins anew."""

    policy: str = ON_FAILURE
    attempts: int = 5
    window_s: float = 600.0
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    healthy_s: float = 60.0


@dataclass(frozen=True)
class Probe:
    """How a task is known to be ready: `kind` is grpc, tcp, command, file or none; `target` the command or path."""

    kind: str = "grpc"
    target: str = ""
    interval_s: float = 0.1
    timeout_s: float = 2.0


@dataclass(frozen=True)
class JobPlan:
    """One job: `replicas` tasks that run the same program. `program` is one shell line, or an argv.

    `ports` is None when dtfctl chooses them, () when the job has no address at all, else one per task.
    """

    name: str
    replicas: int
    program: str | tuple[str, ...]
    python: str
    working_dir: str
    environment: dict[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] | None = None
    restart: RestartPolicy = RestartPolicy()
    readiness: Probe = Probe()
    grace_period_s: float = 10.0

    @property
    def has_address(self) -> bool:
        return self.ports != ()

    @property
    def is_done_once(self) -> bool:
        """Training that has come to its end is not begun again, whatever the restart policy."""
        return self.name in ("chief", "master", "worker")

    @property
    def stops_last(self) -> bool:
        """Parameter servers outlive the tasks that save their variables."""
        return self.name == "ps"


@dataclass(frozen=True)
class Task:
    """One task of the plan."""

    job: JobPlan
    index: int

    @property
    def name(self) -> str:
        return f"{self.job.name}:{self.index}"


@dataclass(frozen=True)
class ClusterPlan:
    """The whole cluster file. `success` names the jobs whose tasks must all exit with 0."""

    name: str
    file: str
    folder: str
    checkpoint_dir: str
    jobs: tuple[JobPlan, ...]
    success: tuple[str, ...]

    def tasks(self) -> Iterator[Task]:
        for job in self.jobs:
            for index in range(job.replicas):
                yield Task(job, index)

    def task(self, name: str) -> Task:
        return next(task for task in self.tasks() if task.name == name)


def to_json(plan: ClusterPlan) -> dict[str, Any]:
    return asdict(plan)


def from_json(document: dict[str, Any]) -> ClusterPlan:
    jobs = tuple(
        JobPlan(
            **{
                **job,
                "program": job["program"] if isinstance(job["program"], str) else tuple(job["program"]),
                "ports": None if job["ports"] is None else tuple(job["ports"]),
                "restart": RestartPolicy(**job["restart"]),
                "readiness": Probe(**job["readiness"]),
            }
        )
        for job in document["jobs"]
    )
    return ClusterPlan(**{**document, "jobs": jobs, "success": tuple(document["success"])})


def differences(old: ClusterPlan, new: ClusterPlan) -> list[str]:
    """One line per value that differs, spelled as a path: `jobs.worker.replicas: 2 -> 3`."""
    before, after = _flat(old), _flat(new)
    return [
        f"{key}: {before.get(key, 'not there')} -> {after.get(key, 'not there')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(plan: ClusterPlan) -> dict[str, Any]:
    document = to_json(plan)
    document["jobs"] = {job["name"]: job for job in document["jobs"]}
    flat: dict[str, Any] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, child in value.items():
                walk(f"{path}.{key}" if path else key, child)
        else:
            flat[path] = value

    walk("", document)
    return flat
