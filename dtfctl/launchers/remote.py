"""Tasks on another machine: the daemon's end of the talk with the keeper there, through ssh and an agent.

A connection that is lost is made again, with growing pauses and for as long as there is a run; the keeper and the
tasks do not notice. What the tasks write is brought into the same log folder as that of local tasks, byte for byte
from where it ended, with the times at which they wrote it. Times by the host's clocks are turned into those of this
machine's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import random
import struct
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtfctl.errors import HostsUnusable
from dtfctl.launchers import log_recorder
from dtfctl.launchers.agent.protocol import TOLD
from dtfctl.launchers.base import Event, Launch, Reached, Stray, Unreachable
from dtfctl.launchers.keeper import SWEEP_S, TOKEN
from dtfctl.launchers.keeper_client import Conversation, Message, Streams, event_of, signal_request, start_request
from dtfctl.launchers.log_recorder import LOGS
from dtfctl.launchers.ssh import Call, Ssh, SshError, keeper_text
from dtfctl.plan import LOCALHOST
from dtfctl.store import Run
from dtfctl.usage import Usage

RECONNECT_S = 0.5
RECONNECT_S_MAX = 10.0
ANSWER_S = 20.0
HOLD_S = 25.0
DRAIN_S = 20.0
USAGE_S = 2.0
CLOCK_ROUNDS = 3


def remote_run(run: Run, host: str) -> str:
    """The run's folder on a host: no other run has it, nor the same run on a host that shares the home folder."""
    return f"{run.plan.name}-{run.token[:8]}-{host}"


