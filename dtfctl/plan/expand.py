"""What each task gets: argv, environment and its place in the cluster, from the plan and the addresses. Pure.

The place is said three times, and a program takes whichever it knows: `{cluster_flags}` in its command line
(--ps_hosts=... --worker_hosts=... --job_name=... --task_index=...), TF_CONFIG, and CLUSTER_SPEC with JOB_NAME and
TASK_INDEX in the environment. With a sparse ClusterSpec a task sees itself and the parameter servers only; as a list
has no room for gaps, its flags are --cluster_spec={"ps": [...], "worker": {"1": ...}} --job_name=... --task_index=...
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dtfctl.plan import backups, shell_line
from dtfctl.values.plan import (
    DTF,
    DURABILITY_FOLDER_VARIABLE,
    DURABILITY_VARIABLE,
    ELASTIC,
    NONE,
    SLURM,
    SPARSE,
    TLS,
    TLS_VARIABLES,
    ClusterPlan,
    Task,
)

PLACEHOLDERS = (
    "name",
    "job",
    "task",
    "index",
    "replicas",
    "host",
    "address",
    "port",
    "bind",
    "python",
    "folder",
    "working_dir",
    "checkpoint_dir",
    "cluster_spec",
    "cluster_flags",
)

ClusterSpec = dict[str, list[str] | dict[str, str]]
"""Job name -> addresses by task index: all of them, or the index (as JSON has it, a text) of each that is known."""

HIDDEN = "(secret)"
BIND_VARIABLE = "DTF_BIND"
"""Tells dtf's servers to listen elsewhere than at the address that others are told."""

ELASTIC_VARIABLE = "DTF_ELASTIC"
"""Tells dtf's synchronous replicas that their number follows the workers that exist."""

_PLACEHOLDER = re.compile(r"\{\{|\}\}|(?<!\$)\{([A-Za-z][\w-]*)\}")
_OPENED = re.compile(r"(?<![\${])\{\s*([A-Za-z][\w-]*)")
_CLOSED = re.compile(r"(?<![\w{$-])([A-Za-z][\w-]*_[\w-]*)\}(?!\})")
_NOT_AFTER_NAMES = tuple(":!.,[(=+'\"")
"""What follows a name within braces in JSON, YAML and Python, but not in a placeholder that lacks its brace."""

