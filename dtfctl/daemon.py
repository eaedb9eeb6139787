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
import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

from dtfctl.control.autoscaler import Autoscaler
from dtfctl.control.client import Reply, Request
from dtfctl.control.protocol import plan_of
from dtfctl.control.requests import RequestHandler, hold_ports
from dtfctl.control.server import ControlServer
from dtfctl.control.verbs import Purpose, Verb
from dtfctl.errors import DtfctlError, HostsUnusable, NotPrivate, PortTaken, StoreError, StoreUnwritable
from dtfctl.launchers import reached
from dtfctl.launchers.base import Event, HostLauncher
from dtfctl.launchers.bridge import group
from dtfctl.launchers.bridge.engines import engine_of, program_of
from dtfctl.launchers.bridge.launcher import BridgeLauncher
from dtfctl.launchers.keeper import SOCKET, TOKEN
from dtfctl.launchers.keeper.processes import boot_id
from dtfctl.launchers.leftovers import clean_reached
from dtfctl.launchers.local import LocalLauncher, end_keeper
from dtfctl.launchers.multi_host import HostsLauncher
from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.remote import RemoteLauncher, remote_run, remote_token
from dtfctl.launchers.usage import Usage
from dtfctl.launchers.ways import pipe_to
from dtfctl.metrics.endpoint import MetricsAddressTaken, MetricsEndpoint
from dtfctl.metrics.gather import Gatherer
from dtfctl.notices.sender import NoticeSender
from dtfctl.plan.backups import is_place, peer_of
from dtfctl.probes.places import PlaceWatch
from dtfctl.probes.probing import Probing
from dtfctl.probes.task_notes import have_saved
from dtfctl.storage.certificates import Certificates
from dtfctl.storage.ownership import check_private
from dtfctl.storage.paths import TLS_FOLDER, ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.supervise import allocation
from dtfctl.supervise.host_failover import launcher_host
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import plan as plans
from dtfctl.values import state
from dtfctl.values.history import Happening
from dtfctl.values.hosts import as_found
from dtfctl.values.plan import BRIDGED, KUBERNETES, LOCALHOST, SLURM, TLS, ClusterPlan, HostPlan, Task
from dtfctl.values.run import Run
from dtfctl.values.snapshot import Snapshot
from dtfctl.values.task import TaskStatus
from dtfctl.wire.messages import Complaints
from dtfctl.wording import reason_and_file

PATIENCE_FOR_UP_S = 15.0
LOCK_ATTEMPTS = 10
ROUND_PAUSE_S_MAX = 0.01
RUNS_KEPT = 5
"""The logs of so many runs stay."""

WRITE_AGAIN_S = 1.0
"""Before what a full disk did not take is written again."""

CLEAN_S = 10.0
"""How long a supervisor without work stays because of what former runs have left on other hosts."""

MOVE_PAUSE_S = 5.0
"""Before a spare that could not take a task over is asked again."""


def main() -> None:
    paths = ClusterPaths(Path(sys.argv[1]))
    os.chdir(paths.folder)
    os.umask(0o077)
    try:
        check_private(paths.folder)
    except NotPrivate as error:
        sys.exit(str(error))
    if not take_lock(paths.lock):
        # Two were started at once, by the keeper and by a command: one is enough.
        return
    try:
        daemon = Daemon(paths)
    except StoreError as error:
        sys.exit(str(error))
    asyncio.run(daemon.main(is_serving=sys.argv[2] == Purpose.SERVE))


