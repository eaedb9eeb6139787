"""Strangers at the sockets of a real server, beside an honest client whose every step must be right.

    python -m tests.fuzz.sockets [--frames N] [--requests N] [--seed S] [--tls]

The server is a process of its own. Mutated requests come over gRPC and as frames over the channel's sockets, with the
greeting of a peer or without one. Afterwards the server must be at rest: no more threads and descriptors than after the
first inputs, and not much more memory.

An unauthenticated peer may end the sessions of others, as at TensorFlow's servers (Reset, CleanupAll, a master that has
restarted, CloseSession with the handle). So strangers do not send these methods here, and know no handle but their own.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np

import dtf as tf
from dtf.channel import lane
from dtf.channel.endpoint import Endpoint, find_endpoint, greet, new_connection_id
from dtf.wire import credentials, errors
from dtf.wire.pb import master_pb2
from tests.fuzz import mutate
from tests.fuzz.targets import server as targets
from tests.runtime.channel_frames import frame

ROOT = Path(__file__).resolve().parents[2]
KEPT_OUT = ("Reset", "CleanupAll", "CreateWorkerSession", "CloseSession")
"""What may rightly end the honest client's session: as at TensorFlow's servers, any peer may end sessions."""

CREATE_SESSION, CLOSE_SESSION = "/tensorflow.MasterService/CreateSession", "/tensorflow.MasterService/CloseSession"
SESSION_USES = 1000
IN_FLIGHT = 32
ANSWER_S = 5.0
REST_S = 60.0
MORE_THREADS, MORE_DESCRIPTORS, MORE_BYTES = 24, 24, 128 << 20


@dataclass(frozen=True)
class Load:
    threads: int
    descriptors: int
    resident_bytes: int


@dataclass
class Report:
    requests: int = 0
    frames: int = 0
    connections: int = 0
    steps: int = 0
    wrong: tuple[str, ...] = ()
    before: Load | None = None
    after: Load | None = None

    def __str__(self) -> str:
        return (
            f"{self.requests} requests, {self.frames} frames over {self.connections} connections, "
            f"{self.steps} honest steps, {len(self.wrong)} wrong\nbefore {self.before}\nafter  {self.after}"
        )


def serve() -> None:
    server = tf.train.Server.create_local_server()
    print(server.target, flush=True)
    sys.stdin.read()
    server.stop()


def campaign(requests: int, frames: int, seed: int = 1, tls: dict[str, str] | None = None) -> Report:
    """`tls` are the variables of the server and of the client, with which both speak TLS."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="dtf-fuzz-"))
        log = stack.enter_context(open(Path(folder) / "log", "w+b"))
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.sockets", "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, **(tls or {}), "PYTHONPATH": f"{ROOT / 'runtime'}{os.pathsep}{ROOT}"},
            cwd=ROOT,
        )
        assert process.stdin is not None and process.stdout is not None
        try:
            target = process.stdout.readline().decode().strip()
            if not target:
                log.seek(0)
                raise RuntimeError(f"the server does not start:\n{log.read().decode(errors='replace')[-2000:]}")
            return _attack(target, process.pid, requests, frames, seed, tls)
        finally:
            process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()
            process.stdout.close()


