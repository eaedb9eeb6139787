"""The seam between dtfctl and a way to a host: a byte stream to a command there. ssh is one, srun may be another.

What goes through it is the agent's talk (agent_client.py); a pipe knows nothing of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from dtfctl.launchers.agent.lines import LINE_BYTES_MAX
from dtfctl.values.plan import HostPlan

_END_BYTES = 1 << 15


class PipeError(Exception):
    """A call that came to nothing: why, and the `command` that shows the same to a person.

    `is_connection` tells that there is no connection at all; otherwise the host answers, and the command does not.
    """

    def __init__(self, why: str, command: str, is_connection: bool = True) -> None:
        super().__init__(why)
        self.why = why
        self.command = command
        self.is_connection = is_connection


class Call(Protocol):
    """One command at work on a host: `writer` is its input, `reader` its output, byte for byte."""

    @property
    def reader(self) -> asyncio.StreamReader: ...

    @property
    def writer(self) -> asyncio.StreamWriter: ...

    async def end(self) -> tuple[int, str]:
        """(exit status, what was written as errors), of a call whose output has ended; it is not waited for long."""

    def kill(self) -> None:
        """Gives the call up at once; `end` is still to be called."""


@dataclass(frozen=True)
class RsyncTarget:
    """`shell` is rsync's remote shell, run in the folder `cwd`; `place` is what rsync copies to."""

    shell: str
    place: str
    cwd: Path


class Pipe(Protocol):
    """A way to one host.

    `pythons` are the interpreters that may become the agent there, the first that will do is taken; a name that
    begins with ~/ lies in the user's folder on the host. `connect_timeout_s` bounds the making of a connection.
    """

    @property
    def host(self) -> HostPlan: ...

    @property
    def pythons(self) -> tuple[str, ...]: ...

    @property
    def connect_timeout_s(self) -> float: ...

    @property
    def outlives(self) -> bool:
        """Whether a process on the host may outlive the call that started it. Otherwise a call of its own keeps it."""

    @property
    def is_shared(self) -> bool:
        """Whether calls share a connection; another process of dtfctl may have made it."""

    async def open(self, command: Sequence[str]) -> Call:
        """Starts a command on the host. Raises PipeError where the pipe itself cannot be had."""

    def failure(self, status: int, words: str) -> PipeError:
        """Why a command ended without an answer, from what its `Call.end` returned."""

    def by_hand(self, *words: str) -> str:
        """The line with which a person runs `words` on the host, or sees whether it can be reached."""

    def rsync_target(self, folder: str) -> RsyncTarget | None:
        """How rsync reaches a folder of the host; None where it cannot use this pipe."""

    async def disconnect(self) -> None:
        """Ends the shared connection, also one that hangs. Without one nothing happens."""


@dataclass
class ProcessCall:
    """A Call that is a process of this machine: ssh, srun, or the command itself."""

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
        self.writer.close()
        try:
            await asyncio.wait_for(self.process.wait(), 5)
        except asyncio.TimeoutError:
            self.kill()
            await self.process.wait()
        except BaseException:
            self.kill()
            raise
        # The input that the process has not read is lost with it; Python would report that as an error of its own.
        with contextlib.suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self.writer.wait_closed(), 1)
        words = read_ends(self.errors)
        self.errors.close()
        assert self.process.returncode is not None
        return self.process.returncode, words

    def kill(self) -> None:
        """With its helpers (srun has one): each of them holds the output open."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)


def read_ends(file: IO[bytes]) -> str:
    """The text of a file; of a long one its first and last 32 KiB, without the lines that are cut there."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    if size <= 2 * _END_BYTES:
        return file.read().decode(errors="replace")
    head = file.read(_END_BYTES)
    file.seek(size - _END_BYTES)
    tail = file.read(_END_BYTES)
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :] or tail
    return f"{head.decode(errors='replace')}\n{tail.decode(errors='replace')}"


async def open_process(
    words: Sequence[str], folder: Path | None = None, environment: dict[str, str] | None = None
) -> ProcessCall:
    """A process with pipes, in a session of its own: no Ctrl-C of a terminal reaches it. Raises OSError."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - a connection that stays would hold a pipe open
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=folder,
            env=environment,
            start_new_session=True,
            limit=LINE_BYTES_MAX,
        )
    except BaseException:
        errors.close()
        raise
    return ProcessCall(process, errors)
