"""Staleness of asynchronous updates: how many of others came between a worker's pull and its push."""

from __future__ import annotations

import threading

import pytest

import dtf as tf
from dtf.testing import LocalCluster


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster({"ps": 1, "worker": 2}) as made:
        yield made


class Worker:
    """A worker whose gradient is not ready before something is in the line of the ps, if it `waits`."""

    def __init__(self, cluster, index, waits=False, **options):
        self.cluster, self.index = cluster, index
        self.graph = tf.Graph()
        setter = tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{index}", cluster=cluster.cluster_spec
        )
        with self.graph.as_default(), tf.device(setter):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
            with tf.device("/job:ps/task:0"):
                line = tf.FIFOQueue(10, [tf.float32], [[]], shared_name="line")
            self.begun = tf.py_func(self._begin, [tf.identity(v)], tf.float32)
            with tf.control_dependencies([self.begun]):
                factor = line.dequeue() if waits else tf.constant(1.0)
            self.has_begun = threading.Event()
            self.train_op = tf.train.GradientDescentOptimizer(0.1).minimize(v * factor, step)
            self.go_on = line.enqueue(1.0)
            self.reset = tf.group(tf.global_variables_initializer())
            self.staleness = tf.train.staleness(self.train_op)
            self.hook = tf.train.StalenessHook(self.train_op, **options)

    def _begin(self, value):
        self.has_begun.set()
        return value

    def session(self):
        return tf.Session(self.cluster.target("worker", self.index), graph=self.graph)


def test_updates_of_others_between_pull_and_push_are_counted(cluster):
    slow, fast = Worker(cluster, 0, waits=True), Worker(cluster, 1)
    with slow.session() as slowly, fast.session() as quickly:
        quickly.run(fast.reset)
        assert quickly.run(fast.staleness) == 0
        found = []
        thread = threading.Thread(target=lambda: found.append(slowly.run(slow.staleness)))
        thread.start()
        assert slow.has_begun.wait(20)
        assert [quickly.run(fast.staleness) for _ in range(3)] == [0, 0, 0]
        quickly.run(fast.go_on)
        thread.join(20)
        assert found == [3]


@pytest.mark.parametrize("use_resource", [False, True])
def test_one_worker_alone_is_never_stale(use_resource):
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=use_resource):
        tf.train.get_or_create_global_step()
        v = tf.get_variable("v", initializer=4.0)
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(v * v, tf.train.get_global_step())
        stale = tf.train.staleness(train_op)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert [session.run(stale) for _ in range(3)] == [0, 0, 0]
            assert session.run(tf.train.get_global_step()) == 3


def test_the_hook_writes_mean_and_maximum_to_the_workers_own_event_file(cluster, tmp_path):
    slow = Worker(cluster, 0, waits=True, every_n_steps=2, output_dir=str(tmp_path / "worker-0"))
    fast = Worker(cluster, 1)

    def train():
        with slow.graph.as_default():
            hooks = [slow.hook, tf.train.StopAtStepHook(num_steps=1000)]
            with tf.train.MonitoredTrainingSession(
                cluster.target("worker", 0), hooks=hooks, log_step_count_steps=None
            ) as session:
                session.run(tf.train.get_global_step())  # not a step of training
                for _ in range(3):
                    session.run([slow.train_op])

    thread = threading.Thread(target=train)
    thread.start()
    assert slow.has_begun.wait(20)
    with fast.session() as session:
        for updates in (0, 4, 1):
            slow.has_begun.wait(20)
            slow.has_begun.clear()
            for _ in range(updates):
                session.run(fast.train_op)
            session.run(fast.go_on)
    thread.join(20)
    assert not thread.is_alive()
    (file,) = (tmp_path / "worker-0").iterdir()
    seen = [
        (value.tag, value.simple_value, event.step)
        for event in tf.train.summary_iterator(str(file))
        for value in event.summary.value
    ]
    assert seen == [
        ("staleness", 2.0, 6), ("staleness_max", 4.0, 6), ("staleness", 1.0, 8), ("staleness_max", 1.0, 8)
    ]  # fmt: skip


def test_without_a_global_step_or_an_interval_it_says_so():
    with tf.Graph().as_default():
        op = tf.no_op()
        with pytest.raises(ValueError, match="needs a global step"):
            tf.train.staleness(op)
        with pytest.raises(ValueError, match="needs a global step"):
            tf.train.StalenessHook(op).begin()
        with pytest.raises(ValueError, match="every_n_steps must be positive, but was 0"):
            tf.train.StalenessHook(op, every_n_steps=0)
