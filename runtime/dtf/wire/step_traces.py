"""Traces of a few runs of this process's sessions, at the supervisor's request while the training goes on.

Owns the present wish and its traces. A session reads `step_traces.wish`. It is None without a request, and the session
does nothing else. Otherwise `begin` decides whether this run is traced. The first traced run of a set of fetches
prepares the others and is not kept. After each traced run come enough untraced ones that tracing takes a small part
of the time (`trace_pace`); their times show how long a run takes without it.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Any

from dtf.wire import forks
from dtf.wire.trace_pace import COST_MAX, TracePace

STEPS_MAX = 100
PAUSE_MAX = 1000
PLANS_MAX = 16
"""A wish traces the runs of at most so many sets of fetches."""
NODES_MAX = 200_000
"""A wish is fulfilled, however many steps it has, once its traces have so many nodes."""
ALONE_S = 2.0
"""A program whose main thread runs no session within this time trains in another thread."""
KEPT_S = 300.0
"""What nobody fetches for so long is forgotten by the next run."""


class _Traced:
    """The runs of one set of fetches: those traced, the times of the others, and what passed before each in its
    thread without a run."""

    def __init__(self, pace: TracePace) -> None:
        self.pace = pace
        self.runs: list[Any] = []
        self.is_main = False
        self.is_prepared = False
        self.since_traced: int | None = None
        self.all_runs = 0
        self.all_ns = 0
        self.untraced_runs = 0
        self.untraced_s = 0.0
        self.pauses = 0
        self.paused_s = 0.0


class Wish:
    """One request for traces; its lock guards the runs. `owed_ns` is what an earlier request has cost and no time has
    paid for yet."""

    def __init__(self, number: int, steps: int, pause: int, owed_ns: float = 0.0) -> None:
        self.number = number
        self.steps = steps
        self.pause = pause
        self.made_at = time.monotonic()
        self.is_fulfilled = False
        self._nodes = 0
        self._earlier_owed_ns = owed_ns
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._plans: dict[tuple[str, ...], _Traced] = {}
        self._ended_ns: dict[int, int] = {}

    def begin(self, fetches: tuple[str, ...]) -> bool:
        """Whether this run of these fetches is to be traced."""
        with self._lock:
            if self.is_fulfilled:
                return False
            plan = self._plans.get(fetches)
            if plan is None:
                if len(self._plans) >= PLANS_MAX:
                    return False
                plan = self._plans[fetches] = _Traced(TracePace(self._earlier_owed_ns))
            plan.is_main = plan.is_main or threading.current_thread() is threading.main_thread()
            if len(plan.runs) >= self.steps:
                return False
            if plan.since_traced is None:
                # The runs before the first traced one tell what a run takes without it.
                plan.since_traced = 0
            if plan.since_traced < self.pause or (self.pause and not plan.pace.allows):
                return False
            plan.since_traced = 0
            return True

    def ran(self, fetches: tuple[str, ...], start_ns: int, end_ns: int, step_stats: Any) -> None:
        """A run is over; `step_stats` is its trace, or None."""
        thread = threading.get_ident()
        with self._lock:
            plan = self._plans.get(fetches)
            if plan is None or self.is_fulfilled:
                return
            if thread in self._ended_ns:
                plan.pauses += 1
                plan.paused_s += max(0, start_ns - self._ended_ns[thread]) / 1e9
            self._ended_ns[thread] = end_ns
            plan.all_runs += 1
            plan.all_ns += end_ns - start_ns
            if plan.pace.ran(start_ns, end_ns, step_stats is not None):
                plan.untraced_runs += 1
                plan.untraced_s += (end_ns - start_ns) / 1e9
            if step_stats is None:
                plan.since_traced = (plan.since_traced or 0) + 1
                self.is_fulfilled = self._is_enough(plan)
                return
            if not plan.is_prepared:
                plan.is_prepared = True
                return
            plan.runs.append((start_ns, end_ns, step_stats))
            self._nodes += sum(len(device.node_stats) for device in step_stats.dev_stats)
            self.is_fulfilled = self._nodes >= NODES_MAX or self._is_enough(plan)

    def _is_enough(self, plan: _Traced) -> bool:
        """One run of these fetches is over: whether they are traced and are the training's."""
        if len(plan.runs) < self.steps:
            return False
        has_main = any(each.is_main for each in self._plans.values())
        # Queue runners have threads of their own, and may run more often than the training does.
        counts = plan.is_main or (not has_main and time.monotonic() > self.made_at + ALONE_S)
        return counts and plan is self._longest(plan.is_main)

    def _longest(self, is_main: bool) -> _Traced:
        """The fetches that take most of the time, of those that run often: the training, and not a look at its step."""
        often = [each for each in self._plans.values() if each.is_main == is_main and each.all_runs > self.steps]
        return max(often, key=lambda each: each.all_ns)

    def owed_ns(self) -> float:
        """What its traces have cost and no time has paid for yet."""
        with self._lock:
            return max((plan.pace.owed_ns() for plan in self._plans.values()), default=self._earlier_owed_ns)

    def document(self) -> dict[str, Any]:
        """For JSON: times in microseconds of this machine's wall clock."""
        with self._lock:
            plans = [(fetches, plan, list(plan.runs)) for fetches, plan in self._plans.items()]
        return {
            "number": self.number,
            "is_fulfilled": self.is_fulfilled,
            "plans": [
                {
                    "fetches": list(fetches[:20]),
                    "is_main": plan.is_main,
                    "untraced_runs": plan.untraced_runs,
                    "untraced_s": plan.untraced_s,
                    "pauses": plan.pauses,
                    "paused_s": plan.paused_s,
                    "runs": [_run(*run) for run in runs],
                }
                for fetches, plan, runs in plans
            ],
        }


