"""--as supervisor: dtfctl in the cluster, as a Job whose account may do what a run needs and no more. Pure.

A Job, since a Deployment would begin the training again after its end. The state is in the pod: a container that is
started again adopts the run. When the pod itself is taken away, all that the run has goes with it, because the pod owns
it; the Job's next pod goes on from the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dtfctl.errors import ConfigError
from dtfctl.manifests import pods, shared
from dtfctl.manifests.documents import Document, Value, laid
from dtfctl.manifests.rights import RIGHTS
from dtfctl.values.plan import ClusterPlan

POD_NAME, POD_UID = "DTFCTL_POD_NAME", "DTFCTL_POD_UID"
"""Variables by which dtfctl knows the pod that it runs in."""

STATE = "/var/lib/dtfctl"
RETRIES = 3
LEAVE_S = 60
"""Beside the grace period of the tasks: dtfctl ends them in order, and then itself."""

_RBAC = "rbac.authorization.k8s.io"


def supervisor(plan: ClusterPlan, secrets: Mapping[str, str], arguments: Sequence[str]) -> list[Document]:
    """`arguments` are those of `up`, with paths in the image; `secrets` are values by name. Raises ConfigError."""
    name = f"{plan.name}-dtfctl"
    subject: Document = {"kind": "ServiceAccount", "name": name}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": pods.meta(plan, name)},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": pods.meta(plan, name), "rules": rules()},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": pods.meta(plan, name),
            "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": name},
            "subjects": [subject],
        },
        *shared.secret(plan, secrets),
        _job(plan, name, arguments),
    ]


def rules() -> list[Value]:
    """One for each kind of object."""
    found: list[Value] = []
    for resource in dict.fromkeys(resource for _, resource in RIGHTS):
        verbs: list[Value] = [verb for verb, kind in RIGHTS if kind == resource]
        found.append({"apiGroups": [""], "resources": [resource], "verbs": verbs})
    return found


def _job(plan: ClusterPlan, name: str, arguments: Sequence[str]) -> Document:
    # Not the cluster's own label: the Service selects by that.
    labels: Document = {pods.NAME_LABEL: name}
    grace_s = max(task.settings.grace_period_s for task in plan.tasks())
    command: list[Value] = ["python", "-m", "dtfctl", "--state-dir", f"{STATE}/state", "up", *arguments]
    environment: list[Value] = [
        {"name": "HOME", "value": STATE},
        {"name": POD_NAME, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": POD_UID, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        *_secrets(plan),
    ]
    spec: Document = {
        # Its own process 1 ends what dtfctl's processes leave to it.
        "shareProcessNamespace": True,
        "restartPolicy": "OnFailure",
        "serviceAccountName": name,
        "terminationGracePeriodSeconds": round(grace_s) + LEAVE_S,
        "securityContext": {"fsGroup": 1000},
        "imagePullSecrets": [{"name": each} for each in plan.kubernetes.pull_secrets],
        "containers": [
            {
                "name": "dtfctl",
                "image": pods.image_of(plan),
                "command": [*command, "--attach", "--progress", "plain"],
                "workingDir": plan.hosts[0].folder or "/app",
                "env": environment,
                "volumeMounts": [{"name": "state", "mountPath": STATE}],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
        "volumes": [{"name": "state", "emptyDir": {}}],
    }
    template: Document = {"metadata": {"labels": labels}, "spec": laid(spec)}
    job: Document = {"backoffLimit": RETRIES, "template": template}
    metadata: Document = {**pods.meta(plan, name), "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}


def _secrets(plan: ClusterPlan) -> list[Value]:
    """What `up` reads them from."""
    every = {secret.name: secret for task in plan.tasks() for secret in task.settings.secrets}
    for name, secret in every.items():
        if secret.file:
            raise ConfigError(f"{plan.file}: the image has no file {secret.file} for the secret {name}; use a variable")
    return [
        {
            "name": secret.variable,
            "valueFrom": {"secretKeyRef": {"name": pods.secrets_name(plan), "key": name}},
        }
        for name, secret in every.items()
    ]
