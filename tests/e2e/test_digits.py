"""The main job, from `dtfctl up` to a trained model, and what it survives."""

from __future__ import annotations

import os
import signal

import pytest

from dtf.train import summary_iterator
from tests.e2e.example_cluster import ExampleCluster
from tests.waiting import wait_until

STEPS = 1500
EVERYTHING = "ps:0 ps:1 worker:0 worker:1"


@pytest.fixture
def cluster(tmp_path):
    cluster = ExampleCluster(tmp_path, "digits", f"--train_steps={STEPS}")
    yield cluster
    cluster.end()


def assert_trained(cluster: ExampleCluster, exit_status: int) -> None:
    assert exit_status == 0, cluster.printed()
    assert cluster.accuracy() >= 97.0
    assert cluster.checkpoint_step() >= STEPS
    assert cluster.status()["state"] == "succeeded"
    wait_until(lambda: not cluster.processes(), "every process to end")


def test_one_command_must_train_the_digits_and_leave_no_process(cluster):
    assert_trained(cluster, cluster.run_well(timeout_s=120))
    assert [task["restarts"] for task in cluster.status()["tasks"]] == [0, 0, 0, 0]
    (events,) = (cluster.folder / "checkpoints" / "worker-1").glob("events*")
    tags = {value.tag for event in summary_iterator(str(events)) for value in event.summary.value}
    assert tags == {"staleness", "staleness_max"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "victims",
    [line.split() for line in ("ps:0", "ps:1", "worker:1", "worker:0", "ps:0 ps:1", "ps:1 worker:0", EVERYTHING)],
    ids=",".join,
)
def test_killed_tasks_must_come_back_and_the_training_must_end_as_well(cluster, victims):
    up = cluster.start_up("--attach")
    cluster.wait_for_step(300)
    cluster.kill(*victims)
    assert_trained(cluster, cluster.exit_status(up, 150))
    for name in victims:
        task = cluster.task(name)
        assert task["restarts"] >= 1
        assert "SIGKILL" in task["reason"] or "signal 9" in task["reason"], task


@pytest.mark.slow
def test_ctrl_c_must_stop_everything_and_a_second_up_must_go_on_from_the_checkpoint(cluster):
    up = cluster.start_up("--attach")
    cluster.wait_for_step(200)
    os.kill(up.pid, signal.SIGINT)
    assert cluster.exit_status(up, 20) == 130
    assert not cluster.processes()
    reached = cluster.checkpoint_step()
    again = cluster.start_up("--attach")
    assert_trained(cluster, cluster.exit_status(again, 120))
    assert f"model.ckpt-{reached}" in cluster.printed()


@pytest.mark.slow
def test_down_in_the_middle_must_stop_everything_and_keep_the_checkpoint(cluster):
    assert cluster.exit_status(cluster.start_up(), 60) == 0
    cluster.wait_for_step(200)
    cluster.dtfctl("down")
    assert not cluster.processes()
    assert cluster.status()["state"] == "stopped"
    assert_trained(cluster, cluster.exit_status(cluster.start_up("--attach"), 120))
