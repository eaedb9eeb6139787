"""A server must not grow under clients that vanish in the middle of their steps."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.ports import free_ports

WAVES, CLIENTS = 3, 20
KINDS = (0, 1, 0, 1, 2)
"""Of five clients one keeps the server busy."""

GROWTH_MB_MAX = 15.0
END_S_MAX = 60.0

_SERVER = """
import gc, json, sys
import psutil
import dtf as tf
server = tf.train.Server(json.loads(sys.argv[1]), sys.argv[2], 0)
print(flush=True)
for _ in sys.stdin:
    sessions = {*server._master._sessions, *server._worker._sessions}
    used = psutil.Process().memory_full_info()
    counts = {"sessions": len(sessions), "steps": len(server._worker._running), "mb": used.uss / 1e6}
    print(json.dumps({**counts, "threads": psutil.Process().num_threads()}), flush=True)
"""

_CLIENTS = """
import os, sys
import numpy as np
import dtf as tf

def be_client(kind):
    with tf.device("/job:ps/task:0"):
        total = tf.Variable(np.zeros(1 << 18, np.float32), name="total")
        queue = tf.FIFOQueue(10, tf.int32, name="queue", shared_name="queue")
        fed = tf.placeholder(tf.float32, [1 << 18])
        push = total.assign_add(fed)
        wait = tf.group(queue.dequeue(), push)
        with tf.control_dependencies([push]):
            spin = tf.while_loop(lambda i: i >= 0, lambda i: (i + 1) % 1000, [tf.constant(0)])
    session = tf.Session(sys.argv[1])
    session.run(total.initializer)
    value = np.ones(1 << 18, np.float32)
    session.run(push, {fed: value})
    os.write(1, b"ready\\n")
    while True:
        session.run([push, wait, spin][kind], {fed: value})

for line in sys.stdin:  # each number is the kind of a client, which is a fork and so starts fast
    pid = os.fork()
    if pid == 0:
        be_client(int(line))
    os.write(1, b"%d\\n" % pid)
"""


class Server:
    def __init__(self, cluster, job):
        environment = {**os.environ, "DTF_CLIENT_GRACE_S": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, json.dumps(cluster), job],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process.stdout.readline()

    def look(self):
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self):
        self._process.kill()
        self._process.communicate()


def wait_until(condition, what, timeout_s):
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"{what}: {condition()}"
        time.sleep(0.1)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_sixty_clients_that_are_killed_in_mid_step_leave_no_step_no_session_and_no_memory():
    ports = free_ports(2)
    cluster = {job: [f"127.0.0.1:{port}"] for job, port in zip(("ps", "worker"), ports, strict=True)}
    servers = [Server(cluster, job) for job in cluster]
    command = [sys.executable, "-c", _CLIENTS, f"grpc://127.0.0.1:{ports[1]}"]
    clients = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        looks = []
        for _ in range(WAVES):
            for number in range(CLIENTS):
                clients.stdin.write(f"{KINDS[number % len(KINDS)]}\n")
            clients.stdin.flush()
            lines = [clients.stdout.readline().strip() for _ in range(2 * CLIENTS)]
            assert lines.count("ready") == CLIENTS
            wait_until(lambda: servers[0].look()["steps"] >= 3 * CLIENTS // 5, "steps that do not end", 60)
            for pid in set(lines) - {"ready"}:
                os.kill(int(pid), signal.SIGKILL)
            for server in servers:
                gone = {"sessions": 0, "steps": 0}
                wait_until(lambda: server.look().items() >= gone.items(), "steps and sessions", END_S_MAX)  # noqa: B023
            looks.append([server.look() for server in servers])
        for number in range(len(servers)):
            memory = [look[number]["mb"] for look in looks]
            # The second wave may come when more of the first is alive than at its end: what is freed stays reserved.
            assert memory[-1] - max(memory[:2]) < GROWTH_MB_MAX, memory
            threads = [look[number]["threads"] for look in looks]
            # A pool grows by some threads when more answers wait at once; a leak would be one for each client.
            assert threads[-1] - max(threads[:2]) < CLIENTS // 4, threads
    finally:
        clients.kill()
        clients.communicate()
        for server in servers:
            server.end()
