"""The seam between deciding and doing: what a launcher must do, and what it tells.

A launcher starts processes, signals them, and reports. It decides nothing: no restarts, no order, no time limits.
A task's process is known by (task, generation), never by its pid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from dtfctl.plan import LOCALHOST, HostPlan, Limits, LogPolicy
from dtfctl.task import Exit


@dataclass(frozen=True)
class Launch:
    """Everything that one process needs. `port` is let go just before the start when it is held for the task.

    `cpus` are the cores to stay on; one that the machine has not is counted from its first again. `files` are texts by
    the name of a variable: each is placed on the task's host, for it alone to read, and the variable holds the path.
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
    host: str = LOCALHOST
    logs: LogPolicy = LogPolicy()
    files: dict[str, str] = field(default_factory=dict, repr=False)


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
    """All that a host's keeper knows of, told after it was found again; what is not in it was never started there."""

    known: frozenset[tuple[str, int]]
    host: str = LOCALHOST


@dataclass(frozen=True)
class Reached:
    """The connection to a host is there (again); its listing comes next."""

    host: str


@dataclass(frozen=True)
class Unreachable:
    """The connection to a host is gone, or could not be made once more. Its tasks go on as they may."""

    host: str
    why: str


Event = Started | Exited | Listed | Reached | Unreachable


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
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None = None,
        host: str = LOCALHOST,
    ) -> int:
        """Keeps `port` (0: any, or one `within` a range) bound for the task while it has no process, and returns it.

        Raises PortTaken when it is `fixed` and not free; otherwise another one is chosen. Raises HostsUnusable when
        the host does not answer.
        """

    def start(self, launch: Launch) -> None: ...

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None:
        """To every process of the task's group."""

    def release_port(self, task: str, host: str = LOCALHOST) -> None:
        """A port that was held for a task there is anybody's again."""

    def join(self, host: HostPlan) -> None:
        """Another machine, which was looked at already, is to be worked with too."""

    async def part(self, host: str) -> tuple[Stray, ...]:
        """Lets go of a machine: kills what is left of the cluster there, and returns what would not die."""

    async def sweep(self) -> tuple[Stray, ...]:
        """Kills whatever is left of the cluster and returns what would not die."""

    async def close(self) -> None:
        """Nothing of the cluster runs any more; the launcher may go too."""