_UNSET = (
    "DTFCTL_TOKEN", "TF_CONFIG", "CLUSTER_SPEC", "JOB_NAME", "TASK_INDEX", BIND_VARIABLE, ELASTIC_VARIABLE,
    *TLS_VARIABLES, DURABILITY_VARIABLE, DURABILITY_FOLDER_VARIABLE, backups.PLACES_VARIABLE, backups.PLACE_VARIABLE,
)  # fmt: skip
"""Never inherited: they would describe another cluster's task."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TF_NUM_INTRAOP_THREADS")


def cluster_spec(plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> ClusterSpec:
    """What `task` knows of the cluster. A sidecar, which is not part of it, knows all addresses."""
    spec: ClusterSpec = {}
    for job in plan.jobs:
        if not job.is_member:
            continue
        if task.settings.cluster_spec != SPARSE or job.name == "ps":
            spec[job.name] = [addresses[f"{job.name}:{index}"] for index in range(job.replicas)]
        elif job.name == task.job.name:
            spec[job.name] = {str(task.index): addresses[task.name]}
    return spec


def is_told_of(task: Task, other: Task) -> bool:
    """Whether `task` must know the address of `other`."""
    is_full = task.settings.cluster_spec not in (ELASTIC, SPARSE)
    return other.job.is_member and (is_full or other.job.name == "ps" or other.name == task.name)


def cluster_flags(spec: ClusterSpec, task: Task) -> list[str]:
    place = [f"--job_name={task.job.known_as}", f"--task_index={task.index}"]
    if task.settings.cluster_spec == SPARSE:
        return [f"--cluster_spec={json.dumps(spec)}", *place]
    return [*(f"--{job}_hosts={','.join(addresses)}" for job, addresses in spec.items()), *place]


def tf_config(spec: ClusterSpec, task: Task) -> dict[str, Any]:
    return {"cluster": spec, "task": {"type": task.job.known_as, "index": task.index}}


def argv(plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> tuple[str, ...]:
    """The command line as it is executed. A shell line runs under /bin/sh, with values quoted for it. Where dtf stands
    for TensorFlow, dtf prepares the environment and then makes way for it."""
    words = _program(plan, task, addresses)
    return (task.python, "-m", "dtf", "--exec", *words) if task.settings.tensorflow == DTF else words


def _program(plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> tuple[str, ...]:
    spec = cluster_spec(plan, task, addresses)
    flags = cluster_flags(spec, task)
    values = _values(plan, task, addresses, spec)
    program = task.settings.program
    if isinstance(program, str):
        quoted = {key: shlex.quote(value) for key, value in values.items()}
        line = _fill(program, {**quoted, "cluster_flags": shlex.join(flags)})
        return ("/bin/sh", "-c", shell_line.outliving_signals(_with_python(line, task)))
    values["cluster_flags"] = " ".join(flags)
    words: list[str] = []
    for word in program:
        words += flags if word == "{cluster_flags}" else [_fill(word, values)]
    if words[0] in ("python", "python3"):
        words[0] = task.python
    return tuple(words)


def _with_python(line: str, task: Task) -> str:
    return re.sub(r"^\s*python3?(?=\s)", lambda _: shlex.quote(task.python), line)


def environment(
    plan: ClusterPlan,
    task: Task,
    addresses: Mapping[str, str],
    inherited: Mapping[str, str],
    secrets: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """`inherited` is the environment in which `up` was typed; `secrets` are values by `secret_key`, without which a
    task gets a word in their place."""
    spec = cluster_spec(plan, task, addresses)
    settings, place = task.settings, task.place
    values = {**_values(plan, task, addresses, spec), "cluster_flags": shlex.join(cluster_flags(spec, task))}
    result = {key: value for key, value in inherited.items() if key not in _UNSET}
    # Programs that the task calls by name come from the interpreter's environment first, as in an activated one.
    result["PATH"] = os.pathsep.join(
        filter(None, (os.path.dirname(task.python), result.get("PATH", os.defpath)))
    )
    if task.venv:
        result["VIRTUAL_ENV"] = task.venv
    result |= {"PYTHONUNBUFFERED": "1"}
    if not task.job.is_sidecar:
        result |= {"TF_CONFIG": json.dumps(tf_config(spec, task)), "CLUSTER_SPEC": json.dumps(spec)}
    result |= {
        "JOB_NAME": task.job.known_as,
        "TASK_INDEX": str(task.index),
        "DTFCTL_CLUSTER": plan.name,
        "DTFCTL_TASK": task.name,
        "DTFCTL_HOST": task.host.name,
    }
    if task.job.has_address and task.bind_host != task.advertised_host:
        result[BIND_VARIABLE] = task.bind_host
    if settings.cluster_spec in (ELASTIC, SPARSE) and (task.job.is_member or task.job.backs_up):
        result[ELASTIC_VARIABLE] = "1"
    if settings.durability != NONE and task.job.stops_last:
        result[DURABILITY_VARIABLE] = settings.durability  # its host's keeper names the folder
    result |= backups.settings_of(plan, task, addresses)
    threads = settings.threads or len(place.cpus)
    if threads:
        result |= dict.fromkeys(_THREADS, str(threads))
    if place.gpus is not None:
        result["CUDA_VISIBLE_DEVICES"] = ",".join(_devices(task, inherited))
    result |= settings.env_file_values
    result |= {key: _fill(value, values) for key, value in settings.environment.items()}
    return result | {
        secret.name: HIDDEN if secrets is None else secrets[secret_key(secret.file, secret.variable)]
        for secret in settings.secrets
    }


def _devices(task: Task, inherited: Mapping[str, str]) -> list[str]:
    """The GPUs of a task. Slurm has chosen which ones of a node are the job's: number 0 is the first of those."""
    numbers = list(map(str, task.place.gpus or ()))
    granted = [word for word in inherited.get("CUDA_VISIBLE_DEVICES", "").split(",") if word]
    if task.host.via != SLURM or not granted:
        return numbers
    return [granted[int(number)] for number in numbers if int(number) < len(granted)]


def secret_key(file: str, variable: str) -> str:
    """How a secret's value is known between `up` and the start of its task: by its source."""
    return f"file {file}" if file else f"variable {variable}"


