"""dtfctl's end of the socket to a bridge, which is started where nobody answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dtfctl.launchers.agent.lines import LINE_BYTES_MAX
from dtfctl.launchers.pipe import PipeError
from dtfctl.wording import reason_of

ANSWER_S = 60.0
"""How long a process that has said that it is ready may take to answer."""


@dataclass(frozen=True)
class BridgeProgram:
    """How an engine's bridge is started.

    Attributes:
      engine: its name for people.
      key: its name in the cluster file; its Python package is the extra of this name.
      package: what the bridge's Python must have.
      python: that Python.
      program: the bridge's file.
      argument: what the program gets: which cluster of the engine is meant.
      by_hand: the line that shows a person the cluster as the engine sees it.
      start_s: how long it may take to start.
      socket: the socket of a bridge that another program runs; the client then never starts one.
    """

    engine: str
    key: str
    package: str
    python: str
    program: Path
    argument: str
    by_hand: str
    start_s: float = 60.0
    socket: str = ""

    @property
    def name(self) -> str:
        return f"{self.key}-{hashlib.sha256(f'{self.python} {self.argument}'.encode()).hexdigest()[:12]}"


Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Reply = dict[str, Any]


async def connect(bridge: BridgeProgram, folder: Path) -> Streams:
    """`folder` is private to the user. Raises PipeError with the engine's words where there is no engine."""
    if bridge.socket:
        try:
            return await asyncio.open_unix_connection(bridge.socket, limit=LINE_BYTES_MAX)
        except OSError:
            raise PipeError(f"the program that has given {bridge.engine}'s hosts has ended", bridge.by_hand) from None
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_PATH)
    try:
        # A socket's path may have only 107 bytes.
        path = f"/proc/{os.getpid()}/fd/{place}/{bridge.name}"
        deadline = asyncio.get_running_loop().time() + bridge.start_s + ANSWER_S
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(path, limit=LINE_BYTES_MAX)
            await _start(bridge, folder)
            if asyncio.get_running_loop().time() > deadline:
                raise PipeError(f"the bridge to {bridge.engine} does not answer", bridge.by_hand)
            await asyncio.sleep(0.1)
    finally:
        os.close(place)


async def _start(bridge: BridgeProgram, folder: Path) -> None:
    """Returns when a bridge is ready, be it another process's."""
    process = None
    with contextlib.ExitStack() as ends:
        (told, out), (complaints, errors) = os.pipe(), os.pipe()
        for end in (told, complaints):
            ends.callback(os.close, end)
        try:
            try:
                # Names relative to the folder, for the same reason. The bridge leaves its first process at once.
                process = await asyncio.create_subprocess_exec(
                    *(bridge.python, str(bridge.program), bridge.name, f"{bridge.key}.log", bridge.argument),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    cwd=folder,
                    start_new_session=True,
                )
            finally:
                os.close(out)
                os.close(errors)
            await process.wait()
            words = await asyncio.wait_for(asyncio.to_thread(_all_of, told), bridge.start_s)
            if words == "ready":
                return
            words = words or await asyncio.wait_for(asyncio.to_thread(_all_of, complaints), bridge.start_s)
        except asyncio.TimeoutError:  # an OSError, too
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise PipeError(f"{bridge.engine} does not answer within {bridge.start_s:g}s", bridge.by_hand) from None
        except OSError as error:
            raise PipeError(f"{bridge.python} cannot be run: {reason_of(error)}", bridge.by_hand) from None
    if f"No module named '{bridge.package}'" in words:
        to_do = f"pip install 'dtf[{bridge.key}]', or name the Python that has it: "
        to_do += f"engine: {{{bridge.key}: {{python: ...}}}}"
        shows = shlex.join([bridge.python, "-c", f"import {bridge.package}"])
        raise PipeError(f"{bridge.python} has no {bridge.package}: {to_do}", shows)
    last = words.splitlines()[-1] if words else f"the bridge to {bridge.engine} does not start"
    raise PipeError(last, bridge.by_hand)


def _all_of(descriptor: int) -> str:
    """All that is written to a pipe until its other end is closed."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read().decode(errors="replace").strip()


async def ask(
    bridge: BridgeProgram, folder: Path, request: dict[str, Any], say: Callable[[str], None] = lambda _: None
) -> Reply:
    """`say` gets what the answer waits for. Raises PipeError."""
    reader, writer = await connect(bridge, folder)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        while True:
            try:
                line = await reader.readline()
            except (OSError, ValueError):
                line = b""
            if not line:
                raise PipeError(f"the bridge to {bridge.engine} has ended", bridge.by_hand)
            reply: Reply = json.loads(line)
            if "waiting" not in reply:
                break
            say(reply["waiting"])
    finally:
        writer.close()
    if "error" in reply:
        raise PipeError(reply["error"], bridge.by_hand, is_connection=False)
    return reply
