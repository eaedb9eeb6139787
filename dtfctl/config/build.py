"""From the nodes of a cluster file to a ClusterPlan: levels laid over each other, and what goes across keys.

Each level (top, job, task) is first read alone, so that its errors are found even where another level hides the
value; then they are merged and read once more.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from dtfctl.config import hostlist, schema
from dtfctl.config.engine import (
    add_group,
    add_mpi_hosts,
    add_nodes,
    add_pods,
    check_groups,
    engine_name,
    group_of,
    kubernetes_of,
    mpi_of,
    nodes_for,
    slurm_of,
)
from dtfctl.config.hosts import host_plan, hosts_of
from dtfctl.config.kinds import Reader, Section, Values, choice, merge, nearest, shortened
from dtfctl.config.place import JobRequest, Placer
from dtfctl.config.source import Entry, Mapping, Node, Position, Scalar, Sequence, read_yaml
from dtfctl.config.values import Ports
from dtfctl.config.variables import read_env_file
from dtfctl.manifests import names as pod_names
from dtfctl.plan import backups
from dtfctl.values.engines import KubernetesSettings, MpiSettings, SlurmSettings, SshSettings
from dtfctl.values.plan import (
    ALL,
    ANY,
    FIRST,
    FULL,
    HOST,
    KUBERNETES,
    NONE,
    PROGRESS,
    SLURM,
    Autoscale,
    ClusterPlan,
    JobPlan,
    Limits,
    LogPolicy,
    Notify,
    Probe,
    Requirements,
    RestartPolicy,
    Secret,
    Settings,
    unreachable_task,
)

HELPERS = frozenset({"ps", "evaluator", "tensorboard"})
"""Jobs that serve the others: by default they do not decide whether the training succeeded."""

TENSORBOARD = "tensorboard"
_TENSORBOARD_JOB = b"""
program: [python, -m, tensorboard.main, "--logdir={checkpoint_dir}", "--host={bind}", "--port={port}"]
sidecar: true
port: auto
readiness: {probe: tcp, interval: 500ms}
restart: {policy: always, attempts: 20, window: 1h}
gpus: none
tensorflow: installed
"""

_FIELDS = {
    "window": "window_s",
    "backoff": "backoff_s",
    "backoff_max": "backoff_max_s",
    "healthy_after": "healthy_s",
    "memory": "memory_bytes",
    "core": "core_bytes",
    "cpu_time": "cpu_s",
    "max_size": "max_bytes",
    "interval": "interval_s",
    "timeout": "timeout_s",
    "grace_period": "grace_period_s",
}
"""What a key of the file is called in the plan, where that is something else."""

_PROBE_NUMBERS = ("interval", "timeout", "failures")
PROGRESS_TIMEOUT_S = 600.0
"""For how long a training may get nowhere under `liveness: progress`."""

HOST_LOST_AFTER_S = 600.0
FENCE_AFTER_S = 60.0
FENCED_PART = 0.8
"""The tasks of a lost host have ended when `host_lost_after` is over, and their replacements begin."""


@dataclass(frozen=True)
class Level:
    """A job with the top's settings below its own: as one node, and as its values."""

    node: Mapping
    values: Values
    own: Values
    at: Position


def build(root: Node, reader: Reader, file: str, read_file: Callable[[str], str]) -> ClusterPlan:
    """`root` is the merged file, `file` its absolute path. Raises ConfigError."""
    return _Builder(reader, read_file).cluster(root, file)


