"""The process's pool of threads for work that must not hold up the thread that found it.

Owns a few daemon threads, started when they are first needed. What is submitted may compute for long but must never
wait for other work of this pool: kernels that wait are asynchronous and hold no thread.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable

from dtf.run.interfaces import Value
from dtf.run.lib import numpy_warnings
from dtf.wire import forks

__all__ = ["submit"]

_THREADS = max(4, os.cpu_count() or 1)


def submit(function: Callable[..., None], *arguments: Value) -> None:
    """Calls function(*arguments) soon, in another thread. The function handles its own errors; a stray one is
    logged.
    """
    global _started
    if not _started:
        with _lock:
            if not _started:
                for number in range(_THREADS):
                    threading.Thread(target=_work, name=f"dtf-compute-{number}", daemon=True).start()
                _started = True
    _tasks.put((function, arguments))


def _work() -> None:
    numpy_warnings.turn_off()
    tasks, busy = _tasks, _busy
    me = threading.get_ident()
    while True:
        function, arguments = tasks.get()
        busy[me] = None
        try:
            function(*arguments)
        except Exception:
            logging.getLogger("dtf").exception("work of the pool failed")
        del function, arguments
        busy.pop(me, None)


def _is_quiet() -> bool:
    return not _busy and _tasks.empty()


def _begin_anew() -> None:
    """In a forked process: it has none of the threads."""
    global _tasks, _lock, _started, _busy
    _tasks, _lock, _started, _busy = queue.SimpleQueue(), threading.Lock(), False, {}


_tasks: queue.SimpleQueue[tuple[Callable[..., None], tuple[Value, ...]]] = queue.SimpleQueue()
_lock = threading.Lock()
_started = False
_busy: dict[int, None] = {}
"""The threads that work just now."""

forks.in_parent_before(_is_quiet)
forks.in_child(_begin_anew)
