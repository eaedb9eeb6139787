"""The supervisor's process: `python -m dtfctl.daemon STATE_DIR PURPOSE`. One per cluster; ends with the cluster.

Wires clock, disk, launcher, probes and control socket to the Supervisor, and turns its loop. When a run is on record
that is not over, it adopts it. Otherwise its purpose decides: `adopt` ends, `serve` waits a moment for an `up`.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import random
import secrets
import shutil
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from dtfctl import expand, state
from dtfctl import plan as plans
from dtfctl.control import ControlServer, Reply, Request
from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Event
from dtfctl.launchers.keeper import TOKEN, boot_id
from dtfctl.launchers.local import LocalLauncher
from dtfctl.paths import ClusterPaths
from dtfctl.plan import TLS, ClusterPlan
from dtfctl.probe import check
from dtfctl.store import Run, Store
from dtfctl.supervisor import Supervisor
from dtfctl.task import TaskStatus, after_restart_of_machine

PATIENCE_FOR_UP_S = 15.0
LOCK_ATTEMPTS = 10
RUNS_KEPT = 5
"""The logs of so many runs stay."""

SLOW_PROBE_AFTER_S = 10.0
SLOW_PROBE_INTERVAL_S = 0.5


def main() -> None:
    paths = ClusterPaths(Path(sys.argv[1]))
    os.chdir(paths.folder)
    os.umask(0o077)
    if not take_lock(paths.lock):
        # Two were started at once, by the keeper and by a command: one is enough.
        return
    asyncio.run(Daemon(paths).main(is_serving=sys.argv[2] == "serve"))


def take_lock(path: Path) -> bool:
    """The lock is held until this process ends, whatever ends it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            # A command that looks whether somebody holds the lock has it for an instant.
            time.sleep(0.01)
    return False


