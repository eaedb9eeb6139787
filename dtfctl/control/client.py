"""The client of the supervisor's socket (server.py). It knows the lines only, so that commands load it quickly."""

from __future__ import annotations

import json
import socket
import struct
import time
from pathlib import Path
from typing import Any

from dtfctl.errors import NotPrivate, SupervisorHasGone, SupervisorUnreachable
from dtfctl.storage.ownership import stranger
from dtfctl.storage.paths import socket_address
from dtfctl.wire.messages import WORDS_MAX, BadMessage, anything, checked, each, fields, table, text
from dtfctl.wording import reason_of

LINE_BYTES_MAX = 64 << 20

REPLY = fields(
    {},
    {
        "is": text(100),
        "error": text(WORDS_MAX),
        "changes": each(text()),
        "costs": each(text()),
        "differences": each(text()),
        "tasks": table(anything),
    },
    is_open=True,
)

Request = dict[str, Any]
Reply = dict[str, Any]


class ControlClient:
    """The command line's end. Raises SupervisorHasGone when the daemon goes away in the middle."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = b""

    @classmethod
    def connect(cls, path: Path) -> ControlClient | None:
        """None when no daemon listens. Raises NotPrivate when it is another user's."""
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with socket_address(path) as address:
                connection.connect(address)
        except OSError:
            connection.close()
            return None
        other = stranger(connection)
        if other:
            connection.close()
            raise NotPrivate(f"{path} is answered by {other}, not by your supervisor")
        return cls(connection)

    @property
    def peer(self) -> int:
        """The pid of the supervisor that answers."""
        credentials = self._connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        pid: int = struct.unpack("3i", credentials)[0]
        return pid

    def ask(self, request: Request, timeout_s: float = 30.0) -> Reply:
        self.send(request)
        line = self._line(timeout_s)
        if line is None:
            raise SupervisorUnreachable(f"the supervisor does not answer within {timeout_s:g}s")
        try:
            reply: Reply = checked(line, REPLY)
            return reply
        except BadMessage as error:
            raise SupervisorUnreachable(f"the supervisor's answer is invalid: {error}") from None

    def send(self, request: Request) -> None:
        try:
            self._connection.settimeout(10)
            self._connection.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise SupervisorHasGone(f"the supervisor closed the connection ({reason_of(error)})") from None

    def wait_for_change(self, timeout_s: float) -> bool:
        """After `watch` was sent: whether something changed before `timeout_s` had passed."""
        return self._line(timeout_s) is not None

    def close(self) -> None:
        self._connection.close()

    def _line(self, timeout_s: float) -> bytes | None:
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._received:
            self._connection.settimeout(max(0.001, deadline - time.monotonic()))
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError:
                return None
            except OSError as error:
                raise SupervisorHasGone(f"the supervisor closed the connection ({reason_of(error)})") from None
            if not data:
                raise SupervisorHasGone("the supervisor closed the connection")
            self._received += data
            if len(self._received) > LINE_BYTES_MAX:
                raise SupervisorUnreachable("the supervisor's answer is invalid: it has no line end")
        line, _, self._received = self._received.partition(b"\n")
        return line
