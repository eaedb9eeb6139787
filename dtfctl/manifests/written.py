"""The objects of each `dtfctl expand --as` as YAML. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dtfctl.config.source import write_documents
from dtfctl.manifests.documents import Document
from dtfctl.manifests.jobset import jobset
from dtfctl.manifests.objects import objects
from dtfctl.manifests.supervisor import supervisor
from dtfctl.manifests.tfjob import tfjob
from dtfctl.values.plan import ClusterPlan

TARGETS: dict[str, Callable[[ClusterPlan, Mapping[str, str]], list[Document]]] = {
    "kubernetes": objects,
    "jobset": jobset,
    "tfjob": tfjob,
}


SUPERVISOR = "supervisor"


def manifests(plan: ClusterPlan, target: str, secrets: Mapping[str, str] | None = None) -> str:
    """The YAML of `--as target`, one of TARGETS. Without values of `secrets` the Secret is left to the user. Raises
    ConfigError."""
    return write_documents(list(TARGETS[target](plan, secrets or {})))


def of_supervisor(plan: ClusterPlan, arguments: Sequence[str], secrets: Mapping[str, str] | None = None) -> str:
    """The YAML of `--as supervisor`; `arguments` are those of its `up`. Raises ConfigError."""
    return write_documents(list(supervisor(plan, secrets or {}, arguments)))
