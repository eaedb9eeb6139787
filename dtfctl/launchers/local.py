"""Tasks on this machine: the daemon's end of the conversation with the keeper, and the starting of both.

Every call of subprocess in dtfctl is here. The protocol and what survives whose death: keeper.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dtfctl.errors import PortTaken
from dtfctl.launchers.base import Event, Exited, Launch, Listed, Started, Stray
from dtfctl.launchers.keeper import LINE_BYTES_MAX, SOCKET, SWEEP_S, TOKEN, TOKEN_VARIABLE
from dtfctl.paths import socket_address
from dtfctl.plan import LOCALHOST
from dtfctl.task import Exit

KEEPER = Path(__file__).with_name("keeper.py")
RECONNECT_PAUSE_S = 0.05


class LocalLauncher:
    """See base.Launcher. Only the daemon's event loop touches it.

    `on_event` is called for each event. A keeper that dies is started again at once, and tells what it finds.
    """

    def __init__(self, run_dir: Path, state_dir: Path, on_event: Callable[[Event], None]) -> None:
        self._run_dir = run_dir
        self._token = (run_dir / TOKEN).read_text().strip()
        self._state_dir = state_dir
        self._on_event = on_event
        self._replies: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._requests = 0
        self._writer: asyncio.StreamWriter | None = None
        self._conversation: asyncio.Task[None] | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._listed = asyncio.Event()

    async def connect(self) -> None:
        """Finds the keeper of this run or starts one, and returns when it has listed what it knows."""
        self._conversation = asyncio.create_task(self._converse())
        listed = asyncio.create_task(self._listed.wait())
        await asyncio.wait({self._conversation, listed}, return_when=asyncio.FIRST_COMPLETED)
        if self._conversation.done():
            listed.cancel()
            self._conversation.result()

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        request = {"do": "hold", "task": task, "address": address, "port": port, "fixed": fixed, "within": within}
        reply = await self._ask(request)
        if "error" in reply:
            which = f"port {port}" if port or within is None else f"any port of {within[0]}-{within[1]}"
            raise PortTaken(f"{which} of {task}: {reply['error']}{_owner(port) if port else ''}")
        return reply["port"]

    def start(self, launch: Launch) -> None:
        self._send(
            {
                "do": "start",
                "task": launch.task,
                "generation": launch.generation,
                "argv": launch.argv,
                "environment": {**launch.environment, TOKEN_VARIABLE: self._token},
                "working_dir": launch.working_dir,
                "log": launch.log,
                "address": None if launch.port is None else [launch.address, launch.port],
                "limits": {**asdict(launch.limits), "cpus": launch.cpus},
            }
        )

    def signal(self, task: str, generation: int, number: int) -> None:
        self._send({"do": "signal", "task": task, "generation": generation, "number": number})

    async def sweep(self) -> tuple[Stray, ...]:
        reply = await self._ask({"do": "sweep"})
        return tuple(Stray(left["pid"], LOCALHOST, left["command"]) for left in reply["left"])

    async def close(self) -> None:
        self._send({"do": "bye"})
        if self._conversation is not None:
            # The keeper's end of the connection closes last of all.
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._conversation, 5)
        if self._keeper is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._keeper.wait(5)

    def _send(self, request: dict[str, Any]) -> None:
        # Without a connection nothing is lost: after the next listing the supervisor asks again for what is missing.
        if self._writer is not None:
            self._writer.write(json.dumps(request).encode() + b"\n")
        if request["do"] == "bye":
            self._writer = None

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        while True:
            await self._listed.wait()
            self._requests += 1
            number = self._requests
            reply: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
            self._replies[number] = reply
            self._send({**request, "id": number})
            try:
                return await reply
            except ConnectionError:
                continue
            finally:
                del self._replies[number]

    async def _converse(self) -> None:
        while True:
            reader, writer = await self._reach_keeper()
            self._writer = writer
            self._send({"do": "hello", "respawn": daemon_request(self._state_dir, "adopt")})
            try:
                with contextlib.suppress(ConnectionError):
                    while line := await reader.readline():
                        self._take(json.loads(line))
            finally:
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
            if self._writer is None:
                return
            self._listed.clear()
            for reply in self._replies.values():
                if not reply.done():
                    reply.set_exception(ConnectionError("the keeper is gone"))

    async def _reach_keeper(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        for _ in range(100):
            try:
                with socket_address(self._run_dir / SOCKET) as address:
                    return await asyncio.open_unix_connection(address, limit=LINE_BYTES_MAX)
            except (ConnectionError, FileNotFoundError):
                self._start_keeper()
                await asyncio.sleep(0 if self._keeper and self._keeper.poll() is None else RECONNECT_PAUSE_S)
        log = self._run_dir / "keeper.log"
        raise RuntimeError(f"the keeper does not start; see {log}")

    def _start_keeper(self) -> None:
        if self._keeper is not None:
            # Its end of the connection is gone, or it found another keeper at work: it is ending.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._keeper.wait(1)
        with open(self._run_dir / "keeper.log", "ab") as log:
            self._keeper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(KEEPER), str(self._run_dir)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=own_environment(),
                start_new_session=True,
            )
        assert self._keeper.stdout is not None
        # Either "ready", or the end of a keeper that found another one at work.
        self._keeper.stdout.readline()
        self._keeper.stdout.close()

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["is"]
        if kind in ("held", "refused", "swept"):
            waiting = self._replies.get(message["id"])
            if waiting is not None and not waiting.done():
                waiting.set_result(message)
        elif kind == "listed":
            self._listed.set()
            self._on_event(Listed(frozenset((task, generation) for task, generation in message["known"])))
        elif kind == "started":
            self._on_event(Started(message["task"], message["generation"], message["pid"], message["at"]))
        elif kind == "exited":
            ended = Exit(message["at"], message.get("code"), message.get("signal"), message.get("error", ""))
            self._on_event(Exited(message["task"], message["generation"], ended))


def start_daemon(state_dir: Path, purpose: str) -> subprocess.Popen[bytes]:
    """The supervisor's process, in a session of its own: no terminal's hang-up or Ctrl-C reaches it."""
    request = daemon_request(state_dir, purpose)
    with open(request["log"], "ab") as log:
        return subprocess.Popen(
            request["argv"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=request["environment"],
            cwd=state_dir,
            start_new_session=True,
        )


def daemon_request(state_dir: Path, purpose: str) -> dict[str, Any]:
    """How the daemon of `state_dir` is started, by the command line or by the keeper; `purpose` is daemon.py's."""
    return {
        "argv": [sys.executable, "-m", "dtfctl.daemon", str(state_dir), purpose],
        "environment": own_environment(),
        "log": str(state_dir / "daemon.log"),
    }