def take_lock(path: Path) -> bool:
    """The lock is held until this process ends, whatever ends it."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(LOCK_ATTEMPTS):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            # A command that tests whether the lock is held takes the lock for an instant.
            time.sleep(0.01)
    return False


class Daemon:
    """Everything here happens in one event loop."""

    def __init__(self, paths: ClusterPaths) -> None:
        self._paths = paths
        self._store = Store(paths.store)
        self._control = ControlServer(paths, self._answer)
        self._launcher: HostsLauncher | None = None
        self._allocation: allocation.Allocation | None = None
        self._moving: asyncio.Task[None] | None = None
        self._parting: asyncio.Task[None] | None = None
        self._explaining: asyncio.Task[None] | None = None
        self._supervisor: Supervisor | None = None
        self._certificates: Certificates | None = None
        self._work = asyncio.Event()
        self._begun = asyncio.Event()
        self._is_told_to_end = False
        self._complaints = Complaints()
        self._changing = asyncio.Lock()
        self._probing: Probing | None = None
        self._autoscaling: asyncio.Task[None] | None = None
        self._places: PlaceWatch | None = None
        self._gatherer: Gatherer | None = None
        self._metrics = MetricsEndpoint(self._look)
        self._notices: NoticeSender | None = None

    async def main(self, is_serving: bool) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop_by_signal)
        loaded = self._store.load()
        if loaded is not None and not loaded[0].is_over:
            await self._supervise(*loaded)
        else:
            await asyncio.to_thread(self._end_leftovers)
        # What a run that was not recorded, or not ended to its end, has left on other hosts; nobody waits for them.
        cleaning = asyncio.create_task(self._clean_hosts())
        if self._supervisor is None and not is_serving:
            await asyncio.wait({cleaning}, timeout=CLEAN_S)
            return
        await self._control.start()
        self._watch_leash()
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._begun.wait(), PATIENCE_FOR_UP_S)
        async with self._changing:
            # An `up` that has come is carried through; so nothing of it is left behind.
            pass
        if self._supervisor is None or self._launcher is None:
            await self._control.close()
            await asyncio.wait({cleaning}, timeout=CLEAN_S)
            return
        if self._is_told_to_end:
            self._stop_by_signal()
        await self._turn(self._supervisor)
        if self._autoscaling is not None:
            self._autoscaling.cancel()
        if self._probing is not None:
            self._probing.close()
        if self._places is not None:
            self._places.close()
        self._supervisor.end(await self._launcher.sweep())
        while not self._supervisor.save():
            self._complaints.tell(self._supervisor.unwritten)
            await asyncio.sleep(WRITE_AGAIN_S)
        await self._metrics.close()
        if self._notices is not None:
            await self._notices.close()
        if self._certificates is not None:
            # Before the keeper goes: until then another supervisor comes should this one be killed.
            self._certificates.forget()
        await self._launcher.close()
        await cleaning
        await self._clean_hosts(is_over=True)
        if self._supervisor.run.plan.engine in BRIDGED:
            try:
                await group.release(self._paths)
            except PipeError as error:
                title = engine_of(self._supervisor.run.plan).title
                self._complaints.tell(f"{title} may still hold hosts: {error.why}")
        self._store.close()
        self._control.publish()
        await self._control.close()

    def _end_leftovers(self) -> None:
        """Keepers and keys of a supervisor that was killed before its run was on record, or when it was just over."""
        for run_dir in self._paths.runs.iterdir() if self._paths.runs.exists() else ():
            if (run_dir / SOCKET).exists():
                end_keeper(run_dir)
            Certificates(run_dir / TLS_FOLDER).forget()

    async def _clean_hosts(self, is_over: bool = False) -> None:
        """Of all runs but the present one while that is not over."""
        run_dirs = set(self._paths.runs.iterdir()) if self._paths.runs.exists() else set()
        if self._supervisor is not None and not is_over:
            run_dirs.discard(self._paths.run(self._supervisor.run.number))
        await clean_reached(run_dirs, self._paths.ssh)

    def _watch_leash(self) -> None:
        """Standard input is a pipe where a command has started this process: its end is the command's end."""
        if stat.S_ISFIFO(os.fstat(0).st_mode):
            asyncio.get_running_loop().add_reader(0, self._on_leash)

    def _on_leash(self) -> None:
        asyncio.get_running_loop().remove_reader(0)
        if self._supervisor is None and not self._control.is_in_use:
            self._begun.set()

    async def _turn(self, supervisor: Supervisor) -> None:
        while True:
            self._work.clear()
            begun = time.monotonic()
            try:
                look_again_at = supervisor.step()
            except StoreUnwritable as error:
                # What is not on disk is not done; tasks and keeper go on, and nobody is served worse by waiting.
                self._complaints.tell(str(error))
                look_again_at = time.monotonic() + WRITE_AGAIN_S
            took_s = time.monotonic() - begun
            self._control.publish()
            if supervisor.is_finished:
                if self._parting is not None:
                    await self._parting
                return
            if self._probing is not None:
                touched = supervisor.take_touched()
                self._probing.look_after(touched)
                if self._places is not None:
                    self._places.look_after(touched)
            if supervisor.moves_due() and (self._moving is None or self._moving.done()):
                self._moving = asyncio.create_task(self._move(supervisor))
            if supervisor.parting() and (self._parting is None or self._parting.done()):
                self._parting = asyncio.create_task(self._part(supervisor))
            wait_s = None if look_again_at is None else max(0.0, look_again_at - time.monotonic())
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._work.wait(), wait_s)
            # Of a thousand events in a row many share a round: the loop's part of the time is half at the most.
            left_s = begun + 2 * took_s - time.monotonic()
            if left_s > 0:
                await asyncio.sleep(min(left_s, ROUND_PAUSE_S_MAX))

    async def _answer(self, request: Request) -> Reply:
        """The requests are described in control/server.py."""
        if request["do"] == Verb.UP and self._supervisor is None:
            async with self._changing:
                if self._supervisor is None:
                    plan, found = plan_of(request["plan"]), request["hosts"]
                    return await self._begin_run(plan, request["environment"], request["secrets"], found)
        if self._supervisor is None or self._launcher is None:
            return {"error": "nothing is running"}
        if request["do"] == Verb.USAGE:
            runs = {} if self._probing is None else self._probing.runs
            tasks = await self._usages(self._supervisor, self._launcher)
            return {"is": "used", "tasks": tasks, "runs": {name: list(each) for name, each in runs.items()}}
        try:
            return await RequestHandler(self._supervisor, self._launcher, self._changing, self._save).answer(request)
        finally:
            await self._follow_metrics(self._supervisor)
            self._work.set()

    async def _scale(self, job: str, replicas: int) -> Reply:
        """The number of tasks that the supervisor itself wants."""
        assert self._supervisor is not None and self._launcher is not None
        try:
            handler = RequestHandler(self._supervisor, self._launcher, self._changing, self._save)
            return await handler.autoscale(job, replicas)
        finally:
            self._work.set()

    async def _begin_run(
        self,
        plan: ClusterPlan,
        environment: dict[str, str],
        secrets: dict[str, str],
        found: dict[str, dict[str, Any]],
    ) -> Reply:
        """The `up` of a cluster that does not run; `control.requests` has that of a running one.

        `found` is what the pre-flight says of each other machine. A start that fails leaves nothing behind.
        """
        former = self._store.load()
        number = former[0].number + 1 if former else 1
        while reached.is_any(self._paths.run(number)):
            # It began and was not recorded, and what it has left on other hosts is known by its folder only.
            number += 1
        try:
            self._make_run_dir(number)
            token = (self._paths.run(number) / TOKEN).read_text().strip()
            wall, now = time.time(), time.monotonic()
            known = as_found(found, wall, now)
            run = Run(number, token, boot_id(), plan, environment, {}, wall, secrets, hosts=known)
            launcher = self._make_launcher(run)
            if self._certificates is not None:
                self._certificates.begin(plan.name, number)
            await launcher.connect()
            await self._metrics.follow(plan.metrics)
            run = replace(run, addresses=await hold_ports(launcher, run.actual, former[0].addresses if former else {}))
            statuses = {task.name: TaskStatus(task.name) for task in plan.tasks()}
            self._store.begin(run, statuses.values())
            self._make_supervisor(run, statuses, launcher)
            return {"is": "started"}
        except BaseException as error:
            await self._metrics.close()
            if self._launcher is not None:
                await self._launcher.close()
                self._launcher = None
            if not reached.is_any(self._paths.run(number)):
                shutil.rmtree(self._paths.run(number), ignore_errors=True)
            self._begun.set()
            if not isinstance(error, DtfctlError | OSError):
                raise
            return {"error": str(error) if isinstance(error, DtfctlError) else reason_and_file(error)}

    def _make_run_dir(self, number: int) -> None:
        shutil.rmtree(self._paths.run(number), ignore_errors=True)
        self._paths.logs(number).mkdir(parents=True)
        (self._paths.run(number) / TOKEN).write_text(secrets.token_hex(12))
        for old in sorted(self._paths.runs.iterdir())[:-RUNS_KEPT]:
            if not reached.is_any(old):
                shutil.rmtree(old, ignore_errors=True)

    async def _supervise(self, run: Run, statuses: dict[str, TaskStatus]) -> None:
        """Adopts a run whose supervisor has gone."""
        if run.boot != boot_id():
            statuses = {name: status.after_restart_of_machine(time.monotonic()) for name, status in statuses.items()}
            known = {name: replace(host, since_monotonic=time.monotonic()) for name, host in run.hosts.items()}
            run = replace(run, boot=boot_id(), hosts=known)
        launcher = self._make_launcher(run)
        self._make_supervisor(run, statuses, launcher)
        await launcher.connect()
        assert self._supervisor is not None
        await self._follow_metrics(self._supervisor)

    def _make_launcher(self, run: Run) -> HostsLauncher:
        if run.plan.security == TLS:
            self._certificates = Certificates(self._paths.tls(run.number))
        run_dir = self._paths.run(run.number)
        on_event = self._on_event

        def fence_s() -> float:
            return (run if self._supervisor is None else self._supervisor.run).plan.fence_after_s

        if run.plan.engine == SLURM:
            self._allocation = allocation.Allocation(
                run.plan.slurm.job,
                on_event,
                self._on_end_of_allocation,
                self._is_alive,
                self._is_cut_off,
                fence_s,
                os.environ.get("SLURMD_NODENAME", ""),
            )
            on_event = self._allocation.take
        local = LocalLauncher(run_dir, self._paths.folder, on_event)

        def make_remote(host: HostPlan) -> HostLauncher:
            reached.note(run_dir, run.plan, remote_run(run, host.name), remote_token(run.token, host), host)
            if host.via == KUBERNETES:
                return self._pods_of(run, run_dir)
            if host.via in BRIDGED:
                bridge, gpus = program_of(host.via, run.plan.group), run.plan.group.gpus.get(host.name, "")
                place = (bridge, host, self._paths.ssh, remote_run(run, host.name), run_dir)
                return BridgeLauncher(*place, on_event, fence_s, gpus)
            pipe = pipe_to(run.plan, host, self._paths.ssh)
            return RemoteLauncher(pipe, remote_run(run, host.name), run_dir, on_event, fence_s)

        self._launcher = HostsLauncher(local, make_remote, run.remote_hosts)
        return self._launcher

    def _pods_of(self, run: Run, run_dir: Path) -> HostLauncher:
        # Its modules need a package that not everybody has, and few clusters.
        from dtfctl.launchers.kubernetes.api import Api
        from dtfctl.launchers.kubernetes.launcher import KubernetesLauncher

        def current() -> Run:
            return run if self._supervisor is None else self._supervisor.run

        return KubernetesLauncher(run_dir, current, self._on_event, partial(Api, run.plan.kubernetes))

    def _make_supervisor(self, run: Run, statuses: dict[str, TaskStatus], launcher: HostsLauncher) -> None:
        self._supervisor = Supervisor(
            run, statuses, self._store, launcher, self._paths, time.monotonic, random.random, self._files, self._tell
        )
        before = self._store.history(run.number)
        self._notices = NoticeSender(self._present_run, before, self._supervisor.tell_trouble)
        tls = None if self._certificates is None else self._certificates.client_context()
        self._gatherer = Gatherer(lambda run, after: self._store.history(run.number, after), self._elsewhere, tls)
        self._probing = probing = Probing(self._supervisor, launcher.checks, self._work.set, self._certificates)
        self._places = PlaceWatch(self._supervisor, self._work.set, tls)
        scaler = Autoscaler(self._supervisor, lambda: probing.runs, self._scale, time.monotonic)
        self._autoscaling = asyncio.create_task(scaler.watch())
        self._begun.set()

    def _present_run(self) -> Run:
        assert self._supervisor is not None
        return self._supervisor.run

    def _tell(self, happenings: Sequence[Happening]) -> None:
        if self._notices is not None:
            self._notices.take(happenings)

    async def _follow_metrics(self, supervisor: Supervisor) -> None:
        """A changed file, or another supervisor: an address that cannot be had is no reason to end a training."""
        if supervisor.run.outcome:
            return
        try:
            await self._metrics.follow(supervisor.run.plan.metrics)
        except MetricsAddressTaken as error:
            supervisor.note_trouble("", str(error))

    async def _look(self) -> Snapshot:
        """For the figures that Prometheus reads."""
        assert self._supervisor is not None and self._gatherer is not None
        return await self._gatherer.look(self._supervisor.run, self._supervisor.statuses)

    async def _elsewhere(self) -> dict[str, Usage]:
        """What tasks on other machines take."""
        assert self._supervisor is not None and self._launcher is not None
        return {name: usage for name, (usage, _) in (await self._usage(self._supervisor, self._launcher)).items()}

    async def _save(self, address: str, timeout_s: float) -> bool:
        tls = None if self._certificates is None else self._certificates.client_context()
        return await have_saved(address, tls, timeout_s)

    def _files(self, task: Task) -> dict[str, str]:
        """What a task is given as files."""
        if self._certificates is None or self._supervisor is None:
            return {}
        return self._certificates.of_task(task, self._supervisor.run.actual)

    async def _move(self, supervisor: Supervisor) -> None:
        """Finds ports on the spares for the tasks of lost hosts."""
        assert self._launcher is not None
        addresses = {}
        for name, spare in supervisor.moves_due().items():
            job = supervisor.run.plan.task(name).job
            plan = plans.placed(supervisor.run.actual, {}, {name: spare})
            task = plan.task(name)
            if not job.has_address:
                addresses[name] = ""
                continue
            port = task.place.port
            try:
                held = await self._launcher.hold_port(
                    name, task.bind_host, port, port > 0, job.port_range, launcher_host(task)
                )
                addresses[name] = f"{task.advertised_host}:{held}"
                if is_place(plan, task):
                    peer = peer_of(name)
                    held = await self._launcher.hold_port(
                        peer, task.bind_host, 0, False, job.port_range, launcher_host(task)
                    )
                    addresses[peer] = f"{task.advertised_host}:{held}"
            except (PortTaken, HostsUnusable) as error:
                supervisor.note_trouble(name, f"cannot move to {spare}: {error}")
        supervisor.move(addresses)
        if not addresses:
            await asyncio.sleep(MOVE_PAUSE_S)
        self._work.set()

    async def _usages(self, supervisor: Supervisor, launcher: HostsLauncher) -> dict[str, Any]:
        found = await self._usage(supervisor, launcher)
        return {name: {**asdict(usage), "at": at} for name, (usage, at) in found.items()}

    async def _usage(self, supervisor: Supervisor, launcher: HostsLauncher) -> dict[str, tuple[Usage, float]]:
        """What the tasks on other machines take there, with the time of the look."""
        names = {(status.host, status.pid): status.name for status in supervisor.statuses.values() if status.pid}
        pids: dict[str, list[int]] = {}
        for host, pid in names:
            if host != LOCALHOST and pid is not None:
                pids.setdefault(host, []).append(pid)
        found = await launcher.usage(pids)
        return {names[key]: each for key, each in found.items() if key in names}

    async def _part(self, supervisor: Supervisor) -> None:
        """Releases the machines that were removed from the cluster. A change of the file must not come between."""
        assert self._launcher is not None
        async with self._changing:
            for host in supervisor.parting():
                supervisor.part(host, await self._launcher.part(host))
        self._work.set()

    def _on_event(self, event: Event) -> None:
        if self._supervisor is not None:
            self._supervisor.handle(event)
            self._work.set()

    def _is_alive(self, task: str) -> bool:
        status = None if self._supervisor is None else self._supervisor.statuses.get(task)
        return status is not None and status.state in state.ALIVE

    def _is_cut_off(self) -> bool:
        """Whether no other node of the allocation can be reached from this one."""
        if self._supervisor is None:
            return False
        run, own = self._supervisor.run, os.environ.get("SLURMD_NODENAME", "")
        others = {host.name for host in run.remote_hosts if host.target != own}
        return bool(own and others) and others <= run.away

    def _on_end_of_allocation(self, why: str, are_hosts_gone: bool) -> None:
        """Nothing of the tasks is left on hosts that cannot be reached any more, or will be soon."""
        if self._supervisor is None or self._launcher is None:
            return
        self._supervisor.stop(why)
        self._launcher.give_up(None if are_hosts_gone else self._supervisor.run.away)
        for event in allocation.ends_of(self._supervisor.statuses.values(), why, time.monotonic()):
            self._on_event(event)

    def _stop_by_signal(self) -> None:
        self._is_told_to_end = True
        self._begun.set()
        if self._supervisor is not None:
            run, why = self._supervisor.run, "the supervisor was asked to stop"
            if run.plan.engine == SLURM and "SLURM_JOB_ID" in os.environ:
                why = allocation.words_of_signal(run.plan.slurm.job)
                self._explaining = asyncio.create_task(self._explain_signal(self._supervisor))
            self._supervisor.stop(why, None)
            self._work.set()

    async def _explain_signal(self, supervisor: Supervisor) -> None:
        supervisor.explain(await allocation.why_signalled(supervisor.run.plan.slurm.job))
        self._control.publish()


if __name__ == "__main__":
    main()
