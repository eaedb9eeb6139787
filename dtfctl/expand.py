"""What each task gets: argv, environment and its place in the cluster, from the plan and the addresses. Pure.

The place is said three times, and a program takes whichever it knows: `{cluster_flags}` in its command line
(--ps_hosts=... --worker_hosts=... --job_name=... --task_index=...), TF_CONFIG, and CLUSTER_SPEC with JOB_NAME and
TASK_INDEX in the environment.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dtfctl.plan import LOCALHOST, ClusterPlan, Task

PLACEHOLDERS = ("name", "job", "task", "host", "port", "address", "python", "checkpoint_dir", "cluster_flags")

_PLACEHOLDER = re.compile(r"\{\{|\}\}|(?<!\$)\{([A-Za-z][\w-]*)\}")
_UNSET = ("DTFCTL_TOKEN", "TF_CONFIG", "CLUSTER_SPEC", "JOB_NAME", "TASK_INDEX")
"""Never inherited: they would describe another cluster's task."""


def cluster_spec(plan: ClusterPlan, addresses: Mapping[str, str]) -> dict[str, list[str]]:
    """Job name -> addresses in order of task index, as TensorFlow's ClusterSpec takes it."""
    return {
        job.name: [addresses[f"{job.name}:{index}"] for index in range(job.replicas)]
        for job in plan.jobs
        if job.has_address
    }


def cluster_flags(spec: Mapping[str, list[str]], task: Task) -> list[str]:
    hosts = [f"--{job}_hosts={','.join(addresses)}" for job, addresses in spec.items()]
    return [*hosts, f"--job_name={task.job.name}", f"--task_index={task.index}"]


def tf_config(spec: Mapping[str, list[str]], task: Task) -> dict[str, Any]:
    return {"cluster": dict(spec), "task": {"type": task.job.name, "index": task.index}}


def argv(plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> tuple[str, ...]:
    """The command line as it is executed. A shell line runs under /bin/sh, with values quoted for it."""
    spec = cluster_spec(plan, addresses)
    flags = cluster_flags(spec, task)
    values = _values(plan, task, addresses, spec)
    program = task.job.program
    if isinstance(program, str):
        quoted = {key: shlex.quote(value) for key, value in values.items()}
        line = _fill(program, {**quoted, "cluster_flags": shlex.join(flags)})
        line = re.sub(r"^\s*python3?(?=\s)", lambda _: shlex.quote(task.job.python), line)
        return ("/bin/sh", "-c", line)
    values["cluster_flags"] = " ".join(flags)
    words: list[str] = []
    for word in program:
        words += flags if word == "{cluster_flags}" else [_fill(word, values)]
    if words[0] in ("python", "python3"):
        words[0] = task.job.python
    return tuple(words)


def environment(
    plan: ClusterPlan, task: Task, addresses: Mapping[str, str], inherited: Mapping[str, str]
) -> dict[str, str]:
    """`inherited` is the environment in which `up` was typed."""
    spec = cluster_spec(plan, addresses)
    values = {**_values(plan, task, addresses, spec), "cluster_flags": shlex.join(cluster_flags(spec, task))}
    result = {key: value for key, value in inherited.items() if key not in _UNSET}
    # Programs that the task calls by name come from the interpreter's environment first, as in an activated one.
    folder = os.path.dirname(task.job.python)
    result["PATH"] = os.pathsep.join(filter(None, (folder, result.get("PATH", os.defpath))))
    result |= {
        "PYTHONUNBUFFERED": "1",
        "TF_CONFIG": json.dumps(tf_config(spec, task)),
        "CLUSTER_SPEC": json.dumps(spec),
        "JOB_NAME": task.job.name,
        "TASK_INDEX": str(task.index),
        "DTFCTL_CLUSTER": plan.name,
        "DTFCTL_TASK": task.name,
    }
    return result | {key: _fill(value, values) for key, value in task.job.environment.items()}


def thread_defaults(plan: ClusterPlan, cores: int) -> dict[str, str]:
    """How many threads a task's arithmetic should use when the user does not say: the tasks that decide share the
    cores, since libraries that each take all of them slow one another down many times over.
    """
    computing = sum(job.replicas for job in plan.jobs if job.name in plan.success)
    return {"OMP_NUM_THREADS": str(max(1, cores // max(1, computing)))}


def fill_command(text: str, plan: ClusterPlan, task: Task, addresses: Mapping[str, str]) -> str:
    """Fills the placeholders of a shell line, such as a readiness command."""
    spec = cluster_spec(plan, addresses)
    values = {key: shlex.quote(value) for key, value in _values(plan, task, addresses, spec).items()}
    return _fill(text, {**values, "cluster_flags": shlex.join(cluster_flags(spec, task))})


def unknown_placeholders(text: str, jobs: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields (name, all known names) for each placeholder of `text` that a cluster of these jobs does not have."""
    known = (*PLACEHOLDERS, *(f"{job}_hosts" for job in jobs))
    for match in _PLACEHOLDER.finditer(text):
        if match[1] and match[1] not in known:
            yield match[1], known


def _values(
    plan: ClusterPlan, task: Task, addresses: Mapping[str, str], spec: Mapping[str, list[str]]
) -> dict[str, str]:
    address = addresses.get(task.name, "")
    return {
        "name": plan.name,
        "job": task.job.name,
        "task": str(task.index),
        "host": LOCALHOST,
        "address": address,
        "port": address.rpartition(":")[2],
        "python": task.job.python,
        "checkpoint_dir": plan.checkpoint_dir,
        **{f"{job.name}_hosts": ",".join(spec.get(job.name, [])) for job in plan.jobs},
    }


def _fill(text: str, values: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        return values[match[1]] if match[1] else match[0][0]

    return _PLACEHOLDER.sub(value, text)
