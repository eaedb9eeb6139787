"""Outcome: the one error of a step in which several operations fail at about the same time.

Owns the choice of the error that is reported, the cancelling of the rest of the step, and the sending of its values for
other tasks. Does not decide when the step is over.
"""

from __future__ import annotations

import threading

from dtf.run.executor.step import StepContext, as_derived
from dtf.wire import errors

__all__ = ["Outcome"]


class Outcome:
    """The error of one step, or None so far. Its lock guards `error`.

    The first error cancels the step: kernels that wait give up, the exchange is aborted. Errors that follow from that
    must not hide the cause, so a derived error gives way to one that is not.
    """

    __slots__ = ("_lock", "_step", "error")

    def __init__(self, step: StepContext) -> None:
        self._step = step
        self._lock = threading.Lock()
        self.error: errors.OpError | None = None

    def flush(self, is_last: bool = False) -> None:
        """Sends the values for other tasks. A task that cannot be reached fails the step."""
        try:
            self._step.exchange.flush(is_last)
        except errors.OpError as error:
            self.fail(error)

    def fail(self, error: errors.OpError) -> None:
        """Records an error; the first one cancels the step. Call it without locks: callbacks run in this thread."""
        cancellation = self._step.cancellation
        if error.error_code == errors.CANCELLED and cancellation.is_cancelled:
            # A kernel that gives up reports only that. The code that stopped the step knows the reason.
            reason = cancellation.reason
            error = reason if isinstance(reason, errors.OpError) else as_derived(error)
        with self._lock:
            is_first = self.error is None
            if is_first or (self.error is not None and self.error.derived and not error.derived):
                self.error = error
        if is_first:
            self._step.cancel(error)
