"""What only a real control plane shows: it takes the objects of `dtfctl expand --as`, and runs the supervisor."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from dtfctl import config
from dtfctl.manifests.written import manifests, of_supervisor
from tests.dtfctl.test_manifests import DIFFERING, TEXT
from tests.kubernetes.control_plane import Answered, RealKubernetes, shared, why_not
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.kubernetes,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=f"no control plane: {why_not()}"),
]

PATHS = {
    "Service": "/api/v1/namespaces/default/services",
    "ConfigMap": "/api/v1/namespaces/default/configmaps",
    "Secret": "/api/v1/namespaces/default/secrets",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "PodDisruptionBudget": "/apis/policy/v1beta1/namespaces/default/poddisruptionbudgets",
    "StatefulSet": "/apis/apps/v1/namespaces/default/statefulsets",
    "Deployment": "/apis/apps/v1/namespaces/default/deployments",
    "Job": "/apis/batch/v1/namespaces/default/jobs",
    "ServiceAccount": "/api/v1/namespaces/default/serviceaccounts",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
    "TFJob": "/apis/kubeflow.org/v1/namespaces/default/tfjobs",
}
LATER = {"policy/v1": "policy/v1beta1"}
"""What the server, of version 1.20, has under an older name; the fields are the same."""


def accept(document):
    """The server's answer to a dry run. Raises Answered."""
    document = {**document, "apiVersion": LATER.get(document["apiVersion"], document["apiVersion"])}
    return shared().ask("POST", PATHS[document["kind"]], document, {"dryRun": "All"})


def define(group, version, plural, kind):
    """The kind of a controller that is not there: its objects are stored whatever they say."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": plural, "kind": kind}
    of_version = {"name": version, "served": True, "storage": True, "schema": schema}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [of_version]}
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    shared().ask("POST", definitions, {"metadata": {"name": f"{plural}.{group}"}, "spec": spec})

    def is_served():
        try:
            return shared().ask("GET", PATHS[kind])["kind"]
        except Answered:
            return ""

    wait_until(is_served, f"the kind {kind}")


@pytest.fixture(scope="module")
def kinds():
    define("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet")
    define("kubeflow.org", "v1", "tfjobs", "TFJob")


@pytest.mark.parametrize(
    ("target", "text"),
    [("kubernetes", TEXT + "tensorboard: true\n"), ("kubernetes", DIFFERING), ("jobset", TEXT), ("tfjob", TEXT)],
)
def test_the_api_server_takes_every_object(kinds, target, text):
    plan = config.parse(text, "cluster.yaml", Path("/trial"))
    documents = list(yaml.safe_load_all(manifests(plan, target, {"API_KEY": "s"})))
    answered = [accept(document) for document in documents]
    assert [each["metadata"]["name"] for each in answered] == [each["metadata"]["name"] for each in documents]


def test_the_api_server_takes_the_supervisor():
    plan = config.parse(TEXT, "cluster.yaml", Path("/trial"))
    for document in yaml.safe_load_all(of_supervisor(plan, ["cluster.yaml"], {"API_KEY": "s"})):
        assert accept(document)["metadata"]["name"]


@pytest.mark.parametrize("target", ["jobset", "tfjob"])
def test_the_pods_of_other_controllers_are_pods(target):
    """The server stores a JobSet unread, so each of its pods is sent by itself."""
    plan = config.parse(TEXT, "cluster.yaml", Path("/trial"))
    one = list(yaml.safe_load_all(manifests(plan, target)))[-1]
    if target == "jobset":
        found = {job["name"]: job["template"]["spec"]["template"] for job in one["spec"]["replicatedJobs"]}
    else:
        found = {kind.lower(): replica["template"] for kind, replica in one["spec"]["tfReplicaSpecs"].items()}
    assert set(found) == {"ps", "chief", "worker", "evaluator"}
    for name, template in found.items():
        pod = {"metadata": {"name": name, **template["metadata"]}, "spec": template["spec"]}
        path = "/api/v1/namespaces/default/pods"
        assert shared().ask("POST", path, pod, {"dryRun": "All"})["spec"]["containers"]


def test_an_object_with_a_mistake_is_refused():
    plan = config.parse(TEXT, "cluster.yaml", Path("/trial"))
    service = next(yaml.safe_load_all(manifests(plan, "kubernetes")))
    service["spec"]["ports"][0]["port"] = 0
    with pytest.raises(Answered, match=r"spec.ports\[0\].port: Invalid value"):
        accept(service)


SLEEPERS = """
name: trial
readiness: none
grace_period: 3s
engine: {{kubernetes: {{image: "images/trial:1", folder: "{folder}"}}}}
secrets: [WORD]
jobs:
  ps: {{program: "exec sleep 1000"}}
  worker: {{replicas: 2, program: "while [ ! -e done ]; do sleep 0.02; done; echo $WORD > said-{{task}}"}}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a process its account's files by a mount, which needs root")
def test_a_supervisor_in_the_cluster_trains_and_leaves_nothing(tmp_path):
    folder = tmp_path / "cluster"
    folder.mkdir()
    text = SLEEPERS.format(folder=folder)
    (folder / "cluster.yaml").write_text(text)
    plan = config.parse(text, "cluster.yaml", folder)
    with RealKubernetes(tmp_path, nodes=2) as kubernetes:

        def place(kind):
            return PATHS[kind].replace("/default/", f"/{kubernetes.namespace}/")

        for document in yaml.safe_load_all(of_supervisor(plan, ["cluster.yaml"], {"WORD": "hidden"})):
            shared().ask("POST", place(document["kind"]), document)

        def running():
            names = [pod["metadata"]["name"] for pod in kubernetes.pods() if pod["status"]["phase"] == "Running"]
            return {name.rsplit("-", 2)[0] for name in names} >= {"trial-ps-0", "trial-worker-0", "trial-worker-1"}

        wait_until(running, "the tasks")
        (folder / "done").touch()
        job = f"{place('Job')}/trial-dtfctl"
        wait_until(lambda: shared().ask("GET", job)["status"].get("succeeded") == 1, "the end of the Job")
        assert {(folder / f"said-{index}").read_text() for index in (0, 1)} == {"hidden\n"}
        wait_until(lambda: kubernetes.left() == [], "an empty namespace")
