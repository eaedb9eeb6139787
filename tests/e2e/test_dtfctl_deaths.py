"""kill -9 of anything: tasks come back, and nobody notices the death of dtfctl's own processes."""

from __future__ import annotations

import os
import random
import re
import signal

import pytest

from tests.e2e.dtfctl_cluster import SLEEPERS, CommandLine
from tests.waiting import wait_until

COUNTING = SLEEPERS.replace(
    "while [ ! -e done ]; do sleep 0.02; done",
    "i=0; while [ ! -e done ]; do i=$((i+1)); echo line $i; sleep 0.01; done",
)


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    cluster.run("down", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def pids(cluster):
    return {task["name"]: task["pid"] for task in cluster.status()["tasks"]}


def test_a_killed_task_must_come_back_on_its_address_and_the_status_must_say_why(cluster):
    cluster.run("up")
    before = cluster.task("ps:0")
    after = cluster.wait_for_restart("ps:0", cluster.kill("ps:0"))
    assert (after["address"], after["restarts"]) == (before["address"], 1)
    assert after["reason"] == "killed by SIGKILL from outside; restart not counted"
    assert cluster.status()["state"] == "running"


@pytest.mark.slow
def test_several_killed_at_once_must_all_come_back(cluster):
    cluster.run("up")
    killed = {name: cluster.kill(name) for name in ("ps:0", "ps:1", "worker:1")}
    for name, pid in killed.items():
        assert cluster.wait_for_restart(name, pid)["restarts"] == 1
    assert cluster.task("worker:0")["restarts"] == 0


@pytest.mark.parametrize(
    "victims",
    [
        "supervisor",
        "keeper",
        pytest.param("supervisor keeper", marks=pytest.mark.slow),
        pytest.param("keeper supervisor", marks=pytest.mark.slow),
    ],
)
def test_killing_dtfctl_itself_must_cost_no_task_no_line_and_no_exit_status(cluster, victims):
    cluster.write(COUNTING)
    cluster.run("up")
    before = pids(cluster)
    for victim in victims.split():
        os.kill(getattr(cluster, victim)(), signal.SIGKILL)
    assert pids(cluster) == before
    cluster.finish()
    wait_until(lambda: cluster.status()["state"] == "succeeded", "the end of the job")
    assert all(task["restarts"] == 0 for task in cluster.status()["tasks"])
    lines = cluster.run("logs", "worker:0").stdout.splitlines()
    assert lines == ["worker 0", *(f"line {number}" for number in range(1, len(lines) - 1)), "bye"]


@pytest.mark.slow
def test_a_killed_supervisor_must_come_back_by_itself(cluster):
    cluster.run("up")
    supervisor = cluster.supervisor()
    os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: set(cluster.processes("dtfctl.daemon")) - {supervisor}, "another supervisor")
    pid = cluster.task("ps:0")["pid"]
    os.kill(pid, signal.SIGKILL)
    cluster.wait_for_restart("ps:0", pid)


@pytest.mark.slow
def test_a_task_that_ends_while_nobody_watches_must_be_found_as_it_ended(cluster):
    cluster.write(
        SLEEPERS.replace("echo bye", "echo bye; exit 4").replace("name: trial", "name: trial\nrestart: never")
    )
    cluster.run("up")
    os.kill(cluster.keeper(), signal.SIGSTOP)
    os.kill(cluster.supervisor(), signal.SIGKILL)
    cluster.finish()
    logs = cluster.state / "trial" / "runs" / "0001" / "logs"
    wait_until(lambda: (logs / "worker-1.1.log").read_text().endswith("bye\n"), "the workers' ends")
    os.kill(cluster.keeper(), signal.SIGKILL)
    wait_until(lambda: cluster.status()["state"] == "failed", "the end of the job")
    assert {cluster.task(name)["reason"] for name in ("worker:0", "worker:1")} & {
        "exited with status 4 (restart: never)"
    }


@pytest.mark.slow
def test_an_attached_terminal_must_live_through_the_death_of_the_supervisor(cluster):
    cluster.write(COUNTING)
    up = cluster.start("up", "--attach")
    wait_until(lambda: "line 5\n" in cluster.out(), "some lines")
    os.kill(cluster.supervisor(), signal.SIGKILL)
    seen = cluster.out().count("\n")
    wait_until(lambda: cluster.out().count("\n") > seen + 20, "more lines")
    cluster.finish()
    assert up.wait(20) == 0
    numbers = [int(number) for number in re.findall(r"worker:0 \| line (\d+)\n", cluster.out())]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.slow
def test_killing_the_attached_command_must_leave_the_cluster_running(cluster):
    up = cluster.start("up", "--attach")
    wait_until(lambda: "worker 1" in cluster.out(), "the workers")
    before = pids(cluster)
    up.kill()
    up.wait()
    assert pids(cluster) == before


@pytest.mark.slow
def test_forks_of_forks_must_be_gone_after_down(cluster):
    fork = "(setsid sh -c 'sleep 1234 & sleep 1234' &) ; echo forked; exec sleep 1000"
    cluster.write(f'name: trial\nreadiness: none\njobs: {{worker: {{program: "{fork}"}}}}\n')
    cluster.run("up")
    wait_until(lambda: len(cluster.processes("sleep 1234")) == 3, "the forks")
    cluster.run("down")
    assert cluster.processes() == {}


@pytest.mark.slow
def test_random_kills_of_dtfctl_during_restarts_and_down_must_cost_nothing(cluster):
    rng = random.Random(7)
    cluster.write(COUNTING + "restart: {attempts: 1000}\n")
    cluster.run("up")
    worker = cluster.task("worker:0")["pid"]
    killed = 0
    for _ in range(25):
        victim = rng.choice(("supervisor", "keeper", "ps:1"))
        # When both were killed before they could help each other, it takes a command to bring them back.
        cluster.status()
        if victim == "ps:1":
            if pid := cluster.task("ps:1")["pid"]:
                os.kill(pid, signal.SIGKILL)
                killed += 1
        else:
            os.kill(getattr(cluster, victim)(), signal.SIGKILL)
    wait_until(lambda: cluster.task("ps:1")["ready"], "ps:1 to come back", 60)
    assert cluster.task("ps:1")["restarts"] == killed
    assert cluster.task("worker:0")["pid"] == worker
    down = cluster.start("down")
    os.kill(cluster.supervisor(), signal.SIGKILL)
    assert down.wait(30) == 0
