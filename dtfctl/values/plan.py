"""What the cluster file means, as frozen values, and their way through JSON (to the daemon and into its store).

    ClusterPlan -- HostPlan ...                    where tasks may run
        `- JobPlan -- Settings                     what all its tasks have in common
               |- Place ...                        one a task: its host, port, cores and GPUs
               `- overrides {index: Settings}      for the few tasks that differ

`ClusterPlan.tasks()` gives these together as Task. Owns the values and nothing else: config makes them from text,
plan/expand.py turns them into command lines; the settings of engines are in `engines`. Durations are seconds, sizes
bytes, paths absolute. Secrets are known by where they come from, never by their values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

from dtfctl.values.engines import (
    GroupSettings,
    KubernetesSettings,
    MpiSettings,
    RaySettings,
    SlurmSettings,
    SparkSettings,
    SshSettings,
)

ALWAYS = "always"
ON_FAILURE = "on-failure"
NEVER = "never"
EXIT_CODE = "exit-code"
POLICIES = (ALWAYS, ON_FAILURE, NEVER, EXIT_CODE)

ALL = "all"
ANY = "any"
FIRST = "first"
SUCCESS_RULES = (ALL, ANY, FIRST)

FULL = "full"
SPARSE = "sparse"
ELASTIC = "elastic"

INSTALLED = "installed"
DTF = "dtf"
"""What `import tensorflow` gives a program: the TensorFlow of its environment, or dtf in its place."""

TLS = "tls"
NONE, PROCESS, HOST = "none", "process", "host"
"""Levels of durability: what a parameter server holds outlives its process, or its host."""
DURABILITY_VARIABLE, DURABILITY_FOLDER_VARIABLE = "DTF_DURABILITY", "DTF_DURABILITY_DIR"
TLS_VARIABLES = ("DTF_TLS_CA", "DTF_TLS_CERT", "DTF_TLS_KEY")
"""Where a task finds the paths of its files; what dtf's servers and sessions look at."""

HERE = "here"
SSH = "ssh"
SLURM = "slurm"
KUBERNETES = "kubernetes"
RAY = "ray"
SPARK = "spark"
MPI = "mpi"
"""Kinds of ways to a host (launchers/ways.py); HERE is the machine of the supervisor itself."""

BRIDGED = (RAY, SPARK)
"""Engines that give a group of hosts through their bridge (launchers/bridge)."""

LOCALHOST = "localhost"
LOOPBACK = "127.0.0.1"


TASK, JOB, CLUSTER = SCOPES = ("task", "job", "cluster")


@dataclass(frozen=True)
class RestartPolicy:
    """When an ended task is started again. At most `attempts` restarts within `window_s`; the n-th waits
    `backoff_s * 2**(n-1)`, at most `backoff_max_s`, and up to the part `jitter` longer; a task that was ready for
    `healthy_s` begins anew. With the policy exit-code only exits within `codes` (first, last) are tried again, where
    death by signal n counts as 128 + n. `alike` failures in a row that look the same, the same exit after the same
    short time, are the end already (0: they are not). `scope` says which running tasks restart with it: none but
    itself (TASK), those of its job (JOB), or all (CLUSTER)."""

    policy: str = ON_FAILURE
    attempts: int = 5
    window_s: float = 600.0
    backoff_s: float = 0.5
    backoff_max_s: float = 30.0
    healthy_s: float = 60.0
    jitter: float = 0.25
    codes: tuple[tuple[int, int], ...] = ((128, 255),)
    alike: int = 4
    scope: str = TASK


PROGRESS = "progress"
"""The kind of a liveness probe that looks whether the training gets anywhere; its timeout is for how long not."""


@dataclass(frozen=True)
class Probe:
    """How a task is asked for its health: `kind` is grpc, tcp, command, file or none; `target` the command or path.

    As readiness: asked every `interval_s` until it answers. As liveness: asked while the task is ready, and
    `failures` in a row are the end of its patience. As notice of preemption: a command that exits with 0, or a file
    that is there, says that the task's machine is about to be taken away.
    """

    kind: str = "grpc"
    target: str = ""
    interval_s: float = 0.1
    timeout_s: float = 2.0
    failures: int = 3


@dataclass(frozen=True)
class Limits:
    """What the kernel holds a task to; None is what it inherits. `memory_bytes` bounds private writable memory,
    `cpu_s` the CPU seconds in total, `processes` those of the user on the host."""

    memory_bytes: int | None = None
    open_files: int | None = None
    processes: int | None = None
    core_bytes: int | None = None
    cpu_s: int | None = None
    nice: int | None = None


