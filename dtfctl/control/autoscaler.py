"""Autoscaler: measures the jobs with `autoscale`, and asks for other numbers of tasks as `supervise.autoscale` decides.

Owns the measurement: after a change, all tasks of the job must run, and for `after_s` seconds their steps are counted.
The change is that of `dtfctl scale`, on hosts that have joined the run; the last change holds until the next look.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from dtfctl.control.client import Reply
from dtfctl.supervise import autoscale
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import state
from dtfctl.values.hosts import CONNECTED
from dtfctl.values.plan import Autoscale, ClusterPlan

VARIABLE = "DTFCTL_AUTOSCALE_AFTER"
"""Seconds of steps that are measured before a decision, in the environment of `dtfctl up`."""

AFTER_S = 30.0
LOOKS = 6
"""How often a measurement is looked at until it is over."""

Runs = Mapping[str, tuple[int, float]]
"""task -> steps of its process's sessions, and when (monotonic) that was asked."""


@dataclass
class _Job:
    memory: autoscale.Memory = field(default_factory=autoscale.Memory)
    generations: dict[str, int] = field(default_factory=dict)
    first: dict[str, tuple[int, float]] = field(default_factory=dict)


class Autoscaler:
    """`runs` gives what the tasks say of their steps, `scale` changes a job to so many tasks, `clock` is monotonic
    seconds.
    """

    def __init__(
        self,
        supervisor: Supervisor,
        runs: Callable[[], Runs],
        scale: Callable[[str, int], Awaitable[Reply]],
        clock: Callable[[], float],
    ) -> None:
        self._supervisor = supervisor
        self._runs = runs
        self._scale = scale
        self._clock = clock
        self._after_s = _seconds(supervisor.run.environment.get(VARIABLE, ""))
        self._jobs: dict[str, _Job] = {}
        self._refused: set[str] = set()

    async def watch(self) -> None:
        """Looks until it is cancelled."""
        while True:
            await asyncio.sleep(self._after_s / LOOKS)
            if not self._supervisor.run.outcome:
                for limits in self._supervisor.run.plan.autoscale:
                    try:
                        await self._look(limits)
                    except Exception as error:  # the next look has other facts
                        self._tell_once(f"autoscale of {limits.job}: {type(error).__name__}: {error}")

    async def _look(self, limits: Autoscale) -> None:
        plan = self._supervisor.run.plan
        replicas = next((job.replicas for job in plan.jobs if job.name == limits.job), 0)
        if not replicas:
            return
        known = self._jobs.setdefault(limits.job, _Job())
        rate = self._measured(known, [f"{limits.job}:{index}" for index in range(replicas)])
        look = autoscale.Look(replicas, places(plan, limits.job, self._away()), rate, self._clock())
        known.memory, decision = autoscale.decide(limits, look, known.memory)
        if decision is None or decision.replicas == replicas:
            return
        reply = await self._scale(limits.job, decision.replicas)
        if error := reply.get("error"):
            self._tell_once(f"{limits.job} cannot have {decision.replicas} tasks: {error}")
            return
        known.generations = {}
        self._supervisor.note_scaled(f"{limits.job}={decision.replicas}: {decision.why}")

    def _tell_once(self, words: str) -> None:
        if words not in self._refused:
            self._refused.add(words)
            self._supervisor.note_trouble("", words)

    def _measured(self, known: _Job, names: list[str]) -> float | None:
        """Steps per second of these tasks together, once that was measured with all of them at work."""
        statuses, runs = self._supervisor.statuses, self._runs()
        generations = {
            name: status.generation
            for name in names
            if (status := statuses.get(name)) is not None and status.state == state.RUNNING and runs.get(name, (0,))[0]
        }
        if len(generations) < len(names) or generations != known.generations:
            known.generations = generations if len(generations) == len(names) else {}
            known.first = {name: runs[name] for name in known.generations}
            return None
        spans = [(runs[name][0] - known.first[name][0], runs[name][1] - known.first[name][1]) for name in names]
        if min(elapsed_s for _, elapsed_s in spans) < self._after_s * (LOOKS - 1) / LOOKS:
            return None
        known.first = {name: runs[name] for name in names}
        return sum(steps / elapsed_s for steps, elapsed_s in spans)

    def _away(self) -> frozenset[str]:
        return frozenset(name for name, host in self._supervisor.run.hosts.items() if host.state != CONNECTED)


def places(plan: ClusterPlan, job_name: str, away: frozenset[str]) -> int:
    """How many tasks of a job the hosts that tasks have joined, and that are not `away`, have room for."""
    job = next(job for job in plan.jobs if job.name == job_name)
    names = job.candidates or tuple(dict.fromkeys(place.host for place in job.places))
    found = 0
    for host in plan.hosts:
        if host.name not in names or host.name in away:
            continue
        if host.slots is None:
            return autoscale.UNLIMITED
        others = sum(place.host == host.name for each in plan.jobs if each is not job for place in each.places)
        found += max(0, host.slots - others)
    return found


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return AFTER_S
    return seconds if 0 < seconds < math.inf else AFTER_S
