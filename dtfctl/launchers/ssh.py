"""ssh as a person would call it, without questions: the system's own, with the user's config, agent and jump hosts.

One connection for each host, which later calls share (ControlMaster, its socket in a private folder). A call runs an
agent (agent/) on the host: whatever Python 3.10 or later is found there reads the agent's modules from the first line
of its input and becomes it, so that nothing has to be installed.

Host keys are the user's affair: his known_hosts and his StrictHostKeyChecking decide, and since nobody is asked, the
key of a host that is not known is refused. Only `ssh: {host_keys: accept-new}` in the cluster file takes new ones.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import os
import shlex
import sys
import tempfile
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from dtfctl.launchers.agent.lines import LINE_BYTES_MAX
from dtfctl.launchers.agent.protocol import ANSWERS, ERROR
from dtfctl.messages import BadMessage, Shape, message, shown, value_of
from dtfctl.plan import HostPlan, SshSettings
from dtfctl.wording import reason_of

ALIVE_INTERVAL_S = 5
ALIVE_COUNT = 3
"""A connection over which nothing comes for their product is given up."""

PERSIST_S = 60
"""How long a connection stays when nobody uses it."""

_ROOT = Path(__file__).resolve().parents[2]

SSH_FAILED = 255
NO_PYTHON = 41

PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11", "python3.10")

BECOME_AGENT = "import sys,base64,zlib;exec(zlib.decompress(base64.b64decode(sys.stdin.buffer.raw.readline())))"
"""What a Python is started with; agent_line is the line that it reads."""

AGENT_MODULES = (
    "dtfctl.wording",
    "dtfctl.messages",
    "dtfctl.usage",
    "dtfctl.launchers.environment",
    "dtfctl.launchers.log_recorder",
    "dtfctl.launchers.keeper",
    "dtfctl.launchers.keeper.processes",
    "dtfctl.launchers.keeper.protocol",
    "dtfctl.launchers.agent",
    "dtfctl.launchers.agent.protocol",
    "dtfctl.launchers.agent.lines",
    "dtfctl.launchers.agent.places",
    "dtfctl.launchers.agent.programs",
    "dtfctl.launchers.agent.look",
    "dtfctl.launchers.agent.check",
    "dtfctl.launchers.agent.sync",
    "dtfctl.launchers.agent.keepers",
    "dtfctl.launchers.agent.logs",
    "dtfctl.launchers.agent.talk",
    "dtfctl.launchers.agent.main",
)
"""What runs on another machine, each after those that it imports; the last has the program's main."""

KEEPER_MODULES = (
    "dtfctl",
    "dtfctl.messages",
    "dtfctl.wording",
    "dtfctl.launchers",
    "dtfctl.launchers.log_recorder",
    *(f"dtfctl.launchers.keeper{name}" for name in ("", ".__main__", ".keeper", ".shim", ".program")),
    *(f"dtfctl.launchers.keeper.{name}" for name in ("cgroups", "ports", "processes", "protocol", "records")),
    "dtfctl.launchers.keeper.traceback",
)
"""What the agent places there for the keeper."""

_LOADER = """
import sys, types
for name in ("dtfctl", "dtfctl.launchers"):
    sys.modules[name] = types.ModuleType(name)
for name, text in MODULES:
    module = sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[name.rpartition(".")[0]], name.rpartition(".")[2], module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main()
"""

_FIND_PYTHON = (
    'for p in "$@"; do case $p in "~/"*) p=$HOME/${p#??};; esac; '
    'if "$p" -I -S -c "import sys; sys.exit(sys.version_info < (3, 10))" </dev/null >/dev/null 2>&1; '
    f'then exec "$p" -I -S -c "{BECOME_AGENT}"; fi; '
    'v=$("$p" --version 2>&1 </dev/null) && echo "$p is $v" >&2; done; '
    f"exit {NO_PYTHON}"
)


