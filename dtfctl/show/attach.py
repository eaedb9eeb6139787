"""What a command shows while it stays with its cluster: who is missing, the logs, the progress, the end.

The tasks' lines are data, everything in dtfctl's own words goes the way of Terminal.say; at a terminal a live view
stands below both.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from dtfctl import hints
from dtfctl.control.cluster import Cluster
from dtfctl.logs import EVERYTHING, Choice, Line, LogReader, OneOfEach, last_lines
from dtfctl.logs.progress import Progress, StoredProgress, follow
from dtfctl.show import view
from dtfctl.show.curves import Trail
from dtfctl.show.keys import Keys
from dtfctl.show.terminal import Terminal
from dtfctl.values import state
from dtfctl.values.run import Run
from dtfctl.values.snapshot import Snapshot, cluster_state, take
from dtfctl.values.task import TaskStatus
from dtfctl.wording import coloured, printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

REPORT_INTERVAL_S = 2.0
REPEAT_S = 60.0
TICK_S = 0.1
_STORE_TIMEOUT_S = 10.0
TAIL = 10
STEADY_EVENTS = ("retry", "fail", "give-up", "kill", "abandon", "renew", "stalled", "goes on")
"""What the history tells of a task that the user should see go by."""

DETACH = "d"
"""The key that leaves a cluster to itself."""

Show = Callable[[Sequence[Line]], None]


class Stayed(Enum):
    """How `stay` ended: with the run, with a run that was stopped because it was not ready in time, or before."""

    TO_THE_END = 1
    TOO_LATE = 2
    DETACHED = 3


def wait_until_ready(cluster: Cluster, deadline: float | None, terminal: Terminal) -> bool:
    """Until every task has been ready or the run is over; whether that came before the monotonic `deadline`.

    Meanwhile it shows who is missing, why, and what such a task wrote last: live, or from the second second on.
    """
    missing = _Missing(cluster, terminal)
    try:
        while True:
            run, statuses = cluster.load()
            if is_settled(run, statuses) or run.is_over:
                return True
            now = time.monotonic()
            is_too_late = deadline is not None and now >= deadline
            if is_too_late:
                terminal.wipe()
            missing.tell(run, statuses, is_last=is_too_late)
            if is_too_late:
                return False
            wait_s = TICK_S if terminal.is_live else max(0.01, missing.due_at - now)
            cluster.wait_for_change(wait_s if deadline is None else min(wait_s, max(0.01, deadline - now)))
    finally:
        terminal.wipe()


def wait_for_tasks(
    cluster: Cluster,
    names: Sequence[str],
    is_done: Callable[[Run, TaskStatus], bool],
    deadline: float | None,
    terminal: Terminal,
) -> bool:
    """Until all these tasks are as wanted, or gone, or the run is over; whether before the monotonic `deadline`.
    Meanwhile it shows the others' state: live, or from the second second on."""
    due_at = time.monotonic() + REPORT_INTERVAL_S
    repeats = _Repeats()
    try:
        while True:
            run, statuses = cluster.load()
            left = [statuses[name] for name in names if name in statuses and not is_done(run, statuses[name])]
            if not left or run.is_over:
                return True
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                return False
            if not terminal.is_live and now >= due_at:
                due_at = now + REPORT_INTERVAL_S
                for status in filter(repeats.is_due, left):
                    words = status.stalled or status.waiting_for or status.reason
                    terminal.say(f"waiting for {status.name}: {status.state}" + (f": {words}" if words else ""))
            terminal.draw(lambda width, height: _left(run, left, len(names), width, height))  # noqa: B023
            wait_s = TICK_S if terminal.is_live else max(0.01, due_at - now)
            cluster.wait_for_change(wait_s if deadline is None else min(wait_s, max(0.01, deadline - now)))
    finally:
        terminal.wipe()


def is_settled(run: Run, statuses: dict[str, TaskStatus]) -> bool:
    """Whether all have been ready once, and nothing that was begun since then is still under way."""
    return run.all_were_ready and not any(
        status.renew or status.state in (*state.WAITING, state.STARTING, state.STOPPING) for status in statuses.values()
    )


