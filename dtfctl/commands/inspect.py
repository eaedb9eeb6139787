"""Looking at clusters: status, ls, events, top. Nothing changes by it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import click

from dtfctl.commands.frame import (
    NOT_RUNNING,
    OK,
    PARTLY_UP,
    TRAINING_FAILED,
    Duration,
    Options,
    choose,
    command,
    names_cluster,
    quiet_ctrl_c,
    takes_cluster,
    takes_tasks,
)
from dtfctl.commands.logs import Moment
from dtfctl.show.terminal import has_colour

if TYPE_CHECKING:
    from rich.console import RenderableType

    from dtfctl.control.cluster import Cluster
    from dtfctl.show.terminal import Terminal
    from dtfctl.values.run import Run
    from dtfctl.values.snapshot import Snapshot
    from dtfctl.values.task import TaskStatus


STATUS_STYLES = ["table", "wide", "json", "yaml", "name"]


def add_to(group: click.Group) -> None:
    @command(group)
    @takes_cluster
    @click.option("-o", "--format", "style", type=click.Choice(STATUS_STYLES), default="table")
    @click.option("--field", metavar="PATH", help="Only values of the JSON: tasks[*].pid, tasks[ready=false].name.")
    @click.option("-w", "--watch", is_flag=True, help="Update the view until the cluster ends or Ctrl-C.")
    @click.option("--exit-code", is_flag=True, help="0 all ready, 3 not running, 6 some are not ready, 10 failed.")
    def status(
        options: Options, cluster: str | None, style: str, field: str | None, watch: bool, exit_code: bool
    ) -> None:
        """Shows the tasks of a cluster, running or ended."""
        chosen = choose(options, cluster)
        if chosen.is_active():
            chosen.wake()
        terminal = options.terminal()
        if watch and field is None:
            run, statuses = _watch(chosen, terminal, style)
        else:
            run, statuses = chosen.load()
            print(_shown(run, statuses, style) if field is None else _picked(run, statuses, field))
            if not run.is_over and (full := chosen.why_unwritten()):
                print(f"warning: this may be out of date: {full}", file=sys.stderr)
        if exit_code:
            sys.exit(_status_of(run, statuses))

    @command(group)
    @click.option("-a", "--all", "is_all", is_flag=True, help="Also clusters that have ended.")
    @click.option("-q", "--quiet", is_flag=True, help="Only their names.")
    @click.option("-o", "--format", "style", type=click.Choice(["table", "json"]), default="table")
    def ls(options: Options, is_all: bool, quiet: bool, style: str) -> None:
        """Lists this user's clusters on this machine."""
        import json

        from dtfctl.control.cluster import clusters
        from dtfctl.errors import StoreError
        from dtfctl.show import view
        from dtfctl.storage.paths import state_root
        from dtfctl.values.snapshot import take

        rows = []
        for cluster in clusters(state_root(options.state_dir)):
            try:
                found = cluster.find()
            except StoreError as error:
                rows.append({"name": cluster.name, "state": "damaged", "reason": str(error).splitlines()[0]})
                continue
            if found is not None and (is_all or not found[0].is_over):
                rows.append(view.summary(take(*found, time.monotonic(), time.time())))
        if quiet:
            print("\n".join(row["name"] for row in rows), end="\n" if rows else "")
        elif style == "json":
            print(json.dumps(rows, indent=2))
        else:
            print(view.clusters_table(rows, time.time(), has_colour(sys.stdout)))

    @command(group)
    @takes_tasks(is_required=False)
    @names_cluster
    @click.option("-f", "--follow", is_flag=True, help="Follow new events until the cluster ends.")
    @click.option("-n", "--tail", type=click.IntRange(min=0), metavar="COUNT", help="Only the last N events.")
    @click.option("--since", type=Moment(), metavar="TIME", help="Only events since: 5m (ago), 14:05.")
    @click.option("-o", "--format", "style", type=click.Choice(["text", "json"]), default="text")
    def events(
        options: Options,
        tasks: tuple[str, ...],
        cluster: str | None,
        follow: bool,
        tail: int | None,
        since: float | None,
        style: str,
    ) -> None:
        """Lists the events of tasks and of the cluster in the current or last run, with their causes."""
        from dtfctl.commands.selection import choose_tasks
        from dtfctl.show import view

        chosen = choose(options, cluster)
        run, statuses = chosen.load()
        wanted = set(choose_tasks(list(statuses), tasks)) if tasks else None
        terminal = options.terminal()
        is_coloured = has_colour(sys.stdout)
        width = max(map(len, statuses))
        told = 0  # the id of the last event
        with quiet_ctrl_c():
            while True:
                history = chosen.history(run, after=told)
                new = [
                    happening
                    for happening in history
                    if (wanted is None or happening.task in wanted) and (since is None or happening.time >= since)
                ]
                if tail is not None:
                    new, tail = new[max(0, len(new) - tail) :], None
                terminal.show([view.event(happening, width, style == "json", is_coloured) for happening in new])
                told = history[-1].id if history else told
                if run.is_over or not follow:
                    return
                chosen.wait_for_change(1.0)
                run, _ = chosen.load()

    @command(group)
    @takes_cluster
    @click.option("-n", "--interval", type=Duration(), default=2.0, metavar="SECONDS", help="Between two looks.")
    @click.option("--once", is_flag=True, help="Print once and exit; the default without a terminal.")
    @click.option("-o", "--format", "style", type=click.Choice(["table", "json"]), default="table")
    def top(options: Options, cluster: str | None, interval: float, once: bool, style: str) -> None:
        """Shows the CPU and memory of each task, and the training's steps/s and loss; live.

        CPU is in percent of one core. For a task on a machine that does not answer, only the state is known. Steps/s
        are those of the training, as the chief records them.
        """
        import json

        from dtfctl.show import columns, view
        from dtfctl.show.curves import Trail

        chosen = choose(options, cluster)
        terminal = options.terminal()
        trail = Trail()
        with quiet_ctrl_c():
            for snapshot in _looks(chosen, max(0.2, interval)):
                trail.add(snapshot.progress)
                rows, words = view.usage_rows(snapshot), str(snapshot.progress or "")
                if style == "json":
                    terminal.show([json.dumps(view.usage_document(snapshot))])
                elif terminal.is_live and not once:
                    below = trail.line() or words
                    terminal.draw(_drawing(view.headline(snapshot), rows, below, has_colour(sys.stderr)), is_now=True)
                else:
                    is_coloured = has_colour(sys.stdout)
                    print(f"{view.headline(snapshot, is_coloured)}  {words}".rstrip())
                    print(*columns.lines(rows, is_coloured=is_coloured), sep="\n")
                if once or snapshot.is_over or (style == "table" and not terminal.is_live):
                    break
            terminal.keep()


