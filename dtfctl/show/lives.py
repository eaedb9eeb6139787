"""The lives of tasks as stretches of time, from the history: what each was, from when to when, and why. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dtfctl.values.history import Happening

STARTING, RUNNING, WAITING, STOPPING, DOWN, DONE, FAILED = (
    "starting",
    "running",
    "backoff",
    "stopping",
    "stopped",
    "succeeded",
    "failed",
)

_BECOMES = {
    "start": STARTING,
    "started": STARTING,
    "ready": RUNNING,
    "ended": WAITING,
    "retry": WAITING,
    "renew": WAITING,
    "terminate": STOPPING,
    "kill": STOPPING,
    "stop": DOWN,
    "abandon": DOWN,
    "succeed": DONE,
    "fail": FAILED,
    "give-up": FAILED,
}
"""What a task is after an event. Others (stalled, notice, asked for) change nothing by themselves."""

_POINTS = frozenset({"stalled", "hangs", "trouble", "notice"})


@dataclass(frozen=True)
class Stretch:
    """`until` is None while it lasts. `cause` is why it began."""

    task: str
    state: str
    since: float
    until: float | None
    cause: str


def stretches(history: Iterable[Happening], end: float | None = None) -> dict[str, list[Stretch]]:
    """By task, in order. `end` is when the run ended, None while it lasts; times are the wall clock's."""
    found: dict[str, list[Stretch]] = {}
    for item in history:
        becomes = _BECOMES.get(item.what)
        if not item.task or becomes is None:
            continue
        life = found.setdefault(item.task, [])
        last = life[-1] if life else None
        if last is not None and last.state == becomes and item.what not in ("start", "ready"):
            if item.what in ("retry", "renew"):
                life[-1] = Stretch(item.task, becomes, last.since, None, item.cause)
            continue
        if last is not None:
            life[-1] = Stretch(item.task, last.state, last.since, item.time, last.cause)
        life.append(Stretch(item.task, becomes, item.time, None, item.cause))
    if end is not None:
        for life in found.values():
            last = life[-1]
            life[-1] = Stretch(last.task, last.state, last.since, max(end, last.since), last.cause)
    return found


def restarts(history: Iterable[Happening]) -> list[tuple[float, str, str]]:
    """(when, task, why) of each process of a task after its first."""
    had: set[str] = set()
    found = []
    for item in history:
        if item.what == "start":
            if item.task in had:
                found.append((item.time, item.task, item.cause))
            had.add(item.task)
    return found


def troubles(history: Iterable[Happening]) -> list[tuple[float, str, str]]:
    """(when, task, words) of what befell tasks without ending them."""
    return [(item.time, item.task, f"{item.what}: {item.cause}") for item in history if item.what in _POINTS]
