"""Bad input over real sockets: each mistake gets the exception that TensorFlow's users know, with what is at fault
named, and the servers go on."""

from __future__ import annotations

import os
import socket
import threading

import numpy as np
import pytest

import dtf as tf
from tests.ports import free_ports


@pytest.fixture(scope="module")
def cluster():
    """A ps and a worker that run, and a second ps that does not."""
    ports = free_ports(3)
    spec = tf.train.ClusterSpec(
        {"ps": [f"localhost:{ports[0]}", f"localhost:{ports[1]}"], "worker": [f"localhost:{ports[2]}"]}
    )
    servers = [tf.train.Server(spec, "ps", 0), tf.train.Server(spec, "worker", 0)]
    yield servers[1]
    for server in servers:
        server.stop()


@pytest.fixture(autouse=True)
def the_servers_go_on(cluster):
    yield
    with tf.Graph().as_default(), tf.device("/job:ps/task:0"), tf.Session(cluster.target) as session:
        assert session.run(tf.constant(1.0) + 1.0) == 2.0


@pytest.fixture
def session(cluster):
    with tf.Graph().as_default(), tf.Session(cluster.target) as session:
        yield session


def test_a_fetch_of_another_graph(session):
    with tf.Graph().as_default():
        stranger = tf.constant(1.0, name="stranger")
    with pytest.raises(ValueError, match=r"stranger:0.*is not an element of this graph"):
        session.run(stranger)


def test_a_fetch_that_is_no_fetch(session):
    with pytest.raises(TypeError, match="Fetch argument 3.*has invalid type"):
        session.run(3)
    with pytest.raises(ValueError, match="nowhere"):
        session.run("nowhere:0")


def test_a_feed_of_the_wrong_shape(session):
    x = tf.placeholder(tf.float32, [3], name="x")
    words = r"Cannot feed value of shape \(2,\) for Tensor '?x:0'?, which has shape '?\(3,\)'?"
    with pytest.raises(ValueError, match=words):
        session.run(x, {x: [1.0, 2.0]})


def test_a_feed_of_the_wrong_dtype(session):
    x = tf.placeholder(tf.int32, [1], name="x")
    with pytest.raises((TypeError, ValueError)):
        session.run(x, {x: ["text"]})


def test_a_placeholder_that_is_not_fed(session):
    x = tf.placeholder(tf.float32, [3], name="inputs")
    with pytest.raises(tf.errors.InvalidArgumentError, match="feed a value for placeholder tensor 'inputs'") as caught:
        session.run(x + 1.0)
    assert caught.value.op is x.op


def test_an_uninitialised_variable(session):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="weights")
    with pytest.raises(tf.errors.FailedPreconditionError, match="uninitialized value weights"):
        session.run(v + 1.0)


def test_a_device_that_the_cluster_does_not_have(session):
    with tf.device("/job:chief/task:7"):
        c = tf.constant(1.0, name="lost")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)lost.*/job:chief/task:7"):
        session.run(c)


def test_a_task_that_is_missing_is_named_within_the_timeout(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            c = tf.constant(1.0)
        config = tf.ConfigProto(operation_timeout_in_ms=300)
        with tf.Session(cluster.target, config=config) as session:
            expected = (tf.errors.UnavailableError, tf.errors.DeadlineExceededError)
            with pytest.raises(expected, match=r"/job:ps/(replica:0/)?task:1"):
                session.run(c)


def test_shapes_that_only_the_run_can_know(session):
    x = tf.placeholder(tf.float32, None)
    with tf.device("/job:ps/task:0"):
        product = tf.matmul(x, tf.ones([3, 2]), name="product")
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"(?s)product"):
        session.run(product, {x: np.ones([2, 2], np.float32)})


def test_an_address_in_use(cluster):
    with pytest.raises(tf.errors.OpError, match=r"localhost:\d+"):
        tf.train.Server(cluster.server_def, job_name="worker", task_index=0)


def test_an_address_that_is_none():
    with pytest.raises((ValueError, tf.errors.OpError), match="no-port"):
        tf.train.Server({"worker": ["no-port"]}, "worker", 0)


def test_a_job_and_a_task_that_the_cluster_does_not_have():
    with pytest.raises((ValueError, tf.errors.OpError), match="evaluator"):
        tf.train.Server({"worker": ["localhost:0"]}, "evaluator", 0)
    with pytest.raises((ValueError, tf.errors.OpError), match="3"):
        tf.train.Server({"worker": ["localhost:0"]}, "worker", 3)


def test_a_port_served_by_something_else():
    """A web server, say, at the address of a task: the error names the task, and nothing hangs."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

        threading.Thread(target=answer, daemon=True).start()
        address = f"localhost:{listener.getsockname()[1]}"
        config = tf.ConfigProto(operation_timeout_in_ms=1000)
        words = f"{address} is not a TensorFlow or dtf server"
        session = tf.Session(f"grpc://{address}", graph=tf.Graph(), config=config)
        with session, session.graph.as_default(), pytest.raises(tf.errors.FailedPreconditionError, match=words):
            session.run(tf.constant(1.0))


def test_rubbish_sent_to_a_server_costs_nobody_anything(cluster):
    host, port = cluster.target.removeprefix("grpc://").split(":")
    for rubbish in (b"", b"\0" * 64, b"GET / HTTP/1.0\r\n\r\n", os.urandom(4096)):
        with socket.create_connection((host, int(port)), timeout=5) as connection:
            connection.sendall(rubbish)


def test_a_checkpoint_that_is_cut_short(session, tmp_path):
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(tf.ones([1000]), name="layer/weights")
    saver = tf.train.Saver([v], sharded=True)
    session.run(tf.global_variables_initializer())
    prefix = saver.save(session, str(tmp_path / "model"))
    (data,) = tmp_path.glob("model.data-*")
    os.truncate(data, data.stat().st_size // 2)
    with pytest.raises(tf.errors.OpError, match=r"(?s)model.data-.*layer/weights"):
        saver.restore(session, prefix)
    (tmp_path / "model.index").write_bytes(b"rubbish")
    with pytest.raises((tf.errors.OpError, ValueError), match="model"):
        saver.restore(session, prefix)