@dataclass(frozen=True)
class LogPolicy:
    """A log that grows beyond `max_bytes` is rotated; `count` older ones are kept."""

    max_bytes: int = 64 << 20
    count: int = 5


@dataclass(frozen=True)
class Secret:
    """An environment variable `name` whose value is read at `up`, from `file`, else from `variable` of the user's
    environment."""

    name: str
    file: str = ""
    variable: str = ""


@dataclass(frozen=True)
class Requirements:
    """What a virtual environment is to have: `files` for pip, in their order, and the `digest` of their content. It is
    made by `python`, "" for whatever the host has."""

    files: tuple[str, ...] = ()
    digest: str = ""
    python: str = ""


@dataclass(frozen=True)
class Settings:
    """What a task runs with. `program` is one shell line, or an argv.

    Empty strings are filled from the task's host (`python` and `venv`, `working_dir`, `bind`, `advertise`).
    `environment` may hold placeholders, `env_file_values` are taken literally and give way to it.
    """

    program: str | tuple[str, ...]
    python: str = ""
    venv: str = ""
    requirements: Requirements = Requirements()
    working_dir: str = ""
    environment: dict[str, str] = field(default_factory=dict)
    env_file_values: dict[str, str] = field(default_factory=dict)
    secrets: tuple[Secret, ...] = ()
    restart: RestartPolicy = RestartPolicy()
    readiness: Probe = Probe()
    liveness: Probe = Probe("none")
    preemption: Probe = Probe("none")
    grace_period_s: float = 10.0
    stop_signal: str = "SIGTERM"
    limits: Limits = Limits()
    threads: int | None = None
    bind: str = ""
    advertise: str = ""
    cluster_spec: str = FULL
    tensorflow: str = INSTALLED
    durability: str = NONE
    logs: LogPolicy = LogPolicy()


@dataclass(frozen=True)
class HostPlan:
    """A machine. `via` is the kind of pipe that leads there, and `target` what the pipe knows the machine by.

    `address` is the name by which the other tasks reach this host; where each task has one of its own it holds {job}
    and {index}. Servers bind `bind`, else that address. `folder`
    is where another machine has its copy of the cluster file's folder, which `sync` brings there; until the host has
    been looked at it may begin with ~.
    """

    name: str
    address: str
    python: str
    working_dir: str
    venv: str = ""
    bind: str = ""
    via: str = HERE
    target: str = ""
    user: str = ""
    port: int | None = None
    folder: str = ""
    sync: bool = True
    slots: int | None = None
    cpus: int | None = None
    gpus: int | None = None

    @property
    def is_local(self) -> bool:
        return self.via == HERE

    @property
    def has_task_addresses(self) -> bool:
        """Whether each task there has an address, and all ports, of its own."""
        return "{index}" in self.address

    @property
    def probes_itself(self) -> bool:
        """Whether the engine of the host asks its tasks whether they are ready and alive, and tells."""
        return self.via == KUBERNETES


@dataclass(frozen=True)
class Place:
    """Where one task runs. `port` 0 is chosen at `up`; no `cpus` means any core; `gpus` None says nothing about GPUs,
    () hides all of them."""

    host: str = LOCALHOST
    port: int = 0
    cpus: tuple[int, ...] = ()
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True)
class JobPlan:
    """One job: as many tasks as it has `places`.

    Without `has_address` its tasks serve nobody. A sidecar (TensorBoard) stands outside the ClusterSpec, decides
    nothing, and ends with the training. Ports are chosen within `port_range` where there is one. `spares` are hosts
    that take over the tasks of a lost one, `candidates` those on which more of its tasks may be placed. A job that
    `backs_up` another has the second place of each of its tasks (plan/backups.py).
    """

    name: str
    settings: Settings
    places: tuple[Place, ...]
    overrides: dict[int, Settings] = field(default_factory=dict)
    has_address: bool = True
    port_range: tuple[int, int] | None = None
    spares: tuple[str, ...] = ()
    candidates: tuple[str, ...] = ()
    is_sidecar: bool = False
    backs_up: str = ""

    @property
    def replicas(self) -> int:
        return len(self.places)

    @property
    def is_member(self) -> bool:
        """Whether its tasks stand in the ClusterSpec."""
        return self.has_address and not self.is_sidecar and not self.backs_up

    @property
    def known_as(self) -> str:
        """The name of the job in the ClusterSpec to which its tasks belong."""
        return self.backs_up or self.name

    @property
    def is_done_once(self) -> bool:
        """Training that has come to its end is not begun again, whatever the restart policy."""
        return self.name in ("chief", "master", "worker")

    @property
    def stops_last(self) -> bool:
        """Parameter servers outlive the tasks that save their variables."""
        return self.name == "ps" or bool(self.backs_up)


