"""The agent's calls on a host, over whatever pipe leads there.

A call runs an agent (agent/) on the host: the first Python 3.10 or later that is found there reads the agent's modules
from the first line of its input and becomes it, so that nothing has to be installed.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import zlib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dtfctl.launchers.agent.protocol import ANSWERS, ERROR
from dtfctl.launchers.pipe import Call, Pipe, PipeError
from dtfctl.values.plan import HostPlan
from dtfctl.wire.messages import BadMessage, Shape, message, shown, value_of

_ROOT = Path(__file__).resolve().parents[2]

NOISE_LINES_MAX = 100
NO_PYTHON = 41
"""The exit status where no Python of the host will do."""

BECOME_AGENT = "import sys,base64,zlib;exec(zlib.decompress(base64.b64decode(sys.stdin.buffer.raw.readline())))"
"""What a Python is started with; agent_line is the line that it reads."""

AGENT_MODULES = (
    "dtfctl.wording",
    "dtfctl.wire.messages",
    "dtfctl.launchers.usage",
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
    "dtfctl.wire",
    "dtfctl.wire.messages",
    "dtfctl.wording",
    "dtfctl.launchers",
    "dtfctl.launchers.log_recorder",
    *(f"dtfctl.launchers.keeper{name}" for name in ("", ".__main__", ".keeper", ".shim", ".shims", ".program")),
    *(f"dtfctl.launchers.keeper.{name}" for name in ("cgroups", "lease", "ports", "processes")),
    *(f"dtfctl.launchers.keeper.{name}" for name in ("durable", "protocol", "records")),
    *(f"dtfctl.launchers.keeper.{name}" for name in ("daemon_line", "recorder", "respawn", "traceback")),
)
"""What the agent places there for the keeper."""

_LOADER = """
import sys, types
for name in ("dtfctl", "dtfctl.wire", "dtfctl.launchers"):
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


class AgentClient:
    """Calls of the agent on the host to which `pipe` leads."""

    def __init__(self, pipe: Pipe) -> None:
        self.pipe = pipe

    @property
    def host(self) -> HostPlan:
        return self.pipe.host

    async def call(self, request: dict[str, Any]) -> Call:
        """Starts an agent with its request. Raises PipeError where there is no pipe."""
        call = await self.pipe.open(agent_command(self.pipe.pythons))
        call.writer.write(agent_line() + json.dumps(request).encode() + b"\n")
        return call

    async def ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """An agent's one answer. Raises PipeError, also for an answer that is an error."""
        call = await self.call(request)
        line = await self.line_of(call, timeout_s, ANSWERS[request["do"]])
        await call.end()
        return line

    async def line_of(
        self, call: Call, timeout_s: float, expected: Shape | Mapping[str, Shape]
    ) -> dict[str, Any]:
        """The next line of an agent: an answer of the `expected` shape, or a message of one of these shapes. Raises
        PipeError, also for what is neither. What a site's own scripts say before it (a greeting, a prolog of Slurm) is
        skipped."""
        deadline, noise = time.monotonic() + timeout_s, b""
        try:
            for _ in range(NOISE_LINES_MAX):
                line = await asyncio.wait_for(call.reader.readline(), max(0.0, deadline - time.monotonic()))
                if not line or line.lstrip().startswith(b"{"):
                    break
                noise = noise or line
        except asyncio.TimeoutError:
            call.kill()
            await call.end()
            raise PipeError(f"no answer within {timeout_s:g}s", self.pipe.by_hand()) from None
        except ValueError:
            line = b"a line without an end"
        except BaseException:
            # Interrupted: the call has a session of its own, and no Ctrl-C reaches it.
            call.kill()
            await call.end()
            raise
        if not line and not noise:
            raise self.failure(*await call.end())
        try:
            return answer_in(line or noise, expected)
        except BadMessage as error:
            call.kill()
            await call.end()
            raise PipeError(str(error), self.pipe.by_hand(), is_connection=False) from None

    def failure(self, status: int, words: str) -> PipeError:
        """Why a call ended that should have answered."""
        if status == NO_PYTHON:
            found = ", ".join(line for line in words.splitlines() if " is Python " in line)
            why = f"no Python 3.10 or later was found ({found or 'and no older one'})"
            hand = self.pipe.by_hand("python3", "--version")
            return PipeError(f"{why}; name its path: hosts: {{{self.host.name}: {{python: ...}}}}", hand, False)
        return self.pipe.failure(status, words)


def agent_command(pythons: Iterable[str]) -> tuple[str, ...]:
    """The first of these Pythons that will do becomes the agent."""
    return ("/bin/sh", "-c", _FIND_PYTHON, "sh", *pythons)


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


def answer_in(line: bytes, expected: Shape | Mapping[str, Shape]) -> dict[str, Any]:
    """What an agent says in a line. Raises BadMessage for an error that it tells, and for what is not understood."""
    try:
        found: dict[str, Any] = value_of(line)
        if isinstance(found, dict) and found.keys() == {"error"}:
            ERROR(found, "")
            raise AgentError(found["error"] or "the agent there reports an error without a message")
        if isinstance(expected, Mapping):
            told: dict[str, Any] = message(line, "is", expected)
            return told
        expected(found, "")
        return found
    except AgentError:
        raise
    except BadMessage as error:
        start = shown(line[:200].decode(errors="replace"))
        raise BadMessage(f"its answer is invalid ({error}); it begins with {start}") from None


class AgentError(BadMessage):
    """What an agent tells instead of an answer."""
