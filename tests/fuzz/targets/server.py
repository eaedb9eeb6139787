"""What a server is sent: graphs, requests of all methods, frames of the channel. In this process, without a network."""

from __future__ import annotations

import contextlib
import functools
import random
import re
import socket
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

import dtf as tf
from dtf.channel.lane import REQUEST, Lane
from dtf.channel.listener import Answer
from dtf.rpc import push
from dtf.wire import errors
from dtf.wire.pb import graph_pb2, master_pb2, push_pb2, worker_pb2
from tests.fuzz import mutate
from tests.fuzz.harness import Target
from tests.fuzz.targets.files import joined, parted
from tests.runtime.channel_frames import frame
from tests.runtime.graphs import GraphBuilder

PATIENCE_S = 1.0
"""How long a request may wait for what never comes before its client goes away."""

HANDLE = b"0123456789abcdef"
"""Stands in requests for the session's handle, which is another in each process."""

TOUCHES_FILES = re.compile(r"File|Save|Restore|Checkpoint|Writer|Reader|Dump|Print|Abort|Merge.*Checkpoint|PyFunc")
STEP_MS = 800
WRAPPED = re.compile(r"\w*(Error|Exception|Exit|Iteration|Interrupt)\b")
"""How the message of an answer begins that wraps any other exception."""


class Inside(Exception):
    """A mistake of the server's own came out as an answer."""


@functools.cache
def service() -> tuple[Any, dict[str, Any]]:
    """A server that nobody else reaches, and its methods by name."""
    server = tf.train.Server.create_local_server(start=False)
    return server, {**server._service._methods, **server._service._push_methods}


def stop() -> None:
    """Ends the server of this process, if there is one."""
    if service.cache_info().currsize:
        service()[0].stop()
        service.cache_clear()
        session.cache_clear()


def ask(name: str, request: bytes) -> bytes:
    """The answer. Raises its OpError; one that wraps another exception is Inside."""
    done = threading.Event()
    result: list[Any] = []

    def reply(pieces: Any, error: errors.OpError | None) -> None:
        result.append((b"".join(bytes(piece) for piece in pieces), error))
        done.set()

    answer = Answer(reply)
    service()[1][name](request, answer)
    if not done.wait(PATIENCE_S):
        # The client goes away; what it has asked for must end.
        answer.cancel()
        return b""
    data, error = result[0]
    if isinstance(error, errors.InternalError) and WRAPPED.match(error.message):
        raise Inside(error.message)
    if error is not None:
        raise error
    return data


# -- graphs


@functools.cache
def graphs() -> list[bytes]:
    """Of the op cases, each with its inputs as constants; the last node is what is asked for."""
    from tests.runtime.op_cases import all_cases
    from tests.runtime.test_ops import build

    found = []
    for case in all_cases():
        if case.run is not None or TOUCHES_FILES.search(case.op):
            continue
        try:
            graph = tf.Graph()
            placeholders, _, values = build(case, graph)
        except Exception:
            continue
        graph_def = graph.as_graph_def()
        nodes = {node.name: node for node in graph_def.node}
        for placeholder, value in zip(placeholders, values, strict=True):
            node = nodes[placeholder.op.name]
            dtype = node.attr["dtype"].type
            node.op = "Const"
            node.attr.clear()
            node.attr["dtype"].type = dtype
            node.attr["value"].tensor.CopyFrom(tf.make_tensor_proto(value, dtype))
        found.append(graph_def.SerializeToString(deterministic=True))
    return found


