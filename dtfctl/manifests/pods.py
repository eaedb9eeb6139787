"""A pod of Kubernetes for a task, or for all tasks of a job that differ only by their index. Pure.

A dtf server answers no grpc.health.v1, which is what a kubelet's gRPC probe asks for. The probes of `readiness: grpc`
are therefore of the port: a server of dtf or TensorFlow opens it when it begins to serve.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dtfctl.config.source import yaml_value
from dtfctl.errors import ConfigError
from dtfctl.manifests.documents import Document, Value, changed, laid
from dtfctl.manifests.names import job_name
from dtfctl.plan import expand
from dtfctl.values.plan import ClusterPlan, JobPlan, Place, Probe, Settings, Task

PORT = 2222
"""Each pod has an address of its own, so all servers may have the same port."""

INDEX = "TASK_INDEX"
CHECKPOINTS = "checkpoints"
FILES = "/run/dtfctl"
"""Where a pod has the files of its Secret."""

CONTAINER = "task"
NAME_LABEL = "app.kubernetes.io/name"
JOB_LABEL = "dtf.dev/job"
INDEX_LABEL = "dtf.dev/index"

_ANY_INDEX = 987_654_321
"""Stands for the index in a template, until it becomes $(TASK_INDEX)."""

_FORWARD = (
    '/bin/sh -c "$1" & p=$!; '
    "trap 'trap \"\" TERM; kill -TERM 0' TERM; "
    "wait $p; s=$?; "
    "while kill -0 $p 2> /dev/null; do wait $p; s=$?; done; "
    "exit $s"
)
"""Kubernetes sends SIGTERM to a container's first process alone, and a shell waits for its command before it runs a
trap. So a shell in front passes the signal on to all processes of the group."""

_SECURITY: Document = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


@dataclass(frozen=True)
class AnyTask(Task):
    """Stands for every task of a job whose tasks differ only by their index."""

    @property
    def place(self) -> Place:
        return self.job.places[0]

    @property
    def settings(self) -> Settings:
        return self.job.settings


def any_task(plan: ClusterPlan, job: JobPlan) -> Task:
    return AnyTask(job, _ANY_INDEX, plan.host(job.places[0].host), plan.folder)


def port_of(job: JobPlan) -> int:
    return job.places[0].port or PORT


def addresses(plan: ClusterPlan, host_of: Callable[[str, int], str]) -> dict[str, str]:
    """By task; `host_of` names the host of a job's task with this index."""
    found = {}
    for job in plan.jobs:
        if job.has_address:
            for index in (*range(job.replicas), _ANY_INDEX):
                found[f"{job.name}:{index}"] = f"{host_of(job.name, index)}:{port_of(job)}"
    return found


def alike(plan: ClusterPlan, job: JobPlan) -> bool:
    """Whether one template does for all tasks of a job."""
    return not job.overrides and len({(place.port, len(place.cpus), _gpus(place)) for place in job.places}) == 1


def labels(plan: ClusterPlan, job: JobPlan) -> Document:
    return {NAME_LABEL: plan.name, JOB_LABEL: job.name}


@dataclass(frozen=True)
class Form:
    """How a pod is written.

    Attributes:
      index_from: the field of a pod with its index, where the pod stands for every task of the job.
      container: the name of the container.
      port_name: that of its port.
      without: variables that the engine sets itself.
      argv: the command, where it is not the file's.
      secret: the Secret with the values of secrets, where it is not the cluster's.
      files: keys of that Secret that become files, and variables with their paths.
    """

    index_from: str = ""
    container: str = CONTAINER
    port_name: str = "server"
    without: tuple[str, ...] = ()
    argv: tuple[str, ...] = ()
    secret: str = ""
    files: tuple[str, ...] = ()


