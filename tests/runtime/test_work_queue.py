"""Work queues: each record counts in exactly one confirmed step, whatever happens to workers and leases."""

from __future__ import annotations

import gc
import re
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import Executor
from dtf.run.state.work_queue import Lease, WorkQueue
from dtf.wire import errors
from tests.ports import free_ports


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def queue(clock):
    made = WorkQueue("q", clock)
    made.create([b"a", b"b"], 1, None, 10.0)
    yield made
    made.close()


def take(queue: WorkQueue, holder: str = "me") -> Lease | errors.OpError | None:
    """The lease, the error, or None while the taker waits."""
    found: list[Lease | errors.OpError] = []
    queue.take(holder, None, lambda value=None, error=None: found.append(error if value is None else value))
    return found[0] if found else None


def test_shards_come_once_in_each_epoch_in_an_order_of_the_seed():
    def orders(seed):
        queue = WorkQueue("q")
        queue.create([b"%d" % i for i in range(20)], 2, seed, 60.0)
        leases = [take(queue) for _ in range(40)]
        return [[lease.work for lease in leases if lease.epoch == epoch] for epoch in (0, 1)]

    first, second = orders(7)
    assert sorted(first) == sorted(second) == sorted(b"%d" % i for i in range(20))
    assert first != second
    assert orders(7) == [first, second] != orders(8)
    assert orders(None)[0] == [b"%d" % i for i in range(20)]


def test_a_silent_workers_shard_must_go_to_another_from_the_last_confirmed_record(queue, clock):
    lost, _ = take(queue, "worker:0"), take(queue)
    queue.confirm(lost.number, 3, False)
    clock.now = 9.0
    queue.confirm(lost.number, 5, False)
    clock.now = 20.0
    again = take(queue)
    assert (again.work, again.position) == (b"a", 5)
    with pytest.raises(errors.FailedPreconditionError, match="worker:0 confirmed nothing for 10 s"):
        queue.confirm(lost.number, 6, False)
    assert queue.export().tolist() == [2, 0, 0, 5, 0, 1, 0]


def test_the_end_must_wait_for_the_last_confirmation(queue):
    first, second = take(queue), take(queue)
    waiting: list = []
    queue.take("late", None, lambda value=None, error=None: waiting.append(value or error))
    queue.confirm(first.number, 1, True)
    assert not waiting
    queue.release(second.number)
    assert waiting[0].work == b"b"
    queue.confirm(waiting[0].number, 0, True)
    assert isinstance(take(queue), errors.OutOfRangeError)


def test_a_waiting_worker_must_get_a_shard_when_its_lease_ends():
    queue = WorkQueue("q")
    queue.create([b"a"], 1, None, 0.05)
    assert take(queue).work == b"a"
    came, found = threading.Event(), []
    queue.take("late", None, lambda value=None, error=None: (found.append(value), came.set()))
    assert came.wait(30)
    assert found[0].work == b"a"
    queue.close()


def test_a_state_must_come_back_without_leases_before_or_after_the_queue_is_filled(queue):
    first = take(queue)
    queue.confirm(first.number, 4, False)
    state = queue.export()
    for order in ("before", "after"):
        copy = WorkQueue("q")
        if order == "before":
            copy.restore(state)
        copy.create([b"a", b"b"], 1, None, 10.0)
        if order == "after":
            held = take(copy)
            copy.restore(state)
            with pytest.raises(errors.FailedPreconditionError, match="restored from a checkpoint"):
                copy.confirm(held.number, 1, False)
        assert [(lease.work, lease.position) for lease in (take(copy), take(copy))] == [(b"a", 4), (b"b", 0)]


@pytest.mark.parametrize(
    "state", [[], [1, 2], [-1], [3], [2, 0, 5, 0], [2, 0, 0, -1], [2, -1, 0, 0], [2, 0, 0, 1, 0, 0, 2]], ids=str
)
def test_a_state_of_another_queue_must_be_refused(queue, state):
    with pytest.raises(errors.InvalidArgumentError, match="state to restore"):
        queue.restore(np.array(state, np.int64))


def test_wrong_settings_must_be_refused_in_words(queue):
    with pytest.raises(errors.FailedPreconditionError, match="another name"):
        queue.create([b"other"], 1, None, 10.0)
    queue.create([b"a", b"b"], 1, None, 10.0)
    for arguments in (([], 1, None, 1.0), ([b"a"], -1, None, 1.0), ([b"a"], 1, None, float("nan"))):
        with pytest.raises(errors.InvalidArgumentError):
            WorkQueue("new").create(*arguments)
    with pytest.raises(ValueError, match="num_epochs"):
        tf.train.WorkQueue(["a"], num_epochs=0)
    with pytest.raises(ValueError, match="at least one shard"):
        tf.train.WorkQueue([])
    assert isinstance(take(WorkQueue("new")), errors.FailedPreconditionError)
    lease = take(queue)
    queue.confirm(lease.number, 4, False)
    with pytest.raises(errors.InvalidArgumentError, match="cannot go back to 3"):
        queue.confirm(lease.number, 3, False)


