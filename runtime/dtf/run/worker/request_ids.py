"""RecentRequestIds: tells a request that has come before, as when a network repeats it. Owns the last ids, no more."""

from __future__ import annotations

import threading
from collections import OrderedDict

from dtf.wire import errors


class RecentRequestIds:
    """The ids of the last `count_max` requests. Its lock guards them."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._lock = threading.Lock()
        self._ids: OrderedDict[int, None] = OrderedDict()

    def check(self, request_id: int, what: str) -> None:
        """Remembers an id; 0 stands for a request without one.

        Raises:
          AbortedError: it is known already.
        """
        if not request_id:
            return
        with self._lock:
            if request_id in self._ids:
                raise errors.AbortedError.of(f"The same {what} request was received twice. request_id: {request_id}")
            self._ids[request_id] = None
            if len(self._ids) > self._count_max:
                self._ids.popitem(last=False)