def _shown(run: Run, statuses: dict[str, TaskStatus], style: str) -> str:
    import json

    from dtfctl.show import view
    from dtfctl.values.snapshot import take

    snapshot = take(run, statuses, time.monotonic(), time.time())
    if style == "json":
        return json.dumps(view.document(snapshot), indent=2)
    if style == "yaml":
        from dtfctl.config.source import write_yaml

        return write_yaml(view.document(snapshot)).rstrip()
    if style == "name":
        return "\n".join(statuses)
    return view.table(snapshot, style == "wide", has_colour(sys.stdout))


def _picked(run: Run, statuses: dict[str, TaskStatus], path: str) -> str:
    from dtfctl.show import fields, view
    from dtfctl.values.snapshot import take

    document = view.document(take(run, statuses, time.monotonic(), time.time()))
    return "\n".join(map(fields.shown, fields.picked(document, path)))


def _status_of(run: Run, statuses: dict[str, TaskStatus]) -> int:
    if run.is_over:
        return TRAINING_FAILED if run.outcome == "failed" else NOT_RUNNING
    return OK if all(status.ready for status in statuses.values()) else PARTLY_UP


def _watch(cluster: Cluster, terminal: Terminal, style: str) -> tuple[Run, dict[str, TaskStatus]]:
    """Live at a terminal, elsewhere again at each change; JSON as one document a line."""
    import json

    from dtfctl.logs.progress import follow
    from dtfctl.show import view
    from dtfctl.show.curves import Trail
    from dtfctl.values.snapshot import take

    former = ""
    run, statuses = cluster.load()
    reader, trail = follow(run.plan.checkpoint_dir, is_late=True), Trail()
    is_live = terminal.is_live and sys.stdout.isatty() and style != "json"
    with quiet_ctrl_c():
        while True:
            if is_live:
                snapshot = take(run, statuses, time.monotonic(), time.time())
                rows = view.rows(snapshot, style == "wide")
                progress = reader.poll() if reader else None
                trail.add(progress)
                below = trail.line() or str(progress or "")
                terminal.draw(_drawing(view.headline(snapshot), rows, below, has_colour(sys.stderr)), is_now=True)
            else:
                # The ages of things would make each text a new one.
                key = repr((run, statuses))
                if key != former:
                    snapshot = take(run, statuses, time.monotonic(), time.time())
                    document = json.dumps(view.document(snapshot)) if style == "json" else ""
                    terminal.show([document or _shown(run, statuses, style)])
                    former = key
            if run.is_over:
                break
            cluster.wait_for_change(1.0)
            run, statuses = cluster.load()
    terminal.keep()
    return run, statuses


def _looks(cluster: Cluster, interval_s: float) -> Iterator[Snapshot]:
    """Snapshots with usage and progress. The first one takes a moment: CPU is a difference."""
    from dtfctl.show.looker import Looker

    looker = Looker(cluster)
    snapshot = looker.look()
    if not looker.has_rates:
        time.sleep(0.2)
        snapshot = looker.look()
    while True:
        yield snapshot
        time.sleep(interval_s)
        snapshot = looker.look()


def _drawing(
    heading: str, rows: list[list[str]], below: str, is_coloured: bool
) -> Callable[[int, int], RenderableType]:
    def make(width: int, height: int) -> RenderableType:
        from rich.console import Group
        from rich.text import Text

        from dtfctl.show import columns

        room = height - len(heading.splitlines()) - 1 - bool(below)
        shown = rows[1:] if len(rows) - 1 <= room else rows[1 : max(1, room)]
        titles, *lines = columns.lines([rows[0], *shown], width, is_coloured)
        parts = [*(Text(line, style="bold") for line in heading.splitlines()), Text(titles, style="bold")]
        parts += [Text.from_ansi(line) for line in lines]
        if len(shown) < len(rows) - 1:
            parts.append(Text(f"... and {len(rows) - 1 - len(shown)} more tasks", style="dim"))
        if below:
            parts.append(Text(below))
        for part in parts:
            part.no_wrap = True
            part.overflow = "ellipsis"
        return Group(*parts)

    return make
