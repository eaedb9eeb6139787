"""In-graph and between-graph programs over real sockets, and what happens to them when tasks die."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import dtf as tf
from dtf.session import Session
from dtf.testing import LocalCluster
from dtf.wire import errors
from dtf.wire.pb import config_pb2


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def over_grpc(target: str, graph=None, **settings) -> Session:
    config = config_pb2.ConfigProto(rpc_options={"use_rpc_for_inprocess_master": True}, **settings)
    return Session(target, graph=graph, config=config)


@pytest.fixture(scope="module")
def cluster():
    with LocalCluster({"ps": 2, "worker": 2}) as cluster:
        yield cluster


def linear_model(ps_devices, worker_device):
    """Mean squared error of w*x + b, and its update by hand; variables on two ps."""
    with tf.device(ps_devices[0]):
        w = tf.Variable(np.zeros((3, 1), np.float32), name="w")
    with tf.device(ps_devices[1]):
        b = tf.Variable(np.zeros(1, np.float32), name="b")
    with tf.device(worker_device):
        x = tf.placeholder(tf.float32, [None, 3])
        y = tf.placeholder(tf.float32, [None, 1])
        error = tf.matmul(x, w) + b - y
        loss = tf.reduce_mean(tf.square(error))
        gradients = tf.gradients(loss, [w, b])
    updates = [tf.assign_sub(v, 0.1 * g) for v, g in zip([w, b], gradients, strict=True)]
    return x, y, w, b, loss, updates


def samples(seed: int):
    random = np.random.default_rng(seed)
    x = random.normal(size=(16, 3)).astype(np.float32)
    return x, x @ np.array([[1.0], [2.0], [-1.0]], np.float32) + 0.5


@pytest.mark.parametrize("job", ["ps", "worker"])
def test_an_in_graph_program_trains_whichever_task_is_its_master(cluster, job):
    x, y, w, b, loss, updates = linear_model(["/job:ps/task:0", "/job:ps/task:1"], "/job:worker/task:1")
    with over_grpc(cluster.target(job, 0)) as session:
        session.run([w.initializer, b.initializer])
        xs, ys = samples(0)
        for _ in range(100):
            session.run(updates, {x: xs, y: ys})
        assert session.run(loss, {x: xs, y: ys}) < 1e-2
        assert session.run(b)[0] == pytest.approx(0.5, abs=0.1)


def test_towers_of_one_client_train_without_waiting_for_each_other(cluster):
    """In-graph replication, asynchronous: a thread for each tower, all in one session."""
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
        step = tf.train.get_or_create_global_step()
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    towers = []
    for index in range(2):
        with tf.device(f"/job:worker/task:{index}"):
            x, y = (tf.constant(value) for value in samples(index))
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + 0.5 - y))
        towers.append((loss, optimizer.minimize(loss, global_step=step)))
    with over_grpc(cluster.target("worker", 0)) as session:
        session.run(tf.global_variables_initializer())
        coord = tf.train.Coordinator()

        def train(train_op):
            with coord.stop_on_exception():
                for _ in range(80):
                    session.run(train_op)

        coord.join([_started(train, train_op) for _, train_op in towers])
        assert session.run(step) == 160
        assert max(session.run([loss for loss, _ in towers])) < 1e-2


def _started(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


def test_between_graph_replicas_train_the_same_variables(cluster):
    losses: dict[int, float] = {}
    ready = threading.Event()

    def replicate(index: int) -> None:
        with tf.Graph().as_default() as graph:
            devices = ["/job:ps/task:0", "/job:ps/task:1"]
            x, y, w, b, loss, updates = linear_model(devices, f"/job:worker/task:{index}")
            with over_grpc(cluster.target("worker", index), graph) as session:
                if index == 0:
                    session.run([w.initializer, b.initializer])
                    ready.set()
                ready.wait(30)
                xs, ys = samples(index)
                for _ in range(60):
                    session.run(updates, {x: xs, y: ys})
                losses[index] = float(session.run(loss, {x: xs, y: ys}))

    threads = [threading.Thread(target=replicate, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(losses) == 2 and max(losses.values()) < 0.05


def test_tensors_of_all_kinds_cross_between_tasks(cluster):
    values = [
        np.arange(6).reshape(2, 3),
        np.array([b"a", b"longer than the other"], object),
        np.array(True),
        np.zeros((0, 4), np.float32),
        np.array([1 + 2j], np.complex64),
        np.ones(100_000, np.float64),
    ]
    with tf.device("/job:ps/task:0"):
        made = [tf.identity(tf.constant(value)) for value in values]
    with tf.device("/job:worker/task:1"):
        moved = [tf.identity(tensor) for tensor in made]
    with over_grpc(cluster.target("worker", 0)) as session:
        for value, got in zip(values, session.run(moved), strict=True):
            np.testing.assert_array_equal(got, value)
            assert np.asarray(got).dtype == value.dtype or value.dtype == object


def test_a_dead_branch_crosses_between_tasks(cluster):
    from dtf.build.apply import apply_op

    with tf.device("/job:ps/task:0"):
        switch = apply_op("Switch", data=tf.constant(1.0), pred=tf.placeholder(tf.bool, [], name="choice"))
    with tf.device("/job:worker/task:1"):
        left, right = tf.identity(switch[0]) + 10.0, tf.identity(switch[1]) + 20.0
        merged = apply_op("Merge", inputs=[left, right])[0]
    with over_grpc(cluster.target("worker", 0)) as session:
        assert session.run(merged, {"choice:0": True}) == 21.0
        assert session.run(merged, {"choice:0": False}) == 11.0
        with pytest.raises(errors.InvalidArgumentError, match="was not valid"):
            session.run(left, {"choice:0": True})


def test_a_queue_on_one_task_feeds_another(cluster):
    from dtf.build.apply import apply_op

    with tf.device("/job:ps/task:0"):
        queue = apply_op("FIFOQueueV2", component_types=[tf.float32], shared_name="line")
        value = tf.placeholder(tf.float32, [])
        enqueue = apply_op("QueueEnqueueV2", handle=queue, components=[value])
        dequeued = apply_op("QueueDequeueV2", handle=queue, component_types=[tf.float32])[0]
    with tf.device("/job:worker/task:1"):
        doubled = dequeued * 2.0
    got: list[float] = []
    with over_grpc(cluster.target("worker", 0)) as session:
        session.run(tf.constant(0))
        thread = threading.Thread(target=lambda: got.append(session.run(doubled)))
        thread.start()
        session.run(enqueue, {value: 4.0})
        thread.join(30)
    assert got == [8.0]


def test_many_steps_that_wait_do_not_keep_others_out(cluster):
    from dtf.build.apply import apply_op

    with tf.device("/job:ps/task:0"):
        queue = apply_op("FIFOQueueV2", component_types=[tf.float32], shared_name="crowd")
        enqueue = apply_op("QueueEnqueueV2", handle=queue, components=[tf.constant(1.0)])
        dequeued = apply_op("QueueDequeueV2", handle=queue, component_types=[tf.float32])[0]
    with tf.device("/job:worker/task:1"):
        moved = dequeued + 0.0
    with over_grpc(cluster.target("worker", 0)) as session:
        session.run(tf.constant(0))
        threads = [threading.Thread(target=session.run, args=(moved,)) for _ in range(40)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            session.run(enqueue)
        for thread in threads:
            thread.join(30)
        assert not any(thread.is_alive() for thread in threads)


def test_an_error_of_another_task_names_the_op_the_task_and_the_cause(cluster):
    with tf.device("/job:ps/task:1"):
        bad = tf.reshape(tf.constant([1.0, 2.0]), tf.placeholder(tf.int32, [1], name="shape"), name="bad")
    with tf.device("/job:worker/task:1"):
        after = bad + 1.0
    with over_grpc(cluster.target("worker", 0)) as session:
        with pytest.raises(errors.InvalidArgumentError) as caught:
            session.run(after, {"shape:0": [3]})
        assert "From /job:ps/replica:0/task:1" in caught.value.message
        assert "{{node bad}}" in caught.value.message
        assert caught.value.op is bad.op
        assert session.run(after, {"shape:0": [2]}).tolist() == [2.0, 3.0]


def test_a_partial_run_works_over_several_tasks(cluster):
    a, b = tf.placeholder(tf.float32, []), tf.placeholder(tf.float32, [])
    with tf.device("/job:ps/task:0"):
        first = a + 1.0
    with tf.device("/job:worker/task:1"):
        second = first * b
    with over_grpc(cluster.target("worker", 0)) as session:
        handle = session.partial_run_setup([first, second], [a, b])
        assert session.partial_run(handle, first, {a: 1.0}) == 2.0
        assert session.partial_run(handle, second, {b: 10.0}) == 20.0


def test_a_trace_covers_all_tasks(cluster):
    metadata = config_pb2.RunMetadata()
    options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE, output_partition_graphs=True)
    with tf.device("/job:ps/task:0"):
        there = tf.random_uniform([2])
    with tf.device("/job:worker/task:1"):
        here = there + 1.0
    with over_grpc(cluster.target("worker", 0)) as session:
        session.run(here, options=options, run_metadata=metadata)
    assert {device.device.split("/device")[0] for device in metadata.step_stats.dev_stats} == {
        "/job:ps/replica:0/task:0",
        "/job:worker/replica:0/task:1",
    }
    assert len(metadata.partition_graphs) == 2


def test_list_devices_knows_all_tasks(cluster):
    with over_grpc(cluster.target("worker", 0)) as session:
        names = [device.name for device in session.list_devices()]
    assert len(names) == 4 and "/job:ps/replica:0/task:1/device:CPU:0" in names


def test_a_step_has_its_deadline_over_grpc_too(cluster):
    from tests.runtime.test_session import blocking_dequeue

    with tf.device("/job:ps/task:0"):
        waiting = blocking_dequeue()
    with over_grpc(cluster.target("worker", 0)) as session:
        with pytest.raises(errors.DeadlineExceededError, match="Timed out.*|waiting for /job:ps"):
            session.run(waiting, options=config_pb2.RunOptions(timeout_in_ms=100))
        assert session.run(tf.constant(1)) == 1


def test_a_missing_task_stops_only_those_who_need_it():
    with LocalCluster({"ps": 2, "worker": 1}, start=False) as cluster:
        cluster.start("worker")
        cluster.start("ps", 0)
        with tf.device("/job:ps/task:0"):
            here = tf.constant(1.0) + 1.0
        with tf.device("/job:ps/task:1"):
            missing = tf.constant(1.0) + 2.0
        with over_grpc(cluster.target("worker"), operation_timeout_in_ms=300) as session:
            assert session.run(here) == 2.0
            with pytest.raises(errors.DeadlineExceededError) as caught:
                session.run(missing)
            for word in ("/job:ps/replica:0/task:1", cluster.cluster_spec.task_address("ps", 1), "connection refused"):
                assert word in caught.value.message
            cluster.start("ps", 1)
            assert session.run(missing) == 3.0


def test_a_client_may_start_before_its_server():
    with LocalCluster({"worker": 1}, start=False) as cluster:
        got: list[float] = []
        one = tf.constant(1.0)
        with over_grpc(cluster.target("worker")) as session:
            thread = threading.Thread(target=lambda: got.append(session.run(one)))
            thread.start()
            cluster.start("worker")
            thread.join(30)
        assert got == [1.0]


@pytest.fixture(scope="module")
def processes():
    with LocalCluster({"ps": 1, "worker": 1}, processes=True) as cluster:
        yield cluster


def ps_variable():
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="v")
    with tf.device("/job:worker/task:0"):
        return v, v.read_value() + 0.0


def test_a_killed_ps_is_noticed_at_once_and_its_return_asks_for_a_new_session(processes):
    v, read = ps_variable()
    with over_grpc(processes.target("worker")) as session:
        session.run(v.initializer)
        assert session.run(read) == 1.0
        processes.kill("ps")
        started = time.monotonic()
        with pytest.raises(errors.UnavailableError, match="/job:ps/replica:0/task:0"):
            session.run(read)
        assert time.monotonic() - started < 2.0
        processes.start("ps")
        with pytest.raises((errors.AbortedError, errors.UnavailableError)):
            session.run(read)
    with over_grpc(processes.target("worker")) as session:
        with pytest.raises(errors.FailedPreconditionError, match="uninitialized value v"):
            session.run(read)
        session.run(v.initializer)
        assert session.run(read) == 1.0


def test_a_step_that_waits_at_a_ps_fails_at_once_when_it_is_killed(processes):
    from tests.runtime.test_session import blocking_dequeue

    with tf.device("/job:ps/task:0"):
        waiting = blocking_dequeue()
    with tf.device("/job:worker/task:0"):
        after = waiting + 1.0
    with over_grpc(processes.target("worker")) as session:
        session.run(tf.constant(0))
        caught: list[errors.OpError] = []

        def run():
            try:
                session.run(after)
            except errors.OpError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(0.3)
        processes.kill("ps")
        thread.join(10)
        processes.start("ps")
        assert isinstance(caught[0], errors.UnavailableError)


def test_a_killed_master_is_unavailable_and_its_return_knows_no_session(processes):
    session = over_grpc(processes.target("worker"))
    one = tf.constant(1.0)
    session.run(one)
    processes.kill("worker")
    with pytest.raises(errors.UnavailableError):
        session.run(one)
    processes.start("worker")
    with pytest.raises((errors.AbortedError, errors.UnavailableError)):
        session.run(one)
    session.close()
    with over_grpc(processes.target("worker")) as fresh:
        assert fresh.run(one) == 1.0


def test_sigterm_ends_a_joined_server_with_status_zero(processes):
    assert processes.stop("ps") == 0
    processes.start("ps")
