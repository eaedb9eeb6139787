"""Who is asked when: each starting task whether it is ready, each running one whether it still answers, and whether the
machine of either is about to be taken away. What is found is told to the supervisor.

One asyncio task for each question that is open.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace

from dtfctl.launchers.base import HostChecks
from dtfctl.logs.progress import Reader, follow
from dtfctl.plan import expand
from dtfctl.plan.backups import peer_of
from dtfctl.probes import task_notes
from dtfctl.probes.probe import Question, ask
from dtfctl.storage.certificates import Certificates
from dtfctl.supervise import host_failover, standstill
from dtfctl.supervise.standstill import Standstill
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import state
from dtfctl.values.plan import PROGRESS, Probe, Settings, Task
from dtfctl.values.task import TaskStatus

SLOW_AFTER_S = 10.0
SLOW_INTERVAL_S = 0.5
"""A task that takes long to become ready is asked less often."""

STEPS_INTERVAL_S = 5.0
"""How often it is asked whether a training gets anywhere."""

_Key = tuple[str, str]


class Probing:
    """`checks` gives what looks at things on a task's host, `wake` is called after each finding. `runs` is how many
    steps the sessions of a task's process have run, and when that was asked (monotonic). Servers are asked with the
    cluster's `certificates` where it has such, and commands get the user's own."""

    def __init__(
        self,
        supervisor: Supervisor,
        checks: Callable[[Task], HostChecks],
        wake: Callable[[], None],
        certificates: Certificates | None = None,
    ) -> None:
        self._supervisor = supervisor
        self._checks = checks
        self._wake = wake
        self._tls = None if certificates is None else certificates.client_context()
        self._reader: Reader | None = None
        self._stall_s = _stall_s(supervisor.run.environment.get(standstill.VARIABLE, ""))
        self._variables = {} if certificates is None else certificates.of_client()
        self.runs: dict[str, tuple[int, float]] = {}
        self._asking: dict[_Key, tuple[int, Probe, asyncio.Task[None]]] = {}

    def look_after(self, names: Iterable[str]) -> None:
        """Begins and ends questions as the states of these tasks now demand."""
        for name in names:
            status = self._supervisor.statuses.get(name)
            if status is None:
                self.runs.pop(name, None)
                for what in ("ready", "alive", "steps", "notice"):
                    self._end((name, what))
                continue
            for what, is_open, probe, asked in self._questions(status):
                self._keep((name, what), is_open, status, probe, asked)

    def close(self) -> None:
        for key in list(self._asking):
            self._end(key)

    def _questions(
        self, status: TaskStatus
    ) -> Iterable[tuple[str, bool, Probe, Callable[[Task, TaskStatus, Probe], Awaitable[None]]]]:
        task = self._supervisor.run.task(status.name)
        settings = _settings(task)
        has_process = status.pid is not None
        is_wanted = status.state in state.ALIVE or status.state == state.BACKOFF
        yield "ready", status.state == state.STARTING and has_process, settings.readiness, self._until_ready
        is_running = status.state == state.RUNNING and has_process
        by_steps = settings.liveness.kind == PROGRESS
        yield "alive", is_running and not by_steps, settings.liveness, self._while_alive
        trains = is_running and self._supervisor.run.plan.job_decides(task)
        progress = settings.liveness if by_steps else Probe(PROGRESS, timeout_s=math.inf)
        yield "steps", trains, progress, self._while_training
        yield "notice", is_wanted, settings.preemption, self._for_notice

    def _keep(
        self,
        key: _Key,
        is_open: bool,
        status: TaskStatus,
        probe: Probe,
        asked: Callable[[Task, TaskStatus, Probe], Awaitable[None]],
    ) -> None:
        is_open = is_open and probe.kind != "none"
        # A notice is the machine's, whichever process the task has there.
        generation = 0 if key[1] == "notice" else status.generation
        present = self._asking.get(key)
        if present is not None and (not is_open or present[:2] != (generation, probe)):
            self._end(key)
            present = None
        if is_open and present is None:
            task = self._supervisor.run.task(status.name)
            asking = asyncio.ensure_future(asked(task, status, probe))
            self._asking[key] = generation, probe, asking

    def _end(self, key: _Key) -> None:
        present = self._asking.pop(key, None)
        if present is not None:
            present[2].cancel()

    def _question(self, task: Task, probe: Probe, age_s: float) -> Question:
        """As of now: addresses and hosts may have changed since the last one."""
        run = self._supervisor.run
        task = run.task(task.name)
        fill = expand.fill_command if probe.kind == "command" else expand.fill_path
        target = fill(probe.target, run.actual, task, run.addresses) if probe.target else ""
        environment = (
            expand.environment(run.actual, task, run.addresses, host_failover.inherited(run, task), run.secrets)
            | self._variables
            if probe.kind == "command"
            else {}
        )
        filled = replace(probe, target=target)
        address = run.addresses.get(task.name, "")
        peer = run.addresses.get(peer_of(task.name), "")
        is_liveness = task.name in self._supervisor.statuses and self._supervisor.statuses[task.name].ready
        return Question(filled, task, address, environment, age_s, self._checks(task), self._tls, peer, is_liveness)

    async def _until_ready(self, task: Task, status: TaskStatus, probe: Probe) -> None:
        begun = time.monotonic()
        while True:
            now = time.monotonic()
            missing = await ask(self._question(task, probe, now - (status.started_at or begun)))
            if not missing:
                self._supervisor.note_ready(task.name, status.generation)
                self._wake()
                return
            if self._supervisor.note_waiting(task.name, status.generation, missing):
                self._wake()
            waited_s = now - (status.started_at or begun)
            if probe.kind == "grpc" and waited_s >= standstill.PORT_CLOSED_S and missing.endswith("is not open yet"):
                why = f"{missing}: {standstill.NO_SERVER}"
                if self._supervisor.note_stalled(task.name, status.generation, why, waited_s):
                    self._wake()
            is_slow = now - begun > SLOW_AFTER_S
            await asyncio.sleep(max(probe.interval_s, SLOW_INTERVAL_S if is_slow else 0))

    async def _while_alive(self, task: Task, status: TaskStatus, probe: Probe) -> None:
        """A file must have been written since the question before."""
        failed = 0
        while True:
            await asyncio.sleep(probe.interval_s)
            missing = await ask(self._question(task, probe, probe.interval_s))
            failed = failed + 1 if missing else 0
            if failed >= probe.failures:
                times = f"{failed} times in a row" if failed > 1 else "once"
                self._supervisor.note_ailing(task.name, status.generation, f"hung: {times} {missing}")
                self._wake()
                return

    async def _while_training(self, task: Task, status: TaskStatus, probe: Probe) -> None:
        """Looks now and then whether it gets anywhere; with `liveness: progress` it is restarted where it does not."""
        still = Standstill()
        self.runs.pop(task.name, None)
        stall_s = min(self._stall_s, probe.timeout_s)
        while True:
            await asyncio.sleep(min(STEPS_INTERVAL_S, stall_s / 4))
            run = self._supervisor.run
            now = time.monotonic()
            ended = standstill.ended_server(run.plan, self._supervisor.statuses, now)
            notes = None
            if task.settings.readiness.kind == "grpc" and task.name in run.addresses:
                notes = await task_notes.ask(run.addresses[task.name], self._tls)
            if notes is not None:
                self.runs[task.name] = notes.runs, time.monotonic()
            step = await self._global_step() if task.name == run.plan.chief else None
            stood_s = still.look(None if notes is None else notes.runs, step, now)
            why = ""
            if ended is not None:
                why, stood_s = ended[0], now - ended[1]
            elif stood_s >= stall_s:
                why = still.words
            if self._supervisor.note_stalled(task.name, status.generation, why, stood_s):
                self._wake()
            if why and stood_s >= probe.timeout_s:
                words = f"hung: no progress for {stood_s:.0f}s: {why}"
                self._supervisor.note_ailing(task.name, status.generation, words)
                self._wake()
                return

    async def _let_chief_save(self) -> None:
        """A parameter server is about to go, and the chief may stay: what it holds is saved first, if that can be."""
        run = self._supervisor.run
        chief = self._supervisor.statuses.get(run.plan.chief)
        if chief is None or chief.state != state.RUNNING or chief.name not in run.addresses:
            return
        settings = run.task(chief.name).settings
        if settings.readiness.kind == "grpc":
            await task_notes.have_saved(run.addresses[chief.name], self._tls, settings.grace_period_s)

    async def _global_step(self) -> int | None:
        """Of the event files and checkpoints, None where there are none to be seen from here."""
        if self._reader is None:
            self._reader = follow(self._supervisor.run.plan.checkpoint_dir, is_late=True)
            if self._reader is None:
                return None
        try:
            progress = await asyncio.to_thread(self._reader.poll)
        except OSError:
            return None
        return None if progress is None else progress.step

    async def _for_notice(self, task: Task, status: TaskStatus, probe: Probe) -> None:
        what = f"the file {probe.target} is there" if probe.kind == "file" else "the provider sent its notice"
        while True:
            missing = await ask(self._question(task, probe, math.inf))
            present = self._supervisor.statuses.get(task.name)
            if not missing and task.job.stops_last and present is not None and not present.notice:
                await self._let_chief_save()
            if self._supervisor.note_notice(task.name, "" if missing else f"preempted: {what}"):
                self._wake()
            await asyncio.sleep(probe.interval_s)


def _settings(task: Task) -> Settings:
    """With the probes that are asked from here: an engine may ask the others itself."""
    if not task.host.probes_itself:
        return task.settings
    by_steps = task.settings.liveness.kind == PROGRESS
    liveness = task.settings.liveness if by_steps else Probe("none")
    return replace(task.settings, readiness=Probe("none"), liveness=liveness, preemption=Probe("none"))


def _stall_s(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        return standstill.PATIENCE_S
    return seconds if 0 < seconds < math.inf else standstill.PATIENCE_S
