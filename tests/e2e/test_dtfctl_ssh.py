"""Clusters over ssh, on machines that are real to the software: see hosts.py."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from tests.e2e import hosts
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(hosts.why_not()), reason=f"no machines of their own: {hosts.why_not()}"),
]

SLEEPERS = """
name: trial
python: %(python)s
readiness: none
grace_period: 3s
host_lost_after: 10m
restart: {backoff: 100ms}
hosts:
  node[1-3]: {address: "10.77.0.[1-3]", working_dir: ~/trial}
jobs:
  ps: {hosts: node1, program: "echo ps at {address} with $(cat note.txt); exec sleep 1000"}
  worker:
    hosts: node[2-3]
    program: |
      echo worker {task} on $(hostname) in $PWD
      i=0
      while [ ! -e done ]; do i=$((i+1)); echo line $i; sleep 0.02; done
      echo bye
"""

IMPATIENT = SLEEPERS.replace("host_lost_after: 10m", "host_lost_after: 4s")


class RemoteCluster(CommandLine):
    """The command line as typed in the laboratory."""

    def __init__(self, folder: Path, laboratory: hosts.Laboratory, text: str = SLEEPERS) -> None:
        super().__init__(folder, text % {"python": sys.executable})
        self.laboratory = laboratory
        self.prefix = laboratory.prefix
        self.environment["DTFCTL_SSH"] = laboratory.ssh
        (self.folder / "note.txt").write_text("a note\n")

    def host(self, name: str) -> dict:
        return next(host for host in self.status()["hosts"] if host["name"] == name)

    def finish(self) -> None:
        for host in self.laboratory.hosts.values():
            if (host.home / "trial").is_dir():
                (host.home / "trial" / "done").touch()


@pytest.fixture
def laboratory(tmp_path):
    with hosts.Laboratory(tmp_path, 3) as laboratory:
        yield laboratory


@pytest.fixture
def cluster(tmp_path, laboratory):
    laboratory.boot()
    cluster = RemoteCluster(tmp_path, laboratory)
    yield cluster
    cluster.run("down", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def test_a_cluster_must_run_on_other_machines_and_leave_nothing_there(cluster, laboratory):
    up = cluster.run("up")
    assert "hosts: 3 of 3 are reachable" in up.stderr
    assert "sync: 6 files" in up.stderr
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert tasks["ps:0"]["host"] == "node1" and tasks["ps:0"]["address"].startswith("10.77.0.1:")
    assert [tasks[f"worker:{i}"]["host"] for i in (0, 1)] == ["node2", "node3"]
    wait_until(lambda: "ps at" in cluster.run("logs", "ps").stdout, "the log of ps:0")
    assert cluster.run("logs", "ps:0").stdout == f"ps at {tasks['ps:0']['address']} with a note\n"
    home = laboratory.hosts["node2"].home
    wait_until(lambda: f"worker 0 on node2 in {home}/trial" in cluster.run("logs", "worker:0").stdout, "its log")
    cluster.finish()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end")
    for name in ("worker:0", "worker:1"):
        lines = cluster.run("logs", name).stdout.splitlines()
        assert lines[1:] == [*(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]
    cluster.run("down")
    for host in laboratory.hosts.values():
        wait_until(lambda host=host: len(host.processes()) == 1, f"nothing but sshd on {host.name}")
        assert not list((host.home / ".local/state/dtfctl/hosts").iterdir())


def test_a_host_that_is_cut_off_must_be_shown_so_and_be_found_again_with_its_tasks(cluster, laboratory):
    cluster.run("up")
    worker = cluster.task("worker:0")
    laboratory.hosts["node2"].unplug()
    wait_until(lambda: cluster.host("node2")["state"] == "unreachable", "node2 to be missed")
    assert cluster.task("worker:0")["state"] == "unreachable"
    assert "node2 is unreachable since" in cluster.run("status").stdout
    assert cluster.task("worker:1")["state"] == "running"
    laboratory.hosts["node2"].plug_in()
    wait_until(lambda: cluster.host("node2")["state"] == "connected", "node2 to be found again")
    after = cluster.task("worker:0")
    assert (after["pid"], after["restarts"], after["state"]) == (worker["pid"], 0, "running")
    # It went on all the time, and its lines have the times at which it wrote them.
    wait_until(lambda: cluster.run("logs", "worker:0", "-n", "1").stdout > "line", "a line")
    usage = {task["name"]: task for task in json.loads(cluster.run("top", "--once", "-o", "json").stdout)["tasks"]}
    assert usage["worker:0"]["processes"] >= 1 and usage["worker:0"]["memory_bytes"] > 0
    cluster.finish()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end")
    found = [json.loads(line) for line in cluster.run("logs", "worker:0", "-o", "json").stdout.splitlines()]
    lines = [each["line"] for each in found]
    times = [datetime.fromisoformat(each["time"].replace("Z", "+00:00")) for each in found]
    assert lines[1:] == [*(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]
    gaps = [(after - before).total_seconds() for before, after in pairwise(times)]
    assert min(gaps) >= 0 and max(gaps) < 2, "it was cut off for longer"


def test_a_lost_host_that_answers_again_must_still_have_its_task_and_nothing_is_counted(tmp_path, laboratory):
    laboratory.boot()
    cluster = RemoteCluster(tmp_path, laboratory, IMPATIENT)
    cluster.run("up")
    before = cluster.task("worker:1")
    laboratory.hosts["node3"].unplug()
    wait_until(lambda: cluster.host("node3")["state"] == "lost", "node3 to be lost")
    assert cluster.status()["state"] == "running" and cluster.task("worker:1")["state"] == "unreachable"
    laboratory.hosts["node3"].plug_in()
    wait_until(lambda: cluster.host("node3")["state"] == "connected", "node3 to be found again")
    after = cluster.task("worker:1")
    assert (after["pid"], after["restarts"], after["state"]) == (before["pid"], 0, "running")
    # One that was switched off meanwhile has lost it, and gets another.
    laboratory.hosts["node3"].power_off()
    wait_until(lambda: cluster.host("node3")["state"] == "lost", "node3 to be lost again")
    laboratory.hosts["node3"].boot()
    restarted = cluster.wait_for_restart("worker:1", before["pid"])
    assert restarted["restarts"] == 1 and "restart not counted" in restarted["reason"]
    cluster.run("down")
    assert cluster.processes() == {}


def test_a_task_that_ends_while_its_host_is_cut_off_must_be_found_as_it_ended(cluster, laboratory):
    cluster.run("up")
    laboratory.hosts["node2"].unplug()
    wait_until(lambda: cluster.host("node2")["state"] == "unreachable", "node2 to be missed")
    (laboratory.hosts["node2"].home / "trial" / "done").touch()
    wait_until(lambda: not laboratory.hosts["node2"].processes("line $i"), "the end of worker:0")
    laboratory.hosts["node2"].plug_in()
    wait_until(lambda: cluster.task("worker:0")["state"] == "succeeded", "its status")
    assert cluster.task("worker:0")["reason"] == "exited with status 0"
    assert cluster.run("logs", "worker:0").stdout.endswith("bye\n")


@pytest.mark.parametrize("victim", ["supervisor", "agent", "keeper there", "ssh"])
def test_no_death_of_dtfctls_own_processes_must_cost_a_task_or_a_line(cluster, laboratory, victim):
    cluster.run("up")
    before = cluster.task("worker:0")["pid"]
    host = laboratory.hosts["node2"]
    if victim == "supervisor":
        os.kill(cluster.supervisor(), 9)
    elif victim == "ssh":
        callers = cluster.processes("ssh -F")
        assert callers
        for pid in callers:
            os.kill(pid, 9)
    else:
        # The shims look like the keeper; they are its forks, and younger.
        os.kill(min(host.processes("keeper-" if victim == "keeper there" else "exec(zlib")), 9)
    cluster.finish()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end")
    assert all(task["restarts"] == 0 for task in cluster.status()["tasks"])
    lines = cluster.run("logs", "worker:0").stdout.splitlines()
    assert lines[1:] == [*(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]
    assert before


def test_many_deaths_at_random_must_not_cost_a_line(cluster, laboratory):
    cluster.run("up")
    before = {task["name"]: task["pid"] for task in cluster.status()["tasks"]}
    chance = random.Random(4)
    host = laboratory.hosts["node2"]
    for _ in range(15):
        victims = {
            "supervisor": cluster.processes("dtfctl.daemon"),
            "keeper here": cluster.processes("launchers/keeper"),
            "ssh": cluster.processes("ssh -F"),
            "agent": host.processes("exec(zlib"),
            "keeper there": [pid for pid in host.processes("keeper-") if has_open(pid, "keeper.lock")],
        }
        if not (victims["supervisor"] or victims["keeper here"]):
            # Nobody is left to begin anew by himself; any command is enough.
            cluster.run("status")
            continue
        name = chance.choice([name for name, found in victims.items() if found])
        with contextlib.suppress(ProcessLookupError):
            os.kill(min(victims[name]), 9)
        time.sleep(chance.uniform(0, 0.4))
    wait_until(lambda: cluster.host("node2")["state"] == "connected", "peace")
    assert {task["name"]: task["pid"] for task in cluster.status()["tasks"]} == before
    cluster.finish()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end")
    for name in ("worker:0", "worker:1"):
        lines = cluster.run("logs", name).stdout.splitlines()
        assert lines[1:] == [*(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]


def has_open(pid: int, name: str) -> bool:
    """Whether a process has a file of this name open."""
    with contextlib.suppress(OSError):
        return any(os.readlink(entry).endswith(f"/{name}") for entry in Path(f"/proc/{pid}/fd").iterdir())
    return False


def test_a_host_that_is_started_anew_must_get_its_tasks_again(cluster, laboratory):
    cluster.run("up")
    before = cluster.task("worker:0")
    laboratory.hosts["node2"].power_off()
    laboratory.hosts["node2"].boot()
    after = cluster.wait_for_restart("worker:0", before["pid"])
    assert after["restarts"] == 1 and after["address"] == before["address"]
    assert after["reason"] == "lost: the machine was restarted; restart not counted"


def test_a_lost_host_without_a_spare_must_leave_the_decision_to_the_policy(tmp_path, laboratory):
    laboratory.boot()
    cluster = RemoteCluster(tmp_path, laboratory, IMPATIENT.replace("restart: {backoff: 100ms}", "restart: never"))
    cluster.run("up")
    laboratory.hosts["node3"].power_off()
    wait_until(lambda: cluster.status()["state"] == "failed", "the end of it all")
    assert "its host is lost: node3 could not be reached for 4s" in cluster.task("worker:1")["reason"]
    assert cluster.run("down", status=None).returncode in (0, 1)
    assert cluster.processes() == {}


def test_a_lost_host_with_a_spare_must_give_its_tasks_to_it_and_others_must_learn_the_address(tmp_path, laboratory):
    text = IMPATIENT.replace("ps: {hosts: node1,", "ps: {hosts: node1, spare_hosts: node3,")
    text = text.replace("hosts: node[2-3]", "hosts: [node2]\n    replicas: 1")
    laboratory.boot()
    cluster = RemoteCluster(tmp_path, laboratory, text)
    cluster.run("up")
    worker = cluster.task("worker:0")
    laboratory.hosts["node1"].power_off()
    wait_until(lambda: cluster.task("ps:0")["host"] == "node3", "ps:0 to move")
    moved = cluster.wait_for_restart("worker:0", worker["pid"])
    ps = cluster.task("ps:0")
    assert ps["state"] == "running" and ps["address"].startswith("10.77.0.3:")
    assert "ps:0 moved" in moved["reason"] and "ps:0 moved" in cluster.run("status").stdout
    # Should the lost one come back after all, it has nothing to do with it any more.
    laboratory.hosts["node1"].boot()
    wait_until(lambda: cluster.host("node1")["state"] == "connected", "node1 to come back")
    assert cluster.task("ps:0")["host"] == "node3"
    cluster.run("down")
    assert cluster.processes() == {}
    for host in laboratory.hosts.values():
        wait_until(lambda host=host: len(host.processes()) == 1, f"nothing but sshd on {host.name}")


def test_what_is_wrong_with_hosts_must_be_told_at_once_before_anything_starts(tmp_path, laboratory):
    nodes = laboratory.hosts
    (nodes["node1"].folder / "authorized_keys").write_text("")
    nodes["node2"].configure("SetEnv PATH=/nowhere")
    laboratory.boot("node1", "node2")
    cluster = RemoteCluster(tmp_path, laboratory, SLEEPERS.replace("python: %(python)s\n", "") + "#%(python)s")
    failed = cluster.run("up", status=8)
    lines = failed.stderr.splitlines()
    assert lines[0] == "error: 3 of 3 hosts cannot be used; nothing was started"
    told = {line.split()[0]: line for line in lines[1:] if not line.startswith("         ")}
    assert "Permission denied (publickey)" in told["node1"]
    assert "no Python 3.10 or later was found" in told["node2"]
    assert re.search(r"No route to host|timed out", told["node3"], re.IGNORECASE)
    # The command that is named shows the same.
    shown = [line.split("see: ")[1] for line in lines if "see: " in line]
    again = subprocess.run([*laboratory.prefix, "/bin/sh", "-c", shown[0]], capture_output=True, text=True)
    assert again.returncode == 255 and "Permission denied" in again.stderr
    assert cluster.processes() == {}


def test_only_what_has_changed_must_be_copied_and_only_what_was_copied_removed(cluster, laboratory):
    trial = laboratory.hosts["node1"].home / "trial"
    (cluster.folder / "data").mkdir()
    (cluster.folder / "data" / "a.txt").write_text("a")
    (cluster.folder / "ignored.bin").write_text("x")
    (cluster.folder / ".dtfctlignore").write_text("*.bin\n")
    (cluster.folder / "tool.sh").write_text("#!/bin/sh\n")
    (cluster.folder / "tool.sh").chmod(0o755)
    (cluster.folder / "link").symlink_to("note.txt")
    cluster.run("up")
    assert (trial / "data/a.txt").read_text() == "a" and not (trial / "ignored.bin").exists()
    assert os.access(trial / "tool.sh", os.X_OK) and os.readlink(trial / "link") == "note.txt"
    (trial / "made-there.txt").write_text("kept")
    (trial / "data" / "result.txt").write_text("kept")
    cluster.run("down")
    assert "all files are up to date" in cluster.run("up").stderr
    cluster.run("down")
    (cluster.folder / "data/a.txt").unlink()
    (cluster.folder / "note.txt").write_text("another note\n")
    assert "3 files" in cluster.run("up").stderr
    assert (trial / "note.txt").read_text() == "another note\n" and not (trial / "data/a.txt").exists()
    assert (trial / "made-there.txt").exists() and (trial / "data/result.txt").exists()


def test_down_must_name_what_it_leaves_on_a_host_that_cannot_be_reached(cluster, laboratory):
    cluster.run("up")
    pid = cluster.task("worker:0")["pid"]
    laboratory.hosts["node2"].unplug()
    wait_until(lambda: cluster.host("node2")["state"] == "unreachable", "node2 to be missed")
    down = cluster.run("down", status=1)
    assert f"pid {pid} on node2" in down.stderr
    assert len(laboratory.hosts["node1"].processes()) == 1
    assert json.loads(cluster.run("status", "-o", "json").stdout)["state"] == "stopped"
    assert f"still running: pid {pid} on node2" in cluster.run("down", status=1).stderr
    # Once the host is there again, so can they be ended.
    laboratory.hosts["node2"].plug_in()
    assert "left behind" not in cluster.run("down").stderr
    wait_until(lambda: len(laboratory.hosts["node2"].processes()) == 1, "nothing but sshd on node2")


def test_a_host_without_tasks_that_is_lost_at_the_end_must_be_named_and_lose_its_keeper_later(cluster, laboratory):
    cluster.run("up")
    cluster.run("stop", "worker:0")
    node = laboratory.hosts["node2"]
    node.unplug()
    wait_until(lambda: cluster.host("node2")["state"] == "unreachable", "node2 to be missed")
    down = cluster.run("down", status=1)
    assert "on node2: the keeper, on a host that cannot be reached" in down.stderr
    node.plug_in()
    cluster.run("down")
    wait_until(lambda: len(node.processes()) == 1, "nothing but sshd on node2")
    assert not list((node.home / ".local/state/dtfctl/hosts").iterdir())


@pytest.mark.parametrize("is_repeated", [True, False])
def test_a_supervisor_killed_before_its_run_is_recorded_must_leave_nothing_on_other_hosts(
    cluster, laboratory, is_repeated
):
    """It is killed as soon as a host has a keeper; the command asks the next supervisor again, or is killed too."""
    up = cluster.start("up")
    node = laboratory.hosts["node3"]
    wait_until(lambda: cluster.processes("dtfctl.daemon"), "the supervisor")
    wait_until(lambda: node.processes("launchers/keeper"), "a keeper on node3")
    if not is_repeated:
        up.kill()
    os.kill(cluster.supervisor(), 9)
    up.wait(60)
    cluster.run("down", status=None)
    for host in laboratory.hosts.values():
        wait_until(lambda host=host: len(host.processes()) == 1, f"nothing but sshd on {host.name}")
        assert not list((host.home / ".local/state/dtfctl/hosts").glob("*"))


READY = """
name: trial
python: %(python)s
hosts:
  node[1-3]: {address: "10.77.0.[1-3]", working_dir: ~/trial}