class StepTraces:
    """Attributes: wish: what was asked for, None where nothing was."""

    def __init__(self) -> None:
        self.wish: Wish | None = None
        self._owed_ns = 0.0
        self._owed_since = time.monotonic()

    def ask(self, number: Any, steps: Any, pause: Any) -> None:
        """Takes a request; one that is already known, or makes no sense, changes nothing."""
        counts = (number, steps, pause)
        if any(type(count) is not int for count in counts) or not 0 < number < 1 << 62:
            return
        if self.wish is None or self.wish.number != number:
            self._drop()
            paid_ns = COST_MAX * 1e9 * (time.monotonic() - self._owed_since)
            owed_ns = max(0.0, self._owed_ns - paid_ns)
            self.wish = Wish(number, min(max(steps, 1), STEPS_MAX), min(max(pause, 0), PAUSE_MAX), owed_ns)

    def found(self, number: Any, forget: bool) -> dict[str, Any] | None:
        """What was traced for a request: nothing but its state while it lasts, unless it is to be forgotten now."""
        wish = self.wish
        if wish is None or wish.number != number:
            return None
        if forget:
            self._drop()
        if not (wish.is_fulfilled or forget):
            return {"number": wish.number, "is_fulfilled": False, "plans": []}
        return wish.document()

    def is_wanted(self, wish: Wish) -> bool:
        """Whether a wish is still waited for."""
        if time.monotonic() > wish.made_at + KEPT_S:
            self._drop()
            return False
        return True

    def _drop(self) -> None:
        wish, self.wish = self.wish, None
        if wish is not None:
            self._owed_ns, self._owed_since = wish.owed_ns(), time.monotonic()


def _run(start_ns: int, end_ns: int, step_stats: Any) -> dict[str, Any]:
    return {
        "start_us": start_ns / 1000,
        "end_us": end_ns / 1000,
        "devices": [
            {"name": device.device, "nodes": [_node(node) for node in device.node_stats]}
            for device in step_stats.dev_stats
        ],
    }


def _node(node: Any) -> list[Any]:
    """[name, op, start, duration, bytes of its outputs, inputs, tensor, from, to]: the last three of what goes between
    tasks."""
    label = _LABEL.fullmatch(node.timeline_label)
    op = label["op"] if label else ""
    inputs = label["inputs"].split(", ") if label and label["inputs"] else []
    edge = [label["tensor"], label["source"], label["destination"]] if label and label["tensor"] else []
    size = sum(output.tensor_description.allocation_description.requested_bytes for output in node.output)
    return [node.node_name, op, node.all_start_micros, node.all_end_rel_micros, size, inputs, *edge]


_LABEL = re.compile(
    r"(?P<name>\S+) = (?P<op>[\w>]+)(\((?P<inputs>.*?)\))?"
    r"( (?P<tensor>\S+) from (?P<source>\S+) to (?P<destination>\S+))?"
)

step_traces = StepTraces()
"""Those of this process."""
