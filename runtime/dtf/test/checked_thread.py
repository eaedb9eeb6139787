"""Threads for tests: an exception in a thread fails the test that joins it."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["CheckedThread"]


class CheckedThread:
    """A thread whose exception its `join` raises."""

    def __init__(
        self,
        case: unittest.TestCase,
        target: Callable[..., Any],
        args: Sequence[Any] | None,
        kwargs: Mapping[str, Any] | None,
    ) -> None:
        self._case = case
        self._call = lambda: target(*(args or ()), **(kwargs or {}))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._raised: BaseException | None = None
        self._was_started = False
        self._was_joined = False

    def start(self) -> None:
        """Starts it."""
        self._was_started = True
        self._thread.start()

    def join(self) -> None:
        """Waits for its end, and fails the test if it raised."""
        self._was_joined = True
        self._thread.join()
        if self._raised is not None:
            self._case.fail(f"Error in checkedThread: {self._raised!r}")

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._thread.is_alive()

    def check_was_joined(self) -> None:
        """Fails the test if it was started and never joined."""
        if self._was_started and not self._was_joined:
            self._case.fail("A checked thread was not joined.")

    def check_termination(self) -> None:
        """`check_was_joined`, and the thread has ended."""
        self.check_was_joined()
        if self._thread.is_alive():
            self._case.fail("A checked thread still runs.")

    def _run(self) -> None:
        try:
            self._call()
        except BaseException as error:
            self._raised = error
