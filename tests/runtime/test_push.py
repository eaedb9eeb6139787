"""Direct steps: the same results as over TensorFlow's protocol, fewer messages, and an end for whoever loses a peer."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import dtf as tf
from dtf.rpc import push
from dtf.run.exchange.push import Outbox, PreparedStep, Pushed
from dtf.testing import LocalCluster
from dtf.train import Server
from dtf.wire import errors
from tests.ports import free_ports


@pytest.fixture
def cluster():
    """Two ps and a worker as servers of this process: their sockets are real, and what they do can be counted."""
    ports = free_ports(3)
    spec = {"ps": [f"127.0.0.1:{port}" for port in ports[:2]], "worker": [f"127.0.0.1:{ports[2]}"]}
    servers = {(job, index): Server(spec, job, index) for job, tasks in spec.items() for index in range(len(tasks))}
    yield servers
    for server in servers.values():
        server.stop(0)


@pytest.fixture
def pushes(monkeypatch):
    """What is pushed, as it is sent."""
    sent = []
    original = push.push_request
    monkeypatch.setattr(push, "push_request", lambda pushed: sent.append(pushed) or original(pushed))
    return sent


def exchange(count=5):
    """Variables of two ps that are doubled by the worker."""
    variables = []
    for number in range(count):
        with tf.device(f"/job:ps/task:{number % 2}"):
            variables.append(tf.Variable(tf.ones([3]) * float(number)))
    with tf.device("/job:worker/task:0"):
        doubled = [variable * 2.0 for variable in variables]
    updates = [variable.assign(value) for variable, value in zip(variables, doubled, strict=True)]
    return variables, tf.group(*updates)


def test_a_step_costs_one_message_for_each_pair_of_tasks_and_direction(cluster, pushes):
    with tf.Graph().as_default():
        variables, update = exchange()
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            session.run(update)
            assert not pushes  # the first step of a kind still asks for its tensors
            session.run(update)
            pushes.clear()
            session.run(update)
            edges = [(pushed.source, len(pushed.values)) for pushed in pushes]
            assert len(edges) == 4
            assert all(type(key) is int for pushed in pushes for key in pushed.keys)
            for number, value in enumerate(session.run(variables)):
                np.testing.assert_array_equal(value, np.full(3, number * 8.0, np.float32))


def test_results_are_those_of_the_usual_way_to_the_last_bit(cluster, monkeypatch):
    results = []
    for is_direct in (True, False):
        if not is_direct:
            monkeypatch.setattr("dtf.run.master.prepare.Agreement.run_id", lambda self: None)
        with tf.Graph().as_default():
            tf.set_random_seed(3)
            with tf.device("/job:ps/task:0"):
                weights = tf.Variable(tf.random_normal([20, 4], seed=1))
            with tf.device("/job:worker/task:0"):
                x = tf.placeholder(tf.float32, [None, 20])
                loss = tf.reduce_mean(tf.square(tf.tanh(tf.matmul(x, weights)) - 0.3))
                train = tf.train.AdamOptimizer(0.05).minimize(loss)
            with tf.Session(cluster["worker", 0].target) as session:
                session.run(tf.global_variables_initializer())
                data = np.random.default_rng(0).normal(size=(16, 20)).astype(np.float32)
                losses = [session.run([loss, train], {x: data})[0] for _ in range(8)]
                results.append((losses, session.run(weights)))
    assert results[0][0] == results[1][0]
    np.testing.assert_array_equal(results[0][1], results[1][1])


def test_strings_large_tensors_and_dead_ones_are_pushed_too(cluster, pushes):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            words = tf.Variable([b"a", b"", b"\xff"])
            large = tf.Variable(tf.range(300_000.0))
        with tf.device("/job:worker/task:0"):
            flag = tf.placeholder(tf.bool, [])
            joined = tf.string_join([words, words])
            total = tf.reduce_sum(large)

        def on_ps():
            with tf.device("/job:ps/task:0"):
                return tf.constant(2.0) + flag_number

        with tf.device("/job:worker/task:0"):
            flag_number = tf.cast(flag, tf.float32)
            chosen = tf.cond(flag, on_ps, lambda: tf.constant(7.0))
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            for turn in range(6):
                is_on = turn % 2 == 0
                values = session.run([joined, total, chosen], {flag: is_on})
                assert list(values[0]) == [b"aa", b"", b"\xff\xff"]
                assert values[1] == pytest.approx(300_000 * 299_999 / 2, rel=1e-4)
                assert values[2] == (3.0 if is_on else 7.0)
            assert pushes


def test_a_loop_over_tasks_pushes_values_under_their_keys(cluster, pushes):
    with tf.Graph().as_default():
        with tf.device("/job:worker/task:0"):
            count = tf.constant(0)

        def body(i, total):
            with tf.device("/job:ps/task:1"):
                return i + 1, total + tf.cast(i, tf.float32)

        _, total = tf.while_loop(lambda i, _: i < 5, body, [count, tf.constant(0.0)])
        with tf.Session(cluster["worker", 0].target) as session:
            for _ in range(4):
                assert session.run(total) == 10.0
        assert any(type(key) is str for pushed in pushes for key in pushed.keys)


def test_an_error_at_one_task_reaches_the_client_and_the_next_step_runs(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.ones([2]))
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [2])
            checked = tf.check_numerics(x, "not a number") + variable
        with tf.device("/job:ps/task:0"):
            update = variable.assign(checked)
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(3):
                session.run(update.op, {x: [0.0, 0.0]})
            with pytest.raises(tf.errors.InvalidArgumentError, match="not a number"):
                session.run(update.op, {x: [np.nan, 0.0]})
            np.testing.assert_array_equal(session.run(update, {x: [1.0, 2.0]}), [2.0, 3.0])
    for server in cluster.values():
        assert not server._worker.direct._running
        assert not server._worker.rendezvous._steps


def test_a_part_that_waits_for_values_when_the_step_is_cancelled_does_not_end_well(cluster, caplog):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            total = tf.Variable(0.0)
        with tf.device("/job:worker/task:0"):
            queue = tf.FIFOQueue(10, tf.float32, [[]])
            value = queue.dequeue()
        fetched = total.assign_add(value)
        config = tf.ConfigProto(operation_timeout_in_ms=500)
        with tf.Session(cluster["worker", 0].target, config=config) as session:
            session.run(tf.global_variables_initializer())
            session.run([queue.enqueue(1.0) for _ in range(3)])
            assert [session.run(fetched) for _ in range(3)] == [1.0, 2.0, 3.0]
            with pytest.raises(tf.errors.DeadlineExceededError, match="job:ps"):
                session.run(fetched)
            assert session.run(total) == 3.0
    assert not [record.message for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("where", ["step", "loop"])
def test_a_lock_held_while_a_step_runs_may_be_wanted_by_a_function_of_another_step(cluster, where):
    """Who waits for a step reads the connections meanwhile, but runs no function of the user's for others."""
    lock, over, others = threading.Lock(), threading.Event(), []

    def add_one(value):
        with lock:
            return value + np.float32(1)

    def once(count, value):
        return count + 1, tf.ensure_shape(tf.py_func(add_one, [value], tf.float32), [10])

    def call(value):
        if where == "step":
            return tf.py_func(add_one, [value], tf.float32)
        return tf.while_loop(lambda count, _: count < 1, once, [0, value])[1]

    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            first, second = tf.Variable(tf.zeros([10])), tf.Variable(tf.ones([10]))
        with tf.device("/job:worker/task:0"):
            called = call(tf.identity(first))
            doubled = tf.identity(second) * 2.0
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())

            def run_others():
                while not over.is_set():
                    others.append(session.run(called)[0])

            thread = threading.Thread(target=run_others, daemon=True)
            thread.start()
            for _ in range(300):
                with lock:
                    assert session.run(doubled)[0] == 2.0
            over.set()
            thread.join(10)
            assert not thread.is_alive() and set(others) == {1.0}


