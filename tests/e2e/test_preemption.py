"""A training that is told to stop: SIGTERM makes the chief save its last step, and the processes say why they end."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.e2e.example_cluster import ExampleCluster
from tests.waiting import wait_until

NEVER = 10**6
"""Steps between checkpoints: only the first and the last are saved."""


@pytest.fixture
def example(tmp_path):
    made: list[ExampleCluster] = []

    def make(name: str, steps: int) -> ExampleCluster:
        made.append(ExampleCluster(tmp_path, name, f"--train_steps={steps} --save_steps={NEVER} --log_steps=1"))
        return made[-1]

    yield make
    for cluster in made:
        cluster.end()


def steps(cluster: ExampleCluster, task: str = "worker:0") -> list[int]:
    """The global steps at which the task has begun a step, in the order in which it said so."""
    return [int(step) for step in re.findall(rf"^{task}\s+\| step (\d+): loss", cluster.printed(), re.MULTILINE)]


def wait_for_a_step(cluster: ExampleCluster, step: int) -> None:
    wait_until(lambda: step in steps(cluster), f"step {step}\n{cluster.printed()}")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "digits-sync"])
def test_down_in_mid_training_must_leave_a_checkpoint_of_the_last_step(example, name):
    cluster = example(name, NEVER)
    up = cluster.start_up("--attach")
    wait_for_a_step(cluster, 40)
    cluster.dtfctl("down")
    cluster.exit_status(up, 30)
    last = steps(cluster)[-1]
    assert last <= cluster.checkpoint_step() <= last + 2, cluster.printed()[-3000:]
    assert "killed" not in cluster.printed().lower()
    assert not cluster.processes()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ring", "digits-sync"])
def test_a_restarted_chief_must_go_on_from_its_last_step(example, name):
    cluster = example(name, 200)
    up = cluster.start_up("--attach")
    wait_for_a_step(cluster, 60)
    cluster.dtfctl("restart", "worker:0")
    assert cluster.exit_status(up, 100) == 0, cluster.printed()
    taken = steps(cluster)
    assert taken == sorted(taken), "no step was gone back to"
    assert all(after <= before + 2 for before, after in zip(taken, taken[1:], strict=False)), "and none was left out"
    assert cluster.checkpoint_step() == 200
    assert cluster.accuracy() >= 96.0


@pytest.mark.slow
def test_a_worker_that_is_preempted_must_be_restarted_and_not_blamed(example):
    cluster = example("ring", 200)
    up = cluster.start_up("--attach")
    wait_for_a_step(cluster, 60)
    os.kill(cluster.task("worker:0")["pid"], signal.SIGTERM)
    assert cluster.exit_status(up, 100) == 0, cluster.printed()
    assert "restart not counted" in cluster.printed()
    assert steps(cluster) == sorted(steps(cluster))
    assert cluster.accuracy() >= 96.0
