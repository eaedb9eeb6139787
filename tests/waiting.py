"""Waiting for what another process does, by looking at it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Value = TypeVar("Value")


def wait_until(condition: Callable[[], Value], what: str, timeout_s: float = 60.0) -> Value:
    """Returns the first true value of `condition`. A file or process that is not there yet counts as false.

    The limit is generous, since test machines may be busy.

    Raises:
      AssertionError: names `what` when nothing was true within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        missing: OSError | None = None
        try:
            value = condition()
            if value:
                return value
        except (FileNotFoundError, ProcessLookupError) as error:
            missing = error
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout_s} s for {what}") from missing
        time.sleep(0.02)