def levels_of(root: Node, reader: Reader) -> tuple[Values, dict[str, Level]]:
    """The values of the top, and every job; TensorBoard is one of them."""
    mapping = schema.CLUSTER.mapping(root, "")
    jobs_node = mapping.get("jobs")
    values = schema.CLUSTER.read(reader, root, "")
    if jobs_node is None:
        raise root.at.error('the key "jobs" is missing: it lists the tasks')
    if not values["jobs"].value:
        raise jobs_node.at.error('"jobs" names no job')
    defaults = _only(mapping, (*schema.SETTINGS, "port"))
    assert isinstance(jobs_node, Mapping)
    nodes = {name: entry.value for name, entry in jobs_node.entries.items()}
    board = _tensorboard(mapping, values)
    if board is not None:
        if TENSORBOARD in nodes:
            raise board.at.error('a job "tensorboard" exists already; remove the job or the key')
        nodes[TENSORBOARD] = board
    jobs = {}
    for name, node in nodes.items():
        where = f"jobs.{name}"
        merged = merge(schema.JOB, defaults, node, where)
        assert isinstance(merged, Mapping)
        own = schema.JOB.read(reader, node, where)
        jobs[name] = Level(merged, schema.JOB.read(reader, merged, where), own, node.at)
    return values, jobs


def _metrics(values: Values) -> str:
    """host:port, "" for none."""
    text = _value(values, "metrics", "")
    if not text:
        return ""
    host, _, port = str(text).rpartition(":")
    if not 0 < int(port) < 65536:
        raise values["metrics"].node.at.error(f'"metrics" names the port {port}; a port lies between 1 and 65535')
    return f"{host or '127.0.0.1'}:{port}"


def _autoscale(values: Values, jobs: list[JobPlan]) -> tuple[Autoscale, ...]:
    """The jobs that the supervisor scales. Their tasks must be able to join and leave."""
    found = []
    by_name = {job.name: job for job in jobs}
    for name, limits in _value(values, "autoscale", {}).items():
        job, at = by_name.get(name), limits.node.at
        if job is None:
            raise at.error(f'"autoscale.{name}": no job is called {name} (jobs: {", ".join(by_name)})')
        if job.stops_last:
            raise at.error(f'"autoscale.{name}": the tasks of {name} hold state; scale them by hand')
        for each in jobs:
            settings = (each.settings, *each.overrides.values())
            if each.is_member and any(one.cluster_spec == FULL for one in settings):
                raise at.error(
                    f'"autoscale" needs "cluster_spec: elastic" or sparse: {each.name} has full ones, and each change '
                    "would restart its tasks"
                )
        found.append(Autoscale(name, *limits.value))
    return tuple(found)


def job_names(root: Node) -> tuple[str, ...]:
    """The names that placeholders may mention, as far as they can be seen before anything is checked."""
    jobs = root.get("jobs") if isinstance(root, Mapping) else None
    return tuple(jobs.entries) if isinstance(jobs, Mapping) else ()


def _tensorboard(root: Mapping, values: Values) -> Mapping | None:
    """The job that `tensorboard:` stands for."""
    found = values.get(TENSORBOARD)
    if found is None or ("enabled" in found.value and not found.value["enabled"].value):
        return None
    own = schema.TENSORBOARD.mapping(found.node, TENSORBOARD)
    template = read_yaml(_TENSORBOARD_JOB, TENSORBOARD)
    assert isinstance(template, Mapping)
    logdir = own.get("logdir")
    if logdir is None and "checkpoint_dir" not in values and "program" not in found.value:
        raise found.node.at.error('"tensorboard" needs "checkpoint_dir", or a "logdir" of its own')
    if isinstance(logdir, Scalar):
        program = template.get("program")
        assert isinstance(program, Sequence)
        words = (*program.items, Scalar(f"--logdir={logdir.text}", logdir.at))
        template = Mapping(
            {**template.entries, "program": Entry(logdir.at, Sequence(words, logdir.at))}, logdir.at
        )
    node = merge(schema.JOB, template, _only(own, own.entries.keys() - {"enabled", "logdir"}))
    assert isinstance(node, Mapping)
    return Mapping(node.entries, found.node.at)


def default_success(names: tuple[str, ...]) -> tuple[str, ...]:
    """The chief decides where there is one, else the workers, else every job that does not serve another."""
    for candidate in ("chief", "master", "worker"):
        if candidate in names:
            return (candidate,)
    return tuple(name for name in names if name not in HELPERS) or names


