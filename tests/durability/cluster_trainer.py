"""A task of the cluster of `cluster_kills`: what each step has changed is known from the number of steps.

A step changes a dense and a sparse variable, Adam's slots, a table and a queue, all at the ps, without waiting for
another task. So a step that a killed worker had sent is there as a whole or not at all. Each
worker has a count of its own at the ps, and a file with the steps that were confirmed to it.
"""

from __future__ import annotations

import mmap
import os
import struct
import time
from pathlib import Path

import numpy as np

import dtf as tf

__all__ = ["Confirmed", "build"]

SIZE = 5000
ROWS = [7, 9, 7]


class Confirmed:
    """A file of two numbers that outlive SIGKILL: steps that were confirmed, and starts of the process."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(16))
        with open(path, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 16)

    @property
    def steps(self) -> int:
        """How many steps were confirmed."""
        return int(struct.unpack_from("<q", self._memory, 0)[0])

    @property
    def starts(self) -> int:
        """How many processes have begun."""
        return int(struct.unpack_from("<q", self._memory, 8)[0])

    def confirm(self) -> None:
        """Another step has returned."""
        struct.pack_into("<q", self._memory, 0, self.steps + 1)

    def start(self) -> None:
        """Another process begins."""
        struct.pack_into("<q", self._memory, 8, self.starts + 1)


def build(workers: int, mine: int, device: str | None = "/job:ps/task:0") -> tuple[tf.Operation, dict[str, tf.Tensor]]:
    """The step of worker `mine`, and all state by name."""
    with tf.device(device):
        step = tf.train.get_or_create_global_step()
        counts = [
            tf.get_variable(f"count{each}", [], tf.int64, tf.zeros_initializer(), trainable=False)
            for each in range(workers)
        ]
        dense = tf.get_variable("dense", [SIZE], initializer=tf.zeros_initializer())
        table = tf.get_variable("table", [1000, 4], initializer=tf.zeros_initializer(), use_resource=True)
        words = tf.contrib.lookup.MutableHashTable(tf.int64, tf.int64, 0, shared_name="words")
        queue = tf.FIFOQueue(4, tf.int64, shapes=[[]], shared_name="numbers")
        number = step.assign_add(1)
        rows = tf.nn.embedding_lookup(table, tf.constant(ROWS))
        loss = tf.reduce_sum(dense) * 0.5 + tf.reduce_sum(rows)
        adam = tf.train.AdamOptimizer(0.01)
        changes = [
            adam.minimize(loss), counts[mine].assign_add(1),
            words.insert(tf.reshape(number % 5, [1]), tf.reshape(number, [1])),
        ]  # fmt: skip
        # One element is in the queue between steps: the number of the last one.
        first = queue.enqueue(tf.constant(0, tf.int64), name="first")
        with tf.control_dependencies([queue.enqueue(number)]):
            changes.append(queue.dequeue())
        state = {each.op.name: each for each in tf.global_variables()}
        state["words"] = words.lookup(tf.range(5, dtype=tf.int64))
        state["size"] = queue.size()
    return tf.group(*changes), {**state, "first": first}


def _work(server: tf.train.Server, index: int, workers: int) -> None:
    train, state = build(workers, index)
    first = state.pop("first")
    confirmed = Confirmed(Path(f"confirmed-{index}"))
    confirmed.start()
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, log_step_count_steps=None) as session:
        # Before any step of a fresh session of the chief, the queue is empty or has the one element of the training.
        while int(session.run(state["size"])) == 0 and index == 0:
            session.run(first)
        while not os.path.exists("done"):
            session.run(train)
            confirmed.confirm()
            time.sleep(0.005)
        if index == 0:
            while not os.path.exists("read"):
                time.sleep(0.05)
            np.savez("found.npz", **session.run(state))
            os.replace("found.npz", "found")
    Path(f"over-{index}").touch()


def main() -> None:
    """The task that the environment names."""
    import json

    cluster = tf.train.ClusterSpec(json.loads(os.environ["CLUSTER_SPEC"]))
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    server = tf.train.Server(cluster, job, index)
    if job == "ps":
        server.join()
    _work(server, index, cluster.num_tasks("worker"))


if __name__ == "__main__":
    main()
