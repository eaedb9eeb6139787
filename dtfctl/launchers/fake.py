"""A launcher of the imagination, for tests of what decides: it notes what it is asked, and a test plays the world."""

from __future__ import annotations

import signal
from collections.abc import Callable

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Event, Exited, Launch, Started, Stray
from dtfctl.plan import LOCALHOST
from dtfctl.task import Exit


class FakeLauncher:
    """`launches` and `signals` are what was asked for.

    With `obeys_sigterm = False` all tasks are deaf to SIGTERM, with `dies = False` to SIGKILL too.
    """

    def __init__(self, clock: Callable[[], float], taken_ports: frozenset[int] = frozenset()) -> None:
        self.clock = clock
        self.on_event: Callable[[Event], None] = lambda event: None
        self.taken_ports = taken_ports
        self.launches: list[Launch] = []
        self.signals: list[tuple[str, int]] = []
        self.alive: dict[str, int] = {}
        self.obeys_sigterm = True
        self.dies = True
        self.strays: tuple[Stray, ...] = ()
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
        if any((past.task, past.generation) == (launch.task, launch.generation) for past in self.launches):
            return
        self.launches.append(launch)
        self.alive[launch.task] = launch.generation
        self._next_pid += 1
        self.on_event(Started(launch.task, launch.generation, self._next_pid, self.clock()))

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None:
        self.signals.append((task, number))
        if self.alive.get(task) != generation:
            return
        if (number == signal.SIGTERM and self.obeys_sigterm) or (number == signal.SIGKILL and self.dies):
            self.end(task, signal_number=number)

    def end(self, task: str, code: int | None = None, signal_number: int | None = None) -> None:
        """The task's process ends, by itself or by somebody's signal."""
        generation = self.alive.pop(task)
        self.on_event(Exited(task, generation, Exit(self.clock(), code, signal_number)))

    async def sweep(self) -> tuple[Stray, ...]:
        return self.strays

    async def close(self) -> None:
        self.is_closed = True
