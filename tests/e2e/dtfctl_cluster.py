"""Drives the `dtfctl` command on a cluster of plain programs, as a user at a shell would."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]

SLEEPERS = """
name: trial
readiness: none
grace_period: 5s
jobs:
  ps: {replicas: 2, program: "echo ps {task} at {port}; exec sleep 1000"}
  worker: {replicas: 2, program: "echo worker {task}; while [ ! -e done ]; do sleep 0.02; done; echo bye"}
"""


class CommandLine:
    """One cluster file in a folder of its own, with a state folder of its own. `prefix` comes before each command."""

    prefix: tuple[str, ...] = ()
    timeout_s = 60.0

    def __init__(self, folder: Path, text: str = SLEEPERS) -> None:
        self.folder = folder / "cluster"
        self.folder.mkdir()
        self.state = folder / "state"
        self.write(text)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("DTFCTL_")},
            "DTFCTL_STATE_DIR": str(self.state),
            "PYTHONPATH": str(ROOT),
        }

    def write(self, text: str) -> None:
        (self.folder / "cluster.yaml").write_text(text)

    def run(self, *arguments: str, status: int | None = 0) -> subprocess.CompletedProcess[str]:
        """Runs one command to its end; `status` is the exit status that it must have (None: any)."""
        done = subprocess.run(
            [*self.prefix, sys.executable, "-m", "dtfctl", *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=self.timeout_s,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert status is None or done.returncode == status, (done.returncode, done.stdout, done.stderr)
        return done

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Starts a command in a session of its own; its output goes to out.txt and err.txt beside the cluster file."""
        with open(self.folder / "out.txt", "a") as out, open(self.folder / "err.txt", "a") as err:
            return subprocess.Popen(
                [*self.prefix, sys.executable, "-m", "dtfctl", *arguments],
                cwd=self.folder,
                env=self.environment,
                **{"stdout": out, "stderr": err, "text": True, "start_new_session": True, **options},
            )

    def out(self) -> str:
        return (self.folder / "out.txt").read_text()

    def err(self) -> str:
        return (self.folder / "err.txt").read_text()

    def status(self) -> dict[str, Any]:
        return json.loads(self.run("status", "-o", "json").stdout)

    def task(self, name: str) -> dict[str, Any]:
        return next(task for task in self.status()["tasks"] if task["name"] == name)

    def kill(self, name: str) -> int:
        """kill -9 of a task's process; returns what its pid was."""
        pid = self.task(name)["pid"]
        os.kill(pid, signal.SIGKILL)
        return pid

    def wait_for_restart(self, name: str, pid: int) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            task = self.task(name)
            return task if task["ready"] and task["pid"] != pid else None

        return wait_until(look, f"{name} to come back")

    def finish(self) -> None:
        """The workers of SLEEPERS are done."""
        (self.folder / "done").touch()

    def processes(self, containing: str = "") -> dict[int, str]:
        """pid -> command line of all processes that know this state folder, this test's own aside."""
        token = f"DTFCTL_STATE_DIR={self.state}".encode()
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit() or int(entry.name) == os.getpid():
                continue
            try:
                if token in (entry / "environ").read_bytes().split(b"\0"):
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                    is_zombie = (entry / "stat").read_text().rpartition(")")[2].split()[0] == "Z"
                    if containing in command and not is_zombie:
                        found[int(entry.name)] = command
            except OSError:
                continue
        return found

    def supervisor(self) -> int:
        return wait_until(lambda: next(iter(self.processes("dtfctl.daemon")), 0), "the supervisor")

    def keeper(self) -> int:
        """Its shim is a fork and looks like it, but does not hold the lock."""

        def look() -> int:
            for pid in self.processes("launchers/keeper"):
                with contextlib.suppress(OSError):
                    files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
                    if any(file.endswith("/keeper.lock") for file in files):
                        return pid
            return 0

        return wait_until(look, "the keeper")