@dataclass(frozen=True)
class Task:
    """One task of the plan, with what holds for it alone. `folder` is the cluster file's."""

    job: JobPlan
    index: int
    host: HostPlan
    folder: str = ""

    @cached_property
    def name(self) -> str:
        return f"{self.job.name}:{self.index}"

    @property
    def settings(self) -> Settings:
        return self.job.overrides.get(self.index, self.job.settings)

    @property
    def place(self) -> Place:
        return self.job.places[self.index]

    @property
    def python(self) -> str:
        return self.path(self.settings.python) or self.host.python

    @property
    def venv(self) -> str:
        return self.path(self.settings.venv) if self.settings.python else self.host.venv

    @property
    def working_dir(self) -> str:
        return self.path(self.settings.working_dir or self.host.working_dir)

    def path(self, text: str) -> str:
        """A path of the cluster file as it is on the task's host: what lies in the file's folder is in its copy."""
        copy = self.host.folder
        if not copy or text == copy or text.startswith(f"{copy}/"):
            return text
        if text == self.folder or text.startswith(f"{self.folder.rstrip('/')}/"):
            return copy + text[len(self.folder.rstrip("/")) :]
        return text

    @property
    def advertised_host(self) -> str:
        """The host part of the address by which the other tasks know this one."""
        address = self.host.address.replace("{job}", self.job.name).replace("{index}", str(self.index))
        return self.settings.advertise or address

    @property
    def bind_host(self) -> str:
        """The address at which its server listens."""
        return self.settings.bind or self.host.bind or self.advertised_host


def is_remote(path: str) -> bool:
    """Whether a path names a file system of its own (s3://bucket/x), and no folder of a host."""
    scheme, mark, _ = path.partition("://")
    return bool(mark) and scheme[:1].isalpha() and scheme.replace(".", "").isalnum()


@dataclass(frozen=True)
class Notify:
    """The recipient of each event's message: a shell line, the words of a command, or a URL; "" for none."""

    succeeded: str | tuple[str, ...] = ""
    failed: str | tuple[str, ...] = ""
    restarted: str | tuple[str, ...] = ""
    stalled: str | tuple[str, ...] = ""


@dataclass(frozen=True)
class Autoscale:
    """A job whose number of tasks the supervisor chooses, within these limits."""

    job: str
    least: int
    most: int


@dataclass(frozen=True)
class ClusterPlan:
    """The whole cluster file. `success` names the deciding jobs; of their tasks all, any, or each job's first must
    exit with 0, as `success_rule` says. `hosts` are those that have tasks or are spares, `idle_hosts` those that might
    have some. `engine` is the name of what gives the hosts, "" where the file names them. A host that is unreachable
    for `host_lost_after_s` is lost; one that hears nothing for `fence_after_s` (0: never) has killed its tasks then.
    `metrics` is the host:port of the supervisor's figures, "" for none."""

    name: str
    file: str
    folder: str
    checkpoint_dir: str
    jobs: tuple[JobPlan, ...]
    success: tuple[str, ...]
    success_rule: str = ALL
    hosts: tuple[HostPlan, ...] = ()
    idle_hosts: tuple[HostPlan, ...] = ()
    security: str = "none"
    ssh: SshSettings = SshSettings()
    engine: str = ""
    slurm: SlurmSettings = SlurmSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    ray: RaySettings = RaySettings()
    spark: SparkSettings = SparkSettings()
    mpi: MpiSettings = MpiSettings()
    host_lost_after_s: float = 600.0
    fence_after_s: float = 0.0
    metrics: str = ""
    notify: Notify = Notify()
    autoscale: tuple[Autoscale, ...] = ()

    @property
    def group(self) -> GroupSettings:
        """Of an engine that gives a group of hosts."""
        return self.spark if self.engine == SPARK else self.ray

    def with_group(self, settings: GroupSettings) -> ClusterPlan:
        if isinstance(settings, SparkSettings):
            return replace(self, spark=settings)
        return replace(self, ray=settings)

    @property
    def checkpoint_folder(self) -> str:
        """`checkpoint_dir` where it is a folder of the hosts; "" where it is not set, or a URL that programs know."""
        return "" if is_remote(self.checkpoint_dir) else self.checkpoint_dir

    @property
    def remote_hosts(self) -> tuple[HostPlan, ...]:
        return tuple(host for host in self.hosts if not host.is_local)

    def host(self, name: str) -> HostPlan:
        return self._hosts[name]

    @cached_property
    def _hosts(self) -> dict[str, HostPlan]:
        return {host.name: host for host in self.hosts}

    @cached_property
    def computing_together(self) -> int:
        """How many of the tasks that compute share a host, at the most."""
        computing = Counter(task.host.name for task in self.tasks() if task.job.name in self.success)
        return max(computing.values(), default=0)

    def tasks(self) -> Iterator[Task]:
        return iter(self._tasks.values())

    def task(self, name: str) -> Task:
        """Raises KeyError when no task has this name."""
        return self._tasks[name]

    def has_task(self, name: str) -> bool:
        return name in self._tasks

    def tasks_on(self, host: str) -> Iterator[Task]:
        """Those that the file gives a host, in order."""
        for job in self.jobs:
            yield from self._places.get((job.name, host), ())

    def tasks_for(self, host: str) -> Iterator[Task]:
        """Those of a host and those that it may take over, in order."""
        for job in self.jobs:
            if host in job.spares:
                yield from (self._tasks[f"{job.name}:{index}"] for index in range(job.replicas))
            else:
                yield from self._places.get((job.name, host), ())

    @cached_property
    def _places(self) -> dict[tuple[str, str], list[Task]]:
        found: dict[tuple[str, str], list[Task]] = {}
        for task in self.tasks():
            found.setdefault((task.job.name, task.host.name), []).append(task)
        return found

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        tasks = (
            Task(job, index, self._hosts[place.host], self.folder)
            for job in self.jobs
            for index, place in enumerate(job.places)
        )
        return {task.name: task for task in tasks}

    @property
    def chief(self) -> str:
        """The name of the task that saves checkpoints: the chief, or else the first worker; "" without workers."""
        jobs = {job.name for job in self.jobs}
        return next((f"{name}:0" for name in ("chief", "master", "worker") if name in jobs), "")

    def job_decides(self, task: Task) -> bool:
        """Whether the task's job is one that trains, by whose success that of the training is known."""
        return task.job.name in self.success and not task.job.stops_last

    def deciding_tasks(self) -> Iterator[Task]:
        """Those whose success is that of the training."""
        for task in self.tasks():
            if task.job.name in self.success and (self.success_rule != FIRST or task.index == 0):
                yield task


