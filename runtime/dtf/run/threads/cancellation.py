"""CancellationManager: how one step, or one session, tells everything that waits in it to stop.

Owns the callbacks of those who wait. Does not know what a step is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

__all__ = ["CancellationManager"]


class CancellationManager:
    """A one-way switch with callbacks. Its lock guards `_callbacks` and is not held while they run. `is_cancelled` and
    `reason`, the error for which everything stops (None: nobody gave one), are for others to look at.

    A kernel that waits registers a callback first and waits then::

        token = step.cancellation.register(give_up)
        if token is None:
            done(error=CancelledError(...))     # too late, cancelled already
    """

    __slots__ = ("_callbacks", "_lock", "_next_token", "is_cancelled", "reason")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self.is_cancelled = False
        self.reason: Exception | None = None
        self._next_token = 0

    def register(self, callback: Callable[[], None]) -> int | None:
        """Has `callback()` called once when cancellation starts. Returns a token, or None (and never calls) when
        it has started.
        """
        with self._lock:
            if self.is_cancelled:
                return None
            token = self._next_token
            self._next_token = token + 1
            self._callbacks[token] = callback
            return token

    def deregister(self, token: int | None) -> bool:
        """Forgets a callback. False when there is nothing to forget: it has run, or is about to."""
        if token is None:
            return False
        with self._lock:
            return self._callbacks.pop(token, None) is not None

    def start_cancel(self, reason: Exception | None = None) -> None:
        """Cancels, once: later calls do nothing. Callbacks run in this thread; a failing one does not stop the
        others.
        """
        with self._lock:
            if self.is_cancelled:
                return
            self.is_cancelled = True
            self.reason = reason
            callbacks = list(self._callbacks.values())
            self._callbacks.clear()
        for callback in callbacks:
            try:
                callback()
            except Exception:
                logging.getLogger("dtf").exception("a cancellation callback failed")