def stay(
    cluster: Cluster,
    interrupts: Interrupts,
    deadline: float | None,
    terminal: Terminal,
    show: Show,
    is_new: bool = True,
) -> Stayed:
    """`up --attach`: follows logs, restarts and progress to the end of the run. Of one that is not new, and may have
    been running for long, only the last lines are shown before what comes.

    The first of the `interrupts` stops the cluster, the second kills it. So does the monotonic `deadline` when not all
    tasks have been ready by then. At a terminal the key d detaches: the cluster goes on.
    """
    run, statuses = cluster.load()
    choice = EVERYTHING if is_new else Choice(tail=TAIL)
    reader = LogReader(cluster.paths.logs(run.number), statuses, choice)
    once = OneOfEach()
    progress = follow(run.plan.checkpoint_dir)
    reporter = _Reporter(cluster, terminal)
    served = 0
    is_in_time = True
    has_changed = True
    keys = Keys(terminal.is_live)
    try:
        keys.__enter__()
        show(once(reader.past(run.is_over), run.is_over))
        while True:
            if has_changed:
                run, statuses = cluster.load()
                reader.add(statuses)
                reporter.tell_history(run)
            show(once(reader.poll(run.is_over), run.is_over))
            reporter.tell(run, statuses, progress.poll() if progress else None)
            if run.is_over:
                return Stayed.TO_THE_END if is_in_time else Stayed.TOO_LATE
            if DETACH in keys.pressed() and not interrupts.count:
                return Stayed.DETACHED
            if interrupts.count > served:
                served = interrupts.count
                if served == 1:
                    is_ctrl_c = interrupts.first == signal.SIGINT
                    terminal.say("stopping (Ctrl-C again kills at once)" if is_ctrl_c else "SIGTERM received: stopping")
                cluster.down("interrupted by the user", None if served == 1 else 0.0)
            elif deadline is not None and time.monotonic() > deadline and not (run.all_were_ready or run.outcome):
                is_in_time, deadline = False, None
                reporter.missing.tell(run, statuses, is_last=True)
                cluster.down("not ready in time")
            has_changed = cluster.wait_for_change(TICK_S)
    finally:
        keys.__exit__()
        terminal.wipe()


def stay_until_down(cluster: Cluster, interrupts: Interrupts, terminal: Terminal) -> None:
    """Until the run is over. The first of the `interrupts` is answered with a word, the second kills what is left."""
    served = 0
    try:
        while True:
            run, statuses = cluster.load()
            if run.is_over:
                return
            if interrupts.count > served:
                served = interrupts.count
                if served > 2:
                    raise KeyboardInterrupt
                if served == 1:
                    terminal.say("it is stopping (Ctrl-C again kills at once)")
                else:
                    cluster.down("interrupted by the user", 0.0)
            terminal.draw(lambda width, height: _ending(run, statuses, width, height))  # noqa: B023
            cluster.wait_for_change(TICK_S)
    finally:
        terminal.wipe()


def conclude(cluster: Cluster, terminal: Terminal, is_followed: bool = False) -> None:
    """The last words of a run: its result, and for a failure its first cause with that task's last lines, but for a
    traceback that was shown already because the logs were followed."""
    run, statuses = cluster.load()
    restarts = sum(status.restarts for status in statuses.values())
    ended_at = run.ended_at or time.time()
    times = f" and {restarts} restart{'s' if restarts > 1 else ''}" if restarts else ""
    after = f"after {ended_at - run.started_at:.0f}s{times}"
    facts = {"state": cluster_state(run), "restarts": restarts}
    say = terminal.say
    if run.outcome == "failed":
        culprit = run.root_cause
        say(f"{run.plan.name} failed {after}: {run.why}", **facts, why=run.why, task=culprit)
        # A culprit that was running again when all was stopped: what its failed process wrote is one file back.
        status = statuses[culprit]
        generation = status.generation - 1 if status.stop_at is not None else status.generation
        folder = cluster.paths.logs(run.number)
        is_shown = is_followed and status.exit is not None and bool(status.exit.traceback)
        for line in [] if is_shown else last_lines(folder, culprit, 15, generation):
            say(f"    {line}", task=culprit)
        for name, what in run.followers:
            say(f"  then {name}: {what}", task=name)
        say(f"All of it: {hints.command('logs', cluster.name, culprit)}")
    else:
        why = f": {run.why}" if run.outcome == "stopped" else ""
        say(f"{run.plan.name} {run.outcome} {after}{why}", **facts)
    for line in _what_is_left(cluster, run):
        say(line)
    for pid, host, command in run.strays:
        say(f"left behind: pid {pid} on {host}: {command}", pid=pid, host=host)


