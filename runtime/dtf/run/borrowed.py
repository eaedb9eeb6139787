"""Threads that belong to somebody else: whoever reads a connection handles short messages in the same thread.

Owns the way back: code that may take long, or wait, says `before_long()` first, and the thread's owner sees to it that
his own work goes on elsewhere. In threads that are nobody's it does nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["before_long", "is_lent", "lend", "take_back"]


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
    hand_over = getattr(_thread, "hand_over", None)
    if hand_over is not None:
        _thread.hand_over = None
        hand_over()


_thread = threading.local()
