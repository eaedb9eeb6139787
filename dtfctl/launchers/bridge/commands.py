"""The commands that bridges run on a host, in a process that the engine has started there.

Needs nothing but Python: engines bring this file to their hosts.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from typing import IO

CHUNK = 1 << 16
ERRORS_BYTES_MAX = 1 << 16
"""The end of a command's errors says why it failed; a longer beginning is dropped."""
ALIVE_S = 5.0
SILENT_S = 60.0
"""The commands of a bridge that has not been heard of for so long are ended."""

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
"""Outlives the engine's process, and then ends what that leaves. The next one of the same name waits for it."""


class Commands:
    """`name` is the host's, `without` are variables of the engine's process that commands must not have."""

    def __init__(self, name: str, folder: str, without: tuple[str, ...] = ()) -> None:
        self._name = name
        self._folder = folder
        self._without = without
        self._calls: dict[str, tuple[str, asyncio.subprocess.Process, IO[bytes]]] = {}
        self._heard: dict[str, float] = {}
        self._guard: subprocess.Popen[bytes] | None = None
        self._guarding = asyncio.Lock()
        self._watch: asyncio.Task[None] | None = None

    async def open(self, bridge: str, call: str, command: list[str], guard: list[str]) -> None:
        """`guard` is what cleans up after the engine's process: a Python's program and its input."""
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
            env={name: value for name, value in os.environ.items() if name not in self._without},
            start_new_session=True,
        )
        self._calls[call] = (bridge, process, errors)

    def _post(self, program: str, text: str) -> subprocess.Popen[bytes]:
        folder = os.path.join(tempfile.gettempdir(), f"{self._folder}-{os.getuid()}")
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
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - ERRORS_BYTES_MAX))
        words = errors.read().decode(errors="replace")
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
