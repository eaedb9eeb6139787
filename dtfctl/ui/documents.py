"""A Snapshot as JSON for the page: what it shows of the cluster, of each task, and what is planned next. Pure.

Times are the wall clock's in whole tenths of a second, so that the document of an unchanged task stays the same.
"""

from __future__ import annotations

import math
from typing import Any

from dtfctl.show.diagnosis import Finding
from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.hosts import UNREACHABLE
from dtfctl.values.snapshot import Snapshot, TaskView

Document = dict[str, Any]
PLANS_MAX = 20
WORDS_MAX = 600


def cluster(snapshot: Snapshot, found: list[Finding], headline: str) -> Document:
    """All but the tasks and the history."""
    progress = snapshot.progress
    return {
        "name": snapshot.name,
        "file": snapshot.file,
        "state": snapshot.state,
        "why": snapshot.why,
        "outcome": snapshot.outcome,
        "isOver": snapshot.is_over,
        "startedAt": snapshot.started_at,
        "ready": snapshot.ready,
        "restarts": snapshot.restarts,
        "step": None if progress is None else progress.step,
        "stepsPerS": None if progress is None else finite(progress.steps_per_s),
        "loss": None if progress is None else finite(progress.loss),
        "lossIsNaN": progress is not None and progress.loss is not None and not math.isfinite(progress.loss),
        "hosts": [
            {"name": host.name, "state": host.state, "since": host.since, "why": host.why} for host in snapshot.hosts
        ],
        "disks": [
            {"use": disk.use, "path": disk.path, "free": disk.free_bytes >> 26 << 26, "total": disk.total_bytes}
            for disk in snapshot.disks
        ],
        "headline": headline,
        "findings": [finding_document(each) for each in found],
        "planned": planned(snapshot),
    }


def finding_document(finding: Finding) -> Document:
    return {
        "kind": str(finding.kind),
        "grade": str(finding.grade),
        "task": finding.task,
        "words": finding.words,
        "advice": finding.advice,
    }


def task(view: TaskView, at: float) -> Document:
    """`at` is the wall clock's time of the snapshot."""
    usage = view.usage
    return {
        "name": view.name,
        "job": view.job,
        "host": view.host,
        "state": UNREACHABLE if view.is_away else view.state,
        "isReady": view.is_ready,
        "restarts": view.restarts,
        "generation": view.generation,
        "failures": view.failures,
        "pid": view.pid,
        "address": view.address,
        "since": _moment(at, view.since_s),
        "nextAt": None if view.next_start_s is None else round(at + view.next_start_s, 1),
        "words": (view.waiting_for or view.words)[:WORDS_MAX],
        "stalled": view.stalled,
        "cores": None if view.cores is None else round(view.cores, 2),
        "memory": None if usage is None else usage.memory_bytes >> 16 << 16,
        "threads": None if usage is None else usage.threads,
        "stepsPerS": None if view.steps_per_s is None else float(f"{view.steps_per_s:.3g}"),
    }


def event(happening: Happening) -> Document:
    return {
        "id": happening.id,
        "time": happening.time,
        "task": happening.task,
        "what": happening.what,
        "cause": happening.cause[:WORDS_MAX],
    }


def planned(snapshot: Snapshot) -> list[Document]:
    """What the supervisor does next, and why; `at` is the wall clock's, None where it waits for something else."""
    if snapshot.is_over:
        return []
    found: list[Document] = []
    if snapshot.outcome:
        found.append({"do": "end", "task": "", "at": None, "why": snapshot.why})
    for view in snapshot.tasks:
        if view.is_away:
            found.append({"do": "wait for host", "task": view.name, "at": None, "why": f"{view.host} does not answer"})
        elif view.state == state.BACKOFF:
            at = None if view.next_start_s is None else round(snapshot.at + view.next_start_s, 1)
            found.append({"do": "start", "task": view.name, "at": at, "why": view.reason})
        elif view.state == state.PENDING:
            found.append({"do": "start", "task": view.name, "at": None, "why": view.reason or "it is to run"})
        elif view.state == state.STOPPING:
            found.append({"do": "end", "task": view.name, "at": None, "why": view.reason or "its end was asked for"})
        elif view.state == state.STARTING:
            why = view.waiting_for or "its process has just begun"
            found.append({"do": "wait until ready", "task": view.name, "at": None, "why": why})
    left = len(found) - PLANS_MAX
    return found if left <= 0 else [*found[:PLANS_MAX], {"do": f"and {left} more", "task": "", "at": None, "why": ""}]


def finite(value: float | None) -> float | None:
    """JSON knows no infinity."""
    return value if value is not None and math.isfinite(value) else None


def _moment(at: float, age_s: float | None) -> float | None:
    """Ages are measured again at each look: whole seconds are the same each time, or nearly."""
    return None if age_s is None else float(round(at - age_s))
