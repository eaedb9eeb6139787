"""What goes wrong at a server must leave nothing behind: no steps, tensors, sessions, threads or descriptors."""

from __future__ import annotations

import gc
import os
import threading
import time

import grpc
import numpy as np
import pytest

import dtf as tf
from dtf.channel import receive_buffers
from dtf.server import Server
from dtf.wire import codec, errors
from dtf.wire.pb import config_pb2, master_pb2
from tests.ports import free_ports

ROUNDS = 40
REMOTE = config_pb2.ConfigProto(rpc_options={"use_rpc_for_inprocess_master": True})


@pytest.fixture
def servers():
    ps, worker = (f"127.0.0.1:{port}" for port in free_ports(2))
    cluster = {"ps": [ps], "worker": [worker]}
    with Server(cluster, "ps", 0) as first, Server(cluster, "worker", 0) as second, tf.Graph().as_default():
        yield first, second


def left_behind(servers):
    """What the tasks hold for steps and sessions."""
    workers = [server._worker for server in servers]
    return {
        "running": [len(worker._running) for worker in workers],
        "partial": [len(worker._partial) for worker in workers],
        "steps": [len(worker.rendezvous._steps) for worker in workers],
        "sessions at workers": [len(worker._sessions) for worker in workers],
        "sessions at masters": [len(server._master._sessions) for server in servers],
    }


def settled(measure, wanted, timeout_s=20.0):
    """What `measure` gives when it is `wanted`, or when time is up."""
    deadline = time.monotonic() + timeout_s
    while (found := measure()) != wanted and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def blocking_graph():
    """(a step that waits for ever at the ps, one that fails there, one that succeeds)."""
    x = tf.placeholder(tf.int32, [], name="x")
    with tf.device("/job:ps/task:0"):
        queue = tf.FIFOQueue(1, tf.int32, shared_name="empty")
        wait = tf.add(queue.dequeue(), 0, name="wait")
        fail = tf.floordiv(1, x, name="fail")
    with tf.device("/job:worker/task:0"):
        return tf.identity(wait, name="waits"), tf.identity(fail, name="fails"), tf.add(fail, 1, name="works"), x


