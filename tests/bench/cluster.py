"""Starts the tasks of one benchmark as processes of their own on loopback, and ends them.

Owns ports, processes and their clean-up; knows nothing of what is measured. The same program file runs on dtf and
on TensorFlow: `load_runtime` imports the one that is asked for.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.ports import free_ports

ROOT = Path(__file__).resolve().parent.parent.parent
RUNTIMES = {"dtf": "dtf", "tensorflow": "tensorflow.compat.v1"}


def load_runtime(name: str) -> Any:
    """Imports dtf or TensorFlow's 1.x API and returns the namespace."""
    if name == "dtf":
        sys.path.insert(0, str(ROOT / "runtime"))
    else:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
    tf = importlib.import_module(RUNTIMES[name])
    if name == "tensorflow":
        tf.disable_v2_behavior()
    tf.logging.set_verbosity(tf.logging.ERROR)
    return tf


class Tasks:
    """The tasks of one cluster, each `python -m tests.bench.task` in a process of its own.

    with Tasks("dtf", ps=2, worker=2) as tasks:
        tasks.start("ps", 0)
    """

    def __init__(self, runtime: str, **jobs: int) -> None:
        ports = iter(free_ports(sum(jobs.values())))
        self.runtime = runtime
        self.cluster = {job: [f"localhost:{next(ports)}" for _ in range(count)] for job, count in jobs.items()}
        self.processes: dict[tuple[str, int], subprocess.Popen[str]] = {}

    def __enter__(self) -> Tasks:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.communicate()

    def target(self, job: str, index: int = 0) -> str:
        """The session target of a task."""
        return f"grpc://{self.cluster[job][index]}"

    def start(self, job: str, index: int, program: str = "serve", *arguments: str) -> subprocess.Popen[str]:
        """Starts a task; a program other than `serve` is one of tests.bench.programs."""
        spec = ";".join(f"{name}={','.join(hosts)}" for name, hosts in self.cluster.items())
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.task", self.runtime, spec, job, str(index), program, *arguments],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.processes[job, index] = process
        return process

    def serve_forked(self, job: str) -> None:
        """Starts the servers of a whole job of dtf's by one command, which forks them; see `dtf.serve`."""
        spec = ",".join(f"{name}|{';'.join(hosts)}" for name, hosts in self.cluster.items())
        ids = f"0-{len(self.cluster[job]) - 1}"
        self.processes[job, 0] = subprocess.Popen(
            [sys.executable, "-m", "dtf.serve", "--cluster_spec", spec, "--job_name", job, "--task_id", ids],
            env={**os.environ, "PYTHONPATH": str(ROOT / "runtime")},
            stdout=subprocess.PIPE,
            text=True,
        )

    def serve(self, jobs: Sequence[str]) -> None:
        """Starts the servers of whole jobs and waits until they listen."""
        for job in jobs:
            for index in range(len(self.cluster[job])):
                self.start(job, index)
        for job in jobs:
            for address in self.cluster[job]:
                wait_until_listening(address)


def wait_until_listening(address: str, timeout_s: float = 60.0) -> None:
    """Returns when something accepts connections at `address`.

    Raises:
      TimeoutError: nothing does within `timeout_s`.
    """
    host, port = address.split(":")
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"nothing listens at {address} after {timeout_s} s: {error}") from error
            time.sleep(0.005)
