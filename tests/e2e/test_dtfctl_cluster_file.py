"""What the cluster file promises, seen in running clusters: sparse ClusterSpecs, TensorBoard, success by one."""

from __future__ import annotations

import os
import re
import sys
import urllib.request

import pytest

from tests.dtfctl.test_environment import a_wheel
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.interop.tensorflow_process import PYTHON, needs_tensorflow
from tests.waiting import wait_until


@pytest.fixture
def cluster(tmp_path):
    cluster = CommandLine(tmp_path)
    yield cluster
    if cluster.state.exists():
        cluster.run("down", "trial", "--timeout", "0", status=None)
    assert cluster.processes() == {}


def run_with_sparse_specs(cluster, python, runtime):
    cluster.write(
        f"""
name: trial
program: [python, {ROOT}/tests/e2e/sparse_trainer.py, {runtime}, 2]
python: {python}
environment: {{PYTHONPATH: "{ROOT}/runtime"}}
cluster_spec: sparse
jobs: {{ps: 1, worker: 2}}
"""
    )
    up = cluster.start("up", "--attach")
    assert up.wait(100) == 0, cluster.out() + cluster.err()
    address = r"'127\.0\.0\.1:\d+'"
    for index in (0, 1):
        words = rf"worker:{index} \| knows \['ps', 'worker'\] workers {{'{index}': {address}}} counted 20\n"
        assert re.search(words, cluster.out()), cluster.out()


@pytest.mark.slow
def test_workers_that_know_the_ps_and_themselves_must_train_together(cluster):
    run_with_sparse_specs(cluster, sys.executable, "dtf")


class TestWithTensorFlow:
    pytestmark = needs_tensorflow

    def test_its_servers_must_take_sparse_specs_too(self, cluster):
        cluster.environment["TF_CPP_MIN_LOG_LEVEL"] = "3"
        run_with_sparse_specs(cluster, PYTHON, "tensorflow")

    def test_tensorboard_must_serve_beside_the_training_and_end_with_it(self, cluster):
        cluster.write(
            f"""
name: trial
program: "while [ ! -e done ]; do sleep 0.05; done"
readiness: none
checkpoint_dir: checkpoints
tensorboard: {{python: {PYTHON}, readiness: {{probe: tcp, interval: 100ms}}}}
jobs: {{worker: 1}}
"""
        )
        cluster.run("up")
        address = cluster.task("tensorboard:0")["address"]
        with urllib.request.urlopen(f"http://{address}/data/environment", timeout=20) as page:
            assert os.path.join(cluster.folder, "checkpoints") in page.read().decode()
        cluster.finish()
        wait_until(lambda: cluster.status()["state"] == "succeeded", "the end of the training")
        assert {task["state"] for task in cluster.status()["tasks"]} == {"succeeded"}


@pytest.mark.slow
def test_an_environment_must_be_made_before_the_program_that_needs_it_and_be_told_in_pips_words(cluster):
    a_wheel(cluster.folder / "wheels", "greeting", "1.0")
    wanted = cluster.folder / "requirements.txt"
    wanted.write_text("--no-index\n--find-links wheels\ngreeting==2.0\n")
    cluster.write(
        """
name: trial
readiness: none
venv: own
requirements: requirements.txt
jobs: {worker: {program: [python, -c, "import greeting; print(greeting.version)"]}}
"""
    )
    failed = cluster.run("up", status=8).stderr
    assert "error: 1 of 1 hosts did not get a Python environment; nothing was started\n" in failed
    assert "localhost" in failed and "No matching distribution found for greeting==2.0" in failed
    assert f"see: cd {cluster.folder} && {cluster.folder}/own/bin/python -m pip install -r {wanted}" in failed
    assert cluster.processes() == {}
    wanted.write_text("--no-index\n--find-links wheels\ngreeting\n")
    assert cluster.start("up", "--attach").wait(30) == 0
    assert "environment: 1 of 1 made or brought up to date" in cluster.err()
    assert cluster.run("logs", "worker", "--no-prefix").stdout == "1.0\n"
    assert "all match the requirements" in cluster.run("up").stderr


def test_the_success_of_any_worker_must_be_that_of_the_training(cluster):
    cluster.write(
        """
name: trial
readiness: none
success: any
jobs: {worker: {replicas: 2, program: sleep 1000, tasks: {1: {program: "true"}}}}
"""
    )
    assert cluster.start("up", "--attach").wait(20) == 0
    assert cluster.status()["state"] == "succeeded"


def test_an_exit_code_that_is_not_to_be_tried_again_must_end_the_training(cluster):
    cluster.write(
        """
name: trial
readiness: none
restart: {policy: exit-code, codes: [75]}
jobs: {worker: {program: "test -e again && exit 2; touch again; exit 75"}}
"""
    )
    assert cluster.start("up", "--attach").wait(20) == 10
    assert cluster.task("worker:0")["restarts"] == 1
    assert "exited with status 2 (not among the exit codes that are retried)" in cluster.err()
