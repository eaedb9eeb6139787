"""A launcher without processes, for tests of what decides: it notes what it is asked, and a test plays the world.

FakeLauncher is all hosts at once, and `on` gives the launcher of one; FakeProvisioner prepares a host that is made up.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Event, Exited, Launch, Listed, Started, Stray
from dtfctl.launchers.sync import Manifest, Synced
from dtfctl.launchers.usage import Usage
from dtfctl.values.plan import LOCALHOST, HostPlan, Requirements
from dtfctl.values.task import Exit


class FakeLauncher:
    """`launches` and `signals` are what was asked for.

    `exits` are the ends of the processes by (task, generation). With `is_cut` nothing that is asked for arrives, as
    when the supervisor is killed before it could ask; so it is with hosts that are `away`, whose processes go on, and
    `ghosts` are those of them whose tasks have another one elsewhere by now. `there` are all that each host ever had.
    `missing` is what checks find, by command or path.

    With `obeys_sigterm = False` all tasks are deaf to SIGTERM, with `dies = False` to SIGKILL too.
    """

    def __init__(self, clock: Callable[[], float], taken_ports: frozenset[int] = frozenset()) -> None:
        self.clock = clock
        self.on_event: Callable[[Event], None] = lambda event: None
        self.taken_ports = taken_ports
        self.launches: list[Launch] = []
        self.signals: list[tuple[str, int]] = []
        self.alive: dict[str, int] = {}
        self.where: dict[str, str] = {}
        self.away: set[str] = set()
        self.ghosts: dict[tuple[str, int], str] = {}
        self.exits: dict[tuple[str, int], Exit] = {}
        self.pids: dict[tuple[str, int], tuple[int, float]] = {}
        self.there: dict[str, list[tuple[str, int]]] = {}
        self.is_cut = False
        self.obeys_sigterm = True
        self.dies = True
        self.strays: tuple[Stray, ...] = ()
        self.missing: dict[str, str] = {}
        self.released: list[tuple[str, str]] = []
        self.hosts: list[str] = []
        self.is_closed = False
        self._next_port = 23000
        self._next_pid = 100

    async def hold_port(
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None = None,
        host: str = LOCALHOST,
    ) -> int:
        if port in self.taken_ports and fixed:
            raise PortTaken(f"port {port} of {task}: Address already in use")
        if port and port not in self.taken_ports:
            return port
        self._next_port = max(self._next_port + 1, within[0] if within else 0)
        return self._next_port

    def start(self, launch: Launch) -> None:
        if self.is_cut or launch.host in self.away or (launch.task, launch.generation) in self.pids:
            return
        if launch.task in self.alive:
            former = self.where[launch.task]
            if former not in self.away:
                raise AssertionError(f"{launch.task} already has a process")
            self.ghosts[launch.task, self.alive[launch.task]] = former
        self.launches.append(launch)
        self.alive[launch.task] = launch.generation
        self.where[launch.task] = launch.host
        self._next_pid += 1
        self.pids[launch.task, launch.generation] = self._next_pid, self.clock()
        self.there.setdefault(launch.host, []).append((launch.task, launch.generation))
        self.on_event(Started(launch.task, launch.generation, self._next_pid, self.clock(), launch.host))

    def tell(self, *hosts: str) -> None:
        """What a supervisor that has just come hears of this machine, or of those `hosts` that it has just found: all
        processes that there were, and how they ended."""
        for host in hosts or (LOCALHOST,):
            there = list(self.there.get(host, ()))
            self.on_event(Listed(frozenset(there), host))
            for task, generation in there:
                self.on_event(Started(task, generation, *self.pids[task, generation], host))
                if (task, generation) in self.exits:
                    self.on_event(Exited(task, generation, self.exits[task, generation], host))

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None:
        if self.is_cut or host in self.away:
            return
        if self.ghosts.get((task, generation)) == host and number == signal.SIGKILL:
            del self.ghosts[task, generation]
            self.exits[task, generation] = Exit(self.clock(), None, number)
        self.signals.append((task, number))
        if self.alive.get(task) != generation or self.where[task] != host:
            return
        if (number == signal.SIGTERM and self.obeys_sigterm) or (number == signal.SIGKILL and self.dies):
            self.end(task, signal_number=number)

    def end(self, task: str, code: int | None = None, signal_number: int | None = None) -> None:
        """The task's process ends, by itself or by a signal."""
        generation = self.alive.pop(task)
        self.exits[task, generation] = Exit(self.clock(), code, signal_number)
        if self.where[task] in self.away:
            return
        self.on_event(Exited(task, generation, self.exits[task, generation], self.where[task]))

    def release_port(self, task: str, host: str = LOCALHOST) -> None:
        self.released.append((task, host))

    def on(self, host: str) -> FakeHostLauncher:
        return FakeHostLauncher(self, host)

    def join(self, host: HostPlan) -> None:
        self.hosts.append(host.name)

    async def part(self, host: str) -> tuple[Stray, ...]:
        self.hosts.remove(host)
        return ()

    async def sweep(self) -> tuple[Stray, ...]:
        return self.strays

    async def close(self) -> None:
        self.is_closed = True


