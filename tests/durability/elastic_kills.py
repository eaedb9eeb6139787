"""Workers and parameter servers that are killed while a work queue hands out records: each counts exactly once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

import dtf as tf
from tests.durability.servers import Servers

__all__ = ["ElasticWorkers", "build", "counted"]

_RECORDS, _SHARD, _BATCH = 600, 40, 10

_PROGRAM = """
import json, sys, time
import numpy as np
import dtf as tf
from tests.durability.elastic_kills import build
cluster, task, epochs = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
server = tf.train.Server(cluster, "worker", task)
queue, numbers, train, _ = build(task, epochs)
config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"])
with tf.train.MonitoredTrainingSession(
    server.target, task == 0, config=config, log_step_count_steps=None
) as session:
    print("ready", flush=True)
    for lease in queue.leases(session, f"worker:{task}"):
        begin, end = map(int, lease.work.split(":"))
        with lease:
            for at in range(begin + lease.position, end, 10):
                batch = np.arange(at, min(at + 10, end))
                session.run(train, {numbers: batch, **lease.feed(int(batch[-1]) + 1 - begin)})
            lease.finish()
"""


def build(task: int, epochs: int):
    """The queue, the placeholder of a step's records, the train op, and what was counted."""
    with tf.device(tf.train.replica_device_setter(1, worker_device=f"/job:worker/task:{task}")):
        step = tf.train.get_or_create_global_step()
        queue = tf.train.WorkQueue(tf.train.WorkQueue.ranges(_RECORDS, _SHARD), epochs, lease_s=3.0)
        numbers = tf.placeholder(tf.int64, [None])
        counts = tf.get_variable("counts", [_RECORDS], tf.int64, tf.zeros_initializer(), trainable=False)
        total = tf.get_variable("total", [], tf.int64, tf.zeros_initializer(), trainable=False)
        add = tf.scatter_add(counts, numbers, tf.ones_like(numbers))
        updates = tf.group(add.op, total.assign_add(tf.reduce_sum(numbers)).op, step.assign_add(1).op)
        return queue, numbers, queue.confirming(updates), (counts, total, step)


class ElasticWorkers:
    """Worker processes. `kill(task)` kills one and starts it again.

    Attributes:
      kills: how many were killed.
      failed: exit codes of those that ended by themselves, 0 left out.
    """

    def __init__(self, servers: Servers, epochs: int) -> None:
        self.kills = 0
        self.failed: list[int] = []
        self._servers = servers
        self._epochs = epochs
        self._lock = threading.Lock()
        self._processes = [self._start(task) for task in range(len(servers.cluster["worker"]))]

    def kill(self, task: int) -> None:
        """Kills a worker that still works, and starts it again."""
        with self._lock:
            process = self._processes[task]
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
                self.kills += 1
                self._processes[task] = self._start(task)

    def wait(self, timeout_s: float) -> None:
        """Returns when all workers have ended: all records are confirmed. Raises TimeoutError."""
        until = time.monotonic() + timeout_s
        while True:
            with self._lock:
                codes = [process.poll() for process in self._processes]
            if None not in codes:
                self.failed += [code for code in codes if code]
                return
            if time.monotonic() > until:
                raise TimeoutError(f"workers still run: {codes}")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ends all."""
        with self._lock:
            for process in self._processes:
                process.kill()
                process.wait()

    @property
    def is_over(self) -> bool:
        """Whether all have ended."""
        with self._lock:
            return all(process.poll() is not None for process in self._processes)

    def _start(self, task: int) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("DTF_DUR")}
        environment["OPENBLAS_NUM_THREADS"] = "1"
        environment["PYTHONPATH"] = os.pathsep.join([os.getcwd(), environment.get("PYTHONPATH", "")])
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(self._servers.cluster), str(task), str(self._epochs)],
            env=environment,
            stdout=subprocess.DEVNULL,
        )


def counted(servers: Servers, epochs: int) -> list[str]:
    """What differs from each record counted once an epoch, in words."""
    with tf.Graph().as_default():
        _, _, _, results = build(0, epochs)
        with tf.Session(f"grpc://{servers.cluster['ps'][0]}") as session:
            counts, total, step = session.run(results)
    wrong = []
    if not (counts == epochs).all():
        wrong.append(f"records counted {np.unique(counts)} times, not {epochs}")
    if total != epochs * _RECORDS * (_RECORDS - 1) // 2:
        wrong.append(f"the sum is {total}")
    if step != epochs * _RECORDS // _BATCH:
        wrong.append(f"{step} steps, not {epochs * _RECORDS // _BATCH}")
    return wrong