def thread_defaults(plan: ClusterPlan, cores: int) -> dict[str, str]:
    """How many threads a task's arithmetic should use when the user does not say: the tasks that decide share the
    cores of their host, since libraries that each take all of them slow one another down many times over.

    Nor do threads without work spin for long: numpy's BLAS library else begins with 27 ms of it at each core.
    """
    threads = max(1, cores // max(1, plan.computing_together))
    return {"OMP_NUM_THREADS": str(threads), "OPENBLAS_THREAD_TIMEOUT": "20"}


def fill_command(text: str, plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> str:
    """Fills the placeholders of a shell line, such as a readiness command."""
    spec = cluster_spec(plan, task, addresses)
    values = {key: shlex.quote(value) for key, value in _values(plan, task, addresses, spec).items()}
    return _fill(text, {**values, "cluster_flags": shlex.join(cluster_flags(spec, task))})


def fill_path(text: str, plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> str:
    """Fills the placeholders of a file's name."""
    spec = cluster_spec(plan, task, addresses)
    return task.path(_fill(text, {**_values(plan, task, addresses, spec), "cluster_flags": ""}))


def known_placeholders(jobs: tuple[str, ...]) -> tuple[str, ...]:
    return (*PLACEHOLDERS, *(f"{job}_hosts" for job in jobs))


def unknown_placeholders(text: str, jobs: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields (name, all known names) for each placeholder of `text` that a cluster of these jobs does not have."""
    known = known_placeholders(jobs)
    for match in _PLACEHOLDER.finditer(text):
        if match[1] and match[1] not in known:
            yield match[1], known


def before_start(program: str | tuple[str, ...], plan: ClusterPlan, task: Task) -> Any:
    """A program, or another text, as far as it is known before there are addresses: those of tasks are made up."""
    values = {
        **dict.fromkeys(known_placeholders(tuple(job.name for job in plan.jobs)), "0"),
        **_planned_values(plan, task),
    }
    if isinstance(program, str):
        return _with_python(_fill(program, {key: shlex.quote(value) for key, value in values.items()}), task)
    words = [_fill(word, values) for word in program]
    return (task.python if words[0] in ("python", "python3") else words[0], *words[1:])


def broken_placeholder(text: str, jobs: tuple[str, ...]) -> tuple[str, str]:
    """(what is written, what is meant) of the first placeholder that lacks a brace or has spaces in it, else ("", "").

    Braces that mean something else are left alone: a word counts when it is a placeholder's name, and one without an
    underscore, which may be anybody's, only where no brace closes it at all.
    """
    known = known_placeholders(jobs)
    for match in _OPENED.finditer(text):
        name, rest = match[1], text[match.end() :]
        if name not in known or text.startswith(f"{{{name}}}", match.start()) or rest.startswith(_NOT_AFTER_NAMES):
            continue
        if "_" in name or not re.match(r"[^{]*\}", rest):
            return match[0] + (re.match(r"\s*\}?", rest) or [""])[0], f"{{{name}}}"
    for match in _CLOSED.finditer(text):
        before = text[: match.start()]
        if match[1] in known and before.count("{") <= before.count("}"):
            return match[0], f"{{{match[1]}}}"
    return "", ""


def described(plan: ClusterPlan, addresses: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each host with what its tasks get, as `dtfctl expand` shows it; the environment is what comes on top of that in
    which `up` is typed."""
    hosts = {
        host.name: {"host": host.name, "ssh": host.target, "address": host.address, "tasks": []}
        for host in plan.hosts
    }
    for task in plan.tasks():
        settings = task.settings
        sources = {secret.name: secret_key(secret.file, secret.variable) for secret in settings.secrets}
        given = environment(plan, task, addresses, {})
        given |= {name: f"{HIDDEN[:-1]} from the {source})" for name, source in sources.items()}
        if plan.security == TLS:
            given |= dict.fromkeys(TLS_VARIABLES, "(a private file, made when the task is started)")
        limits = {key: value for key, value in vars(settings.limits).items() if value is not None}
        hosts[task.host.name]["tasks"].append(  # type: ignore[attr-defined]
            {
                "task": task.name,
                "argv": list(argv(plan, task, addresses)),
                "working_dir": task.working_dir,
                "address": addresses.get(task.name, ""),
                "bind": task.bind_host if task.job.has_address else "",
                "cpus": list(task.place.cpus),
                "limits": limits,
                "environment": given,
            }
        )
    return [host for host in hosts.values() if host["tasks"]]


def _planned_values(plan: ClusterPlan, task: Task) -> dict[str, str]:
    """The placeholders that are known before there are addresses."""
    return {
        "name": plan.name,
        "job": task.job.known_as,
        "task": str(task.index),
        "index": str(task.index),
        "replicas": str(task.job.replicas),
        "host": task.host.name,
        "bind": task.bind_host,
        "python": task.python,
        "folder": task.path(plan.folder),
        "working_dir": task.working_dir,
        "checkpoint_dir": task.path(plan.checkpoint_dir),
    }


def _values(plan: ClusterPlan, task: Task, addresses: Mapping[str, str], spec: ClusterSpec) -> dict[str, str]:
    address = addresses.get(task.name, "")
    hosts = {job: known if isinstance(known, list) else known.values() for job, known in spec.items()}
    return {
        **_planned_values(plan, task),
        "address": address,
        "port": address.rpartition(":")[2],
        "cluster_spec": json.dumps(spec),
        **{f"{job.name}_hosts": ",".join(hosts.get(job.name, ())) for job in plan.jobs},
    }


def _fill(text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return values[match[1]] if match[1] else match[0][0]

    return _PLACEHOLDER.sub(value, text)
