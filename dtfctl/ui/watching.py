"""One loop for each cluster that a page shows: it takes Snapshots and wakes the requests that wait for news. The loop
ends with the last page.

A look is taken when the supervisor says that something has changed, and every MEASURE_S for what is measured. Looks
take at most a fifth of the time, however large the cluster is.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from dtfctl.control.cluster import Cluster
from dtfctl.errors import DtfctlError
from dtfctl.show import diagnosis
from dtfctl.show.looker import Looker
from dtfctl.ui import documents, pacing
from dtfctl.ui.documents import Document
from dtfctl.ui.pacing import Pacing
from dtfctl.values.snapshot import Snapshot
from dtfctl.wording import reason_of

MEASURE_S = 2.0
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 4.0
"""A look that calls for a longer pause has waited for the supervisor, and not computed."""
BUSY_PART = 0.2
EVENTS_KEPT = 300
WINDOW_S = 12.0
"""CPU and step rates are averages over this time, so that a finding does not come and go."""

ENDED_LOOK_S = 2.0
BEAT_S = 4.0
"""Where nothing changes, a document so often has the age of the last look: a supervisor may hang."""


@dataclass
class _Known:
    """What is known now. `tasks` holds the same document for a task as long as nothing of it changes."""

    version: int = 0
    cluster: Document = field(default_factory=dict)
    tasks: dict[str, Document] = field(default_factory=dict)
    events: deque[Document] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    error: str = ""


class Watching:
    """The loops, by cluster. Lives in one event loop."""

    def __init__(self) -> None:
        self._watches: dict[str, _Watch] = {}

    async def changes(self, cluster: Cluster) -> AsyncIterator[Document]:
        """The cluster as it is, then what has changed, for ever: {cluster, tasks, gone, events} or {error}. {lookedS},
        the age of the last look in seconds, where nothing has changed for a while."""
        watch = self._watches.get(cluster.name)
        if watch is None:
            watch = self._watches[cluster.name] = _Watch(cluster)
        watch.watchers += 1
        try:
            async for change in watch.changes():
                yield change
        finally:
            watch.watchers -= 1
            if not watch.watchers:
                watch.end()
                if self._watches.get(cluster.name) is watch:
                    del self._watches[cluster.name]

    def close(self) -> None:
        for watch in self._watches.values():
            watch.end()


class _Watch:
    def __init__(self, cluster: Cluster) -> None:
        # Connections are this loop's own.
        self._cluster = Cluster(cluster.paths)
        self._looker = Looker(self._cluster, WINDOW_S)
        self._known = _Known()
        self._changed = asyncio.Event()
        self._last_event = 0
        self._looked_at = time.monotonic()
        self._is_over = False
        self._pacing = Pacing()
        self.watchers = 0
        self._loops = [asyncio.ensure_future(self._run()), asyncio.ensure_future(self._ask())]

    def end(self) -> None:
        for loop in self._loops:
            loop.cancel()

    async def changes(self) -> AsyncIterator[Document]:
        version, last_event = 0, 0
        sent: dict[str, Document] = {}
        while True:
            known = self._known
            if known.version == version:
                try:
                    await asyncio.wait_for(self._changed.wait(), BEAT_S)
                except asyncio.TimeoutError:
                    yield {"lookedS": 0.0 if self._is_over else round(time.monotonic() - self._looked_at, 1)}
                continue
            version = known.version
            if known.error:
                yield {"error": known.error}
                continue
            new = [each for each in known.events if each["id"] > last_event]
            last_event = new[-1]["id"] if new else last_event
            yield {
                "cluster": known.cluster,
                "tasks": [each for name, each in known.tasks.items() if sent.get(name) is not each],
                "gone": [name for name in sent if name not in known.tasks],
                "events": new,
            }
            sent = dict(known.tasks)

    async def _run(self) -> None:
        measured_at = 0.0
        while True:
            begun = time.monotonic()
            is_measured = begun - measured_at >= MEASURE_S
            is_over = True
            signature = _signature(self._cluster)
            try:
                paces = self._pacing.paces
                snapshot = await asyncio.to_thread(self._looker.look, self._last_event, is_measured, paces)
                self._is_over = is_over = snapshot.is_over
                self._looked_at = time.monotonic()
                if is_measured:
                    measured_at = begun
                self._take(snapshot)
            except (DtfctlError, OSError) as error:
                self._fail(str(error) if isinstance(error, DtfctlError) else reason_of(error))
            took_s = time.monotonic() - begun
            await asyncio.sleep(min(PAUSE_MAX_S, max(PAUSE_MIN_S, took_s * (1 / BUSY_PART - 1))))
            if is_over:
                while _signature(self._cluster) == signature:
                    await asyncio.sleep(ENDED_LOOK_S)
            else:
                left_s = max(0.01, measured_at + MEASURE_S - time.monotonic())
                try:
                    await asyncio.to_thread(self._cluster.wait_for_change, left_s)
                except (DtfctlError, OSError) as error:
                    self._fail(str(error) if isinstance(error, DtfctlError) else reason_of(error))
                    await asyncio.sleep(ENDED_LOOK_S)

    async def _ask(self) -> None:
        """Asks the tasks for their reports. Connections are this loop's own."""
        cluster = Cluster(self._cluster.paths)
        while True:
            with contextlib.suppress(DtfctlError, OSError):  # the other loop says so
                self._pacing.take(await pacing.ask(cluster), time.monotonic())
            await asyncio.sleep(pacing.ASK_S)

    def _take(self, snapshot: Snapshot) -> None:
        found = diagnosis.findings(snapshot)
        headline = diagnosis.headline(snapshot, found)
        known = self._known
        tasks: dict[str, Document] = {}
        for view in snapshot.tasks:
            document, former = documents.task(view, snapshot.at), known.tasks.get(view.name)
            tasks[view.name] = former if former is not None and _is_same(former, document) else document
        events = known.events
        for happening in snapshot.history:
            events.append(documents.event(happening))
            self._last_event = happening.id
        cluster = documents.cluster(snapshot, found, headline)
        is_new = (
            cluster != known.cluster
            or snapshot.history
            or known.error
            or len(tasks) != len(known.tasks)
            or any(known.tasks.get(name) is not document for name, document in tasks.items())
        )
        if is_new:
            self._known = _Known(known.version + 1, cluster, tasks, events)
            self._wake()

    def _fail(self, words: str) -> None:
        if self._known.error != words:
            self._known = _Known(self._known.version + 1, error=words)
            self._last_event = 0
            self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _is_same(former: Document, document: Document) -> bool:
    """Whether nobody would see a difference: an age may be off by a second."""
    if former == document:
        return True
    one, other = former["since"], document["since"]
    is_near = one is not None and other is not None and abs(one - other) <= 1.5
    return is_near and {**former, "since": other} == document


def _signature(cluster: Cluster) -> Any:
    """Changes when the store is written."""
    found = []
    for suffix in ("", "-wal"):
        try:
            status = os.stat(f"{cluster.paths.store}{suffix}")
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            found.append((0, 0, 0))
    return found
