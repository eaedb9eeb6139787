"""--as jobset: one JobSet (jobset.x-k8s.io/v1alpha2), whose controller must be installed. Pure.

The JobSet succeeds with the deciding jobs, and ends the parameter servers then. A failure that a Job does not retry
restarts all jobs, as often as the restart policy's attempts say.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtfctl.manifests import objects, pods, shared
from dtfctl.manifests.documents import Document, Value
from dtfctl.manifests.names import task_name
from dtfctl.values.plan import ANY, ClusterPlan, JobPlan


def jobset(plan: ClusterPlan, secrets: Mapping[str, str]) -> list[Document]:
    """`secrets` are values by name. Raises ConfigError."""
    known = pods.addresses(plan, lambda job, index: f"{task_name(plan.name, job, 0)}-{index}.{plan.name}")
    replicated: list[Value] = [_replicated(plan, job, known) for job in plan.jobs]
    attempts = max(job.settings.restart.attempts for job in plan.jobs)
    deciding: list[Value] = [*plan.success]
    one: Document = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": pods.meta(plan, plan.name),
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": plan.name, "publishNotReadyAddresses": True},
            "successPolicy": {
                "operator": "Any" if plan.success_rule == ANY else "All",
                "targetReplicatedJobs": deciding,
            },
            "failurePolicy": {"maxRestarts": attempts},
            "replicatedJobs": replicated,
        },
    }
    rest = [*shared.secret(plan, secrets), *shared.claim(plan), *shared.budgets(plan)]
    return [shared.config_map(plan, known), *rest, one]


def _replicated(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> Document:
    pods.refuse_overrides(plan, job, "A JobSet")
    found = objects.indexed_job(plan, job, known)
    return {"name": job.name, "replicas": 1, "template": {"spec": found["spec"]}}
