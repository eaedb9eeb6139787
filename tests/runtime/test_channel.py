"""The channel over real sockets: frames, lost connections, cancelling, rubbish, restarts, and beside gRPC."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading

import numpy as np
import pytest

from dtf.channel import lane as lanes
from dtf.channel import listener as listeners
from dtf.channel.client import Channel
from dtf.channel.endpoint import Endpoint, find_endpoint, greet, new_connection_id, welcome
from dtf.channel.lane import Lane
from dtf.channel.listener import Listener
from dtf.rpc import discovery
from dtf.rpc.connection import Connection
from dtf.rpc.remote import RemoteWorker
from dtf.rpc.service import Service
from dtf.run.interfaces import Device
from dtf.wire import errors
from dtf.wire.pb import worker_pb2
from tests import reader_waits
from tests.ports import free_ports
from tests.runtime.channel_frames import frame
from tests.waiting import wait_until

TASK = "/job:ps/replica:0/task:0"
STATUS = "/tensorflow.WorkerService/GetStatus"


class Call:
    """A `done` that can be waited for."""

    def __init__(self):
        self._over = threading.Event()
        self.value = self.error = None

    def __call__(self, value=None, error=None):
        self.value, self.error = value, error
        self._over.set()

    def wait(self):
        assert self._over.wait(10)
        return self


class Methods:
    """A table of methods: some answer, one parks, one fails."""

    def __init__(self):
        self.parked = []
        self.arrived = threading.Semaphore(0)
        self.cancelled = threading.Event()
        self.table = {
            "/echo": lambda request, answer: answer.set((bytes(request),)),
            "/pieces": lambda request, answer: answer.set((b"a", bytes(request), memoryview(b"z"))),
            "/park": self.park,
            "/fail": self.fail,
            "/break": self.break_down,
        }

    def park(self, request, answer):
        answer.on_cancel(self.cancelled.set)
        self.parked.append(answer)
        self.arrived.release()

    def fail(self, request, answer):
        error = errors.AbortedError.of(bytes(request).decode())
        error.derived = True
        answer.fail(error)

    def break_down(self, request, answer):
        raise ValueError("a bug")


@pytest.fixture
def methods():
    return Methods()


@pytest.fixture
def listener(methods):
    listener = Listener("127.0.0.1", TASK)
    listener.start(methods.table)
    yield listener
    listener.stop(0)


@pytest.fixture(params=["unix", "tcp"])
def channel(listener, request):
    endpoint = listener.endpoint if request.param == "unix" else listener.endpoint._replace(unix="")
    channel = Channel(endpoint, "127.0.0.1", f"{TASK} at host:1")
    yield channel
    channel.close()


def read_to_the_end(sock):
    """Until the other end has closed; a reset says so too."""
    with contextlib.suppress(ConnectionError):
        while sock.recv(4096):
            pass


# -- the endpoint


def test_an_endpoint_survives_the_answer_to_get_status():
    endpoint = Endpoint("name", 1234, b"\x00\xff" * 16)
    status = worker_pb2.GetStatusResponse()
    status.device_attributes.add(name="/job:ps/replica:0/task:0/device:CPU:0")
    data = status.SerializeToString() + endpoint.encode()
    assert find_endpoint(data) == endpoint
    assert worker_pb2.GetStatusResponse.FromString(data).device_attributes == status.device_attributes


@pytest.mark.parametrize("data", [b"", b"\xff" * 9, Endpoint("", 1, b"").encode()[:-1], b"\x92\x97\x17\x02{}"])
def test_an_answer_without_a_usable_endpoint_has_none(data):
    assert find_endpoint(data) is None


# -- calls


@pytest.mark.parametrize("size", [0, 1, 4095, 32_700, 65_535, 65_536, 1_000_000, 20_000_000])
def test_a_message_of_any_size_comes_as_it_was_sent(channel, size):
    data = np.random.default_rng(size).bytes(size)
    assert bytes(channel.call("/echo", (data[: size // 3], memoryview(data)[size // 3 :]), 10.0)) == data
    assert bytes(channel.call("/pieces", (data,), 10.0)) == b"a" + data + b"z"


def test_a_large_array_is_sent_from_its_memory_and_viewed_where_it_was_received(channel):
    array = np.arange(1_000_000.0)
    response = channel.call("/echo", (array.view(np.uint8).data,), 10.0)
    assert isinstance(response, memoryview)
    np.testing.assert_array_equal(np.frombuffer(response, np.float64), array)


def test_many_calls_from_many_threads_each_get_their_own_answer(channel):
    failures = []

    def caller(number):
        for count in range(200):
            data = b"%d-%d" % (number, count) * (1 if count % 50 else 20_000)
            if bytes(channel.call("/echo", (data,), 30.0)) != data:
                failures.append((number, count))

    threads = [threading.Thread(target=caller, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


def test_an_error_keeps_its_code_its_text_and_whether_it_is_derived(channel):
    with pytest.raises(errors.AbortedError, match="^because$") as caught:
        channel.call("/fail", (b"because",), 10.0)
    assert caught.value.derived
    with pytest.raises(errors.InternalError, match="ValueError: a bug"):
        channel.call("/break", (), 10.0)
    with pytest.raises(errors.UnimplementedError, match="/other"):
        channel.call("/other", (), 10.0)


def test_a_deadline_ends_the_call_here_and_there(channel, methods):
    with pytest.raises(errors.DeadlineExceededError, match=f"{TASK} at host:1: no answer in time"):
        channel.call("/park", (), 0.05)
    assert methods.cancelled.wait(10)
    call = Call()
    channel.call_async("/park", (), call, 0.05)
    assert isinstance(call.wait().error, errors.DeadlineExceededError)


def test_a_cancelled_call_is_told_to_the_other_end(channel, methods):
    call = Call()
    cancel = channel.call_async("/park", (), call)
    assert methods.arrived.acquire(timeout=10)
    cancel()
    assert isinstance(call.wait().error, errors.CancelledError) and call.error.derived
    assert methods.cancelled.wait(10)
    methods.parked[0].set((b"too late",))
    assert bytes(channel.call("/echo", (b"next",), 10.0)) == b"next"
    cancel()


def test_a_request_that_wants_no_answer_arrives(channel, methods):
    channel.tell("/park", ())
    assert methods.arrived.acquire(timeout=10)
    methods.parked[0].set((b"nobody hears",))
    assert bytes(channel.call("/echo", (b"next",), 10.0)) == b"next"


def test_a_small_message_does_not_wait_for_a_large_one(listener, methods):
    """The large answer fills the socket of a reader that is stuck; small ones still come."""
    stuck, release, first = threading.Event(), threading.Event(), Call()
    channel = Channel(listener.endpoint._replace(unix=""), "127.0.0.1", TASK)

    def hold(response=None, error=None):
        stuck.set()
        release.wait(10)
        first(response, error)

    large = bytes(50_000_000)
    channel.call_async("/echo", (large,), hold)
    second = Call()
    assert stuck.wait(10)
    channel.call_async("/echo", (large,), second)
    for _ in range(10):
        assert bytes(channel.call("/echo", (b"small",), 10.0)) == b"small"
    release.set()
    assert len(first.wait().value) == len(second.wait().value) == len(large)
    channel.close()
    reader_waits.found.clear()  # `hold` waited on purpose


# -- connections that end


def test_a_lost_connection_fails_its_calls_at_once_and_cancels_them_there(listener, methods):
    lost = threading.Event()
    channel = Channel(listener.endpoint, "127.0.0.1", f"{TASK} at host:1", lost.set)
    call = Call()
    channel.call_async("/park", (), call)
    assert methods.arrived.acquire(timeout=10)
    listener.stop(0)
    assert isinstance(call.wait().error, errors.UnavailableError)
    assert call.error.message == f"{TASK} at host:1: the connection was lost"
    assert methods.cancelled.wait(10) and lost.wait(10) and not channel.is_open
    with pytest.raises(errors.UnavailableError, match="the connection was lost"):
        channel.call("/echo", ())


def test_what_runs_for_a_client_that_goes_away_is_cancelled(listener, methods):
    channel = Channel(listener.endpoint, "127.0.0.1", TASK)
    call = Call()
    channel.call_async("/park", (), call)
    assert methods.arrived.acquire(timeout=10)
    channel.close()
    assert methods.cancelled.wait(10)
    assert isinstance(call.wait().error, errors.UnavailableError)


def test_a_stopping_listener_lets_its_calls_end(listener, methods):
    channel = Channel(listener.endpoint, "127.0.0.1", TASK)
    call = Call()
    channel.call_async("/park", (), call)
    assert methods.arrived.acquire(timeout=10)
    stopping = threading.Thread(target=listener.stop, args=(10,))
    stopping.start()
    methods.parked[0].set((b"the last word",))
    assert call.wait().value == b"the last word"
    stopping.join(10)
    assert not stopping.is_alive()


def test_a_silent_peer_is_given_up(monkeypatch):
    monkeypatch.setattr("dtf.channel.client._HEARTBEAT_PERIOD_S", 0.05)
    monkeypatch.setattr("dtf.channel.client._HEARTBEAT_TIMEOUT_S", 0.05)
    token = bytes(range(32))
    with socket.create_server(("127.0.0.1", 0)) as server, contextlib.ExitStack() as stack:

        def greet_and_fall_silent():
            for _ in range(2):
                sock = stack.enter_context(server.accept()[0])
                welcome(sock, token)
                sock.sendall(frame(0, b"/fail", lanes.WELCOME))

        peer = threading.Thread(target=greet_and_fall_silent)
        peer.start()
        channel = Channel(Endpoint("", server.getsockname()[1], token), "127.0.0.1", f"{TASK} at host:1")
        peer.join(10)
        with pytest.raises(errors.UnavailableError, match="has stopped answering"):
            channel.call("/fail", (), watch=True)
        assert not channel.is_open


def test_a_slow_reader_holds_up_nobody_else(listener, methods):
    """A peer that does not read its answers costs neither its own connection's reader nor other peers."""
    slow = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    slow.connect("\0" + listener.endpoint.unix)
    assert greet(slow, listener.endpoint.token, new_connection_id(), 0)
    other = Channel(listener.endpoint, "127.0.0.1", TASK)
    number = list(methods.table).index("/echo")
    body = bytes(10_000)
    for call_id in range(100):
        slow.sendall(frame(call_id, body, number=number))
    assert bytes(other.call("/echo", (b"still there",), 10.0)) == b"still there"
    slow.close()
    other.close()


