"""What tasks have written: logs; and how their lines look, for up --attach too."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from dtfctl.commands.frame import Options, choose, command, names_cluster, quiet_ctrl_c, seconds, takes_tasks

if TYPE_CHECKING:
    from dtfctl.logs import Line
    from dtfctl.show.terminal import Terminal

LINES_AT_ONCE = 1000
COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
"""Of the prefixes, in turn; red is left to errors."""


class Moment(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in click's latest only
    """A duration back from now, or a time: RFC 3339, or today's HH:MM[:SS]. Wall-clock seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from datetime import datetime

        if isinstance(value, float):
            return value
        try:
            return time.time() - seconds(value)
        except ValueError:
            pass
        try:
            if re.fullmatch(r"\d\d?:\d\d(:\d\d(\.\d+)?)?", value):
                value = f"{datetime.now():%Y-%m-%d}T{value.zfill(5)}"
            # Python 3.10 knows neither Z nor fractions of one digit.
            text = re.sub(r"[zZ]$", "+00:00", value)
            text = re.sub(r"\.(\d+)", lambda match: f".{match[1][:6]:0<6}", text)
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            self.fail(f"{value!r} is not a time (5m, 1h30m, 14:05, 2026-01-31T14:05:00Z)", param, ctx)


class Pattern(click.ParamType):  # type: ignore[type-arg, unused-ignore]  # generic in click's latest only
    name = "regular expression"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        from dtfctl.logs.patterns import compiled

        try:
            return compiled(value)
        except re.error as error:
            self.fail(f"{value!r} is not a regular expression: {error}", param, ctx)


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_tasks(is_required=False)
    @names_cluster
    @click.option("-f", "--follow", is_flag=True, help="Follow new lines until the cluster ends.")
    @click.option("-n", "--tail", type=click.IntRange(min=0), metavar="LINES", help="Only each task's last N lines.")
    @click.option("--since", type=Moment(), metavar="TIME", help="Lines since: 5m (ago), 14:05, 2026-01-31T14:05Z.")
    @click.option("--until", type=Moment(), metavar="TIME", help="Lines before this time.")
    @click.option("--grep", "pattern", type=Pattern(), metavar="REGEX", help="Only lines that match this pattern.")
    @click.option("-p", "--previous", is_flag=True, help="Show the log of the task's previous process.")
    @click.option("--attempt", type=click.IntRange(min=1), metavar="N", help="Only each task's N-th process.")
    @click.option("-t", "--timestamps", is_flag=True, help="Prefix each line with the time at which it was written.")
    @click.option("--prefix/--no-prefix", default=None, help="Prefix lines with their task; default: if several.")
    @click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
    def logs(
        options: Options,
        tasks: tuple[str, ...],
        cluster: str | None,
        follow: bool,
        tail: int | None,
        since: float | None,
        until: float | None,
        pattern: re.Pattern[str] | None,
        previous: bool,
        attempt: int | None,
        timestamps: bool,
        prefix: bool | None,
        style: str,
    ) -> None:
        """Prints the output of tasks, in the order of time.

        A TASK is worker:1, worker:0-3, a job (ps), or a pattern ('w*'); by default all. Logs stay after a task ends,
        after `scale` removes it, and after the cluster ends, until dtfctl down --purge. The state folder holds the
        logs of the last five runs.
        """
        from dtfctl.commands.selection import choose_tasks
        from dtfctl.logs import Choice, LogReader, tasks_with_logs
        from dtfctl.show.attach import TICK_S

        if previous and attempt is not None:
            raise click.UsageError("--previous and --attempt exclude each other")
        if follow and until is not None:
            raise click.UsageError("--until and --follow exclude each other")
        terminal = options.terminal()
        chosen = choose(options, cluster)
        run, statuses = chosen.load()
        folder = chosen.paths.logs(run.number)
        removed = [name for name in tasks_with_logs(folder) if name not in statuses]  # as by scale
        names = choose_tasks([*statuses, *removed], tasks)
        is_prefixed = len(names) > 1 if prefix is None else prefix
        show = json_printer(terminal) if style == "json" else printer(terminal, names, is_prefixed, timestamps)
        choice = Choice(since, until, tail, -1 if previous else attempt, pattern)
        reader = LogReader(folder, names, choice)
        past = reader.past(run.is_over or not follow)
        with quiet_ctrl_c():
            is_empty = True
            while lines := list(islice(past, LINES_AT_ONCE)):
                is_empty = False
                show(lines)
            if is_empty and not follow:
                terminal.say(_why_nothing(names, choice == Choice(tail=tail)))
            while follow and not run.is_over:
                if chosen.wait_for_change(TICK_S):
                    run, statuses = chosen.load()
                    if not tasks:
                        reader.add(statuses)
                show(reader.poll(run.is_over))


def _why_nothing(names: Sequence[str], is_all: bool) -> str:
    whose = names[0] if len(names) == 1 else f"{len(names)} tasks"
    return f"{whose}: no output so far" if is_all else f"no line of {whose} fits"


def printer(
    terminal: Terminal, tasks: Sequence[str], is_prefixed: bool, has_times: bool = False
) -> Callable[[Sequence[Line]], None]:
    """Prints whole lines, each after its task's name.

    On a terminal only a program's colours take effect; elsewhere its lines are printed as written.
    """
    from dtfctl.show.terminal import has_colour, rfc3339
    from dtfctl.wording import coloured

    width = max(map(len, tasks), default=0)
    is_coloured = has_colour(sys.stdout)
    is_terminal = sys.stdout.isatty()
    prefixes: dict[str, str] = {}

    def prefix(task: str) -> str:
        if task not in prefixes:
            text = f"{task.ljust(width)} | "
            colour = COLOURS[len(prefixes) % len(COLOURS)]
            prefixes[task] = f"\x1b[{colour}m{text}\x1b[0m" if is_coloured else text
        return prefixes[task]

    for task in tasks:
        prefix(task)

    def show(lines: Sequence[Line]) -> None:
        terminal.show(
            [
                (prefix(line.task) if is_prefixed else "")
                + (f"{rfc3339(line.time)} " if has_times else "")
                + (coloured(line.text, is_coloured) if is_terminal else line.text)
                for line in lines
            ]
        )

    return show


def json_printer(terminal: Terminal) -> Callable[[Sequence[Line]], None]:
    import json

    from dtfctl.show.terminal import rfc3339

    def show(lines: Sequence[Line]) -> None:
        terminal.show(
            [
                json.dumps(
                    {"time": rfc3339(line.time), "task": line.task, "attempt": line.attempt, "line": line.text}
                )
                for line in lines
            ]
        )

    return show
