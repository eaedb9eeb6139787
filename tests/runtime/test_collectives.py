"""Collective operations between the tasks of a cluster: sums, errors that name who is at fault, and no hangs."""

from __future__ import annotations

import contextlib
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dtf as tf
from dtf.run.exchange import ring
from dtf.server import Server
from dtf.testing import LocalCluster
from tests.ports import free_ports

ops = tf.raw_ops
pytestmark = pytest.mark.timeout(60)


@contextlib.contextmanager
def servers(count):
    cluster = {"worker": [f"127.0.0.1:{port}" for port in free_ports(count)]}
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Server(cluster, "worker", task)) for task in range(count)]


def at_all(made, build, **arguments):
    """What each worker's own session gives for `build(task)`, or its error. All at the same time."""

    def run(task):
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
            fetched = build(task)
            with tf.Session(made[task].target) as session:
                try:
                    return session.run(fetched, **arguments)
                except tf.errors.OpError as error:
                    return error

    with ThreadPoolExecutor(len(made)) as pool:
        return list(pool.map(run, range(len(made))))


def reduced(value, size, key=1, instance=1, merge="Add", final="Id", **arguments):
    return ops.CollectiveReduce(
        input=value, group_size=size, group_key=key, instance_key=instance, merge_op=merge, final_op=final,
        subdiv_offsets=[0], **arguments,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("count", "transport"), [(1, "channel"), (2, "channel"), (3, "channel"), (4, "channel"), (3, "grpc")]
)
def test_sums_are_the_same_at_all_workers_whatever_the_size(count, transport, monkeypatch):
    if transport == "grpc":
        monkeypatch.setenv("DTF_CHANNEL", "off")
    shapes = [(), (1,), (2,), (3,), (5, 7), (0,), (100_003,)]
    random = np.random.RandomState(0)
    values = [[random.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(count)]

    def build(task):
        return [reduced(value, count, instance=number) for number, value in enumerate(values[task])]

    with servers(count) as made:
        results = at_all(made, build)
    for number, shape in enumerate(shapes):
        wanted = sum(values[task][number].astype(np.float64) for task in range(count))
        for task in range(count):
            assert results[task][number].shape == shape and results[task][number].dtype == np.float32
            np.testing.assert_allclose(results[task][number], wanted, rtol=1e-5, atol=1e-5)
            np.testing.assert_array_equal(results[task][number], results[0][number])


def test_every_merge_and_final_op():
    def build(task):
        values = np.array([task + 1, -3, 7 - task], np.int32)
        return [
            reduced(values, 3, instance=number, merge=merge, final=final)
            for number, (merge, final) in enumerate([("Add", "Div"), ("Mul", "Id"), ("Min", "Id"), ("Max", "Id")])
        ]

    with servers(3) as made:
        for result in at_all(made, build):
            assert [each.tolist() for each in result] == [[2, -3, 6], [6, -27, 210], [1, -3, 5], [3, -3, 7]]


def test_gather_and_broadcast():
    def build(task):
        row = tf.constant([[task, 10 * task]])
        gathered = ops.CollectiveGather(input=row, group_size=3, group_key=1, instance_key=1, shape=[3, 2])
        keys = {"group_size": 3, "group_key": 1, "instance_key": 2}
        sent = (
            ops.CollectiveBcastSend(input=tf.constant([1.5, 2.5]), shape=[2], **keys)
            if task == 1
            else ops.CollectiveBcastRecv(T=tf.float32, shape=[2], **keys)
        )
        keys["instance_key"] = 3
        sent2 = (
            ops.CollectiveBcastSendV2(input=tf.constant(True), **keys)
            if task == 2
            else ops.CollectiveBcastRecvV2(T=tf.bool, shape=tf.constant([], tf.int32), **keys)
        )
        assert (gathered.shape.as_list(), sent.shape.as_list(), sent2.shape.as_list()) == ([3, 2], [2], [])
        return gathered, sent, sent2

    with servers(3) as made:
        for gathered, sent, sent2 in at_all(made, build):
            assert gathered.tolist() == [[0, 0], [1, 10], [2, 20]]
            assert (sent.tolist(), bool(sent2)) == ([1.5, 2.5], True)


def test_the_second_versions_take_their_keys_as_tensors():
    def build(task):
        keys = {"group_size": 2, "group_key": 5, "ordering_token": []}
        total = ops.CollectiveReduceV2(
            input=tf.constant([1.0 + task]), instance_key=1, merge_op="Add", final_op="Div", **keys
        )
        return total, ops.CollectiveGatherV2(input=tf.constant([task]), instance_key=2, **keys)

    with servers(2) as made:
        for total, gathered in at_all(made, build):
            assert (total.tolist(), gathered.tolist()) == ([1.5], [0, 1])


def test_one_client_may_drive_all_tasks_in_one_step():
    with servers(3) as made, tf.Graph().as_default():
        totals = []
        for task in range(3):
            with tf.device(f"/job:worker/task:{task}"):
                totals.append(reduced(tf.constant([1.0 + task, 2.0]), 3))
        with tf.Session(made[0].target) as session:
            for _ in range(4):
                for total in session.run(totals):
                    assert total.tolist() == [6.0, 6.0]


def test_steps_go_round_in_order_and_leave_nothing_behind():
    def run(server, task, steps, found):
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
            x = tf.placeholder(tf.float32, [4])
            total = reduced(x, 2)
            with tf.Session(server.target) as session:
                for step in range(steps):
                    found.append(float(session.run(total, {x: np.full(4, step + task)})[0]))

    with servers(2) as made:
        found = ([], [])
        threads = [threading.Thread(target=run, args=(made[task], task, 50, found[task])) for task in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found[0] == found[1] == [2.0 * step + 1 for step in range(50)]
        for server in made:
            assert not server._worker.rendezvous._steps


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("size", "do not agree in 'CollectiveReduce': of a tensor of [34] float32"),
        ("dtype", "float64|int32"),
        ("group", "members differ in its size"),
        ("sources", "task:0 and /job:worker/replica:0/task:1 send|task:1 and /job:worker/replica:0/task:0 send"),
        ("shape", r"is wanted, float32 \[2\] was sent"),
    ],
)
def test_members_that_do_not_agree_are_told_so(what, words):
    keys = {"group_size": 2, "group_key": 1, "instance_key": 1}

    def build(task):
        if what == "sources":
            return ops.CollectiveBcastSend(input=tf.constant([1.0]), shape=[1], **keys)
        if what == "shape":
            if task == 0:
                return ops.CollectiveBcastSend(input=tf.constant([1.0, 2.0]), shape=[2], **keys)
            return ops.CollectiveBcastRecv(T=tf.float32, shape=[3], **keys)
        if what == "dtype":
            return reduced(tf.zeros([4], [tf.float64, tf.int32][task]), 2)
        return reduced(tf.zeros([3 + task if what == "size" else 4]), 2 + (task if what == "group" else 0))

    with servers(2) as made:
        results = at_all(made, build)
    errors = [result for result in results if isinstance(result, tf.errors.OpError)]
    assert errors and all(isinstance(error, tf.errors.InvalidArgumentError) for error in errors), results
    for error in errors:
        with pytest.raises(tf.errors.InvalidArgumentError, match=words):
            raise error
    assert len(errors) == 2 or what == "shape", results


