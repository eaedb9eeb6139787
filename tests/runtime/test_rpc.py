"""The gRPC edge: errors as statuses, values in messages, and calls that nobody answers."""

from __future__ import annotations

import socket
import threading

import grpc
import numpy as np
import pytest

from dtf.rpc import messages, status
from dtf.rpc.connection import Connection
from dtf.rpc.peers import Peers
from dtf.rpc.remote import RemoteWorker
from dtf.rpc.service import Service
from dtf.run.interfaces import Device
from dtf.run.kernels import DEAD
from dtf.wire import errors
from dtf.wire.cluster import ClusterSpec
from dtf.wire.pb import worker_pb2
from tests.ports import free_ports

TASK = "/job:worker/replica:0/task:0"


class FakeWorker:
    """Answers what the test puts into it."""

    def __init__(self):
        self.parked = {}
        self.cancelled = threading.Event()
        self.arrived = threading.Event()

    def get_status(self, timeout_s=None):
        return [Device(f"{TASK}/device:CPU:0", incarnation=(1 << 64) - 1)]

    def recv_tensor(self, step_id, key, done):
        self.parked[key] = done
        self.arrived.set()
        return self.cancelled.set

    def cleanup_all(self, containers):
        raise ValueError("a bug in the worker")

    def deregister_graph(self, session_handle, graph_handle):
        error = errors.AbortedError.of(f"{session_handle} was restarted")
        error.derived = True
        raise error


@pytest.fixture
def worker():
    return FakeWorker()


@pytest.fixture
def remote(worker):
    service = Service("127.0.0.1:0", TASK, None, worker)
    service.start()
    connection = Connection(f"127.0.0.1:{service.port}", TASK)
    yield RemoteWorker(connection)
    connection.close()
    service.stop(0)


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


# -- statuses


@pytest.mark.parametrize("code", range(1, 17))
@pytest.mark.parametrize("derived", [False, True])
def test_every_error_survives_the_wire(code, derived):
    error = errors.error_from_code(code, "what happened")
    error.derived = derived
    grpc_code, details, metadata = status.encode(error)
    got = status.decode(grpc_code.value[0], details, metadata)
    assert type(got) is type(error)
    assert got.message == "what happened"
    assert got.derived == (derived or code == errors.CANCELLED)


def test_a_derived_error_is_recognised_by_either_of_its_marks():
    assert status.decode(errors.ABORTED, "[_Derived_]because").derived
    assert status.decode(errors.ABORTED, "[_Derived_]because").message == "because"
    error = errors.AbortedError.of("because")
    error.derived = True
    _, _, metadata = status.encode(error)
    assert status.decode(errors.ABORTED, "because", metadata).derived


def test_a_lost_stream_is_unavailable_whatever_grpc_calls_it():
    assert isinstance(status.decode(errors.UNKNOWN, "Stream removed"), errors.UnavailableError)


def test_a_long_message_is_cut():
    _, details, _ = status.encode(errors.InternalError.of("x" * 10_000))
    assert len(details) < 3200 and details.endswith("[truncated]")


def test_foreign_details_do_no_harm():
    got = status.decode(errors.ABORTED, "because", [("grpc-status-details-bin", b"\xff\xff\xff")])
    assert got.message == "because" and not got.derived


# -- messages


@pytest.mark.parametrize(
    "value",
    [np.float32(1.5), np.arange(6).reshape(2, 3), np.zeros((0, 2)), np.array([b"a", b""], object), np.ones(100_000)],
    ids=["scalar", "matrix", "empty", "strings", "large"],
)
def test_values_in_a_request_are_what_protobuf_itself_would_write(value):
    request = worker_pb2.RunGraphRequest(graph_handle="g", step_id=5)
    field = worker_pb2.RunGraphRequest.SEND_FIELD_NUMBER
    data = messages.joined(messages.with_named_tensors(request, field, [("k", value), ("l", value)]))
    parsed = worker_pb2.RunGraphRequest.FromString(data)
    apart, entries = messages.parse_apart(worker_pb2.RunGraphRequest, field, data)
    for message, sends in ((parsed, parsed.send), (apart, entries)):
        assert (message.graph_handle, message.step_id) == ("g", 5)
        found = messages.named_values(sends)
        for name in ("k", "l"):
            np.testing.assert_array_equal(found[name], value)
            assert np.asarray(found[name]).dtype == np.asarray(value).dtype


def test_a_dead_value_stays_dead():
    assert messages.received_value(messages.joined(messages.recv_tensor_response(DEAD, 1))) is DEAD


# -- calls


def test_devices_keep_all_bits_of_their_incarnation(remote):
    assert remote.get_status(5.0) == [Device(f"{TASK}/device:CPU:0", incarnation=(1 << 64) - 1)]


def test_a_receive_waits_for_its_value(remote, worker):
    call = Call()
    remote.recv_tensor(7, "key", call)
    assert worker.arrived.wait(10)
    worker.parked["key"](np.arange(3))
    assert call.wait().value.tolist() == [0, 1, 2]


