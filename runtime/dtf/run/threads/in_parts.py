"""Work in parts, for several threads: the caller does parts itself until all are taken, and waits for the others'.

So nothing is lost where no other thread is free, and no thread waits for work that nobody has begun.
"""

from __future__ import annotations

import queue
from collections import deque
from collections.abc import Callable, Sequence

from dtf.run.threads import thread_pool

__all__ = ["run_parts"]


def run_parts(parts: Sequence[Callable[[], None]]) -> None:
    """Calls all parts, in this thread and others of the pool, and returns when all have ended.

    Raises:
      Exception: one of those that parts raised.
    """
    waiting = deque(parts)
    ended: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def work() -> None:
        while True:
            try:
                part = waiting.popleft()
            except IndexError:
                return
            try:
                part()
            except Exception as error:
                ended.put(error)
            else:
                ended.put(None)

    for _ in parts[1:]:
        thread_pool.submit(work)
    work()
    failed = [error for error in (ended.get() for _ in parts) if error is not None]
    if failed:
        raise failed[0]
