"""The message of each event: from what happens in a run to documents for JSON. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from dtfctl.values.history import Happening
from dtfctl.values.restarts import RestartCounts

API_VERSION = "dtfctl/v1"
SUCCEEDED, FAILED, RESTARTED, STALLED = EVENTS = ("succeeded", "failed", "restarted", "stalled")
WORDS_MAX = 4000


@dataclass(frozen=True)
class Notice:
    """`cause` is one of restarts.CAUSES, of a restart; `why` says in words why it happened."""

    event: str
    time: float
    task: str
    why: str
    cause: str = ""


class Notices:
    """Tells those happenings of a run that are events; `before` is what happened earlier."""

    def __init__(self, before: Iterable[Happening] = ()) -> None:
        self._restarts = RestartCounts(before)

    def of(self, happenings: Iterable[Happening]) -> Iterator[Notice]:
        for happening in happenings:
            task, why = happening.task, happening.cause[:WORDS_MAX]
            restarted = self._restarts.take([happening])
            if restarted:
                yield Notice(RESTARTED, happening.time, task, why, restarted[-1][1])
            elif happening.what == STALLED and task:
                yield Notice(STALLED, happening.time, task, why.removeprefix("stalled: "))
            elif not task and happening.what in (SUCCEEDED, FAILED):
                yield Notice(happening.what, happening.time, "", why)


def document(notice: Notice, cluster: str, run: int, file: str, host: str) -> dict[str, Any]:
    """The keys stay as they are."""
    at = datetime.fromtimestamp(notice.time, timezone.utc).isoformat(timespec="milliseconds")
    return {
        "apiVersion": API_VERSION,
        "event": notice.event,
        "time": at.replace("+00:00", "Z"),
        "cluster": cluster,
        "run": run,
        "file": file,
        "host": host,
        "task": notice.task,
        "why": notice.why,
        "cause": notice.cause,
        "text": _text(notice, cluster),
    }


def _text(notice: Notice, cluster: str) -> str:
    """One line for people; chat programs show the key `text` of what is posted to them."""
    subject = f"{cluster}: {notice.task} {notice.event}" if notice.task else f"{cluster} {notice.event}"
    return f"{subject}: {notice.why}" if notice.why else subject
