"""What a pod's state says, what a run puts into its namespace, and where its requests go; without an API server."""

from __future__ import annotations

from pathlib import Path

import pytest

from dtfctl import config
from dtfctl.launchers.base import Launch
from dtfctl.launchers.kubernetes import objects
from dtfctl.launchers.kubernetes.api import kubectl
from dtfctl.launchers.kubernetes.logs import lines
from dtfctl.launchers.kubernetes.pods import Ended, pod_name, seen
from dtfctl.values.engines import KubernetesSettings
from dtfctl.values.plan import KUBERNETES

LABELS = {"dtf.dev/task": "ps.0", "dtf.dev/generation": "3"}
BEGUN = "2026-01-02T03:04:05Z"
OUT_OF_MEMORY = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "startedAt": BEGUN}}
TAINTED = {"type": "DisruptionTarget", "status": "True", "reason": "DeletionByTaintManager", "message": "node is gone"}


def pod(status, state=None, **metadata):
    containers = [{"name": "task", "state": state}] if state else []
    metadata = {"name": "trial-ps-0-3", "uid": "u", "labels": LABELS, **metadata}
    return {"metadata": metadata, "spec": {"nodeName": "n1"}, "status": {**status, "containerStatuses": containers}}


@pytest.mark.parametrize(
    ("status", "state", "ended"),
    [
        ({"phase": "Succeeded"}, {"terminated": {"exitCode": 0}}, Ended(0)),
        ({"phase": "Failed"}, {"terminated": {"exitCode": 3}}, Ended(3)),
        ({"phase": "Failed"}, {"terminated": {"exitCode": 143}}, Ended(signal=15)),
        ({"phase": "Failed"}, {"terminated": {"exitCode": 255}}, Ended(255)),
        ({"phase": "Failed"}, OUT_OF_MEMORY, Ended(signal=9, is_out_of_memory=True)),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk"}, None, Ended(taken="Evicted: disk")),
        (
            {"phase": "Failed", "conditions": [TAINTED]},
            {"terminated": {"exitCode": 143}},
            Ended(signal=15, taken="DeletionByTaintManager: node is gone"),
        ),
        (
            {"phase": "Failed"},
            {"terminated": {"exitCode": 128, "reason": "StartError", "message": "no such file"}},
            Ended(128, refused="StartError: no such file"),
        ),
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError"}, None, Ended(refused="UnexpectedAdmissionError")),
        ({"phase": "Running"}, {"running": {"startedAt": BEGUN}}, None),
    ],
)
def test_how_a_pod_ended_is_read_from_its_container(status, state, ended):
    assert seen(pod(status, state)).ended == ended


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        ({}, {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}, "ErrImagePull: no such image"),
        ({}, {"waiting": {"reason": "ContainerCreating"}}, "its pod is ContainerCreating"),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}]},
            None,
            "Unschedulable: full",
        ),
        ({"phase": "Running"}, {"running": {"startedAt": BEGUN}}, ""),
    ],
)
def test_why_a_pod_waits_is_told_in_the_words_of_kubernetes(status, state, words):
    assert seen(pod({"phase": "Pending", **status}, state)).waiting == words


def test_a_pod_is_known_by_task_and_generation():
    found = seen(pod({"phase": "Running"}, {"running": {"startedAt": BEGUN}}, deletionTimestamp=BEGUN))
    assert found.key == ("ps:0", 3) and found.grace_s == 0.0 and found.node == "n1"
    assert found.began_at == 1767323045.0 and found.pid > 0
    assert seen({"metadata": {"labels": {}}}) is None
    assert seen({}) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("metadata", "labels", "dtf.dev/generation"), "9" * 5000),
        (("metadata", "deletionGracePeriodSeconds"), 10**400),
        (("status", "containerStatuses", 0, "state", "terminated", "exitCode"), 10**400),
        (("status", "containerStatuses", 0, "state", "terminated", "exitCode"), "seven"),
        (("status", "containerStatuses", 0, "state", "terminated", "startedAt"), "0001-01-01T00:00:00+23:59"),
        (("status", "containerStatuses"), {"name": "task"}),
        (("status", "conditions"), [None, 3]),
        (("spec",), []),
    ],
)
def test_values_that_no_server_would_send_harm_nobody(place, value):
    document = pod({"phase": "Failed"}, {"terminated": {"exitCode": 1, "startedAt": BEGUN}}, deletionTimestamp=BEGUN)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    found = seen(document)
    assert found is None or found.ended is None or found.ended.code in (None, 0, 1)


def test_lines_are_whole_wherever_a_piece_ends():
    assert list(lines(iter([b"a\nb", b"c\n", b"\nd"]))) == [b"a\n", b"bc\n", b"\n", b"d"]


TEXT = """
name: trial
program: python t.py {cluster_flags}
secrets: [WORD]
host_lost_after: 2m
engine: {kubernetes: {image: i, context: c, options: [spec.nodeSelector.pool=gpu]}}
jobs: {ps: {replicas: 1, port: 2300}, worker: {replicas: 2, port: 2300}}
"""


def test_a_launch_becomes_a_pod_and_a_secret():
    plan = config.parse(TEXT, "cluster.yaml", Path("/trial"))
    launch = Launch("worker:1", 2, ("run", "--it"), {"WORD": "hidden"}, files={"DTF_TLS_KEY": "key"})
    name = pod_name("trial", "worker:1", "0123456789", 2)
    addresses = {task.name: f"{task.advertised_host}:2222" for task in plan.tasks()}
    body, secret = objects.pod(plan, launch, name, "0123456789", addresses, [{"uid": "o"}])
    spec = body["spec"]
    (container,) = spec["containers"]
    assert body["metadata"]["name"] == "trial-worker-1-01234-2" and body["metadata"]["ownerReferences"]
    assert (spec["hostname"], spec["subdomain"], spec["restartPolicy"]) == ("trial-worker-1", "trial", "Never")
    assert {each["tolerationSeconds"] for each in spec["tolerations"]} == {120}
    assert container["command"] == ["run", "--it"] and spec["nodeSelector"] == {"pool": "gpu"}
    assert secret["stringData"] == {"WORD": "hidden", "DTF_TLS_KEY": "key"} and "hidden" not in str(body)
    environment = {each["name"]: each for each in container["env"]}
    assert environment["WORD"]["valueFrom"]["secretKeyRef"] == {"name": name, "key": "WORD"}
    assert environment["DTF_TLS_KEY"]["value"] == "/run/dtfctl/DTF_TLS_KEY"
    assert seen({**body, "status": {}}).key == ("worker:1", 2)


def test_tasks_of_a_plan_have_addresses_of_the_service():
    plan = config.parse(TEXT, "cluster.yaml", Path("/trial"))
    assert plan.engine == KUBERNETES and {host.via for host in plan.hosts} == {KUBERNETES}
    assert plan.task("worker:1").advertised_host == "trial-worker-1.trial"
    assert {place.port for place in plan.task("worker:1").job.places} == {2300}


def test_what_a_person_types_names_the_same_place():
    assert kubectl(KubernetesSettings(context="c", namespace="n s"), "get", "pods") == (
        "kubectl --context c --namespace 'n s' get pods"
    )