def _attack(target: str, pid: int, requests: int, frames: int, seed: int, tls: dict[str, str] | None) -> Report:
    report = Report()
    chance = random.Random(f"sockets {seed}")
    address = target.partition("://")[2]
    known = credentials.from_environment(tls) if tls else None
    channel = _channel(address, known)
    honest = _Honest(target)
    honest.start()
    try:
        status = _call(channel, "/tensorflow.WorkerService/GetStatus", b"")
        endpoint = find_endpoint(status) if status else None
        warm_up = max(20, min(200, requests // 4)), max(20, min(200, frames // 4))
        for is_warm in (False, True):
            share = warm_up if not is_warm else (requests - warm_up[0], frames - warm_up[1])
            report.requests += _requests(channel, chance, share[0])
            if endpoint is not None and endpoint.unix:
                host = address.rpartition(":")[0]
                done, connections = _frames(channel, endpoint, host, known, chance, share[1])
                report.frames += done
                report.connections += connections
            if not is_warm:
                report.before = _load(pid)
    finally:
        channel.close()
        report.steps, report.wrong = honest.stop()
    assert report.before is not None
    deadline = time.monotonic() + REST_S
    while True:
        report.after = _load(pid)
        if not grown(report) or time.monotonic() > deadline:
            return report
        time.sleep(0.2)


def grown(report: Report) -> list[str]:
    """What the server has kept of the strangers."""
    before, after = report.before, report.after
    assert before is not None and after is not None
    found = []
    for name, room in (("threads", MORE_THREADS), ("descriptors", MORE_DESCRIPTORS), ("resident_bytes", MORE_BYTES)):
        if getattr(after, name) > getattr(before, name) + room:
            found.append(f"{name}: {getattr(before, name)} -> {getattr(after, name)}")
    return found


class _Honest(threading.Thread):
    """A client of its own process's side: x + 1 for one x after another, by the runtime's own session."""

    def __init__(self, target: str) -> None:
        super().__init__(name="honest", daemon=True)
        self._target = target
        self._is_stopping = threading.Event()
        self._steps = 0
        self._wrong: list[str] = []

    def run(self) -> None:
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, [3])
            total = tf.Variable(0.0)
            y, added = x + 1.0, total.assign_add(1.0)
            with tf.Session(self._target) as session:
                session.run(tf.global_variables_initializer())
                while not self._is_stopping.is_set():
                    value = np.float32([self._steps, 2, 3])
                    try:
                        result, count = session.run([y, added], {x: value})
                    except errors.OpError as error:
                        self._wrong.append(f"step {self._steps}: {type(error).__name__}: {error.message}")
                        return
                    self._steps += 1
                    if not np.array_equal(result, value + 1) or count != self._steps:
                        self._wrong.append(f"step {self._steps}: {result} and {count}")

    def stop(self) -> tuple[int, tuple[str, ...]]:
        self._is_stopping.set()
        self.join(60)
        if self.is_alive():
            self._wrong.append("the honest client hangs")
        return self._steps, tuple(self._wrong)


def _channel(address: str, known: Any) -> grpc.Channel:
    options = [("grpc.max_receive_message_length", -1)]
    if known is None:
        return grpc.insecure_channel(address, options)
    credentials_of_grpc = grpc.ssl_channel_credentials(known.ca, known.key, known.certificate)
    return grpc.secure_channel(address, credentials_of_grpc, options)


def _call(channel: grpc.Channel, name: str, request: bytes) -> bytes:
    try:
        return channel.unary_unary(name)(request, timeout=ANSWER_S)
    except grpc.RpcError:
        return b""


def _examples() -> list[tuple[str, Any]]:
    """The requests that are mutated: of every method that ends nobody else's session."""
    return [each for each in targets.requests() if not each[0].endswith(KEPT_OUT)]


class _Session:
    """A session of the strangers' own, in which their requests reach further than the look at its handle. It is made
    anew now and then, and with it goes what they leave in one: partial runs, callables, graphs.
    """

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel
        self._uses = 0
        self._handle = b""

    def handle(self) -> bytes:
        if self._uses % SESSION_USES == 0:
            self.close()
            request = next(each for name, each in targets.requests() if name.endswith("/CreateSession"))
            answer = _call(self._channel, CREATE_SESSION, request.SerializeToString())
            self._handle = _opened(answer).encode()
        self._uses += 1
        return self._handle

    def close(self) -> None:
        _close(self._channel, self._handle.decode())


def _opened(answer: bytes) -> str:
    return master_pb2.CreateSessionResponse.FromString(answer).session_handle


def _close(channel: grpc.Channel, handle: str) -> None:
    if handle:
        _call(channel, CLOSE_SESSION, master_pb2.CloseSessionRequest(session_handle=handle).SerializeToString())


def _requests(channel: grpc.Channel, chance: random.Random, count: int) -> int:
    """Sends so many, IN_FLIGHT at a time: some wait for what never comes, until their time is over."""
    examples = [each for each in _examples() if "/dtf." not in each[0]]
    own = _Session(channel)
    waiting: collections.deque[tuple[str, Any]] = collections.deque()

    def finish() -> None:
        name, call = waiting.popleft()
        with contextlib.suppress(grpc.RpcError):
            answer = call.result()
            if name == CREATE_SESSION:
                _close(channel, _opened(answer))

    for _ in range(count):
        name, request = targets.parted(targets.mutated_request(chance, examples), 2)
        text, data = name.decode(), request.replace(targets.HANDLE, own.handle())
        waiting.append((text, channel.unary_unary(text).future(data, timeout=0.5)))
        if len(waiting) >= IN_FLIGHT:
            finish()
    while waiting:
        finish()
    own.close()
    return max(0, count)


def _frames(
    channel: grpc.Channel, endpoint: Endpoint, host: str, known: Any, chance: random.Random, count: int
) -> tuple[int, int]:
    """(frames, connections). One connection takes frames until the server ends it."""
    examples = _examples()
    own = _Session(channel)
    done = connections = 0
    while done < count:
        connections += 1
        try:
            with _connected(chance, endpoint, host, known) as sock:
                if chance.random() < 0.1:
                    done += 1
                    sock.sendall(mutate.of_bytes(chance, bytes(40)))
                    continue
                if not greet(sock, endpoint.token, new_connection_id(), 0):
                    raise RuntimeError("the server refuses a peer that knows the token")
                names = _welcomed(sock)
                sent = bytearray()
                for _ in range(50):
                    sent += _mutated_frame(chance, examples, names, own.handle())
                    done += 1
                for piece in _pieces(_without_resets(sent, names)):
                    sock.sendall(piece)
        except OSError:
            continue
    own.close()
    return done, connections


def _connected(chance: random.Random, endpoint: Endpoint, host: str, known: Any) -> Any:
    """A connection to the channel: mostly over its Unix socket, else over TCP, with TLS where the cluster has it."""
    if chance.random() < 0.8:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.settimeout(5)
        sock.connect(f"\0{endpoint.unix}")
        return sock
    tcp = socket.create_connection((host, endpoint.port), 5)
    if known is None:
        return tcp
    return known.client_context.wrap_socket(tcp, server_hostname=host)


def _welcomed(sock: Any) -> list[str]:
    """The names of the methods, in the order of their numbers: the first frame of the server has them."""
    head = _received(sock, lane._HEADER.size)
    return _received(sock, lane._HEADER.unpack(head)[-1]).decode().split("\n")


def _received(sock: Any, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = sock.recv(size - len(data))
        if not piece:
            raise ConnectionError("the server ended the connection")
        data += piece
    return data


_FRAMES = targets.frames()


def _mutated_frame(chance: random.Random, examples: list[Any], names: list[str], handle: bytes) -> bytes:
    """A frame of a mutated request, or one of any kind, itself mutated now and then."""
    call_id = chance.randrange(1, 64)
    kind = chance.random()
    if kind < 0.6:
        name, request = targets.parted(targets.mutated_request(chance, examples), 2)
        body = request.replace(targets.HANDLE, handle)
        data = frame(call_id, body, targets.REQUEST, names.index(name.decode()))
    elif kind < 0.8:
        data = frame(call_id, b"", lane.CANCEL)
    else:
        data = chance.choice(_FRAMES)
    return mutate.of_bytes(chance, data, _FRAMES) if chance.random() < 0.1 else data


def _without_resets(data: bytearray, names: list[str]) -> bytes:
    """What the server will read as frames, with the methods that are KEPT_OUT, or leave sessions behind that nobody
    can close, replaced by one that it does not have.
    """
    at = 0
    while at + lane._HEADER.size <= len(data):
        kind, _, number, mark, _, length = lane._HEADER.unpack_from(data, at)
        if mark != lane._MARK:
            break
        is_request = kind & ~lane.IN_MEMORY == targets.REQUEST and number < len(names)
        if is_request and names[number].endswith((*KEPT_OUT, "/CreateSession")):
            data[at + 2 : at + 4] = (0xFFFF).to_bytes(2, "little")
        at += lane._HEADER.size + length
    return bytes(data)


def _pieces(data: bytes) -> Iterator[bytes]:
    """As they may come over a network."""
    half = len(data) // 2
    yield data[:half]
    yield data[half:]


def _load(pid: int) -> Load:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    return Load(int(status["Threads"]), len(os.listdir(f"/proc/{pid}/fd")), int(status["VmRSS"].split()[0]) << 10)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.sockets", description=__doc__)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tls", action="store_true")
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    variables: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.tls:
            from tests.certificates import environment

            variables = environment(Path(folder), hosts=("localhost", "127.0.0.1"))
            os.environ.update(variables)
        report = campaign(options.requests, options.frames, options.seed, variables)
    print(report)
    found = [*report.wrong, *grown(report)]
    print("\n".join(found) or "nothing was wrong, nothing has grown")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