def test_a_task_that_is_lost_fails_the_step_at_once_and_it_is_survived():
    with LocalCluster({"ps": 1, "worker": 1}, processes=True) as tasks, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(0.0)
            queue = tf.FIFOQueue(1, [tf.float32])
        with tf.device("/job:worker/task:0"):
            update = variable.assign_add(tf.constant(1.0)).op
        with tf.device("/job:ps/task:0"):
            waiting = variable + queue.dequeue()
        with tf.Session(tasks.target("worker")) as session:
            session.run(variable.initializer)
            for _ in range(3):
                session.run(update)
            timer = threading.Timer(0.3, tasks.kill, ("ps",))
            timer.start()
            with pytest.raises((tf.errors.UnavailableError, tf.errors.AbortedError)):
                session.run(waiting)
            timer.join()
            tasks.start("ps")
        with tf.Session(tasks.target("worker")) as session:
            session.run(variable.initializer)
            for _ in range(3):
                session.run(update)
            assert session.run(variable) == 3.0


def test_many_workers_at_one_ps_lose_nothing(cluster):
    with tf.Graph().as_default() as graph:
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(tf.zeros([10]))
        with tf.device("/job:worker/task:0"):
            update = variable.assign_add(tf.ones([10]), use_locking=True).op
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(variable.initializer)

            def run():
                with tf.Session(cluster["worker", 0].target, graph=graph) as own:
                    for _ in range(20):
                        own.run(update)

            threads = [threading.Thread(target=run) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            np.testing.assert_array_equal(session.run(variable), np.full(10, 160.0))


def prepared(home=None, **edges):
    outgoing = {task: {key: number for number, key in enumerate(keys)} for task, keys in edges.items()}
    return PreparedStep(1, None, None, None, (), (), ("a", "b", "c"), 0, home, outgoing, ((), (), ()))


def test_an_outbox_gathers_what_goes_to_one_task():
    sent = []
    outbox = Outbox(prepared(b=["x", "y"]), 5, lambda task, pushed: sent.append((task, pushed)))
    for task, key in (("b", "x"), ("c", "z"), ("b", "y")):
        outbox.send(key, np.float32(1), task)
    assert not sent
    outbox.flush()
    assert {task: pushed.keys for task, pushed in sent} == {"b": (0, 1), "c": ("z",)}
    outbox.flush()
    assert len(sent) == 2


def test_what_an_outbox_has_last_for_the_master_is_left_to_the_answer():
    sent = []
    outbox = Outbox(prepared(home="c", b=["x"], c=["y"]), 5, lambda task, pushed: sent.append(task))
    for task in "bc":
        outbox.add(task, 0, np.float32(1))
    outbox.flush(is_last=True)
    assert sent == ["b"]
    assert outbox.rest == ((0,), (np.float32(1),))


def test_what_is_large_does_not_wait():
    sent = []
    outbox = Outbox(prepared(b=["x"]), 5, lambda task, pushed: sent.append(pushed))
    outbox.add("b", 0, np.zeros(1_000_000))
    assert len(sent) == 1


def test_what_is_of_no_use_without_the_rest_waits_for_it_unless_it_is_large():
    sent = []
    outbox = Outbox(prepared(b=["x", "y"], c=["z"]), 5, lambda task, pushed: sent.append((task, pushed.keys)))
    outbox.gather("b", 0, np.float32(1))
    outbox.gather("c", 0, np.zeros(200_000))
    assert sent == [("c", (0,))]
    outbox.gather("b", 1, np.float32(1))
    outbox.flush()
    assert sent[1:] == [("b", (0, 1))]


def test_what_came_before_is_no_reason_to_send_early_what_has_just_been_made(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    sent = []
    outbox = Outbox(prepared(b=["x", "y"]), 5, lambda task, pushed: sent.append(len(pushed.values)))
    for _ in range(15):
        outbox.gather("b", 0, np.float32(1))
    outbox.add("b", 1, np.float32(1))  # looks at the clock
    assert sent == []
    outbox.flush()
    assert sent == [16]


def test_what_rides_goes_with_the_next_value_or_with_the_end_of_the_step():
    sent = []
    outbox = Outbox(prepared(b=["x", "y"], c=["z"]), 5, lambda task, pushed: sent.append((task, pushed.keys)))
    outbox.ride("b", 0, np.int64(7))
    outbox.ride("c", 0, np.int64(7))
    outbox.flush()
    assert sent == []
    outbox.add("b", 1, np.float32(1))
    outbox.flush()
    assert sent == [("b", (0, 1))]
    outbox.flush(is_last=True)
    assert sent[1:] == [("c", (0,))]
    outbox.ride("b", 0, np.zeros(10_000))
    outbox.flush()
    assert sent[2:] == [("b", (0,))]  # a large one is on its way meanwhile


def test_what_was_long_in_the_making_does_not_wait_for_what_comes_next(monkeypatch):
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    sent = []
    outbox = Outbox(prepared(b=["x"]), 5, lambda task, pushed: sent.append(len(pushed.values)))
    for now in (11.0, 11.001):  # noqa: B007 (the clock tells it)
        outbox.add("b", 0, np.float32(1))
    assert sent == []
    now = 12.0
    outbox.computing()
    for now in (12.001, 12.003, 12.004, 12.006):  # noqa: B007
        outbox.add("b", 0, np.float32(1))
    assert sent == [4, 2]
    outbox.add("b", 0, np.float32(1))
    assert sent == [4, 2]
    now = 12.1
    outbox.add("b", 0, np.float32(1))
    assert sent == [4, 2, 2]


def test_values_for_a_step_that_is_not_known_are_refused(cluster):
    with pytest.raises(errors.AbortedError, match="restarted"):
        cluster["ps", 0]._worker.push(Pushed(12345, 1, 0, [0], [np.float32(1)]))


def test_tasks_without_the_channel_are_spoken_to_in_tensorflows_protocol(monkeypatch):
    monkeypatch.setenv("DTF_CHANNEL", "off")
    with LocalCluster({"ps": 1, "worker": 1}) as tasks, tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(0.0)
        with tf.device("/job:worker/task:0"):
            update = variable.assign_add(tf.constant(1.0)).op
        with tf.Session(tasks.target("worker")) as session:
            session.run(variable.initializer)
            for _ in range(4):
                session.run(update)
            assert session.run(variable) == 4.0


def test_a_master_of_another_version_is_refused_in_words():
    from dtf.rpc import push
    from dtf.wire.pb import push_pb2

    class Answer:
        peer = "a master"

        def work(self, function, *args):
            function(*args)

        def set(self, pieces):
            self.pieces = b"".join(bytes(piece) for piece in pieces)

    request = push_pb2.PushPrepareRequest(version=99).SerializeToString()
    answer = Answer()
    push.methods(None, None)[push.PREPARE](request, answer)
    with pytest.raises(errors.UnimplementedError, match="version 1, but the master's is 99"):
        push.outcome_values(answer.pieces)
