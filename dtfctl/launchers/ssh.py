"""ssh as a person would call it, without questions: the system's own, with the user's config, agent and jump hosts.

One connection for each host, which later calls share (ControlMaster, its socket in a private folder).

The user's known_hosts and StrictHostKeyChecking decide about host keys. ssh asks no questions here, so the key of an
unknown host is refused. Only `ssh: {host_keys: accept-new}` in the cluster file accepts new keys.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from dtfctl.launchers.pipe import PipeError, ProcessCall, RsyncTarget, open_process
from dtfctl.values.engines import SshSettings
from dtfctl.values.plan import HostPlan
from dtfctl.wording import reason_of

ALIVE_INTERVAL_S = 5
ALIVE_COUNT = 3
"""A connection over which nothing comes for their product is given up."""

PERSIST_S = 60
"""How long a connection stays when nobody uses it."""

SSH_FAILED = 255

_CONTROLS = re.compile(r"\x1b(\[[0-9;:?]*[ -/]*[@-~]|[@-Z\\^_])?|[\x00-\x08\x0e-\x1a\x7f]")
"""Control characters and the sequences that they begin, which move a terminal's cursor or colour its text."""
_SHOWN_MAX = 300

PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10")


class SshPipe:
    """See pipe.Pipe. `folder`, private to the user, is where the shared connection's socket lies."""

    outlives = True

    def __init__(self, settings: SshSettings, host: HostPlan, folder: Path) -> None:
        self.settings = settings
        self.host = host
        self.folder = folder

    @property
    def pythons(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((self.host.python, *PYTHONS)))

    @property
    def connect_timeout_s(self) -> float:
        return self.settings.timeout_s

    async def open(self, command: Sequence[str]) -> ProcessCall:
        """The command goes as one quoted line, for whatever shell the user has there."""
        line = (*argv(self.settings, self.host), self.host.target, shlex.join(command))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            return await open_process(line, self.folder)
        except OSError as error:
            raise PipeError(f"{line[0]} cannot be run: {reason_of(error)}", self.by_hand()) from None

    def failure(self, status: int, words: str) -> PipeError:
        return PipeError(explain(words, status), self.by_hand(), status == SSH_FAILED or status < 0)

    def by_hand(self, *words: str) -> str:
        return by_hand(self.settings, self.host, *words)

    def rsync_target(self, folder: str) -> RsyncTarget:
        place = f"{self.host.target}:{folder}/"
        return RsyncTarget(shlex.join(argv(self.settings, self.host)), place, self.folder)

    @property
    def is_shared(self) -> bool:
        return (self.folder / socket_name(self.host)).exists()

    async def disconnect(self) -> None:
        name = socket_name(self.host)
        if not self.is_shared:
            return
        line = (*shlex.split(self.settings.command), "-o", f"ControlPath={name}", "-O", "exit", self.host.target)
        with contextlib.suppress(OSError):
            process = await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self.folder,
            )
            try:
                await asyncio.wait_for(process.wait(), 3)
            except asyncio.TimeoutError:
                process.kill()
                await process.wait()
        with contextlib.suppress(OSError):
            os.unlink(self.folder / name)


def argv(settings: SshSettings, host: HostPlan) -> tuple[str, ...]:
    """All of the command line but the host's name. What the user's own command says comes first, and so counts."""
    options = {
        "BatchMode": "yes",
        "ConnectTimeout": f"{settings.timeout_s:.0f}",
        "ServerAliveInterval": str(ALIVE_INTERVAL_S),
        "ServerAliveCountMax": str(ALIVE_COUNT),
        "ControlMaster": "auto",
        "ControlPath": socket_name(host),
        "ControlPersist": str(PERSIST_S),
        "ForwardX11": "no",
        "ForwardAgent": "no",
        "ClearAllForwardings": "yes",
    }
    if settings.accept_new:
        options["StrictHostKeyChecking"] = "accept-new"
    words = [*shlex.split(settings.command), "-T"]
    for key, value in options.items():
        words += ["-o", f"{key}={value}"]
    return (*words, *login(host))


def by_hand(settings: SshSettings, host: HostPlan, *remote: str) -> str:
    """What a person types to see what dtfctl saw."""
    asked = ["-o", "StrictHostKeyChecking=accept-new"] if settings.accept_new else []
    words = [*shlex.split(settings.command), "-o", "BatchMode=yes", *asked, *login(host), host.target]
    return shlex.join([*words, *(remote or ("true",))])


def socket_name(host: HostPlan) -> str:
    """Relative to the folder in which ssh is run: a socket's path may have only 107 bytes."""
    return hashlib.sha256(f"{host.user}@{host.target}:{host.port}".encode()).hexdigest()[:12]


def explain(words: str, status: int | None) -> str:
    """Why ssh did not do it, from its output: the last line, without decoration and at most 300 characters long."""
    lines = [line for line in (_CONTROLS.sub("", each).strip() for each in words.splitlines()) if line]
    told = [line for line in lines if not line.startswith(("Warning:", "debug1:", "@", "mux_client", "Control socket"))]
    line = (told or lines or [f"ssh exits with status {status}"])[-1].removeprefix("ssh: ")
    line = line if len(line) <= _SHOWN_MAX else f"{line[: _SHOWN_MAX - 3]}..."
    if "Host key verification failed" in line:
        line += " (its key is not among your known hosts: log in once by hand, or say ssh: {host_keys: accept-new})"
    return line


def login(host: HostPlan) -> list[str]:
    return [*(["-l", host.user] if host.user else []), *(["-p", str(host.port)] if host.port else [])]