# -- who is at the other end


@pytest.mark.parametrize(
    "rubbish",
    [b"", b"GET / HTTP/1.1\r\n\r\n", b"dtf-ch1\n" + bytes(40), b"dtf-ch1\n" + bytes(80), bytes(1000)],
    ids=["nothing", "http", "greeting", "wrong proof", "zeros"],
)
def test_rubbish_on_the_port_costs_nobody_anything(listener, channel, rubbish):
    with socket.create_connection(("127.0.0.1", listener.endpoint.port), timeout=10) as stranger:
        with contextlib.suppress(OSError):
            stranger.sendall(rubbish)
            stranger.shutdown(socket.SHUT_WR)
        read_to_the_end(stranger)
    assert bytes(channel.call("/echo", (b"fine",), 10.0)) == b"fine"


@pytest.mark.parametrize("length", [1 << 63, 5])
def test_a_frame_that_is_none_ends_its_connection_only(listener, channel, length):
    sock = socket.create_connection(("127.0.0.1", listener.endpoint.port), timeout=10)
    assert greet(sock, listener.endpoint.token, new_connection_id(), 0)
    mark = lanes._MARK if length > 5 else 0
    sock.sendall(frame(1, mark=mark, length=length))
    read_to_the_end(sock)
    sock.close()
    assert bytes(channel.call("/echo", (b"fine",), 10.0)) == b"fine"


