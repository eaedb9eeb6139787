"""`python -m dtf.serve` with real processes: one task or many, told to end, failing, losing their parent."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import dtf as tf
from dtf import serve
from tests.ports import free_ports

PYTHON = [sys.executable, "-m", "dtf.serve"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(tf.__file__).parent.parent)}


class Cluster:
    """Five tasks of a job `ps` on loopback."""

    def __init__(self):
        self.hosts = [f"localhost:{port}" for port in free_ports(5)]
        self.process = None

    def start(self, task_id):
        command = [*PYTHON, "--cluster_spec", f"ps|{';'.join(self.hosts)}", "--job_name", "ps", "--task_id", task_id]
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
        return self.process

    def add(self, *tasks):
        """The sum of a variable at each task, by a session with the first; waits until all answer."""
        with tf.Graph().as_default():
            variables = []
            for task in tasks:
                with tf.device(f"/job:ps/task:{task}"):
                    variables.append(tf.Variable(float(task)))
            config = tf.ConfigProto(operation_timeout_in_ms=20_000)
            with tf.Session(f"grpc://{self.hosts[tasks[0]]}", config=config) as session:
                session.run(tf.global_variables_initializer())
                return session.run(tf.add_n([variable + 0.0 for variable in variables]))


@pytest.fixture
def cluster():
    found = Cluster()
    yield found
    if found.process is not None:
        found.process.kill()  # which ends those that it has forked
        found.process.communicate()


@pytest.mark.parametrize("task_id", ["2", "0-2,4"])
def test_tasks_serve_until_they_are_told_to_end(cluster, task_id):
    process = cluster.start(task_id)
    numbers = serve.numbers_of(task_id)
    assert cluster.add(*numbers) == sum(numbers)
    children = psutil.Process(process.pid).children()
    assert len(children) == (len(numbers) if len(numbers) > 1 else 0)
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) in (-signal.SIGTERM, 128 + signal.SIGTERM), "a shell calls either 143"
    psutil.wait_procs(children, 30)
    assert not any(child.is_running() for child in children)


def test_one_that_is_killed_ends_the_others_and_is_named(cluster):
    process = cluster.start("0-2")
    assert cluster.add(0, 1, 2) == 3
    children = sorted(psutil.Process(process.pid).children(), key=lambda child: child.pid)
    children[1].kill()
    _, log = process.communicate(timeout=10)
    assert process.returncode == 128 + signal.SIGKILL
    assert "/job:ps/task:1 ended with status 137" in log
    assert not any(child.is_running() for child in children)


def test_no_task_outlives_the_command(cluster):
    process = cluster.start("0-2")
    assert cluster.add(0, 1, 2) == 3
    children = psutil.Process(process.pid).children()
    process.kill()
    _, alive = psutil.wait_procs(children, 10)
    assert not alive


@pytest.mark.parametrize("task_id", ["1", "0-2"])
def test_a_port_in_use_is_told_of(cluster, task_id):
    host, port = cluster.hosts[1].split(":")
    with socket.create_server((host, int(port))):
        process = cluster.start(task_id)
        _, log = process.communicate(timeout=20)
    assert process.returncode == 1
    assert "/job:ps/task:1" in log and port in log and "Traceback" not in log


@pytest.mark.parametrize(
    ("cluster_spec", "job", "task_id", "words"),
    [
        ("ps", "ps", "0", "--cluster_spec"),
        ("ps|a:1;", "ps", "0", "--cluster_spec"),
        ("ps|a:1,ps|b:1", "ps", "0", "--cluster_spec"),
        ("ps|a:1", "worker", "0", "no job 'worker'; it has ps"),
        ("ps|a:1", "ps", "0-1", "no task 1; it has 1"),
        ("ps|a:1", "ps", "0,0", "--task_id"),
        ("ps|a:1", "ps", "2-1", "--task_id"),
        ("ps|a:1", "ps", "0,2-1", "--task_id"),
        ("ps|a:1", "ps", "x", "--task_id"),
    ],
)
def test_what_is_wrong_with_the_command_is_said(capsys, cluster_spec, job, task_id, words):
    with pytest.raises(SystemExit) as ended:
        serve.main(["--cluster_spec", cluster_spec, "--job_name", job, "--task_id", task_id])
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_nothing_that_is_loaded_before_the_fork_has_begun_a_thread():
    program = "import threading, dtf.serve; dtf.serve._load(); import sys; sys.exit(threading.active_count() - 1)"
    assert subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT).returncode == 0
