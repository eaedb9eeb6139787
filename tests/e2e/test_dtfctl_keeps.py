"""Commands on a training lose nothing of it, count no failure of anybody, and what stands still is noticed."""

from __future__ import annotations

import re

import pytest

from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

TRAINER = """
import json, os, time
import dtf as tf

job, index, spec = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"]), json.loads(os.environ["CLUSTER_SPEC"])
server = tf.train.Server(spec, job_name=job, task_index=index)
if job == "ps":
    server.join()  # and no else: it must not return
with tf.device(tf.train.replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{index}")):
    step = tf.train.get_or_create_global_step()
    train = step.assign_add(1)
with tf.train.MonitoredTrainingSession(
    server.target, is_chief=index == 0, checkpoint_dir="checkpoints", save_checkpoint_steps=10**7,
    save_checkpoint_secs=None, save_summaries_steps=None, save_summaries_secs=None, log_step_count_steps=None,
) as session:
    while not session.should_stop():
        print("step", session.run(train), flush=True)
        time.sleep(0.01)
        while job == "worker" and index == 0 and os.path.exists("hang"):
            time.sleep(0.05)
"""

CLUSTER = """
name: trial
program: python trainer.py
checkpoint_dir: checkpoints
jobs: {ps: 2, worker: 2}
"""


class Training(CommandLine):
    def __init__(self, folder, text=CLUSTER):
        super().__init__(folder, text)
        self.environment["PYTHONPATH"] = f"{ROOT / 'runtime'}:{ROOT}"
        self.environment["DTFCTL_STALLED_AFTER"] = "1"
        (self.folder / "trainer.py").write_text(TRAINER)

    def steps(self, *tasks):
        return [int(step) for step in re.findall(r"step (\d+)", self.run("logs", *tasks).stdout)]

    def wait_for_step(self, step):
        return wait_until(lambda: max(self.steps("worker:0"), default=0) >= step, f"step {step}", 60)


@pytest.fixture
def training(tmp_path):
    made = Training(tmp_path)
    yield made
    made.run("down", "--timeout", "0", status=None)


@pytest.mark.slow
def test_scale_loses_no_step_and_says_the_order_and_the_cost(training):
    training.run("up")
    training.wait_for_step(100)
    plan = training.run("scale", "worker=3", "--plan", status=20).stdout
    assert "worker:1, then worker:0 (it saves), then ps:0, ps:1" in " ".join(plan.split())
    reached = max(training.steps("worker:0", "worker:1"))
    training.run("scale", "worker=3")
    new = wait_until(lambda: training.steps("worker:2"), "the new worker to train", 60)
    assert min(new) > reached
    assert {task["restarts"] for task in training.status()["tasks"]} <= {0, 1}
    assert "Traceback" not in training.run("logs").stdout


@pytest.mark.slow
def test_restart_and_stop_of_a_ps_crash_nobody_and_cost_no_training(training):
    training.run("up")
    wanted = 0
    for number in range(3):
        wanted = max(training.steps("worker:0"), default=0) + 60
        training.wait_for_step(wanted)
        before = len(training.steps("worker:0"))
        training.run(*(("restart", "ps"), ("restart", "ps:0"), ("stop", "ps:0"))[number])
        if number == 2:
            training.run("start", "ps:0")
        wait_until(lambda: len(training.steps("worker:0")) > before + 5, "the training to go on", 60)  # noqa: B023
        assert min(training.steps("worker:0")[before + 5 :]) > wanted - 30
    assert training.task("worker:0")["restarts"] == training.task("worker:1")["restarts"] == 0


@pytest.mark.slow
def test_a_chief_that_hangs_is_said_to_be_stalled(training):
    training.run("up")
    training.wait_for_step(5)
    (training.folder / "hang").touch()
    stalled = wait_until(lambda: training.task("worker:0").get("stalled"), "worker:0 to be called stalled", 60)
    assert "run no step" in stalled["why"]
    assert "worker:0 stalled since" in training.run("status").stdout
    (training.folder / "hang").unlink()
    wait_until(lambda: "stalled" not in training.task("worker:0"), "worker:0 to get on", 60)
