"""The cluster under attack: its processes by what they do, on all machines, and how far its training has come."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sqlite3
from pathlib import Path

from tests.e2e.chaos.trainer import CHECKPOINTS, FINISH, MARKS
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.e2e.test_dtfctl_ssh import RemoteCluster

FILE = """
name: chaos
security: {security}
program: [{python}, -m, tests.e2e.chaos.trainer, {folder}]
environment: {{PYTHONPATH: "{root}/runtime:{root}"}}
restart: {{attempts: 100000, alike: 0, backoff: 50ms, backoff_max: 200ms}}
"""
LOCAL = "jobs: {ps: 2, worker: 2}\n"
REMOTE = """
python: %(python)s
host_lost_after: 10m
hosts:
  node[1-3]: {address: "10.77.0.[1-3]", working_dir: ~/chaos}
jobs: {ps: {replicas: 2, hosts: "node[1-2]"}, worker: {replicas: 2, hosts: "node[2-3]"}}
"""


class Training:
    """A cluster file with the trainer, and what its processes do. Mixed into a CommandLine."""

    base: Path
    state: Path
    machines: dict[str, object] = {}

    def processes(self, containing: str = "") -> dict[int, str]:
        raise NotImplementedError

    def roles(self) -> dict[str, list[int]]:
        """Role -> pids, as seen from here. `ssh` is a client, `agent` and `sshd` its other end."""
        commands = dict(self.processes())
        for host in self.machines.values():
            commands.update(host.processes())  # type: ignore[attr-defined]
        found: dict[str, list[int]] = {}
        for pid, command in sorted(commands.items()):
            if role := _role(pid, command):
                found.setdefault(role, []).append(pid)
        return found

    def finish(self) -> None:
        (self.base / FINISH).touch()

    def progress(self) -> tuple[str, int, int]:
        """The chief's present process, the number of its lines, and the global step of the last; ("", 0, 0): none."""
        marks = sorted((self.base / MARKS).glob("worker-0-*"), key=lambda mark: mark.stat().st_mtime_ns)
        words = marks[-1].read_text().split() if marks else []
        return (marks[-1].name, int(words[0]), int(words[1])) if words else ("", 0, 0)

    def is_saving(self) -> bool:
        """Whether a checkpoint is being written, or a save was cut off."""
        return any("_temp_" in name or "tempstate" in name for name in self.checkpoint_files())

    def checkpoint_files(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return os.listdir(self.base / CHECKPOINTS)
        return []

    def happenings(self) -> int:
        """How much has happened so far, by the store."""
        path = f"file:{self.state}/chaos/store.sqlite?mode=ro"
        try:
            with contextlib.closing(sqlite3.connect(path, uri=True)) as store:
                return store.execute("SELECT max(id) FROM events").fetchone()[0] or 0
        except sqlite3.Error:
            return 0

    def free_addresses(self, addresses: list[str]) -> list[str]:
        """The addresses of this machine among `addresses` that are still held."""
        taken = []
        for address in addresses:
            host, _, port = address.rpartition(":")
            with socket.socket() as tried:
                tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    tried.bind((host, int(port)))
                except OSError:
                    taken.append(address)
        return taken


class LocalTraining(Training, CommandLine):
    def __init__(self, folder: Path, python: str, security: str = "none") -> None:
        self.base = folder
        text = FILE.format(security=security, python=python, folder=folder, root=ROOT) + LOCAL
        CommandLine.__init__(self, folder, text)
        (folder / MARKS).mkdir()

    def processes(self, containing: str = "") -> dict[int, str]:
        return CommandLine.processes(self, containing)


class RemoteTraining(Training, RemoteCluster):
    def __init__(self, folder: Path, laboratory, python: str, security: str = "none") -> None:
        self.base = folder
        text = FILE.format(security=security, python=python, folder=folder, root=ROOT) + REMOTE
        RemoteCluster.__init__(self, folder, laboratory, text)
        self.machines = dict(laboratory.hosts)
        (folder / MARKS).mkdir()

    def processes(self, containing: str = "") -> dict[int, str]:
        return CommandLine.processes(self, containing)

    def finish(self) -> None:
        Training.finish(self)


def variables_of(pid: int) -> dict[str, str]:
    """What dtfctl has given a task in its environment."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace").split("\0")
        return dict(word.partition("=")[::2] for word in words if word.startswith("DTFCTL_"))
    return {}


def kill(pid: int) -> bool:
    """kill -9. Whether there was something to kill, zombies apart."""
    with contextlib.suppress(OSError):
        is_zombie = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        os.kill(pid, signal.SIGKILL)
        return not is_zombie
    return False


def _role(pid: int, command: str) -> str:
    if "chaos.trainer" in command:
        task = variables_of(pid).get("DTFCTL_TASK", "")
        return {"worker:0": "chief"}.get(task, task.partition(":")[0])
    if "log_recorder" in command:
        return "recorder"
    if "launchers/keeper" in command:
        with contextlib.suppress(OSError):
            files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
            return "keeper" if any(file.endswith("/keeper.lock") for file in files) else "shim"
        return ""
    for words, role in (
        ("dtfctl.daemon", "supervisor"),
        ("-m dtfctl ", "command"),
        ("zlib.decompress", "agent"),
        ("sshd: root", "sshd"),
        ("ssh -F", "ssh"),
    ):
        if words in command:
            return role
    return ""
