"""This machine as a host like any other: a pipe that is a child process, and the checks that need no pipe."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

from dtfctl.launchers.pipe import PipeError, ProcessCall, open_process
from dtfctl.values.plan import HostPlan
from dtfctl.wording import reason_of


class HerePipe:
    """See pipe.Pipe. `pythons` is dtfctl's own interpreter, so that the agent needs no other."""

    connect_timeout_s = 0.0
    is_shared = False
    outlives = True
    pythons = (sys.executable,)

    def __init__(self, host: HostPlan) -> None:
        self.host = host

    async def open(self, command: Sequence[str]) -> ProcessCall:
        try:
            return await open_process(command)
        except OSError as error:
            raise PipeError(f"{command[0]} cannot be run: {reason_of(error)}", "") from None

    def failure(self, status: int, words: str) -> PipeError:
        lines = words.strip().splitlines()
        return PipeError(lines[-1] if lines else f"the agent exits with status {status}", "", is_connection=False)

    def by_hand(self, *words: str) -> str:
        """A single word is a line for the shell already."""
        return words[0] if len(words) == 1 else shlex.join(words)

    def rsync_target(self, folder: str) -> None:
        return None

    async def disconnect(self) -> None:
        return None


async def check_command(command: str, environment: dict[str, str], working_dir: str, timeout_s: float) -> str:
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
            return f"its command cannot be run: {reason_of(error)}"
        return "" if done.returncode == 0 else f"its command exits with status {done.returncode}"

    return await asyncio.to_thread(run)


async def check_file(path: str, age_s: float) -> str:
    """ "" when the file is there and was written within the last `age_s` seconds, else what is missing."""
    try:
        is_new = time.time() - os.stat(path).st_mtime <= age_s
    except OSError as error:
        return f"the file {path}: {error.strerror}"
    return "" if is_new else f"the file {path} has not been written recently"