def _what_is_left(cluster: Cluster, run: Run) -> list[str]:
    """The last figures, where the checkpoint is, and what can be done with both."""
    try:
        reader = follow(run.plan.checkpoint_dir, is_late=True)
        if reader is None:
            return []
        if isinstance(reader, StoredProgress):
            progress, found = reader.wait(_STORE_TIMEOUT_S), reader.checkpoint
        else:
            progress = reader.poll()
            found = str(Path(run.plan.checkpoint_dir) / reader.checkpoint) if reader.checkpoint else ""
    except OSError:
        progress, found = None, ""
    lines = [f"last: {progress}"] if progress is not None else []
    if found:
        lines.append(f"checkpoint: {found}")
    if progress is not None and progress.loss is not None and run.plan.checkpoint_folder:
        curve, board = hints.command("plot", cluster.name), hints.command("tensorboard", cluster.name)
        lines.append(f"Next: {curve}; {board}" + ("" if run.outcome == "succeeded" else f"; {_again(run)}"))
    elif found and run.outcome != "succeeded":
        lines.append(f"Next: {_again(run)}")
    return lines


def _again(run: Run) -> str:
    return f"{hints.command('up', run.plan.file)} goes on from the checkpoint"


class _Reporter:
    """Says what is new, each thing once."""

    def __init__(self, cluster: Cluster, terminal: Terminal) -> None:
        self.missing = _Missing(cluster, terminal)
        self._cluster = cluster
        self._terminal = terminal
        run, _ = cluster.load()
        self._told = max((happening.id for happening in cluster.history(run)), default=0)
        self._was_ready = run.all_were_ready
        self._progress: Progress | None = None
        self._trail = Trail()
        self._next_at = 0.0

    def tell_history(self, run: Run) -> None:
        for happening in self._cluster.history(run, after=self._told):
            self._told = happening.id
            if happening.task and happening.what in STEADY_EVENTS:
                self._terminal.say(f"{happening.task} {happening.cause}", task=happening.task, what=happening.what)

    def tell(self, run: Run, statuses: dict[str, TaskStatus], progress: Progress | None) -> None:
        now = time.monotonic()
        terminal = self._terminal
        if run.all_were_ready and not self._was_ready:
            self._was_ready = True
            terminal.say(f"all {len(statuses)} tasks are ready after {time.time() - run.started_at:.1f}s")
        if not run.all_were_ready and not run.outcome:
            self.missing.tell(run, statuses)
        elif not run.is_over:
            self._trail.add(progress)
            trail = self._trail.line()
            terminal.draw(lambda width, height: _summary(run, statuses, progress, trail, width, height))
        is_due = now >= self._next_at or run.is_over
        if progress is not None and is_due and (self._progress is None or progress.step != self._progress.step):
            if not terminal.is_live or run.is_over:
                terminal.say(str(progress), step=progress.step, steps_per_s=progress.steps_per_s, loss=progress.loss)
            self._progress = progress
            self._next_at = now + REPORT_INTERVAL_S