class Client:
    """A client by hand, on a connection of its own that it can drop."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)])
        request = master_pb2.CreateSessionRequest(graph_def=tf.get_default_graph().as_graph_def())
        self.handle = master_pb2.CreateSessionResponse.FromString(
            self._call("CreateSession", request).result()
        ).session_handle

    def run(self, fetch):
        request = master_pb2.RunStepRequest(session_handle=self.handle, fetch=[fetch])
        request.feed.add(name="x:0", tensor=codec.array_to_proto(np.int32(1)))
        return self._call("RunStep", request)

    def close_session(self):
        self._call("CloseSession", master_pb2.CloseSessionRequest(session_handle=self.handle)).result()

    def _call(self, method, request):
        return self.channel.unary_unary(f"/tensorflow.MasterService/{method}").future(request.SerializeToString())


def test_hundreds_of_failures_leave_nothing_and_the_server_goes_on(servers):
    waits, fails, works, x = blocking_graph()
    target = servers[1].target

    def troubles():
        with tf.Session(target, config=REMOTE) as session:
            for _ in range(ROUNDS):
                with pytest.raises(errors.InvalidArgumentError):
                    session.run(fails, {x: 0})
                with pytest.raises(errors.InvalidArgumentError):
                    session.run(works)
                with pytest.raises(errors.DeadlineExceededError):
                    session.run(waits, {x: 1}, tf.RunOptions(timeout_in_ms=5))
                handle = session.partial_run_setup([fails, works], [x])
                with pytest.raises(errors.InvalidArgumentError):
                    session.partial_run(handle, works, {x: 0})
                session.partial_run_setup([waits], [x])  # given up at the session's end
                assert session.run(works, {x: 1}) == 2

    troubles()  # what is made once is made now: pools, connections, compiled steps
    clean = {name: [0, 0] for name in left_behind(servers)}
    assert settled(lambda: left_behind(servers), clean) == clean
    threads, files = threading.active_count(), descriptors()
    troubles()
    assert settled(lambda: left_behind(servers), clean) == clean
    assert settled(lambda: threading.active_count() <= threads + 2, True)
    # A connection shares memory from its first large message on, which may come only now. A leak would be one a round.
    assert settled(lambda: descriptors() <= files + ROUNDS // 3, True)


def test_the_step_of_a_client_that_vanishes_is_cancelled(servers):
    blocking_graph()
    clients = [Client(servers[1].target[len("grpc://") :]) for _ in range(10)]
    pending = [client.run("waits:0") for client in clients]
    assert settled(lambda: left_behind(servers)["running"], [10, 10]) == [10, 10]
    for client in clients:
        client.channel.close()
    assert settled(lambda: left_behind(servers)["running"], [0, 0]) == [0, 0]
    assert all(call.done() for call in pending)
    assert settled(lambda: left_behind(servers)["steps"], [0, 0]) == [0, 0]
    servers[1]._master.reset()  # as whoever starts the cluster again does: their sessions go
    assert left_behind(servers)["sessions at workers"] == [0, 0]


def test_sessions_closed_in_mid_run_leave_nothing(servers):
    blocking_graph()
    for _ in range(20):
        client = Client(servers[1].target[len("grpc://") :])
        pending = client.run("waits:0")
        assert settled(lambda: left_behind(servers)["running"], [1, 1]) == [1, 1]
        client.close_session()
        with pytest.raises(grpc.RpcError) as caught:
            pending.result(timeout=10)
        assert caught.value.code() is grpc.StatusCode.CANCELLED
        with pytest.raises(grpc.RpcError) as caught:
            client.run("works:0").result(timeout=10)
        assert caught.value.code() is grpc.StatusCode.ABORTED
        client.channel.close()
    clean = {name: [0, 0] for name in left_behind(servers)}
    assert settled(lambda: left_behind(servers), clean) == clean


def test_what_a_step_was_fed_is_free_when_the_step_has_ended(servers):
    """Not when the garbage collector comes round, nor when somebody looks after the steps in flight the next time."""
    with tf.device("/job:worker/task:0"):
        fed = tf.placeholder(tf.float32, [500_000])
        take = tf.identity(fed).op
    data = np.zeros(500_000, np.float32)
    gc.disable()
    try:
        with tf.Session(servers[1].target, config=REMOTE) as session:
            for _ in range(5):
                session.run(take, {fed: data})
            before = receive_buffers._buffers.kept_bytes
            for _ in range(20):
                session.run(take, {fed: data})
            # One or two more may be in use while the thread that has sent the answer is on its way back.
            assert receive_buffers._buffers.kept_bytes <= before + 2 * data.nbytes * 1.1
    finally:
        gc.enable()


@pytest.mark.parametrize("config", [None, REMOTE], ids=["a session of the server's process", "one over the channel"])
def test_no_step_leaves_anything_to_the_garbage_collector(servers, config):
    """It would stop the task now and then, and large tensors would wait for it."""
    with tf.device("/job:ps/task:0"):
        variable = tf.Variable(tf.zeros([5]))
    with tf.device("/job:worker/task:0"):
        fed = tf.placeholder(tf.float32, [5])
        update = variable.assign_add(fed * variable)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        with tf.Session(servers[1].target, config=config) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(5):  # in which the tasks agree on how the next ones go
                session.run(update, {fed: np.ones(5)})
            for _ in range(3):  # servers of other tests may end meanwhile, but not each time
                gc.collect()
                gc.garbage.clear()
                for _ in range(10):
                    session.run(update, {fed: np.ones(5)})
                gc.collect()
                left = [found for found in gc.garbage if type(found).__module__.startswith("dtf.")]
                if not left:
                    break
            assert left == []
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
