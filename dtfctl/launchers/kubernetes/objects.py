"""What a run has in its namespace: an owner, a Service, a pod for each generation of a task with its Secret. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from dtfctl.launchers.base import Launch
from dtfctl.launchers.kubernetes.pods import GENERATION_LABEL, RUN_LABEL, TASK_LABEL
from dtfctl.manifests import pods, shared
from dtfctl.manifests.documents import Document, Value, laid
from dtfctl.manifests.supervisor import POD_NAME, POD_UID
from dtfctl.values.plan import ClusterPlan


def owner(plan: ClusterPlan, token: str, environment: Mapping[str, str]) -> Document:
    """A ConfigMap: with it everything of the run goes. It goes with the pod that dtfctl runs in, if there is one."""
    metadata: Document = {"name": owner_name(plan, token), "labels": labels(plan, token)}
    name, uid = environment.get(POD_NAME), environment.get(POD_UID)
    if name and uid:
        metadata["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cluster": plan.name}}


def owner_name(plan: ClusterPlan, token: str) -> str:
    return f"{plan.name}-run-{token[:5]}"


def labels(plan: ClusterPlan, token: str) -> Document:
    return {pods.NAME_LABEL: plan.name, RUN_LABEL: token[:8]}


def service(plan: ClusterPlan, token: str, references: list[Value]) -> Document:
    found = shared.service(plan)
    found["metadata"] = {"name": plan.name, "labels": labels(plan, token), "ownerReferences": references}
    return found


def references(owner: Document) -> list[Value]:
    """To the owner, as the API server has created it."""
    metadata = owner["metadata"]
    assert isinstance(metadata, dict)
    return [{"apiVersion": "v1", "kind": "ConfigMap", "name": metadata["name"], "uid": metadata["uid"]}]


def pod(
    plan: ClusterPlan,
    launch: Launch,
    name: str,
    token: str,
    addresses: dict[str, str],
    references: list[Value],
) -> tuple[Document, Document | None]:
    """The pod of a launch, and the Secret with its secrets and files, if it has any."""
    task = plan.task(launch.task)
    metadata: Document = {
        "name": name,
        "labels": {
            **labels(plan, token),
            pods.JOB_LABEL: task.job.name,
            TASK_LABEL: launch.task.replace(":", "."),
            GENERATION_LABEL: str(launch.generation),
        },
        "ownerReferences": references,
    }
    form = pods.Form(argv=launch.argv, secret=name, files=tuple(launch.files))
    template = pods.template(plan, task, addresses, form)
    own = template["metadata"]
    spec = template["spec"]
    assert isinstance(own, dict) and isinstance(spec, dict)
    given = own.get("labels")
    metadata["labels"] = {**(given if isinstance(given, dict) else {}), **_mapping(metadata["labels"])}
    place: Document = {
        "hostname": f"{plan.name}-{task.job.name}-{task.index}",
        "subdomain": plan.name,
        "restartPolicy": "Never",
        "tolerations": [_toleration(what, plan.host_lost_after_s) for what in ("not-ready", "unreachable")],
    }
    body: Document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**own, **metadata},
        "spec": {**place, **spec},
    }
    private = _secrets(plan, launch)
    if not private:
        return body, None
    about: Document = {"name": name, "labels": labels(plan, token), "ownerReferences": references}
    return body, {"apiVersion": "v1", "kind": "Secret", "metadata": about, "stringData": {**private}}


def _secrets(plan: ClusterPlan, launch: Launch) -> dict[str, str]:
    names = [secret.name for secret in plan.task(launch.task).settings.secrets]
    return {**{name: launch.environment.get(name, "") for name in names}, **launch.files}


def _toleration(what: str, time_s: float) -> Value:
    found: Document = {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
    return laid({**found, "tolerationSeconds": round(time_s)})


def _mapping(value: Value) -> Document:
    return value if isinstance(value, dict) else {}


