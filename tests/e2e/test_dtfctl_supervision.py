"""What becomes of tasks that hang, are preempted, crash in loops or cannot be killed; and who is damaged by what."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import time
from pathlib import Path

import pytest

from dtfctl.control.client import ControlClient
from tests.e2e.dtfctl_cluster import SLEEPERS, CommandLine
from tests.waiting import wait_until

FREEZER = Path("/sys/fs/cgroup/freezer")


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    cluster.run("down", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def test_a_suspended_task_must_be_found_hanging_and_be_restarted(cluster):
    beat = "while true; do touch beat; sleep 0.05; done"
    cluster.write(
        "name: trial\njobs:\n  worker:\n    port: none\n    grace_period: 1s\n"
        f"    program: '{beat}'\n    liveness: {{file: beat, interval: 300ms, failures: 2}}\n"
    )
    cluster.run("up")
    pid = cluster.task("worker:0")["pid"]
    os.kill(pid, signal.SIGSTOP)
    after = cluster.wait_for_restart("worker:0", pid)
    assert after["restarts"] == 1
    assert after["reason"].startswith("hung: 2 times in a row the file ")
    assert after["reason"].endswith("restart 1 of 5 within 10m")


@pytest.mark.slow
def test_a_task_whose_machine_will_be_taken_away_must_save_and_come_back_later(cluster):
    cluster.write(
        "name: trial\nreadiness: none\njobs:\n  worker:\n    preemption: {file: notice, interval: 50ms}\n"
        "    program: \"trap 'echo saved; exit 0' TERM; echo working; while true; do sleep 0.02; done\"\n"
    )
    cluster.run("up")
    notice = cluster.folder / "notice"
    notice.touch()
    wait_until(lambda: cluster.task("worker:0")["state"].startswith("backoff"), "the end of the worker")
    assert "saved" in cluster.run("logs", "worker:0").stdout
    assert cluster.task("worker:0")["reason"] == (
        f"preempted: the file {notice} is there; restart not counted"
    )
    assert cluster.status()["state"] == "running"
    notice.unlink()
    wait_until(lambda: cluster.task("worker:0")["ready"], "the worker to come back")


@pytest.mark.slow
def test_a_crash_loop_must_be_given_up_soon_with_its_cause_and_its_followers(cluster):
    cluster.write(
        "name: trial\nreadiness: none\nrestart: {backoff: 50ms}\njobs:\n  ps: {program: sleep 1000}\n"
        "  worker: {replicas: 2, program: 'echo no module named x; exit 3'}\n"
    )
    begun = time.monotonic()
    done = cluster.run("up", "--attach", status=10)
    assert time.monotonic() - begun < 15
    assert "gave up: failed 4 times in a row after about " in done.stderr
    assert "no module named x" in done.stderr
    assert done.stderr.count("  then worker:") == 1


def test_a_program_that_cannot_run_must_end_the_cluster_at_once_with_its_traceback_once(cluster):
    (cluster.folder / "trainer.py").write_text("try:\n    import no_such_module\nfinally:\n    print('began')\n")
    cluster.write("name: trial\nprogram: python trainer.py\njobs: {ps: 1, worker: 2}\n")
    done = cluster.run("up", "--attach", status=10)
    shown = done.stdout + done.stderr
    assert shown.count("Traceback (most recent call last)") == 1
    assert re.search(r"trial failed .*: \w+:\d failed: exited with status 1; gave up: ModuleNotFoundError", shown)
    assert all(task["restarts"] == 0 for task in cluster.status()["tasks"])
    cluster.write("name: trial\nprogram: 'true; no-such-program'\njobs: {worker: 1}\n")
    done = cluster.run("up", status=10)
    assert "worker:0 failed: exited with status 127; gave up: the program is not found" in done.stderr
    assert cluster.task("worker:0")["restarts"] == 0


@pytest.mark.slow
def test_a_supervisor_that_comes_back_must_know_a_hundred_tasks_within_moments(cluster):
    worker = "{replicas: 100, port: none, program: [sleep, '1000']}"
    cluster.write(f"name: trial\nreadiness: none\njobs: {{worker: {worker}}}\n")
    cluster.run("up")
    before = {task["name"]: task["pid"] for task in cluster.status()["tasks"]}
    supervisor = cluster.supervisor()
    begun = time.monotonic()
    os.kill(supervisor, signal.SIGKILL)
    control = cluster.state / "trial" / "control.sock"

    def answers():
        client = ControlClient.connect(control)
        if client is None:
            return False
        client.close()
        return True

    wait_until(answers, "the next supervisor")
    # A second on a machine that has nothing else to do; the benchmark says how long it takes.
    assert time.monotonic() - begun < 10
    assert {task["name"]: task["pid"] for task in cluster.status()["tasks"]} == before


@pytest.mark.slow
@pytest.mark.skipif(not os.access(FREEZER, os.W_OK), reason="there is no freezer that this user may write")
def test_a_task_that_cannot_be_killed_must_be_named_and_hold_nobody_up(cluster):
    cluster.run("up")
    pid = cluster.task("ps:0")["pid"]
    frozen = FREEZER / f"dtfctl-test-{os.getpid()}"
    frozen.mkdir()
    try:
        (frozen / "cgroup.procs").write_text(str(pid))
        (frozen / "freezer.state").write_text("FROZEN")
        begun = time.monotonic()
        done = cluster.run("down", "--timeout", "1", status=1)
        assert time.monotonic() - begun < 20
        assert f"left behind: pid {pid} on localhost" in done.stderr
        assert {task["state"] for task in cluster.status()["tasks"]} == {"stopped"}
    finally:
        (frozen / "freezer.state").write_text("THAWED")
        wait_until(lambda: not cluster.processes(), "the end of what was frozen")
        frozen.rmdir()


@pytest.mark.slow
def test_fifty_random_kills_during_a_run_with_restarts_and_down_must_cost_nothing(cluster):
    """Of supervisor, keeper, its shim and commands; tasks are killed too, and come back exactly as often."""
    counting = "i=0; while [ ! -e done ]; do i=$((i+1)); echo line $i; sleep 0.01; done"
    cluster.write(SLEEPERS.replace("while [ ! -e done ]; do sleep 0.02; done", counting))
    cluster.run("up")
    rng = random.Random(5)
    workers = {name: cluster.task(name)["pid"] for name in ("worker:0", "worker:1")}
    killed = set()
    commands = []
    for _ in range(50):
        victim = rng.choice(("supervisor", "keeper", "shim", "command", "ps:1"))
        if victim == "command":
            commands.append(cluster.start(*rng.choice([("status",), ("logs", "-f"), ("restart", "ps:0"), ("up",)])))
            time.sleep(rng.random() / 4)
            commands[-1].kill()
        elif victim == "ps:1":
            task = cluster.task("ps:1")
            # One that is dead already may still be told of while nobody is there to notice.
            with contextlib.suppress(ProcessLookupError):
                if task["ready"]:
                    os.kill(task["pid"], signal.SIGKILL)
                    killed.add(task["pid"])
        else:
            # When all were killed before they could help each other, it takes a command to bring them back.
            cluster.status()
            with_shim = set(cluster.processes("launchers/keeper")) - {cluster.keeper()}
            pid = rng.choice(sorted(with_shim)) if victim == "shim" and with_shim else cluster.supervisor()
            with contextlib.suppress(ProcessLookupError):
                os.kill(cluster.keeper() if victim == "keeper" else pid, signal.SIGKILL)
        time.sleep(rng.random() / 10)
    for command in commands:
        command.wait()
    wait_until(lambda: cluster.task("ps:1")["ready"], "ps:1 to come back", 90)
    assert cluster.task("ps:1")["restarts"] == len(killed)
    assert {name: cluster.task(name)["pid"] for name in workers} == workers
    assert {cluster.task(name)["restarts"] for name in workers} == {0}
    cluster.finish()
    os.kill(cluster.supervisor(), signal.SIGKILL)
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end of the job", 60)
    for name in workers:
        lines = cluster.run("logs", name).stdout.splitlines()
        assert lines == [name.replace(":", " "), *(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_the_cluster_must_become_what_is_wanted_and_nothing_may_be_left_over(cluster, seed):
    """The fast test of the same kind, with many more steps and everything made up: tests/dtfctl/test_convergence.py."""
    rng = random.Random(seed)
    text = "name: trial\nreadiness: none\ngrace_period: 1s\ncluster_spec: sparse\njobs:\n"
    text += "  ps: {program: exec sleep 1000}\n"
    wanted = {"worker": 2, "held": set(), "seconds": 1001}

    def write():
        cluster.write(f"{text}  worker: {{replicas: {wanted['worker']}, program: exec sleep {wanted['seconds']}}}\n")

    def any_task():
        return rng.choice(["ps:0", *(f"worker:{index}" for index in range(wanted["worker"]))])

    def kill_task():
        if pid := cluster.task(any_task())["pid"]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_supervisor():
        os.kill(cluster.supervisor(), signal.SIGKILL)

    def kill_keeper():
        os.kill(cluster.keeper(), signal.SIGKILL)

    def restart():
        name = any_task()
        cluster.run("restart", name, status=None)
        wanted["held"].discard(name)

    def stop():
        name = any_task()
        cluster.run("stop", name, status=None)
        wanted["held"].add(name)

    def start():
        name = any_task()
        cluster.run("start", name, status=None)
        wanted["held"].discard(name)

    def edit():
        wanted["worker"], wanted["seconds"] = rng.randint(1, 4), rng.randint(1001, 1009)
        write()
        cluster.run("up", "--no-wait")
        wanted["held"] &= {"ps:0", *(f"worker:{index}" for index in range(wanted["worker"]))}

    def is_as_wanted():
        names = ["ps:0", *(f"worker:{index}" for index in range(wanted["worker"]))]
        states = {task["name"]: task["state"] for task in cluster.status()["tasks"]}
        if states != {name: "stopped" if name in wanted["held"] else "running" for name in names}:
            return False
        sleeping = sorted(command.split()[-1] for command in cluster.processes("sleep ").values())
        running = [name for name in names if name not in wanted["held"]]
        return sleeping == sorted("1000" if name == "ps:0" else str(wanted["seconds"]) for name in running)

    write()
    cluster.run("up")
    for _ in range(12):
        cluster.status()
        rng.choice([kill_task, kill_task, kill_supervisor, kill_keeper, restart, stop, start, edit])()
    wait_until(is_as_wanted, "the cluster to be as it is wanted", 60)
    cluster.run("down")
    assert cluster.processes() == {}
