"""dtfctl's end of the socket to the bridge, which is started where nobody answers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dtfctl.launchers.agent.lines import LINE_BYTES_MAX
from dtfctl.launchers.pipe import PipeError
from dtfctl.values.plan import RaySettings
from dtfctl.wording import reason_of

START_S = 60.0
BRIDGE = Path(__file__).with_name("bridge.py")
NO_RAY = "No module named 'ray'"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Reply = dict[str, Any]


def python_of(settings: RaySettings) -> str:
    return settings.python or sys.executable


def by_hand(settings: RaySettings) -> str:
    """What shows a person the cluster as Ray sees it."""
    address = ["--address", settings.address] if settings.address not in ("", "auto") else []
    return shlex.join(["ray", "status", *address])


async def connect(settings: RaySettings, folder: Path) -> Streams:
    """`folder` is private to the user. Raises PipeError with Ray's words where there is no Ray."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_PATH)
    try:
        name = hashlib.sha256(f"{python_of(settings)} {settings.address}".encode()).hexdigest()[:12]
        # A socket's path may have only 107 bytes.
        path = f"/proc/{os.getpid()}/fd/{place}/ray-{name}"
        deadline = asyncio.get_running_loop().time() + START_S
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(path, limit=LINE_BYTES_MAX)
            await _start(settings, folder, f"ray-{name}")
            if asyncio.get_running_loop().time() > deadline:
                raise PipeError(f"the bridge to Ray does not answer within {START_S:g}s", by_hand(settings))
            await asyncio.sleep(0.1)
    finally:
        os.close(place)


async def _start(settings: RaySettings, folder: Path, name: str) -> None:
    """Returns when a bridge is ready, be it another process's."""
    python = python_of(settings)
    process = None
    with contextlib.ExitStack() as ends:
        (told, out), (complaints, errors) = os.pipe(), os.pipe()
        for end in (told, complaints):
            ends.callback(os.close, end)
        try:
            try:
                # Names relative to the folder, for the same reason. The bridge leaves its first process at once.
                process = await asyncio.create_subprocess_exec(
                    *(python, str(BRIDGE), name, settings.address, "ray.log"),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    cwd=folder,
                    env={"RAY_USAGE_STATS_ENABLED": "0", **os.environ},
                    start_new_session=True,
                )
            finally:
                os.close(out)
                os.close(errors)
            await process.wait()
            words = await asyncio.wait_for(asyncio.to_thread(_all_of, told), START_S)
            if words == "ready":
                return
            words = words or await asyncio.wait_for(asyncio.to_thread(_all_of, complaints), START_S)
        except asyncio.TimeoutError:  # an OSError, too
            if process is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise PipeError(f"Ray does not answer within {START_S:g}s", by_hand(settings)) from None
        except OSError as error:
            raise PipeError(f"{python} cannot be run: {reason_of(error)}", by_hand(settings)) from None
    if NO_RAY in words:
        to_do = "pip install 'dtf[ray]', or name the Python that has it: engine: {ray: {python: ...}}"
        raise PipeError(f"{python} has no ray: {to_do}", shlex.join([python, "-c", "import ray"]))
    raise PipeError(words.splitlines()[-1] if words else "the bridge to Ray does not start", by_hand(settings))


def _all_of(descriptor: int) -> str:
    """All that is written to a pipe until its other end is closed."""
    with open(descriptor, "rb", closefd=False) as file:
        return file.read().decode(errors="replace").strip()


async def ask(
    settings: RaySettings, folder: Path, request: dict[str, Any], say: Callable[[str], None] = lambda _: None
) -> Reply:
    """`say` gets what the answer waits for. Raises PipeError."""
    reader, writer = await connect(settings, folder)
    try:
        writer.write(json.dumps(request).encode() + b"\n")
        while True:
            try:
                line = await reader.readline()
            except (OSError, ValueError):
                line = b""
            if not line:
                raise PipeError("the bridge to Ray has ended", by_hand(settings))
            reply: Reply = json.loads(line)
            if "waiting" not in reply:
                break
            say(reply["waiting"])
    finally:
        writer.close()
    if "error" in reply:
        raise PipeError(reply["error"], by_hand(settings), is_connection=False)
    return reply