def test_a_group_that_does_not_come_together_ends_by_the_ops_own_limit():
    with servers(2) as made, tf.Graph().as_default():
        total = reduced(tf.zeros([4]), 2, timeout_seconds=0.3)
        with (
            tf.Session(made[1].target) as session,
            pytest.raises(tf.errors.DeadlineExceededError, match="of 2 members is not complete"),
        ):
            session.run(total)


def test_a_worker_that_goes_is_named_to_all_others_and_the_next_sessions_go_on():
    started = threading.Barrier(4)

    def run(server, task):
        with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
            total = reduced(tf.ones([100]), 3)
            with tf.Session(server.target) as session:
                session.run(total)
                started.wait()
                if task == 2:
                    return None
                try:
                    return session.run(total)
                except tf.errors.OpError as error:
                    return error

    with servers(3) as made:
        with ThreadPoolExecutor(3) as pool:
            pending = [pool.submit(run, server, task) for task, server in enumerate(made)]
            started.wait()
            pending[2].result()  # its session is closed
            for outcome in (pending[0].result(), pending[1].result()):
                assert isinstance(outcome, tf.errors.AbortedError), outcome
                assert "/job:worker/replica:0/task:2 has left it" in outcome.message
        assert [each[0].tolist() for each in at_all(made, lambda task: [reduced(tf.ones([2]), 3)])] == [[3.0, 3.0]] * 3


