"""A launcher of the imagination, for tests of what decides: it notes what it is asked, and a test plays the world."""

from __future__ import annotations

import signal
from collections.abc import Callable

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Event, Exited, Launch, Listed, Started, Stray
from dtfctl.plan import LOCALHOST, HostPlan
from dtfctl.task import Exit


class FakeLauncher:
    """`launches` and `signals` are what was asked for.

    `exits` are the ends of the processes by (task, generation). With `is_cut` nothing that is asked for arrives, as
    when the supervisor is killed before it could ask; so it is with hosts that are `away`, whose processes go on, and
    `ghosts` are those of them whose tasks have another one elsewhere by now.

    With `obeys_sigterm = False` all tasks are deaf to SIGTERM, with
    `dies = False` to SIGKILL too.
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
        self.places: dict[tuple[str, int], str] = {}
        self.is_cut = False
        self.obeys_sigterm = True
        self.dies = True
        self.strays: tuple[Stray, ...] = ()
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
        if port in self.taken_ports:
            raise PortTaken(f"port {port} of {task}: Address already in use")
        if port:
            return port
        self._next_port += 1
        return self._next_port

    def start(self, launch: Launch) -> None:
        if self.is_cut or launch.host in self.away or (launch.task, launch.generation) in self.pids:
            return
        if launch.task in self.alive:
            former = self.where[launch.task]
            if former not in self.away:
                raise AssertionError(f"{launch.task} has a process already")
            self.ghosts[launch.task, self.alive[launch.task]] = former
        self.launches.append(launch)
        self.alive[launch.task] = launch.generation
        self.where[launch.task] = launch.host
        self._next_pid += 1
        self.pids[launch.task, launch.generation] = self._next_pid, self.clock()
        self.places[launch.task, launch.generation] = launch.host
        self.on_event(Started(launch.task, launch.generation, self._next_pid, self.clock()))

    def tell(self, *hosts: str) -> None:
        """What a supervisor that has just come hears of this machine, or of those `hosts` that it has just found: all
        processes that there were, and how they ended."""
        for host in hosts or (LOCALHOST,):
            there = [key for key, place in self.places.items() if place == host]
            self.on_event(Listed(frozenset(there), host))
            for task, generation in there:
                self.on_event(Started(task, generation, *self.pids[task, generation]))
                if (task, generation) in self.exits:
                    self.on_event(Exited(task, generation, self.exits[task, generation]))

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
        """The task's process ends, by itself or by somebody's signal."""
        generation = self.alive.pop(task)
        self.exits[task, generation] = Exit(self.clock(), code, signal_number)
        if self.where[task] in self.away:
            return
        self.on_event(Exited(task, generation, self.exits[task, generation]))

    def release_port(self, task: str, host: str = LOCALHOST) -> None:
        self.released.append((task, host))

    def join(self, host: HostPlan) -> None:
        self.hosts.append(host.name)

    async def part(self, host: str) -> tuple[Stray, ...]:
        self.hosts.remove(host)
        return ()

    async def sweep(self) -> tuple[Stray, ...]:
        return self.strays

    async def close(self) -> None:
        self.is_closed = True
