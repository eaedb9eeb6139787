"""Reports of dtf's tasks in turn, while a page is open, as a TaskPace for each: what no single look shows.

    pacing = Pacing()
    pacing.take(await ask(cluster), time.monotonic())
    pacing.paces

Asks at most TASKS_MAX tasks, since each answer costs the task about a millisecond.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from dtfctl.control.cluster import Cluster
from dtfctl.metrics.gather import asked
from dtfctl.probes import task_reports
from dtfctl.storage.certificates import Certificates
from dtfctl.values.pace import TaskPace
from dtfctl.values.plan import TLS
from dtfctl.values.report import TaskReport

ASK_S = 5.0
TASKS_MAX = 200
RUNS_WINDOW_S = 25.0
SAVES_WINDOW_S = 180.0
ANSWERS = 5
ANSWERS_MIN = 3

Reports = Mapping[tuple[str, int], TaskReport]


async def ask(cluster: Cluster) -> Reports:
    """By (task, generation); nothing where a cluster has more than TASKS_MAX tasks.

    Raises UnknownCluster, StoreError.
    """
    run, statuses = await asyncio.to_thread(cluster.load)
    wanted = {} if run.is_over else asked(run, statuses)
    if len(wanted) > TASKS_MAX:
        return {}
    tls = Certificates(cluster.paths.tls(run.number)).client_context() if run.plan.security == TLS else None
    found = await task_reports.gather(wanted, tls)
    return {(task, statuses[task].generation): report for task, report in found.items()}


class Pacing:
    """One thread."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, int], _Task] = {}

    def take(self, reports: Reports, now: float) -> None:
        """`now` is the monotonic clock's. A task that has not answered keeps what it has said for one window."""
        for key, report in reports.items():
            self._tasks.setdefault(key, _Task()).take(report, now)
        names = {name for name, _ in reports}
        for key in [
            key
            for key, task in self._tasks.items()
            if (key[0] in names and key not in reports) or now - task.samples[-1][0] > RUNS_WINDOW_S
        ]:
            del self._tasks[key]

    @property
    def paces(self) -> dict[str, TaskPace]:
        return {name: task.pace() for (name, _), task in self._tasks.items()}


class _Task:
    def __init__(self) -> None:
        self.samples: deque[tuple[float, TaskReport]] = deque()
        self._answers: deque[float] = deque(maxlen=ANSWERS)
        self._ran_at = 0.0

    def take(self, report: TaskReport, now: float) -> None:
        if not self.samples or report.runs.count != self.samples[-1][1].runs.count:
            self._ran_at = now
        self.samples.append((now, report))
        self._answers.append(report.answered_s)
        while len(self.samples) > 2 and self.samples[1][0] <= now - SAVES_WINDOW_S:
            self.samples.popleft()

    def pace(self) -> TaskPace:
        now, last = self.samples[-1]
        at, first = next(sample for sample in self.samples if sample[0] >= now - RUNS_WINDOW_S)
        runs = last.runs.count - first.runs.count
        begun, oldest = self.samples[0]
        saves = last.saves.count - oldest.saves.count
        saved_s = last.saves.total_s - oldest.saves.total_s
        return TaskPace(
            runs=last.runs.count,
            idle_s=now - self._ran_at,
            runs_per_s=runs / (now - at) if runs > 0 else None,
            run_s=(last.runs.total_s - first.runs.total_s) / runs if runs > 0 else None,
            saves=max(0, saves),
            save_s=saved_s / saves if saves > 0 else 0.0,
            save_part=saved_s / max(now - begun, RUNS_WINDOW_S) if saves > 0 else 0.0,
            answer_s=min(self._answers) if len(self._answers) >= ANSWERS_MIN else None,
            waits_s=last.values.get("queue_waits_s", {}),
        )