def test_half_a_frame_harms_nobody(listener, channel):
    with socket.create_connection(("127.0.0.1", listener.endpoint.port), timeout=10) as sock:
        assert greet(sock, listener.endpoint.token, new_connection_id(), 0)
        sock.sendall(frame(1, bytes(10), length=1_000_000))
    assert bytes(channel.call("/echo", (b"fine",), 10.0)) == b"fine"


def test_another_incarnation_behind_the_same_port_is_noticed(listener):
    former = listener.endpoint._replace(token=bytes(32))
    with pytest.raises(errors.UnavailableError, match="another task answers there"):
        Channel(former, "127.0.0.1", TASK)


def test_nobody_behind_the_port_is_unavailable(listener):
    (port,) = free_ports(1)
    with pytest.raises(errors.UnavailableError, match="no channel"):
        Channel(Endpoint("dtf-nobody", port, bytes(32)), "127.0.0.1", TASK)


def test_a_lane_that_nobody_empties_is_cut_off(monkeypatch):
    monkeypatch.setattr(lanes, "WAITING_FRAMES_MAX", 3)
    here, there = socket.socketpair()
    reasons = []
    lane = Lane(here, lambda *_: None, reasons.append)
    lane.send(lanes.REQUEST, 0, 0, 1, (bytes(50_000_000),))
    for call_id in range(5):
        lane.send(lanes.REQUEST, 0, 0, call_id)
    assert reasons == ["3 messages wait for it"]
    lane.read()
    there.close()