class _Builder:
    def __init__(self, reader: Reader, read_file: Callable[[str], str]) -> None:
        self._reader = reader
        self._folder = reader.folder
        self._read_file = read_file
        self._spares: tuple[str, ...] = ()
        self._slurm = SlurmSettings()

    def cluster(self, root: Node, file: str) -> ClusterPlan:
        values, levels = levels_of(root, self._reader)
        hosts, declared = hosts_of(values, self._folder)
        slurm = slurm_of(values, self._reader.variables)
        if slurm is not None:
            check_groups(values, slurm, levels)
            self._slurm = slurm
            declared = add_nodes(values, slurm, self._reader.variables, hosts, self._folder)
        name = _value(values, "name", cluster_name_of(self._folder))
        kubernetes = kubernetes_of(values)
        if kubernetes is not None:
            declared = add_pods(values, name, hosts, self._folder)
        group = group_of(values)
        if group is not None:
            declared = add_group(values, group, hosts, self._folder)
        mpi = mpi_of(values)
        if mpi is not None:
            declared = add_mpi_hosts(values, mpi, hosts, self._folder)
        spares = {name for level in levels.values() for name, _ in _value(level.values, "spare_hosts", ())}
        free = next((engine.spares for engine in (slurm, group, mpi) if engine is not None), 0)
        self._spares = declared[-free:] if free else ()
        spares.update(self._spares)
        placer = Placer(hosts, declared, spares, lambda name: host_plan(name, {}, values, self._folder))
        jobs = [self._job(name, level, placer) for name, level in levels.items()]
        members = tuple(job.name for job in jobs if not job.is_sidecar) or tuple(job.name for job in jobs)
        success, rule = self._success(values, members)
        jobs = self._with_backups(jobs, levels, declared)
        used = {place.host for job in jobs for place in job.places} | {
            name for job in jobs for name in job.spares
        }
        possible = {name for job in jobs for name in job.candidates} - used
        plan = ClusterPlan(
            name=name,
            file=file,
            folder=str(self._folder),
            checkpoint_dir=_value(values, "checkpoint_dir", ""),
            jobs=tuple(jobs),
            success=success,
            success_rule=rule,
            hosts=tuple(host for host in placer.hosts.values() if host.name in used),
            idle_hosts=tuple(host for host in placer.hosts.values() if host.name in possible),
            security=_value(values, "security", "none"),
            ssh=self._ssh(_value(values, "ssh", {})),
            engine=engine_name(values),
            slurm=slurm or SlurmSettings(),
            kubernetes=kubernetes or KubernetesSettings(),
            mpi=mpi or MpiSettings(),
            host_lost_after_s=_value(values, "host_lost_after", HOST_LOST_AFTER_S),
            fence_after_s=_fence_after(values),
            metrics=_metrics(values),
            autoscale=_autoscale(values, jobs),
            notify=Notify(**{event: found.value for event, found in _value(values, "notify", {}).items()}),
        )
        if group is not None:
            plan = plan.with_group(group)
        self._check_reach(plan, levels)
        self._check_names(plan, values, levels)
        self._check_requirements(plan, levels)
        self._check_durability(plan, levels)
        return plan

    def _check_reach(self, plan: ClusterPlan, levels: dict[str, Level]) -> None:
        """Tasks on several machines must not be told that one of them is at 127.0.0.1."""
        task = unreachable_task(plan)
        if task is not None:
            host = task.host.name
            raise levels[task.job.known_as].at.error(
                f"{task.name} runs on {host}, which other hosts cannot reach at {task.advertised_host}; "
                f"give it an address: hosts: {{{host}: {{address: ...}}}}"
            )

    def _check_names(self, plan: ClusterPlan, values: Values, levels: dict[str, Level]) -> None:
        """In Kubernetes the names of the cluster and of its jobs become parts of names in DNS."""
        if plan.engine != KUBERNETES:
            return
        wrong = pod_names.wrong_cluster(plan.name)
        if wrong:
            raise (values["name"].node if "name" in values else values["engine"].node).at.error(wrong)
        for job in plan.jobs:
            wrong = pod_names.wrong_job(plan.name, job.name, job.replicas)
            if wrong:
                raise levels[job.known_as].at.error(wrong)

    def _check_durability(self, plan: ClusterPlan, levels: dict[str, Level]) -> None:
        """A pod that is started again has other memory, and only parameter servers are durable."""
        for task in plan.tasks():
            if task.settings.durability == NONE:
                continue
            found = levels[task.job.known_as].values.get("durability")
            at = levels[task.job.known_as].at if found is None else found.node.at
            if plan.engine == KUBERNETES:
                raise at.error(
                    f'"durability: {task.settings.durability}" is not possible on Kubernetes: a task that is restarted '
                    "is a new pod, with other memory"
                )
            if not any(job.stops_last for job in plan.jobs):
                raise at.error(f'"durability: {task.settings.durability}" needs a job named ps, with the variables')

    def _with_backups(self, jobs: list[JobPlan], levels: dict[str, Level], declared: Iterable[str]) -> list[JobPlan]:
        """With a job for the backups of durable tasks, each on another host than its primary: one of those that the
        file names, or that have tasks.
        """
        names = list(dict.fromkeys((*declared, *(place.host for job in jobs for place in job.places))))
        found = []
        for job in jobs:
            found.append(job)
            mixed = {settings.durability for settings in (job.settings, *job.overrides.values())}
            if not job.stops_last or HOST not in mixed:
                continue
            level = levels[job.name]
            at = level.values["durability"].node.at if "durability" in level.values else level.at
            if len(mixed) > 1:
                raise at.error(f'"durability: host" is for all tasks of {job.name}, or for none')
            if not job.has_address:
                raise at.error(f'"durability: host" needs ports, and "port" of {job.name} is "none"')
            if any(each.name == job.name + backups.SUFFIX for each in jobs):
                raise at.error(f'"durability: host" makes a job {job.name}{backups.SUFFIX}: give that job another name')
            spares = {name for name, _ in _value(level.values, "spare_hosts", ())} | set(self._spares)
            try:
                found.append(backups.backup_of(job, [name for name in names if name not in spares]))
            except ValueError as error:
                raise at.error(f"{error}; name another one under hosts") from None
        return found

    def _check_requirements(self, plan: ClusterPlan, levels: dict[str, Level]) -> None:
        for task in plan.tasks():
            if task.settings.requirements.files and not task.venv:
                found = levels[task.job.known_as].values.get("requirements")
                at = levels[task.job.known_as].at if found is None else found.node.at
                where = "" if task.host.is_local else f" on {task.host.name}"
                raise at.error(f'"requirements" of {task.name}{where} need a "venv", the folder to create')

    def _ssh(self, found: Values) -> SshSettings:
        command, keys = _value(found, "command", "ssh"), _value(found, "host_keys", "known")
        return SshSettings(command, keys == "accept-new", _value(found, "timeout", 10.0))

    # -- jobs

    def _job(self, name: str, level: Level, placer: Placer) -> JobPlan:
        values = level.values
        if "program" not in values:
            raise level.at.error(f'the key "program" is missing, both at the top and under jobs.{name}')
        ports = _value(values, "port", Ports("auto"))
        overrides, tasks = {}, self._tasks(name, level)
        for index, (node, found) in tasks.items():
            if set(found) & set(schema.SETTINGS):
                merged = merge(schema.LEVEL, _only(level.node, schema.SETTINGS), _only(node, schema.SETTINGS))
                read = schema.LEVEL.read(self._reader, merged, f"jobs.{name}.tasks.{index}")
                # One interpreter takes the other's place, however each is named.
                python = schema.ONE_OF[0] if set(found) & set(schema.ONE_OF[0]) else ()
                own = {key: value for key, value in level.own.items() if key not in python}
                overrides[index] = self._settings(read, {**own, **found}, ports)
        request = JobRequest(
            name=name,
            at=level.at,
            replicas=_value(values, "replicas", None),
            hosts=_value(values, "hosts", tuple((node, level.at) for node in nodes_for(self._slurm, name)) or None),
            tasks_per_host=_value(values, "tasks_per_host", None),
            spares=_value(values, "spare_hosts", tuple((name, level.at) for name in self._spares)),
            ports=ports,
            ports_at=values["port"].node.at if "port" in values else level.at,
            cpus=_value(values, "cpus", None),
            gpus=_value(values, "gpus", None),
            tasks={index: found for index, (_, found) in tasks.items()},
        )
        return JobPlan(
            name=name,
            settings=self._settings(values, level.own, ports),
            places=placer.place(request),
            candidates=tuple(placer.candidates(request)),
            overrides=overrides,
            has_address=ports.way != "none",
            port_range=(ports.numbers[0], ports.numbers[1]) if ports.way == "range" else None,
            spares=tuple(placer.known(host, at) for host, at in request.spares),
            is_sidecar=_value(values, "sidecar", False),
        )

    def _tasks(self, name: str, level: Level) -> dict[int, tuple[Node, Values]]:
        """What `tasks:` says of each index. A task that is named twice is an error."""
        if "tasks" not in level.values:
            return {}
        kind = schema.JOB.keys["tasks"].kind
        assert not isinstance(kind, Section)
        node = level.values["tasks"].node
        assert isinstance(node, Mapping)
        tasks: dict[int, tuple[Node, Values]] = {}
        for text, found in level.values["tasks"].value.items():
            try:
                indices = hostlist.numbers(text, schema.REPLICAS_MAX)
            except ValueError as error:
                raise node.entries[text].at.error(f'"jobs.{name}.tasks": {error}') from None
            for index in indices:
                if index in tasks:
                    raise node.entries[text].at.error(f"task {index} appears twice under jobs.{name}.tasks")
                tasks[index] = (schema.TASK.mapping(found.node, f"jobs.{name}.tasks.{text}"), found.value)
        return tasks

    def _settings(self, values: Values, own: Values, ports: Ports) -> Settings:
        """`values` are those of all levels, `own` those of the job and its task, which come before the host's."""
        venv = _value(own, "venv", "")
        stated = {
            _FIELDS.get(key, key): values[key].value
            for key in ("program", "grace_period", "stop_signal", "threads", "cluster_spec", "tensorflow", "durability")
            if key in values
        }
        stated["environment"] = {key: found.value for key, found in _value(values, "environment", {}).items()}
        return Settings(
            **stated,
            python=f"{venv}/bin/python" if venv else _value(own, "python", ""),
            venv=venv,
            requirements=self._requirements(values),
            working_dir=_value(own, "working_dir", ""),
            bind=_value(own, "bind", ""),
            advertise=_value(values, "advertise", ""),
            env_file_values=self._env_files(values),
            secrets=self._secrets(values),
            restart=RestartPolicy(**_named(values, "restart")),
            readiness=self._probe(
                values, "readiness", "none" if ports.way == "none" else "grpc", Probe(), ports
            ),
            liveness=self._probe(values, "liveness", "none", Probe("none", interval_s=10.0), ports),
            preemption=self._probe(values, "preemption", "none", Probe("none", interval_s=5.0), ports),
            limits=Limits(**{key: int(value) for key, value in _named(values, "limits").items()}),
            logs=LogPolicy(**_named(values, "logs")),
        )

    def _requirements(self, values: Values) -> Requirements:
        if "requirements" not in values:
            return Requirements()
        found = values["requirements"].value
        if "files" not in found:
            raise values["requirements"].node.at.error('"requirements" lacks the key "files"')
        files = found["files"].value
        texts = [self._text("requirements", path, node) for path, node in files]
        digest = sha256("\0".join(texts).encode()).hexdigest()
        return Requirements(tuple(path for path, _ in files), digest, _value(found, "python", ""))

    def _env_files(self, values: Values) -> dict[str, str]:
        result: dict[str, str] = {}
        for path, node in _value(values, "env_file", ()):
            text = self._text("env_file", path, node)
            try:
                result |= read_env_file(text, path)
            except ValueError as error:
                raise node.at.error(f'"env_file": {error}') from None
        return result

    def _text(self, key: str, path: str, node: Node) -> str:
        """Of a file that the cluster file names."""
        try:
            return self._read_file(path)
        except OSError as error:
            raise node.at.error(f'"{key}": {path}: {error.strerror}') from None
        except UnicodeDecodeError:
            raise node.at.error(f'"{key}": {path}: not a text file') from None

    def _secrets(self, values: Values) -> tuple[Secret, ...]:
        secrets = []
        for name, found in _value(values, "secrets", {}).items():
            if name in _value(values, "environment", {}):
                raise found.node.at.error(f'"{name}" is both a secret and in "environment"')
            file = _value(found.value, "file", "")
            secrets.append(Secret(name, file, "" if file else _value(found.value, "variable", name)))
        return tuple(secrets)

    def _probe(self, values: Values, key: str, default_kind: str, default: Probe, ports: Ports) -> Probe:
        if key not in values:
            return replace(default, kind=default_kind)
        node, found = values[key].node, values[key].value
        kind = next((name for name in ("probe", "command", "file") if name in found), None)
        if kind is None:
            raise node.at.error(f'"{key}" needs exactly one of the keys "probe", "command" and "file"')
        target = found[kind].value
        if kind == "probe":
            kind, target = target, ""
        if kind == "file" and not target.startswith("{checkpoint_dir}"):  # which is absolute once it is filled in
            target = os.path.normpath(self._folder / os.path.expanduser(target))
        if kind in ("grpc", "tcp") and ports.way == "none":
            raise node.at.error(f'{key} by {kind} needs a port, and "port" is "none"')
        given = {
            _FIELDS.get(name, name): each.value for name, each in found.items() if name in _PROBE_NUMBERS
        }
        if kind == PROGRESS:
            given = {"timeout_s": PROGRESS_TIMEOUT_S, **given}
        return replace(default, kind=kind, target=target, **given)

    # -- success

    def _success(self, values: Values, names: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
        if "success" not in values:
            return default_success(names), ALL
        found = values["success"].value
        rule = _value(found, "tasks", ALL)
        if "jobs" not in found:
            return default_success(names), rule
        listed = found["jobs"].value
        if len(listed) == 1 and listed[0][0] not in names and listed[0][0] in (ALL, ANY, "chief"):
            text, node = listed[0]
            if "tasks" in found:
                raise node.at.error(f'"success.jobs" must name jobs where "tasks" is given, not "{text}"')
            if text == ALL:
                return tuple(name for name in names if name not in HELPERS) or names, ALL
            return default_success(names), ANY if text == ANY else FIRST
        for text, node in listed:
            if text not in names:
                known = choice((*names, ALL, ANY))
                raise node.at.error(
                    f'"success" must be {known}, not "{shortened(text)}"{nearest(text, names, "")}'
                )
        return tuple(dict.fromkeys(text for text, _ in listed)), rule


def cluster_name_of(folder: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", folder.name).strip("-._")[:64] or "cluster"


def _fence_after(values: Values) -> float:
    """0: never. Slurm leaves the processes of a node that it has lost alone, so there it is not optional."""
    lost_after_s: float = _value(values, "host_lost_after", HOST_LOST_AFTER_S)
    if "fence_after" in values:
        chosen: float = values["fence_after"].value
        if chosen >= lost_after_s:
            words = f'"fence_after" must be less than "host_lost_after" ({lost_after_s:g}s), when tasks are replaced'
            raise values["fence_after"].node.at.error(words)
        return chosen
    return min(FENCE_AFTER_S, lost_after_s * FENCED_PART) if engine_name(values) == SLURM else 0.0


def _value(values: Values, key: str, default: Any) -> Any:
    return values[key].value if key in values else default


def _named(values: Values, key: str) -> dict[str, Any]:
    """The keys of a section by the names of the plan's fields."""
    return {_FIELDS.get(name, name): found.value for name, found in _value(values, key, {}).items()}


def _only(node: Node, keys: Any) -> Mapping:
    assert isinstance(node, Mapping)
    return Mapping({key: entry for key, entry in node.entries.items() if key in keys}, node.at)
