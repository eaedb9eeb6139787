"""The objects that a cluster has whatever runs its tasks: Service, ConfigMap, Secret, claim, budgets. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping

from dtfctl.manifests import pods
from dtfctl.manifests.documents import Document
from dtfctl.plan import expand
from dtfctl.values.plan import ClusterPlan


def service(plan: ClusterPlan) -> Document:
    """Headless: it gives each pod a name in DNS, also before the pod is ready, since servers wait for one another."""
    ports = {pods.port_of(job) for job in plan.jobs if job.has_address}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": pods.meta(plan, plan.name),
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {pods.NAME_LABEL: plan.name},
            "ports": [{"name": f"server-{port}", "port": port} for port in sorted(ports or {pods.PORT})],
        },
    }


def config_map(plan: ClusterPlan, known: Mapping[str, str]) -> Document:
    """The ClusterSpec for programs and people that are no task. In `engine: kubernetes` it also owns all else."""
    members = [job for job in plan.jobs if job.is_member]
    spec = {job.name: [known[f"{job.name}:{index}"] for index in range(job.replicas)] for job in members}
    data: Document = {"cluster": plan.name, "CLUSTER_SPEC": json.dumps(spec)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": pods.meta(plan, plan.name), "data": data}


def secret_names(plan: ClusterPlan) -> dict[str, str]:
    """Where the value of each secret comes from, by its name."""
    return {
        secret.name: expand.secret_key(secret.file, secret.variable)
        for task in plan.tasks()
        for secret in task.settings.secrets
    }


def secret(plan: ClusterPlan, values: Mapping[str, str]) -> list[Document]:
    """The values by name; nothing where there are none."""
    if not values:
        return []
    metadata = pods.meta(plan, pods.secrets_name(plan))
    return [{"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {**values}}]


def claim(plan: ClusterPlan) -> list[Document]:
    """A new claim for the checkpoints, which all tasks can write."""
    if not plan.kubernetes.storage or not pods.claim_of(plan):
        return []
    resources: Document = {"requests": {"storage": plan.kubernetes.storage}}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": pods.meta(plan, pods.claim_of(plan)),
            "spec": {"accessModes": ["ReadWriteMany"], "resources": resources},
        }
    ]


def budgets(plan: ClusterPlan) -> list[Document]:
    """A drained node takes one task of a job at a time. Whole numbers, since pods of Jobs have no scale to ask for."""
    return [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": pods.meta(plan, pods.object_name(plan, job), job),
            "spec": {"minAvailable": job.replicas - 1, "selector": pods.selector(plan, job)},
        }
        for job in plan.jobs
        if job.replicas > 1
    ]
