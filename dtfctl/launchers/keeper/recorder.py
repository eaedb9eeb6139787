"""The log recorder beside the tasks, as its keeper sees it: a child that ends when its standard input does."""

from __future__ import annotations

import os
import signal
import sys
import time

from dtfctl.launchers import log_recorder
from dtfctl.launchers.keeper.program import DEFAULT_SIGNALS

RECORDER_PAUSE_S = 1.0
RECORDER_END_S = 2.0


class Recorder:
    """`at` is when it is to be started, by the monotonic clock; None while it runs."""

    def __init__(self) -> None:
        self.pid = 0
        self.at: float | None = time.monotonic()
        self._pipe = -1

    def start(self) -> None:
        self.at = None
        reader, self._pipe = os.pipe()
        self.pid = os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", log_recorder.__file__, "."],
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, reader, 0)],
            setsid=True,
            setsigdef=DEFAULT_SIGNALS,
        )
        os.close(reader)

    def has_ended(self) -> None:
        """It is started again after a pause."""
        self.pid = 0
        os.close(self._pipe)
        self.at = time.monotonic() + RECORDER_PAUSE_S

    def end(self) -> None:
        if not self.pid:
            return
        os.close(self._pipe)
        deadline = time.monotonic() + RECORDER_END_S
        while os.waitpid(self.pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
            time.sleep(0.002)
