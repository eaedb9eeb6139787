"""What strangers leave in a server is freed at once, not when the cyclic garbage collector comes."""

from __future__ import annotations

import contextlib
import gc
import socket

import grpc
import pytest

from dtf.channel import lane
from dtf.channel.endpoint import find_endpoint, greet, new_connection_id
from dtf.channel.lane import Lane
from dtf.channel.listener import _Peer
from dtf.server import Server
from tests.runtime.channel_frames import frame
from tests.waiting import wait_until

COUNT = 20


@pytest.fixture
def server():
    server = Server.create_local_server()
    yield server
    server.stop()


@pytest.fixture
def no_collection():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(*kinds: type) -> int:
    return sum(isinstance(each, kinds) for each in gc.get_objects())


@pytest.mark.parametrize("sent", [b"", b"x" * 100, frame(1, number=11), frame(1, b"", lane.PING)],
                         ids=["nothing", "no frame", "a request", "a ping"])  # fmt: skip
def test_a_connection_that_ends_must_leave_nothing(server, no_collection, sent):
    with grpc.insecure_channel(server.target.partition("://")[2]) as channel:
        status = channel.unary_unary("/tensorflow.WorkerService/GetStatus")(b"", wait_for_ready=True, timeout=60)
    endpoint = find_endpoint(status)
    assert endpoint is not None
    before = alive(Lane, _Peer)
    for _ in range(COUNT):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(f"\0{endpoint.unix}")
            assert greet(sock, endpoint.token, new_connection_id(), 0)
            assert sock.recv(1)
            sock.sendall(sent)
    wait_until(lambda: alive(Lane, _Peer) <= before, "the connections are forgotten")


@pytest.mark.parametrize("method", ["RunGraph", "RecvTensor"], ids=["of a graph", "of a tensor"])
def test_a_request_that_fails_must_leave_no_frames(server, no_collection, method):
    from types import FrameType, TracebackType

    with grpc.insecure_channel(server.target.partition("://")[2]) as channel:
        call = channel.unary_unary(f"/tensorflow.WorkerService/{method}")
        for _ in range(3):
            with contextlib.suppress(grpc.RpcError):
                call(b"", timeout=60, wait_for_ready=True)
        before = alive(FrameType, TracebackType)
        for _ in range(COUNT):
            with contextlib.suppress(grpc.RpcError):
                call(b"", timeout=60)
        wait_until(lambda: alive(FrameType, TracebackType) < before + COUNT, "the requests are forgotten")
