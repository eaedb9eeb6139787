"""Notebooks: a running LocalCluster and the curves of a training, shown inline.

Owns the pictures: HTML with a table of tasks and curves as SVG, from the cluster and from event files. Starts nothing.

    %load_ext dtf
    cluster = LocalCluster({"ps": 1, "worker": 2}, processes=True)
    %dtf cluster checkpoints            # once; with a number of seconds, again and again for so long
    show(cluster, "checkpoints")        # the same from Python
"""

from __future__ import annotations

import html
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dtf.wire import errors, filesystems

__all__ = ["load_ipython_extension", "render", "scalars", "show"]

POINTS_MAX = 400
CURVES_MAX = 12
INTERVAL_S = 1.0
_WIDTH, _HEIGHT = 320, 140
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")

Curve = Sequence[tuple[int, float]]
"""(step, value) in the order of steps."""


def show(cluster: Any = None, logdir: str = "", seconds: float = 0.0) -> None:
    """Shows the tasks of a cluster and the scalars of a folder in the present cell.

    Args:
      cluster: a LocalCluster; None: no table.
      logdir: a folder with event files, as `checkpoint_dir`; "": no curves.
      seconds: for how long the picture is brought up to date; 0: it is drawn once.

    Raises:
      ImportError: IPython is not installed.
    """
    from IPython.display import HTML, display

    until = time.monotonic() + seconds
    handle = display(HTML(_picture(cluster, logdir)), display_id=True)
    while time.monotonic() < until:
        time.sleep(min(INTERVAL_S, max(0.0, until - time.monotonic())))
        if handle is not None:
            handle.update(HTML(_picture(cluster, logdir)))


def render(tasks: Iterable[tuple[str, str, str]], curves: Mapping[str, Mapping[str, Curve]]) -> str:
    """The HTML of a picture.

    Args:
      tasks: (name, address, state) of each.
      curves: by tag, and by run: several runs of a tag share a drawing.
    """
    parts = ['<div style="font-family: sans-serif; font-size: 13px">']
    rows = [
        f"<tr><td>{html.escape(name)}</td><td>{html.escape(address)}</td>"
        f'<td style="color: {"#2ca02c" if state == "running" else "#d62728"}">{html.escape(state)}</td></tr>'
        for name, address, state in tasks
    ]
    if rows:
        parts.append(f"<table><tr><th>task</th><th>address</th><th>state</th></tr>{''.join(rows)}</table>")
    parts += [_drawing(tag, runs) for tag, runs in sorted(curves.items())[:CURVES_MAX]]
    return "".join([*parts, "</div>"])


def scalars(logdir: str) -> dict[str, dict[str, list[tuple[int, float]]]]:
    """The scalars of a folder's event files, by tag and run; a run is a folder below, "." the folder itself. What is
    written only half is left out.
    """
    from dtf.train import summary_iterator

    found: dict[str, dict[str, dict[int, float]]] = {}
    for place, _, names in filesystems.walk(logdir):
        for name in sorted(names):
            if "tfevents" not in name:
                continue
            run = os.path.relpath(place, logdir)
            try:
                for event in summary_iterator(os.path.join(place, name)):
                    for value in event.summary.value:
                        if value.HasField("simple_value"):
                            found.setdefault(value.tag, {}).setdefault(run, {})[event.step] = value.simple_value
            except errors.OpError:  # its end is being written
                continue
    return {tag: {run: sorted(points.items()) for run, points in runs.items()} for tag, runs in found.items()}


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext dtf` (or `dtf.notebook`): adds the magic `%dtf CLUSTER [FOLDER] [SECONDS]`, and shows a LocalCluster
    that is the value of a cell as a table.

    Args:
      ipython: the InteractiveShell, which IPython passes.
    """
    from dtf.testing import LocalCluster

    def dtf(line: str) -> None:
        cluster_name, *rest = line.split() or [""]
        cluster = ipython.user_ns.get(cluster_name)
        if not isinstance(cluster, LocalCluster):
            subject = cluster_name or "the first word"
            print(f"%dtf: {subject} is not a LocalCluster; write %dtf CLUSTER [FOLDER] [SECONDS]")
            return
        seconds = float(rest.pop()) if rest and rest[-1].replace(".", "", 1).isdigit() else 0.0
        show(cluster, rest[0] if rest else "", seconds)

    ipython.register_magic_function(dtf, "line", "dtf")
    ipython.display_formatter.formatters["text/html"].for_type(LocalCluster, lambda cluster: _picture(cluster, ""))


def _picture(cluster: Any, logdir: str) -> str:
    curves = scalars(logdir) if logdir and filesystems.isdir(logdir) else {}
    return render(_tasks(cluster) if cluster is not None else (), curves)


def _tasks(cluster: Any) -> list[tuple[str, str, str]]:
    found = []
    spec = cluster.cluster_spec
    for job in spec.jobs:
        for index in spec.task_indices(job):
            process = cluster.processes.get((job, index))
            is_there = (job, index) in cluster.servers or (process is not None and process.poll() is None)
            state = "running" if is_there else "not running"
            found.append((f"{job}:{index}", spec.task_address(job, index), state))
    return found


def _drawing(tag: str, runs: Mapping[str, Curve]) -> str:
    """One tag: a line for each run, with the lowest and the highest value beside it."""
    kept = {run: [(step, value) for step, value in points if math.isfinite(value)] for run, points in runs.items()}
    points = [point for curve in kept.values() for point in curve]
    if not points:
        return ""
    low, high = min(value for _, value in points), max(value for _, value in points)
    first, last = min(step for step, _ in points), max(step for step, _ in points)

    def place(step: int, value: float) -> str:
        x = 4 + (_WIDTH - 8) * (step - first) / max(1, last - first)
        y = _HEIGHT - 18 - (_HEIGHT - 40) * (value - low) / ((high - low) or 1.0)
        return f"{x:.1f},{y:.1f}"

    lines = []
    for number, (run, curve) in enumerate(sorted(kept.items())):
        thinned = curve[:: max(1, len(curve) // POINTS_MAX)]
        lines.append(
            f'<polyline fill="none" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="1.5" '
            f'points="{" ".join(place(step, value) for step, value in thinned)}">'
            f"<title>{html.escape(run)}</title></polyline>"
        )
    name = html.escape(tag)
    return (
        f'<svg role="img" aria-label="{name}" width="{_WIDTH}" height="{_HEIGHT}" '
        'style="margin: 4px; background: #fafafa; border: 1px solid #ddd">'
        f'<text x="6" y="14" font-size="12">{name}: {points[-1][1]:.4g} (from {low:.4g} to {high:.4g})</text>'
        f'<text x="6" y="{_HEIGHT - 4}" font-size="10" fill="#666">steps {first} to {last}</text>'
        f"{''.join(lines)}</svg>"
    )
