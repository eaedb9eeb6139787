"""Pushed steps: results as over TensorFlow's protocol, fewer messages, and an end for a task that loses a peer."""

from __future__ import annotations

import time

import numpy as np
import pytest

import dtf as tf
from dtf.rpc import push
from dtf.run.exchange.push_exchange import PushExchange
from dtf.run.interfaces import Pushed
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
            monkeypatch.setattr("dtf.run.master.prepare.Preparation.run_id", lambda self: None)
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


def push_exchange(push, home=None):
    return PushExchange(run_id=1, step_id=5, source=0, home=home, push=push)


def test_values_for_one_task_gather():
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append((task, pushed)))
    for task, key in (("b", 0), ("c", "z"), ("b", 1)):
        buffer.send(key, np.float32(1), task)
    assert not sent
    buffer.flush()
    assert {task: pushed.keys for task, pushed in sent} == {"b": (0, 1), "c": ("z",)}
    buffer.flush()
    assert len(sent) == 2


def test_the_last_values_for_the_master_are_left_to_the_answer():
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append(task), home="c")
    for task in "bc":
        buffer.send(0, np.float32(1), task)
    buffer.flush(is_last=True)
    assert sent == ["b"]
    assert buffer.rest == ((0,), (np.float32(1),))


def test_what_is_large_does_not_wait():
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append(pushed))
    buffer.send(0, np.zeros(1_000_000), "b")
    assert len(sent) == 1


def test_what_is_of_no_use_without_the_rest_waits_for_it_unless_it_is_large():
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append((task, pushed.keys)))
    buffer.send_grouped(0, np.float32(1), "b")
    buffer.send_grouped(0, np.zeros(200_000), "c")
    assert sent == [("c", (0,))]
    buffer.send_grouped(1, np.float32(1), "b")
    buffer.flush()
    assert sent[1:] == [("b", (0, 1))]


def test_what_came_before_is_no_reason_to_send_early_what_has_just_been_made(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 10.0)
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append(len(pushed.values)))
    for _ in range(15):
        buffer.send_grouped(0, np.float32(1), "b")
    buffer.send(1, np.float32(1), "b")  # looks at the clock
    assert sent == []
    buffer.flush()
    assert sent == [16]


def test_what_rides_goes_with_the_next_value_or_with_the_end_of_the_step():
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append((task, pushed.keys)))
    buffer.send_piggybacked(0, np.int64(7), "b")
    buffer.send_piggybacked(0, np.int64(7), "c")
    buffer.flush()
    assert sent == []
    buffer.send(1, np.float32(1), "b")
    buffer.flush()
    assert sent == [("b", (0, 1))]
    buffer.flush(is_last=True)
    assert sent[1:] == [("c", (0,))]
    buffer.send_piggybacked(0, np.zeros(10_000), "b")
    buffer.flush()
    assert sent[2:] == [("b", (0,))]  # a large one is on its way meanwhile


def test_what_was_long_in_the_making_does_not_wait_for_what_comes_next(monkeypatch):
    now = 10.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    sent = []
    buffer = push_exchange(lambda task, pushed: sent.append(len(pushed.values)))
    for now in (11.0, 11.001):  # noqa: B007 (the clock tells it)
        buffer.send(0, np.float32(1), "b")
    assert sent == []
    now = 12.0
    buffer.computing()
    for now in (12.001, 12.003, 12.004, 12.006):  # noqa: B007
        buffer.send(0, np.float32(1), "b")
    assert sent == [4, 2]
    buffer.send(0, np.float32(1), "b")
    assert sent == [4, 2]
    now = 12.1
    buffer.send(0, np.float32(1), "b")
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
