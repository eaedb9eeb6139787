"""Reader threads: the thread that reads a connection also handles short messages.

Owns `yield_reader()`, which code calls before it takes long or waits: another thread then reads the connections. In a
thread that reads nothing the call has no effect.

Owns also the work that a thread puts off until its own is done (`afterwards`), and `wait`: a thread that waits reads
the connections meanwhile.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dtf.run.interfaces import Value
from dtf.run.threads import thread_pool

__all__ = [
    "Reader", "Waiting", "afterwards", "yield_reader", "do_afterwards", "is_lent", "is_spare", "is_waiting", "lend",
    "take_back", "tell_ended", "wait",
]  # fmt: skip


class Waiting(Protocol):
    """What a thread waits for."""

    @property
    def has_ended(self) -> bool:
        """Whether it has ended, or ends at this moment."""

    def wait_ended(self, timeout_s: float) -> bool:
        """Whether it ends within this time; -1: waits for it."""


class Reader(Protocol):
    """Who reads the connections of this process."""

    def wait(self, waiting: Waiting, timeout_s: float) -> bool:
        """See `borrowed.wait`."""

    def tell_ended(self, waiting: Waiting) -> None:
        """See `borrowed.tell_ended`."""


reader: Reader | None = None
"""Set as soon as there are connections to read."""


def wait(waiting: Waiting, timeout_s: float = -1.0) -> bool:
    """Whether it ends within this time; -1: without a limit. The thread may read connections meanwhile, and handle what
    comes.
    """
    return waiting.wait_ended(timeout_s) if reader is None else reader.wait(waiting, timeout_s)


def tell_ended(waiting: Waiting) -> None:
    """Called when something that a thread may `wait` for has ended."""
    if reader is not None:
        reader.tell_ended(waiting)


def lend(hand_over: Callable[[], None], is_spare: bool = True) -> None:
    """From now on, `yield_reader` in this thread calls `hand_over()`, once.

    Args:
      is_spare: whether others' long work may be done here; else it is only for what is short or its own.
    """
    _thread.hand_over = hand_over
    _thread.is_spare = is_spare


def take_back() -> None:
    """This thread is nobody's any more."""
    _thread.hand_over = None


def is_lent() -> bool:
    """Whether another thread waits for this one."""
    return _thread.hand_over is not None


def is_spare() -> bool:
    """Whether another thread waits for this one and can do without it."""
    return _thread.hand_over is not None and _thread.is_spare


def is_waiting() -> bool:
    """Whether this thread is one that waits for something of its own, and reads meanwhile."""
    return _thread.hand_over is not None and not _thread.is_spare


def yield_reader() -> None:
    """Called before this thread does what may take long."""
    while _thread.found:
        work, arguments = _thread.found.popleft()
        thread_pool.submit(work, *arguments)
    hand_over = _thread.hand_over
    if hand_over is not None:
        _thread.hand_over = None
        hand_over()


def afterwards(work: Callable[..., None], *arguments: Value) -> None:
    """Work for `do_afterwards` in this thread; the pool does it should this thread be long."""
    _thread.found.append((work, arguments))


def do_afterwards() -> None:
    """Does what there is, in order, and what is found on the way."""
    if not _thread.found or _thread.is_at_found:
        return
    _thread.is_at_found = True
    try:
        while _thread.found:
            work, arguments = _thread.found.popleft()
            work(*arguments)
    finally:
        _thread.is_at_found = False


class _Thread(threading.local):
    def __init__(self) -> None:
        self.hand_over: Callable[[], None] | None = None
        self.is_spare = False
        self.found: deque[tuple[Callable[..., None], tuple[Value, ...]]] = deque()
        self.is_at_found = False


_thread = _Thread()