ssh: {host_keys: accept-new}
jobs:
  a:
    hosts: node1
    port: 2222
    program: "sleep 0.3; touch ready; exec sleep 1000"
    readiness: {command: "test -e ready && test $(hostname) = node1"}
  b: {hosts: node2, port: none, program: "rm -f up; touch up; exec sleep 1000", readiness: {file: up}}
  c:
    hosts: node3
    program: python -c "import socket; s = socket.create_server(('{address}'.split(':')[0], {port})); s.accept()"
    readiness: tcp
"""


def test_readiness_is_asked_beside_the_task_by_command_and_file_and_over_the_network_by_port(tmp_path, laboratory):
    laboratory.boot()
    # One is reached through another, and its key is not known yet: the user's config and the file say how.
    jump = (laboratory.folder / "ssh_config").read_text().replace("Host node3\n", "Host node3\nProxyJump node1\n")
    (laboratory.folder / "ssh_config").write_text(jump)
    known = (laboratory.folder / "known_hosts").read_text().splitlines()
    (laboratory.folder / "known_hosts").write_text("\n".join(line for line in known if "10.77.0.2 " not in line) + "\n")
    cluster = RemoteCluster(tmp_path, laboratory, READY)
    cluster.run("up")
    assert cluster.task("a:0")["address"] == "10.77.0.1:2222"
    assert "10.77.0.2 " in (laboratory.folder / "known_hosts").read_text()
    cluster.run("down", "--timeout", "0")
    # A port that the file fixes and that is taken is found before anything starts.
    taker = subprocess.Popen(
        ["nsenter", "-t", str(laboratory.hosts["node1"].init()), "-n", "--", sys.executable, "-c", TAKE_PORT],
        stdout=subprocess.PIPE,
    )
    with taker:
        taker.stdout.readline()
        failed = cluster.run("up", status=8)
        taker.kill()
    assert "port 2222 at 10.77.0.1: Address already in use" in failed.stderr
    assert cluster.processes() == {}


TAKE_PORT = "import socket, time; s = socket.create_server(('10.77.0.1', 2222)); print(flush=True); time.sleep(100)"


DIGITS = """
restart: {backoff: 100ms}
environment: {PYTHONPATH: "%(root)s/runtime", OMP_NUM_THREADS: "1"}
hosts:
  node[1-4]: {address: "10.77.0.[1-4]", python: "%(python)s", working_dir: ~/digits}
