"""What the tests of dtfctl share: plans made from text, a clock that is moved by hand, and patience for processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtfctl.config import parse
from dtfctl.plan import ClusterPlan

CLUSTER = """
name: trial
program: train
jobs:
  ps: 1
  worker: 2
"""


def plan_of(text: str = CLUSTER, folder: str = "/cluster") -> ClusterPlan:
    return parse(text, "cluster.yaml", Path(folder))


class FakeClock:
    """Monotonic seconds that pass only when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += seconds


def wait_until(condition: Callable[[], Any], what: str, timeout_s: float = 15.0) -> Any:
    """For real processes: returns the first true value of `condition`, fails with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {timeout_s}s for {what}"
        time.sleep(0.01)
    return value
