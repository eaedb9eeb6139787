"""Readiness asked of real servers, ports, commands and files."""

from __future__ import annotations

import asyncio
import math
import os
import socket
import threading
import time
from concurrent import futures

import grpc
import pytest

from dtfctl.probes.get_status import PATH
from dtfctl.probes.probe import Question
from dtfctl.probes.probe import ask as ask_task
from dtfctl.values.plan import Probe
from tests.dtfctl.fakes import plan_of


def ask(kind, address="", target="", age_s=math.inf, folder="/"):
    task = plan_of("program: x\njobs: {worker: 2}", folder).task("worker:1")
    probe = Probe(kind, target, timeout_s=1.0)
    return asyncio.run(ask_task(Question(probe, task, address, {"PATH": os.environ["PATH"]}, age_s)))


@pytest.fixture
def server():
    """A gRPC server whose GetStatus answers with `server.reply`."""

    class Handler(grpc.GenericRpcHandler):
        reply = b""
        unknown = False

        def service(self, details):
            if details.method == PATH and not self.unknown:
                return grpc.unary_unary_rpc_method_handler(lambda request, context: self.reply)
            return None

    handler = Handler()
    server = grpc.server(futures.ThreadPoolExecutor(2), handlers=[handler])
    handler.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield handler
    server.stop(None).wait()


def device(name):
    return b"\x0a\x30\x0a\x2c" + name.encode()


def test_a_server_that_names_its_own_devices_is_ready(server):
    server.reply = device("/job:worker/replica:0/task:1/device:CPU:0")
    assert ask("grpc", server.address) == ""


def test_a_server_without_devices_is_ready_too(server):
    assert ask("grpc", server.address) == ""


def test_another_tasks_server_at_the_address_is_not_taken_for_ours(server):
    server.reply = device("/job:worker/replica:0/task:12/device:CPU:0")
    words = f"{server.address} is used by another task, /job:worker/replica:0/task:12"
    assert ask("grpc", server.address) == words


@pytest.fixture
def deaf_port():
    """A port that takes connections and says nothing that gRPC could understand."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        stop = threading.Event()

        def serve():
            listener.settimeout(0.05)
            kept = []
            while not stop.is_set():
                try:
                    kept.append(listener.accept()[0])
                except TimeoutError:
                    continue
            for connection in kept:
                connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        stop.set()
        thread.join()


def test_a_port_served_by_something_else_is_named_and_the_wait_is_bounded(deaf_port):
    begun = time.monotonic()
    words = ask("grpc", deaf_port)
    assert words == f"{deaf_port} does not answer GetStatus within 1s"
    assert time.monotonic() - begun < 5
    assert ask("tcp", deaf_port) == ""


def test_a_port_that_nobody_serves_is_not_open_yet():
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        assert ask("grpc", address) == ask("tcp", address) == f"{address} is not open yet"


@pytest.mark.parametrize(
    ("command", "words"),
    [("true", ""), ("exit 3", "its command exits with status 3"), ("sleep 5", "its command did not end within 1s")],
)
def test_a_command_tells_by_its_exit_status(command, words):
    assert ask("command", target=command) == words


def test_a_file_must_be_young_enough(tmp_path):
    path = tmp_path / "ready"
    assert ask("file", target=str(path)) == f"the file {path}: No such file or directory"
    path.touch()
    assert ask("file", target=str(path), age_s=60.0) == ""
    os.utime(path, (time.time() - 100, time.time() - 100))
    assert ask("file", target=str(path), age_s=60.0) == f"the file {path} has not been written recently"
    assert ask("file", target=str(path)) == ""


def test_no_probe_is_always_ready():
    assert ask("none") == ""


def test_a_grpc_server_that_does_not_know_the_call_says_so(server):
    task = plan_of("program: x\njobs: {worker: 2}").task("worker:1")
    server.unknown = True
    question = Question(Probe("grpc", timeout_s=1.0), task, server.address)
    assert asyncio.run(ask_task(question)) == f"{server.address} is open but does not answer GetStatus: the call fails"


@pytest.mark.parametrize("says", [b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 200, b"\x00" * 50, b""])
def test_what_speaks_something_else_is_told_apart(says):
    async def scenario():
        async def answer(reader, writer):
            await reader.read(10)
            writer.write(says)
            writer.close()

        listener = await asyncio.start_server(answer, "127.0.0.1", 0)
        address = f"127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        task = plan_of("program: x\njobs: {worker: 2}").task("worker:1")
        async with listener:
            words = await ask_task(Question(Probe("grpc", timeout_s=1.0), task, address))
        assert words.startswith(f"{address} is open but does not answer GetStatus: ")

    asyncio.run(scenario())


def test_a_large_answer_over_many_frames_is_read_whole(server):
    server.reply = device("/job:worker/replica:0/task:0/device:CPU:0") * 400 + device("/job:worker/replica:0/task:1/x")
    assert ask("grpc", server.address) == ""
