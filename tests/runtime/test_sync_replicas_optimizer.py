"""Synchronous replicas: as good as one worker with the mean gradient, from the first step to a clean end."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import dtf as tf
from dtf.build.apply import apply_op
from dtf.testing import LocalCluster

STEPS = 6


def numbers(seed, *shape):
    return np.random.RandomState(seed).uniform(-1, 1, shape).astype(np.float32)


def model(use_resource):
    """A dense and an embedded variable; the loss for placeholders x, y and ids."""
    x = tf.placeholder(tf.float32, [None, 3], name="x")
    y = tf.placeholder(tf.float32, [None, 1], name="y")
    ids = tf.placeholder(tf.int64, [None], name="ids")
    with tf.variable_scope("model", use_resource=use_resource):
        w = tf.get_variable("w", initializer=tf.constant(numbers(1, 3, 1)))
        table = tf.get_variable("table", initializer=tf.constant(numbers(2, 6, 1)))
    out = tf.matmul(x, w) + tf.nn.embedding_lookup(table, ids)
    return tf.reduce_mean(tf.square(out - y)), {"x": x, "y": y, "ids": ids}


def data(seed):
    return {"x": numbers(seed, 4, 3), "y": numbers(seed + 50, 4, 1), "ids": [0, 2, 3, 5]}


def joined(worker_data):
    """The data of all workers as one batch: its mean gradient is the mean of theirs."""
    return {name: np.concatenate([each[name] for each in worker_data]) for name in worker_data[0]}


def alone(batch, use_resource, steps=STEPS):
    """The losses of one worker with an ordinary optimizer."""
    with tf.Graph().as_default(), tf.Session() as session:
        loss, holders = model(use_resource)
        train = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)
        session.run(tf.global_variables_initializer())
        feed = {holders[name]: value for name, value in batch.items()}
        losses = []
        for _ in range(steps):
            losses.append(session.run(loss, feed))
            session.run(train, feed)
        return losses


class Replica:
    """One worker's graph at a cluster, its hooks, and what it saw."""

    def __init__(self, cluster, index, use_resource=False, workers=2, **options):
        self.target = cluster.target("worker", index)
        self.is_chief = index == 0
        self.graph = tf.Graph()
        self.losses = []
        self.tokens = []
        setter = tf.train.replica_device_setter(
            worker_device=f"/job:worker/task:{index}", cluster=cluster.cluster_spec
        )
        with self.graph.as_default(), tf.device(setter):
            self.step = tf.train.get_or_create_global_step()
            self.loss, self.holders = model(use_resource)
            self.optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.MomentumOptimizer(0.1, 0.9), workers, workers, **options
            )
            self.train = self.optimizer.minimize(self.loss, self.step)

    def session(self, num_tokens=-1, hooks=(), **options):
        hook = self.optimizer.make_session_run_hook(self.is_chief, num_tokens)
        return tf.train.MonitoredTrainingSession(
            self.target, self.is_chief, hooks=[hook, *hooks], log_step_count_steps=None, **options
        )

    def feed(self, batch):
        return {self.holders[name]: value for name, value in batch.items()}

    def run(self, batch, last_step, barrier=None, num_tokens=-1, **options):
        with self.graph.as_default():
            stop = tf.train.StopAtStepHook(last_step=last_step)
            with self.session(num_tokens, [stop], **options) as session:
                while not session.should_stop():
                    if barrier is not None:
                        barrier.wait(30)
                    loss, token = session.run([self.loss, self.train], self.feed(batch))
                    self.losses.append(float(loss))
                    self.tokens.append(int(token))


