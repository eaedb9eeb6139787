"""Snapshots of one cluster in turn, with the rates between them: CPU, steps a second, disks.

The smallest use: `Looker(cluster).look()`. A rate needs two looks; until then it is unknown.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from dtfctl.control.cluster import Cluster
from dtfctl.launchers import gpus
from dtfctl.launchers.usage import Usage, measure
from dtfctl.logs.progress import Progress, Reader, follow
from dtfctl.values.pace import TaskPace
from dtfctl.values.plan import LOCALHOST
from dtfctl.values.run import Run
from dtfctl.values.snapshot import Disk, GpuUse, Snapshot, take
from dtfctl.values.task import TaskStatus

_Key = tuple[str, int]
_Samples = dict[_Key, deque[tuple[float, float]]]


class Looker:
    """One thread. `window_s` is the time over which CPU and step rates are averaged; 0: since the look before."""

    def __init__(self, cluster: Cluster, window_s: float = 0.0) -> None:
        self._cluster = cluster
        self._window_s = window_s
        self._cpu: _Samples = {}
        self._runs: _Samples = {}
        self._usages: dict[str, tuple[float | None, Usage]] = {}
        self._rates: dict[str, float] = {}
        self._gpus: dict[str, GpuUse] = {}
        self._reader: Reader | None = None
        self._folder = ""

    def look(
        self, after: int = 0, is_measured: bool = True, paces: Mapping[str, TaskPace] | None = None
    ) -> Snapshot:
        """`after` is the id of the last event that is known. Without `is_measured` the last measurements stand. `paces`
        are those that the caller knows.

        Raises UnknownCluster, StoreError.
        """
        run, statuses = self._cluster.load()
        if is_measured:
            self._measure(run, statuses)
        progress = self._progress(run)
        history = self._cluster.history(run, after)
        disks = [] if run.is_over else _disks(self._cluster, run)
        usages = {name: found for name, found in self._usages.items() if name in statuses and statuses[name].pid}
        rates = {name: rate for name, rate in self._rates.items() if name in statuses and statuses[name].ready}
        known = (usages, progress, history)
        measured: dict[str, Any] = {"rates": rates, "disks": disks, "strain": _strain(), "paces": paces}
        measured["gpus"] = self._gpus
        return take(run, statuses, time.monotonic(), time.time(), *known, **measured)

    @property
    def has_rates(self) -> bool:
        """Whether the CPU use of a task is known, or no task has a process."""
        return not self._cpu or any(len(samples) > 1 for samples in self._cpu.values())

    def _measure(self, run: Run, statuses: Mapping[str, TaskStatus]) -> None:
        """CPU and memory of this machine's tasks by looking, of others' and the steps by asking the supervisor."""
        pids = {status.pid: status for status in statuses.values() if status.pid}
        here = {pid for pid, status in pids.items() if status.host in ("", LOCALHOST)}
        now = time.monotonic()
        found = {(pids[pid].name, pid): (now, usage) for pid, usage in measure(here).items()}
        tasks: dict[str, Any] = {}
        runs: dict[str, Any] = {}
        if not run.is_over:
            tasks, runs = self._cluster.measured()
        for name, values in tasks.items():
            status = statuses.get(name)
            if status is not None and status.pid:
                fields = {key: value for key, value in values.items() if key != "at"}
                found[name, status.pid] = values["at"], Usage(**fields)
        rates = self._rates_of(self._cpu, {key: (at, usage.cpu_s) for key, (at, usage) in found.items()})
        self._usages = {key[0]: (rates.get(key), usage) for key, (_, usage) in found.items()}
        counted = {
            (name, statuses[name].generation): (float(at), float(count))
            for name, (count, at) in runs.items()
            if name in statuses
        }
        self._rates = {key[0]: rate for key, rate in self._rates_of(self._runs, counted).items()}
        places = {} if run.is_over else {name: run.task(name).place for name in statuses}
        self._gpus = gpus.uses({name: at.gpus for name, at in places.items() if at.gpus and at.host == LOCALHOST})

    def _rates_of(self, kept: _Samples, found: Mapping[_Key, tuple[float, float]]) -> dict[_Key, float]:
        """Per second, of what was found before too. A repeated answer (at the same time) says nothing new."""
        for key in kept.keys() - found.keys():
            del kept[key]
        rates = {}
        for key, sample in found.items():
            samples = kept.setdefault(key, deque())
            if samples and sample[1] < samples[-1][1]:
                # A child has ended, or the count began anew.
                samples.clear()
            if not samples or sample[0] > samples[-1][0]:
                samples.append(sample)
            while len(samples) > 2 and samples[1][0] <= sample[0] - self._window_s:
                samples.popleft()
            if len(samples) > 1:
                rates[key] = (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0])
        return rates

    def _progress(self, run: Run) -> Progress | None:
        folder = run.plan.checkpoint_dir
        if folder != self._folder:
            self._reader, self._folder = follow(folder, is_late=True), folder
        try:
            return None if self._reader is None else self._reader.poll()
        except OSError:
            return None


def _strain() -> float:
    """How many programs want a core of this machine, as of the last minute; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def _disks(cluster: Cluster, run: Run) -> list[Disk]:
    """Those of this machine that the cluster writes to, each file system once."""
    found: dict[int, Disk] = {}
    for use, path in (("checkpoints", run.plan.checkpoint_folder), ("state and logs", str(cluster.paths.folder))):
        try:
            device, room = os.stat(path).st_dev, os.statvfs(path)
        except (OSError, ValueError):
            continue
        free, total = room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize
        if device in found:
            use = f"{found[device].use}, {use}"
        found[device] = Disk(use, path, free, total)
    return list(found.values())
