"""Strangers at the sockets of a real server, beside an honest client whose every step must be right.

    python -m tests.fuzz.sockets [--frames N] [--requests N] [--seed S] [--tls]

The server is a process of its own. Mutated requests come over gRPC, mutated frames over the channel's Unix socket, with
the greeting of a peer or without one. Afterwards the server must be at rest: no more threads and descriptors than after
the first inputs, and not much more memory.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import numpy as np

import dtf as tf
from dtf.channel.endpoint import find_endpoint, greet, new_connection_id
from dtf.wire import credentials, errors
from tests.fuzz import mutate
from tests.fuzz.targets import server as targets

ROOT = Path(__file__).resolve().parents[2]
KEPT_OUT = ("Reset", "CleanupAll", "CreateWorkerSession", "CloseSession")
"""What may rightly end the honest client's session."""

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
                done, connections = _frames(endpoint, chance, share[1])
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
    if known is None:
        return grpc.insecure_channel(address)
    return grpc.secure_channel(address, grpc.ssl_channel_credentials(known.ca, known.key, known.certificate))


def _call(channel: grpc.Channel, name: str, request: bytes) -> bytes:
    try:
        return channel.unary_unary(name)(request, timeout=ANSWER_S)
    except grpc.RpcError:
        return b""


def _requests(channel: grpc.Channel, chance: random.Random, count: int) -> int:
    examples = [each for each in targets.requests() if not each[0].endswith(KEPT_OUT) and "/dtf." not in each[0]]
    for _ in range(count):
        name, request = targets.parted(targets.mutated_request(chance, examples), 2)
        with contextlib.suppress(grpc.RpcError):
            channel.unary_unary(name.decode())(request, timeout=0.5)
    return max(0, count)


def _frames(endpoint: Any, chance: random.Random, count: int) -> tuple[int, int]:
    """(frames, connections). One connection takes frames until the server ends it."""
    examples = targets.frames()
    done = connections = 0
    while done < count:
        connections += 1
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(5)
            try:
                sock.connect(f"\0{endpoint.unix}")
                if chance.random() < 0.1:
                    sock.sendall(mutate.of_bytes(chance, bytes(40)))
                    done += 1
                    continue
                if not greet(sock, endpoint.token, new_connection_id(), 0):
                    raise RuntimeError("the server refuses a peer that knows the token")
                for _ in range(50):
                    done += 1
                    sock.sendall(_without_resets(chance, examples))
            except OSError:
                done += 1
    return done, connections


def _without_resets(chance: random.Random, examples: list[bytes]) -> bytes:
    """A mutated frame that calls none of the methods that are KEPT_OUT: those of high numbers only ping and cancel."""
    data = bytearray(mutate.of_bytes(chance, chance.choice(examples), examples))
    if len(data) >= 4 and data[0] & 0x7F == targets.REQUEST:
        data[2:4] = (0xFFFF).to_bytes(2, "little")
    return bytes(data)


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