def counting_graph(lease_s: float = 60.0):
    """Counts how often each of 12 records is used, in shards of 4, by steps of 2."""
    queue = tf.train.WorkQueue(tf.train.WorkQueue.ranges(12, 4), num_epochs=2, lease_s=lease_s)
    tf.train.get_or_create_global_step()
    counts = tf.get_variable("counts", [12], tf.int64, tf.zeros_initializer())
    records = tf.placeholder(tf.int64, [None])
    train = queue.confirming(tf.scatter_add(counts, records, tf.ones_like(records)))
    return queue, counts, records, train


def steps_of(lease):
    begin, end = map(int, lease.work.split(":"))
    for at in range(begin + lease.position, end, 2):
        yield np.arange(at, min(at + 2, end)), at + 2 - begin


@pytest.mark.parametrize("is_monitored", [False, True], ids=["Session", "MonitoredSession"])
def test_training_must_use_each_record_once_in_each_epoch(is_monitored):
    with tf.Graph().as_default():
        queue, counts, records, train = counting_graph()
        make = tf.train.MonitoredSession if is_monitored else tf.Session
        with make() as session:
            if not is_monitored:
                session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            seen = []
            for lease in queue.leases(session):
                with lease:
                    for batch, upto in steps_of(lease):
                        session.run(train, {records: batch, **lease.feed(upto)})
                    lease.finish()
                seen.append((lease.epoch, lease.work))
            assert session.run(counts).tolist() == [2] * 12
        assert sorted(seen) == sorted((epoch, work) for epoch in (0, 1) for work in queue.ranges(12, 4))


def test_a_step_of_a_lost_lease_must_change_nothing_and_the_loop_goes_on():
    with tf.Graph().as_default():
        queue, counts, records, train = counting_graph()
        with tf.Session() as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            is_first = True
            for lease in queue.leases(session):
                with lease:
                    for batch, upto in steps_of(lease):
                        if is_first:
                            lease.release()
                            is_first = False
                        session.run(train, {records: batch, **lease.feed(upto)})
                    lease.finish()
            assert session.run(counts).tolist() == [2] * 12


def test_a_checkpoint_must_hold_the_queue_together_with_the_variables(tmp_path):
    with tf.Graph().as_default():
        queue, counts, records, train = counting_graph()
        saver = tf.train.Saver()
        initialize = [tf.global_variables_initializer(), tf.tables_initializer()]

        def use(session, steps):
            left = steps
            for lease in queue.leases(session):
                with lease:
                    for batch, upto in steps_of(lease):
                        session.run(train, {records: batch, **lease.feed(upto)})
                        left -= 1
                        if not left:
                            return
                    lease.finish()

        with tf.Session() as session:
            session.run(initialize)
            use(session, 5)
            path = saver.save(session, str(tmp_path / "model"))
            use(session, 3)
        with tf.Session() as session:
            saver.restore(session, path)
            session.run(tf.tables_initializer())
            use(session, 1000)
            assert session.run(counts).tolist() == [2] * 12


@pytest.fixture
def servers():
    ports = free_ports(2)
    cluster = {"ps": [f"127.0.0.1:{ports[0]}"], "worker": [f"127.0.0.1:{ports[1]}"]}
    made = [tf.train.Server(cluster, job, 0) for job in cluster]
    yield made
    for server in made:
        server.stop()


def test_a_save_at_another_task_must_read_the_queue_together_with_the_variables(servers, tmp_path):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            queue, _, records, train = counting_graph()
            saver = tf.train.Saver()
        with tf.Session(servers[1].target) as session:
            session.run([tf.global_variables_initializer(), tf.tables_initializer()])
            lease = next(queue.leases(session))
            for batch, upto in steps_of(lease):
                session.run(train, {records: batch, **lease.feed(upto)})
                saver.save(session, str(tmp_path / "m"))
            programs = [each.describe() for each in gc.get_objects() if isinstance(each, Executor)]
    segments = [segment for program in programs for segment in re.split(r"(?=^def )", program, flags=re.M)]
    saves = [segment for segment in segments if ": WorkQueueExport" in segment]
    confirms = [segment for segment in segments if ": WorkQueueConfirm" in segment and ": ScatterAdd" in segment]
    assert saves and all(": SaveV2" in segment for segment in saves)
    assert confirms and not any("run.check()" in each.partition(": WorkQueueConfirm")[2] for each in confirms)
