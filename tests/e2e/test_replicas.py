"""Synchronous, in-graph and ring replicas of the digits: as one worker with the whole batch, also when tasks die."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from tests.e2e.example_cluster import ExampleCluster
from tests.waiting import wait_until

STEPS = 300


@pytest.fixture
def example(tmp_path):
    """Makes clusters; what one leaves behind is an error."""
    made: list[ExampleCluster] = []

    def make(name: str, flags: str = f"--train_steps={STEPS}") -> ExampleCluster:
        folder = tmp_path / str(len(made))
        folder.mkdir()
        made.append(ExampleCluster(folder, name, flags))
        return made[-1]

    yield make
    for cluster in made:
        cluster.end()


def losses(cluster: ExampleCluster) -> list[float]:
    """The mean of what the workers printed for each step: that of the whole batch, since the parts are equal."""
    parts = defaultdict(list)
    for step, value in re.findall(r"\| step (\d+): loss (?:of its part )?([\d.]+)", cluster.printed()):
        parts[int(step)].append(float(value))
    assert sorted(parts) == list(range(len(parts)))
    return [sum(parts[step]) / len(parts[step]) for step in sorted(parts)]


def train(cluster: ExampleCluster, *arguments: str) -> ExampleCluster:
    assert cluster.run_well(*arguments) == 0, cluster.printed()
    assert cluster.status()["state"] == "succeeded"
    return cluster


@pytest.mark.slow
def test_synchronous_workers_must_train_the_digits(example):
    cluster = train(example("digits-sync"))
    assert cluster.accuracy() >= 97.0
    assert cluster.checkpoint_step() == STEPS
    wait_until(lambda: not cluster.processes(), "every process to end")


@pytest.mark.slow
def test_one_client_with_towers_must_train_the_digits(example):
    cluster = train(example("in-graph"))
    assert cluster.accuracy() >= 97.0
    assert cluster.checkpoint_step() == STEPS
    wait_until(lambda: not cluster.processes(), "every process to end")


@pytest.mark.slow
def test_workers_in_a_ring_must_train_the_digits(example):
    cluster = train(example("ring"))
    assert cluster.accuracy() >= 96.0
    assert cluster.checkpoint_step() == STEPS
    wait_until(lambda: not cluster.processes(), "every process to end")


@pytest.mark.slow
def test_any_number_of_workers_or_towers_must_give_the_same_losses(example):
    runs = [
        losses(train(example(name, "--train_steps=60 --log_steps=1"), "--set", f"jobs.worker={workers}"))
        for name, workers in [("digits-sync", 1), ("digits-sync", 2), ("digits-sync", 4), ("in-graph", 4), ("ring", 3)]
    ]
    for run in runs:
        assert len(run) == 60
        assert run == pytest.approx(runs[0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "victim"),
    [
        ("digits-sync", "worker:1"), ("digits-sync", "worker:0"), ("digits-sync", "ps:1"), ("in-graph", "worker:1"),
        ("ring", "worker:1"), ("ring", "worker:0"),
    ],
)  # fmt: skip
def test_a_killed_task_must_not_change_the_final_accuracy(example, name, victim):
    cluster = example(name, "--train_steps=300 --save_steps=50")
    up = cluster.start_up("--attach")
    cluster.wait_for_step(50)
    cluster.kill(victim)
    assert cluster.exit_status(up, 100) == 0, cluster.printed()
    assert cluster.task(victim)["restarts"] >= 1
    # Without a death it is 98.1 % of 360 images.
    assert cluster.accuracy() == pytest.approx(98.1, abs=1.0)


@pytest.mark.slow
def test_a_backup_worker_must_make_up_for_one_that_is_gone(example):
    cluster = example("digits-sync", "--train_steps=300 --save_steps=50 --backup_workers=1")
    up = cluster.start_up("--attach")
    cluster.wait_for_step(50)
    cluster.dtfctl("stop", "worker:2")
    reached = cluster.checkpoint_step()
    cluster.wait_for_step(reached + 50)
    cluster.dtfctl("start", "worker:2")
    assert cluster.exit_status(up, 100) == 0, cluster.printed()
    assert cluster.accuracy() == pytest.approx(98.1, abs=1.5)
