"""Mutual TLS between tasks: over gRPC and over the channel, with real sockets; strangers, and what they cost."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading

import numpy as np
import pytest

import dtf as tf
from dtf.channel.client import Channel
from dtf.channel.endpoint import greet, new_connection_id
from dtf.channel.lane import Lane
from dtf.channel.listener import Listener
from dtf.channel.tls import TlsSocket
from dtf.rpc import status
from dtf.wire import credentials, errors
from tests.certificates import credentials_of, environment
from tests.ports import free_ports
from tests.runtime.channel_frames import frame

OWN = "trial, run 1"
OTHER = "other, run 7"


@pytest.fixture
def secured(tmp_path, monkeypatch):
    """The environment of a task of the cluster; returns the folder of its files."""
    for name, path in environment(tmp_path).items():
        monkeypatch.setenv(name, path)
    return tmp_path


def become(monkeypatch, variables):
    for name in credentials.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, path in variables.items():
        monkeypatch.setenv(name, path)


def add_one(target):
    with tf.Graph().as_default(), tf.Session(target) as session:
        return session.run(tf.constant(1.0) + 1.0)


# -- servers and sessions


@pytest.mark.parametrize("channel", ["on", "off"])
def test_a_cluster_of_two_trains_over_tls(secured, monkeypatch, channel):
    monkeypatch.setenv("DTF_CHANNEL", channel)
    ports = free_ports(2)
    cluster = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]}
    with tf.train.Server(cluster, "ps", 0), tf.train.Server(cluster, "worker", 0), tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            total = tf.Variable(np.zeros(100_000, np.float32))
        with tf.device("/job:worker/task:0"):
            update = total.assign_add(np.ones(100_000, np.float32))
        with tf.Session(f"grpc://localhost:{ports[1]}") as session:
            session.run(total.initializer)
            for _ in range(3):
                session.run(update.op)
            assert session.run(total).sum() == 300_000.0


@pytest.mark.parametrize(
    "variables, words",
    [
        ({}, "speaks TLS only .it is worker:0 of trial, run 1.*no certificate of that cluster; set DTF_TLS_CA"),
        ({"cluster": OTHER, "task": "ps:7"}, "another cluster: it is worker:0 of trial, run 1; .* ps:7 of other"),
    ],
)
@pytest.mark.parametrize("channel", ["on", "off"])
def test_a_stranger_is_told_who_both_ends_are_and_costs_nobody_anything(
    secured, monkeypatch, variables, words, channel
):
    monkeypatch.setenv("DTF_CHANNEL", channel)
    monkeypatch.setattr("dtf.server._servers", {})  # or this process's own server would be found without a socket
    server = tf.train.Server.create_local_server()
    monkeypatch.setattr("dtf.server._servers", {})
    with server, tf.Graph().as_default(), tf.Session(server.target) as session:
        two = tf.constant(1.0) + 1.0
        assert session.run(two) == 2.0
        become(monkeypatch, environment(secured, **variables) if variables else {})
        with pytest.raises(errors.UnauthenticatedError, match=words):
            add_one(server.target)
        assert session.run(two) == 2.0


def test_a_server_without_tls_is_refused_by_who_has_it(secured, monkeypatch):
    variables = environment(secured)
    become(monkeypatch, {})
    monkeypatch.setattr("dtf.server._servers", {})
    server = tf.train.Server.create_local_server()
    monkeypatch.setattr("dtf.server._servers", {})
    with server:
        become(monkeypatch, variables)
        with pytest.raises(errors.UnauthenticatedError, match="does not speak TLS, and this process is worker:0 of"):
            add_one(server.target)


def test_a_certificate_of_another_host_is_named(secured, monkeypatch):
    """127.0.0.2 is this machine too, and the server's certificate does not say so."""
    (port,) = free_ports(1)
    monkeypatch.setenv("DTF_BIND", "127.0.0.2")
    with tf.train.Server({"worker": [f"127.0.0.2:{port}"]}):
        monkeypatch.setattr("dtf.server._servers", {})
        with pytest.raises(errors.UnauthenticatedError, match="certificates do not match .*127.0.0.2.*: it is worker"):
            add_one(f"grpc://127.0.0.2:{port}")


