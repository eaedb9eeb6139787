"""Server and LocalCluster: start, stop, ports, targets, and what a task says when something is wrong."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

import dtf as tf
from dtf.server import Server
from dtf.session import Session
from dtf.testing import LocalCluster
from dtf.wire import errors
from dtf.wire.cluster import ClusterSpec
from dtf.wire.pb import config_pb2
from tests.ports import free_ports

OVER_GRPC = config_pb2.ConfigProto(rpc_options={"use_rpc_for_inprocess_master": True})


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def over_grpc(target: str, **settings) -> Session:
    config = config_pb2.ConfigProto(**settings)
    config.MergeFrom(OVER_GRPC)
    return Session(target, config=config)


def answers(target: str) -> bool:
    with tf.Graph().as_default(), over_grpc(target) as session:
        return session.run(tf.constant(7)) == 7


def test_a_local_server_answers_with_and_without_a_socket_between():
    with Server.create_local_server() as server:
        assert answers(server.target)
        with Session(server.target) as session:
            assert session.run(tf.constant(2) + 3) == 5


def test_the_server_def_says_which_task_this_is():
    (port,) = free_ports(1)
    with Server({"ps": {3: f"127.0.0.1:{port}"}}, "ps", 3) as server:
        assert server.server_def.job_name == "ps"
        assert server.server_def.task_index == 3
        assert server.target == f"grpc://127.0.0.1:{port}"
        assert "/job:ps/replica:0/task:3" in repr(server)


def test_stop_frees_the_port_and_may_be_repeated():
    (port,) = free_ports(1)
    cluster = {"local": [f"127.0.0.1:{port}"]}
    for _ in range(2):
        server = Server(cluster)
        assert answers(server.target)
        server.stop()
        server.stop()
    with socket.socket() as free:
        free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        free.bind(("127.0.0.1", port))


def test_a_server_binds_only_the_address_of_its_cluster():
    (port,) = free_ports(1)
    with Server({"local": [f"127.0.0.2:{port}"]}) as server, socket.socket() as other:
        assert answers(server.target)
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))


def test_join_returns_when_the_server_is_stopped():
    server = Server.create_local_server()
    thread = threading.Thread(target=server.join)
    thread.start()
    server.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_join_leaves_signals_to_the_program():
    """It neither takes SIGTERM for itself nor returns because of it; the program's handler is called while it waits."""
    server = Server.create_local_server()
    heard = threading.Event()

    def stop_after_that():
        heard.wait(30)
        server.stop()

    thread = threading.Thread(target=stop_after_that)
    former = signal.signal(signal.SIGTERM, lambda *_: heard.set())
    try:
        timer = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGTERM])
        timer.start()
        thread.start()
        server.join()
        assert heard.is_set()
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, former)
        timer.join()
        thread.join()


NO_ELSE = """
import dtf as tf
{before}
server = tf.train.Server.create_local_server()
print("serves", flush=True)
server.join()
print("trains", flush=True)
"""


