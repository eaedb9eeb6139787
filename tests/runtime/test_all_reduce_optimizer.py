"""AllReduceOptimizer: workers without parameter servers that train as one, and go on when one of them is lost."""

from __future__ import annotations

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError

import numpy as np
import pytest

import dtf as tf
from dtf import train
from dtf.server import Server
from dtf.train.all_reduce_optimizer import _packs
from tests.ports import free_ports

pytestmark = pytest.mark.timeout(90)
STEPS, BATCH = 12, 12
RANDOM = np.random.RandomState(7)
IMAGES = RANDOM.normal(size=(STEPS, BATCH, 6)).astype(np.float32)
LABELS = RANDOM.randint(0, 3, (STEPS, BATCH))


@contextlib.contextmanager
def servers(count):
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(count)]}
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Server(cluster, "worker", task)) for task in range(count)], cluster


def model(optimizer, task, place=None):
    """(loss, train op, feeds(step, worker, workers)); on the worker, or where `place` puts it."""
    with tf.device(place or f"/job:worker/task:{task}"):
        images, labels = tf.placeholder(tf.float32, [None, 6]), tf.placeholder(tf.int64, [None])
        # Other initial values at each worker: the chief's must win.
        random = np.random.RandomState(task)
        net = images
        for number, (rows, columns) in enumerate([(6, 5), (5, 3)]):
            w = tf.get_variable(f"w{number}", initializer=random.normal(size=(rows, columns)).astype(np.float32))
            b = tf.get_variable(f"b{number}", [columns], initializer=tf.zeros_initializer())
            net = tf.tanh(tf.matmul(net, w) + b)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=net))
        train_op = optimizer.minimize(loss, global_step=train.get_or_create_global_step())

    def feeds(step, worker, workers):
        rows = slice(worker, None, workers)
        return {images: IMAGES[step % STEPS][rows], labels: LABELS[step % STEPS][rows]}

    return loss, train_op, feeds


def train_at(
    server, task, count, folder=None, make=train.AdamOptimizer, last_step=STEPS, on_step=None, on_end=None, **arguments
):
    """The losses by step, and the variables' values at the end. `on_end()` is called after the last checkpoint."""
    with tf.Graph().as_default():
        optimizer = train.AllReduceOptimizer(make(0.05), count, **arguments)
        loss, train_op, feeds = model(optimizer, task)
        step_tensor = train.get_global_step()
        final = train.FinalOpsHook(tf.trainable_variables())
        hook = optimizer.make_session_run_hook(task == 0, last_step=last_step)
        hooks = [train.StopAtStepHook(last_step=last_step), AtEnd(on_end), hook, final]
        losses, step = {}, 0
        with train.MonitoredTrainingSession(
            server.target, task == 0, folder, hooks=hooks, save_checkpoint_steps=1000, save_summaries_steps=0,
            log_step_count_steps=None,
        ) as session:  # fmt: skip
            while not session.should_stop():
                step = int(session.run_step_fn(lambda step_context: step_context.session.run(step_tensor)))
                losses[step] = float(session.run([loss, train_op], feeds(step, task, count))[0])
                if on_step is not None:
                    on_step(task, step)
        return losses, final.final_ops_values


class AtEnd(train.SessionRunHook):
    def __init__(self, call):
        self._call = call

    def end(self, session):
        if self._call is not None:
            self._call()


def at_all(made, **arguments):
    with ThreadPoolExecutor(len(made)) as pool:
        jobs = [pool.submit(train_at, server, task, len(made), **arguments) for task, server in enumerate(made)]
        return [job.result() for job in jobs]


def alone():
    """One process on whole batches: the losses by step and the variables."""
    with tf.Graph().as_default():
        loss, train_op, feeds = model(train.AdamOptimizer(0.05), 0)
        with tf.Session(train.Server({"worker": ["127.0.0.1:0"]}, "worker", 0).target) as session:
            session.run(tf.global_variables_initializer())
            losses = {step: float(session.run([loss, train_op], feeds(step, 0, 1))[0]) for step in range(STEPS)}
            return losses, session.run(tf.trainable_variables())


