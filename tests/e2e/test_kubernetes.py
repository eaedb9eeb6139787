"""`engine: kubernetes` as a user types it: on the parts of Kubernetes in kubernetes_api.py, and on a real control plane
where DTF_KUBERNETES_BIN names one (`pytest -m kubernetes`)."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
from operator import methodcaller

import pytest

from dtfctl.control.cluster import Cluster
from dtfctl.manifests.rights import RIGHTS
from dtfctl.manifests.supervisor import POD_NAME, POD_UID
from dtfctl.storage.paths import ClusterPaths
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.kubernetes_api import Kubernetes
from tests.kubernetes.control_plane import RealKubernetes, why_not
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(importlib.util.find_spec("kubernetes") is None, reason="needs pip install 'dtf[kubernetes]'"),
]

SLEEPERS = """
name: trial
readiness: none
grace_period: 3s
host_lost_after: 3s
engine: {{kubernetes: {{image: "images/trial:1", folder: "{folder}"}}}}
jobs:
  ps: {{program: "echo ps $HOME; exec sleep 1000"}}
  worker:
    replicas: 2
    program: "echo worker {{task}} has $WORD; while [ ! -e done ]; do sleep 0.02; done; echo bye"
    secrets: [WORD]
"""


REAL = [pytest.mark.kubernetes, pytest.mark.skipif(bool(why_not()), reason=f"no control plane: {why_not()}")]


@pytest.fixture(params=[pytest.param(Kubernetes, id="parts"), pytest.param(RealKubernetes, id="real", marks=REAL)])
def kubernetes(request, tmp_path):
    with request.param(tmp_path, nodes=2) as kubernetes:
        yield kubernetes


@pytest.fixture
def cluster(tmp_path, kubernetes):
    cluster = CommandLine(tmp_path)
    cluster.write(SLEEPERS.format(folder=cluster.folder))
    cluster.timeout_s = 180.0
    cluster.environment |= {"KUBECONFIG": str(kubernetes.kubeconfig), "WORD": "a-secret"}
    yield cluster
    cluster.run("down", "trial", status=None)


def pods_of(kubernetes):
    return {pod["metadata"]["name"].rsplit("-", 2)[0]: pod for pod in kubernetes.pods()}


def tasks_of(cluster):
    return {task["name"]: task for task in cluster.status()["tasks"]}


def test_a_cluster_comes_up_is_looked_at_and_leaves_nothing(cluster, kubernetes):
    up = cluster.run("up")
    assert "all tasks are ready" in up.stderr
    assert set(pods_of(kubernetes)) == {"trial-ps-0", "trial-worker-0", "trial-worker-1"}
    wait_until(lambda: "has a-secret" in cluster.run("logs", "worker:1").stdout, "the worker's output")
    assert "a-secret" not in str(pods_of(kubernetes))
    cluster.run("down", "trial")
    assert kubernetes.left() == []
    assert ("delete", "secrets") in kubernetes.used()


def test_the_training_succeeds_with_its_workers_and_the_ps_go_then(cluster, kubernetes):
    cluster.run("up")
    (cluster.folder / "done").touch()
    cluster.run("wait", "trial")
    tasks = tasks_of(cluster)
    assert {task["state"] for task in tasks.values()} == {"succeeded"}
    assert cluster.run("logs", "worker:0").stdout.endswith("bye\n")
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")


def test_a_killed_task_gets_another_pod_of_its_name(cluster, kubernetes):
    cluster.run("up")
    former = pods_of(kubernetes)["trial-ps-0"]
    node = next(node for node in kubernetes.nodes if node.name == former["spec"]["nodeName"])
    node.processes[former["metadata"]["uid"]].kill()
    wait_until(lambda: tasks_of(cluster)["ps:0"]["restarts"] == 1, "another generation")
    wait_until(lambda: tasks_of(cluster)["ps:0"]["state"] == "running", "the ps")
    wait_until(lambda: len(kubernetes.pods()) == 3, "the end of the former pod")
    present = pods_of(kubernetes)["trial-ps-0"]
    assert present["spec"]["hostname"] == former["spec"]["hostname"]
    assert present["metadata"]["name"] != former["metadata"]["name"]
    assert "killed by SIGKILL" in cluster.run("events").stdout


def test_tasks_of_a_dead_node_come_back_on_another(cluster, kubernetes):
    cluster.run("up")
    dead = min((node for node in kubernetes.nodes if node.processes), key=lambda node: len(node.processes))
    lost = next(pod for pod in kubernetes.pods() if pod["spec"]["nodeName"] == dead.name)
    task = lost["metadata"]["labels"]["dtf.dev/task"].replace(".", ":")
    dead.die()
    kubernetes.evict(dead)
    wait_until(lambda: tasks_of(cluster)[task]["restarts"] == 1, "a replacement", 120)
    wait_until(lambda: tasks_of(cluster)[task]["state"] == "running", "the replacement at work")
    assert lost["metadata"]["name"] not in {pod["metadata"]["name"] for pod in kubernetes.pods()}
    assert tasks_of(cluster)[task]["restarts"] == 1
    events = cluster.run("events").stdout
    assert f"was deleted with its node {dead.name}" in events


@pytest.mark.parametrize("compacts", [False, True])
def test_nothing_befalls_tasks_while_the_api_server_is_away(cluster, kubernetes, compacts):
    cluster.run("up")
    before = {pod["metadata"]["uid"] for pod in kubernetes.pods()}
    kubernetes.go_away()
    wait_until(lambda: "cannot be reached" in cluster.run("events").stdout, "word of it")
    (cluster.folder / "done").touch()
    every = [process.process for node in kubernetes.nodes for process in node.processes.values()]
    wait_until(lambda: sum(process.poll() == 0 for process in every) == 2, "the workers' end")
    assert tasks_of(cluster)["worker:0"]["state"] == "unreachable"
    kubernetes.come_back(compacts)
    cluster.run("wait", "trial")
    assert {uid for node in kubernetes.nodes for uid in node.processes} == before
    assert tasks_of(cluster)["worker:1"]["restarts"] == 0
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")


def test_nothing_befalls_tasks_while_a_proxy_answers_for_the_api_server(tmp_path):
    with Kubernetes(tmp_path, nodes=2) as kubernetes:
        cluster = CommandLine(tmp_path)
        cluster.write(SLEEPERS.format(folder=cluster.folder))
        cluster.environment |= {"KUBECONFIG": str(kubernetes.kubeconfig), "WORD": "a-secret"}
        cluster.run("up")
        before = {pod["metadata"]["uid"] for pod in kubernetes.pods()}
        for status, words in ((200, "is no object of Kubernetes"), (302, "status 302 of HTTP"), (401, "status 401")):
            kubernetes.instead = status, b"<html>Please log in</html>"
            kubernetes.cut()
            wait_until(lambda words=words: words in cluster.run("events").stdout, words)
            kubernetes.instead = None
            wait_until(lambda: tasks_of(cluster)["worker:0"]["state"] == "running", "the server again")
        (cluster.folder / "done").touch()
        cluster.run("wait", "trial")
        assert {uid for node in kubernetes.nodes for uid in node.processes} == before
        assert {task["restarts"] for task in tasks_of(cluster).values()} == {0}
        wait_until(lambda: kubernetes.left() == [], "an empty namespace")


def test_another_supervisor_adopts_the_pods(cluster, kubernetes):
    cluster.run("up")
    before = {pod["metadata"]["uid"] for pod in kubernetes.pods()}
    os.kill(Cluster(ClusterPaths(cluster.state / "trial")).supervisor_pid(), signal.SIGKILL)
    (cluster.folder / "done").touch()
    cluster.run("wait", "trial")
    assert {task["restarts"] for task in tasks_of(cluster).values()} == {0}
    assert before and cluster.run("logs", "worker:0").stdout.count("worker 0 has") == 1
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")
    # The Secrets go with their owner: this supervisor did not create them.
    assert kubernetes.used() == set(RIGHTS) - {("delete", "secrets")}


def test_what_a_run_has_goes_with_the_pod_of_its_supervisor(cluster, kubernetes):
    pod = kubernetes.add_pod("supervisor")
    cluster.environment |= {POD_NAME: "supervisor", POD_UID: pod["metadata"]["uid"]}
    cluster.run("up")
    every = [process.process for node in kubernetes.nodes for process in node.processes.values()]
    for pid in cluster.processes():
        os.kill(pid, signal.SIGKILL)
    kubernetes.delete_by_force("supervisor")
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")
    wait_until(lambda: all(process.poll() is not None for process in every), "the end of the tasks")
    shutil.rmtree(cluster.state)


def test_a_failure_is_the_programs_own_and_its_log_stays(cluster, kubernetes):
    program = ("--set", "jobs.worker.program=echo so it ends; exit 3")
    cluster.run("up", *program, "--set", "jobs.worker.restart=never", status=None)
    cluster.run("wait", "trial", status=10)
    assert "exited with status 3" in cluster.run("events").stdout
    assert "so it ends" in cluster.run("logs", "worker:0").stdout
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")


def told(done):
    """The words of an error."""
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("change", "words", "command"),
    [
        (methodcaller("forbid", "create", "pods"), "you may not create pods", "auth can-i create pods"),
        (methodcaller("limit_pods", 0), "exceeded quota: ", "get resourcequota"),
        (methodcaller("go_away"), "does not answer", "kubectl get pods"),
    ],
)
def test_what_the_engine_refuses_is_told_before_anything_starts(cluster, kubernetes, change, words, command):
    change(kubernetes)
    found = told(cluster.run("up", status=8))
    kubernetes.come_back()
    assert words in found and command in found
    assert kubernetes.left() == []


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("context=nowhere", "no usable context"),
        ("namespace=nowhere", "you may not create configmaps in the namespace nowhere"),
        ("image=", "image"),
    ],
)
def test_a_wrong_place_is_told_in_one_line(cluster, kubernetes, setting, words):
    found = told(cluster.run("up", "--set", f"engine.kubernetes.{setting}", status=None))
    assert words in found
    assert kubernetes.left() == []


def test_an_administrator_is_told_that_the_namespace_does_not_exist(cluster, kubernetes):
    kubernetes.become_administrator()
    found = told(cluster.run("up", "--set", "engine.kubernetes.namespace=nowhere", status=8))
    assert 'namespaces "nowhere" not found' in found and "kubectl --namespace nowhere get namespaces" in found


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("image=missing:1", "ImagePullBackOff: Back-off pulling image"),
        ("options=[spec.nodeSelector.pool=none]", "Unschedulable: 0/2 nodes are available"),
    ],
)
def test_a_pod_that_cannot_begin_tells_why(cluster, kubernetes, setting, words):
    cluster.run("up", "--no-wait", "--set", f"engine.kubernetes.{setting}")
    wait_until(lambda: words in cluster.run("status").stdout, words)
    assert "kubectl describe pod trial-" in cluster.run("status").stdout
    cluster.run("down", "trial")
    assert kubernetes.left() == []


def test_a_real_trainer_trains_there(tmp_path, kubernetes):
    cluster = CommandLine(tmp_path)
    digits = ROOT / "clusters" / "digits"
    for path in digits.iterdir():
        if path.is_file():
            shutil.copy(path, cluster.folder)
    cluster.timeout_s = 300.0
    cluster.environment["KUBECONFIG"] = str(kubernetes.kubeconfig)
    settings = ("--set", "engine.kubernetes.image=i", "--set", f"engine.kubernetes.folder={cluster.folder}")
    cluster.run("up", *settings)
    former = pods_of(kubernetes)["digits-ps-1"]
    node = next(node for node in kubernetes.nodes if node.name == former["spec"]["nodeName"])
    node.processes[former["metadata"]["uid"]].kill()
    cluster.run("wait", "digits")
    assert tasks_of(cluster)["ps:1"]["restarts"] == 1
    assert "accuracy" in cluster.run("logs").stdout
    wait_until(lambda: kubernetes.left() == [], "an empty namespace")