def template(plan: ClusterPlan, task: Task, known: Mapping[str, str], form: Form = Form()) -> Document:  # noqa: B008
    """metadata and spec of a pod; `known` are addresses by task."""
    settings, index_from = task.settings, form.index_from
    environment: list[Value] = []
    if index_from:
        environment.append({"name": INDEX, "valueFrom": {"fieldRef": {"fieldPath": index_from}}})
    environment += _environment(plan, task, known, form)
    argv = form.argv or expand.argv(plan, task, known)
    spec: Document = {
        # Its own: a task is then not process 1, to which the default action of SIGTERM does not apply.
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": max(1, round(settings.grace_period_s)),
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "securityContext": {"fsGroup": 1000},
        "imagePullSecrets": [{"name": name} for name in plan.kubernetes.pull_secrets],
        "containers": [
            laid(
                {
                    "name": form.container,
                    "image": image_of(plan),
                    "command": [_said(word) for word in command(argv)],
                    "workingDir": task.working_dir,
                    "env": environment,
                    "ports": _ports(task.job, form),
                    "readinessProbe": probe(plan, task, settings.readiness, known),
                    "livenessProbe": probe(plan, task, settings.liveness, known),
                    "resources": _resources(plan, task),
                    "volumeMounts": _mounts(plan, task, form),
                    "securityContext": _SECURITY,
                }
            )
        ],
        "volumes": _volumes(plan, form),
    }
    pod: Document = {"metadata": {"labels": labels(plan, task.job)}, "spec": laid(spec)}
    return changed(pod, plan.kubernetes.options, plan.kubernetes.without, yaml_value)


def command(argv: Sequence[str]) -> tuple[str, ...]:
    """The command of a container, whose whole process group gets SIGTERM."""
    if len(argv) >= 3 and tuple(argv[-3:-1]) == ("/bin/sh", "-c"):
        return (*argv[:-1], _FORWARD, "sh", argv[-1])
    return tuple(argv)


def _ports(job: JobPlan, form: Form) -> list[Value]:
    return [{"name": form.port_name, "containerPort": port_of(job)}] if job.has_address else []


def image_of(plan: ClusterPlan) -> str:
    """Raises ConfigError where the file names none."""
    if not plan.kubernetes.image:
        raise ConfigError(
            f"{plan.file}: no image for the pods; build one (dtfctl expand --as containerfile) and name it: "
            "--set engine.kubernetes.image=..."
        )
    return plan.kubernetes.image


def claim_of(plan: ClusterPlan) -> str:
    """The claim for the checkpoints, "" where they have no volume."""
    if not plan.checkpoint_folder:
        return ""
    return plan.kubernetes.claim or (f"{plan.name}-{CHECKPOINTS}" if plan.kubernetes.storage else "")


def secrets_name(plan: ClusterPlan) -> str:
    return f"{plan.name}-secrets"


def variables(plan: ClusterPlan, task: Task, known: Mapping[str, str]) -> dict[str, str]:
    """The environment that a task gets on top of its image's; secrets are not in it."""
    found = expand.environment(plan, task, known, {}, None)
    for secret in task.settings.secrets:
        found.pop(secret.name, None)
    own = task.settings.environment.keys() | task.settings.env_file_values.keys()
    if "PATH" not in own:
        # The image's PATH counts; that of another machine means nothing here.
        found.pop("PATH", None)
    if task.place.gpus and "CUDA_VISIBLE_DEVICES" not in own:
        # The device plugin gives a container GPUs of its own, which count from 0.
        found.pop("CUDA_VISIBLE_DEVICES", None)
    return found


def _environment(plan: ClusterPlan, task: Task, known: Mapping[str, str], form: Form) -> list[Value]:
    given = variables(plan, task, known) | {name: f"{FILES}/{name}" for name in form.files}
    without = {*form.without, *((INDEX,) if form.index_from else ())}
    found: list[Value] = [
        {"name": name, "value": _said(value)} for name, value in given.items() if name not in without
    ]
    source = form.secret or secrets_name(plan)
    return found + [
        {"name": secret.name, "valueFrom": {"secretKeyRef": {"name": source, "key": secret.name}}}
        for secret in task.settings.secrets
    ]


