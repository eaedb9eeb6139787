"""tf.estimator in a cluster of TF_CONFIG: trained, evaluated meanwhile, exported, and everybody ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from tests.e2e.example_cluster import ExampleCluster
from tests.waiting import wait_until

STEPS = 600


@pytest.fixture
def cluster(tmp_path, request):
    """The example, with STEPS training steps or as many as the test asks for."""
    steps = getattr(request, "param", STEPS)
    cluster = ExampleCluster(tmp_path, "estimator", f"--train_steps={steps}")
    yield cluster
    cluster.end()


def assert_trained(cluster: ExampleCluster, exit_status: int) -> Path:
    """Returns the folder of the exported model."""
    assert exit_status == 0, cluster.printed()
    assert cluster.accuracy() > 95.0
    assert cluster.checkpoint_step() >= STEPS
    assert cluster.status()["state"] == "succeeded"
    wait_until(lambda: not cluster.processes(), "every process to end")
    (exported,) = (cluster.folder / "checkpoints" / "export" / "digits").iterdir()
    return exported


def accuracy_of(folder: Path, data: Path) -> float:
    """Of an exported model, on all digits."""
    with np.load(data) as digits:
        images, labels = digits["images"].astype(np.float32)[..., np.newaxis] / 16, digits["labels"]
    with tf.Graph().as_default(), tf.Session() as session:
        signature = tf.saved_model.load(session, ["serve"], str(folder)).signature_def["serving_default"]
        found = session.run(signature.outputs["digit"].name, {signature.inputs["image"].name: images})
    return float((found == labels).mean())


@pytest.mark.slow
def test_chief_worker_ps_and_evaluator_must_train_and_export_the_digits(cluster):
    exported = assert_trained(cluster, cluster.run_well(timeout_s=120))
    assert accuracy_of(exported, cluster.folder / "digits.npz") > 0.95
    checkpoints = cluster.folder / "checkpoints"
    evaluations = tf.estimator.experimental.read_eval_metrics(str(checkpoints / "eval"))
    # The step within the checkpoint: its name is of the moment before it was saved, while the worker went on.
    last = tf.train.latest_checkpoint(str(checkpoints))
    assert max(evaluations) == tf.train.load_variable(last, "global_step")
    assert {task["restarts"] for task in cluster.status()["tasks"]} == {0}


@pytest.mark.slow
@pytest.mark.parametrize("cluster", [2500], indirect=True)
def test_killed_tasks_must_come_back_and_the_training_must_end_as_well(cluster):
    up = cluster.start_up("--attach")
    cluster.wait_for_step(200)
    cluster.kill("chief:0")
    cluster.wait_for_step(400)
    victims = ("worker:0", "evaluator:0", "ps:1")
    cluster.kill(*victims)
    assert_trained(cluster, cluster.exit_status(up, 150))
    assert all(cluster.task(name)["restarts"] >= 1 for name in ("chief:0", *victims))


@pytest.mark.slow
def test_down_in_the_middle_must_keep_what_was_learned_and_a_second_up_must_end_the_training(cluster):
    assert cluster.exit_status(cluster.start_up(), 60) == 0
    cluster.wait_for_step(200)
    cluster.dtfctl("down")
    assert not cluster.processes()
    reached = cluster.checkpoint_step()
    assert_trained(cluster, cluster.exit_status(cluster.start_up("--attach"), 120))
    assert f"Restoring parameters from {cluster.folder}/checkpoints/model.ckpt-{reached}\n" in cluster.printed()
