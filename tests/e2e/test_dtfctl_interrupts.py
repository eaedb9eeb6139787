"""Ctrl-C and kill -9 at any stage of `up`: what is left can be ended, and ends by itself where nobody needs it."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.dtfctl_cluster import CommandLine
from tests.waiting import wait_until

STAGES = {
    "a supervisor's process": lambda cluster: cluster.processes("dtfctl.daemon"),
    "its socket": lambda cluster: (cluster.state / "trial" / "control.sock").exists(),
    "a folder of the run": lambda cluster: list((cluster.state / "trial").glob("runs/*")),
    "a keeper": lambda cluster: cluster.processes("launchers/keeper"),
    "a task": lambda cluster: cluster.processes("sleep 1000"),
}


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    cluster.run("down", "--timeout", "0", status=None)
    wait_until(lambda: cluster.processes() == {}, "the end of all processes")


def slow_but(*fast):
    return [stage if stage in fast else pytest.param(stage, marks=pytest.mark.slow) for stage in STAGES]


@pytest.mark.parametrize("stage", slow_but("its socket", "a keeper"))
def test_after_ctrl_c_at_any_stage_of_up_down_ends_what_there_is(cluster, stage):
    up = cluster.start("up")
    wait_until(lambda: STAGES[stage](cluster) or up.poll() is not None, stage)
    os.killpg(up.pid, signal.SIGINT)
    up.wait(30)
    done = cluster.run("down", "--timeout", "0", status=None)
    # 4: nothing of it had been begun.
    assert done.returncode in (0, 4), done.stderr
    wait_until(lambda: cluster.processes() == {}, "the end of all processes", 30)
    assert cluster.run("up").returncode == 0


@pytest.mark.parametrize("stage", slow_but("a supervisor's process"))
def test_a_supervisor_whose_command_was_killed_before_it_had_work_ends_or_works(cluster, stage):
    up = cluster.start("up")
    wait_until(lambda: STAGES[stage](cluster) or up.poll() is not None, stage)
    up.kill()
    up.wait(30)

    def look():
        return cluster.processes() == {} or cluster.processes("sleep 1000")

    wait_until(look, "the end of all processes, or a cluster that runs", 40)


@pytest.mark.parametrize("stage", slow_but("a keeper"))
def test_a_supervisor_that_is_killed_while_it_begins_a_run_leaves_nothing_that_nobody_ends(cluster, stage):
    up = cluster.start("up")
    wait_until(lambda: STAGES[stage](cluster) or up.poll() is not None, stage)
    up.kill()
    up.wait(30)
    for pid in cluster.processes("dtfctl.daemon"):
        os.kill(pid, signal.SIGKILL)
    cluster.run("down", "--timeout", "0", status=None)

    def look():
        if cluster.processes("sleep 1000"):
            cluster.run("down", "--timeout", "0", status=None)
        return cluster.processes() == {}

    wait_until(look, "the end of all processes", 40)


def test_ctrl_c_twice_while_down_waits_kills_what_is_left(cluster):
    stubborn = "trap 'touch asked' TERM; while true; do sleep 0.05; done"
    cluster.write(f"name: trial\nreadiness: none\ngrace_period: 1h\njobs: {{worker: {{program: \"{stubborn}\"}}}}")
    cluster.run("up")
    down = cluster.start("down")
    wait_until(lambda: (cluster.folder / "asked").exists(), "its stop signal")
    os.killpg(down.pid, signal.SIGINT)
    wait_until(lambda: "Ctrl-C again kills at once" in cluster.err(), "the first answer")
    os.killpg(down.pid, signal.SIGINT)
    assert down.wait(40) == 0
    assert "Traceback" not in cluster.err()
