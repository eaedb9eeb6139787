"""Kills under dtfctl, of all processes that a cluster has, while its sums are known.

    python -m tests.durability.cluster_kills --kills 100 [--level host] [--seed N] [--pause SECONDS] [--hours H]

Two workers train at one ps (`cluster_trainer`). In random order SIGKILL ends the process that serves, its backup, both
with time between, a worker, the chief, the supervisor, a keeper, and the supervisor together with the ps. Each step
that a worker saw confirmed must count once, and each that a kill met at most once; all state must be that of so many.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import dtf as tf
from tests.durability.cluster_trainer import Confirmed, build
from tests.e2e.dtfctl_cluster import ROOT, CommandLine
from tests.waiting import wait_until

__all__ = ["KINDS", "kill_in_cluster"]

WORKERS = 2
FILE = f"""
name: kills
program: [python, -m, tests.durability.cluster_trainer]
python: {sys.executable}
environment: {{PYTHONPATH: "{ROOT / "runtime"}:{ROOT}", OPENBLAS_NUM_THREADS: "1"}}
readiness: {{probe: grpc}}
restart: {{policy: on-failure, attempts: 100000, backoff: 50ms, alike: 0}}
"""
ENDS = {
    "process": "durability: process\njobs: {ps: 1, worker: 2}\n",
    "host": """durability: host