@pytest.mark.parametrize("count", [2, 3])
def test_workers_train_as_one_on_the_whole_batch(count):
    wanted, values = alone()
    with servers(count) as (made, _):
        found = at_all(made)
    for step in range(STEPS):
        assert np.mean([losses[step] for losses, _ in found]) == pytest.approx(wanted[step], rel=1e-4)
    for _, theirs in found:
        for ours, value in zip(theirs, values, strict=True):
            np.testing.assert_allclose(ours, value, rtol=1e-3, atol=1e-5)
        for ours, chiefs in zip(theirs, found[0][1], strict=True):
            np.testing.assert_array_equal(ours, chiefs)


def test_synchronous_training_with_a_ps_gives_the_same_losses():
    count = 2
    with servers(count) as (made, _):
        ring = at_all(made, make=train.GradientDescentOptimizer)
    worker_addresses = [f"127.0.0.1:{port}" for port in free_ports(count)]
    cluster = {"ps": [f"127.0.0.1:{port}" for port in free_ports(1)], "worker": worker_addresses}

    def run(server, task):
        with tf.Graph().as_default():
            setter = train.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{task}")
            optimizer = train.SyncReplicasOptimizer(train.GradientDescentOptimizer(0.05), count)
            loss, train_op, feeds = model(optimizer, task, setter)
            step = train.get_global_step()
            hooks = [train.StopAtStepHook(last_step=STEPS), optimizer.make_session_run_hook(task == 0, num_tokens=0)]
            losses = {}
            with train.MonitoredTrainingSession(server.target, task == 0, hooks=hooks) as session:
                while not session.should_stop():
                    now = int(session.run_step_fn(lambda step_context: step_context.session.run(step)))
                    losses[now] = float(session.run([loss, train_op], feeds(now, task, count))[0])
            return losses

    with contextlib.ExitStack() as stack:
        stack.enter_context(Server(cluster, "ps", 0))
        workers = [stack.enter_context(Server(cluster, "worker", task)) for task in range(count)]
        with ThreadPoolExecutor(count) as pool:
            synchronous = list(pool.map(run, workers, range(count)))
    for step in range(STEPS):
        ours, theirs = (np.mean([losses[step] for losses in found]) for found in ([a for a, _ in ring], synchronous))
        assert ours == pytest.approx(theirs, rel=1e-4)


def test_gradients_are_packed_by_dtype_up_to_a_size():
    with tf.Graph().as_default():
        gradients = [tf.zeros(shape, dtype) for shape, dtype in [
            ([10], tf.float32), ([5], tf.float64), ([20], tf.float32), ([100], tf.float32), ([3], tf.float64),
        ]]  # fmt: skip
        gradients.append(tf.placeholder(tf.float32, [None]))
        assert _packs(gradients, 120) == [[0, 2], [1, 4], [3], [5]]


