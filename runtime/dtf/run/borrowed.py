"""Threads that belong to somebody else: whoever reads a connection handles short messages in the same thread.

Owns the way back: code that may take long, or wait, says `before_long()` first, and the thread's owner sees to it that
his own work goes on elsewhere. In threads that are nobody's it does nothing.

Owns also what a thread has come across meanwhile and does when it is done with its own (`afterwards`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from dtf.run import thread_pool

__all__ = ["afterwards", "before_long", "do_afterwards", "is_lent", "lend", "take_back"]


def lend(hand_over: Callable[[], None]) -> None:
    """From now on, `before_long` in this thread calls `hand_over()`, once."""
    _thread.hand_over = hand_over


def take_back() -> None:
    """This thread is nobody's any more."""
    _thread.hand_over = None


def is_lent() -> bool:
    """Whether somebody waits for this thread."""
    return getattr(_thread, "hand_over", None) is not None


def before_long() -> None:
    """Called before this thread does what may take long."""
    while _thread.found:
        work, arguments = _thread.found.popleft()
        thread_pool.submit(work, *arguments)
    hand_over = _thread.hand_over
    if hand_over is not None:
        _thread.hand_over = None
        hand_over()


def afterwards(work: Callable[..., None], *arguments: Any) -> None:
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
        self.found: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque()
        self.is_at_found = False


_thread = _Thread()
