"""Finds waits in threads that read connections: a wait there stops the messages of all other tasks.

Owns the hook: while `watched`, the primitives by which Python code waits look whether their thread is lent to the
reactor (`reader_thread.is_lent`), and write down where. Locks that guard a few lines are not looked at: they are C, and
held for moments.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import itertools
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from dtf.run.threads import reader_thread

__all__ = ["found", "watched"]

found: list[str] = []
"""A stack for each wait."""

_WAITS: tuple[tuple[Any, str, int], ...] = (
    (threading.Condition, "wait", 1),  # events, queues, semaphores and barriers wait in it
    (threading.Thread, "join", 1),
    (concurrent.futures.Future, "result", 1),
    (reader_thread, "wait", 1),
)
"""Who has the function, its name, and the position of its time limit."""


@contextlib.contextmanager
def watched() -> Iterator[None]:
    """Looks at every wait of this process meanwhile."""
    kept = [(owner, name, getattr(owner, name)) for owner, name, _ in _WAITS]
    for owner, name, position in _WAITS:
        setattr(owner, name, _looking(getattr(owner, name), position))
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def _is_start_of_thread() -> bool:
    """Whether the caller's caller is Thread.start, which waits until the system has made the thread."""
    frame = sys._getframe(2)
    frames = itertools.islice(traceback.walk_stack(frame), 3)
    return any(each.f_code is threading.Thread.start.__code__ for each, _ in frames)


def _looking(function: Callable[..., Any], position: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def wait(*arguments: Any, **named: Any) -> Any:
        if reader_thread.is_lent():
            limit = arguments[position] if len(arguments) > position else named.get("timeout", named.get("timeout_s"))
            if (limit is None or limit != 0) and not _is_start_of_thread():
                found.append("".join(traceback.format_stack(limit=12)))
        return function(*arguments, **named)

    return wait
