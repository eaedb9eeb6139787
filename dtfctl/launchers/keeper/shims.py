"""The keeper's end of its shim: starts tasks through it, and hears of their ends.

Owns the connection to the present shim, which is started when a task needs one. Former shims stay until their last
task has ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import time

from dtfctl.launchers.keeper.processes import open_pidfd
from dtfctl.launchers.keeper.program import dying, leave
from dtfctl.launchers.keeper.protocol import SHIM_NEWS
from dtfctl.launchers.keeper.records import SHIM_END_S, file_name, read_record
from dtfctl.launchers.keeper.shim import Shim, send_line
from dtfctl.wire.messages import checked

TYPE_CHECKING = False
if TYPE_CHECKING:  # this starts without the time that `typing` takes
    from collections.abc import Callable
    from typing import Any


class Shims:
    """One shim at a time. `on_end` gets the news of a task's end, `on_lost` the pid of a shim that was killed."""

    def __init__(
        self,
        boot: str,
        cgroup: str,
        selector: selectors.BaseSelector,
        on_end: Callable[[dict[str, Any]], None],
        on_lost: Callable[[int], None],
    ) -> None:
        self.pid = 0
        """The pid of the present shim; 0 without a shim."""
        self._boot = boot
        self._cgroup = cgroup
        self._selector = selector
        self._on_end = on_end
        self._on_lost = on_lost
        self._connection: socket.socket | None = None
        self._received = b""

    def start_task(self, request: dict[str, Any]) -> dict[str, Any]:
        """Returns the start record, or {"error": words}. `hear` must follow."""
        shim = self._connection or self._start()
        with contextlib.suppress(OSError):
            send_line(shim, request)
            while True:
                # Between the lines about ends stands the one about the start.
                *lines, self._received = self._received.split(b"\n")
                for number, line in enumerate(lines):
                    news: dict[str, Any] = checked(line, SHIM_NEWS)
                    if "exit" not in news:
                        self._received = b"\n".join([*lines[number + 1 :], self._received])
                        return news
                    self._on_end(news)
                data = shim.recv(1 << 16)
                if not data:
                    break
                self._received += data
        # Perhaps a shim that was killed in the middle of this very start had got as far as the record.
        self._lost()
        record = read_record(f"{file_name(request['task'], request['generation'])}.start")
        words = "status unknown: its shim was killed while it was started"
        return record or {"error": words, "preempted": words}

    def hear(self, data: bytes = b"") -> None:
        """Passes on the news that have come: with the news of a start may have come that of an end."""
        *lines, self._received = (self._received + data).split(b"\n")
        for line in lines:
            self._on_end(checked(line, SHIM_NEWS))

    def end(self, shims: set[tuple[int, int]], reap: Callable[[], None]) -> None:
        """Waits for `shims` (pid, start time), without their keeper: each goes after its last task."""
        if self._connection is not None:
            self._connection.close()
        deadline = time.monotonic() + SHIM_END_S
        for pid, start_time in shims:
            while time.monotonic() < deadline:
                reap()
                pidfd = open_pidfd(pid, start_time)
                if pidfd < 0:
                    break
                os.close(pidfd)
                time.sleep(0.002)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            with dying():
                os.setsid()
                leave(theirs.fileno())
                Shim(theirs, self._boot, self._cgroup).serve()
        theirs.close()
        self._connection, self.pid, self._received = ours, pid, b""
        self._selector.register(ours, selectors.EVENT_READ, self._on_readable)
        return ours

    def _on_readable(self) -> None:
        if self._connection is None:
            return
        try:
            data = self._connection.recv(1 << 16, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        self.hear(data)

    def _lost(self) -> None:
        """The next start makes another shim."""
        assert self._connection is not None
        self._selector.unregister(self._connection)
        self._connection.close()
        lost, self._connection, self.pid = self.pid, None, 0
        self._on_lost(lost)
