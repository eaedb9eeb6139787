"""Clusters on Slurm's nodes that are machines with a wire, an address and munge: see slurm_machines.py."""

from __future__ import annotations

import pytest

from tests.e2e import slurm_machines
from tests.e2e.dtfctl_cluster import CommandLine
from tests.e2e.slurm import processes_of_node, tasks_of_node
from tests.e2e.slurm_machines import SlurmMachines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        bool(slurm_machines.why_not()), reason=f"no Slurm on machines of their own: {slurm_machines.why_not()}"
    ),
]

# A task holds the lock of its name for as long as it or a child of it lives.
CLUSTER = """
name: trial
readiness: none
grace_period: 3s
fence_after: 5s
host_lost_after: 8s
restart: {backoff: 100ms}
engine: {slurm: {nodes: 3, spares: 1}}
jobs:
  ps: {program: "echo ps at {address}; exec sleep 1000"}
  worker:
    replicas: 2
    program: |
      exec 9> lock-{task}
      flock --nonblock 9 || echo {task} >> twice
      echo worker {task} on $(hostname) at {address}
      i=0
      while [ ! -e done ]; do i=$((i+1)); echo line $i; sleep 0.02; done
      echo bye
"""


@pytest.fixture
def slurm(tmp_path):
    with SlurmMachines(tmp_path, 3) as slurm:
        yield slurm


@pytest.fixture
def cluster(tmp_path, slurm):
    cluster = CommandLine(tmp_path, CLUSTER)
    cluster.timeout_s = 180.0
    cluster.prefix = slurm.prefix
    cluster.environment.update({name: slurm.environment[name] for name in ("PATH", "SLURM_CONF", "XDG_STATE_HOME")})
    cluster.run("up")
    for task in ("worker-0", "worker-1"):
        slurm.wait_until(lambda task=task: "line 1\n" in log_of(cluster, task), task)
    yield cluster
    slurm.end_all()
    assert cluster.processes() == {}


def log_of(cluster, task, generation=1):
    path = cluster.state / "trial" / "runs" / "0001" / "logs" / f"{task}.{generation}.log"
    return path.read_text() if path.exists() else ""


def finish(cluster, slurm):
    (cluster.folder / "done").touch()
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"), "the end of the job")
    assert cluster.status()["state"] == "succeeded"
    assert not (cluster.folder / "twice").exists(), "a task ran twice at once"
    assert cluster.run("logs", "worker:0").stdout.endswith("bye\n")


def test_tasks_of_a_node_without_a_wire_must_be_fenced_and_go_on_elsewhere(cluster, slurm):
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    assert before["worker:0"]["host"] == "node2"
    slurm.cut_node("node2")
    slurm.wait_until(lambda: "line 1\n" in log_of(cluster, "worker-0", generation=2), "worker:0 on the spare")
    assert "worker 0 on node3 at node3:" in log_of(cluster, "worker-0", generation=2)
    assert not slurm.nodes["node2"].processes("line $i"), "both write"
    after = {task["name"]: task for task in cluster.status()["tasks"]}
    assert after["worker:0"]["address"] != before["worker:0"]["address"]
    for name in ("ps:0", "worker:1"):
        assert after[name]["address"] == before[name]["address"]
    conf = slurm.environment["SLURM_CONF"]
    slurm.wait_until(lambda: not tasks_of_node("node2", conf), "the end of all that runs there")
    slurm.wait_until(lambda: slurm.state_of("node2").startswith("down"), "the loss of node2")
    slurm.mend_node("node2")
    slurm.wait_until(lambda: slurm.state_of("node2") == "idle", "the return of node2")
    assert not processes_of_node("node2", conf)
    assert cluster.task("worker:0")["pid"] == after["worker:0"]["pid"]
    finish(cluster, slurm)


def test_tasks_of_a_node_that_reboots_must_run_again(cluster, slurm):
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    slurm.kill_node("node2")
    slurm.start_node("node2")
    slurm.wait_until(lambda: "line 1\n" in log_of(cluster, "worker-0", generation=2), "worker:0 once more")
    after = {task["name"]: task for task in cluster.status()["tasks"]}
    assert after["worker:1"]["pid"] == before["worker:1"]["pid"]
    assert slurm.run("squeue", "-h", "-o", "%T") == "RUNNING"
    finish(cluster, slurm)


def test_a_short_cut_must_harm_no_task(cluster, slurm):
    before = cluster.status()["tasks"]
    slurm.cut_node("node2")
    slurm.wait_until(lambda: "node2 cannot be reached" in cluster.run("events").stdout, "the cut to be noticed")
    slurm.mend_node("node2")
    slurm.wait_until(lambda: "node2 is reachable again" in cluster.run("events").stdout, "the end of the cut")
    after = cluster.status()["tasks"]
    assert [(task["name"], task["pid"], task["restarts"]) for task in after] == [
        (task["name"], task["pid"], 0) for task in before
    ]
    finish(cluster, slurm)


def test_a_first_node_that_reboots_must_be_told_and_no_supervisor_be_revived(cluster, slurm):
    slurm.kill_node("node1")
    slurm.start_node("node1")
    # Slurm takes the job for running, and steps begin there.
    words = cluster.run("status", status=3).stderr
    assert "node1, the first node of job 1 of Slurm, was restarted" in words and "scontrol requeue 1" in words, words
    assert "cancelled" in cluster.run("down").stderr
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"), "the end of the job")
    assert cluster.status()["state"] == "stopped"
    for name in slurm.nodes:
        assert not processes_of_node(name, slurm.environment["SLURM_CONF"])