class SshError(Exception):
    """A call that came to nothing: why, and the `command` that shows the same to a person.

    `is_connection` tells that there is no connection at all; otherwise the host answers, and the agent does not.
    """

    def __init__(self, why: str, command: str, is_connection: bool = True) -> None:
        super().__init__(why)
        self.why = why
        self.command = command
        self.is_connection = is_connection


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
    words = [*shlex.split(settings.command), "-o", "BatchMode=yes", *asked, *login(host), host.ssh]
    return shlex.join([*words, *(remote or ("true",))])


def remote_command(pythons: Iterable[str]) -> str:
    """A line for whatever shell the user has there: the first of these Pythons that will do becomes the agent."""
    return shlex.join(["/bin/sh", "-c", _FIND_PYTHON, "sh", *pythons])


def socket_name(host: HostPlan) -> str:
    """Relative to the folder in which ssh is run: a socket's path may have only 107 bytes."""
    return hashlib.sha256(f"{host.user}@{host.ssh}:{host.port}".encode()).hexdigest()[:12]


def explain(words: str, status: int | None) -> str:
    """Why ssh did not do it, from what it wrote: its last line, without decoration."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("Warning:", "debug1:", "@", "mux_client", "Control socket"))]
    line = (told or lines or [f"ssh exits with status {status}"])[-1].removeprefix("ssh: ")
    if "Host key verification failed" in line:
        line += " (its key is not among your known hosts: log in once by hand, or say ssh: {host_keys: accept-new})"
    return line


@cache
def agent_line() -> bytes:
    """The agent's modules as the first line of a Python's input."""
    modules = [(name, _source(name)) for name in AGENT_MODULES]
    text = f"MODULES = {modules!r}\n{_LOADER}"
    return base64.b64encode(zlib.compress(text.encode(), 9)) + b"\n"


def _source(name: str) -> str:
    return (_ROOT / _path(name)).read_text()


def _path(name: str) -> str:
    path = name.replace(".", "/")
    return f"{path}/__init__.py" if (_ROOT / path).is_dir() else f"{path}.py"


@cache
def keeper_text() -> dict[str, str]:
    """The files of a keeper, base64 by path."""
    return {_path(name): base64.b64encode(_source(name).encode()).decode() for name in KEEPER_MODULES}


@dataclass
class Call:
    """One agent at work. `errors` is where ssh and the agent write what goes wrong."""

    process: asyncio.subprocess.Process
    errors: IO[bytes]

    @property
    def reader(self) -> asyncio.StreamReader:
        assert self.process.stdout is not None
        return self.process.stdout

    @property
    def writer(self) -> asyncio.StreamWriter:
        assert self.process.stdin is not None
        return self.process.stdin

    async def end(self) -> tuple[int, str]:
        """(exit status, what was written as errors), of a call whose output has ended; it is not waited for long."""
        self.writer.close()
        try:
            await asyncio.wait_for(self.process.wait(), 5)
        except asyncio.TimeoutError:
            self.kill()
            await self.process.wait()
        except BaseException:
            self.kill()
            raise
        # What ssh has not read is lost with it; until somebody asks, Python holds that for an error of its own.
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), 1)
        self.errors.seek(0)
        words = self.errors.read(1 << 16).decode(errors="replace")
        self.errors.close()
        assert self.process.returncode is not None
        return self.process.returncode, words

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


class Ssh:
    """Calls on one host. `folder`, private to the user, is where the shared connection's socket lies."""

    def __init__(self, settings: SshSettings, host: HostPlan, folder: Path) -> None:
        self.settings = settings
        self.host = host
        self.folder = folder

    async def call(self, request: dict[str, Any]) -> Call:
        """Starts an agent with its request; raises SshError when there is no ssh to call."""
        pythons = dict.fromkeys((self.host.python, *PYTHONS))
        line = (*argv(self.settings, self.host), self.host.ssh, remote_command(pythons))
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - a connection that stays would hold a pipe open
        try:
            process = await asyncio.create_subprocess_exec(
                *line,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                cwd=self.folder,
                start_new_session=True,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:
            errors.close()
            raise SshError(f"{line[0]} cannot be run: {reason_of(error)}", by_hand(self.settings, self.host)) from None
        except BaseException:
            errors.close()
            raise
        call = Call(process, errors)
        call.writer.write(agent_line() + json.dumps(request).encode() + b"\n")
        return call

    async def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """An agent's one answer. Raises SshError, also for an answer that is an error."""
        call = await self.call(request)
        line = await self.line_of(call, timeout_s, ANSWERS[request["do"]])
        await call.end()
        return line

    async def line_of(
        self, call: Call, timeout_s: float, expected: Shape | Mapping[str, Shape]
    ) -> dict[str, Any]:
        """The next line of an agent: an answer of the `expected` shape, or a message of one of these shapes. Raises
        SshError, also for what is neither."""
        try:
            line = await asyncio.wait_for(call.reader.readline(), timeout_s)
        except asyncio.TimeoutError:
            call.kill()
            await call.end()
            raise SshError(f"no answer within {timeout_s:g}s", by_hand(self.settings, self.host)) from None
        except ValueError:
            line = b"a line without an end"
        except BaseException:
            # Interrupted: ssh has a session of its own, and no Ctrl-C reaches it.
            call.kill()
            await call.end()
            raise
        if not line:
            raise self.failure(*await call.end())
        try:
            return answer_in(line, expected)
        except BadMessage as error:
            call.kill()
            await call.end()
            raise SshError(str(error), by_hand(self.settings, self.host), is_connection=False) from None

    def failure(self, status: int, words: str) -> SshError:
        """What the end of a call means that should have answered."""
        if status == NO_PYTHON:
            found = ", ".join(line for line in words.splitlines() if " is Python " in line)
            why = f"no Python 3.10 or later was found ({found or 'and no older one'})"
            hand = by_hand(self.settings, self.host, "python3", "--version")
            return SshError(f"{why}; say where it is: hosts: {{{self.host.name}: {{python: ...}}}}", hand, False)
        is_connection = status == SSH_FAILED or status < 0
        return SshError(explain(words, status), by_hand(self.settings, self.host), is_connection)

    @property
    def is_shared(self) -> bool:
        """Whether somebody has made the connection already."""
        return (self.folder / socket_name(self.host)).exists()

    async def disconnect(self) -> None:
        """Ends the shared connection, also one that hangs."""
        name = socket_name(self.host)
        if not self.is_shared:
            return
        line = (*shlex.split(self.settings.command), "-o", f"ControlPath={name}", "-O", "exit", self.host.ssh)
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


async def ask_here(request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
    """The one answer of an agent on this machine, without ssh. Raises SshError."""
    words = (sys.executable, "-I", "-S", "-c", BECOME_AGENT)
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        asked = agent_line() + json.dumps(request).encode() + b"\n"
        line, _ = await asyncio.wait_for(process.communicate(asked), timeout_s)
        return answer_in(line, ANSWERS[request["do"]])
    except asyncio.TimeoutError:
        raise SshError(f"no answer within {timeout_s:g}s", "", is_connection=False) from None
    except BadMessage as error:
        raise SshError(str(error), "", is_connection=False) from None
    finally:
        if process.returncode is None:
            process.kill()


def answer_in(line: bytes, expected: Shape | Mapping[str, Shape]) -> dict[str, Any]:
    """What an agent says in a line. Raises BadMessage for an error that it tells, and for what is not understood."""
    try:
        found = value_of(line)
        if isinstance(found, dict) and found.keys() == {"error"}:
            ERROR(found, "")
            raise AgentError(found["error"] or "the agent there tells an error without a word")
        if isinstance(expected, Mapping):
            return message(line, "is", expected)
        expected(found, "")
        return found
    except AgentError:
        raise
    except BadMessage as error:
        start = shown(line[:200].decode(errors="replace"))
        raise BadMessage(f"its answer is not understood ({error}); it begins with {start}") from None


class AgentError(BadMessage):
    """What an agent tells instead of an answer."""


def login(host: HostPlan) -> list[str]:
    return [*(["-l", host.user] if host.user else []), *(["-p", str(host.port)] if host.port else [])]
