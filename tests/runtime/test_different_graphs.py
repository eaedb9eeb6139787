"""Workers whose graph is not the chief's: each is told what differs, and nobody waits for ever."""

from __future__ import annotations

import contextlib
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.testing import LocalCluster


@pytest.fixture
def cluster():
    with LocalCluster({"ps": 2, "worker": 2}) as made:
        yield made


class Task:
    """One worker's graph, of which a test says how it differs."""

    def __init__(
        self, cluster, index, shape=(3, 1), dtype=tf.float32, extra=False, use_resource=False, synchronous=False
    ):
        self.target, self.is_chief, self.graph, self.hooks = cluster.target("worker", index), index == 0, tf.Graph(), []
        worker = f"/job:worker/task:{index}"
        setter = tf.train.replica_device_setter(worker_device=worker, cluster=cluster.cluster_spec)
        with self.graph.as_default(), tf.device(setter), tf.variable_scope("model", use_resource=use_resource):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", shape, dtype, initializer=tf.ones_initializer())
            loss = tf.reduce_mean(tf.square(tf.matmul(tf.ones([2, shape[0]], dtype), w)))
            if extra:
                loss += tf.reduce_sum(tf.get_variable("extra", [2], dtype, initializer=tf.ones_initializer()))
            optimizer = tf.train.GradientDescentOptimizer(0.01)
            if synchronous:
                optimizer = tf.train.SyncReplicasOptimizer(optimizer, 2, 2)
            self.train_op = optimizer.minimize(loss, step)
            if synchronous:
                self.hooks = [optimizer.make_session_run_hook(self.is_chief, num_tokens=0)]

    def session(self):
        return tf.train.MonitoredTrainingSession(
            self.target, self.is_chief, hooks=self.hooks, log_step_count_steps=None, stop_grace_period_secs=1
        )

    def train(self, go_on, begun=None):
        with self.graph.as_default(), self.session() as session:
            while go_on():
                if begun is not None:
                    begun.set()
                session.run(self.train_op)


def error_of_worker(chief, worker, chief_waits=False):
    """What the worker gets that comes while the chief trains, or waits for it."""
    begun, over = threading.Event(), threading.Event()
    train = lambda: chief.train(lambda: not over.is_set(), begun)  # noqa: E731
    thread = threading.Thread(target=_quietly, args=(train,), daemon=True)
    thread.start()
    assert begun.wait(30)
    try:
        with pytest.raises(tf.errors.OpError) as caught:
            worker.train(lambda: True)
    finally:
        over.set()
    if not chief_waits:
        thread.join(30)
        assert not thread.is_alive(), "the chief must not suffer"
    return caught.value


def _quietly(run):
    with contextlib.suppress(tf.errors.OpError):  # the cluster ends while it waits
        run()


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_variable_of_another_shape_is_refused_with_both_shapes(cluster, use_resource):
    chief = Task(cluster, 0, use_resource=use_resource)
    error = error_of_worker(chief, Task(cluster, 1, shape=(4, 1), use_resource=use_resource))
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert r"Variable model/w was made with shape [3,1] and is wanted with [4,1] by node" in str(error)
    assert "the graphs that share it differ" in str(error)


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_a_variable_of_another_type_is_refused_with_both_types(cluster, use_resource):
    chief = Task(cluster, 0, use_resource=use_resource)
    error = error_of_worker(chief, Task(cluster, 1, dtype=tf.float64, use_resource=use_resource))
    assert isinstance(error, tf.errors.InvalidArgumentError)
    assert "float32" in str(error) and "float64" in str(error)


def test_variables_that_the_chief_does_not_have_are_named_instead_of_waited_for(cluster):
    error = error_of_worker(Task(cluster, 0), Task(cluster, 1, extra=True))
    assert isinstance(error, tf.errors.FailedPreconditionError)
    assert "Variables not initialized: model/extra. The chief trains without them" in str(error)
    assert "All tasks must build the same graph." in str(error)


def test_a_synchronous_worker_without_a_variable_of_the_chief_does_not_keep_all_waiting(cluster):
    chief, worker = Task(cluster, 0, extra=True, synchronous=True), Task(cluster, 1, synchronous=True)
    error = error_of_worker(chief, worker, chief_waits=True)
    assert isinstance(error, tf.errors.FailedPreconditionError)
    assert "Only the worker has nothing; only the chief has model/extra:0 (2,) dense" in str(error)


def test_a_shape_that_was_changed_on_purpose_is_no_difference(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker", 0)) as session:
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [2], initializer=tf.zeros_initializer())
        session.run(v.initializer)
        session.run(tf.assign(v, tf.ones([3]), validate_shape=False))
        assert session.run(v).tolist() == [1, 1, 1]
    with tf.Graph().as_default(), tf.Session(cluster.target("worker", 1)) as session:
        with tf.device("/job:ps/task:0"):
            same = tf.get_variable("v", [3])
        assert np.array_equal(session.run(same), [1, 1, 1])
