"""Durable parameter servers as processes of this machine, which tests kill and start again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.ports import free_ports

__all__ = ["Servers"]

_PROGRAM = """
import json, sys
import dtf as tf
cluster, task, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
experimental = tf.ConfigProto.Experimental(durability="process", durability_folder=folder)
if folder == "none":
    experimental.Clear()
server = tf.train.Server(cluster, "ps", task, config=tf.ConfigProto(experimental=experimental))
print("ready", flush=True)
server.join()
"""


class Servers:
    """The ps of a cluster; the worker is a server of the caller's process. As a context manager it ends them.

    Attributes:
      cluster: job -> addresses.
      kills: how many processes were killed.
    """

    def __init__(self, folder: Path, count: int = 1, workers: int = 1, is_durable: bool = True) -> None:
        ports = free_ports(count + workers)
        self.cluster = {
            "ps": [f"127.0.0.1:{port}" for port in ports[:count]],
            "worker": [f"127.0.0.1:{port}" for port in ports[count:]],
        }
        self.kills = 0
        self._folder = folder
        self._is_durable = is_durable
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * count

    def start(self, task: int) -> None:
        """Starts a ps and waits until it serves."""
        folder = str(self._folder / f"ps-{task}") if self._is_durable else "none"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DTF_DUR")}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(self.cluster), str(task), folder],
            stdout=subprocess.PIPE,
            env=environment,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        self._processes[task] = process

    def kill(self, task: int) -> None:
        """Kills a ps with SIGKILL."""
        process = self._processes[task]
        assert process is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        self._processes[task] = None
        self.kills += 1

    def restart(self, task: int) -> None:
        """Kills a ps and starts it again."""
        self.kill(task)
        self.start(task)

    def __enter__(self) -> Servers:
        starting = [threading.Thread(target=self.start, args=(task,)) for task in range(len(self._processes))]
        for thread in starting:
            thread.start()
        for thread in starting:
            thread.join()
        return self

    def __exit__(self, *_: object) -> None:
        for task, process in enumerate(self._processes):
            if process is not None:
                self.kill(task)
