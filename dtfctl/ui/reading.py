"""What the page shows beside the snapshot: curves, histograms, images, logs, lives, parameters. Read-only.

Each function blocks, and is called in a thread. Event files are read on from where they were; a reader that nobody
has asked for READERS_IDLE_S is forgotten.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtfctl.control.cluster import Cluster
from dtfctl.launchers import gpus
from dtfctl.logs import Choice, Line, LogReader, placement, tasks_with_logs
from dtfctl.logs.events import EventReader
from dtfctl.logs.patterns import LEVELS, compiled, level_of
from dtfctl.metrics.gather import asked
from dtfctl.probes import task_reports
from dtfctl.show import lives
from dtfctl.storage.certificates import Certificates
from dtfctl.ui.documents import Document, finite
from dtfctl.values.plan import LOCALHOST, TLS
from dtfctl.wording import coloured

READERS_IDLE_S = 600.0
POLL_S = 1.0
LINES_MAX = 2_000
LINE_CHARACTERS_MAX = 4_000
VARIABLES_MAX = 5_000
TRAFFIC_TASKS_MAX = 200
FRESH_S = 0.8


@dataclass
class _Reader:
    events: EventReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    asked_at: float = 0.0
    polled_at: float = 0.0


class Curves:
    """The event files of clusters, by checkpoint folder. Safe for several threads."""

    def __init__(self) -> None:
        self._readers: dict[str, _Reader] = {}
        self._lock = threading.Lock()

    def tags(self, cluster: Cluster) -> Document:
        """Which series there are, by run; with the restarts and checkpoints that are marked on their axis."""
        run, _ = cluster.load()
        history = cluster.history(run)
        restarts = [{"time": at, "task": task, "why": why} for at, task, why in lives.restarts(history)]
        with self._reader(run.plan.checkpoint_folder) as found:
            if found is None:
                return {"runs": {}, "checkpoints": [], "restarts": restarts, "folder": ""}
            runs: dict[str, dict[str, list[str]]] = {}
            for kind, series in (
                ("scalars", found.scalars),
                ("histograms", found.samples.histograms),
                ("images", found.samples.images),
            ):
                for name, tags in series.items():
                    runs.setdefault(name, {"scalars": [], "histograms": [], "images": []})[kind] = sorted(tags)
            checkpoints = [{"step": step, "time": at} for step, at in found.checkpoints()]
        return {
            "runs": runs,
            "checkpoints": checkpoints,
            "restarts": restarts,
            "folder": run.plan.checkpoint_folder,
        }

    def points(self, cluster: Cluster, tag: str, first: float, last: float, count: int) -> Document:
        """run -> [steps, times, values] of a scalar; what is not a number is null."""
        run, _ = cluster.load()
        found: Document = {}
        with self._reader(run.plan.checkpoint_folder) as events:
            for name, tags in events.scalars.items() if events is not None else ():
                if tag in tags:
                    steps, times, values = tags[tag].points(count, first, last)
                    found[name] = [steps, [round(at, 3) for at in times], [finite(value) for value in values]]
        return found

    def histogram(self, cluster: Cluster, name: str, tag: str) -> list[Document]:
        run, _ = cluster.load()
        with self._reader(run.plan.checkpoint_folder) as events:
            kept = [] if events is None else list(events.samples.histograms.get(name, {}).get(tag, ()))
        return [
            {
                "step": each.step,
                "time": each.at,
                "low": finite(each.low),
                "high": finite(each.high),
                "limits": [finite(limit) for limit in each.limits],
                "counts": [finite(count) for count in each.counts],
            }
            for each in kept
        ]

    def image(self, cluster: Cluster, name: str, tag: str, number: int) -> tuple[bytes, Document] | None:
        """The newest one's number is -1. `key` is another one when the picture is."""
        run, _ = cluster.load()
        with self._reader(run.plan.checkpoint_folder) as events:
            kept = [] if events is None else list(events.samples.images.get(name, {}).get(tag, ()))
        if not -len(kept) <= number < len(kept):
            return None
        image = kept[number]
        key = f"{len(kept)} {image.step} {image.at} {len(image.data)}"
        return image.data, {"key": key, "step": image.step, "time": image.at, "count": len(kept)}

    def _reader(self, folder: str) -> _Use:
        now = time.monotonic()
        with self._lock:
            for name in [name for name, each in self._readers.items() if now - each.asked_at > READERS_IDLE_S]:
                del self._readers[name]
            reader = None
            if folder:
                reader = self._readers.setdefault(folder, _Reader(EventReader(Path(folder))))
                reader.asked_at = now
        return _Use(reader)


