"""The process beside dtfctl that speaks with Ray, for all pipes of a cluster: one driver, one socket.

It is a program of its own, because a driver ends when Ray's head is lost, and the rest of dtfctl must not end with it.
Its Python has ray and need not have dtfctl. The bridge exits when no client has been connected for a while.

A connection begins with one line of JSON. `group` and `release` are answered by lines. After `call` the connection is
the input and the output of a command on a host, byte for byte; `end` then asks what became of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import IO, Any

if __name__ == "__main__":
    # The modules beside this file are not for this process.
    sys.path.pop(0)
    # It outlives dtfctl's process, which would have to wait for the end of a child of its own.
    if os.fork():
        os._exit(0)

import ray  # noqa: E402 - after the path is set right
from ray.util.placement_group import (  # noqa: E402
    get_placement_group,
    placement_group,
    placement_group_table,
    remove_placement_group,
)
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: E402

NAMESPACE = "dtfctl"
IDLE_S = 60.0
LOOK_S = 0.1
FIRST_WORD_S = 3.0
"""After this time the user is told what a group waits for."""

ACTOR_S = 90.0
PROBE_S = 5.0
CHUNK = 1 << 16
"""An answer of this size comes without Ray's object store."""

ALIVE_S = 5.0
SILENT_S = 60.0
"""The commands of a bridge that has not been heard of for so long are ended."""

CALLS_MAX = 10_000
LOST = -1

GUARD = """
import fcntl, os, subprocess, sys
if os.fork():
    os._exit(0)
lock = open(sys.argv[1], "a")
fcntl.flock(lock, fcntl.LOCK_EX)
text = sys.stdin.buffer.read(int(sys.argv[2]))
sys.stdout.write("on guard\\n")
sys.stdout.flush()
sys.stdin.buffer.read()
subprocess.run([sys.executable, "-I", "-S", "-c", sys.argv[3]], input=text, stdout=subprocess.DEVNULL)
"""
"""Outlives the actor, and then ends what the actor leaves. The actor's next incarnation waits for it."""


class Host:
    """The actor: runs commands on its node. Ray copies the class to the node as it stands here."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: dict[str, tuple[str, asyncio.subprocess.Process, IO[bytes]]] = {}
        self._heard: dict[str, float] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._guarding = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    async def where(self) -> dict[str, Any]:
        gpus = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        return {"address": ray.util.get_node_ip_address(), "python": sys.executable, "gpus": gpus}

    async def open(self, bridge: str, call: str, command: list[str], guard: list[str]) -> None:
        """`guard` is what cleans up after the actor: a Python's program and its input."""
        async with self._guarding:
            if guard and self._guard is None:
                self._guard = await asyncio.to_thread(self._post, *guard)
        self._heard[bridge] = time.monotonic()
        if self._watch is None:
            self._watch = asyncio.create_task(self._end_silent())
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - it lasts as long as the command
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=os.path.expanduser("~"),
            # Ray's own choice for the actor; dtfctl makes one for each task.
            env={name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
            start_new_session=True,
        )
        self._calls[call] = (bridge, process, errors)

    def _post(self, program: str, text: str) -> subprocess.Popen[bytes]:
        folder = os.path.join(tempfile.gettempdir(), f"dtfctl-ray-{os.getuid()}")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        data = text.encode()
        lock = os.path.join(folder, self._name.replace("/", "-"))
        guard = subprocess.Popen(
            [sys.executable, "-I", "-c", GUARD, lock, str(len(data)), program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert guard.stdin is not None and guard.stdout is not None
        guard.stdin.write(data)
        guard.stdin.flush()
        guard.stdout.readline()
        guard.wait()
        return guard

    async def write(self, call: str, data: bytes) -> None:
        """Nothing to write means the end of the input."""
        writer = self._calls[call][1].stdin
        assert writer is not None
        with contextlib.suppress(ConnectionError):
            if data:
                writer.write(data)
                await writer.drain()
            else:
                writer.close()

    async def read(self, call: str) -> bytes:
        reader = self._calls[call][1].stdout
        assert reader is not None
        return await reader.read(CHUNK)

    async def end(self, call: str, timeout_s: float) -> tuple[int, str]:
        _, process, errors = self._calls.pop(call)
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), timeout_s)
        except asyncio.TimeoutError:
            process.kill()
            await process.wait()
        errors.seek(0)
        words = errors.read(1 << 16).decode(errors="replace")
        errors.close()
        assert process.returncode is not None
        return process.returncode, words

    async def alive(self, bridge: str) -> None:
        self._heard[bridge] = time.monotonic()

    async def _end_silent(self) -> None:
        while True:
            await asyncio.sleep(ALIVE_S)
            silent = {bridge for bridge, at in self._heard.items() if time.monotonic() - at > SILENT_S}
            for call, (bridge, _, _) in list(self._calls.items()):
                if bridge in silent:
                    await self.end(call, 0)
            for bridge in silent:
                del self._heard[bridge]


