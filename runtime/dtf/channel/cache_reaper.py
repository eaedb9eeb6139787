"""Asks owners of caches regularly to free memory that was not needed for a while.

Owns the one thread that asks; it ends when no cache is registered.
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable

from dtf.run.threads import growing_pool
from dtf.wire import forks

__all__ = ["IDLE_S_MAX", "watch"]

IDLE_S_MAX = 10.0
"""Memory unused for this long is freed."""

Forget = Callable[[float], bool]
"""forget(time of the monotonic clock): forgets what is idle by then, and says whether some is still kept."""


def watch(forget: Forget) -> None:
    """Calls `forget`, a bound method, regularly until it returns False or its object is gone.

    The reaper keeps no reference to the object: otherwise the region of a lost connection, whose peer frees no places,
        would stay.
    """
    global _is_looking
    with _lock:
        _watched[weakref.WeakMethod(forget)] = None
        was_looking, _is_looking = _is_looking, True
    if not was_looking:
        growing_pool.submit(_look_round)


def _look_round() -> None:
    global _is_looking
    while True:
        time.sleep(IDLE_S_MAX / 2)
        look(time.monotonic())
        with _lock:
            if not _watched:
                _is_looking = False
                return


def look(now_s: float) -> None:
    """Asks all once. A cache that fails is asked again later; the other caches are not affected."""
    with _lock:
        asked = list(_watched)
    for each in asked:
        forget = each()
        with _lock:
            _watched.pop(each, None)  # before the call: a cache that registers again meanwhile must stay
        try:
            keeps = forget is not None and forget(now_s)
        except Exception:
            logging.getLogger("dtf").exception("cached buffers were not checked")
            keeps = True
        del forget  # or it would be kept until the next look
        if keeps:
            with _lock:
                _watched[each] = None


def _begin_anew() -> None:
    """In a forked process: the thread is the parent's."""
    global _lock, _is_looking
    _lock = threading.Lock()
    _is_looking = False
    _watched.clear()


_lock = threading.Lock()
"""Guards the table, and whether there is a thread that looks through it."""
_watched: dict[weakref.WeakMethod[Forget], None] = {}
_is_looking = False
forks.in_child(_begin_anew)
