"""--as kubernetes: plain objects that need no controller but Kubernetes' own. Pure.

A parameter server's job is a StatefulSet: it comes back by itself, and never ends. Other jobs are Indexed Jobs: a task
that exits with 0 has ended. What no object says remains with dtfctl: the end of the parameter servers after the
training, one order of planned ends, and the replacement of a StatefulSet's pod on a dead node.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtfctl.manifests import pods, shared
from dtfctl.manifests.documents import Document, Value, laid
from dtfctl.manifests.names import task_name
from dtfctl.values.plan import EXIT_CODE, NEVER, ClusterPlan, JobPlan, RestartPolicy

STATEFUL_INDEX = "metadata.labels['apps.kubernetes.io/pod-index']"
JOB_INDEX = "metadata.annotations['batch.kubernetes.io/job-completion-index']"


def objects(plan: ClusterPlan, secrets: Mapping[str, str]) -> list[Document]:
    """`secrets` are values by name. Raises ConfigError."""
    known = pods.addresses(plan, lambda job, index: f"{task_name(plan.name, job, index)}.{plan.name}")
    found = [shared.service(plan), shared.config_map(plan, known), *shared.secret(plan, secrets), *shared.claim(plan)]
    for job in plan.jobs:
        found += _of_job(plan, job, known)
    return [*found, *shared.budgets(plan)]


def _of_job(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> list[Document]:
    if not pods.alike(plan, job):
        return [_single(plan, job, index, known) for index in range(job.replicas)]
    if job.is_sidecar:
        return [_deployment(plan, job, known)]
    return [_stateful_set(plan, job, known) if job.stops_last else indexed_job(plan, job, known)]


def _stateful_set(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": pods.meta(plan, pods.object_name(plan, job), job),
        "spec": {
            "replicas": job.replicas,
            "serviceName": plan.name,
            "podManagementPolicy": "Parallel",
            "selector": pods.selector(plan, job),
            "template": pods.template(plan, pods.any_task(plan, job), known, pods.Form(STATEFUL_INDEX)),
        },
    }


def _deployment(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> Document:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": pods.meta(plan, pods.object_name(plan, job), job),
        "spec": {
            "replicas": job.replicas,
            "selector": pods.selector(plan, job),
            "template": pods.template(plan, plan.task(f"{job.name}:0"), known),
        },
    }


def indexed_job(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> Document:
    template = pods.template(plan, pods.any_task(plan, job), known, pods.Form(JOB_INDEX))
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": pods.meta(plan, pods.object_name(plan, job), job),
        "spec": {
            "completionMode": "Indexed",
            "completions": job.replicas,
            "parallelism": job.replicas,
            **retries(job.settings.restart, job.replicas),
            "template": ended(_in_service(plan, template)),
        },
    }


def _single(plan: ClusterPlan, job: JobPlan, index: int, known: Mapping[str, str]) -> Document:
    """One of the tasks that differ, as a Job of its own under its own host name."""
    name = task_name(plan.name, job.name, index)
    task = plan.task(f"{job.name}:{index}")
    template = ended(_in_service(plan, pods.template(plan, task, known), name))
    labels: Document = {**pods.labels(plan, job), pods.INDEX_LABEL: str(index)}
    template["metadata"] = {**_mapping(template["metadata"]), "labels": {**labels}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**pods.meta(plan, name, job), "labels": labels},
        "spec": {**retries(task.settings.restart, 1), "template": template},
    }


def retries(policy: RestartPolicy, replicas: int) -> Document:
    """A pod that a drain or a preemption takes away is not counted, as in dtfctl."""
    rules: list[Value] = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    if policy.policy == EXIT_CODE:
        tried = sorted({code for first, last in policy.codes for code in range(max(1, first), last + 1)})
        values: list[Value] = [*tried]
        # The schemas before 1.27 require a list of conditions in every rule.
        other: Document = {"onExitCodes": {"operator": "NotIn", "values": values}, "onPodConditions": []}
        rules.append({"action": "FailJob", **other})
    limit = 0 if policy.policy == NEVER else policy.attempts * replicas
    return {"backoffLimit": limit, "podFailurePolicy": {"rules": rules}}


def ended(template: Document) -> Document:
    """A template whose pods are not restarted in place: each try has a pod, and logs, of its own."""
    return {**template, "spec": {**_mapping(template["spec"]), "restartPolicy": "Never"}}


def _in_service(plan: ClusterPlan, template: Document, hostname: str = "") -> Document:
    place = laid({"hostname": hostname or None, "subdomain": plan.name})
    return {**template, "spec": {**place, **_mapping(template["spec"])}}


def _mapping(value: Value) -> Document:
    assert isinstance(value, dict)
    return value
