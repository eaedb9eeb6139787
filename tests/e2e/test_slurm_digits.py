"""clusters/slurm-digits on real Slurm daemons, from `dtfctl up` to a trained model, and what it survives."""

from __future__ import annotations

import re

import pytest

from tests.e2e import slurm as slurm_cluster
from tests.e2e.example_cluster import ExampleCluster
from tests.e2e.slurm import Slurm

STEPS = 1500

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(slurm_cluster.why_not()), reason=f"no Slurm: {slurm_cluster.why_not()}"),
]


@pytest.fixture
def slurm(tmp_path):
    with Slurm(tmp_path, 3) as slurm:
        yield slurm


@pytest.fixture
def cluster(tmp_path, slurm):
    cluster = ExampleCluster(tmp_path, "slurm-digits", f"--train_steps={STEPS}")
    names = ("PATH", "SLURM_CONF", "XDG_STATE_HOME")
    cluster.environment.update({name: slurm.environment[name] for name in names})
    yield cluster
    slurm.end_all()
    assert not cluster.processes()


def job_of(slurm):
    return slurm.run("squeue", "-h", "-o", "%A", "--name=slurm-digits")


def submit(cluster, *settings):
    words = [word for setting in ("engine.slurm.interface=lo", *settings) for word in ("--set", setting)]
    assert cluster.exit_status(cluster.start_up(*words), 120) == 0, cluster.printed()


def wait_for_step(cluster, slurm, step):
    slurm.wait_until(lambda: cluster.checkpoint_step() >= step, f"a checkpoint of step {step}", 300)


def assert_trained(cluster, slurm):
    slurm.wait_until(lambda: not job_of(slurm), "the end of the job", 400)
    status = cluster.status()
    assert status["state"] == "succeeded", status
    (accuracy,) = re.findall(r"held-out accuracy: ([\d.]+)", cluster.dtfctl("logs", "worker:0").stdout)[-1:]
    assert float(accuracy) >= 97.0
    assert cluster.checkpoint_step() >= STEPS
    return {task["name"]: task for task in status["tasks"]}


def test_one_command_must_train_the_digits_on_slurm_and_survive_a_lost_node(cluster, slurm):
    submit(cluster, "host_lost_after=15s")
    wait_for_step(cluster, slurm, 200)
    before = {task["name"]: task["host"] for task in cluster.status()["tasks"]}
    assert set(before.values()) == {"node1", "node2"}
    slurm.kill_node("node2")
    tasks = assert_trained(cluster, slurm)
    assert all(tasks[name]["host"] == ("node3" if host == "node2" else host) for name, host in before.items())


@pytest.mark.parametrize("ending", ["requeue", "preemption"])
def test_the_digits_must_be_trained_across_the_ends_of_their_job(cluster, slurm, ending):
    submit(cluster)
    wait_for_step(cluster, slurm, 200)
    job = job_of(slurm)
    if ending == "requeue":
        slurm.run("scontrol", "requeue", job)
    else:
        urgent = slurm.run(
            "sbatch", "--parsable", "-N3", "--exclusive", "--partition=urgent", "-o", "/dev/null", "--wrap", "true"
        )
        slurm.wait_until(lambda: not slurm.run("squeue", "-h", "-j", urgent, check=False), "the urgent job", 300)
    tasks = assert_trained(cluster, slurm)
    # The second run went on from the checkpoint, and nobody is blamed for the end of the first.
    words = (cluster.folder.parent / "state" / "slurm-digits" / f"slurm-{job}.log").read_text()
    (begun,) = re.findall(r"Restoring parameters from \S*model\.ckpt-(\d+)", words)[:1]
    assert int(begun) >= 200
    assert all(task["restarts"] == 0 for task in tasks.values())
