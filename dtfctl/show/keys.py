"""Keys that a person presses while a command stays: read one by one, without echo, only in the foreground.

Owns the terminal's mode while it is entered, and gives it back at the end. Ctrl-C stays a signal.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import termios
import tty
from typing import Any


class Keys:
    """`pressed` gives what was typed since the last call, "" where nobody can type."""

    def __init__(self, is_wanted: bool = True) -> None:
        self._descriptor = -1
        self._former: list[Any] | None = None
        self._is_wanted = is_wanted

    @property
    def are_read(self) -> bool:
        return self._former is not None

    def __enter__(self) -> Keys:
        # A process in the background that changed the terminal would be stopped.
        with contextlib.suppress(OSError, ValueError, termios.error):
            descriptor = sys.stdin.fileno()
            if self._is_wanted and os.isatty(descriptor) and os.tcgetpgrp(descriptor) == os.getpgrp():
                self._former = termios.tcgetattr(descriptor)
                self._descriptor = descriptor
                tty.setcbreak(descriptor)
        return self

    def __exit__(self, *_: object) -> None:
        former, self._former = self._former, None
        if former is not None:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetattr(self._descriptor, termios.TCSADRAIN, former)

    def pressed(self) -> str:
        if self._former is None or os.tcgetpgrp(self._descriptor) != os.getpgrp():
            return ""
        found = b""
        with contextlib.suppress(OSError):
            while select.select([self._descriptor], [], [], 0)[0]:
                data = os.read(self._descriptor, 100)
                if not data:
                    break
                found += data
        return found.decode(errors="replace")