def together(*runs):
    """Runs functions in threads; the first error of one is raised."""
    failures = []

    def guarded(run):
        try:
            run()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(run,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a worker waits forever"
    if failures:
        raise failures[0]


@pytest.fixture
def cluster():
    with LocalCluster({"ps": 2, "worker": 2}) as made:
        yield made


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
def test_two_workers_train_as_one_with_both_batches(cluster, use_resource):
    batches = [data(3), data(4)]
    replicas = [Replica(cluster, index, use_resource) for index in range(2)]
    # In step with each other and with no tokens to start with, each gives one gradient to each update.
    barrier = threading.Barrier(2)
    together(
        *(
            lambda replica=replica, batch=batch: replica.run(batch, STEPS, barrier, num_tokens=0)
            for replica, batch in zip(replicas, batches, strict=True)
        )
    )
    mean = np.mean([replica.losses for replica in replicas], 0)
    # Both batches have the same rows of the table: the mean over those that have a row is the mean over all.
    assert [replica.tokens for replica in replicas] == [list(range(1, STEPS + 1))] * 2
    np.testing.assert_allclose(mean, alone(joined(batches), use_resource), rtol=1e-5)


def test_workers_start_and_end_by_themselves_with_the_tokens_of_the_start(cluster):
    replicas = [Replica(cluster, index) for index in range(2)]
    together(*(lambda replica=replica: replica.run(data(3), 20) for replica in replicas))
    for replica in replicas:
        assert replica.losses[-1] < replica.losses[0] / 2
        assert replica.tokens == sorted(replica.tokens)


def test_a_worker_that_leaves_gives_its_token_back_and_the_chief_trains_on(cluster):
    chief, worker = (Replica(cluster, index) for index in range(2))
    together(lambda: chief.run(data(3), 12), lambda: worker.run(data(3), 3))
    assert chief.tokens[-1] >= 11


def test_the_chiefs_end_ends_a_worker_that_waits(cluster):
    chief, worker = (Replica(cluster, index) for index in range(2))
    together(lambda: chief.run(data(3), 4), lambda: worker.run(data(3), 1000))
    assert worker.tokens[-1] <= 4


def test_a_worker_that_was_killed_and_one_that_came_instead_do_not_stop_the_others(cluster):
    chief, first, second = Replica(cluster, 0), Replica(cluster, 1), Replica(cluster, 1)
    gone = threading.Event()

    def killed():
        with first.graph.as_default():
            session = first.session()
            session.run(first.train, first.feed(data(3)))
            # Without the hook's end: its token is lost with it.
            session._creator.abandon()
        gone.set()

    def replacement():
        gone.wait(30)
        second.run(data(3), 15)

    together(lambda: chief.run(data(3), 15), killed, replacement)
    assert chief.losses[-1] < chief.losses[0] / 2


def test_a_chief_that_comes_back_takes_over_from_the_checkpoint(cluster, tmp_path):
    first, second, worker = Replica(cluster, 0), Replica(cluster, 0), Replica(cluster, 1)
    gone = threading.Event()

    def killed():
        with first.graph.as_default():
            session = first.session(checkpoint_dir=str(tmp_path), save_checkpoint_steps=1, save_summaries_steps=None)
            for _ in range(6):
                session.run(first.train, first.feed(data(3)))
            session._creator.abandon()
        gone.set()

    def replacement():
        gone.wait(30)
        second.run(data(3), 15, checkpoint_dir=str(tmp_path), save_summaries_steps=None)

    together(killed, replacement, lambda: worker.run(data(3), 15))
    assert second.losses[-1] < worker.losses[0] / 2
    assert int(tf.train.latest_checkpoint(str(tmp_path)).rpartition("-")[2]) >= 15


def test_the_averages_move_after_each_update(cluster):
    with tf.Graph().as_default():
        setter = tf.train.replica_device_setter(
            cluster=cluster.cluster_spec, worker_device="/job:worker/task:0"
        )
        with tf.device(setter):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
            averages = tf.train.ExponentialMovingAverage(0.5)
            optimizer = tf.train.SyncReplicasOptimizer(
                tf.train.GradientDescentOptimizer(1.0), 1, variable_averages=averages, variables_to_average=[v]
            )
            train = optimizer.minimize(v * 2.0, step)
        hook = optimizer.make_session_run_hook(True, num_tokens=0)
        with tf.train.MonitoredTrainingSession(
            cluster.target("worker"), hooks=[hook, tf.train.StopAtStepHook(2)], log_step_count_steps=None
        ) as session:
            session.run(train)
            # The chief's thread makes the next updates only when gradients are there.
            assert session.run_step_fn(lambda step_context: step_context.session.run(v)) == 2.0
            moved = session.run_step_fn(lambda step_context: _until(step_context.session, averages.average(v), 3.0))
            assert moved == 3.0


def _until(session, tensor, wanted):
    """The value of a tensor, once it is that or for long enough not."""
    for _ in range(200):
        value = session.run(tensor)
        if value == wanted:
            break
    return value


def test_a_stale_gradient_is_dropped(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target("worker")) as session:
        with tf.device("/job:ps/task:0"):
            step = tf.train.get_or_create_global_step()
            v = tf.get_variable("v", initializer=4.0)
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), 1)
        loss = v * tf.placeholder_with_default(1.0, [])
        train = optimizer.minimize(loss, step)
        hand_in = tf.get_default_graph().get_operation_by_name("sync_replicas/ResourceAccumulatorApplyGradient")
        update = optimizer.get_chief_queue_runner().enqueue_ops[0]
        session.run(tf.global_variables_initializer())
        session.run(tf.local_variables_initializer())
        session.run(optimizer.chief_init_op)
        session.run(hand_in)
        session.run(update)
        # The local step is 0 still, the global step 1.
        session.run(hand_in)
        handle = tf.get_default_graph().get_tensor_by_name("sync_replicas/conditional_accumulator:0")
        assert session.run(apply_op("ResourceAccumulatorNumAccumulated", handle=handle)) == 0
        assert session.run(train) == 1
        assert session.run([v, step]) == [3.0, 1]


