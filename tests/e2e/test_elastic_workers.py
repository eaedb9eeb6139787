"""Workers join and leave a running cluster: no other task restarts, and no step is lost or made twice."""

from __future__ import annotations

import json
import re
import sys

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FILE = f"""
name: trial
program: [python, {ROOT}/tests/e2e/counting_trainer.py]
python: {sys.executable}
environment: {{PYTHONPATH: "{ROOT}/runtime"}}
cluster_spec: elastic
jobs: {{ps: 1, worker: 2}}
"""


@pytest.fixture
def cluster(tmp_path):
    made = CommandLine(tmp_path)
    made.write(FILE)
    yield made
    if made.state.exists():
        made.run("down", "trial", "--timeout", "0", status=None)
    assert made.processes() == {}


def confirmed(cluster: CommandLine) -> dict[int, int]:
    return {int(index): int(steps) for index, steps in re.findall(r"worker (\d+) confirmed (\d+)", cluster.out())}


def pids(cluster: CommandLine) -> dict[str, int]:
    return {task["name"]: task["pid"] for task in cluster.status()["tasks"]}


def test_workers_join_and_leave_by_scale_and_every_step_counts_once(cluster):
    up = cluster.start("up", "--attach")
    wait_until(lambda: cluster.out().count("first step") == 2, "two workers to train")
    before = pids(cluster)
    assert "restart" not in cluster.run("scale", "worker=5").stderr
    wait_until(lambda: cluster.out().count("first step") == 5, "five workers to train")
    assert {name: pid for name, pid in pids(cluster).items() if name in before} == before
    cluster.run("scale", "worker=1")
    wait_until(lambda: set(confirmed(cluster)) == {1, 2, 3, 4}, "four workers to leave")
    cluster.run("scale", "worker=2")
    wait_until(lambda: cluster.out().count("first step") == 6, "worker:1 to come back")
    after = pids(cluster)
    assert after["ps:0"] == before["ps:0"] and after["worker:0"] == before["worker:0"]
    (cluster.folder / "done").touch()
    wait_until(lambda: len(re.findall(r"worker [01] confirmed", cluster.out())) == 3, "the last workers to end")
    (cluster.folder / "counted").touch()
    assert up.wait(60) == 0, cluster.out() + cluster.err()
    counted = json.loads(re.search(r"counted (\[.*\])", cluster.out())[1])
    assert {index: steps for index, steps in enumerate(counted) if steps} == confirmed(cluster)


def test_a_job_grows_by_itself_while_its_steps_grow_and_says_why(cluster):
    cluster.write(FILE.replace("worker: 2", "worker: 1") + "autoscale: {worker: [1, 3]}\n")
    cluster.environment |= {"DTFCTL_AUTOSCALE_AFTER": "3", "DTFCTL_STALLED_AFTER": "2"}
    up = cluster.start("up", "--attach")
    wait_until(lambda: "first step" in cluster.out(), "the first worker to train")
    before = pids(cluster)
    wait_until(lambda: "worker=2: " in cluster.run("events").stdout, "a decision")
    assert re.search(r"autoscale\s.*worker=2: [\d.e+]+ steps/s with 1 task, and there is room for 2 more",
                     cluster.run("events").stdout)  # fmt: skip
    wait_until(lambda: cluster.out().count("first step") >= 2, "the second worker to train")
    assert {name: pid for name, pid in pids(cluster).items() if name in before} == before
    (cluster.folder / "counted").touch()
    (cluster.folder / "done").touch()
    assert up.wait(60) == 0, cluster.out() + cluster.err()


def test_synchronous_workers_join_leave_and_die_and_each_update_counts_once(cluster):
    cluster.write(FILE.replace("counting_trainer", "synchronous_trainer") + "durability: process\n")
    up = cluster.start("up", "--attach")

    def reached(worker: int) -> list[int]:
        return [int(step) for step in re.findall(rf"worker {worker} reached (\d+)", cluster.out())]

    def train_on(*workers: int) -> None:
        """Waits until each of the workers has made steps that are further than all so far."""
        last = max((max(reached(worker), default=0) for worker in range(8)), default=0)
        for worker in workers:
            wait_until(lambda worker=worker: max(reached(worker), default=0) > last + 20, f"worker:{worker} to train")

    train_on(0, 1)
    before = pids(cluster)
    cluster.run("scale", "worker=4")
    train_on(0, 1, 2, 3)
    assert {name: pid for name, pid in pids(cluster).items() if name in before} == before
    for victims in (("worker:2", "ps:0"), ("worker:0",)):
        for victim in victims:
            cluster.kill(victim)
        train_on(0, 1, 2, 3)
    cluster.run("scale", "worker=2")
    train_on(0, 1)
    assert "4 workers take part, 4 gradients make an update" in cluster.out() + cluster.err()
    assert pids(cluster)["worker:1"] == before["worker:1"]
    (cluster.folder / "done").touch()
    assert up.wait(60) == 0, cluster.out() + cluster.err()
    sums, step = re.search(r"sums \[(.*)\] step (\d+)", cluster.out()).groups()
    assert sums == f"{int(step)}.0", cluster.out()
