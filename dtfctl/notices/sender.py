"""Sends notices: runs the command of each event with its document on standard input, and never holds up anybody.

Owns what waits and what runs. At most `AT_ONCE_MAX` commands run at a time, each for `TIMEOUT_S`, then its whole
process group is killed; at most `WAITING_MAX` notices wait. A failure is one line for the history, as is the number
of notices that were dropped. A notice is sent once at the most: what a killed supervisor had not sent is not repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from dtfctl.notices import webhook
from dtfctl.notices.documents import Notice, Notices, document
from dtfctl.values.history import Happening
from dtfctl.values.run import Run
from dtfctl.wording import printable, reason_of

AT_ONCE_MAX = 4
WAITING_MAX = 100
TIMEOUT_S = 10.0
WORDS_MAX = 200
OUTPUT_BYTES_MAX = 1 << 16


class NoticeSender:
    """`run` gives the present run, `tell` takes a line for its history. Lives in one event loop."""

    def __init__(
        self, run: Callable[[], Run], before: Iterable[Happening], tell: Callable[[str], None],
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._run = run
        self._notices = Notices(before)
        self._tell = tell
        self._timeout_s = timeout_s
        # The end of a run forgets it.
        self._environment = dict(run().environment)
        self._turn = asyncio.Semaphore(AT_ONCE_MAX)
        self._sending: set[asyncio.Task[None]] = set()
        self._dropped = 0

    def take(self, happenings: Iterable[Happening]) -> None:
        """What has happened; only begins what is to be done."""
        for notice in self._notices.of(happenings):
            command = getattr(self._run().plan.notify, notice.event)
            if not command:
                continue
            if len(self._sending) >= WAITING_MAX + AT_ONCE_MAX:
                self._dropped += 1
                continue
            sending = asyncio.ensure_future(self._send(notice, command))
            self._sending.add(sending)
            sending.add_done_callback(self._sending.discard)

    async def close(self) -> None:
        """Returns when all is sent, at the latest after the time that one command may take."""
        if self._sending:
            await asyncio.wait(set(self._sending), timeout=self._timeout_s + 1)
        for sending in list(self._sending):
            self._dropped += 1
            sending.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        self._tell_dropped()

    async def _send(self, notice: Notice, command: str | tuple[str, ...]) -> None:
        async with self._turn:
            run = self._run()
            text = json.dumps(document(notice, run.plan.name, run.number, run.plan.file, socket.gethostname()))
            why = await self._call(command, text.encode() + b"\n", notice, run.plan.folder)
        if why:
            subject = f" of {notice.task}" if notice.task else ""
            self._tell(f"notify.{notice.event}{subject}: {why}")
        if not self._sending - {asyncio.current_task()}:
            self._tell_dropped()

    async def _call(self, command: str | tuple[str, ...], text: bytes, notice: Notice, folder: str) -> str:
        """Why it failed, "" if it did not."""
        environment: Mapping[str, str] = {
            **self._environment,
            "DTFCTL_EVENT": notice.event,
            "DTFCTL_CLUSTER": self._run().plan.name,
            "DTFCTL_TASK": notice.task,
        }
        words, what = (("/bin/sh", "-c", command), "the command") if isinstance(command, str) else (command, "")
        what = what or f"{words[0]}"
        if isinstance(command, str) and command.lower().startswith(("http://", "https://")):
            words, what = (sys.executable, str(Path(webhook.__file__))), "the webhook"
            environment = {**environment, webhook.VARIABLE: command}
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE, cwd=folder, env=environment, start_new_session=True,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return f"{what} cannot be started: {reason_of(error)}"
        try:
            errors = await asyncio.wait_for(_conversed(process, text), self._timeout_s)
        except asyncio.TimeoutError:
            await _kill(process)
            return f"{what} has not ended within {self._timeout_s:g}s and was killed"
        except asyncio.CancelledError:
            await _kill(process)
            raise
        if process.returncode == 0:
            return ""
        last = printable((errors.decode(errors="replace").strip().splitlines() or [""])[-1])[:WORDS_MAX]
        return f"{what} exited with status {process.returncode}" + (f": {last}" if last else "")

    def _tell_dropped(self) -> None:
        if self._dropped:
            dropped, self._dropped = self._dropped, 0
            self._tell(f"notify: {dropped} messages were dropped: more than {WAITING_MAX} waited")


async def _kill(process: asyncio.subprocess.Process) -> None:
    """With all that it has started, as far as that is still in its group."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


async def _conversed(process: asyncio.subprocess.Process, text: bytes) -> bytes:
    """The end of what a command says on standard error, when it is over. It need not read its input."""
    assert process.stdin is not None and process.stderr is not None
    with contextlib.suppress(ConnectionError):
        process.stdin.write(text)
        await process.stdin.drain()
    process.stdin.close()
    errors = bytearray()
    reading = asyncio.ensure_future(_read(process.stderr, errors))
    try:
        await process.wait()
        # What it has left running may keep its standard error open.
        await asyncio.wait({reading}, timeout=0.2)
    finally:
        reading.cancel()
    return bytes(errors)


async def _read(stream: asyncio.StreamReader, found: bytearray) -> None:
    while data := await stream.read(1 << 12):
        found += data
        del found[:-OUTPUT_BYTES_MAX]