def test_a_buffer_filled_to_its_last_byte_is_not_the_end_of_the_connection():
    """The thread that handles a frame leaves the lane each time, so the frames end where the buffer ends."""
    here, there = socket.socketpair()
    calls, reasons = [], []

    def on_frame(lane, kind, flags, number, call_id, body):
        calls.append(call_id)
        lane.leave()

    lane = Lane(here, on_frame, reasons.append)
    one = lanes._SCRATCH_BYTES // 64
    with there:
        for call_id in range(200):
            there.sendall(frame(call_id, bytes(one - lanes._HEADER.size)))
            lane.read()
    assert (calls, reasons) == (list(range(200)), [])


# -- beside gRPC


class SlowToClose:
    """A socket whose shutdown returns only when its reading thread has seen the end."""

    def __init__(self, sock, has_ended):
        self._sock, self._has_ended = sock, has_ended

    def __getattr__(self, name):
        return getattr(self._sock, name)

    def shutdown(self, how):
        self._sock.shutdown(how)
        wait_until(self._has_ended, "the end of reading")


def test_a_lane_closed_by_a_writer_reports_its_loss_though_its_reader_ends_first():
    """Otherwise the listener keeps the peer for ever, and the calls of the peer go on."""
    here, there = socket.socketpair()
    reasons = []
    lane = Lane(SlowToClose(here, lambda: lane._on_lost is lanes._nothing), lambda *_: None, reasons.append)
    lane.begin()
    with there:
        lane.close("its writer failed")
    assert reasons == ["its writer failed"]


class FakeWorker:
    """Answers what the test puts into it."""

    def __init__(self, incarnation=1):
        self.incarnation = incarnation
        self.parked = {}
        self.arrived = threading.Semaphore(0)

    def get_status(self, timeout_s=None):
        return [Device(f"{TASK}/device:CPU:0", incarnation=self.incarnation)]

    def recv_tensor(self, step_id, key, done):
        self.parked[key] = done
        self.arrived.release()
        return lambda: done(error=errors.CancelledError.of("cancelled"))

    def deregister_graph(self, session, handle):
        raise errors.AbortedError.of(f"Graph handle is not found: {handle}")

    def cleanup_all(self, containers):
        raise errors.UnavailableError.of("a peer of mine is away")


def serve(address, worker):
    service = Service(address, TASK, None, worker)
    service.start()
    return service


@pytest.fixture(params=["channel", "grpc"])
def remote(request):
    worker = FakeWorker()
    service = serve("127.0.0.1:0", worker)
    address = f"127.0.0.1:{service.port}"
    kind = discovery.DiscoveringConnection if request.param == "channel" else Connection
    transport = kind(address, TASK)
    remote = RemoteWorker(transport)
    remote.get_status(10.0)
    assert request.param == "grpc" or transport.channel is not None
    remote.address = address
    yield remote, worker, service
    transport.close()
    service.stop(0)


@pytest.mark.parametrize(
    "value",
    [np.float32(1.5), np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array([b"a", b""], object), np.ones(100_000)],
    ids=["scalar", "matrix", "empty", "strings", "large"],
)
def test_both_ways_carry_the_same_values(remote, value):
    remote, worker, _ = remote
    call = Call()
    remote.recv_tensor(7, "key", call)
    assert worker.arrived.acquire(timeout=10)
    worker.parked["key"](value)
    got = call.wait().value
    np.testing.assert_array_equal(got, value)
    assert np.asarray(got).dtype == np.asarray(value).dtype


def test_both_ways_give_the_same_errors(remote):
    remote, worker, service = remote
    with pytest.raises(errors.AbortedError, match="^Graph handle is not found: g$"):
        remote.deregister_graph("s", "g")
    with pytest.raises(errors.UnavailableError, match=f"^{TASK} at {remote.address}: a peer of mine is away$"):
        remote.cleanup_all([])
    call = Call()
    remote.recv_tensor(7, "key", call)
    assert worker.arrived.acquire(timeout=10)
    service.stop(0)
    assert isinstance(call.wait().error, (errors.UnavailableError, errors.CancelledError))
    with pytest.raises(errors.UnavailableError, match=f"^{TASK} at {remote.address}: "):
        remote.deregister_graph("s", "g")


