"""Acknowledgements: what a backup sends back, read by the thread that reads the connections of the process.

The answer of a step waits for its acknowledgement. To wake a thread of its own for that would take longer than the
step. Owns the bytes of a number that is not whole yet, and how long nothing has come.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from dtf.channel import reactor
from dtf.places import frames
from dtf.run.threads import reader_thread

__all__ = ["Acknowledgements"]

_BYTES_AT_ONCE = 1 << 12
_LOOKS = 4


class Acknowledgements:
    """A `reactor.Readable`. One thread at a time reads; `is_silent` is for one other thread."""

    def __init__(
        self, sock: Any, silence_s: float, on_numbers: Callable[[int, bool], None], on_end: Callable[[str], None]
    ) -> None:
        """Reads from `begin` on, and until the connection is over.

        Args:
          silence_s: after how many seconds without a byte the connection counts as lost.
          on_numbers: called with the highest number that has come, -1 for none, and whether the right was given back.
          on_end: called with the reason when the connection is over.
        """
        self._socket = sock
        self._period_s = silence_s / _LOOKS
        self._on_numbers = on_numbers
        self._on_end = on_end
        self._rest = b""
        self._is_heard = True
        self._looks_left = _LOOKS
        self._look_at_s = time.monotonic() + self._period_s
        self._reactor = reactor.shared()

    def begin(self) -> None:
        """Has the socket read from now on."""
        self._reactor.add(self)

    def is_silent(self) -> bool:
        """Whether nothing has come for too long. It is called several times in that time: a process that was stopped
        has time to read what came meanwhile.
        """
        now = time.monotonic()
        if now >= self._look_at_s:
            self._look_at_s = now + self._period_s
            is_heard, self._is_heard = self._is_heard, False
            self._looks_left = _LOOKS if is_heard else self._looks_left - 1
        return self._looks_left <= 0

    def close(self) -> None:
        """Nothing is read any more. Before the socket is closed."""
        self._reactor.release(self)

    # -- reactor.Readable

    @property
    def has_frames(self) -> bool:
        """See `Readable.has_frames`: what has come is handled at once."""
        return False

    def fileno(self) -> int:
        """See `Readable.fileno`."""
        return int(self._socket.fileno())

    def read(self) -> None:
        """See `Readable.read`."""
        try:
            found = self._rest + self._socket.recv(_BYTES_AT_ONCE, socket.MSG_DONTWAIT)
            if len(found) == len(self._rest):
                raise EOFError
        except BlockingIOError:
            return
        except (OSError, EOFError) as error:
            self.close()
            reader_thread.yield_reader()  # a lost backup changes the role of this process
            self._on_end(
                f"the connection was lost: {error.strerror or error}"
                if isinstance(error, OSError)
                else "its process has ended, or closed the connection"
            )
            return
        self._is_heard = True
        size = len(found) - len(found) % frames.ACKNOWLEDGEMENT.size
        self._rest = found[size:]
        numbers = struct.unpack(f"<{size // frames.ACKNOWLEDGEMENT.size}Q", found[:size])
        if numbers:
            acknowledged = max((each for each in numbers if each != frames.REVOKED), default=-1)
            self._on_numbers(acknowledged, frames.REVOKED in numbers)

    def leave(self) -> None:
        """See `Readable.leave`."""

    def leave_to_parent(self) -> None:
        """See `Readable.leave_to_parent`."""
        self._socket.close()
