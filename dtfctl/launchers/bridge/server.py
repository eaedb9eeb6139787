"""The bridge: a process beside dtfctl that speaks with an engine, for all pipes of a cluster, at one socket.

It exits when no client has been connected for a while, or serves until it is closed. A connection begins with one line
of JSON. `group`, `release` and `leave` are answered by lines. After `call` the connection is the input and the output
of a command on a host, byte for byte; `end` then asks what became of it.

Needs nothing but Python, since the engine's Python need not have dtfctl.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from dtfctl.launchers.bridge.commands import ALIVE_S, CHUNK

IDLE_S = 60.0
LOOK_S = 0.1
FIRST_WORD_S = 3.0
"""After this time the user is told what a group waits for."""

CALLS_MAX = 10_000
LOST = -1
LINE_BYTES_MAX = 1 << 24

Tell = Callable[[dict[str, Any]], None]
Ask = Callable[..., Awaitable[Any]]
"""Calls a method of a host's Commands: its name, and its values."""


class Engine(Protocol):
    """What gives the hosts. Each method raises an error whose first line is the reason, for the user."""

    async def group(self, tell: Tell, group: str, hosts: list[str], wanted: dict[str, Any]) -> list[dict[str, str]]:
        """The place of each host: address, python, gpus. `wanted` is the engine's own. Nothing is left of a group that
        cannot be had. `tell` gets what it waits for, as {"waiting": words}."""

    async def release(self, group: str, hosts: list[str]) -> None:
        """Gives the group back, with all that runs on its hosts."""

    async def host(self, name: str, address: str) -> Ask:
        """Reaches a host, which must still have its address."""

    def forget(self, name: str) -> None:
        """A call of the host has failed; the next one reaches it anew."""


class Bridge:
    """A command is known by the id that who opened it has chosen."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._connections = 0
        self._idle_since = time.monotonic()
        self._hosts: dict[str, Ask] = {}
        self._calls: dict[str, str] = {}
        self._ended: dict[str, tuple[int, str]] = {}
        self._look_again = asyncio.Event()
        self._is_leaving = False
        self._beats: set[asyncio.Future[None]] = set()

    async def serve(self, path: str, ready: Callable[[], None], idle_s: float = IDLE_S) -> None:
        server = await asyncio.start_unix_server(self._take, path, limit=LINE_BYTES_MAX)
        ready()
        try:
            while self._connections or time.monotonic() - self._idle_since < idle_s:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._look_again.wait(), ALIVE_S)
                self._look_again.clear()
                for host in set(self._calls.values()) & self._hosts.keys():
                    beat = asyncio.ensure_future(self._beat(self._hosts[host]))
                    self._beats.add(beat)
                    beat.add_done_callback(self._beats.discard)
        finally:
            server.close()
            with contextlib.suppress(OSError):
                os.unlink(path)

    async def _beat(self, host: Ask) -> None:
        with contextlib.suppress(Exception):
            await host("alive", self._name)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                request = json.loads(await reader.readuntil(b"\n"))
                await self._serve_one(request.pop("do"), request, reader, writer)
        finally:
            self._connections -= 1
            self._idle_since = time.monotonic() - (IDLE_S if self._is_leaving else 0)
            self._look_again.set()
            with contextlib.suppress(OSError):
                writer.close()

    async def _serve_one(
        self, do: str, request: dict[str, Any], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if do == "call":
            await self._call(**request, reader=reader, writer=writer)
            return

        def tell(line: dict[str, Any]) -> None:
            writer.write(json.dumps(line).encode() + b"\n")

        serve: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
            "group": self._group,
            "release": self._release,
            "end": self._end,
            "leave": self._leave,
        }
        try:
            tell(await serve[do](tell=tell, **request))
        except Exception as error:
            tell({"error": words_of(error)})
        await writer.drain()

    async def _group(self, tell: Tell, group: str, hosts: list[str], **wanted: Any) -> dict[str, Any]:
        return {"hosts": await self._engine.group(tell, group, hosts, wanted)}

    async def _release(self, tell: Tell, group: str, hosts: list[str]) -> dict[str, Any]:
        for host in hosts:
            self._hosts.pop(host, None)
        await self._engine.release(group, hosts)
        return {"released": hosts}

    async def _leave(self, tell: Tell) -> dict[str, Any]:
        """Nobody is expected any more; those who are connected are served to their end."""
        self._is_leaving = True
        return {"leaving": True}

    # -- commands

    async def _call(
        self,
        id: str,
        host: str,
        address: str,
        command: list[str],
        guard: list[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._calls[id] = host
        feeding: asyncio.Task[None] | None = None
        try:
            if host not in self._hosts:
                self._hosts[host] = await self._engine.host(host, address)
            ask = self._hosts[host]
            await ask("open", self._name, id, command, guard)
            feeding = asyncio.create_task(self._feed(ask, id, reader))
            while data := await ask("read", id):
                writer.write(data)
                await writer.drain()
            # What the command is still told after its output has ended is lost.
            status, words = await ask("end", id, 5.0)
            self._ended[id] = (status, words)
        except ConnectionError:
            with contextlib.suppress(Exception):
                await self._hosts[host]("end", id, 0.0)
            self._ended[id] = (LOST, "given up")
        except Exception as error:
            self._hosts.pop(host, None)
            self._engine.forget(host)
            self._ended[id] = (LOST, words_of(error))
        finally:
            del self._calls[id]
            if feeding is not None:
                feeding.cancel()
            while len(self._ended) > CALLS_MAX:
                del self._ended[next(iter(self._ended))]

    async def _feed(self, ask: Ask, id: str, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(Exception):
            data = b"."
            while data:
                data = await reader.read(CHUNK)
                await ask("write", id, data)

    async def _end(self, tell: Tell, id: str) -> dict[str, Any]:
        while id in self._calls:
            await asyncio.sleep(LOOK_S)
        status, words = self._ended.pop(id, (LOST, "the bridge does not know this command"))
        return {"status": status, "words": words}


def words_of(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def run(path: str, log: str, make: Callable[[], Engine]) -> None:
    """A bridge's process: prints `ready`, or why it cannot serve, and serves. Ends at once where another one serves."""
    out = os.dup(1)

    def tell(word: str) -> None:
        with contextlib.suppress(OSError):
            os.write(out, f"{word}\n".encode())
            os.close(out)

    lock = open(f"{path}.lock", "a")  # noqa: SIM115 - held until this process ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        tell("ready")
        return
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    try:
        engine = make()
    except Exception as error:
        tell(words_of(error))
        return
    with contextlib.suppress(OSError):
        os.unlink(path)
    asyncio.run(_serve(engine, path, tell))


async def _serve(engine: Engine, path: str, tell: Callable[[str], None]) -> None:
    await Bridge(engine).serve(path, lambda: tell("ready"))