class FakeHostLauncher:
    """See base.HostLauncher: one host of a FakeLauncher."""

    def __init__(self, world: FakeLauncher, host: str = LOCALHOST) -> None:
        self._world = world
        self._host = host

    def connect(self) -> None:
        self._world.tell(self._host)

    async def wait_until_listed(self) -> None:
        """It has been, by `connect`."""

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        return await self._world.hold_port(task, address, port, fixed, within, self._host)

    def release_port(self, task: str) -> None:
        self._world.release_port(task, self._host)

    def start(self, launch: Launch) -> None:
        self._world.start(launch)

    def signal(self, task: str, generation: int, number: int) -> None:
        self._world.signal(task, generation, number, self._host)

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        return self._world.missing.get(command, "")

    async def check_file(self, path: str, age_s: float) -> str:
        return self._world.missing.get(path, "")

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        found = {self._world.pids[task, self._world.alive[task]][0] for task in self._running()}
        return {pid: Usage(processes=1) for pid in found & set(pids)}, self._world.clock()

    async def drain_logs(self) -> None:
        """Nothing is written."""

    async def sweep(self) -> tuple[Stray, ...]:
        for task in self._running():
            self._world.signal(task, self._world.alive[task], signal.SIGKILL, self._host)
        return tuple(stray for stray in self._world.strays if stray.host == self._host)

    def give_up(self) -> None:
        pass

    async def close(self) -> None:
        self._world.is_closed = True

    def _running(self) -> list[str]:
        world = self._world
        there = world.there.get(self._host, ())
        return [task for task, generation in there if world.alive.get(task) == generation]


class FakeProvisioner:
    """See provision.Provisioner. `found` is the answer to `look`; what it was asked for stands in `brought`, `made`
    and `cleaned`."""

    is_shared = False

    def __init__(self, host: HostPlan, found: dict[str, Any]) -> None:
        self.host = host
        self.found = found
        self.brought: dict[str, Manifest] = {}
        self.made: dict[str, Requirements] = {}
        self.cleaned: list[str] = []
        self.is_released = False

    async def look(self, request: dict[str, Any]) -> dict[str, Any]:
        return self.found

    async def bring(self, folder: str, source: Path, files: Manifest, has_rsync: bool) -> Synced:
        before = self.brought.get(folder, {})
        self.brought[folder] = files
        wanted = [path for path, status in files.items() if before.get(path) != status]
        return Synced(len(wanted), sum(files[path][0] for path in wanted), len(before.keys() - files.keys()))

    async def make_environment(self, venv: str, wanted: Requirements, folder: str) -> dict[str, Any]:
        is_new = self.made.get(venv) != wanted
        self.made[venv] = wanted
        return {"made": is_new, "error": "", "command": ""}

    async def clean(self, run: str, token: str) -> dict[str, Any]:
        self.cleaned.append(run)
        return {"left": []}

    def by_hand(self, *words: str) -> str:
        return " ".join((f"on-{self.host.name}", *words))

    async def release(self) -> None:
        self.is_released = True
