"""Whether the values of one compiled step are pushed: the tasks prepare it, or cannot.

Owns the question to the tasks and when it is asked. Its meaning is in `exchange.push`.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Sequence

from dtf.run.master.registered_partition import RegisteredPartition
from dtf.run.threads import reader_thread
from dtf.wire import errors

__all__ = ["Preparation"]

_ASK_AGAIN_S = 10.0
_FIRST_PUSHED_STEP = 2
"""A signature that runs once only is not worth a question to other tasks."""


class Preparation:
    """Whether the tasks push the values of a compiled step (see `push`).

    They are asked before the second step, and again some time after one of them could not be reached. If this task
    alone takes part, it is asked before the first step, so that the partition is compiled once. The asking thread holds
    the lock; other steps meanwhile use TensorFlow's protocol.
    """

    def __init__(self, session_handle: str, partitions: Sequence[RegisteredPartition]) -> None:
        self._session_handle = session_handle
        self._partitions = partitions
        self._lock = threading.Lock()
        self._run_id: int | None = None
        is_here = all(partition.is_local for partition in partitions)
        self._runs = _FIRST_PUSHED_STEP - 1 if is_here else 0
        self._ask_at = 0.0

    def run_id(self) -> int | None:
        """The number of what has been agreed on, or None if steps are to be run by `run_graph`."""
        if self._run_id is not None or self._ask_at == math.inf:
            return self._run_id
        self._runs += 1
        if self._runs < _FIRST_PUSHED_STEP or time.monotonic() < self._ask_at or not self._lock.acquire(blocking=False):
            return None
        try:
            self._ask()
        finally:
            self._lock.release()
        return self._run_id

    def end(self, run_id: int) -> None:
        """A step could not reach everybody: nothing is agreed on any more."""
        if self._run_id == run_id:
            self._run_id = None
            self._ask_at = time.monotonic() + _ASK_AGAIN_S

    def _ask(self) -> None:
        reader_thread.yield_reader()
        run_id = secrets.randbits(63)
        tasks = [partition.task for partition in self._partitions]
        home = next((number for number, partition in enumerate(self._partitions) if partition.is_local), -1)
        try:
            for partition in self._partitions:
                partition.worker.prepare(
                    run_id,
                    self._session_handle,
                    partition.graph_handle,
                    list(partition.feeds.values()),
                    list(partition.fetches.values()),
                    tasks,
                    home,
                )
        except errors.UnimplementedError:
            self._ask_at = math.inf
        except errors.OpError:
            self._ask_at = time.monotonic() + _ASK_AGAIN_S
        else:
            self._run_id = run_id
