"""Threads for work that may wait: as many as are busy at the same time, so that no waiting work keeps other work out.

Owns daemon threads that are started while all are busy, and end when they have been idle for a while. Work that only
computes goes to `thread_pool`, which has a fixed number. Where the system has no thread to give, work waits for one of
those that are there: its owner often cannot be told, or holds a lock for it.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from dtf.run.interfaces import Value
from dtf.run.lib import numpy_warnings, rate_limited_log
from dtf.wire import forks

__all__ = ["submit"]

_IDLE_S = 30.0


def submit(function: Callable[..., None], *arguments: Value) -> None:
    """Calls function(*arguments) soon in another thread. It handles its own errors; a stray one is logged."""
    _pool.submit(function, arguments)


class _Pool:
    """Its lock guards the number of threads, and `_idle`: how many of them nothing counts on yet; below 0, how much
    work waits for a thread.
    """

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[tuple[Callable[..., None], tuple[Value, ...]]] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0
        self._threads = 0

    def is_quiet(self) -> bool:
        """Whether no thread works, and none has to."""
        return self._idle == self._threads and self._work.empty()

    def submit(self, function: Callable[..., None], arguments: tuple[Value, ...]) -> None:
        self._work.put((function, arguments))
        with self._lock:
            if self._idle > 0:
                self._idle -= 1
                return
            self._threads += 1
        try:
            threading.Thread(target=self._run, name="dtf-pool", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._threads -= 1
                self._idle -= 1
            rate_limited_log.shared.warn("threads lacking", "work waits for a thread to be free: %s", error)

    def _run(self) -> None:
        numpy_warnings.turn_off()
        while True:
            try:
                function, arguments = self._work.get(timeout=_IDLE_S)
            except queue.Empty:
                with self._lock:
                    if self._idle <= 0:
                        continue  # something was put and counts on this thread
                    self._idle -= 1
                    self._threads -= 1
                return
            try:
                function(*arguments)
            except Exception:
                logging.getLogger("dtf").exception("work of the pool failed")
            del function, arguments
            with self._lock:
                self._idle += 1


def _is_quiet() -> bool:
    return _pool.is_quiet()


def _begin_anew() -> None:
    """In a forked process: it has none of the threads."""
    global _pool
    _pool = _Pool()


_pool = _Pool()
forks.in_parent_before(_is_quiet)
forks.in_child(_begin_anew)
