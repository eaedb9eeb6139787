"""The driver's part of the talk with a cluster's nodes: it gives them the job, and knows where they are.

The connections are those of multiprocessing, and both ends prove that they know the key: what comes is unpickled.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterable
from multiprocessing import AuthenticationError
from multiprocessing.connection import Connection, answer_challenge, deliver_challenge
from typing import Any

Address = tuple[str, int]
CONNECT_S = 30.0

AT, WAIT, ENDED, FAILED = "at", "wait", "ended", "failed"


class Server:
    """Answers each request (a tuple) of clients that know the key; each connection has a thread of its own."""

    def __init__(self, host: str, key: bytes, answer: Callable[[Connection], None]) -> None:
        self._key = key
        self._answer = answer
        self._listener = socket.create_server((host, 0), backlog=128)
        self.address: Address = self._listener.getsockname()[:2]
        threading.Thread(target=self._accept, name="dtfctl-server", daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # who waits in accept would keep it open
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection = _connection(self._listener.accept()[0])
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: Connection) -> None:
        with connection, contextlib.suppress(OSError, EOFError, AuthenticationError):
            deliver_challenge(connection, self._key)
            answer_challenge(connection, self._key)
            self._answer(connection)


def connect(address: Address, key: bytes) -> Connection:
    """Raises OSError, EOFError or AuthenticationError."""
    connection = _connection(socket.create_connection(address, CONNECT_S))
    try:
        answer_challenge(connection, key)
        deliver_challenge(connection, key)
    except BaseException:
        connection.close()
        raise
    return connection


def _connection(made: socket.socket) -> Connection:
    """A peer whose machine has gone is noticed after a minute."""
    made.settimeout(None)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3)):
        made.setsockopt(socket.IPPROTO_TCP, option, value)
    return Connection(made.detach())


def ask(address: Address, key: bytes, *request: object) -> Any:
    """One answer. Raises OSError or EOFError where there is no server any more."""
    with connect(address, key) as connection:
        connection.send(request)
        return connection.recv()


class Registry:
    """`job` is what each node asks for first. Tasks are known by their names (`worker:0`)."""

    def __init__(self, host: str, key: bytes, job: dict[str, Any], tasks: Iterable[str]) -> None:
        self._job = job
        self._changed = threading.Condition()
        self._nodes: dict[str, tuple[str, Any]] = {task: (WAIT, None) for task in tasks}
        self._joined: set[str] = set()
        self._is_fed = False
        self._failure = ""
        self._server = Server(host, key, self._answer)

    @property
    def address(self) -> Address:
        return self._server.address

    @property
    def failure(self) -> str:
        """Why the training has failed; "" while it has not."""
        with self._changed:
            return self._failure

    def fail(self, why: str) -> None:
        with self._changed:
            self._failure = self._failure or why
            self._changed.notify_all()

    def wait_for_nodes(self, timeout_s: float) -> bool:
        """Until all have joined, or one has failed; whether all have joined."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._joined == self._nodes.keys(), timeout_s)
            return self._joined == self._nodes.keys()

    def end_feed(self) -> list[Address]:
        """Who comes from now on gets no rows; those who are there."""
        with self._changed:
            self._is_fed = True
            return [where for state, where in self._nodes.values() if state == AT and where is not None]

    def where(self, task: str) -> tuple[str, Any]:
        with self._changed:
            return (FAILED, self._failure) if self._failure else self._nodes[task]

    def close(self) -> None:
        self._server.close()

    def _answer(self, connection: Connection) -> None:
        do, *values = connection.recv()
        if do == "job":
            connection.send(self._job)
        elif do == "join":
            task, where = values
            with self._changed:
                self._nodes[task] = (AT, where)
                self._joined.add(task)
                self._changed.notify_all()
                connection.send(self._is_fed)
        elif do == "ended":
            task, error = values
            with self._changed:
                self._nodes[task] = (ENDED, None)
                if error:
                    self._failure = self._failure or f"{task}: {error}"
                self._changed.notify_all()
            connection.send(True)
        elif do == "where":
            connection.send(self.where(*values))
