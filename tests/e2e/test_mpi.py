"""`engine: mpi` as a user types it, with real mpirun on hosts of this machine."""

from __future__ import annotations

import os
import signal

import pytest

from dtfctl.control.cluster import Cluster
from dtfctl.storage.paths import ClusterPaths
from tests.e2e.dtfctl_cluster import CommandLine
from tests.e2e.mpi import Mpi, why_not
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(bool(why_not()), reason=f"no MPI: {why_not()}"),
]

TEXT = """
name: trial
readiness: none
grace_period: 3s
engine: {{mpi: {{nodes: 2, {settings}}}}}
jobs:
  ps: {{program: "echo ps on $(uname -n); exec sleep 1000"}}
  worker: {{replicas: 2, program: "echo {{task}} on $(uname -n); while [ ! -e done ]; do sleep 0.02; done; echo bye"}}
"""


@pytest.fixture
def mpi(tmp_path):
    return Mpi(tmp_path, nodes=3)


@pytest.fixture
def cluster(tmp_path, mpi):
    cluster = CommandLine(tmp_path, TEXT.format(settings=mpi.settings))
    cluster.environment["XDG_STATE_HOME"] = str(tmp_path / "state of hosts")
    yield cluster
    cluster.run("down", "trial", status=None)


def left_on_hosts(cluster):
    folder = cluster.state.parent / "state of hosts" / "dtfctl" / "hosts"
    return [entry.name for entry in folder.iterdir()] if folder.exists() else []


def told(done):
    return " ".join(done.stderr.split())


def test_tasks_on_hosts_of_mpirun_outlive_its_daemons_and_the_supervisor(cluster, mpi):
    cluster.run("up")
    assert cluster.task("ps:0")["host"] == "node-1" and cluster.task("worker:0")["host"] == "node-2"
    wait_until(lambda: "0 on node2" in cluster.run("logs", "worker:0").stdout, "the worker's output")
    mpi.cut("node2")
    wait_until(lambda: "node-2 is reachable again" in cluster.run("events").stdout, "node-2 again")
    os.kill(Cluster(ClusterPaths(cluster.state / "trial")).supervisor_pid(), signal.SIGKILL)
    cluster.wait_for_restart("worker:1", cluster.kill("worker:1"))
    assert {task["name"]: task["restarts"] for task in cluster.status()["tasks"]}["worker:0"] == 0
    cluster.finish()
    cluster.run("wait", "trial")
    assert cluster.run("logs", "worker:0").stdout.endswith("0 on node2\nbye\n")
    wait_until(lambda: not cluster.processes(), "the end of all processes")
    assert left_on_hosts(cluster) == []


def test_what_mpirun_refuses_is_told_before_anything_starts(cluster):
    found = told(cluster.run("up", "--set", "engine.mpi.options=[--hostfile nowhere]", status=8))
    assert "unable to open the hostfile: nowhere" in found and "--hostfile nowhere" in found.partition("see: ")[2]
    assert left_on_hosts(cluster) == [] and not cluster.processes()
