"""Curves of a training: plot (in the terminal), tensorboard (of running and ended runs)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from dtfctl.commands.frame import (
    ERROR,
    UNKNOWN,
    Options,
    choose,
    command,
    fail,
    names_cluster,
    quiet_ctrl_c,
    takes_cluster,
)

if TYPE_CHECKING:
    from pathlib import Path

    from dtfctl.control.cluster import Cluster
    from dtfctl.logs.events import EventReader, Series
    from dtfctl.values.run import Run

DEFAULT_TAGS = ("loss*", "*/loss*")
TABLE_ROWS = 20


def add_to(group: click.Group) -> None:
    @command(group)
    @click.argument("tags", nargs=-1, metavar="[TAG]...")
    @names_cluster
    @click.option("-l", "--list", "is_list", is_flag=True, help="List the tags that there are.")
    @click.option("--since", "first", type=click.IntRange(min=0), metavar="STEP", help="Only from this step on.")
    @click.option("--csv", "is_csv", is_flag=True, help="Print all points as run,tag,step,time,value.")
    @click.option("--png", metavar="FILE", help="Write a picture instead (needs matplotlib).")
    def plot(
        options: Options,
        tags: tuple[str, ...],
        cluster: str | None,
        is_list: bool,
        first: int | None,
        is_csv: bool,
        png: str | None,
    ) -> None:
        """Draws curves of the training in the terminal: the loss, or the scalars of TAGs (also patterns: 'acc*').

        They come from the event files in checkpoint_dir, of all runs that are there. The curves need plotext:
        pip install 'dtf[plot]'.
        """
        from dtfctl.logs.events import EventReader
        from dtfctl.show import curves

        chosen = choose(options, cluster)
        run, _ = chosen.load()
        reader = EventReader(_folder(chosen, run))
        while reader.poll():
            pass
        if is_list:
            print("\n".join(_listed(reader)))
            return
        found = _chosen(chosen, reader, tags, first)
        if is_csv:
            print("run,tag,step,time,value")
            for (name, tag), series in found.items():
                for step, at, value in zip(series.steps, series.times, series.values, strict=True):
                    if first is None or step >= first:
                        print(f"{curves.csv_word(name)},{curves.csv_word(tag)},{step},{at:.3f},{value!r}")
            return
        if png:
            curves.write_png(png, chosen.name, curves.points(found, first))
            options.terminal().say(f"wrote {png}")
            return
        width, height = options.terminal().size()
        is_coloured = sys.stdout.isatty()
        print(curves.drawn(chosen.name, curves.points(found, first), width, min(height - 2, 30), is_coloured))

    @command(group)
    @takes_cluster
    @click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port; by default a free one.")
    @click.option("--host", default="127.0.0.1", help="The address to listen at (127.0.0.1).")
    def tensorboard(options: Options, cluster: str | None, port: int, host: str) -> None:
        """Runs TensorBoard on a cluster's checkpoint_dir until Ctrl-C, also after the cluster's end.

        `tensorboard: true` in the cluster file runs one beside the training; `dtfctl status` shows its address.
        """
        import os

        from dtfctl.commands import exec_shell

        chosen = choose(options, cluster)
        run, statuses = chosen.load()
        running = next((run.addresses.get(name) for name, status in statuses.items() if _is_board(name, status)), None)
        if running and not run.is_over:
            options.terminal().say(f"TensorBoard of {chosen.name} is running: http://{running}/")
            return
        folder = _folder(chosen, run)
        program = _program(run)
        if program is None:
            fail(ERROR, "TensorBoard is not installed here: pip install tensorboard, or put the program on PATH")
        port = port or _reserved_port(host)
        options.terminal().say(f"TensorBoard of {chosen.name}: http://{host}:{port}/ (Ctrl-C ends it)")
        words = (*program, f"--logdir={folder}", f"--host={host}", f"--port={port}")
        with quiet_ctrl_c():
            exec_shell.become(words, {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"})


def _is_board(name: str, status: object) -> bool:
    return name.partition(":")[0] == "tensorboard" and bool(getattr(status, "ready", False))


def _program(run: Run) -> tuple[str, ...] | None:
    """How TensorBoard is run here: as the file's own one does, where it is on this machine; by this Python; else as a
    program of another environment, such as pipx's."""
    import importlib.util
    import shutil

    for task in run.plan.tasks():
        if task.job.name == "tensorboard" and task.host.is_local and task.python:
            return shutil.which(task.python) or task.python, "-m", "tensorboard.main"
    if importlib.util.find_spec("tensorboard") is not None:
        return sys.executable, "-m", "tensorboard.main"
    program = shutil.which("tensorboard")
    return None if program is None else (program,)


def _reserved_port(host: str) -> int:
    """A free port, bound beyond `exec`: TensorBoard can listen beside it, and no other program takes it before."""
    import os
    import socket

    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    sock.bind((host, 0))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    port: int = sock.getsockname()[1]
    os.set_inheritable(sock.detach(), True)
    return port


def _folder(cluster: Cluster, run: Run) -> Path:
    from pathlib import Path

    if not run.plan.checkpoint_folder:
        fail(ERROR, f"{cluster.name} has no checkpoint_dir on this machine; curves come from the event files in it")
    return Path(run.plan.checkpoint_folder)


def _listed(reader: EventReader) -> list[str]:
    return [
        f"{tag}  ({name}, {len(series.steps)} points)" if name != "." else f"{tag}  ({len(series.steps)} points)"
        for name, table in sorted(reader.scalars.items())
        for tag, series in sorted(table.items())
    ]


def _chosen(
    cluster: Cluster, reader: EventReader, tags: tuple[str, ...], first: int | None
) -> dict[tuple[str, str], Series]:
    """The series that fit, by (run, tag)."""
    import fnmatch

    every = {(name, tag): series for name, table in reader.scalars.items() for tag, series in table.items()}
    if not every:
        fail(ERROR, f"{cluster.name} has written no scalars yet; a trainer writes them with tf.summary.scalar")
    found = {}
    for pattern in tags or DEFAULT_TAGS:
        fitting = {key: series for key, series in sorted(every.items()) if fnmatch.fnmatchcase(key[1], pattern)}
        if not fitting and tags:
            known = ", ".join(sorted({tag for _, tag in every})[:TABLE_ROWS])
            fail(UNKNOWN, f'no scalar is called "{pattern}" (scalars: {known})')
        found.update(fitting)
    if not found:
        known = ", ".join(sorted({tag for _, tag in every})[:TABLE_ROWS])
        fail(UNKNOWN, f"no scalar is called loss; name some: {known}")
    return {key: series for key, series in found.items() if first is None or series.steps[-1] >= first}
