"""Where the time of a training step goes: which rooms of dtf hold the interpreter, task by task.

    python -m tests.bench.where [--seconds N] [MODEL ...]

runs the programs of `programs.py` on two ps and two workers, has py-spy (`pip install py-spy`) look 250 times a
second at who holds the interpreter's lock in each of them, and prints the shares beside the CPU time that a global
step takes while they are looked at. What numpy and BLAS compute without the lock is in the CPU time, and in no share.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from tests.bench.cluster import Tasks
from tests.bench.figures import report
from tests.bench.programs import MODELS

ROOMS = {
    "arithmetic": ("run/kernels/", "<dtf program", "numpy/"),
    "sockets": ("channel/",),
    "layout of messages": ("wire/packing", "rpc/"),
    "a step's bookkeeping": ("run/",),
    "the client's part": ("session", "fetches", "server", "train/", "build/", "tests/bench/"),
}
"""The rooms of the tour, and the beginnings of the paths that belong to each; the first that fits counts."""


def main(models: list[str], seconds: float) -> None:
    spy = shutil.which("py-spy") or shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if spy is None:
        raise SystemExit("error: py-spy is not there: `pip install py-spy`")
    for model in models:
        print(f"## {model}\n")
        for name, line in profile(spy, model, seconds).items():
            print(f"{name:10s} {line}")
        print()


def profile(spy: str, model: str, seconds: float) -> dict[str, str]:
    """A line for each task: its CPU time a global step, and the shares of the rooms."""
    with tempfile.TemporaryDirectory() as folder, Tasks("dtf", ps=2, worker=2) as tasks:
        tasks.serve(["ps"])
        chief = tasks.start("worker", 0, model, str(seconds + 5))
        tasks.start("worker", 1, model, str(seconds + 5))
        assert chief.stdout is not None and chief.stdout.readline().strip() == "training"
        processes = {f"{job}:{index}": process.pid for (job, index), process in tasks.processes.items()}
        before, began = {name: _cpu_s(pid) for name, pid in processes.items()}, time.monotonic()
        looking = [_look(spy, pid, Path(folder) / name, seconds) for name, pid in processes.items()]
        for each in looking:
            each.wait()
        lasted = time.monotonic() - began
        cpu_s = {name: _cpu_s(pid) - before[name] for name, pid in processes.items()}
        steps = report(chief)["steps_per_s"] * lasted
        return {
            name: f"{1e6 * cpu_s[name] / steps:7.0f} us of CPU a step   {_shares(Path(folder) / name)}"
            for name in processes
        }


def _cpu_s(pid: int) -> float:
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def _look(spy: str, pid: int, file: Path, seconds: float) -> subprocess.Popen[Any]:
    command = [spy, "record", "--gil", "--rate", "250", "--duration", str(int(seconds)), "--format", "raw"]
    return subprocess.Popen(
        [*command, "--output", str(file), "--pid", str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def _shares(file: Path) -> str:
    counts: Counter[str] = Counter()
    for line in file.read_text().splitlines() if file.exists() else ():
        stack, _, count = line.rpartition(" ")
        counts[_room(stack.split(";"))] += int(count)
    total = sum(counts.values()) or 1
    return ", ".join(f"{name} {100 * count / total:.0f} %" for name, count in counts.most_common())


def _room(frames: list[str]) -> str:
    """The room of the innermost frame that belongs to one."""
    for frame in reversed(frames):
        path = frame.rpartition(" (")[2].replace("dtf/", "", 1) if "dtf/" in frame else frame.rpartition(" (")[2]
        for room, beginnings in ROOMS.items():
            if path.startswith(beginnings):
                return room
    return "else"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.bench.where")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("models", nargs="*", default=["linear"], choices=sorted(MODELS), metavar="MODEL")
    arguments = parser.parse_args()
    main(arguments.models, arguments.seconds)
