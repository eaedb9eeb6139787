"""Runs the daemons of a test and ends everything they started, also when the test itself is killed.

`python -m tests.e2e.warden FOLDER` starts one command for each line of its input (a JSON list of words) and answers
with its pid. When the input ends, it stops the commands with SIGTERM, then kills all their descendants and every
process whose environment names FOLDER. Daemons that leave their parent stay descendants: the warden is their reaper.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

STOP_S = 30.0
_SET_CHILD_SUBREAPER = 36


class Warden:
    """`with Warden(folder, environment, log) as warden: warden.start("slurmctld", "-D")`."""

    def __init__(self, folder: Path, environment: Mapping[str, str], log: Path) -> None:
        root = Path(__file__).resolve().parents[2]
        with open(log, "ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.e2e.warden", str(folder)],
                env={**environment, "PYTHONPATH": str(root)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
                text=True,
            )

    def __enter__(self) -> Warden:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=4 * STOP_S)

    def start(self, *command: str) -> int:
        """Returns the pid of the started command."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def main(folder: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    assert ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    pids = []
    for line in sys.stdin:
        pids.append(_start(json.loads(line)))
        with contextlib.suppress(BrokenPipeError):
            print(pids[-1], flush=True)
    for pid in pids:
        _send(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_S
    while set(pids) & set(parents()) and time.monotonic() < deadline:
        _reap()
        time.sleep(0.02)
    while left := {*descendants(os.getpid()), *_with_environment(folder)} - {os.getpid()}:
        for pid in left:
            _send(pid, signal.SIGKILL)
        time.sleep(0.02)
        _reap()


def _start(command: list[str]) -> int:
    """Signals that this process ignores must work in its commands."""
    for_child = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    file_actions = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, 2, 1)]
    return os.posix_spawnp(
        command[0], command, os.environ, file_actions=file_actions, setsid=True, setsigdef=for_child
    )


def descendants(root: int) -> set[int]:
    """The pids of all children of `root`, of their children and so on."""
    known = parents()
    found: set[int] = set()
    while more := {pid for pid, parent in known.items() if parent == root or parent in found} - found:
        found |= more
    return found


def parents() -> dict[int, int]:
    """pid -> parent of all processes that are not yet dead."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                state, parent, *_ = (entry / "stat").read_text().rpartition(")")[2].split()
                if state != "Z":
                    found[int(entry.name)] = int(parent)
    return found


def _with_environment(folder: str) -> set[int]:
    words = os.fsencode(f"={folder}/")
    found = set()
    for pid in parents():
        with contextlib.suppress(OSError):
            if words in Path(f"/proc/{pid}/environ").read_bytes():
                found.add(pid)
    return found


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


if __name__ == "__main__":
    main(sys.argv[1])
