"""What the tasks write to their logs here, and when, on its way to the launcher."""

from __future__ import annotations

import base64
import collections
import contextlib
import os
import time
from collections.abc import Callable, Mapping
from typing import Any

from dtfctl.launchers.log_recorder import ENTRY, HEADER, LOGS, TIMES, give_back, watch_folder

LOG_CHUNK_BYTES = 48 << 10
LOG_WINDOW_BYTES = 1 << 20
"""So much of the logs may be on its way; what the keeper has to say is never behind more than that."""

LOG_KEPT_BYTES = 16 << 20
LOG_PIECE_BYTES = 4 << 20
"""Of a log that the launcher has got the last part is kept; the rest is given back to the disk in pieces."""

BLOCK_BYTES = 4096
LOG_PAUSE_S = 0.02
LOG_LOOK_S = 0.5
"""How often files are looked at where the kernel does not tell of changes."""


class Logs:
    """What the launcher has of each log, and when to look for more."""

    def __init__(self, have: Mapping[str, int]) -> None:
        self.run_folder = os.getcwd()
        self.sent = dict(have)
        self.growths: dict[str, Growth] = {}
        self.on_way = 0
        # Nothing before the launcher has said hello.
        self.look_at: float | None = None
        self.watch = watch_folder(LOGS)
        self.given_back: dict[str, int] = {}

    def note(self) -> None:
        """The kernel tells of a change; a burst is looked at once."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.watch, 1 << 16):
                pass
        if self.look_at is None:
            self.look_at = time.monotonic() + LOG_PAUSE_S

    def send(self, send: Callable[[dict[str, Any]], None]) -> bool:
        """Sends what fits the window; whether that was all."""
        for name in sorted(os.listdir(LOGS)):
            path = os.path.join(LOGS, name)
            offset = self.sent.get(name, 0)
            if not name.endswith(".log") or os.stat(path).st_size <= offset:
                continue
            growth = self.growths.setdefault(name, Growth(os.path.join(TIMES, name.removesuffix(".log"))))
            with open(path, "rb") as file:
                file.seek(offset)
                while self.on_way < LOG_WINDOW_BYTES and (data := file.read(LOG_CHUNK_BYTES)):
                    text = base64.b64encode(data).decode()
                    times = growth.between(offset, offset + len(data))
                    send({"is": "log", "file": name, "offset": offset, "data": text, "times": times})
                    offset += len(data)
                    self.on_way += len(data)
            self.sent[name] = offset
            if self.on_way >= LOG_WINDOW_BYTES:
                self.look_at = time.monotonic() + LOG_PAUSE_S
                return False
        self.look_at = None if self.watch >= 0 else time.monotonic() + LOG_LOOK_S
        return True

    def let_go(self, name: str, until: int) -> None:
        """The launcher has the file up to there: the disk gets the blocks back, and offsets stay as they are. The last
        ones are kept, should the launcher's machine lose what it has not yet put on its own disk."""
        first, end = self.given_back.get(name, 0), (until - LOG_KEPT_BYTES) // BLOCK_BYTES * BLOCK_BYTES
        if end - first < LOG_PIECE_BYTES:
            return
        with contextlib.suppress(OSError):
            descriptor = os.open(os.path.join(LOGS, os.path.basename(name)), os.O_WRONLY | os.O_CLOEXEC)
            # Where the file system cannot do it the log stays whole.
            give_back(descriptor, first, end - first)
            os.close(descriptor)
            self.given_back[name] = end


class Growth:
    """When a log grew, as the recorder notes it (log_recorder.py has the format); each note is read once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.inode = 0
        self.position = 0
        self.notes: collections.deque[tuple[int, int]] = collections.deque()

    def between(self, offset: int, end: int) -> list[list[int]]:
        """[microseconds since 1970, size] of each growth beyond `offset`, the last of them that to `end`."""
        self.read()
        found = []
        while self.notes and self.notes[0][1] <= end:
            at, size = self.notes.popleft()
            if size > offset:
                found.append([at, size])
        if not found or found[-1][1] < end:
            # It is in the middle of the next growth, or the recorder has not come to it yet.
            found.append([self.notes[0][0] if self.notes else time.time_ns() // 1000, end])
        return found

    def read(self) -> None:
        with contextlib.suppress(OSError), open(self.path, "rb") as file:
            inode = os.fstat(file.fileno()).st_ino
            if inode != self.inode:
                # The recorder writes it anew when it gives back the head of the log.
                self.inode, self.position = inode, HEADER.size
                self.notes.clear()
            file.seek(self.position)
            data = file.read()
            whole = len(data) - len(data) % ENTRY.size
            self.position += whole
            self.notes.extend(ENTRY.iter_unpack(data[:whole]))
