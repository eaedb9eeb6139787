"""Agreement: whether the partitions of one compiled step run directly.

Owns the question to the tasks and when it is asked. What it means is told in `direct`.
"""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dtf.run.threads import reader_thread
from dtf.wire import errors

if TYPE_CHECKING:
    from dtf.run.master.compiled_step import RegisteredPartition

__all__ = ["Agreement"]

_ASK_AGAIN_S = 10.0


class Agreement:
    """Whether the partitions run directly (see `direct`): they are asked before the second step, and again some time
    after one of them could not be reached. Its lock is held by who asks; other steps meanwhile go the usual way.
    """

    def __init__(self, session_handle: str, partitions: Sequence[RegisteredPartition]) -> None:
        self._session_handle = session_handle
        self._partitions = partitions
        self._lock = threading.Lock()
        self._run_id: int | None = None
        self._runs = 0
        self._ask_at = 0.0

    def run_id(self) -> int | None:
        """The number of what has been agreed on, or None if steps are to be run by `run_graph`."""
        if self._run_id is not None or self._ask_at == math.inf:
            return self._run_id
        self._runs += 1
        if self._runs < 2 or time.monotonic() < self._ask_at or not self._lock.acquire(blocking=False):
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
        reader_thread.before_long()
        run_id = random.getrandbits(63)
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
