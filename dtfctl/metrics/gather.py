"""A Snapshot with all that can be known of a running cluster: what tasks take and report, progress, restarts.

Owns what is read on from look to look. The supervisor uses it for its endpoint, `dtfctl metrics` for one look.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from dtfctl.launchers.usage import Usage, measure
from dtfctl.logs.progress import Progress, Reader, follow
from dtfctl.probes import task_reports
from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.plan import LOCALHOST
from dtfctl.values.report import TaskReport
from dtfctl.values.restarts import RestartCounts
from dtfctl.values.run import Run
from dtfctl.values.snapshot import Snapshot, take
from dtfctl.values.task import TaskStatus

Elsewhere = Callable[[], Awaitable[Mapping[str, Usage]]]
History = Callable[[Run, int], Sequence[Happening]]


class Gatherer:
    """`history` gives what happened in a run after an id, `elsewhere` what tasks on other machines take."""

    def __init__(self, history: History, elsewhere: Elsewhere, tls: ssl.SSLContext | None) -> None:
        self._history = history
        self._elsewhere = elsewhere
        self._tls = tls
        self._restarts = RestartCounts()
        self._run = -1
        self._progress: Reader | None = None
        self._folder = ""

    async def look(self, run: Run, statuses: Mapping[str, TaskStatus]) -> Snapshot:
        if run.number != self._run:
            self._run, self._restarts = run.number, RestartCounts()
        self._restarts.take(self._history(run, self._restarts.last_id))
        usages, reports = await asyncio.gather(self._usages(run, statuses), self._reports(run, statuses))
        now = time.monotonic()
        progress = await asyncio.to_thread(self._poll, run)
        return take(
            run,
            statuses,
            now,
            time.time(),
            usages={name: (0.0, usage) for name, usage in usages.items()},
            progress=progress,
            reports=reports,
            restarts_by_cause=dict(self._restarts.counts),
        )

    async def _usages(self, run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, Usage]:
        here = {
            status.pid: status.name for status in statuses.values() if status.pid and status.host in ("", LOCALHOST)
        }
        found = {here[pid]: usage for pid, usage in (await asyncio.to_thread(measure, here)).items()} if here else {}
        if run.hosts and not run.is_over:
            found.update(await self._elsewhere())
        return found

    async def _reports(self, run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, TaskReport]:
        if run.is_over:
            return {}
        return await task_reports.gather(asked(run, statuses), self._tls)

    def _poll(self, run: Run) -> Progress | None:
        folder = run.plan.checkpoint_dir
        if folder != self._folder:
            self._progress, self._folder = follow(folder, is_late=True), folder
        try:
            return None if self._progress is None else self._progress.poll()
        except OSError:
            return None


def asked(run: Run, statuses: Mapping[str, TaskStatus]) -> dict[str, str]:
    """The addresses of the tasks that may have something to report: those that may run a server of the protocol."""
    return {
        name: run.addresses[name]
        for name, status in statuses.items()
        if status.state == state.RUNNING
        and run.addresses.get(name)
        and not run.task(name).job.is_sidecar
    }
