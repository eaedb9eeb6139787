"""The process's pool of threads for work that must not hold up the thread that found it.

Owns a few daemon threads, started when they are first needed. What is submitted may compute for long but must never
wait for
other work of this pool: kernels that wait are asynchronous and hold no thread.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from dtf.run.lib import numpy_warnings

__all__ = ["submit"]

_THREADS = max(4, os.cpu_count() or 1)


def submit(function: Callable[..., None], *arguments: Any) -> None:
    """Calls function(*arguments) soon, in another thread. The function handles its own errors; a stray one is
    logged.
    """
    global _started, _owner
    if not _started or _owner != os.getpid():
        with _lock:
            if not _started or _owner != os.getpid():
                for number in range(_THREADS):
                    threading.Thread(target=_work, name=f"dtf-compute-{number}", daemon=True).start()
                _started, _owner = True, os.getpid()
    _tasks.put((function, arguments))


def _work() -> None:
    numpy_warnings.turn_off()
    while True:
        function, arguments = _tasks.get()
        try:
            function(*arguments)
        except Exception:
            logging.getLogger("dtf").exception("work of the pool failed")
        del function, arguments


_tasks: queue.SimpleQueue[tuple[Callable[..., None], tuple[Any, ...]]] = queue.SimpleQueue()
_lock = threading.Lock()
_started = False
_owner = 0