def _said(text: str) -> str:
    """For a field in which Kubernetes fills $(NAME): only $(TASK_INDEX) is meant."""
    return re.sub(r"\$(?=[$(])", "$$", text).replace(str(_ANY_INDEX), f"$({INDEX})")


def probe(plan: ClusterPlan, task: Task, asked: Probe, known: Mapping[str, str]) -> Document | None:
    """How a kubelet asks what the file asks for; None where it cannot, or nothing is asked."""
    handler: Document
    if asked.kind in ("grpc", "tcp") and task.job.has_address:
        handler = {"tcpSocket": {"port": port_of(task.job)}}
    elif asked.kind == "command":
        line = expand.fill_command(asked.target, plan, task, known)
        handler = {"exec": {"command": ["/bin/sh", "-c", _plain(line)]}}
    elif asked.kind == "file":
        path = expand.fill_path(asked.target, plan, task, known)
        handler = {"exec": {"command": ["/bin/sh", "-c", f"test -e {shlex.quote(_plain(path))}"]}}
    else:
        return None
    times = {"periodSeconds": max(1, round(asked.interval_s)), "timeoutSeconds": max(1, round(asked.timeout_s))}
    return {**handler, **times, "failureThreshold": asked.failures}


def _plain(text: str) -> str:
    """A probe's command runs in the container, where the variable is."""
    return text.replace(str(_ANY_INDEX), f"${INDEX}")


def _resources(plan: ClusterPlan, task: Task) -> Document:
    wanted: Document = {}
    if task.place.cpus:
        wanted["cpu"] = str(len(task.place.cpus))
    if task.settings.limits.memory_bytes is not None:
        wanted["memory"] = str(task.settings.limits.memory_bytes)
    gpus: Document = {plan.kubernetes.gpu: str(_gpus(task.place))} if _gpus(task.place) else {}
    return laid({"requests": wanted, "limits": {**wanted, **gpus}})


def _gpus(place: Place) -> int:
    return len(place.gpus or ())


def _mounts(plan: ClusterPlan, task: Task, form: Form) -> list[Value]:
    found: list[Value] = []
    if claim_of(plan):
        found.append({"name": CHECKPOINTS, "mountPath": os.path.normpath(task.path(plan.checkpoint_folder))})
    if form.files:
        found.append({"name": "files", "mountPath": FILES, "readOnly": True})
    return found


def _volumes(plan: ClusterPlan, form: Form) -> list[Value]:
    found: list[Value] = []
    if claim_of(plan):
        found.append({"name": CHECKPOINTS, "persistentVolumeClaim": {"claimName": claim_of(plan)}})
    if form.files:
        items: list[Value] = [{"key": name, "path": name} for name in form.files]
        found.append({"name": "files", "secret": {"secretName": form.secret, "items": items, "defaultMode": 0o440}})
    return found


def meta(plan: ClusterPlan, name: str, job: JobPlan | None = None) -> Document:
    """An object's metadata."""
    own = {NAME_LABEL: plan.name} if job is None else labels(plan, job)
    return laid({"name": name, "namespace": plan.kubernetes.namespace or None, "labels": {**own}})


def selector(plan: ClusterPlan, job: JobPlan) -> Document:
    return {"matchLabels": labels(plan, job)}


def object_name(plan: ClusterPlan, job: JobPlan) -> str:
    return job_name(plan.name, job.name)


def refuse_overrides(plan: ClusterPlan, job: JobPlan, kind: str) -> None:
    """Raises ConfigError where tasks of a job differ, and `kind` has one template for all."""
    if not alike(plan, job):
        raise ConfigError(
            f"{plan.file}: {kind} has one template for all tasks of {job.name}, and some of them differ; "
            "use --as kubernetes, or make them alike"
        )
