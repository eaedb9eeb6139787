"""Tasks on another machine: the daemon's end of the talk with the keeper there, through a pipe and an agent.

A connection that is lost is made again, with growing pauses and for as long as there is a run; the keeper and the
tasks do not notice. What the tasks write is brought into the same log folder as that of local tasks, byte for byte
from where it ended, with the times at which they wrote it. Times by the host's clocks are turned into those of this
machine's.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import random
import struct
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtfctl.errors import HostsUnusable
from dtfctl.launchers import log_recorder, reached
from dtfctl.launchers.agent.protocol import ANSWERS, TOLD
from dtfctl.launchers.agent_client import AgentClient, keeper_text
from dtfctl.launchers.base import Event, Launch, Reached, Stray, Unreachable
from dtfctl.launchers.keeper import SWEEP_S, TOKEN
from dtfctl.launchers.keeper_client import KeeperClient, Message, Streams, event_of, signal_request, start_request
from dtfctl.launchers.launched import LaunchedLogs
from dtfctl.launchers.log_recorder import LOGS
from dtfctl.launchers.pipe import Call, Pipe, PipeError
from dtfctl.launchers.provision import AgentProvisioner
from dtfctl.launchers.usage import Usage
from dtfctl.values.plan import BRIDGED, HostPlan
from dtfctl.values.run import Run
from dtfctl.wire.messages import BadMessage

RECONNECT_S = 0.5
RECONNECT_S_MAX = 10.0
ANSWER_S = 20.0
HOLD_S = 25.0
DRAIN_S = 20.0
USAGE_S = 2.0
RETURN_S = 5.0
"""How long the end of a run waits for a host that was lost from sight a moment ago."""

CLOCK_ROUNDS = 3
RENEWED_PART = 0.2
SILENT_PART = 0.5
"""Parts of the time after which a host that hears nothing kills its tasks."""


def remote_run(run: Run, host: str) -> str:
    """The run's folder on a host: no other run has it, nor the same run on a host that shares the home folder."""
    return f"{run.plan.name}-{run.token[:8]}-{host}"


def remote_token(token: str, host: HostPlan) -> str:
    """What the environment of the run's processes on a host holds. Hosts of one engine may share a
    machine, and each one's are ended with it."""
    return f"{token}-{host.name}" if host.via in BRIDGED else token


