"""Clusters on Spark: a real standalone master and two workers on this machine, see spark_cluster.py."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys

import pytest

from tests.e2e import spark_cluster
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(spark_cluster.why_not()), reason=f"no Spark: {spark_cluster.why_not()}"),
]

ENGINE = """
engine:
  spark:
    nodes: 2
    cores: 1
    wait: 4m
    master: "{master}"
    python: {python}
    conf: {{spark.driver.host: 127.0.0.1, spark.executor.memory: 512m}}
"""

SLEEPERS = """
name: trial
readiness: none
grace_period: 3s
jobs:
  ps: {program: "echo ps; exec sleep 1000"}
  worker: {program: "echo worker {task} on {host}; while [ ! -e done ]; do sleep 0.02; done; echo bye"}
"""


@pytest.fixture
def spark():
    return spark_cluster.shared()


@pytest.fixture
def cluster(tmp_path, spark):
    cluster = CommandLine(tmp_path, SLEEPERS + ENGINE.format(master=spark.master, python=spark_cluster.PYTHON))
    cluster.timeout_s = 400.0
    yield cluster
    cluster.run("down", status=None)
    wait_until(lambda: cluster.processes() == {}, "the end of all processes of the cluster", 60)
    wait_until(lambda: spark.cores_used() == 0, "the end of the application", 60)


def test_a_cluster_must_survive_the_death_of_an_executor_and_leave_nothing(cluster, spark):
    cluster.run("up")
    before = {task["name"]: task for task in cluster.status()["tasks"]}
    assert {task["host"] for task in before.values()} == {"node-1", "node-2"}
    assert "matches the file" in cluster.run("up", "--plan").stdout
    os.kill(spark.executors()[0], signal.SIGKILL)

    def look():
        now = {task["name"]: task for task in cluster.status()["tasks"]}
        changed = [name for name in now if now[name]["pid"] != before[name]["pid"]]
        return changed if changed and all(task["ready"] for task in now.values()) else None

    (hit,) = wait_until(look, "the task to come back", 120)
    assert not os.path.exists(f"/proc/{before[hit]['pid']}"), "nobody may run twice"
    assert "restart not counted" in cluster.run("events").stdout
    cluster.finish()
    assert cluster.run("wait").returncode == 0
    assert "worker 0 on node-" in cluster.run("logs", "worker:0").stdout


def test_the_death_of_the_driver_must_end_the_hosts_and_be_mended(cluster, spark):
    cluster.run("up")
    before = {task["name"]: task["pid"] for task in cluster.status()["tasks"]}
    (bridge,) = cluster.processes("spark/bridge.py")
    os.kill(bridge, signal.SIGKILL)
    for name, pid in before.items():
        cluster.wait_for_restart(name, pid)
        assert not os.path.exists(f"/proc/{pid}"), "nobody may run twice"


def test_too_few_slots_must_be_told_with_their_numbers(cluster, spark):
    refused = cluster.run("up", "--set", "engine.spark.nodes=5", "--set", "engine.spark.wait=5s", status=8)
    # How many executors have come by then depends on the machine.
    numbers = r"too few slots: wanted are 5, one for each host; there are \d executors? with \d slots?"
    assert re.search(numbers, refused.stderr)


def test_no_spark_must_be_told_at_once(cluster):
    refused = cluster.run("up", "--set", "engine.spark.master=spark://127.0.0.1:1", status=8)
    assert "no Spark answers at 127.0.0.1:1: Connection refused" in refused.stderr


def test_the_example_must_train_on_its_hosts(cluster, spark):
    cluster.run("down", status=None)
    shutil.copytree(ROOT / "clusters/spark-digits", cluster.folder, dirs_exist_ok=True)
    # Fewer steps than the example's: the machine may be busy.
    mine = {"program": "python trainer.py {cluster_flags} --checkpoint_dir={checkpoint_dir} --train_steps=500"}
    mine |= {"engine.spark.python": spark_cluster.PYTHON, "engine.spark.master": spark.master}
    mine |= {"name": "trial", "engine.spark.wait": "4m"}
    mine |= {"python": sys.executable, "environment.PYTHONPATH": f"{ROOT}/runtime"}
    settings = [word for key, value in mine.items() for word in ("--set", f"{key}={value}")]
    cluster.environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    done = cluster.run("up", "--attach", *settings)
    accuracy = float(re.findall(r"held-out accuracy: ([\d.]+) %", done.stdout)[-1])
    assert accuracy > 90