"""


def test_digits_must_train_over_four_machines_through_deaths_a_cut_and_a_bad_wire(tmp_path):
    with hosts.Laboratory(tmp_path, 4) as laboratory:
        laboratory.boot()
        laboratory.hosts["node4"].degrade(delay_ms=3, loss=0.005)
        cluster = RemoteCluster(tmp_path, laboratory)
        shutil.copytree(ROOT / "clusters/ssh-digits", cluster.folder, symlinks=True, dirs_exist_ok=True)
        for name in ("trainer.py", "digits.py", "digits.npz"):
            (cluster.folder / name).unlink()
            (cluster.folder / name).symlink_to(ROOT / "clusters" / "digits" / name)
        file = cluster.folder / "cluster.yaml"
        file.write_text(file.read_text().replace("trainer.py {", "trainer.py --train_steps=600 --save_steps=50 {"))
        (cluster.folder / "mine.yaml").write_text(DIGITS % {"root": ROOT, "python": sys.executable})
        up = cluster.start("up", "cluster.yaml", "-f", "mine.yaml", "--attach")
        checkpoints = laboratory.hosts["node3"].home / "digits" / "checkpoints"
        wait_until(lambda: list(checkpoints.glob("model.ckpt-*.index")), "a checkpoint", 90)
        ps = cluster.task("ps:0")
        laboratory.hosts["node1"].run("kill", "-9", str(ps["pid"]))
        restarted = cluster.wait_for_restart("ps:0", ps["pid"])
        assert restarted["address"] == ps["address"]
        laboratory.hosts["node2"].unplug()
        wait_until(lambda: cluster.host("node2")["state"] == "unreachable", "node2 to be missed")
        laboratory.hosts["node2"].plug_in()
        assert up.wait(100) == 0, cluster.err()
        accuracy = float(re.findall(r"held-out accuracy: ([\d.]+) %", cluster.out())[-1])
        assert accuracy > 95
        assert cluster.task("ps:1")["restarts"] == 0
        assert cluster.processes() == {}
        for host in laboratory.hosts.values():
            wait_until(lambda host=host: len(host.processes()) == 1, f"nothing but sshd on {host.name}")


GROWING = """
name: trial
python: %(python)s
readiness: none
grace_period: 3s
cluster_spec: sparse
hosts:
  node[1-3]: {address: "10.77.0.[1-3]", working_dir: ~/trial}