class RemoteLauncher:
    """What base.Launcher is, for one host. Only the daemon's event loop touches it.

    `run` names the run's folder on the host. Of the tasks that it was asked to start it remembers the names, so that
    it can say what it leaves on a host that cannot be reached.
    """

    def __init__(self, ssh: Ssh, run: str, run_dir: Path, on_event: Callable[[Event], None]) -> None:
        self._ssh = ssh
        self._host = ssh.host.name
        self._run = run
        self._token = (run_dir / TOKEN).read_text().strip()
        self._logs = run_dir / LOGS
        self._on_event = on_event
        self._conversation = Conversation(self._reach, {"do": "hello", "respawn": {}}, self._take, TOLD, self._host)
        self._call: Call | None = None
        self._running: dict[str, int] = {}
        self._ahead_s = 0.0
        self._wall_ahead_s = 0.0
        self._pause_s = RECONNECT_S
        self._is_told_unreachable = False

    def connect(self) -> None:
        """Begins to reach the host; events tell what comes of it."""
        self._conversation.start()

    @property
    def is_connected(self) -> bool:
        return self._conversation.is_connected

    async def hold_port(
        self,
        task: str,
        address: str,
        port: int,
        fixed: bool,
        within: tuple[int, int] | None = None,
        host: str = LOCALHOST,
    ) -> int:
        try:
            return await asyncio.wait_for(
                self._conversation.hold_port(task, address, port, fixed, within, lambda _: f" on {self._host}"), HOLD_S
            )
        except asyncio.TimeoutError:
            raise HostsUnusable(f"{self._host} does not answer") from None

    def start(self, launch: Launch) -> None:
        log_recorder.begin(launch.log, launch.logs.max_bytes, launch.logs.count)
        log = f"{LOGS}/{os.path.basename(launch.log)}"
        self._conversation.send(start_request(replace(launch, log=log), self._token))

    def signal(self, task: str, generation: int, number: int, host: str = LOCALHOST) -> None:
        self._conversation.send(signal_request(task, generation, number))

    def release_port(self, task: str, host: str = LOCALHOST) -> None:
        self._conversation.send({"do": "release", "task": task})

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        """Runs a readiness command beside the task; "" when it exits with 0, else what it did instead."""
        request = {"do": "command", "command": command, "environment": environment}
        return await self._check({**request, "working_dir": working_dir, "timeout_s": timeout_s})

    async def check_file(self, path: str, age_s: float) -> str:
        """ "" when the file is there and no older than `age_s`, else what is missing."""
        return await self._check({"do": "file", "path": path, "age_s": age_s})

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        """What the sessions take that these processes lead, and when that was, by this machine's monotonic clock; of a
        host that does not answer nothing."""
        if self.is_connected:
            with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
                request = {"do": "usage", "pids": list(pids)}
                reply = await asyncio.wait_for(self._conversation.ask(request), USAGE_S)
                wanted = {str(pid): pid for pid in pids}
                found = {wanted[pid]: Usage(**values) for pid, values in reply["usages"].items() if pid in wanted}
                return found, reply["monotonic"] - self._ahead_s
        return {}, 0.0

    async def _check(self, request: Message) -> str:
        if not self.is_connected:
            return f"{self._host} cannot be reached"
        try:
            return (await self._conversation.ask(request))["missing"]
        except HostsUnusable as error:
            return str(error)

    async def sweep(self) -> tuple[Stray, ...]:
        """On a host that cannot be reached it is named what runs there as far as is known."""
        if self.is_connected:
            with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
                reply = await asyncio.wait_for(self._conversation.ask({"do": "sweep"}), SWEEP_S + ANSWER_S)
                return tuple(Stray(left["pid"], self._host, left["command"]) for left in reply["left"])
        return tuple(
            Stray(pid, self._host, f"{task}, on a host that cannot be reached") for task, pid in self._running.items()
        )

    async def close(self) -> None:
        if self.is_connected:
            with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
                await asyncio.wait_for(self._conversation.ask({"do": "drain"}), DRAIN_S)
        await self._conversation.close(5)
        if self._call is not None:
            await self._call.end()
        await self._ssh.disconnect()

    async def _reach(self) -> Streams:
        while True:
            if self._call is not None:
                call, self._call = self._call, None
                await self._note_end(self._ssh.failure(*await call.end()))
            try:
                return await self._try()
            except SshError as error:
                await self._note_end(error)

    async def _note_end(self, error: SshError) -> None:
        """A connection has ended, or was not made."""
        if error.is_connection or self._is_told_unreachable or self._pause_s > RECONNECT_S:
            if error.is_connection:
                # Should it only hang: the next one must not wait for it.
                await self._ssh.disconnect()
            self._is_told_unreachable = True
            self._on_event(Unreachable(self._host, error.why))
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1))
        self._pause_s = min(RECONNECT_S_MAX, self._pause_s * 2)

    async def _try(self) -> Streams:
        request: dict[str, Any] = {"do": "talk", "run": self._run, "token": self._token, "keeper": keeper_text()}
        call = await self._ssh.call({**request, "have": self._have()})
        try:
            await self._ssh.line_of(call, self._ssh.settings.timeout_s + ANSWER_S, TOLD)
            await self._compare_clocks(call)
        except BaseException:
            call.kill()
            raise
        self._call = call
        self._pause_s = RECONNECT_S
        self._is_told_unreachable = False
        self._on_event(Reached(self._host))
        return call.reader, call.writer

    async def _compare_clocks(self, call: Call) -> None:
        """An answer was written between its question and its arrival; the quickest one says it best."""
        least_s = float("inf")
        for _ in range(CLOCK_ROUNDS):
            before, wall = time.monotonic(), time.time()
            call.writer.write(b'{"do": "clock"}\n')
            # Who has said no hello yet need not know what the keeper tells; it tells it again.
            while (answer := await self._ssh.line_of(call, ANSWER_S, TOLD))["is"] != "clock":
                pass
            took_s = time.monotonic() - before
            if took_s < least_s:
                least_s = took_s
                self._ahead_s = answer["monotonic"] - (before + took_s / 2)
                self._wall_ahead_s = answer["wall"] - (wall + took_s / 2)

    def _take(self, message: Message) -> None:
        if message["is"] == "log":
            times = [(at - round(self._wall_ahead_s * 1e6), size) for at, size in message["times"]]
            self._take_log(message["file"], message["offset"], base64.b64decode(message["data"]), times)
            return
        if message["is"] == "started":
            self._running[message["task"]] = message["pid"]
        elif message["is"] == "exited":
            self._running.pop(message["task"], None)
        event = event_of(message, self._host, self._ahead_s)
        if event is not None:
            self._on_event(event)

    # -- logs

    def _have(self) -> dict[str, int]:
        """Of each log as much as is here. One that another host has begun ends where it ends."""
        return {entry.name: entry.stat().st_size for entry in os.scandir(self._logs) if entry.name.endswith(".log")}

    def _take_log(self, name: str, offset: int, data: bytes, times: list[tuple[int, int]]) -> None:
        """Only what continues the file; after a lost connection it is sent again from there."""
        path = self._logs / os.path.basename(name)
        with open(path, "ab") as file:
            if file.tell() == offset:
                # The times first: so the recorder of this machine adds none of its own.
                with contextlib.suppress(OSError, struct.error):
                    log_recorder.note_growth(str(path), times)
                file.write(data)
            until = file.tell()
        self._conversation.send({"do": "ack", "bytes": len(data), "file": name, "until": until})
