"""A state folder without any room: what is lost is named, held against no task, and made good once there is room."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess

import pytest

from dtfctl.launchers.base import Exited, Started
from dtfctl.launchers.local import LocalLauncher
from tests.dtfctl.test_keeper import Host, is_alive, shell
from tests.e2e.dtfctl_cluster import CommandLine
from tests.waiting import wait_until

pytestmark = pytest.mark.slow
ROOM = "4m"
FULL = "No space left on device; make room there"


class Disk:
    """A small file system of its own."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        options = ["-t", "tmpfs", "-o", f"size={ROOM},mode=700", "tmpfs", str(folder)]
        mounted = subprocess.run(["mount", *options], capture_output=True, text=True) if os.geteuid() == 0 else None
        if mounted is None or mounted.returncode:
            pytest.skip("no file system can be mounted here")

    def fill(self):
        with contextlib.suppress(OSError), open(self.folder / "filler", "ab", 0) as filler:
            while True:
                filler.write(bytes(4096))

    def make_room(self):
        (self.folder / "filler").unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path):
    disk = Disk(tmp_path / "state")
    yield disk
    disk.make_room()
    subprocess.run(["umount", "-l", str(disk.folder)], check=True)


def test_an_end_that_the_disk_has_no_room_for_names_the_disk(disk):
    """The keeper is killed and the disk is full: the shim sees the end, and cannot record it."""

    async def scenario(host):
        first = LocalLauncher(host.folder, host.folder, host.take)
        first.connect()
        await first.wait_until_listed()
        first.start(host.launch("sleep", "1000"))
        pid = (await host.next(Started)).pid
        await first._keeper_client.cut()
        os.kill(host.keeper_pid(), signal.SIGKILL)
        first._keeper.wait(15)
        disk.fill()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "the task's end")
        async with host.launcher():
            ended = (await host.next(Exited)).exit
            assert ended.preempted == ended.error, "it counts as a failure of the task"
            assert "shim was killed" not in ended.error and str(host.folder) in ended.error and FULL in ended.error
            disk.make_room()

    asyncio.run(asyncio.wait_for(scenario(Host(disk.folder)), 60))


def test_a_start_that_the_disk_has_no_room_for_is_not_held_against_the_task(disk):
    async def scenario(host):
        async with host.launcher() as launcher:
            launcher.start(host.launch("true"))
            await host.next(Exited)
            disk.fill()
            launcher.start(host.launch("true", task="u:0"))
            ended = (await host.next(Exited, "u:0")).exit
            assert ended.error.startswith(f"could not be started: {host.folder}/records/") and FULL in ended.error
            assert ended.preempted == ended.error
            disk.make_room()
            launcher.start(host.launch(*shell("exit 3"), task="u:0", generation=2))
            assert (await host.next(Exited, "u:0")).exit.code == 3

    asyncio.run(asyncio.wait_for(scenario(Host(disk.folder)), 60))


CLUSTER = """
name: trial
readiness: none
grace_period: 5s
restart: {backoff: 50ms, backoff_max: 200ms}
jobs:
  ps: {replicas: 2, program: "exec sleep 1000"}
  worker: {replicas: 2, program: "while [ ! -e done ]; do sleep 0.02; done"}
"""


@pytest.fixture
def cluster(tmp_path, disk):
    cluster = CommandLine(tmp_path, CLUSTER)
    yield cluster
    disk.make_room()
    cluster.run("down", "--timeout", "0", status=None)
    for pid in cluster.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not cluster.processes(), "the end of all processes")


def supervisors(cluster):
    return list(cluster.processes("dtfctl.daemon"))


def attack(cluster, disk, *command):
    """The command, on a disk that is full from its middle on, and each supervisor killed that is there meanwhile."""
    running = cluster.start(*command)
    try:
        wait_until(lambda: supervisors(cluster), "the supervisor")
        disk.fill()
        killed: set[int] = set()
        for _ in range(3):
            with contextlib.suppress(AssertionError):  # on a full disk there may be no next one
                wait_until(lambda: {*supervisors(cluster)} - killed, "the next supervisor", timeout_s=2)
            for pid in supervisors(cluster):
                killed.add(pid)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(20)
        running.kill()
        running.wait()
    assert "Traceback" not in cluster.err(), cluster.err()


def is_up(cluster, workers):
    tasks = {task["name"]: task for task in cluster.status()["tasks"] if not task["name"].startswith("-")}
    wanted = {"ps:0", "ps:1", *(f"worker:{index}" for index in range(workers))}
    return set(tasks) == wanted and all(task["ready"] for task in tasks.values())


@pytest.mark.parametrize("phase", ["up", "scale", "restart", "stop", "down"])
def test_a_supervisor_killed_on_a_full_disk_in_every_phase_loses_nothing(cluster, disk, phase):
    workers = 2
    if phase != "up":
        cluster.run("up")
    attack(cluster, disk, *{"scale": ("scale", "worker=3"), "restart": ("restart", "*"), "stop": ("stop", "ps:1")}
           .get(phase, (phase,)))  # fmt: skip
    told = cluster.run("status", status=None)
    if told.returncode == 0 and "running" in told.stdout.splitlines()[0]:
        assert "warning: this may be out of date: the disk of" in told.stderr, told
    assert "shim was killed" not in told.stdout + told.stderr
    disk.make_room()
    # What was not heard is said again, and changes nothing where it was.
    if phase == "scale":
        workers = 3
        cluster.run("scale", "worker=3")
    elif phase == "stop":
        cluster.run("stop", "ps:1")
        cluster.run("start", "ps:1")
    elif phase == "down":
        cluster.run("down", status=None)
        wait_until(lambda: not cluster.processes(), "the end of all processes")
    if phase in ("up", "down"):
        cluster.run("up")
    wait_until(lambda: is_up(cluster, workers), "all tasks")
    events = [event for event in cluster.run("events", "-o", "json").stdout.splitlines() if event]
    assert not any("shim was killed" in event or "gave up" in event or "give-up" in event for event in events)
    failures = [event for event in events if "restart 1 of" in event]
    assert not failures, "\n".join(failures)
    cluster.run("down")
    assert not cluster.processes()