class Bridge:
    """The driver's end. A command is known by the id that who opened it has chosen."""

    def __init__(self) -> None:
        self._name = f"{os.getpid()}-{os.urandom(4).hex()}"
        self._connections = 0
        self._idle_since = time.monotonic()
        self._actors: dict[str, Any] = {}
        self._calls: dict[str, str] = {}
        self._ended: dict[str, tuple[int, str]] = {}
        self._look_again = asyncio.Event()
        self._is_leaving = False

    async def serve(self, path: str, ready: Callable[[], None]) -> None:
        server = await asyncio.start_unix_server(self._take, path, limit=1 << 24)
        ready()
        try:
            while self._connections or time.monotonic() - self._idle_since < IDLE_S:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._look_again.wait(), ALIVE_S)
                self._look_again.clear()
                for actor in {self._calls[call] for call in self._calls} & self._actors.keys():
                    self._actors[actor].alive.remote(self._name)
        finally:
            server.close()
            with contextlib.suppress(OSError):
                os.unlink(path)

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

    # -- groups

    async def _group(
        self,
        tell: Callable[[dict[str, Any]], None],
        group: str,
        hosts: list[str],
        bundles: list[dict[str, float]],
        strategy: str,
        options: dict[str, Any],
        wait_s: float,
        is_new: bool,
    ) -> dict[str, Any]:
        """Makes the group, or finds it again, with an actor for each host; each actor's place."""
        placed = await asyncio.to_thread(find_group, group)
        if placed is not None and is_new:
            # Of a run that has ended without a word.
            await self._release(tell, group, hosts, True)
            placed = None
        if placed is None:
            placed = await asyncio.to_thread(placement_group, bundles, strategy, group, "detached")
        try:
            await self._wait_for(placed, bundles, strategy, wait_s, tell)
            for number, host in enumerate(hosts):
                self._actors[host] = await asyncio.to_thread(
                    make_actor, host, placed, number, bundles[number], options
                )
            places = await asyncio.wait_for(
                asyncio.gather(*(self._actors[host].where.remote() for host in hosts)), ACTOR_S
            )
        except BaseException as error:
            await self._release(tell, group, hosts, True)
            if isinstance(error, asyncio.TimeoutError):
                raise RuntimeError(f"the actors did not start within {ACTOR_S:g}s") from None
            raise
        return {"hosts": places}

    async def _wait_for(
        self,
        placed: Any,
        bundles: list[dict[str, float]],
        strategy: str,
        wait_s: float,
        tell: Callable[[dict[str, Any]], None],
    ) -> None:
        began = time.monotonic()
        is_told = False
        while (found := await asyncio.to_thread(placement_group_table, placed))["state"] != "CREATED":
            took_s = time.monotonic() - began
            if took_s >= min(wait_s, FIRST_WORD_S):
                why = await asyncio.to_thread(why_not_placed, found, bundles, strategy)
                if took_s >= wait_s:
                    raise RuntimeError(why)
                if not is_told:
                    tell({"waiting": why})
                    is_told = True
            await asyncio.sleep(LOOK_S)

    async def _release(
        self, tell: Callable[[dict[str, Any]], None], group: str, hosts: list[str], is_last: bool
    ) -> dict[str, Any]:
        """Ends the actors of these hosts, and with `is_last` gives the group back."""
        for host in hosts:
            self._actors.pop(host, None)
            await asyncio.to_thread(end_actor, host)
        if is_last:
            await asyncio.to_thread(remove_group, group)
        return {"released": hosts}

    async def _leave(self, tell: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        """Nobody is expected any more; those who are connected are served to their end."""
        self._is_leaving = True
        return {"leaving": True}

    # -- commands

    async def _call(
        self,
        id: str,
        actor: str,
        address: str,
        command: list[str],
        guard: list[str],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._calls[id] = actor
        feeding: asyncio.Task[None] | None = None
        try:
            host = await self._actor(actor, address)
            await host.open.remote(self._name, id, command, guard)
            feeding = asyncio.create_task(self._feed(host, id, reader))
            while data := await host.read.remote(id):
                writer.write(data)
                await writer.drain()
            # What the command is still told after its output has ended is lost.
            self._ended[id] = await host.end.remote(id, 5.0)
        except ConnectionError:
            with contextlib.suppress(Exception):
                await self._actors[actor].end.remote(id, 0.0)
            self._ended[id] = (LOST, "given up")
        except Exception as error:
            self._actors.pop(actor, None)
            self._ended[id] = (LOST, words_of(error))
        finally:
            del self._calls[id]
            if feeding is not None:
                feeding.cancel()
            while len(self._ended) > CALLS_MAX:
                del self._ended[next(iter(self._ended))]

    async def _feed(self, host: Any, id: str, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(Exception):
            data = b"."
            while data:
                data = await reader.read(CHUNK)
                await host.write.remote(id, data)

    async def _actor(self, name: str, address: str) -> Any:
        if name not in self._actors:
            actor = await asyncio.to_thread(ray.get_actor, name, NAMESPACE)
            place = await asyncio.wait_for(actor.where.remote(), ACTOR_S)
            if place["address"] != address:
                raise RuntimeError(f"Ray has moved this host from {address} to {place['address']}")
            self._actors[name] = actor
        return self._actors[name]

    async def _end(self, tell: Callable[[dict[str, Any]], None], id: str) -> dict[str, Any]:
        while id in self._calls:
            await asyncio.sleep(LOOK_S)
        status, words = self._ended.pop(id, (LOST, "Ray's bridge does not know this command"))
        return {"status": status, "words": words}


def find_group(name: str) -> Any:
    try:
        found = get_placement_group(name)
    except ValueError:
        return None
    return None if placement_group_table(found)["state"] == "REMOVED" else found


def remove_group(name: str) -> None:
    found = find_group(name)
    if found is not None:
        remove_placement_group(found)
        while placement_group_table(found)["state"] != "REMOVED":
            time.sleep(LOOK_S)


def make_actor(name: str, placed: Any, number: int, bundle: dict[str, float], options: dict[str, Any]) -> Any:
    own = {
        "name": name,
        "namespace": NAMESPACE,
        "get_if_exists": True,
        "lifetime": "detached",
        "max_restarts": -1,
        "max_concurrency": 1000,
        "num_cpus": bundle.get("CPU", 0),
        "num_gpus": bundle.get("GPU", 0),
        "scheduling_strategy": PlacementGroupSchedulingStrategy(placed, number),
    }
    chosen = {option: value for option, value in {**own, **options}.items() if value is not None}
    return ray.remote(Host).options(**chosen).remote(name)


def end_actor(name: str) -> None:
    """Returns when Ray does not know it any more."""
    with contextlib.suppress(ValueError):
        ray.kill(ray.get_actor(name, NAMESPACE), no_restart=True)
        while True:
            ray.get_actor(name, NAMESPACE)
            time.sleep(LOOK_S)


def why_not_placed(found: dict[str, Any], bundles: list[dict[str, float]], strategy: str) -> str:
    state = found.get("stats", {}).get("scheduling_state", "") or found["state"]
    total, free = ray.cluster_resources(), ray.available_resources()
    names = sorted({name for bundle in bundles for name in bundle})
    there = ", ".join(f"{name} {total.get(name, 0):g} ({free.get(name, 0):g} free)" for name in names)
    alive = sum(node["Alive"] for node in ray.nodes())
    each = " + ".join(dict.fromkeys(", ".join(f"{name} {count:g}" for name, count in b.items()) for b in bundles))
    wanted = f"{len(bundles)} hosts with {each} each ({strategy})"
    return f"Ray says {state}: wanted are {wanted}; there are {alive} nodes with {there}"


def words_of(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def probe(address: str) -> None:
    """Ray itself tries for a minute."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdigit() and "/" not in address:
        try:
            socket.create_connection((host.strip("[]"), int(port)), PROBE_S).close()
        except OSError as error:
            raise RuntimeError(f"no Ray answers at {address}: {error.strerror or error}") from None


def main() -> None:
    path, address, log = sys.argv[1:]
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
        probe(address or os.environ.get("RAY_ADDRESS", ""))
        ray.init(address or "auto", namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except Exception as error:
        tell(words_of(error))
        return
    with contextlib.suppress(OSError):
        os.unlink(path)
    asyncio.run(Bridge().serve(path, lambda: tell("ready")))


if __name__ == "__main__":
    main()