class Daemon:
    """Everything here happens in one event loop."""

    def __init__(self, paths: ClusterPaths) -> None:
        self._paths = paths
        self._store = Store(paths.store)
        self._control = ControlServer(paths, self._answer)
        self._launcher: LocalLauncher | None = None
        self._supervisor: Supervisor | None = None
        self._work = asyncio.Event()
        self._begun = asyncio.Event()
        self._up_lock = asyncio.Lock()
        self._probes: dict[str, tuple[int, asyncio.Task[None]]] = {}

    async def main(self, is_serving: bool) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop_by_signal)
        loaded = self._store.load()
        if loaded is not None and not loaded[0].is_over:
            await self._supervise(*loaded)
        elif not is_serving:
            return
        await self._control.start()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._begun.wait(), PATIENCE_FOR_UP_S)
        if self._supervisor is None or self._launcher is None:
            await self._control.close()
            return
        await self._turn(self._supervisor)
        for _, probe in self._probes.values():
            probe.cancel()
        self._supervisor.end(await self._launcher.sweep())
        await self._launcher.close()
        self._store.close()
        self._control.publish()
        await self._control.close()

    async def _turn(self, supervisor: Supervisor) -> None:
        while True:
            self._work.clear()
            look_again_at = supervisor.step()
            self._control.publish()
            if supervisor.is_finished:
                return
            self._look_after_probes(supervisor)
            wait_s = None if look_again_at is None else max(0.0, look_again_at - time.monotonic())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._work.wait(), wait_s)

    async def _answer(self, request: Request) -> Reply:
        if request["do"] == "up":
            async with self._up_lock:
                return await self._up(plans.from_json(request["plan"]), request["environment"], request["secrets"])
        if request["do"] == "down":
            if self._supervisor is None:
                return {"error": "nothing is running"}
            self._supervisor.stop(request["why"], request["grace_period_s"])
            self._work.set()
            return {"is": "stopping"}
        return {"error": f"unknown request {request['do']!r}"}

    async def _up(self, plan: ClusterPlan, environment: dict[str, str], secrets: dict[str, str]) -> Reply:
        if self._supervisor is not None:
            run = self._supervisor.run
            if run.outcome:
                return {"is": "ending"}
            return {"is": "running", "differences": plans.differences(run.plan, plan)}
        missing = _what_is_missing(plan)
        if missing:
            self._begun.set()
            return {"error": missing}
        former = self._store.load()
        number = former[0].number + 1 if former else 1
        self._make_run_dir(number)
        try:
            launcher = self._make_launcher(number)
            await launcher.connect()
            addresses = await self._hold_ports(launcher, plan, former[0].addresses if former else {})
        except PortTaken as error:
            await launcher.close()
            shutil.rmtree(self._paths.run(number), ignore_errors=True)
            self._begun.set()
            return {"error": str(error)}
        token = (self._paths.run(number) / TOKEN).read_text().strip()
        run = Run(number, token, boot_id(), plan, environment, addresses, time.time(), secrets)
        statuses = {task.name: TaskStatus(task.name) for task in plan.tasks()}
        self._store.begin(run, statuses.values())
        self._make_supervisor(run, statuses, launcher)
        return {"is": "started"}

    async def _hold_ports(
        self, launcher: LocalLauncher, plan: ClusterPlan, former: Mapping[str, str]
    ) -> dict[str, str]:
        """Addresses of all tasks; one that dtfctl chooses is the former run's when that is still free."""
        addresses = {}
        for task in plan.tasks():
            if not task.job.has_address:
                continue
            within, fixed = task.job.port_range, task.place.port > 0
            port = task.place.port or int(former.get(task.name, ":0").rpartition(":")[2])
            if not fixed and within is not None and not within[0] <= port <= within[1]:
                port = 0
            held = await launcher.hold_port(task.name, task.bind_host, port, fixed, within)
            addresses[task.name] = f"{task.advertised_host}:{held}"
        return addresses

    def _make_run_dir(self, number: int) -> None:
        shutil.rmtree(self._paths.run(number), ignore_errors=True)
        self._paths.logs(number).mkdir(parents=True)
        (self._paths.run(number) / TOKEN).write_text(secrets.token_hex(12))
        for old in sorted(self._paths.runs.iterdir())[:-RUNS_KEPT]:
            shutil.rmtree(old, ignore_errors=True)

    async def _supervise(self, run: Run, statuses: dict[str, TaskStatus]) -> None:
        """Adopts a run whose supervisor has gone."""
        if run.boot != boot_id():
            statuses = {name: after_restart_of_machine(status, time.monotonic()) for name, status in statuses.items()}
            run = replace(run, boot=boot_id())
        launcher = self._make_launcher(run.number)
        self._make_supervisor(run, statuses, launcher)
        await launcher.connect()

    def _make_launcher(self, number: int) -> LocalLauncher:
        self._launcher = LocalLauncher(self._paths.run(number), self._paths.folder, self._on_event)
        return self._launcher

    def _make_supervisor(self, run: Run, statuses: dict[str, TaskStatus], launcher: LocalLauncher) -> None:
        self._supervisor = Supervisor(run, statuses, self._store, launcher, self._paths, time.monotonic, random.random)
        self._begun.set()

    def _on_event(self, event: Event) -> None:
        if self._supervisor is not None:
            self._supervisor.handle(event)
            self._work.set()

    def _stop_by_signal(self) -> None:
        if self._supervisor is None:
            self._begun.set()
        else:
            self._supervisor.stop("the supervisor was told to end", None)
            self._work.set()

    # -- probes: one asyncio task for each starting process

    def _look_after_probes(self, supervisor: Supervisor) -> None:
        for status in supervisor.statuses.values():
            is_wanted = status.state == state.STARTING and status.pid is not None
            generation, probe = self._probes.get(status.name, (0, None))
            if probe is not None and (not is_wanted or generation != status.generation):
                probe.cancel()
                del self._probes[status.name]
                probe = None
            if is_wanted and probe is None:
                probe = asyncio.create_task(self._probe(supervisor, status))
                self._probes[status.name] = status.generation, probe

    async def _probe(self, supervisor: Supervisor, status: TaskStatus) -> None:
        run = supervisor.run
        task = run.plan.task(status.name)
        target = expand.fill_path(task.settings.readiness.target, run.plan, task, run.addresses)
        probe = replace(task.settings.readiness, target=target)
        begun = time.monotonic()
        age_s = begun - (status.started_at or begun)
        started_at = time.time() - age_s
        command = expand.fill_command(task.settings.readiness.target, run.plan, task, run.addresses)
        environment = expand.environment(run.plan, task, run.addresses, run.environment, run.secrets)
        told = ""
        while True:
            address = run.addresses.get(task.name, "")
            missing = await check(probe, task, address, command, environment, started_at)
            if not missing:
                supervisor.note_ready(task.name, status.generation)
                self._work.set()
                return
            if missing != told:
                supervisor.note_waiting(task.name, status.generation, missing)
                self._work.set()
                told = missing
            is_slow = time.monotonic() - begun > SLOW_PROBE_AFTER_S
            await asyncio.sleep(max(probe.interval_s, SLOW_PROBE_INTERVAL_S if is_slow else 0))


def _what_is_missing(plan: ClusterPlan) -> str:
    """What the file asks for and cannot have; better refused than left out in silence."""
    remote = [host.name for host in plan.hosts if not host.is_local]
    if remote:
        return f"tasks run on this machine only, and the file names {', '.join(remote)}"
    if plan.security == TLS:
        return "security: tls is not available"
    return ""


if __name__ == "__main__":
    main()
