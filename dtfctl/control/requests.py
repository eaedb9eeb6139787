"""What a running cluster is asked to become: commands on tasks, another number of them, another cluster file.

Each turns a request (server.py) into calls of the supervisor, and finds ports for new tasks on the way.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping

from dtfctl import hints
from dtfctl.control.client import Reply, Request
from dtfctl.control.protocol import plan_of
from dtfctl.control.verbs import ON_TASKS, Verb
from dtfctl.errors import HostsUnusable, PortTaken
from dtfctl.launchers.base import Launcher
from dtfctl.plan import backups
from dtfctl.plan.diff import Change, Effect, scaled
from dtfctl.plan.moves import moved
from dtfctl.supervise import host_failover, planned_ends
from dtfctl.supervise.supervisor import Supervisor
from dtfctl.values import plan as plans
from dtfctl.values import state
from dtfctl.values.hosts import as_found
from dtfctl.values.plan import ClusterPlan, HostPlan, Task
from dtfctl.values.task import TaskStatus

ENDING: Reply = {"is": "ending"}
LOOK_AGAIN_S = 0.02
Save = Callable[[str, float], Awaitable[bool]]


class RequestHandler:
    """`changing` is held while one change of the cluster file is made. `save` asks the task at an address for a
    checkpoint within so many seconds, and says whether there is one; after that it makes no step for a moment."""

    def __init__(
        self, supervisor: Supervisor, launcher: Launcher, changing: asyncio.Lock, save: Save | None = None
    ) -> None:
        self._supervisor = supervisor
        self._launcher = launcher
        self._changing = changing
        self._save = save

    async def answer(self, request: Request) -> Reply:
        what = request["do"]
        if what == Verb.DOWN:
            return self.down(request)
        if self._supervisor.run.outcome:
            return ENDING
        if what in ON_TASKS:
            return await self.on_tasks(request)
        async with self._changing:
            if what == Verb.SCALE:
                return await self.scale(request)
            if what == Verb.MOVE:
                return await self.move(request)
            if what == Verb.UP:
                return await self.up_again(request, plan_of(request["plan"]))
        return {"error": f"unknown request {what!r}"}

    def down(self, request: Request) -> Reply:
        self._supervisor.stop(request["why"], request["grace_period_s"])
        if self._supervisor.unwritten:
            words = f"{self._supervisor.unwritten} (the tasks are stopped; the run ends once this can be written)"
            return {"is": "stopping", "error": words}
        return {"is": "stopping"}

    async def on_tasks(self, request: Request) -> Reply:
        supervisor = self._supervisor
        for name in request["tasks"]:
            if not supervisor.run.plan.has_task(name):
                return {"error": f"no task is called {name}"}
        verb = Verb(request["do"])
        do = {Verb.RESTART: supervisor.restart, Verb.STOP: supervisor.hold, Verb.START: supervisor.release}[verb]
        costs: list[str] = []
        if verb != Verb.START:
            costs = self._costs(request["tasks"], await self._have_saved(request["tasks"]))
            if supervisor.run.outcome:
                return ENDING
            gone = [name for name in request["tasks"] if name not in supervisor.statuses]
            if gone:
                return {"error": f"task {gone[0]} was removed meanwhile"}
        do(request["tasks"], request["why"], request.get("id", ""))
        return {"is": "done", "costs": costs}

    async def scale(self, request: Request) -> Reply:
        try:
            plan = scaled(self._supervisor.run.plan, request["job"], request["replicas"])
        except ValueError as error:
            return {"error": str(error)}
        return await self.up(request, plan, self._supervisor.run.secrets)

    async def move(self, request: Request) -> Reply:
        try:
            plan = moved(self._supervisor.run.plan, request["tasks"], request.get("without", ()))
        except ValueError as error:
            return {"error": str(error)}
        return await self.up(request, plan, self._supervisor.run.secrets)

    async def up_again(self, request: Request, plan: ClusterPlan) -> Reply:
        """Another cluster file, or the same once more."""
        try:
            plan = backups.kept(self._supervisor.run.plan, plan)
        except ValueError as error:
            return {"error": str(error)}
        return await self.up(request, plan, request["secrets"])

    async def autoscale(self, job: str, replicas: int) -> Reply:
        """As `scale`, decided by the supervisor itself: only hosts that have joined the run get tasks."""
        async with self._changing:
            run = self._supervisor.run
            if run.outcome:
                return ENDING
            joined = {host.name for host in run.plan.hosts if host.is_local or host.name in run.hosts}
            try:
                plan = scaled(run.plan, job, replicas, joined)
            except ValueError as error:
                return {"error": str(error)}
            return await self.up({"apply": True}, plan, run.secrets)

    async def up(self, request: Request, plan: ClusterPlan, secrets: Mapping[str, str]) -> Reply:
        """Of a running cluster: what differs, and on demand the change."""
        supervisor = self._supervisor
        if not request.get("apply"):
            differences = plans.differences(supervisor.run.plan, plan)
            changes = supervisor.changes(plan, await self._addresses(plan, is_serious=False), secrets)
            return {
                "is": "running",
                "differences": differences,
                "changes": _lines(changes),
                "costs": self._costs(_ends(changes)),
            }
        down, up = hints.command("down", plan.name), hints.command("up", plan.file)
        strangers = {host.name: host for host in plan.remote_hosts if host.name not in supervisor.run.hosts}
        found = {name: host for name, host in request.get("hosts", {}).items() if name in strangers}
        if strangers.keys() - found.keys():
            names = ", ".join(sorted(strangers.keys() - found.keys()))
            return {"error": f"{names} is not checked yet: {up} checks it first"}
        others = _changed_machines(supervisor.run.remote_hosts, plan.remote_hosts)
        if others:
            words = "would name another machine or folder"
            return {"error": f"{', '.join(others)} {words}: give it a new name, or {down}, then {up}"}
        if plan.security != supervisor.run.plan.security:
            return {"error": f"security cannot change in a running cluster: {down}, then {up}"}
        while supervisor.run.leaving and not supervisor.run.outcome:
            # Two changes at once could not be told apart; the first has its grace periods.
            await asyncio.sleep(LOOK_AGAIN_S)
        for host in strangers.values():
            self._launcher.join(host)
        try:
            addresses = await self._addresses(plan, is_serious=True)
        except (PortTaken, HostsUnusable) as error:
            for name in strangers:
                await self._launcher.part(name)
            return {"error": str(error)}
        if supervisor.run.outcome:
            return ENDING
        joining = as_found(found, time.time(), time.monotonic())
        ends = _ends(supervisor.changes(plan, addresses, secrets))
        has_saved = await self._have_saved(ends)
        if supervisor.run.outcome:
            return ENDING
        costs = self._costs(ends, has_saved)
        changes = supervisor.apply(plan, addresses, secrets, request.get("id", ""), joining)
        return {"is": "changed", "changes": _lines(changes), "costs": costs}

    async def _have_saved(self, ends: Iterable[str]) -> bool:
        """Has the chief save when parameter servers end and it does not, so that only what comes after that is lost.
        Whether it has."""
        run, statuses = self._supervisor.run, self._supervisor.statuses
        chief = run.plan.chief
        names = _running(statuses, ends)
        if self._save is None or not planned_ends.needs_checkpoint(run.plan, names):
            return False
        status = statuses.get(chief)
        if status is None or status.state != state.RUNNING or chief not in run.addresses:
            return False
        settings = run.actual.task(chief).settings
        if settings.readiness.kind != "grpc":
            return False
        return await self._save(run.addresses[chief], settings.grace_period_s)

    def _costs(self, ends: Iterable[str], has_saved: bool = False) -> list[str]:
        """In which order those of these tasks end that run, and what it costs."""
        names = _running(self._supervisor.statuses, ends)
        return planned_ends.in_words(self._supervisor.run.plan, names, has_saved)

    async def _addresses(self, plan: ClusterPlan, is_serious: bool) -> dict[str, str]:
        """What a task has it keeps where the file lets it. New ones are at port 0 unless the change is serious."""
        run = self._supervisor.run
        plan = host_failover.joined(run, plan, {}).actual
        former = {task.name: task for task in run.actual.tasks()}
        kept = {
            task.name: f"{task.advertised_host}:{_port(run.addresses[task.name])}"
            for task in plan.tasks()
            if task.name in run.addresses and _may_keep(task, former[task.name], _port(run.addresses[task.name]))
        }
        kept |= {
            backups.peer_of(name): run.addresses[backups.peer_of(name)]
            for name in kept
            if backups.peer_of(name) in run.addresses
        }
        if is_serious:
            return await hold_ports(self._launcher, plan, run.addresses, kept)
        served = [task for task in plan.tasks() if task.job.has_address]
        new = {task.name: f"{task.advertised_host}:{task.place.port}" for task in served}
        new |= {
            backups.peer_of(task.name): f"{task.advertised_host}:0" for task in served if backups.is_place(plan, task)
        }
        return {**new, **kept}


async def hold_ports(
    launcher: Launcher, plan: ClusterPlan, former: Mapping[str, str], kept: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Addresses of all tasks: `kept` ones as they are, for the others a port is held. One that dtfctl chooses is the
    `former` one when that is still free. Raises PortTaken, HostsUnusable."""
    addresses: dict[str, str] = {}
    for task in plan.tasks():
        if not task.job.has_address:
            continue
        peer = backups.peer_of(task.name)
        if kept and task.name in kept and (peer in kept or not backups.is_place(plan, task)):
            addresses |= {name: kept[name] for name in (task.name, peer) if name in kept}
            continue
        within, fixed = task.job.port_range, task.place.port > 0
        port = task.place.port or _port(former.get(task.name, ":0"))
        if not fixed and within is not None and not within[0] <= port <= within[1]:
            port = 0
        host = host_failover.launcher_host(task)
        held = await launcher.hold_port(task.name, task.bind_host, port, fixed, within, host)
        addresses[task.name] = f"{task.advertised_host}:{held}"
        if backups.is_place(plan, task):
            held = await launcher.hold_port(peer, task.bind_host, _port(former.get(peer, ":0")), False, within, host)
            addresses[peer] = f"{task.advertised_host}:{held}"
    return addresses


def _may_keep(task: Task, former: Task, port: int) -> bool:
    within = task.job.port_range
    if task.host.name != former.host.name or task.bind_host != former.bind_host:
        return False
    if task.place.port:
        return task.place.port == port
    return within is None or within[0] <= port <= within[1]


def _changed_machines(known: Iterable[HostPlan], wanted: Iterable[HostPlan]) -> list[str]:
    """The names that stood for other machines, or other folders there, so far."""
    before = {host.name: (host.via, host.target, host.user, host.port, host.folder) for host in known}
    return [
        host.name
        for host in wanted
        if before.get(host.name, ()) not in ((), (host.via, host.target, host.user, host.port, host.folder))
    ]


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])


def _ends(changes: tuple[Change, ...]) -> list[str]:
    return [change.task for change in changes if change.verb in (Effect.RESTART, Effect.STOP)]


def _running(statuses: Mapping[str, TaskStatus], names: Iterable[str]) -> set[str]:
    return {name for name in names if name in statuses and statuses[name].state in state.WITH_PROCESS}


def _lines(changes: tuple[Change, ...]) -> list[str]:
    return [str(change) for change in changes]
