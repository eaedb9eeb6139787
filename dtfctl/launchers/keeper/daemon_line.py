"""The keeper's socket: one daemon at a time, a line of JSON for each request and message.

Owns the listener and the connection of the present daemon. Another daemon that connects takes its place.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import time

from dtfctl.launchers.keeper import LINE_BYTES_MAX, SOCKET
from dtfctl.launchers.keeper.processes import peer_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Callable, Mapping
    from typing import Any

    from dtfctl.launchers.keeper.respawn import Respawn
    from dtfctl.wire.messages import Complaints

SEND_S = 2.0
ACCEPT_PAUSE_S = 0.05


class DaemonLine:
    """`take` gets each line. `respawn` learns when a daemon connects, and when it is lost."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        respawn: Respawn,
        complaints: Complaints,
        take: Callable[[bytes], None],
    ) -> None:
        self._selector = selector
        self._respawn = respawn
        self._complaints = complaints
        self._take = take
        self._connection: socket.socket | None = None
        self._received = b""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(SOCKET)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(SOCKET)
        self._listener.listen(4)
        selector.register(self._listener, selectors.EVENT_READ, self._on_connect)

    def send(self, message: Mapping[str, Any]) -> None:
        """What no daemon takes in is dropped: all of it is on record."""
        if self._connection is None:
            return
        try:
            self._connection.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            # A daemon that takes nothing in is as good as dead.
            self._drop()
            self._respawn.lost(time.monotonic())

    @property
    def is_connected(self) -> bool:
        """Whether a daemon is there."""
        return self._connection is not None

    @property
    def peer(self) -> int:
        """The pid of the daemon that is connected."""
        assert self._connection is not None
        return peer_of(self._connection)[0]

    def _on_connect(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            # It has gone already, or there is no descriptor for it now: it is asked for again.
            time.sleep(ACCEPT_PAUSE_S)
            return
        if peer_of(connection)[1] not in (0, os.geteuid()):
            connection.close()
            return
        self._drop()
        connection.settimeout(SEND_S)
        self._connection = connection
        self._received = b""
        self._respawn.connected(time.monotonic())
        self._selector.register(connection, selectors.EVENT_READ, self._on_readable)

    def _drop(self) -> None:
        if self._connection is not None:
            self._selector.unregister(self._connection)
            self._connection.close()
            self._connection = None

    def _on_readable(self) -> None:
        if self._connection is None:
            return
        try:
            data = self._connection.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if len(self._received) > LINE_BYTES_MAX:
            self._complaints.tell(f"a request was refused: it is longer than {LINE_BYTES_MAX} bytes")
            data = b""
        if not data:
            self._drop()
            self._respawn.lost(time.monotonic())
            return
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._take(line)