def test_a_task_that_dies_in_the_middle_is_named_to_all_others():
    with servers(3) as made:
        waiting = []

        def run(task):
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
                total = reduced(tf.ones([100]), 3)
                with tf.Session(made[task].target) as session:
                    session.run(total)
                    if task == 2:
                        return None
                    waiting.append(task)
                    try:
                        return session.run(total)
                    except tf.errors.OpError as error:
                        return error

        with ThreadPoolExecutor(3) as pool:
            pending = [pool.submit(run, task) for task in range(3)]
            pending[2].result()
            made[2].stop()
            for outcome in (pending[0].result(), pending[1].result()):
                assert isinstance(outcome, tf.errors.AbortedError), outcome
                assert "/job:worker/replica:0/task:2" in outcome.message


def test_a_task_that_stops_answering_is_named(monkeypatch):
    monkeypatch.setattr(ring, "_HEARTBEAT_PERIOD_S", 0.1)
    monkeypatch.setattr(ring, "_HEARTBEAT_TIMEOUT_S", 0.5)
    cluster = LocalCluster({"worker": 2}, processes=True, start=False)
    with cluster, Server(cluster.cluster_spec, "worker", 1) as here:
        cluster.start("worker", 0)

        def session(task, target):
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
                return tf.Session(target), reduced(tf.ones([100]), 2)

        theirs, their_total = session(0, cluster.target("worker", 0))
        ours, our_total = session(1, here.target)
        with ours, ThreadPoolExecutor(1) as pool:
            first = pool.submit(theirs.run, their_total)
            assert ours.run(our_total)[0] == first.result()[0] == 2.0
            process = cluster.processes["worker", 0]
            process.send_signal(signal.SIGSTOP)
            try:
                with pytest.raises(tf.errors.AbortedError, match="lost /job:worker/replica:0/task:0: it has stopped"):
                    ours.run(our_total)
            finally:
                process.send_signal(signal.SIGCONT)
        theirs.close()


def test_a_cancelled_step_lets_go_of_the_others():
    with servers(2) as made:

        def run(task):
            with tf.Graph().as_default(), tf.device(f"/job:worker/task:{task}"):
                first, second = reduced(tf.ones([2]), 2), reduced(tf.ones([2]), 2, instance=2)
                with tf.Session(made[task].target) as session:
                    session.run(first)
                    options = tf.RunOptions(timeout_in_ms=200 if task == 0 else 0)
                    try:
                        return session.run(second if task == 0 else first, options=options)
                    except tf.errors.OpError as error:
                        return error

        with ThreadPoolExecutor(2) as pool:
            timed_out, let_go = pool.map(run, range(2))
        assert isinstance(timed_out, tf.errors.DeadlineExceededError)
        assert isinstance(let_go, tf.errors.AbortedError)
        assert "/job:worker/replica:0/task:0" in let_go.message
