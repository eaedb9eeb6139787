"""The seam between deciding and doing: what a launcher must do, and what it tells.

A launcher starts processes, signals them, and reports. It decides nothing: no restarts, no order, no time limits.
A task's process is known by (task, generation), never by its pid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from dtfctl.plan import Limits
from dtfctl.task import Exit


@dataclass(frozen=True)
class Launch:
    """Everything that one process needs. `port` is let go just before the start when it is held for the task.

    `cpus` are the cores to stay on; one that the machine has not is counted from its first again.
    """

    task: str
    generation: int
    argv: tuple[str, ...]
    environment: dict[str, str] = field(repr=False)
    working_dir: str = ""
    log: str = ""
    address: str = ""
    port: int | None = None
    limits: Limits = Limits()
    cpus: tuple[int, ...] = ()


@dataclass(frozen=True)
class Started:
    task: str
    generation: int
    pid: int
    at: float


@dataclass(frozen=True)
class Exited:
    task: str
    generation: int
    exit: Exit


@dataclass(frozen=True)
class Listed:
    """All that the launcher knows of, told after it was found again; what is not in it was never started."""

    known: frozenset[tuple[str, int]]


Event = Started | Exited | Listed


@dataclass(frozen=True)
class Stray:
    """A process of the cluster that is still there although it was killed."""

    pid: int
    host: str
    command: str


class Launcher(Protocol):
    """`start` and `signal` return at once, what comes of them arrives as events. A generation that was started before
    is not started again, so that a caller in doubt may repeat itself."""

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        """Keeps `port` (0: any, or one `within` a range) bound for the task while it has no process, and returns it.

        Raises PortTaken when it is `fixed` and not free; otherwise another one is chosen.
        """

    def start(self, launch: Launch) -> None: ...

    def signal(self, task: str, generation: int, number: int) -> None:
        """To every process of the task's group."""

    async def sweep(self) -> tuple[Stray, ...]:
        """Kills whatever is left of the cluster and returns what would not die."""

    async def close(self) -> None:
        """Nothing of the cluster runs any more; the launcher may go too."""
