"""`durability: process` in a cluster file: killed tasks cost a pause, and neither an update nor a session."""

from __future__ import annotations

import functools
import os
import re
import signal
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


PS_ON_ONE = "ps: {replicas: 1, hosts: [one]}"


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


def test_backups_serve_while_primaries_backups_and_the_supervisor_are_killed(cluster):
    hosts = "hosts: {one: {ssh: none}, two: {ssh: none}}\n"
    with_backups = FILE.replace("durability: process", f"durability: host\n{hosts}").replace("ps: 1", PS_ON_ONE)
    cluster.write(with_backups.replace("environment: {", 'environment: {STEPS: "100000", '))
    cluster.run("up")

    def role(name: str) -> str:
        return cluster.task(name).get("role", "")

    def are_paired(primary: str, backup: str) -> bool:
        return (
            role(primary).endswith("backup in sync")
            and role(primary).startswith("primary")
            and (role(backup).startswith("backup") and role(backup).endswith("in sync"))
        )

    wait_until(lambda: are_paired("ps:0", "ps-backup:0"), "the first pair")
    cluster.kill("ps:0")
    wait_until(lambda: are_paired("ps-backup:0", "ps:0"), "the backup to serve, and to have a backup")
    cluster.kill("ps:0")
    wait_until(lambda: "goes on without its backup: ps:0 has ended" in cluster.run("events").stdout, "the proof")
    wait_until(lambda: are_paired("ps-backup:0", "ps:0"), "another backup")
    assert "ps:0 serves: primary" in cluster.run("promote", "ps:0").stdout
    wait_until(lambda: are_paired("ps:0", "ps-backup:0"), "the roles to change")
    refused = cluster.run("promote", "worker:0", status=None)
    assert refused.returncode == 2 and 'worker:0 has no backup: that needs "durability: host"' in refused.stderr
    pid = cluster.task("ps:0")["pid"]
    os.kill(cluster.supervisor(), signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: are_paired("ps-backup:0", "ps:0"), "the backup to serve without a supervisor")
    (cluster.folder / "done").touch()
    wait_until(lambda: "sums" in cluster.run("logs", "worker:1", status=None).stdout, "the sums", timeout_s=120)
    log = cluster.run("logs", "worker:1", status=None).stdout
    found = re.search(r"sums \[(.*)\] at step (\d+)", log)
    assert found is not None, log
    assert {float(number) for number in re.findall(r"\d+\.\d+", found[1])} == {float(found[2])}, log
    assert all(cluster.task(name)["restarts"] == 0 for name in ("worker:0", "worker:1"))
