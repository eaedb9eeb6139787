"""What the terminal shows while a command stays with its cluster: who is missing, the logs, the progress, the end.

The tasks' lines go to stdout, everything in dtfctl's own words to stderr.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from dtfctl import state, view
from dtfctl.client import Cluster
from dtfctl.logs import LogFollower, last_lines
from dtfctl.progress import Progress, ProgressReader
from dtfctl.store import Run
from dtfctl.task import TaskStatus

REPORT_INTERVAL_S = 2.0
TICK_S = 0.1
STEADY_EVENTS = ("retry", "fail", "give-up", "kill", "abandon")
"""What the history tells of a task that the user should see go by."""

Say = Callable[[str], None]


def wait_until_ready(cluster: Cluster, deadline: float | None, say: Say) -> bool:
    """Until every task has been ready or the run is over; whether that came before the monotonic `deadline`.

    From the second second on it says who is missing, why, and what such a task wrote last.
    """
    missing = _Missing(cluster, say)
    while True:
        run, statuses = cluster.load()
        if run.all_were_ready or run.is_over:
            return True
        now = time.monotonic()
        is_too_late = deadline is not None and now >= deadline
        if is_too_late or now >= missing.due_at:
            missing.tell(run, statuses)
        if is_too_late:
            return False
        until = missing.due_at if deadline is None else min(missing.due_at, deadline)
        cluster.wait_for_change(max(0.01, until - now))


def stay(
    cluster: Cluster, interrupts: Interrupts, deadline: float | None, say: Say, show: Callable[[str, str], None]
) -> bool:
    """`up --attach`: follows logs, restarts and progress to the end of the run.

    The first of the `interrupts` stops the cluster, the second kills it. So does the monotonic `deadline` when not all
    tasks have been ready by then; returns whether it was kept.
    """
    run, statuses = cluster.load()
    follower = LogFollower(cluster.paths.logs(run.number), statuses)
    progress = ProgressReader(Path(run.plan.checkpoint_dir)) if run.plan.checkpoint_dir else None
    reporter = _Reporter(cluster, say)
    served = 0
    is_in_time = True
    has_changed = True
    while True:
        if has_changed:
            run, statuses = cluster.load()
            reporter.tell_history(run)
        for task, line in follower.poll(run.is_over):
            show(task, line)
        reporter.tell(run, statuses, progress.poll() if progress else None)
        if run.is_over:
            return is_in_time
        if interrupts.count > served:
            served = interrupts.count
            if served == 1:
                say("stopping (Ctrl-C again kills at once)")
            cluster.down("interrupted by the user", None if served == 1 else 0.0)
        elif deadline is not None and time.monotonic() > deadline and not (run.all_were_ready or run.outcome):
            is_in_time, deadline = False, None
            reporter.missing.tell(run, statuses)
            cluster.down("not ready in time")
        has_changed = cluster.wait_for_change(TICK_S)


def conclude(cluster: Cluster, say: Say) -> None:
    """The last words of a run: its result, and for a failure its first cause with that task's last lines."""
    run, statuses = cluster.load()
    restarts = sum(status.restarts for status in statuses.values())
    after = f"after {time.time() - run.started_at:.0f}s" + (f" and {restarts} restarts" if restarts else "")
    if run.outcome == "failed":
        culprit = run.root_cause
        say(f"{run.plan.name} failed {after}: {run.why}")
        # A culprit that was running again when all was stopped: what its failed process wrote is one file back.
        status = statuses[culprit]
        generation = status.generation - 1 if status.stop_at is not None else status.generation
        for line in last_lines(cluster.paths.logs(run.number), culprit, 15, generation):
            say(f"    {line}")
        followers = [name for name in statuses if name != culprit and statuses[name].state in state.UNFORGIVEN]
        for name in followers:
            say(f"  then {name}: {statuses[name].reason}")
        say(f"All of it: dtfctl logs {culprit} (of {cluster.name})")
    else:
        why = f": {run.why}" if run.outcome == "stopped" else ""
        say(f"{run.plan.name} {run.outcome} {after}{why}")
    for pid, host, command in run.strays:
        say(f"left behind: pid {pid} on {host} would not die: {command}")


class _Reporter:
    """Says what is new, each thing once."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self.missing = _Missing(cluster, say)
        self._cluster = cluster
        self._say = say
        run, _ = cluster.load()
        self._told = len(cluster.history(run))
        self._was_ready = run.all_were_ready
        self._progress: Progress | None = None
        self._next_at = 0.0

    def tell_history(self, run: Run) -> None:
        history = self._cluster.history(run)
        for happening in history[self._told :]:
            if happening.task and happening.what in STEADY_EVENTS:
                self._say(f"{happening.task} {happening.cause}")
        self._told = len(history)

    def tell(self, run: Run, statuses: dict[str, TaskStatus], progress: Progress | None) -> None:
        now = time.monotonic()
        if run.all_were_ready and not self._was_ready:
            self._was_ready = True
            self._say(f"all {len(statuses)} tasks are ready after {time.time() - run.started_at:.1f}s")
        if not run.all_were_ready and not run.outcome and now >= self.missing.due_at:
            self.missing.tell(run, statuses)
        is_due = now >= self._next_at or run.is_over
        if progress is not None and is_due and (self._progress is None or progress.step != self._progress.step):
            self._say(str(progress))
            self._progress = progress
            self._next_at = now + REPORT_INTERVAL_S


class _Missing:
    """Says who is not ready, why, and what such a task wrote last unless that has been said, once in a while."""

    def __init__(self, cluster: Cluster, say: Say) -> None:
        self.due_at = time.monotonic() + REPORT_INTERVAL_S
        self._cluster = cluster
        self._say = say
        self._lines: dict[str, list[str]] = {}

    def tell(self, run: Run, statuses: dict[str, TaskStatus]) -> None:
        self.due_at = time.monotonic() + REPORT_INTERVAL_S
        waited_s = time.time() - run.started_at
        for task, why in view.missing(statuses, time.monotonic()):
            self._say(f"waiting {waited_s:.0f}s for {task}: {why}")
            lines = last_lines(self._cluster.paths.logs(run.number), task, 3)
            if lines != self._lines.get(task):
                self._lines[task] = lines
                for line in lines:
                    self._say(f"    {line[:200]}")


class Interrupts:
    """Counts SIGINT and SIGTERM instead of dying of them."""

    def __init__(self) -> None:
        self.count = 0
        self.first = 0
        self._former: list[tuple[signal.Signals, object]] = []

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former.append((number, signal.signal(number, self._take)))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former:
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _take(self, number: int, _: FrameType | None) -> None:
        self.count += 1
        self.first = self.first or number


def say_on_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
