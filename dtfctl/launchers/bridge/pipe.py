"""A command on a host that an engine has given, by the engine's bridge."""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dtfctl.launchers.bridge.client import BridgeProgram, Streams, ask, connect
from dtfctl.launchers.pipe import PipeError
from dtfctl.launchers.ssh import PYTHONS
from dtfctl.values.plan import HostPlan

CONNECT_S = 60.0
"""A process that the engine starts anew may have to wait for what cleans up after the former one."""

LOST = -1


class BridgeCall:
    """See pipe.Call. The bridge is asked afterwards what became of the command."""

    def __init__(self, bridge: BridgeProgram, folder: Path, number: str, streams: Streams) -> None:
        self.reader, self.writer = streams
        self._bridge = bridge
        self._folder = folder
        self._number = number

    async def end(self) -> tuple[int, str]:
        self.writer.close()
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), 1)
        try:
            reply = await ask(self._bridge, self._folder, {"do": "end", "id": self._number})
        except PipeError as error:
            return LOST, error.why
        return reply["status"], reply["words"]

    def kill(self) -> None:
        self.writer.transport.abort()


class BridgePipe:
    """See pipe.Pipe. The host's `target` is its name at the engine. `guard` is what is run on the host after the
    engine has taken it back: a program for Python, and its input."""

    connect_timeout_s = CONNECT_S
    outlives = True

    def __init__(
        self, bridge: BridgeProgram, host: HostPlan, folder: Path, guard: tuple[str, str] | None = None
    ) -> None:
        self._bridge = bridge
        self.host = host
        self.folder = folder
        self._guard = guard

    @property
    def is_shared(self) -> bool:
        # The bridge is everybody's, and goes by itself.
        return True

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.host.python, *PYTHONS)))

    async def open(self, command: Sequence[str]) -> BridgeCall:
        if not self.host.target:
            raise PipeError(f"{self._bridge.engine} is asked for its hosts by dtfctl up", self.by_hand())
        number = secrets.token_hex(8)
        streams = await connect(self._bridge, self.folder)
        request: dict[str, Any] = {"do": "call", "id": number, "host": self.host.target, "address": self.host.address}
        request |= {"command": list(command), "guard": list(self._guard or ())}
        streams[1].write(json.dumps(request).encode() + b"\n")
        return BridgeCall(self._bridge, self.folder, number, streams)

    def failure(self, status: int, words: str) -> PipeError:
        lines = [line.strip() for line in words.splitlines() if line.strip()]
        why = lines[-1] if lines else f"the agent exits with status {status}"
        return PipeError(why, self.by_hand(), status < 0)

    def by_hand(self, *words: str) -> str:
        if not words:
            return self._bridge.by_hand
        return f"ssh {self.host.address} {words[0] if len(words) == 1 else ' '.join(words)}"

    def rsync_target(self, folder: str) -> None:
        return None

    async def disconnect(self) -> None:
        return None
