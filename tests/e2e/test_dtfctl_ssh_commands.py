"""Commands that reach into other machines: exec, ssh, logs, doctor; machines as in hosts.py."""

from __future__ import annotations

import json

import pytest

from tests.e2e import hosts
from tests.e2e.test_dtfctl_ssh import SLEEPERS, RemoteCluster
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(hosts.why_not()), reason=f"no machines of their own: {hosts.why_not()}"),
]

BOUNDED = SLEEPERS + "logs: {max_size: 64KiB, count: 1}\n"


@pytest.fixture
def cluster(tmp_path):
    with hosts.Laboratory(tmp_path, 3) as laboratory:
        laboratory.boot()
        cluster = RemoteCluster(tmp_path, laboratory, BOUNDED.replace("sleep 0.02", "true"))
        yield cluster
        cluster.run("down", "--timeout", "0", status=None)
        assert cluster.processes() == {}


def test_commands_must_reach_the_tasks_and_hosts_of_other_machines(cluster):
    findings = json.loads(cluster.run("doctor", "-o", "json").stdout)
    assert {each["subject"] for each in findings} > {"node1", "node2", "node3"}
    cluster.run("up")
    script = "echo $JOB_NAME $TASK_INDEX $(hostname); exit 5"
    inside = cluster.run("exec", "worker:1", "--", "sh", "-c", script, status=5)
    assert inside.stdout == "worker 1 node3\n"
    assert cluster.run("ssh", "node2", "--", "hostname").stdout == "node2\n"
    assert cluster.run("ssh", "ps:0", "hostname").stdout == "node1\n"
    assert "no host is called node9 (hosts: node1, node2, node3)" in cluster.run("ssh", "node9", status=4).stderr
    there = next(cluster.laboratory.hosts["node2"].home.rglob("logs/worker-0.1.log"))
    wait_until(lambda: there.stat().st_size > 1 << 20, "a megabyte")
    wait_until(lambda: there.stat().st_blocks * 512 < there.stat().st_size // 2, "the head to be given back there")
    cluster.run("restart", "worker:0")
    assert cluster.run("logs", "worker:0", "-n", "1", "--previous").stdout.startswith("line ")
    cluster.finish()
    cluster.run("wait")
    assert cluster.run("logs", "worker", "-n", "1", "--no-prefix").stdout == "bye\nbye\n"