jobs:
  ps: {hosts: node1, program: "exec sleep 1000"}
  worker: {hosts: node2, program: "cat note.txt; exec sleep 1000"}
"""


def test_machines_must_join_a_running_cluster_and_be_let_go(tmp_path, laboratory):
    laboratory.boot("node1", "node2")
    cluster = RemoteCluster(tmp_path, laboratory, GROWING)
    nodes = laboratory.hosts
    cluster.run("up")
    before = {task["name"]: task["pid"] for task in cluster.status()["tasks"]}
    text = (cluster.folder / "cluster.yaml").read_text()
    grown = text.replace("worker: {hosts: node2", "worker: {hosts: [node2, node3]")
    cluster.write(grown)
    (cluster.folder / "note.txt").write_text("another note\n")
    # A machine that cannot be used changes nothing.
    refused = cluster.run("up", status=8)
    assert "1 of 3 hosts cannot be used; nothing was changed" in refused.stderr
    assert [task["name"] for task in cluster.status()["tasks"]] == ["ps:0", "worker:0"]
    nodes["node3"].boot()
    up = cluster.run("up")
    assert "hosts: 3 of 3 are reachable" in up.stderr and "start     worker:1" in up.stderr
    tasks = {task["name"]: task for task in cluster.status()["tasks"]}
    assert tasks["worker:1"]["host"] == "node3" and tasks["worker:1"]["state"] == "running"
    assert {name: tasks[name]["pid"] for name in before} == before
    wait_until(lambda: cluster.run("logs", "worker:1").stdout == "another note\n", "the new note on the new host")
    assert (nodes["node2"].home / "trial/note.txt").read_text() == "another note\n", "those that it knew have it too"
    # A supervisor that comes now knows of it.
    os.kill(cluster.supervisor(), 9)
    assert cluster.host("node3")["state"] == "connected"
    # Less again: the machine is let go, by a file as by a scaling.
    cluster.run("scale", "worker=1")
    wait_until(lambda: len(nodes["node3"].processes()) == 1, "nothing but sshd on node3")
    wait_until(lambda: [host["name"] for host in cluster.status()["hosts"]] == ["node1", "node2"], "node3 to be let go")
    assert not list((nodes["node3"].home / ".local/state/dtfctl/hosts").iterdir())
    assert {name: cluster.task(name)["pid"] for name in before} == before, "others' tasks go on"
    scaled = cluster.run("scale", "worker=2")
    assert "hosts: 1 of 1 are reachable" in scaled.stderr
    assert cluster.task("worker:1")["host"] == "node3"
    # A task moves when the file says so: it ends where it is, and begins where it is to be.
    moved = grown.replace("worker: {hosts: [node2, node3]", "worker: {hosts: [node3], replicas: 2")
    cluster.write(moved)
    assert "restart   worker:0    it moves from node2 to node3" in cluster.run("up").stderr
    assert cluster.task("worker:0")["host"] == "node3"
    wait_until(lambda: len(nodes["node2"].processes()) == 1, "nothing but sshd on node2")
    # One that does not answer is no hindrance, and is let go when it does.
    nodes["node3"].unplug()
    wait_until(lambda: cluster.host("node3")["state"] == "unreachable", "node3 to be missed")
    cluster.write(moved.replace("[node3], replicas: 2", "node1"))
    cluster.run("up", "--no-wait")
    nodes["node3"].plug_in()
    wait_until(lambda: [host["name"] for host in cluster.status()["hosts"]] == ["node1"], "node3 to be let go")
    wait_until(lambda: len(nodes["node3"].processes()) == 1, "nothing but sshd on node3")
    assert cluster.task("worker:0")["host"] == "node1"
    cluster.run("down")
    assert cluster.processes() == {}