@pytest.mark.parametrize("bytes_per_pack", [0, 100])
def test_the_size_of_packs_changes_no_value(bytes_per_pack):
    with servers(2) as (made, _):
        few, many = at_all(made), at_all(made, bytes_per_pack=bytes_per_pack)
    for ours, theirs in zip(few[0][1], many[0][1], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_a_worker_that_is_lost_is_waited_for_and_the_chief_loses_no_step(tmp_path):
    with servers(2) as (made, cluster):
        reached = threading.Event()

        def on_step(task, step):
            if task == 1 and step == 5:
                reached.set()
                raise KeyError("this worker dies")

        with ThreadPoolExecutor(2) as pool:
            chief = pool.submit(train_at, made[0], 0, 2, str(tmp_path))
            with pytest.raises(KeyError):
                train_at(made[1], 1, 2, on_step=on_step)
            made[1].stop()
            with Server(cluster, "worker", 1) as again:
                losses, values = train_at(again, 1, 2)
            chiefs_losses, chiefs_values = chief.result()
    assert sorted(chiefs_losses) == list(range(STEPS)), "no step was made twice"
    assert min(losses) in (5, 6)
    assert (tmp_path / f"model.ckpt-{min(losses)}.index").exists(), "the chief saved what it had"
    wanted, _ = alone()
    mean = np.mean([chiefs_losses[STEPS - 1], losses[STEPS - 1]])
    assert mean == pytest.approx(wanted[STEPS - 1], rel=1e-3)
    for ours, theirs in zip(values, chiefs_values, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_chief_that_is_lost_goes_on_from_its_checkpoint(tmp_path):
    with servers(2) as (made, cluster):

        def on_step(task, step):
            if task == 0 and step == 6:
                raise KeyError("the chief dies")

        with ThreadPoolExecutor(2) as pool:
            worker = pool.submit(train_at, made[1], 1, 2)
            with pytest.raises(KeyError):
                train_at(made[0], 0, 2, str(tmp_path), on_step=on_step)
            made[0].stop()
            with Server(cluster, "worker", 0) as again:
                losses, values = train_at(again, 0, 2, str(tmp_path))
            _, workers_values = worker.result()
    assert min(losses) == 0, "the only checkpoint is that of the start"
    for ours, theirs in zip(values, workers_values, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_chief_that_returns_to_a_training_that_is_over_needs_nobody(tmp_path):
    with servers(2) as (made, _), ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(train_at, server, task, 2, str(tmp_path)) for task, server in enumerate(made)]
        _, values = jobs[0].result()
        jobs[1].result()
        made[1].stop()
        losses, again = train_at(made[0], 0, 2, str(tmp_path))
    assert not losses, "there is no step to make"
    for ours, theirs in zip(values, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_others_stay_until_the_chief_has_saved(tmp_path):
    with servers(2) as (made, _), ThreadPoolExecutor(2) as pool:
        worker = pool.submit(train_at, made[1], 1, 2)

        def on_end():
            assert (tmp_path / f"model.ckpt-{STEPS}.index").exists()
            with pytest.raises(FutureTimeoutError):
                worker.result(0.5)

        pool.submit(train_at, made[0], 0, 2, str(tmp_path), on_end=on_end).result()
        worker.result()


def test_a_chief_that_dies_before_it_has_saved_fails_the_others():
    with servers(2) as (made, _), ThreadPoolExecutor(2) as pool:
        worker = pool.submit(train_at, made[1], 1, 2)

        def on_end():
            made[0].stop()
            raise KeyError("the chief dies")

        with pytest.raises(KeyError):
            train_at(made[0], 0, 2, on_end=on_end)
        with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError), match="worker/replica:0/task:0"):
            worker.result()


def test_a_worker_with_another_graph_than_the_chief_is_told_so():
    def run(server, task):
        with tf.Graph().as_default():
            if task == 1:
                tf.get_variable("another", [3])
            optimizer = train.AllReduceOptimizer(train.GradientDescentOptimizer(0.1), 2)
            model(optimizer, task)
            hooks = [optimizer.make_session_run_hook(task == 0, max_wait_secs=1)]
            with train.MonitoredTrainingSession(server.target, task == 0, hooks=hooks):
                pass

    with servers(2) as (made, _), ThreadPoolExecutor(2) as pool:
        chief, worker = (pool.submit(run, server, task) for task, server in enumerate(made))
        with pytest.raises(tf.errors.InvalidArgumentError, match="other variables than this worker's.*another"):
            worker.result()
        with pytest.raises(tf.errors.DeadlineExceededError, match="group 1 of 2 members is not complete"):
            chief.result()


def test_variables_on_a_ps_and_no_workers_are_refused():
    with pytest.raises(ValueError, match="at least one worker"):
        train.AllReduceOptimizer(train.GradientDescentOptimizer(0.1), 0)
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            w = tf.get_variable("w", [2])
        with pytest.raises(ValueError, match="w:0 is on /job:ps/task:0, but every worker needs a copy"):
            train.AllReduceOptimizer(train.GradientDescentOptimizer(0.1), 2).minimize(tf.reduce_sum(w))


def test_sparse_gradients_are_made_dense():
    with tf.Graph().as_default():
        table = tf.get_variable("table", [4, 2], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 1, 3]))
        train_op = train.AllReduceOptimizer(train.GradientDescentOptimizer(1.0), 1).minimize(loss)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            session.run(train_op)
            assert session.run(table).tolist() == [[0, 0], [-2, -2], [0, 0], [-1, -1]]
