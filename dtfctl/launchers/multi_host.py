"""All hosts of a run behind one launcher: each call goes to the launcher of its host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping

from dtfctl.launchers.base import HostChecks, HostLauncher, Launch, Stray
from dtfctl.launchers.usage import Usage
from dtfctl.values.plan import LOCALHOST, HostPlan, Task


class HostsLauncher:
    """See base.Launcher. This machine's keeper is always at work, for it also starts a supervisor that was killed.

    `hosts` are the other machines; `make_remote` makes the launcher of each.
    """

    def __init__(
        self, local: HostLauncher, make_remote: Callable[[HostPlan], HostLauncher], hosts: Iterable[HostPlan]
    ) -> None:
        self._local = local
        self._make_remote = make_remote
        self._remote = {host.name: make_remote(host) for host in hosts}

    async def connect(self) -> None:
        """Returns when this machine's keeper has told what it knows; of other machines events tell."""
        for launcher in self._remote.values():
            launcher.connect()
        self._local.connect()
        await self._local.wait_until_listed()

    async def hold_port(
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None = None,
        host: str = LOCALHOST,
    ) -> int:
        return await self._of(host).hold_port(task, address, port, fixed, within)

    def start(self, launch: Launch) -> None:
        self._of(launch.host).start(launch)

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None:
        self._of(host).signal(task, generation, number)

    def release_port(self, task: str, host: str = LOCALHOST) -> None:
        if host == LOCALHOST or host in self._remote:
            self._of(host).release_port(task)

    def join(self, host: HostPlan) -> None:
        if host.name not in self._remote:
            self._remote[host.name] = self._make_remote(host)
            self._remote[host.name].connect()

    async def part(self, host: str) -> tuple[Stray, ...]:
        launcher = self._remote[host]
        strays = await launcher.sweep()
        await launcher.close()
        del self._remote[host]
        return strays

    def checks(self, task: Task) -> HostChecks:
        """The launcher that looks at things on a task's machine."""
        return self._remote.get(task.host.name, self._local)

    async def usage(self, pids: Mapping[str, Collection[int]]) -> dict[tuple[str, int], tuple[Usage, float]]:
        """(usage, when) by (other machine, pid), of those that answer in time; `pids` are by machine."""
        names = [name for name in pids if name in self._remote]
        answers = await asyncio.gather(*(self._remote[name].usage(pids[name]) for name in names))
        return {
            (name, pid): (usage, at)
            for name, (found, at) in zip(names, answers, strict=True)
            for pid, usage in found.items()
        }

    async def sweep(self) -> tuple[Stray, ...]:
        every = (self._local, *self._remote.values())
        found = await asyncio.gather(*(launcher.sweep() for launcher in every))
        return tuple(stray for strays in found for stray in strays)

    async def close(self) -> None:
        """This machine's keeper goes last: until then a supervisor that is killed comes back."""
        await asyncio.gather(*(launcher.close() for launcher in self._remote.values()))
        await self._local.close()

    def give_up(self, hosts: Collection[str] | None = None) -> None:
        """The other machines, or some of them, were taken away with all that ran there."""
        for name, launcher in self._remote.items():
            if hosts is None or name in hosts:
                launcher.give_up()

    def _of(self, host: str) -> HostLauncher:
        return self._local if host == LOCALHOST else self._remote[host]