hosts: {one: {ssh: none}, two: {ssh: none}}
jobs: {ps: {replicas: 1, hosts: [one]}, worker: {replicas: 2, hosts: [one]}}
""",
}
KINDS = {
    "process": ("ps", "worker", "chief", "supervisor", "keeper", "supervisor and ps"),
    "host": ("ps", "backup", "both", "worker", "chief", "supervisor", "keeper", "supervisor and ps"),
}
_WAIT_S = 120.0
_STEPS_BETWEEN = 5


class _Cluster(CommandLine):
    """A cluster whose processes are killed by what they do."""

    timeout_s = _WAIT_S

    def serving(self) -> int:
        """The process that serves, once its backup is in sync, where there is one."""
        return wait_until(lambda: self._pair()[0], "a ps with its backup", _WAIT_S)

    def pid_of_backup(self) -> int:
        """Its backup."""
        return wait_until(lambda: self._pair()[1], "a backup in sync", _WAIT_S)

    def task_pid(self, name: str) -> int:
        """The process of a task, once it runs."""

        def look() -> int:
            task = self.task(name)
            return int(task["pid"] or 0) if task["state"] == "running" else 0

        return wait_until(look, f"{name} to run", _WAIT_S)

    def keepers(self) -> list[int]:
        """All keepers: shims are forks of them, and do not hold the lock."""
        found = []
        for pid in self.processes("launchers/keeper"):
            with contextlib.suppress(OSError):
                files = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
                if any(file.endswith("/keeper.lock") for file in files):
                    found.append(pid)
        return found

    def _pair(self) -> tuple[int, int]:
        tasks = [task for task in self.status()["tasks"] if task["name"].startswith("ps")]
        if len(tasks) == 1:
            return (int(tasks[0]["pid"]), 0) if tasks[0]["ready"] else (0, 0)
        roles = {task.get("role", ""): int(task["pid"] or 0) for task in tasks}
        primary = next((pid for role, pid in roles.items() if re.match(r"primary.*backup in sync$", role)), 0)
        backup = next((pid for role, pid in roles.items() if re.match(r"backup.*in sync$", role)), 0)
        return (primary, backup) if primary and backup else (0, 0)


def kill_in_cluster(
    folder: Path, level: str, kinds: list[str], pause_s: random.Random, pause_s_max: float
) -> list[str]:
    """Trains, kills processes of these kinds one after the other, and compares the state at the end.

    Returns: what was wrong, in words; empty when all was exact.
    """
    cluster = _Cluster(folder, FILE + ENDS[level])
    counts = [Confirmed(cluster.folder / f"confirmed-{index}") for index in range(WORKERS)]
    cluster.run("up")
    try:
        for kind in kinds:
            for each in counts:
                _wait_for_steps(each)
            time.sleep(pause_s.uniform(0.0, pause_s_max))  # how far the steps are by then is chance
            _kill(cluster, kind)
        for each in counts:
            _wait_for_steps(each)
        (cluster.folder / "done").touch()
        wait_until((cluster.folder / "over-1").exists, "the other worker's end", _WAIT_S)
        (cluster.folder / "read").touch()
        found = cluster.folder / "found"
        wait_until(found.exists, "the state", _WAIT_S)
        with np.load(found) as state:
            return _differences({name: state[name] for name in state.files}, counts)
    except BaseException:
        print(cluster.run("status", status=None).stdout, cluster.run("logs", status=None).stdout[-4000:], flush=True)
        raise
    finally:
        cluster.run("down", "--timeout", "0", status=None)


def _wait_for_steps(confirmed: Confirmed) -> None:
    goal = confirmed.steps + _STEPS_BETWEEN
    wait_until(lambda: confirmed.steps >= goal, f"step {goal}", _WAIT_S)


def _kill(cluster: _Cluster, kind: str) -> None:
    match kind:
        case "ps":
            victims = [cluster.serving()]
        case "backup":
            victims = [cluster.pid_of_backup()]
        case "both":
            _end(cluster.serving())
            victims = [cluster.serving()]
        case "worker":
            victims = [cluster.task_pid("worker:1")]
        case "chief":
            victims = [cluster.task_pid("worker:0")]
        case "supervisor":
            victims = [cluster.supervisor()]
        case "keeper":
            victims = cluster.keepers()[:1]
        case _:
            serving = cluster.serving()
            victims = [cluster.supervisor(), serving]
    for pid in victims:
        _end(pid)


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # the status may be that of a moment ago
        os.kill(pid, signal.SIGKILL)


def _differences(found: dict[str, np.ndarray], counts: list[Confirmed]) -> list[str]:
    wrong = []
    for index, each in enumerate(counts):
        count = int(found[f"count{index}"])
        if not each.steps <= count <= each.steps + each.starts - 1:
            wrong.append(f"worker {index} saw {each.steps} steps and had {each.starts} processes; {count} were counted")
    steps = sum(int(found[f"count{index}"]) for index in range(len(counts)))
    expected = _state_after(steps)
    for name, value in expected.items():
        if not name.startswith("count") and not np.array_equal(found[name], value):
            wrong.append(f"{name} is {found[name]!r} after {steps} steps, not {value!r}")
    return wrong


def _state_after(steps: int) -> dict[str, np.ndarray]:
    """All state after so many steps without kills."""
    with tf.Graph().as_default(), tf.Session() as session:
        train, state = build(WORKERS, 0, None)
        session.run(tf.global_variables_initializer())
        session.run(state.pop("first"))
        for _ in range(steps):
            session.run(train)
        values: dict[str, np.ndarray] = session.run(state)
        return values


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.durability.cluster_kills", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=16)
    parser.add_argument("--level", choices=["process", "host"], default="host")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between kills, at most", metavar="S")
    parser.add_argument("--hours", type=float, default=0.0, help="repeat with further seeds for so long", metavar="H")
    parser.add_argument("--only", default="", help="kinds of kills, with commas between", metavar="KINDS")
    chosen = parser.parse_args(arguments)
    until, status, seed = time.monotonic() + chosen.hours * 3600, 0, chosen.seed
    kinds = [kind for kind in KINDS[chosen.level] if not chosen.only or kind in chosen.only.split(",")]
    while True:
        chance = random.Random(seed)
        turns = [chance.choice(kinds) for _ in range(chosen.kills)]
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="dtf-kills-") as folder:
            wrong = kill_in_cluster(Path(folder), chosen.level, turns, chance, chosen.pause)
        killed = ", ".join(f"{count} {kind}" for kind, count in sorted(Counter(turns).items()))
        words = "; ".join(wrong) or "exact"
        print(f"{chosen.level}, seed {seed}: {killed} in {time.monotonic() - began:.0f} s: {words}", flush=True)
        status |= bool(wrong)
        seed += 1
        if time.monotonic() >= until:
            return status


if __name__ == "__main__":
    sys.exit(main())