class RemoteLauncher:
    """See base.HostLauncher: for the host to which `pipe` leads. Only the daemon's event loop touches it.

    `run` names the run's folder on the host. Of the tasks that it was asked to start it remembers the names, so that
    it can say what it leaves on a host that cannot be reached. The host kills its tasks when it has heard nothing for
    `fence_s` (0: never): the lease is renewed several times in that while, and a host that does not confirm it is
    as good as unreachable.
    """

    def __init__(
        self,
        pipe: Pipe,
        run: str,
        run_dir: Path,
        on_event: Callable[[Event], None],
        fence_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._client = AgentClient(pipe)
        self._host = pipe.host.name
        self._run = run
        self._token = remote_token((run_dir / TOKEN).read_text().strip(), pipe.host)
        self._run_dir = run_dir
        self._logs = run_dir / LOGS
        self._on_event = on_event
        self._keeper_client = KeeperClient(self._reach, {"do": "hello", "respawn": {}}, self._take, TOLD, self._host)
        self._call: Call | None = None
        self._keep_call: Call | None = None
        self._launched = LaunchedLogs(run_dir, self._host)
        self._running: dict[str, int] = {}
        self._ahead_s = 0.0
        self._wall_ahead_s = 0.0
        self._pause_s = RECONNECT_S
        self._is_told_unreachable = False
        self._lost_at = 0.0
        self._keeper = 0
        self._is_given_up = False
        self._fence_s = fence_s
        self._renewing: asyncio.Task[None] | None = None
        self._silence = ""

    def connect(self) -> None:
        self._keeper_client.start()
        self._renewing = asyncio.create_task(self._renew())

    async def wait_until_listed(self) -> None:
        await self._keeper_client.wait_until_listed()

    @property
    def is_connected(self) -> bool:
        return self._keeper_client.is_connected

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        try:
            return await asyncio.wait_for(
                self._keeper_client.hold_port(task, address, port, fixed, within, lambda _: f" on {self._host}"), HOLD_S
            )
        except asyncio.TimeoutError:
            raise HostsUnusable(f"{self._host} does not answer") from None

    def start(self, launch: Launch) -> None:
        log_recorder.begin(launch.log, launch.logs.max_bytes, launch.logs.count)
        name = os.path.basename(launch.log)
        self._launched.note(name)
        log = f"{LOGS}/{name}"
        self._keeper_client.send(start_request(replace(launch, log=log), self._token))

    def signal(self, task: str, generation: int, number: int) -> None:
        self._keeper_client.send(signal_request(task, generation, number))

    def release_port(self, task: str) -> None:
        self._keeper_client.send({"do": "release", "task": task})

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        request = {"do": "command", "command": command, "environment": environment}
        return await self._check({**request, "working_dir": working_dir, "timeout_s": timeout_s})

    async def check_file(self, path: str, age_s: float) -> str:
        return await self._check({"do": "file", "path": path, "age_s": age_s})

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        if self.is_connected:
            with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
                request = {"do": "usage", "pids": list(pids)}
                reply = await asyncio.wait_for(self._keeper_client.ask(request), USAGE_S)
                wanted = {str(pid): pid for pid in pids}
                found = {wanted[pid]: Usage(**values) for pid, values in reply["usages"].items() if pid in wanted}
                return found, reply["monotonic"] - self._ahead_s
        return {}, 0.0

    async def _check(self, request: Message) -> str:
        if not self.is_connected:
            return f"{self._host} cannot be reached"
        try:
            missing: str = (await self._keeper_client.ask(request))["missing"]
            return missing
        except HostsUnusable as error:
            return str(error)

    async def sweep(self) -> tuple[Stray, ...]:
        """On a host that cannot be reached it is named what runs there as far as is known, at least the keeper."""
        if self._is_given_up:
            self._end_renewing()
            await self._keeper_client.cut()
            reached.forget(self._run_dir, self._host)
            return ()
        timeout_s = SWEEP_S + ANSWER_S
        if self._is_told_unreachable:
            timeout_s = self._lost_at + RETURN_S - time.monotonic()
        elif self._call is None:
            timeout_s = RETURN_S
        with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
            reply = await asyncio.wait_for(self._keeper_client.ask({"do": "sweep"}), timeout_s)
            return tuple(Stray(left["pid"], self._host, left["command"]) for left in reply["left"])
        await self._keeper_client.cut()
        try:
            left = (await AgentProvisioner(self._client.pipe).clean(self._run, self._token))["left"]
        except PipeError:
            known = [(pid, task) for task, pid in self._running.items()] or [(self._keeper, "the keeper")]
            return tuple(Stray(pid, self._host, f"{name}, on a host that cannot be reached") for pid, name in known)
        if not left:
            reached.forget(self._run_dir, self._host)
        return tuple(Stray(each["pid"], self._host, each["command"]) for each in left)

    def give_up(self) -> None:
        """See base.HostLauncher."""
        self._is_given_up = True

    async def drain_logs(self) -> None:
        if self.is_connected:
            with contextlib.suppress(asyncio.TimeoutError, HostsUnusable):
                await asyncio.wait_for(self._keeper_client.ask({"do": "drain"}), DRAIN_S)

    async def close(self) -> None:
        await self.drain_logs()
        self._end_renewing()
        is_ended = await self._keeper_client.close(5)
        if self._call is not None:
            status, _ = await self._call.end()
            if is_ended and status == 0:
                reached.forget(self._run_dir, self._host)
        await self._end_keep()
        await self._client.pipe.disconnect()

    async def _reach(self) -> Streams:
        while True:
            if self._call is not None:
                call, self._call = self._call, None
                failure = self._client.failure(*await call.end())
                silence, self._silence = self._silence, ""
                await self._note_end(PipeError(silence, failure.command) if silence else failure)
            try:
                return await self._try()
            except PipeError as error:
                await self._note_end(error)

    async def _note_end(self, error: PipeError) -> None:
        """A connection has ended, or was not made."""
        if error.is_connection or self._is_told_unreachable or self._pause_s > RECONNECT_S:
            if error.is_connection:
                # Should it only hang: the next one must not wait for it.
                await self._client.pipe.disconnect()
            if not self._is_told_unreachable:
                self._lost_at = time.monotonic()
            self._is_told_unreachable = True
            self._on_event(Unreachable(self._host, error.why))
        await asyncio.sleep(self._pause_s * random.uniform(0.5, 1))
        self._pause_s = min(RECONNECT_S_MAX, self._pause_s * 2)

    async def _try(self) -> Streams:
        request: dict[str, Any] = {"run": self._run, "token": self._token, "keeper": keeper_text()}
        outlives = self._client.pipe.outlives
        call = await self._client.call({**request, "do": "talk", "have": self._have(), "starts": outlives})
        try:
            first = await self._client.line_of(call, self._client.pipe.connect_timeout_s + ANSWER_S, TOLD)
            self._keeper = first.get("keeper", 0)
            if not self._keeper:
                await call.end()
                await self._keep({**request, "do": "keep"})
                return await self._try()
            await self._compare_clocks(call)
            call.writer.write(json.dumps({**self._lease(), "id": 0}).encode() + b"\n")
        except BaseException:
            call.kill()
            raise
        self._call = call
        self._pause_s = RECONNECT_S
        self._is_told_unreachable = False
        self._on_event(Reached(self._host))
        return call.reader, call.writer

    def _lease(self) -> Message:
        """An absolute time by the host's clock: what arrives late prolongs nothing."""
        fence_s = self._fence_s()
        until = time.monotonic() + self._ahead_s + fence_s if fence_s else None
        return {"do": "lease", "until": until, "host": self._host}

    async def _renew(self) -> None:
        while True:
            fence_s = self._fence_s()
            begun = time.monotonic()
            if fence_s and self.is_connected and (call := self._call) is not None:
                try:
                    await asyncio.wait_for(self._keeper_client.ask(self._lease()), fence_s * SILENT_PART)
                except asyncio.TimeoutError:
                    if call is self._call:
                        self._silence = f"it has not answered for {fence_s * SILENT_PART:.3g}s"
                        call.kill()
                except HostsUnusable:
                    pass  # the host says so itself; the lease runs out if nothing else helps
            pause_s = fence_s * RENEWED_PART if fence_s else RECONNECT_S_MAX
            await asyncio.sleep(max(0.0, begun + pause_s - time.monotonic()))

    def _end_renewing(self) -> None:
        if self._renewing is not None:
            self._renewing.cancel()

    async def _keep(self, request: dict[str, Any]) -> None:
        """Starts the keeper in a call that lasts as long as the run, whatever becomes of this process."""
        await self._end_keep()
        call = await self._client.call(request)
        await self._client.line_of(call, self._client.pipe.connect_timeout_s + ANSWER_S, ANSWERS["keep"])
        self._keep_call = call

    async def _end_keep(self) -> None:
        """Of the call that keeps the keeper nothing more is expected."""
        if self._keep_call is not None:
            call, self._keep_call = self._keep_call, None
            await call.end()

    async def _compare_clocks(self, call: Call) -> None:
        """An answer was written between its question and its arrival; the quickest one says it best."""
        least_s = float("inf")
        for _ in range(CLOCK_ROUNDS):
            before, wall = time.monotonic(), time.time()
            call.writer.write(b'{"do": "clock"}\n')
            # Who has said no hello yet need not know what the keeper tells; it tells it again.
            while (answer := await self._client.line_of(call, ANSWER_S, TOLD))["is"] != "clock":
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
        """Of each log of this host as much as is here."""
        return {entry.name: entry.stat().st_size for entry in os.scandir(self._logs) if entry.name in self._launched}

    def _take_log(self, name: str, offset: int, data: bytes, times: list[tuple[int, int]]) -> None:
        """Appends what is not here yet. Where bytes before it are missing, a new connection brings them again."""
        if name not in self._launched:
            self._keeper_client.send({"do": "ack", "bytes": len(data)})
            raise BadMessage(f"the log {name} belongs to no process that was started there")
        path = self._logs / name
        with open(path, "ab") as file:
            size = file.tell()
            fresh = data[size - offset :] if offset <= size else b""
            if fresh:
                # The times first: so the recorder of this machine adds none of its own.
                with contextlib.suppress(OSError, struct.error):
                    log_recorder.note_growth(str(path), [(at, until) for at, until in times if until > size])
                file.write(fresh)
            until = file.tell()
        self._keeper_client.send({"do": "ack", "bytes": len(data), "file": name, "until": until})
        if offset > size and self._call is not None:
            self._silence = f"{offset - size} bytes of the log {name} did not arrive"
            self._call.kill()
