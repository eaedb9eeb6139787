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
WORKERS_ON_TWO = "worker: {replicas: 2, hosts: [two]}"


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


def test_a_drained_host_loses_its_ps_and_a_balanced_cluster_no_update(cluster):
    hosts = "hosts: {one: {ssh: none}, two: {ssh: none}, three: {ssh: none}}\n"
    file = FILE.replace("durability: process", f"durability: host\ncluster_spec: elastic\n{hosts}")
    file = file.replace("ps: 1", "ps: {replicas: 2, hosts: [one, two]}").replace("worker: 2", WORKERS_ON_TWO)
    cluster.write(file.replace("environment: {", 'environment: {STEPS: "100000", '))
    cluster.run("up")

    def hosts_of_ps() -> dict[str, str]:
        return {task["name"]: task["host"] for task in cluster.status()["tasks"] if task["name"].startswith("ps")}

    pids = {name: cluster.task(name)["pid"] for name in ("worker:0", "worker:1")}
    planned = cluster.run("drain", "one", "--plan", status=20).stdout
    assert "move      ps:0" in planned and "one is drained" in planned
    assert "one" in hosts_of_ps().values(), "a plan changes nothing"
    cluster.run("drain", "one")
    assert "one" not in hosts_of_ps().values()
    assert len({hosts_of_ps()["ps:0"], hosts_of_ps()["ps-backup:0"]}) == 2
    refused = cluster.run("drain", "two", status=2).stderr
    assert "has no host to go to" in refused and "add a host to the cluster file" in refused
    assert "no host is called nine" in cluster.run("drain", "nine", status=2).stderr
    os.kill(cluster.supervisor(), signal.SIGKILL)
    assert "nothing would change" in cluster.run("up", "--plan").stdout, "the same file moves nothing back"
    cluster.run("move", "ps-backup:0=one")
    assert hosts_of_ps()["ps-backup:0"] == "one"
    balanced = cluster.run("balance", "--plan", status=None)
    cluster.run("balance")
    assert balanced.returncode in (0, 20) and "three" in balanced.stdout
    assert cluster.run("balance", "--plan", status=0).stdout.count("serves") == 3
    assert {name: cluster.task(name)["pid"] for name in pids} == pids, "no worker was restarted"
    (cluster.folder / "done").touch()
    wait_until(lambda: "sums" in cluster.run("logs", "worker:1", status=None).stdout, "the sums", timeout_s=120)
    log = cluster.run("logs", "worker:1", status=None).stdout
    found = re.search(r"sums \[(.*)\] at step (\d+)", log)
    assert found is not None, log
    assert {float(number) for number in re.findall(r"\d+\.\d+", found[1])} == {float(found[2])}, log