@pytest.mark.parametrize(
    ("before", "end", "status"),
    [
        ("", signal.SIGTERM, -signal.SIGTERM),
        ("session = tf.train.MonitoredSession()", signal.SIGTERM, 143),
        ("import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", signal.SIGTERM, 7),
    ],
    ids=["plain", "open session", "own handler"],
)
def test_a_program_without_else_after_join_does_not_go_on_when_it_is_told_to_end(before, end, status):
    process = subprocess.Popen(
        [sys.executable, "-c", NO_ELSE.format(before=before)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with process:
        assert process.stdout.readline() == "serves\n"
        process.send_signal(end)
        assert process.wait(60) == status
        assert process.stdout.read() == ""


def test_a_server_that_is_not_started_does_not_answer_until_it_is():
    server = Server.create_local_server(start=False)
    with tf.Graph().as_default(), pytest.raises(errors.DeadlineExceededError, match="did not answer"):
        over_grpc(server.target, operation_timeout_in_ms=300).run(tf.constant(1))
    server.start()
    assert answers(server.target)
    server.stop()
    with pytest.raises(errors.FailedPreconditionError, match="has been stopped"):
        server.start()


def test_stop_cancels_what_runs():
    from tests.runtime.test_session import blocking_dequeue

    with Server.create_local_server() as server:
        session = over_grpc(server.target)
        waiting = blocking_dequeue()
        session.run(tf.constant(0))
        caught: list[errors.OpError] = []

        def run():
            try:
                session.run(waiting)
            except errors.OpError as error:
                caught.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        while not any(inner._steps for inner in server._master._sessions.values()):
            threading.Event().wait(0.005)
        server.stop()
        thread.join(10)
        assert isinstance(caught[0], errors.UnavailableError)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (({"ps": ["a:1"]}, "worker", 0), ValueError, "worker"),
        (({"ps": ["a:1"]}, "ps", 4), ValueError, "4"),
        (({"ps": ["a:1"], "worker": ["b:1"]},), ValueError, "job_name"),
        (({"ps": ["no port here"]},), errors.InvalidArgumentError, "port"),
        (({"ps": ["no-such-host.invalid:2222"]},), errors.InvalidArgumentError, "'no-such-host.invalid' does not res"),
        (({"ps": ["203.0.113.1:2222"]},), errors.UnknownError, "does not have that address"),
        (({"ps": ["127.0.0.1:0"]}, "ps", 0, "carrier-pigeon"), errors.UnimplementedError, "carrier-pigeon"),
        (("ps",), TypeError, "cluster"),
    ],
)
def test_a_server_that_cannot_start_says_why(arguments, error, words):
    with pytest.raises(error, match=words):
        Server(*arguments)


def test_a_port_in_use_is_named_with_the_task():
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen()
        address = f"127.0.0.1:{held.getsockname()[1]}"
        with pytest.raises(errors.UnknownError, match=f"/job:ps/replica:0/task:0 at {address}: the port is in use"):
            Server({"ps": [address]})


def test_a_port_served_by_something_else_is_told_by_what_it_answers():
    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

    web = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        with pytest.raises(errors.FailedPreconditionError, match="is not a TensorFlow or dtf server.*answered '"):
            Session(f"grpc://127.0.0.1:{web.server_port}").run(tf.constant(1))
    finally:
        web.shutdown()
        web.server_close()
        thread.join()


def test_a_task_that_answers_at_the_address_of_another_is_told_apart():
    first, second = (f"127.0.0.1:{port}" for port in free_ports(2))
    with (
        Server({"worker": [first]}) as worker,
        Server({"ps": [second], "worker": [first]}, "ps", 0),
    ):
        wrong = Server({"worker": [f"127.0.0.1:{free_ports(1)[0]}"], "ps": [first]}, "worker", 0)
        with wrong, tf.device("/job:ps"), pytest.raises(errors.InvalidArgumentError) as caught:
            Session(wrong.target).run(tf.constant(1))
        assert first in caught.value.message
        assert "/job:ps/replica:0/task:0" in caught.value.message
        assert "/job:worker/replica:0/task:0" in caught.value.message
        assert answers(worker.target)


def test_the_servers_own_config_holds_where_the_session_leaves_it_open():
    config = config_pb2.ConfigProto(allow_soft_placement=True)
    with (
        Server.create_local_server(config=config) as server,
        tf.device("/device:GPU:7"),
        Session(server.target) as session,
    ):
        assert session.run(tf.constant(1)) == 1


def test_reset_closes_the_sessions_and_forgets_the_variables():
    with Server.create_local_server() as server:
        v = tf.Variable(1.0)
        session = Session(server.target)
        session.run(v.initializer)
        other = Session(server.target)
        assert other.run(v) == 1.0
        Session.reset(server.target)
        with pytest.raises(errors.AbortedError, match="is not found"):
            session.run(v)
        with pytest.raises(errors.FailedPreconditionError), Session(server.target) as fresh:
            fresh.run(v)


def test_a_cluster_for_tests_starts_and_stops_its_tasks():
    with LocalCluster({"ps": 1, "worker": 2}) as cluster:
        assert cluster.cluster_spec == ClusterSpec(cluster.cluster_spec.as_dict())
        assert answers(cluster.target("worker", 1))
        assert cluster.stop("worker", 1) == 0
        cluster.start("worker", 1)
        assert answers(cluster.target("worker", 1))
    assert not cluster.servers