def test_a_thousand_waiting_receives_hold_up_nobody(remote, worker):
    def pool():
        return sum(thread.name == "dtf-pool" for thread in threading.enumerate())

    before = pool()
    calls = {f"key{number}": Call() for number in range(1000)}
    for key, call in calls.items():
        remote.recv_tensor(7, key, call)
    assert remote.get_status(10.0)
    while len(worker.parked) < 1000:
        threading.Event().wait(0.01)
    assert pool() < before + 20
    for done in worker.parked.values():
        done(np.float32(1))
    for call in calls.values():
        assert call.wait().value == 1


def test_a_cancelled_receive_is_told_to_the_worker(remote, worker):
    call = Call()
    cancel = remote.recv_tensor(7, "key", call)
    assert worker.arrived.wait(10)
    cancel()
    assert isinstance(call.wait().error, errors.CancelledError)
    assert call.error.derived
    assert worker.cancelled.wait(10)


def test_an_error_keeps_its_class_words_and_mark(remote):
    with pytest.raises(errors.AbortedError, match="^session1 was restarted$") as caught:
        remote.deregister_graph("session1", "graph1")
    assert caught.value.derived


def test_a_bug_in_the_server_is_an_internal_error_and_not_the_end_of_it(remote):
    with pytest.raises(errors.InternalError, match="ValueError: a bug in the worker"):
        remote.cleanup_all([])
    assert remote.get_status(5.0)


def test_a_malformed_request_is_refused_and_harms_nobody(remote):
    call = remote._connection.call
    with pytest.raises(errors.InternalError, match="Malformed RecvTensorRequest"):
        call("/tensorflow.WorkerService/RecvTensor", b"\xff\xff\xff\xff", 5.0)
    with pytest.raises(errors.UnimplementedError):
        call("/tensorflow.WorkerService/NoSuchMethod", b"", 5.0)
    assert remote.get_status(5.0)


def test_a_waiting_call_fails_at_once_when_the_server_stops(worker):
    service = Service("127.0.0.1:0", TASK, None, worker)
    service.start()
    connection = Connection(f"127.0.0.1:{service.port}", TASK)
    call = Call()
    RemoteWorker(connection).recv_tensor(1, "key", call)
    assert worker.arrived.wait(10)
    service.stop(0)
    assert isinstance(call.wait().error, (errors.UnavailableError, errors.CancelledError))
    connection.close()


def test_a_closed_connection_is_unavailable(worker):
    remote = RemoteWorker(Connection("127.0.0.1:1", TASK))
    remote._connection.close()
    with pytest.raises(errors.UnavailableError, match="this process has closed the connection"):
        remote.get_status(5.0)
    call = Call()
    remote.recv_tensor(1, "key", call)
    assert isinstance(call.wait().error, errors.UnavailableError)
    remote.cleanup_graph(1)


def test_nobody_there_is_unavailable_and_names_task_and_address():
    (port,) = free_ports(1)
    connection = Connection(f"127.0.0.1:{port}", TASK)
    with pytest.raises(errors.UnavailableError, match=f"{TASK} at 127.0.0.1:{port}: connection refused"):
        RemoteWorker(connection).get_status(5.0)
    connection.close()


def test_a_host_name_that_does_not_resolve_is_unavailable_and_said_so():
    connection = Connection("no-such-host.invalid:2222", TASK)
    with pytest.raises(errors.UnavailableError, match="the host name does not resolve"):
        RemoteWorker(connection).get_status(5.0)
    connection.close()


def test_a_port_that_answers_something_else_is_told_by_its_words():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def greet():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                with peer:
                    peer.sendall(b"SSH-2.0-OpenSSH_9.9\r\n")

        threading.Thread(target=greet, daemon=True).start()
        connection = Connection(f"127.0.0.1:{listener.getsockname()[1]}", TASK)
        with pytest.raises(errors.FailedPreconditionError, match="answered 'SSH-2.0-OpenSSH_9.9'"):
            RemoteWorker(connection).get_status(5.0)
        connection.close()
        listener.shutdown(socket.SHUT_RDWR)


def test_another_grpc_server_is_told_apart():
    class Nothing(grpc.GenericRpcHandler):
        def service(self, handler_call_details):
            return None

    from concurrent import futures

    pool = futures.ThreadPoolExecutor(1)
    other = grpc.server(pool, handlers=[Nothing()])
    port = other.add_insecure_port("127.0.0.1:0")
    other.start()
    connection = Connection(f"127.0.0.1:{port}", TASK)
    with pytest.raises(errors.FailedPreconditionError, match="does not speak TensorFlow's protocol"):
        RemoteWorker(connection).get_status(5.0)
    connection.close()
    other.stop(0).wait()
    pool.shutdown()


# -- peers


def test_peers_are_the_tasks_of_the_cluster_and_connect_only_when_called(worker):
    peers = Peers(ClusterSpec({"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}), TASK, worker)
    assert peers.names == ("/job:ps/replica:0/task:0", TASK)
    assert peers.worker(TASK) is worker
    assert peers.worker(peers.names[0]) is peers.worker(peers.names[0])
    with pytest.raises(errors.InvalidArgumentError, match="has no task /job:ps/replica:0/task:9"):
        peers.worker("/job:ps/replica:0/task:9")
    peers.close()