def test_the_shared_names_are_tensorflows():
    with tf.Graph().as_default() as graph:
        with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device="/job:worker/task:0")):
            loss, _ = model(True)
            step = tf.train.get_or_create_global_step()
            tf.train.SyncReplicasOptimizer(tf.train.AdamOptimizer(), 2, 3).minimize(loss, step)
        shared = {
            node.op: (node.attr["shared_name"].s.decode(), node.device)
            for node in graph.as_graph_def().node
            if node.op in ("ResourceConditionalAccumulator", "SparseConditionalAccumulator", "FIFOQueueV2")
        }
        device = graph.get_tensor_by_name("sync_rep_local_step:0").device
    assert shared == {
        "ResourceConditionalAccumulator": ("model/w:0/grad_accum", "/job:ps/task:0"),
        "SparseConditionalAccumulator": ("model/table:0/grad_accum", "/job:ps/task:1"),
        "FIFOQueueV2": ("sync_token_q", "/job:ps/task:0"),
    }
    assert device == "/job:worker/task:0"


def built(count=2, total=None):
    v = tf.get_variable("v", initializer=tf.ones([2]))
    step = tf.train.get_or_create_global_step()
    return tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.1), count, total), v, step


def test_what_comes_too_early_or_is_missing_is_refused():
    with tf.Graph().as_default():
        optimizer, v, step = built()
        with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
            optimizer.get_chief_queue_runner()
        with pytest.raises(ValueError, match=r"after apply_gradients\(\)"):
            optimizer.get_init_tokens_op()
        with pytest.raises(ValueError, match="before using the hook"):
            optimizer.make_session_run_hook(False).begin()
        with pytest.raises(ValueError, match="at least one variable"):
            optimizer.apply_gradients([], step)
        with pytest.raises(ValueError, match="Global step is required"):
            optimizer.apply_gradients([(tf.ones([2]), v)])
        with pytest.raises(ValueError, match="neither a Tensor nor IndexedSlices"):
            optimizer.apply_gradients([("gradient", v)], step)


def test_too_few_tokens_for_the_first_update_are_refused():
    with tf.Graph().as_default():
        optimizer, v, step = built(5, 2)
        optimizer.minimize(tf.reduce_sum(v), step)
        with pytest.raises(ValueError, match="Too few tokens to finish the first step: 2"):
            optimizer.get_init_tokens_op(2)
        assert optimizer.get_init_tokens_op(3).type == "QueueEnqueueManyV2"
