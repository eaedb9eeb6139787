"""--as tfjob: one TFJob (kubeflow.org/v1), which needs the training operator. Pure.

    the cluster file                        the TFJob
    jobs ps, worker, chief, master, ...     tfReplicaSpecs PS, Worker, Chief, Master, Evaluator
    replicas                                replicas
    restart: always, on-failure, never,     restartPolicy: Always, OnFailure, Never,
             exit-code                                     ExitCode (128-255 are tried again)
    success: all workers                    successPolicy: AllWorkers; otherwise the chief, or worker 0
    restart: {attempts}                     runPolicy.backoffLimit
    what ends after the training: ps        runPolicy.cleanPodPolicy: Running

The operator makes TF_CONFIG, and a Service for each task.
"""

from __future__ import annotations

from collections.abc import Mapping

from dtfctl.errors import ConfigError
from dtfctl.manifests import pods, shared
from dtfctl.manifests.documents import Document, Value
from dtfctl.manifests.names import task_name
from dtfctl.values.plan import ALL, ALWAYS, EXIT_CODE, NEVER, ON_FAILURE, SPARSE, ClusterPlan, JobPlan

REPLICAS = {"ps": "PS", "worker": "Worker", "chief": "Chief", "master": "Master", "evaluator": "Evaluator"}
RESTARTS = {ALWAYS: "Always", ON_FAILURE: "OnFailure", NEVER: "Never", EXIT_CODE: "ExitCode"}
INDEX_LABEL = "metadata.labels['training.kubeflow.org/replica-index']"
CONTAINER = "tensorflow"
PORT_NAME = "tfjob-port"


def tfjob(plan: ClusterPlan, secrets: Mapping[str, str]) -> list[Document]:
    """`secrets` are values by name. Raises ConfigError for a job of another kind, or tasks that differ."""
    known = pods.addresses(plan, lambda job, index: task_name(plan.name, job, index))
    replicas: Document = {}
    for job in plan.jobs:
        if job.name not in REPLICAS or job.is_sidecar:
            kinds = ", ".join(REPLICAS)
            raise ConfigError(f'{plan.file}: a TFJob has no place for the job "{job.name}" (it takes {kinds})')
        replicas[REPLICAS[job.name]] = _replica(plan, job, known)
    chiefs = {"chief", "master"} & {job.name for job in plan.jobs}
    spec: Document = {
        "runPolicy": {
            "cleanPodPolicy": "Running",
            "backoffLimit": max(job.settings.restart.attempts for job in plan.jobs),
        },
        "successPolicy": "AllWorkers" if not chiefs and plan.success_rule == ALL else "",
        "tfReplicaSpecs": replicas,
    }
    if any(task.settings.cluster_spec == SPARSE for task in plan.tasks()):
        spec["enableDynamicWorker"] = True
    one: Document = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": pods.meta(plan, plan.name),
        "spec": spec,
    }
    return [*shared.secret(plan, secrets), *shared.claim(plan), one]


def _replica(plan: ClusterPlan, job: JobPlan, known: Mapping[str, str]) -> Document:
    pods.refuse_overrides(plan, job, "A TFJob")
    form = pods.Form(INDEX_LABEL, CONTAINER, PORT_NAME, ("TF_CONFIG",))
    task = pods.any_task(plan, job)
    template: Value = pods.template(plan, task, known, form)
    return {
        "replicas": job.replicas,
        "restartPolicy": RESTARTS[job.settings.restart.policy],
        "template": template,
    }