def mutated_graph(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    graph_def = graph_pb2.GraphDef.FromString(chance.choice(examples))
    if chance.random() < 0.1:
        other = graph_pb2.GraphDef.FromString(chance.choice(examples))
        graph_def.node.extend(other.node)
    mutate.of_message(chance, graph_def)
    return graph_def.SerializeToString(deterministic=True)


def read_graph(data: bytes) -> None:
    """Registers the graph, then makes a session of it and runs its last node."""
    graph_def = graph_pb2.GraphDef.FromString(data)
    worker_request = worker_pb2.RegisterGraphRequest(graph_def=graph_def)
    refused: errors.OpError | None = None
    try:
        key = worker_pb2.RegisterGraphResponse.FromString(
            ask("/tensorflow.WorkerService/RegisterGraph", worker_request.SerializeToString())
        ).graph_handle
        request = worker_pb2.DeregisterGraphRequest(graph_handle=key)
        ask("/tensorflow.WorkerService/DeregisterGraph", request.SerializeToString())
    except errors.OpError as error:
        refused = error
    created = ask(
        "/tensorflow.MasterService/CreateSession",
        master_pb2.CreateSessionRequest(graph_def=graph_def).SerializeToString(),
    )
    handle = master_pb2.CreateSessionResponse.FromString(created).session_handle
    try:
        if graph_def.node:
            step = master_pb2.RunStepRequest(session_handle=handle, target=[graph_def.node[-1].name])
            step.fetch.append(f"{graph_def.node[-1].name}:0")
            step.options.timeout_in_ms = STEP_MS
            ask("/tensorflow.MasterService/RunStep", step.SerializeToString())
    finally:
        close = master_pb2.CloseSessionRequest(session_handle=handle)
        ask("/tensorflow.MasterService/CloseSession", close.SerializeToString())
    if refused is not None:
        raise refused


def read_import(data: bytes) -> None:
    with tf.Graph().as_default():
        tf.import_graph_def(graph_pb2.GraphDef.FromString(data), name="")


# -- requests


@functools.cache
def session() -> bytes:
    """The handle of a session with a variable, a placeholder and a sum."""
    request = master_pb2.CreateSessionRequest(graph_def=_small_graph())
    data = ask("/tensorflow.MasterService/CreateSession", request.SerializeToString())
    return master_pb2.CreateSessionResponse.FromString(data).session_handle.encode()


def _small_graph() -> Any:
    g = GraphBuilder()
    x = g.node("Placeholder", name="x", dtype=tf.float32)
    c = g.const(np.float32([1, 2]), name="c")
    g.node("AddV2", x, c, name="y", T=tf.float32)
    return g.graph_def


def requests() -> list[tuple[str, Any]]:
    master, worker = "/tensorflow.MasterService/", "/tensorflow.WorkerService/"
    handle, graph_def = HANDLE.decode(), _small_graph()
    step = master_pb2.RunStepRequest(session_handle=handle, fetch=["y:0"])
    step.feed.add(name="x:0").tensor.CopyFrom(tf.make_tensor_proto(np.float32([3, 4])))
    step.options.timeout_in_ms = STEP_MS
    make = master_pb2.MakeCallableRequest(session_handle=handle)
    make.options.feed.append("x:0")
    make.options.fetch.append("y:0")
    call = master_pb2.RunCallableRequest(session_handle=handle, handle=1)
    call.feed.add().CopyFrom(tf.make_tensor_proto(np.float32([3, 4])))
    run = worker_pb2.RunGraphRequest(session_handle=handle, graph_handle="1", step_id=7)
    run.send.add(name="x:0").tensor.CopyFrom(tf.make_tensor_proto(np.float32([3, 4])))
    run.recv_key.append("y:0")
    key = "/job:local/replica:0/task:0/device:CPU:0;0000000000000001;/job:local/replica:0/task:0/device:CPU:0;k;0:0"
    group = worker_pb2.CompleteGroupRequest(group_key=1, group_size=1, device_type="CPU")
    partial = master_pb2.PartialRunSetupRequest(session_handle=handle, feed=["x:0"], fetch=["y:0"])
    isolated = worker_pb2.CreateWorkerSessionRequest(session_handle="w", isolate_session_state=True)
    prepare = push_pb2.PushPrepareRequest(session_handle=handle)
    return [
        (master + "CreateSession", master_pb2.CreateSessionRequest(graph_def=graph_def)),
        (master + "ExtendSession", master_pb2.ExtendSessionRequest(session_handle=handle, graph_def=graph_def)),
        (master + "RunStep", step),
        (master + "PartialRunSetup", partial),
        (master + "ListDevices", master_pb2.ListDevicesRequest(session_handle=handle)),
        (master + "MakeCallable", make),
        (master + "RunCallable", call),
        (master + "ReleaseCallable", master_pb2.ReleaseCallableRequest(session_handle=handle, handle=3)),
        (master + "Reset", master_pb2.ResetRequest(container=["nobody"])),
        (worker + "GetStatus", worker_pb2.GetStatusRequest()),
        (worker + "CreateWorkerSession", isolated),
        (worker + "DeleteWorkerSession", worker_pb2.DeleteWorkerSessionRequest(session_handle="w")),
        (worker + "RegisterGraph", worker_pb2.RegisterGraphRequest(session_handle=handle, graph_def=graph_def)),
        (worker + "DeregisterGraph", worker_pb2.DeregisterGraphRequest(session_handle=handle, graph_handle="1")),
        (worker + "RunGraph", run),
        (worker + "CleanupGraph", worker_pb2.CleanupGraphRequest(step_id=7)),
        (worker + "CleanupAll", worker_pb2.CleanupAllRequest(container=["nobody"])),
        (worker + "RecvTensor", worker_pb2.RecvTensorRequest(step_id=7, rendezvous_key=key)),
        (worker + "Logging", worker_pb2.LoggingRequest()),
        (worker + "GetStepSequence", worker_pb2.GetStepSequenceRequest(graph_key=[1])),
        (worker + "CompleteGroup", group),
        (push.PREPARE, prepare),
        (push.RUN, bytes(32)),
        (push.PUSH, bytes(48)),
        (push.RUN_CALLABLE, bytes(32)),
    ]  # fmt: skip


def mutated_request(chance: random.Random, examples: Sequence[tuple[str, Any]]) -> bytes:
    name, request = chance.choice(examples)
    if isinstance(request, bytes):
        data = mutate.of_bytes(chance, request)
    else:
        message = type(request).FromString(request.SerializeToString())
        mutate.of_message(chance, message)
        data = message.SerializeToString(deterministic=True)
        if chance.random() < 0.1:
            data = mutate.of_bytes(chance, data)
    return joined([name.encode(), data])


def read_request(data: bytes) -> None:
    name, request = parted(data, 2)
    handle = session()
    try:
        answer = ask(name.decode(), request.replace(HANDLE, handle))
    except errors.AbortedError:
        # It may have been ended, for nobody holds it.
        session.cache_clear()
        raise
    if name.endswith(b"/CreateSession"):
        opened = master_pb2.CreateSessionResponse.FromString(answer).session_handle
        close = master_pb2.CloseSessionRequest(session_handle=opened)
        ask("/tensorflow.MasterService/CloseSession", close.SerializeToString())


# -- the channel


def frames() -> list[bytes]:
    status = frame(1, b"", REQUEST, 0)
    large = frame(2, bytes(100_000), REQUEST, 1)
    return [status, status + frame(1, b"x" * 40), frame(3, b"", 4), frame(4, b"", 5), large + status]


def mutated_frames(chance: random.Random, examples: Sequence[bytes]) -> bytes:
    data = b"".join(chance.choice(examples) for _ in range(chance.choice((1, 2, 5))))
    return mutate.of_bytes(chance, data, examples)


def read_frames(data: bytes) -> None:
    """The lane reads the frames of a peer, and what they ask for is done."""
    here, there = socket.socketpair()
    ended = threading.Event()
    lost: list[str] = []
    calls = list(service()[1].values())

    def on_frame(lane: Lane, kind: int, flags: int, number: int, call_id: int, body: Any) -> None:
        if kind == REQUEST and number < len(calls):
            answer = Answer(lambda pieces, error: lane.send(2, 0, 0, call_id, pieces))
            try:
                calls[number](body, answer)
            except errors.OpError:
                pass
            finally:
                answer.cancel()

    lane = Lane(here, on_frame, lost.append, ended.set)
    lane.begin()
    try:
        there.settimeout(10)
        with contextlib.suppress(OSError):
            there.sendall(data)
            there.shutdown(socket.SHUT_WR)
    finally:
        is_over = ended.wait(10)
        there.close()
    if not is_over:
        raise Inside("the lane does not end")
    if "a message failed" in lost:
        raise Inside("a message failed")


TARGETS = (
    Target("graph", graphs, mutated_graph, read_graph, (errors.OpError,)),
    Target("import", graphs, mutated_graph, read_import, (errors.OpError, ValueError, TypeError)),
    Target("request", requests, mutated_request, read_request, (errors.OpError,)),
    Target("channel", frames, mutated_frames, read_frames, (errors.OpError,)),
)