def test_a_peer_that_is_another_clusters_now_is_told_in_words(tmp_path):
    """In the middle of a session nobody looks who it is; what gRPC says must do."""
    details = (
        "ipv4:127.0.0.1:1: Tls handshake failed (TSI_PROTOCOL_FAILURE): SSL_ERROR_SSL: error:1000007d:SSL routines:"
        "OPENSSL_internal:%s: Invalid certificate verification context: OK"
    )
    assert status._plain(details % "CERTIFICATE_VERIFY_FAILED: unable to get local issuer certificate") == (
        "no TLS connection: unable to get local issuer certificate"
    )
    assert status._plain(details % "WRONG_VERSION_NUMBER") == "no TLS connection: wrong version number"


def test_half_of_the_variables_are_refused(secured, monkeypatch):
    monkeypatch.delenv(credentials.KEY_VARIABLE)
    with pytest.raises(errors.FailedPreconditionError, match="DTF_TLS_KEY is not set"):
        tf.train.Server.create_local_server()


def test_files_that_are_not_there_are_named(secured, monkeypatch):
    monkeypatch.setenv(credentials.CA_VARIABLE, "/nowhere/ca.pem")
    with pytest.raises(errors.FailedPreconditionError, match="DTF_TLS_CA: /nowhere/ca.pem: No such file"):
        tf.train.Server.create_local_server()


def test_files_that_are_no_certificates_are_named(tmp_path):
    found = credentials_of(tmp_path)
    broken = credentials.Credentials(found.ca, b"", found.key, (found.paths[0], "/dev/null", found.paths[2]))
    with pytest.raises(errors.FailedPreconditionError, match="are not an authority, a certificate and its key"):
        _ = broken.client_context


def test_the_key_is_never_printed(tmp_path):
    assert "PRIVATE" not in repr(credentials_of(tmp_path))


# -- the address at which a server listens


def test_a_server_listens_where_it_is_told_to_and_keeps_its_name(monkeypatch):
    (port,) = free_ports(1)
    monkeypatch.setenv("DTF_BIND", "127.0.0.3")
    with tf.train.Server({"worker": [f"localhost:{port}"]}) as server:
        assert server.target == f"grpc://localhost:{port}"
        monkeypatch.setattr("dtf.server._servers", {})
        assert add_one(f"grpc://127.0.0.3:{port}") == 2.0
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))


def test_a_server_that_listens_everywhere_is_reached_by_its_name(monkeypatch):
    (port,) = free_ports(1)
    monkeypatch.setenv("DTF_BIND", "0.0.0.0")
    with tf.train.Server({"worker": [f"localhost:{port}"]}) as server:
        monkeypatch.setattr("dtf.server._servers", {})
        assert add_one(server.target) == 2.0


# -- the channel


@pytest.fixture
def listener(tmp_path):
    """A channel's end that has TLS; its Unix socket is hidden, so that peers come over TCP."""
    found = Listener("127.0.0.1", "/job:ps/replica:0/task:0", credentials_of(tmp_path))
    methods = {
        "/echo": lambda request, answer: answer.set((bytes(request),)),
        "/many": lambda request, answer: answer.set([b"a" * 10, b"b" * 70_000, b"", b"c" * 3]),
    }
    found.start(methods)
    yield found
    found.stop(0)


def over_tcp(listener):
    return listener.endpoint._replace(unix="")


