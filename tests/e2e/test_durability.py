"""`durability: process` in a cluster file: killed tasks cost a pause, and neither an update nor a session."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

TRAINER = Path(__file__).with_name("durable_trainer.py")
FILE = f"""
name: durable
program: [python, {TRAINER}, "{{cluster_flags}}"]
environment: {{PYTHONPATH: "{ROOT / "runtime"}:{ROOT}"}}
readiness: {{probe: grpc}}
durability: process
jobs:
  ps: 1
  worker: 2
"""


@pytest.fixture
def cluster(tmp_path):
    made = CommandLine(tmp_path, FILE)
    yield made
    made.run("down", status=None)


def folders() -> set[Path]:
    return set(Path("/dev/shm").glob("dtf-*-*/ps-0"))


def has_restarted(cluster: CommandLine, name: str, restarts: int) -> bool:
    task = cluster.task(name)
    return task["restarts"] >= restarts and task["state"] == "running"


def test_a_killed_ps_and_a_killed_chief_must_lose_no_update(cluster):
    before = folders()
    cluster.run("up")
    for victim, restarts in (("ps:0", 1), ("worker:0", 1), ("ps:0", 2)):
        cluster.kill(victim)
        wait_until(functools.partial(has_restarted, cluster, victim, restarts), f"restart {restarts} of {victim}")
    wait_until(lambda: "sums" in cluster.run("logs", "worker:1", status=None).stdout, "the sums")
    log = cluster.run("logs", "worker:1", status=None).stdout
    found = re.search(r"sums \[(.*)\] at step (\d+)", log)
    assert found is not None, log
    assert {float(number) for number in re.findall(r"\d+\.\d+", found[1])} == {float(found[2])}, log
    assert cluster.task("worker:1")["restarts"] == 0
    cluster.run("down")
    assert folders() <= before, "the run's state was not removed"
