"""Workers and parameter servers that are killed while a work queue hands out records: each counts exactly once."""

from __future__ import annotations

import signal
import threading

import numpy as np

import dtf as tf
from tests.durability.forked import Forked
from tests.durability.servers import Servers

__all__ = ["ElasticWorkers", "build", "counted"]

_RECORDS, _SHARD, _BATCH = 600, 40, 10

_PROGRAM = """
import numpy as np
import dtf as tf
from tests.durability.elastic_kills import build
cluster, task, epochs, places = arguments
config = tf.ConfigProto(experimental=tf.ConfigProto.Experimental(durability_places=places))
server = tf.train.Server(cluster, "worker", task, config=config)
queue, numbers, train, _ = build(task, epochs)
config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{task}"])
with tf.train.MonitoredTrainingSession(
    server.target, task == 0, config=config, log_step_count_steps=None
) as session:
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
    """Worker processes, each with a thread that waits for its end. `kill(task)` kills one, which starts again.

    Attributes:
      kills: how many were killed.
      failed: exit codes of those that ended by themselves, 0 left out.
    """

    def __init__(self, servers: Servers, epochs: int) -> None:
        self.kills = 0
        self.failed: list[int] = []
        self._servers = servers
        self._epochs = epochs
        tasks = range(len(servers.cluster["worker"]))
        self._places = [Forked(_PROGRAM) for _ in tasks]
        self._wanted = [True for _ in tasks]
        self._threads = [threading.Thread(target=self._run, args=(task,)) for task in tasks]
        for thread in self._threads:
            thread.start()

    def kill(self, task: int) -> None:
        """Kills a worker if it still works."""
        self._places[task].signal()

    def wait(self) -> None:
        """Returns when all workers have ended: all records are confirmed."""
        for thread in self._threads:
            thread.join()

    def stop(self) -> None:
        """Ends all."""
        for task, place in enumerate(self._places):
            self._wanted[task] = False
            place.signal()
        self.wait()
        for place in self._places:
            place.close()

    def _run(self, task: int) -> None:
        place = self._places[task]
        while self._wanted[task]:
            place.start([self._servers.cluster, task, self._epochs, getattr(self._servers, "text", "")])
            code = place.wait()
            if code != -signal.SIGKILL:
                self.failed += [code] if code else []
                return
            self.kills += 1


def counted(servers: Servers, epochs: int) -> list[str]:
    """What differs from each record counted once an epoch, in words."""
    with tf.Graph().as_default():
        _, _, _, results = build(0, epochs)
        with tf.Session(f"grpc://{servers.address_of(0)}") as session:
            counts, total, step = session.run(results)
    wrong = []
    if not (counts == epochs).all():
        wrong.append(f"records counted {np.unique(counts)} times, not {epochs}")
    if total != epochs * _RECORDS * (_RECORDS - 1) // 2:
        wrong.append(f"the sum is {total}")
    if step != epochs * _RECORDS // _BATCH:
        wrong.append(f"{step} steps, not {epochs * _RECORDS // _BATCH}")
    return wrong