def own_environment() -> dict[str, str]:
    """For dtfctl's own processes: they find this very package, and carry no run's token."""
    environment = {key: value for key, value in os.environ.items() if key != TOKEN_VARIABLE}
    package = str(Path(__file__).resolve().parents[2])
    path = environment.get("PYTHONPATH", "")
    if package not in path.split(os.pathsep):
        environment["PYTHONPATH"] = package + (os.pathsep + path if path else "")
    return environment


def end_keeper(run_dir: Path) -> None:
    """Without a daemon: kills all that is left of a run, and its keeper. Nothing happens when there is none."""
    with (
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection,
        socket_address(run_dir / SOCKET) as address,
    ):
        connection.settimeout(SWEEP_S + 5)
        with contextlib.suppress(OSError):
            connection.connect(address)
            connection.sendall(b'{"do": "sweep", "id": 0}\n')
            with connection.makefile("rb") as messages:
                # The ends of the tasks are told in between.
                while b'"swept"' not in messages.readline(LINE_BYTES_MAX):
                    pass
                connection.sendall(b'{"do": "bye"}\n')
                messages.read()


async def run_command(command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
    """Runs a readiness command; "" when it exits with 0, else what it did instead."""

    def run() -> str:
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment,
                cwd=working_dir,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired:
            return f"its command did not end within {timeout_s:g}s"
        except OSError as error:
            return f"its command cannot be run: {error.strerror}"
        return "" if done.returncode == 0 else f"its command exits with status {done.returncode}"

    return await asyncio.to_thread(run)


def _owner(port: int) -> str:
    """Who listens on a port of this machine, as far as this user may see it."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                command = " ".join(psutil.Process(connection.pid).cmdline())
                return f", by pid {connection.pid} ({command[:80]})"
    return ""
