"""What a host gets before tasks start there, and loses afterwards: it is looked at, the folder is brought, Python
environments are made, and the remains of a run are cleaned up."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from dtfctl.launchers.agent.keepers import SWEEP_S
from dtfctl.launchers.agent_client import AgentClient, keeper_text
from dtfctl.launchers.pipe import Pipe
from dtfctl.launchers.sync import Manifest, Synced, sync
from dtfctl.values.plan import HostPlan, Requirements

CHECK_S = 30.0
CLEAN_S = SWEEP_S + 20.0
MAKE_S = 1800.0
"""At most so long pip and venv may take on a host."""

Reply = dict[str, Any]


class Provisioner(Protocol):
    """Prepares one host. Each method raises PipeError where the host does not answer, or answers with an error."""

    @property
    def host(self) -> HostPlan: ...

    @property
    def is_shared(self) -> bool:
        """Whether another process of dtfctl uses the connection: it is left to that one."""

    async def look(self, request: Reply) -> Reply:
        """What the host has, as preflight.request asks it and agent/check.py answers; nothing is changed."""

    async def bring(self, folder: str, source: Path, files: Manifest, has_rsync: bool) -> Synced:
        """Brings `files` of `source` to the host's `folder`."""

    async def make_environment(self, venv: str, wanted: Requirements, folder: str) -> Reply:
        """Makes the virtual environment `venv`, or brings it up to date: {"made", "error", "command"}."""

    async def clean(self, run: str, token: str) -> Reply:
        """Ends all that is left of a run: {"left"} with what would not die."""

    def by_hand(self, *words: str) -> str:
        """The line with which a person runs `words` on the host."""

    async def release(self) -> None:
        """Lets the connection go."""


class AgentProvisioner:
    """See Provisioner: by the agent, over any pipe."""

    def __init__(self, pipe: Pipe) -> None:
        self._client = AgentClient(pipe)

    @property
    def host(self) -> HostPlan:
        return self._client.host

    @property
    def is_shared(self) -> bool:
        return self._client.pipe.is_shared

    async def look(self, request: Reply) -> Reply:
        return await self._client.ask(request, self._client.pipe.connect_timeout_s + CHECK_S)

    async def bring(self, folder: str, source: Path, files: Manifest, has_rsync: bool) -> Synced:
        return await sync(self._client, folder, source, files, has_rsync)

    async def make_environment(self, venv: str, wanted: Requirements, folder: str) -> Reply:
        request = {"do": "environment", "venv": venv, "folder": folder, "timeout_s": MAKE_S}
        request |= {"files": wanted.files, "python": wanted.python}
        return await self._client.ask(request, MAKE_S + CHECK_S)

    async def clean(self, run: str, token: str) -> Reply:
        request = {"do": "clean", "run": run, "token": token, "keeper": keeper_text()}
        return await self._client.ask(request, self._client.pipe.connect_timeout_s + CLEAN_S)

    def by_hand(self, *words: str) -> str:
        return self._client.pipe.by_hand(*words)

    async def release(self) -> None:
        await self._client.pipe.disconnect()