def test_a_restarted_task_is_found_again():
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    first = serve(address, FakeWorker(incarnation=1))
    transport = discovery.DiscoveringConnection(address, TASK)
    remote = RemoteWorker(transport)
    assert remote.get_status(10.0)[0].incarnation == 1
    former = transport.channel
    first.stop(0)
    with pytest.raises(errors.UnavailableError):
        remote.deregister_graph("s", "g")
    second = serve(address, FakeWorker(incarnation=2))

    def ask():
        for _ in range(100):
            try:
                return remote.get_status(10.0)[0].incarnation
            except errors.UnavailableError:
                threading.Event().wait(0.02)  # gRPC pauses before it connects again
        raise AssertionError("the restarted task does not answer")

    assert ask() == 2
    assert transport.channel is not None and transport.channel is not former
    with pytest.raises(errors.AbortedError, match="^Graph handle is not found: g$"):
        remote.deregister_graph("s", "g")
    transport.close()
    second.stop(0)


def test_the_first_call_of_any_kind_leads_to_the_channel():
    service = serve("127.0.0.1:0", FakeWorker())
    transport = discovery.DiscoveringConnection(f"127.0.0.1:{service.port}", TASK)
    remote = RemoteWorker(transport)
    for _ in range(500):
        with pytest.raises(errors.AbortedError):
            remote.deregister_graph("s", "g")
        if transport.channel is not None:
            break
        threading.Event().wait(0.01)
    assert transport.channel is not None
    transport.close()
    service.stop(0)


def test_the_switch_keeps_everything_on_grpc(monkeypatch):
    monkeypatch.setenv("DTF_CHANNEL", "off")
    service = serve("127.0.0.1:0", FakeWorker())
    transport = discovery.connect(f"127.0.0.1:{service.port}", TASK)
    assert isinstance(transport, Connection)
    assert find_endpoint(transport.call(STATUS, b"", 10.0)) is None
    monkeypatch.delenv("DTF_CHANNEL")
    transport.close()
    transport = discovery.connect(f"127.0.0.1:{service.port}", TASK)
    assert RemoteWorker(transport).get_status(10.0) and transport.channel is None
    transport.close()
    service.stop(0)


# -- peers that play by other rules


@pytest.fixture
def by_hand(listener):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(f"\0{listener.endpoint.unix}")
        assert greet(sock, listener.endpoint.token, new_connection_id(), 0)
        yield sock


def number_of(methods, name):
    return list(methods.table).index(name)


def test_a_call_number_used_twice_must_end_the_peer_and_all_that_it_began(methods, by_hand):
    park = number_of(methods, "/park")
    by_hand.sendall(frame(1, number=park) + frame(1, number=park))
    read_to_the_end(by_hand)
    assert methods.cancelled.wait(60)
    assert len(methods.parked) == 1


def test_what_takes_long_must_end_with_a_caller_that_wants_no_answer(methods):
    listener = Listener("127.0.0.1", TASK)
    listener.start(methods.table, told=["/echo"])
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(f"\0{listener.endpoint.unix}")
            assert greet(sock, listener.endpoint.token, new_connection_id(), 0)
            head = bytearray(frame(1, number=number_of(methods, "/park")))
            head[1] = lanes.NO_REPLY
            sock.sendall(head)
            assert methods.arrived.acquire(timeout=60)
        assert methods.cancelled.wait(60)
    finally:
        listener.stop(0)


@pytest.mark.skipif(sys.platform != "linux", reason="abstract Unix sockets are Linux's")
def test_unfinished_greetings_from_elsewhere_keep_no_process_of_this_host_out(monkeypatch):
    monkeypatch.setattr(listeners, "_STRANGERS_MAX", 2)
    listener = Listener("127.0.0.1", TASK)
    listener.start(Methods().table)
    with contextlib.ExitStack() as stack:
        stack.callback(listener.stop)
        for _ in range(2):
            stack.enter_context(socket.create_connection(("127.0.0.1", listener.endpoint.port)))
        wait_until(lambda: sum(listener._strangers.values()) == 2, "two greetings")
        surplus = stack.enter_context(socket.create_connection(("127.0.0.1", listener.endpoint.port)))
        assert surplus.recv(1) == b""
        local = stack.enter_context(socket.socket(socket.AF_UNIX))
        local.connect("\0" + listener.endpoint.unix)
        assert greet(local, listener.endpoint.token, new_connection_id(), 0)