@pytest.mark.parametrize("size", [0, 1, 16_384, 65_535, 65_536, 300_001, 5_000_000])
def test_messages_of_every_size_come_back_whole(listener, tmp_path, size):
    channel = Channel(over_tcp(listener), "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    sent = np.random.default_rng(size).bytes(size)
    assert bytes(channel.call("/echo", (sent[: size // 3], memoryview(sent)[size // 3 :]), 10.0)) == sent
    assert bytes(channel.call("/many", (), 10.0)) == b"a" * 10 + b"b" * 70_000 + b"c" * 3
    channel.close()


def test_a_message_that_comes_along_with_the_greeting_is_answered(tmp_path):
    """Its record has been taken from the socket then, which does not tell of it any more."""
    context = credentials_of(tmp_path)
    sent, came = threading.Event(), threading.Event()
    ends = socket.socketpair()

    def serve():
        server = TlsSocket(ends[1], context.server_context)
        sent.wait()
        assert server.recv(8) == b"greeting"
        found.append(Lane(server, lambda lane, kind, flags, number, call_id, body: came.set(), lambda reason: None))
        found[0].begin()

    found = []
    thread = threading.Thread(target=serve)
    thread.start()
    client = TlsSocket(ends[0], context.client_context, "localhost")
    client.sendall(b"greeting" + frame(7))
    sent.set()
    assert came.wait(10)
    thread.join()
    found[0].close("the test is over")
    client.close()


def test_many_threads_share_the_lanes(listener, tmp_path):
    channel = Channel(over_tcp(listener), "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    wrong = []

    def talk(seed):
        random = np.random.default_rng(seed)
        for _ in range(20):
            sent = random.bytes(int(random.choice([10, 3_000, 100_000, 400_000])))
            if bytes(channel.call("/echo", (sent,), 20.0)) != sent:
                wrong.append(seed)

    threads = [threading.Thread(target=talk, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    channel.close()


def test_without_tls_nobody_gets_into_the_channel(listener, tmp_path, caplog):
    """Even one that knows the token."""
    friend = Channel(over_tcp(listener), "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    with caplog.at_level(logging.WARNING, "dtf"), pytest.raises(errors.UnavailableError):
        Channel(over_tcp(listener), "127.0.0.1", "ps")
    with pytest.raises(errors.UnavailableError, match="certificate verify failed"):
        Channel(over_tcp(listener), "127.0.0.1", "ps", credentials=credentials_of(tmp_path, OTHER))
    assert bytes(friend.call("/echo", (b"still here",), 5.0)) == b"still here"
    friend.close()


def test_a_certificate_of_another_authority_is_refused_by_the_server_too(listener, tmp_path):
    """A client that trusts anybody, and knows the token."""
    stranger = credentials_of(tmp_path, OTHER)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(*stranger.paths[1:])
    sock = socket.create_connection(("127.0.0.1", listener.endpoint.port), timeout=5)
    with pytest.raises(OSError):
        secured = TlsSocket(sock, context, "localhost")
        if not greet(secured, listener.endpoint.token, new_connection_id(), 0):
            raise OSError("cut off")
    sock.close()


class Proxy:
    """Passes connections on to a port, and writes down what passes."""

    def __init__(self, port):
        self.passed = bytearray()
        self._port = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve)]
        self._threads[0].start()

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listening.close()

    def _serve(self):
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            self._threads.append(threading.Thread(target=self._carry_both, args=(near,)))
            self._threads[-1].start()

    def _carry_both(self, near):
        with near, socket.create_connection(("127.0.0.1", self._port)) as far:
            back = threading.Thread(target=self._carry, args=(far, near))
            back.start()
            self._carry(near, far)
            back.join()

    def _carry(self, source, target):
        try:
            while data := source.recv(1 << 16):
                self.passed.extend(data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.mark.parametrize("is_secured", [True, False])
def test_what_is_sent_can_be_read_on_the_way_only_without_tls(tmp_path, is_secured):
    found = credentials_of(tmp_path) if is_secured else None
    listener = Listener("127.0.0.1", "ps", found)
    listener.start({"/echo": lambda request, answer: answer.set((bytes(request),))})
    proxy = Proxy(listener.endpoint.port)
    endpoint = listener.endpoint._replace(unix="", port=proxy.port)
    channel = Channel(endpoint, "127.0.0.1", "ps", credentials=found)
    text = b"nobody may read this " * 1000
    assert bytes(channel.call("/echo", (text,), 5.0)) == text
    assert bytes(channel.call("/echo", (text * 20,), 5.0)) == text * 20
    channel.close()
    listener.stop(0)
    proxy.close()
    assert len(proxy.passed) > 40 * len(text)
    assert (b"nobody may" in proxy.passed) == (b"/echo" in proxy.passed) == (not is_secured)


@pytest.mark.parametrize("channel", ["on", "off"])
def test_no_tensor_of_a_session_can_be_read_on_the_way(secured, monkeypatch, channel):
    monkeypatch.setenv("DTF_CHANNEL", channel)
    monkeypatch.setattr("dtf.channel.client.is_same_user", lambda sock: False)  # all by TCP
    (port,) = free_ports(1)
    proxy = Proxy(port)
    values = np.full(50_000, 1.2345678, np.float32)
    with tf.train.Server({"worker": [f"localhost:{port}"]}), tf.Graph().as_default():
        fed = tf.placeholder(tf.float32, [50_000])
        with tf.Session(f"grpc://localhost:{proxy.port}") as session:
            assert session.run(fed * 1.0, {fed: values}).tobytes() == values.tobytes()
    proxy.close()
    assert len(proxy.passed) > (values.nbytes if channel == "off" else 0)
    assert values[:4].tobytes() not in proxy.passed


def test_a_lane_that_is_cut_in_the_middle_of_a_record_fails_its_calls(tmp_path, listener):
    channel = Channel(over_tcp(listener), "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    listener.stop(0)
    with pytest.raises(errors.UnavailableError):
        channel.call("/echo", (b"x" * 100_000,), 5.0)


@pytest.mark.parametrize("is_secured", [True, False])
def test_who_trickles_a_greeting_is_cut_off_in_time(tmp_path, monkeypatch, is_secured):
    monkeypatch.setattr("dtf.channel.listener._GREETING_TIMEOUT_S", 0.2)
    listener = Listener("127.0.0.1", "ps", credentials_of(tmp_path) if is_secured else None)
    listener.start({})
    greeting = b"\x16\x03\x01\x02\x00" if is_secured else b"dtf-ch1\n"
    sent = 0
    with socket.create_connection(("127.0.0.1", listener.endpoint.port)) as slow, contextlib.suppress(OSError):
        slow.settimeout(0.05)
        while sent < 40:
            slow.sendall(greeting[sent : sent + 1] or b"\0")
            sent += 1
            with contextlib.suppress(TimeoutError):
                if not slow.recv(1):
                    break
    listener.stop(0)
    assert sent < 20


def test_on_one_host_the_lanes_stay_unix_sockets_of_one_user(listener, tmp_path):
    channel = Channel(listener.endpoint, "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    assert channel._small._socket.family == socket.AF_UNIX
    channel.close()


def test_another_users_unix_socket_is_passed_over_for_tls(listener, tmp_path, monkeypatch):
    monkeypatch.setattr("dtf.channel.client.is_same_user", lambda sock: False)
    channel = Channel(listener.endpoint, "127.0.0.1", "ps", credentials=credentials_of(tmp_path))
    assert isinstance(channel._small._socket, TlsSocket)
    channel.close()


def test_another_users_process_is_cut_off_at_the_unix_socket(listener, tmp_path, monkeypatch):
    monkeypatch.setattr("dtf.channel.listener.is_same_user", lambda sock: False)
    with pytest.raises(errors.UnavailableError):
        Channel(listener.endpoint, "127.0.0.1", "ps", credentials=credentials_of(tmp_path))


def test_a_full_socket_keeps_what_was_sealed(tmp_path):
    """What would not go out at once goes out later, once and in order."""
    found = credentials_of(tmp_path)
    near, far = socket.socketpair()
    ends = {}

    def accept():
        ends["far"] = TlsSocket(far, found.server_context)

    thread = threading.Thread(target=accept)
    thread.start()
    sender = TlsSocket(near, found.client_context, "localhost")
    thread.join()
    data = memoryview(np.random.default_rng(0).bytes(2_000_000))
    done = 0
    received = bytearray()
    buffer = bytearray(1 << 16)
    blocked = 0
    while len(received) < len(data):
        try:
            while done < len(data):
                done += sender.sendmsg((data[done : done + 700_000],), (), socket.MSG_DONTWAIT)
        except BlockingIOError:
            blocked += 1
        received += buffer[: ends["far"].recv_into(buffer)]
    assert blocked and received == data
    near.close()
    far.close()
