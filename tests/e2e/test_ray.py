"""Clusters on Ray: real raylets on this machine, see ray_cluster.py."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from tests.e2e import ray_cluster
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(ray_cluster.why_not()), reason=f"no Ray: {ray_cluster.why_not()}"),
]

SLEEPERS = f"""
name: trial
readiness: none
grace_period: 3s
engine: {{ray: {{nodes: 2, python: {ray_cluster.PYTHON}}}}}
jobs:
  ps: {{program: "echo ps; exec sleep 1000"}}
  worker:
    replicas: 2
    program: |
      echo worker {{task}} on {{host}}
      while [ ! -e done ]; do sleep 0.02; done
      echo bye
"""

NOTHING = {"actors": {}, "groups": 0}


@pytest.fixture
def ray():
    return ray_cluster.shared()


@pytest.fixture
def cluster(tmp_path, ray):
    cluster = CommandLine(tmp_path, SLEEPERS)
    cluster.timeout_s = 400.0
    cluster.environment["RAY_ADDRESS"] = ray.address
    yield cluster
    cluster.run("down", status=None)
    assert ray.left() == NOTHING
    wait_until(lambda: cluster.processes() == {}, "the end of all processes of the cluster", 60)


def test_a_cluster_must_run_on_hosts_of_its_group_and_leave_nothing(cluster, ray):
    cluster.run("up")
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert {task["host"] for task in tasks.values()} == {"node-1", "node-2"}
    assert sorted(name.rpartition("/")[2] for name in ray.left()["actors"]) == ["node-1", "node-2"]
    assert "matches the file" in cluster.run("up", "--plan").stdout
    cluster.run("scale", "worker=3")
    refused = cluster.run("up", "--set", "engine.ray.nodes=3", status=8)
    assert "their number cannot change" in refused.stderr
    cluster.finish()
    assert cluster.run("wait").returncode == 0
    assert "worker 1 on node-" in cluster.run("logs", "worker:1").stdout
    wait_until(lambda: ray.left() == NOTHING, "the end of the group", 60)


def test_the_death_of_an_actor_must_end_its_tasks_and_cost_no_attempt(cluster, ray):
    cluster.run("up")
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    actors = {name.rpartition("/")[2]: pid for name, pid in ray.left()["actors"].items()}
    os.kill(actors["node-1"], signal.SIGKILL)
    hit = [name for name, task in before.items() if task["host"] == "node-1"]
    for name in hit:
        cluster.wait_for_restart(name, before[name]["pid"])
        assert not os.path.exists(f"/proc/{before[name]['pid']}"), "nobody may run twice"
    after = {task["name"]: task for task in cluster.status()["tasks"]}
    assert cluster.run("events").stdout.count("restart not counted") >= len(hit)
    assert {name for name in after if after[name]["pid"] == before[name]["pid"]} == after.keys() - set(hit)


def test_tasks_of_a_lost_node_must_come_back_when_ray_has_another(cluster, ray):
    cluster.run("up")
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    ray.lose_node()

    def unreachable():
        return {task["host"] for task in cluster.status()["tasks"] if task["state"] == "unreachable"}

    try:
        (host,) = wait_until(unreachable, "the loss")
    finally:
        ray.replace_node()
    lost = {name for name, task in before.items() if task["host"] == host}
    for name in lost:
        cluster.wait_for_restart(name, before[name]["pid"])
        assert not os.path.exists(f"/proc/{before[name]['pid']}"), "nobody may run twice"
    after = {task["name"]: task for task in cluster.status()["tasks"]}
    assert {name for name in after if after[name]["pid"] == before[name]["pid"]} == after.keys() - lost
    assert cluster.run("events").stdout.count("restart not counted") >= len(lost)


def test_too_few_nodes_must_be_told_with_the_reason_of_ray(cluster, ray):
    refused = cluster.run("up", "--set", "engine.ray.nodes=3", status=8)
    assert "Ray says " in refused.stderr and "3 hosts with CPU" in refused.stderr and "ray status" in refused.stderr
    assert ray.left() == NOTHING


def test_hosts_that_cannot_be_used_must_be_given_back(cluster, ray):
    refused = cluster.run("up", "--set", "python=/nowhere/python", status=8)
    assert "/nowhere/python: no such file" in refused.stderr.lower()
    assert ray.left() == NOTHING


def test_no_ray_must_be_told_at_once(cluster):
    refused = cluster.run("up", "--set", "engine.ray.address=127.0.0.1:1", status=8)
    assert "no Ray answers at 127.0.0.1:1: Connection refused" in refused.stderr


def test_a_program_of_ray_can_run_a_cluster_file(cluster, ray):
    has_all = subprocess.run([ray_cluster.PYTHON, "-c", "import click, ray, rich, yaml, psutil"], capture_output=True)
    if has_all.returncode:
        pytest.skip(f"{ray_cluster.PYTHON} has ray, and not what dtfctl needs: pip install 'dtf[ray]'")
    cluster.finish()
    program = "import dtfctl.ray; dtfctl.ray.run('cluster.yaml', {'jobs.worker.replicas': 1}); print('trained')"
    done = subprocess.run(
        [ray_cluster.PYTHON, "-c", program],
        cwd=cluster.folder,
        env={**cluster.environment, "PYTHONPATH": str(ROOT), "RAY_USAGE_STATS_ENABLED": "0"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert "trained" in done.stdout
    assert ray.left() == NOTHING


def test_the_example_must_train_on_its_hosts(cluster, ray):
    shutil.copytree(ROOT / "clusters/ray-digits", cluster.folder, dirs_exist_ok=True)
    # Fewer steps than the example's: the machine may be busy.
    mine = {"program": "python trainer.py {cluster_flags} --checkpoint_dir={checkpoint_dir} --train_steps=500"}
    mine |= {"engine.ray.python": ray_cluster.PYTHON, "python": sys.executable, "name": "trial"}
    mine["environment.PYTHONPATH"] = f"{ROOT}/runtime"
    settings = [word for key, value in mine.items() for word in ("--set", f"{key}={value}")]
    done = cluster.run("up", "--attach", *settings)
    accuracy = float(re.findall(r"held-out accuracy: ([\d.]+) %", done.stdout)[-1])
    assert accuracy > 90
