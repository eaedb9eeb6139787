"""`dtfctl ui` as a process, and clusters that are made up for it: a store that a test writes, without any process."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dtfctl.config import parse
from dtfctl.storage.paths import ClusterPaths
from dtfctl.storage.store import Store
from dtfctl.values.plan import ClusterPlan
from dtfctl.values.run import Run
from dtfctl.values.task import Exit, TaskStatus
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]


class PageProcess:
    """`with PageProcess(state) as page`: page.address has the token. Ends by Ctrl-C, as a user ends it."""

    def __init__(self, state: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self._out = state.parent / f"page-{time.monotonic_ns()}.out"
        given = {**os.environ, "DTFCTL_STATE_DIR": str(state), "PYTHONPATH": str(ROOT), **(environment or {})}
        with open(self._out, "w") as out, open(self._out.with_suffix(".err"), "w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "dtfctl", "ui", "--no-browser", *arguments],
                env={key: value for key, value in given.items() if key != "SSH_CONNECTION" or environment},
                stdout=out,
                stderr=err,
                cwd=state.parent,
            )
        self.address = wait_until(self._first_line, "the page's address")

    def __enter__(self) -> PageProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(2)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def err(self) -> str:
        return self._out.with_suffix(".err").read_text()

    def _first_line(self) -> str:
        assert self.process.poll() is None, self.err()
        text = self._out.read_text()
        return text.splitlines()[0] if "\n" in text else ""


FILE = """
name: {name}
program: train
checkpoint_dir: {folder}/checkpoints-{name}
jobs:
  ps: {servers}
  worker: {workers}
"""


def made_up(
    state: Path, name: str, servers: int = 2, workers: int = 3, statuses: Sequence[TaskStatus] = (), **changes: Any
) -> tuple[ClusterPaths, ClusterPlan]:
    """A run that has ended, with these statuses; the other tasks are stopped. Nothing wakes a supervisor for it."""
    folder = state.parent
    text = FILE.format(name=name, folder=folder, servers=servers, workers=workers)
    plan = parse(text, str(folder / f"{name}.yaml"), folder)
    paths = ClusterPaths(state / name)
    paths.logs(1).mkdir(parents=True)
    Path(plan.checkpoint_folder).mkdir(exist_ok=True)
    now = time.time()
    addresses = {task.name: f"127.0.0.1:{2000 + number}" for number, task in enumerate(plan.tasks())}
    settings: dict[str, Any] = {"is_over": True, "outcome": "stopped", "why": "stopped by the test", "ended_at": now}
    run = Run(1, "token", "boot", plan, {}, addresses, now - 600, **{**settings, **changes})
    monotonic = time.monotonic()
    found = {task.name: TaskStatus(task.name, "stopped", 1, exit=Exit(monotonic, 0)) for task in plan.tasks()}
    found.update({status.name: replace(status) for status in statuses})
    store = Store(paths.store)
    store.begin(run, found.values())
    store.close()
    return paths, plan


def event(step: int, at: float, scalars: Mapping[str, float]) -> bytes:
    """A record of an event file, as trainers write it (checksums aside)."""

    def part(number: int, data: bytes) -> bytes:
        return bytes([number << 3 | 2]) + _varint(len(data)) + data

    values = b""
    for tag, value in scalars.items():
        values += part(1, part(1, tag.encode()) + bytes([2 << 3 | 5]) + struct.pack("<f", value))
    payload = b"\x09" + struct.pack("<d", at) + b"\x10" + _varint(step) + part(5, values)
    return struct.pack("<QI", len(payload), 0) + payload + struct.pack("<I", 0)


def _varint(number: int) -> bytes:
    result = b""
    while number >= 0x80:
        result += bytes([number & 0x7F | 0x80])
        number >>= 7
    return result + bytes([number])