def unreachable_task(plan: ClusterPlan) -> Task | None:
    """On several machines: one that the others are told is at 127.0.0.1."""
    if all(host.is_local for host in plan.hosts):
        return None
    served = (task for task in plan.tasks() if task.job.is_member)
    return next((task for task in served if task.advertised_host in (LOOPBACK, LOCALHOST)), None)


def placed(plan: ClusterPlan, hosts: Mapping[str, HostPlan], moves: Mapping[str, str]) -> ClusterPlan:
    """The plan as it is carried out: hosts as they were found to be, and tasks on the hosts that they moved to."""

    def places(job: JobPlan) -> tuple[Place, ...]:
        names = (moves.get(f"{job.name}:{index}") for index in range(job.replicas))
        pairs = zip(job.places, names, strict=True)
        return tuple(replace(place, host=name) if name else place for place, name in pairs)

    return replace(
        plan,
        hosts=tuple(hosts.get(host.name, host) for host in plan.hosts),
        jobs=tuple(replace(job, places=places(job)) for job in plan.jobs),
    )


def to_json(plan: ClusterPlan) -> dict[str, Any]:
    return asdict(plan)


def differences(old: ClusterPlan, new: ClusterPlan) -> list[str]:
    """One line per value that differs, spelled as a path: `jobs.worker.replicas: 2 -> 3`."""
    before, after = _flat(old, new), _flat(new, old)
    return [
        f"{key}: {before.get(key, 'not there')} -> {after.get(key, 'not there')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    ]


def _flat(plan: ClusterPlan, other: ClusterPlan) -> dict[str, Any]:
    """Path -> value. Of tasks that `other` has not, nothing is said but their number."""
    replicas = {job.name: job.replicas for job in other.jobs}
    document = to_json(plan)
    document["hosts"] = {host["name"]: host for host in document["hosts"]}
    del document["idle_hosts"]
    jobs = {}
    for job in document["jobs"]:
        settings, places, overrides = job.pop("settings"), job.pop("places"), job.pop("overrides")
        tasks = {}
        for index, place in enumerate(places[: replicas.get(job["name"], 0)]):
            own = overrides.get(index, settings)
            tasks[str(index)] = place | {key: own[key] for key in settings if own[key] != settings[key]}
        jobs[job["name"]] = {**settings, **job, "replicas": len(places), "tasks": tasks}
    document["jobs"] = jobs
    flat: dict[str, Any] = {}

    def walk(path: str, value: Any) -> None:
        if isinstance(value, dict):
            for key, child in value.items():
                walk(f"{path}.{key}" if path else key, child)
        else:
            flat[path] = value

    walk("", document)
    return flat