class _Use:
    """A reader while nobody else uses it, and after it has read what is new."""

    def __init__(self, reader: _Reader | None) -> None:
        self._reader = reader

    def __enter__(self) -> EventReader | None:
        reader = self._reader
        if reader is None:
            return None
        reader.lock.acquire()
        now = time.monotonic()
        if now - reader.polled_at > FRESH_S:
            has_more = reader.events.poll()
            reader.polled_at = 0.0 if has_more else now
        return reader.events

    def __exit__(self, *_: object) -> None:
        if self._reader is not None:
            self._reader.lock.release()


# -- logs


@dataclass(frozen=True)
class LogQuestion:
    """`tasks` () is all of them. `run` 0 is the present or last run."""

    tasks: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    levels: frozenset[str] = frozenset()
    since: float | None = None
    until: float | None = None
    run: int = 0

    def takes(self, line: Line) -> bool:
        return not self.levels or (level_of(line.text) or "other") in self.levels


def log_question(
    tasks: Sequence[str], pattern: str, levels: Sequence[str], since: float | None, until: float | None, run: int
) -> LogQuestion:
    """Raises re.error, ValueError in words."""
    unknown = set(levels) - {*LEVELS, "other"}
    if unknown:
        raise ValueError(f"{sorted(unknown)[0]!r} is not a level; use {', '.join(LEVELS)} or other")
    expression = compiled(f"(?i){pattern}", is_linear=True) if pattern else None
    return LogQuestion(tuple(tasks), expression, frozenset(levels), since, until, run)


