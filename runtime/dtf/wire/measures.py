"""Counts of this process: messages and bytes by peer and way, times of calls and steps, saves, staleness, queues.

Owns the counts and their document for `task_reports`. The rooms that send, run and save add to them; each addition is
a few machine operations, and nothing depends on the result. Values that exist anyway, such as queue lengths, are not
counted: a room registers a function with `ask`, which runs only for a report.

    traffic = measures.traffic("/job:ps/replica:0/task:0 at host:2222", "tcp", SENT)
    traffic.messages += 1
    traffic.bytes += size

Additions from two threads at once may lose one of them. A report never shows less than the one before.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from dtf.wire import forks

SENT, RECEIVED = "sent", "received"
CALLERS = "callers"
"""The peer of requests that come in: who calls is not known by name."""
OTHERS = "others"
"""Stands for all peers, or names, after the first `NAMES_MAX`."""
NAMES_MAX = 1000
REPORTED_MAX = 200
"""How many values of a registered function a report has: the largest."""

BOUNDS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Upper bounds of the classes in which times are counted."""


class ThisThread(threading.local):
    """`is_helper`: its runs serve other runs, as those of hooks and of threads that fill queues; they are no steps."""

    is_helper = False

    @contextlib.contextmanager
    def helping(self) -> Iterator[None]:
        former, self.is_helper = self.is_helper, True
        try:
            yield
        finally:
            self.is_helper = former


this_thread = ThisThread()


class Traffic:
    """What has gone to, or come from, one peer by one way."""

    __slots__ = ("bytes", "messages")

    def __init__(self) -> None:
        self.messages = 0
        self.bytes = 0


class Durations:
    """How often something was done, and how long it took in seconds."""

    __slots__ = ("counts", "total_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_S) + 1)
        self.total_s = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds


class Measures:
    """The counts of one process. The lock guards the tables, not the counts in them.

    Attributes:
      runs: the times of the runs of sessions, those of hooks and helper threads aside (`this_thread`).
      saves: the times of saved checkpoints.
      saved_at: when the last one was saved, in seconds of the wall clock; 0 before the first.
      stale_updates, stale_sum, stale_max: how many updates a StalenessHook has seen, the sum and the largest of their
        staleness.
    """

    def __init__(self) -> None:
        self.runs = Durations()
        self.saves = Durations()
        self.saved_at = 0.0
        self.stale_updates = 0
        self.stale_sum = 0
        self.stale_max = 0
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._traffic: dict[tuple[str, str, str], Traffic] = {}
        self._calls: dict[str, Durations] = {}
        self._questions: dict[str, Callable[[], Iterable[tuple[str, float]]]] = {}
        self._reported: dict[tuple[str, ...], float] = {}

    def traffic(self, where: str, way: str, direction: str) -> Traffic:
        """The counts of a peer, "/job:ps/replica:0/task:0 at host:2222" or another name, that `direction` (SENT or
        RECEIVED) and `way` ("unix", "tcp", "memory", "grpc") share."""
        match = _TASK.match(where)
        key = (f"{match[1]}:{match[2]}" if match else where, way, direction)
        with self._lock:
            if key not in self._traffic and len(self._traffic) >= NAMES_MAX:
                key = (OTHERS, way, direction)
            return self._traffic.setdefault(key, Traffic())

    def calls(self, method: str) -> Durations:
        """The times of calls of a method, "/service/Name", from request to answer."""
        found = self._calls.get(method)
        if found is None:
            with self._lock:
                name = method if len(self._calls) < NAMES_MAX else OTHERS
                found = self._calls.setdefault(name, Durations())
        return found

    def ask(self, what: str, values: Callable[[], Iterable[tuple[str, float]]]) -> None:
        """Registers a function that gives present values by name, for reports."""
        self._questions[what] = values

    def saved(self, seconds: float) -> None:
        """A checkpoint was saved just now, and it took so long."""
        self.saves.add(seconds)
        self.saved_at = time.time()

    def stale(self, updates: int) -> None:
        """An update was made whose values were so many updates old."""
        self.stale_updates += 1
        self.stale_sum += updates
        self.stale_max = max(self.stale_max, updates)

    def report(self) -> dict[str, Any]:
        """All of it as a document for JSON; dtfctl's `wire/reports` has the other end."""
        with self._lock:
            traffic = list(self._traffic.items())
            calls = list(self._calls.items())
            return {
                "bounds_s": list(BOUNDS_S),
                "traffic": [
                    [*key, self._grown((*key, "messages"), each.messages), self._grown((*key, "bytes"), each.bytes)]
                    for key, each in traffic
                ],
                "calls": {method.rpartition("/")[2]: self._times(method, each) for method, each in calls},
                "runs": self._times("runs", self.runs),
                "saves": self._times("saves", self.saves),
                "saved_at": self.saved_at,
                "stale": [
                    self._grown(("stale", "updates"), self.stale_updates),
                    self._grown(("stale", "sum"), self.stale_sum),
                    self.stale_max,
                ],
                "values": {what: _largest(values) for what, values in self._questions.items()},
            }

    def _times(self, name: str, durations: Durations) -> list[Any]:
        counts = [self._grown(("times", name, str(place)), count) for place, count in enumerate(durations.counts)]
        return [self._grown(("times", name), durations.total_s), counts]

    def _grown(self, key: tuple[str, ...], value: float) -> float:
        former = self._reported.get(key, 0)
        if value < former:
            return former
        self._reported[key] = value
        return value


def _largest(values: Callable[[], Iterable[tuple[str, float]]]) -> Mapping[str, float]:
    """The largest values of a question. What changes while it is asked is asked once more, then left out."""
    for _ in range(2):
        try:
            found = sorted(values(), key=lambda pair: -pair[1])
            return dict(found[:REPORTED_MAX])
        except RuntimeError:  # a table changed during the iteration
            continue
    return {}


_TASK = re.compile(r"/job:([^/\s]+)/replica:\d+/task:(\d+)")

measures = Measures()
"""Those of this process."""