class _Repeats:
    """What is the same as before is said once in REPEAT_S, where it stays on the screen."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[tuple[str, ...], float]] = {}

    def is_due(self, status: TaskStatus) -> bool:
        now = time.monotonic()
        words = (status.state, status.stalled, status.waiting_for, status.reason)
        said, at = self._said.get(status.name, ((), 0.0))
        if words == said and now < at + REPEAT_S:
            return False
        self._said[status.name] = words, now
        return True


class _Missing:
    """Who is not ready, why, and what such a task wrote last unless that has been said: live, or once in a while."""

    def __init__(self, cluster: Cluster, terminal: Terminal) -> None:
        self.due_at = time.monotonic() + REPORT_INTERVAL_S
        self._cluster = cluster
        self._terminal = terminal
        self._lines: dict[str, list[str]] = {}
        self._last: dict[str, str] = {}
        self._looked_at = 0.0
        self._repeats = _Repeats()

    def tell(self, run: Run, statuses: dict[str, TaskStatus], is_last: bool = False) -> None:
        if self._terminal.is_live and not is_last:
            self._look(run, statuses)
            self._terminal.draw(lambda width, height: _waiting(run, statuses, self._last, width, height))
            return
        if not is_last and time.monotonic() < self.due_at:
            return
        self.due_at = time.monotonic() + REPORT_INTERVAL_S
        waited_s = time.time() - run.started_at
        for task, why in view.missing(_now(run, statuses)):
            if not (self._repeats.is_due(statuses[task]) or is_last):
                continue
            self._terminal.say(f"waiting {waited_s:.0f}s for {task}: {why}", task=task, why=why)
            lines = last_lines(self._cluster.paths.logs(run.number), task, 3)
            if lines != self._lines.get(task):
                self._lines[task] = lines
                for line in lines:
                    self._terminal.say(f"    {coloured(line, is_kept=False)[:200]}", task=task)

    def _look(self, run: Run, statuses: dict[str, TaskStatus]) -> None:
        if time.monotonic() < self._looked_at + REPORT_INTERVAL_S / 4:
            return
        self._looked_at = time.monotonic()
        folder = self._cluster.paths.logs(run.number)
        for task, _ in view.missing(_now(run, statuses))[: self._terminal.size()[1]]:
            self._last[task] = "".join(coloured(line, is_kept=False) for line in last_lines(folder, task, 1))


class Interrupts:
    """Counts SIGINT and SIGTERM instead of dying of them. SIGTERM counts once: an engine sends it to every process, and
    a shell passes on its own."""

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
        if number == signal.SIGINT or not self.count:
            self.count += 1
        self.first = self.first or number


def _now(run: Run, statuses: dict[str, TaskStatus]) -> Snapshot:
    return take(run, statuses, time.monotonic(), time.time())


# -- what the live view shows


def _waiting(
    run: Run, statuses: dict[str, TaskStatus], last: dict[str, str], width: int, height: int
) -> RenderableType:
    from rich.text import Text

    missing = view.missing(_now(run, statuses))
    ready = len(statuses) - len(missing)
    waited_s = time.time() - run.started_at
    lines = [Text.assemble((run.plan.name, "bold"), f"  {ready} of {len(statuses)} tasks are ready  {waited_s:.0f}s")]
    name_width = max((len(task) for task, _ in missing), default=0)
    for task, why in missing:
        lines.append(Text.assemble("  ", (task.ljust(name_width), "yellow"), f"  {why}"))
        if last.get(task):
            lines.append(Text(f"  {'':{name_width}}  {last[task]}", style="dim"))
    return _clipped(lines, height)


def _summary(
    run: Run, statuses: dict[str, TaskStatus], progress: Progress | None, trail: str, width: int, height: int
) -> RenderableType:
    from rich.text import Text

    counts: dict[str, int] = {}
    for status in statuses.values():
        counts[status.state] = counts.get(status.state, 0) + 1
    words = ", ".join(f"{count} {name}" for name, count in counts.items())
    running_s = time.time() - run.started_at
    steps = f"  {progress}" if progress is not None else ""
    first = Text.assemble((run.plan.name, "bold"), f"  {words}{steps}  {running_s:.0f}s")
    return _clipped([first, *([Text(f"  {trail}")] if trail else []), Text("  d: detach, Ctrl-C: stop", "dim")], height)


def _ending(run: Run, statuses: dict[str, TaskStatus], width: int, height: int) -> RenderableType:
    left = [status for status in statuses.values() if status.state not in state.ENDED]
    return _left(run, left, len(statuses), width, height)


def _left(run: Run, left: Sequence[TaskStatus], count: int, width: int, height: int) -> RenderableType:
    from rich.text import Text

    lines = [Text.assemble((run.plan.name, "bold"), f"  {count - len(left)} of {count} tasks are done")]
    for status in left:
        pid = f"  pid {status.pid}" if status.pid else ""
        words = printable(status.waiting_for or status.stop_why or status.reason)
        lines.append(Text.assemble("  ", (status.name, "yellow"), f"  {status.state}{pid}  {words}"))
    return _clipped(lines, height)


def _clipped(lines: list[Text], height: int) -> RenderableType:
    """As many as fit, each on one row of the screen."""
    from rich.console import Group
    from rich.text import Text

    if len(lines) > height:
        lines = [*lines[: height - 1], Text(f"  ... and {len(lines) - height + 1} more lines")]
    for line in lines:
        line.no_wrap = True
        line.overflow = "ellipsis"
    return Group(*lines)
