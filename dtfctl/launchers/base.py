"""The seam between deciding and doing: what a launcher must do, and what it tells.

A launcher starts processes, signals them, and reports. It decides nothing: no restarts, no order, no time limits.
A task's process is known by (task, generation), never by its pid. Each kind of host has a HostLauncher;
tests/dtfctl/test_launchers.py holds them to what is promised here. Each event names the host that reports it, as the
launcher knows it and not as the host says: the supervisor believes nobody about another host's tasks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Protocol

from dtfctl.launchers.usage import Usage
from dtfctl.values.plan import LOCALHOST, HostPlan, Limits, LogPolicy
from dtfctl.values.task import Exit


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
    host: str = LOCALHOST


@dataclass(frozen=True)
class Exited:
    task: str
    generation: int
    exit: Exit
    host: str = LOCALHOST


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


@dataclass(frozen=True)
class Ready:
    """A task is ready, as the engine of its host found; so it is only where HostPlan.probes_itself."""

    task: str
    generation: int
    host: str


@dataclass(frozen=True)
class Waiting:
    """A task has no process yet, or is not ready, and the engine of its host says why."""

    task: str
    generation: int
    why: str
    host: str


Event = Started | Exited | Listed | Reached | Unreachable | Ready | Waiting


@dataclass(frozen=True)
class Stray:
    """A process of the cluster that is still there although it was killed."""

    pid: int
    host: str
    command: str


class HostChecks(Protocol):
    """Looks at things on a task's host."""

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        """Runs a command beside the task; "" when it exits with 0, else what it did instead."""

    async def check_file(self, path: str, age_s: float) -> str:
        """ "" when the file is there and was written within the last `age_s` seconds, else what is missing."""


class HostLauncher(HostChecks, Protocol):
    """The processes of one host.

    `start` and `signal` return at once, and their outcome arrives as events. A generation that was started before is
    not started again, so that a caller in doubt may repeat itself. Where the host does not answer, `hold_port` raises
    HostsUnusable, checks return that in words, and all other methods return what is known without it.
    """

    def connect(self) -> None:
        """Begins to reach the host, and goes on until `close`; each time it is reached a Listed event comes."""

    async def wait_until_listed(self) -> None:
        """Returns after the first Listed event. Raises where the host can never be reached."""

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        """Keeps `port` (0: any, or one `within` a range) bound for the task while it has no process, and returns it.

        Raises PortTaken when it is `fixed` and not free; otherwise another one is chosen. Raises HostsUnusable when
        the host does not answer.
        """

    def release_port(self, task: str) -> None:
        """A port that was held for a task is anybody's again."""

    def start(self, launch: Launch) -> None: ...

    def signal(self, task: str, generation: int, number: int) -> None:
        """To every process of the task's group."""

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        """(usage of the sessions that these processes lead, when it was measured by this machine's monotonic clock);
        nothing of a host that does not answer in time."""

    async def drain_logs(self) -> None:
        """Returns when all that tasks have written so far is in their logs here, or after a time limit."""

    async def sweep(self) -> tuple[Stray, ...]:
        """Kills whatever is left of the cluster on the host, and returns the processes that would not die."""

    def give_up(self) -> None:
        """The host was taken away with all that ran there, so nothing is left to sweep."""

    async def close(self) -> None:
        """Nothing of the cluster runs any more: the last logs are brought, and the launcher may go too."""


class Launcher(Protocol):
    """All hosts of a run at once; see HostLauncher for what each method does on its host."""

    async def hold_port(
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None = None,
        host: str = LOCALHOST,
    ) -> int: ...

    def release_port(self, task: str, host: str = LOCALHOST) -> None: ...

    def start(self, launch: Launch) -> None:
        """On the launch's own host."""

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None: ...

    def join(self, host: HostPlan) -> None:
        """Another machine, which was looked at already, is to be worked with too."""

    async def part(self, host: str) -> tuple[Stray, ...]:
        """Lets go of a machine: kills what is left of the cluster there, and returns what would not die."""

    async def sweep(self) -> tuple[Stray, ...]: ...

    async def close(self) -> None: ...
