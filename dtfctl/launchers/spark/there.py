"""dtfctl's process on an executor: started by a short task of Spark, it outlives the task and runs dtfctl's commands.

It ends with its executor and with the driver: a guard (bridge/commands.py) then ends what it leaves. While the driver
only cannot be reached it waits for `PATIENCE_S`. Needs nothing but Python: the driver brings this file.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import Any

from dtfctl.launchers.bridge.commands import Commands
from dtfctl.launchers.spark import link

PATIENCE_S = 30.0
PAUSE_S = 0.5
SILENT_S = 60.0
"""The driver says something every few seconds."""


def main() -> None:
    """Reads what it is to be from its input. Its output gets one line: its place, or the reason why it has no place."""
    wanted = json.loads(sys.stdin.readline())
    if os.fork():
        os._exit(0)
    try:
        asyncio.run(Process(wanted).serve())
    finally:
        # What it has started is the guard's; nothing here is worth waiting for.
        os._exit(0)


class Process:
    """`wanted` has the host's name, the driver's hub and secret, the place, and the pid of the executor."""

    def __init__(self, wanted: dict[str, Any]) -> None:
        self._name: str = wanted["name"]
        self._hub: tuple[str, int] = (wanted["hub"][0], wanted["hub"][1])
        self._secret: str = wanted["secret"]
        self._place: dict[str, str] = {**wanted["place"], "python": sys.executable, "gpus": ""}
        self._executor: int = wanted["executor"]
        self._commands = Commands(self._name, "dtfctl-spark")
        self._is_told = False
        self._working: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        self._watch_executor()
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                reader, writer = await self._connect()
            except ConnectionRefusedError:
                # Nobody listens there: the driver has ended.
                self._tell({"error": "the driver has ended"})
                return
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError):
                await asyncio.sleep(PAUSE_S)
                continue
            except link.LinkError as error:
                self._tell({"error": str(error)})
                return
            self._tell(self._place)
            if await self._answer(reader, writer):
                return
            deadline = time.monotonic() + PATIENCE_S

    def _watch_executor(self) -> None:
        try:
            end = os.pidfd_open(self._executor)
        except ProcessLookupError:
            os._exit(0)
        asyncio.get_running_loop().add_reader(end, os._exit, 0)

    def _tell(self, line: dict[str, str]) -> None:
        if not self._is_told:
            self._is_told = True
            with contextlib.suppress(OSError):
                os.write(1, json.dumps(line).encode() + b"\n")
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(*self._hub), PATIENCE_S)
        try:
            first, _ = await asyncio.wait_for(link.receive(reader, link.GREETING_BYTES_MAX), PATIENCE_S)
            theirs, own = str(first.get("nonce")), link.nonce()
            hello = {"name": self._name, "place": self._place, "executor": self._executor, "nonce": own}
            hello["process"] = os.getpid()
            writer.write(link.frame({**hello, "proof": link.proof(self._secret, "executor", theirs, own)}))
            reply, _ = await asyncio.wait_for(link.receive(reader, link.GREETING_BYTES_MAX), PATIENCE_S)
            if not link.is_proof(reply.get("proof"), self._secret, "driver", own, theirs):
                raise link.LinkError("the driver does not know the application's secret")
            if reply.get("refused"):
                raise link.LinkError(str(reply["refused"]))
        except BaseException:
            writer.close()
            raise
        return reader, writer

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Until the connection is lost; whether it is over."""
        try:
            while True:
                request, data = await asyncio.wait_for(link.receive(reader), SILENT_S)
                if request["do"] == "leave":
                    return True
                working = asyncio.create_task(self._do(request, data, writer))
                self._working.add(working)
                working.add_done_callback(self._working.discard)
        except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, link.LinkError):
            return False
        finally:
            writer.close()

    async def _do(self, request: dict[str, Any], data: bytes, writer: asyncio.StreamWriter) -> None:
        reply: dict[str, Any] = {"id": request["id"]}
        output = b""
        try:
            done = await self._run(request["do"], request["values"], data)
            if isinstance(done, bytes):
                output = done
            else:
                reply["value"] = done
        except Exception as error:
            reply["error"] = str(error) or type(error).__name__
        with contextlib.suppress(OSError):
            writer.write(link.frame(reply, output))
            await writer.drain()

    async def _run(self, do: str, values: list[Any], data: bytes) -> Any:
        if do == "open":
            return await self._commands.open(*values)
        if do == "write":
            return await self._commands.write(values[0], data)
        if do == "read":
            return await self._commands.read(*values)
        if do == "end":
            return await self._commands.end(*values)
        if do == "alive":
            return await self._commands.alive(*values)
        raise ValueError(f"unknown request {do}")
