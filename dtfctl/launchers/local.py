"""Tasks on this machine: the daemon's end of the connection to the keeper, and the starting of both.

The talk itself is keeper_client.py's. The protocol and what survives whose death: keeper/.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from dtfctl.errors import HostsUnusable
from dtfctl.launchers import here
from dtfctl.launchers.base import Event, Launch, Stray
from dtfctl.launchers.keeper import LINE_BYTES_MAX, SOCKET, SWEEP_S, TOKEN, TOKEN_VARIABLE
from dtfctl.launchers.keeper.protocol import MESSAGES
from dtfctl.launchers.keeper_client import KeeperClient, Message, Streams, event_of, signal_request, start_request
from dtfctl.launchers.usage import Usage, measure
from dtfctl.storage.paths import socket_address
from dtfctl.values.plan import LOCALHOST

KEEPER = Path(__file__).with_name("keeper")
RECONNECT_PAUSE_S = 0.05


class LocalLauncher:
    """See base.HostLauncher. For this machine. Only the daemon's event loop touches it.

    `on_event` is called for each event. A keeper that dies is started again at once, and tells what it finds.
    """

    def __init__(self, run_dir: Path, state_dir: Path, on_event: Callable[[Event], None]) -> None:
        self._run_dir = run_dir
        self._token = (run_dir / TOKEN).read_text().strip()
        self._on_event = on_event
        hello = {"do": "hello", "respawn": daemon_request(state_dir, "adopt")}
        self._keeper_client = KeeperClient(self._reach_keeper, hello, self._take, MESSAGES)
        self._keeper: subprocess.Popen[bytes] | None = None

    def connect(self) -> None:
        """Finds the keeper of this run, or starts one."""
        self._keeper_client.start()

    async def wait_until_listed(self) -> None:
        await self._keeper_client.wait_until_listed()

    async def hold_port(
        self, task: str, address: str, port: int, fixed: bool, within: tuple[int, int] | None = None
    ) -> int:
        return await self._keeper_client.hold_port(task, address, port, fixed, within, owner_of)

    def start(self, launch: Launch) -> None:
        self._keeper_client.send(start_request(launch, self._token))

    def signal(self, task: str, generation: int, number: int) -> None:
        self._keeper_client.send(signal_request(task, generation, number))

    def release_port(self, task: str) -> None:
        self._keeper_client.send({"do": "release", "task": task})

    async def check_command(self, command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
        return await here.check_command(command, environment, working_dir, timeout_s)

    async def check_file(self, path: str, age_s: float) -> str:
        return await here.check_file(path, age_s)

    async def usage(self, pids: Collection[int]) -> tuple[dict[int, Usage], float]:
        return await asyncio.to_thread(measure, set(pids)), time.monotonic()

    async def drain_logs(self) -> None:
        """Tasks write straight to their logs."""

    async def sweep(self) -> tuple[Stray, ...]:
        try:
            reply = await self._keeper_client.ask({"do": "sweep"})
        except HostsUnusable:
            return ()
        return tuple(Stray(left["pid"], LOCALHOST, left["command"]) for left in reply["left"])

    def give_up(self) -> None:
        """Never of this machine."""

    async def close(self) -> None:
        await self._keeper_client.close(5)
        if self._keeper is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._keeper.wait(5)

    def _take(self, message: Message) -> None:
        event = event_of(message, LOCALHOST)
        if event is not None:
            self._on_event(event)

    async def _reach_keeper(self) -> Streams:
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


def start_daemon(state_dir: Path, purpose: str, leash: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """The supervisor's process, in a session of its own: no terminal's hang-up or Ctrl-C reaches it.

    `leash` is the reading end of a pipe: when its other end is closed, a supervisor that still waits for an `up` has
    lost the command that started it, and ends.
    """
    request = daemon_request(state_dir, purpose)
    with open(os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as log:
        return subprocess.Popen(
            request["argv"],
            stdin=leash,
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
    """Without a daemon: kills all that is left of a run, and its keeper. Does nothing when neither exists."""
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


def owner_of(port: int) -> str:
    """Who listens on a port of this machine, as far as this user may see it."""
    import psutil

    with contextlib.suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            if connection.laddr and connection.laddr.port == port and connection.pid:
                command = " ".join(psutil.Process(connection.pid).cmdline())
                return f", by pid {connection.pid} ({command[:80]})"
    return ""