class LogFollower:
    """The last lines of a cluster's logs, then those that come. One thread at a time."""

    def __init__(self, cluster: Cluster, question: LogQuestion) -> None:
        run, statuses = cluster.load()
        self._cluster = cluster
        self._question = question
        self._is_past_run = question.run not in (0, run.number)
        folder = cluster.paths.logs(question.run or run.number)
        known = [] if self._is_past_run else list(statuses)
        names = [*known, *(name for name in tasks_with_logs(folder) if name not in known)]
        self._tasks = [name for name in names if not question.tasks or name in question.tasks]
        is_plain = question.pattern is None and question.since is None and not question.levels
        tail = max(50, LINES_MAX // max(1, len(self._tasks))) if is_plain else None
        choice = Choice(question.since, question.until, tail, None, question.pattern)
        self._reader = LogReader(folder, self._tasks, choice)
        self._is_all = not question.tasks

    @property
    def has_end(self) -> bool:
        return self._is_past_run or self._question.until is not None

    def past(self) -> list[Document]:
        """The last LINES_MAX, in the order of time."""
        return _documents(deque(filter(self._question.takes, self._reader.past(self._is_over())), maxlen=LINES_MAX))

    def poll(self) -> tuple[list[Document], bool]:
        """What has come, and whether no more will."""
        run, statuses = self._cluster.load()
        if self._is_all:
            self._reader.add(statuses)
        return _documents(filter(self._question.takes, self._reader.poll(run.is_over))), run.is_over

    def _is_over(self) -> bool:
        return self._is_past_run or self._cluster.load()[0].is_over


def _documents(lines: Iterator[Line] | deque[Line] | Any) -> list[Document]:
    return [
        {
            "time": line.time,
            "task": line.task,
            "attempt": line.attempt,
            "level": level_of(line.text),
            "text": coloured(line.text[:LINE_CHARACTERS_MAX], is_kept=False),
        }
        for line in lines
    ]


# -- lives and parameters


def lives_of(cluster: Cluster) -> Document:
    """The stretches of each task's life in the present or last run."""
    run, statuses = cluster.load()
    history = cluster.history(run)
    found = lives.stretches(history, run.ended_at or None)
    names = [*statuses, *(name for name in found if name not in statuses)]
    return {
        "startedAt": run.started_at,
        "endedAt": run.ended_at or None,
        "tasks": [
            {
                "name": name,
                "stretches": [
                    {"state": each.state, "since": each.since, "until": each.until, "cause": each.cause[:300]}
                    for each in found.get(name, ())
                ],
            }
            for name in names
        ],
        "troubles": [{"time": at, "task": task, "words": words[:300]} for at, task, words in lives.troubles(history)],
    }


def runs_of(cluster: Cluster) -> list[int]:
    """The numbers of the runs whose logs are there, the newest first."""
    try:
        names = [path.name for path in cluster.paths.runs.iterdir()]
    except OSError:
        return []
    return sorted((int(name) for name in names if name.isdecimal()), reverse=True)


def parameters_of(cluster: Cluster) -> Document:
    """Which variable lies on which task, by the newest checkpoint's graph."""
    run, _ = cluster.load()
    folder = run.plan.checkpoint_folder
    path = placement.newest_graph(Path(folder)) if folder else None
    if path is None:
        return {"graph": "", "variables": [], "servers": [], "why": _why_no_graph(folder)}
    try:
        found = placement.variables(path.read_bytes())
    except (OSError, ValueError, IndexError):
        return {"graph": path.name, "variables": [], "servers": [], "why": f"{path.name} cannot be read"}
    servers = [task.name for task in run.plan.tasks() if task.job.stops_last]
    found.sort(key=lambda variable: -variable.bytes)
    return {
        "graph": path.name,
        "servers": servers,
        "why": "",
        "count": len(found),
        "variables": [
            {"name": each.name, "task": each.task, "shape": list(each.shape), "bytes": each.bytes}
            for each in found[:VARIABLES_MAX]
        ],
    }


def traffic_of(cluster: Cluster, is_of_all: bool = False) -> Document:
    """What each parameter server, or each task, has sent and received since its start, and how many rows of its
    variables sparse updates have changed, where it reports that (dtf's do). Nothing where a cluster has more than
    `TRAFFIC_TASKS_MAX` of them."""
    run, statuses = cluster.load()
    if run.is_over:
        return {}
    wanted = {name: each for name, each in asked(run, statuses).items() if is_of_all or run.task(name).job.stops_last}
    if len(wanted) > TRAFFIC_TASKS_MAX:
        return {}
    tls = None
    if run.plan.security == TLS:
        tls = Certificates(cluster.paths.tls(run.number)).client_context()
    reports = asyncio.run(task_reports.gather(wanted, tls))
    at = time.monotonic()
    return {
        task: {
            "at": at,
            "generation": statuses[task].generation,
            "sent": sum(each.bytes for each in report.traffic if each.direction == "sent"),
            "received": sum(each.bytes for each in report.traffic if each.direction == "received"),
            "messages": sum(each.messages for each in report.traffic),
            "rows": report.values.get("rows_touched", {}),
        }
        for task, report in reports.items()
    }


def gpus_of(cluster: Cluster) -> Document:
    """By task on this machine: how busy the GPUs are that the cluster file gives to it, and their memory."""
    run, statuses = cluster.load()
    places = {} if run.is_over else {name: run.task(name).place for name in statuses}
    own = {name: place.gpus for name, place in places.items() if place.gpus and place.host == LOCALHOST}
    return {
        name: {"gpus": list(use.numbers), "busy": use.busy, "used": use.used_bytes, "total": use.total_bytes}
        for name, use in gpus.uses(own).items()
    }


def _why_no_graph(folder: str) -> str:
    if not folder:
        return "The cluster file names no checkpoint_dir on this machine."
    return f"No checkpoint with a graph (a .meta file) is in {folder} yet."
