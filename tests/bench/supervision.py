"""What supervision costs: starts per second, the time from SIGKILL to the new process, memory, descriptors, idle CPU.

    python -m tests.bench.supervision [--tasks N] [--kills N] [--peers FOLDER] [--json FILE] [dtfctl supervisord ...]

Runs the same tasks (`sleep`) under dtfctl and, where FOLDER/bin has them, under supervisord, circus and honcho, one
after another on this machine. Each task notes the clock as the first thing it does, so all are measured by the same
hand. Memory and descriptors before and after the kills tell whether restarts leave anything behind; the peers, which
take a second and more for each, get PEER_KILLS at the most.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from dtfctl.config import parse
from dtfctl.control.client import ControlClient
from dtfctl.control.cluster import Cluster
from dtfctl.storage.paths import ClusterPaths

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
IDLE_S = 10.0
PEER_KILLS = 50

TASK = r"""#!/bin/sh
# Notes (task, pid, monotonic seconds) and sleeps. Without a fork: the first is /proc/uptime's, by the shell alone.
read uptime rest < /proc/uptime
echo "$1 $$ $uptime" >> "$2"
exec sleep 100000
"""


class Tasks:
    """The program of all tasks, and what they have noted."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.count = count
        self.notes = folder / "notes"
        self.notes.touch()
        self.program = folder / "task.sh"
        self.program.write_text(TASK)
        self.program.chmod(0o755)

    def command(self, name: str) -> str:
        return f"{self.program} {name} {self.notes}"

    def wait_for_all(self) -> None:
        self.wait(lambda lines: len({line.split()[0] for line in lines if line.endswith("\n")}) >= self.count)

    def wait(self, condition: Callable[[list[str]], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (value := condition(self.notes.read_text().splitlines(keepends=True))):
            if time.monotonic() > deadline:
                raise SystemExit("the tasks do not start")
            time.sleep(0.002 if self.notes.stat().st_size < 1 << 16 else 0.05)
        return value

    def pids(self) -> dict[str, int]:
        """The last process of each."""
        lines = self.notes.read_text().splitlines()
        return {name: int(pid) for name, pid, _ in (line.split() for line in lines)}


@contextmanager
def under_dtfctl(tasks: Tasks, peers: Path) -> Iterator[list[psutil.Process]]:
    program = f"['{tasks.program}', 't{{task}}', '{tasks.notes}']"
    text = (
        f"name: bench\nreadiness: none\nrestart: {{attempts: 1000000, window: 1s, alike: 0}}\n"
        f"jobs: {{t: {{replicas: {tasks.count}, port: none, program: {program}}}}}\n"
    )
    cluster = Cluster(ClusterPaths(tasks.folder / "state" / "bench"))
    reply = cluster.up(parse(text, "cluster.yaml", tasks.folder), print)
    assert reply == {"is": "started"}, reply
    try:
        yield dtfctl_processes(tasks)
    finally:
        cluster.down("the end", 0.0)
        cluster.wait_until(lambda run, _: run.is_over, None)
        cluster.wait_for_end_of_supervisor()


def dtfctl_processes(tasks: Tasks) -> list[psutil.Process]:
    """The daemon first, then the keeper; not the shims, which are counted with what each task costs."""
    marker = str(tasks.folder)
    found = [each for each in psutil.process_iter() if marker in " ".join(_command(each))]
    daemon = [each for each in found if "dtfctl.daemon" in _command(each)]
    beside = [each for each in found if any("launchers/" in word for word in _command(each))]
    parents = {each.ppid() for each in beside}
    return daemon + [each for each in beside if each.pid in parents or each.ppid() not in {k.pid for k in beside}]


@contextmanager
def under_supervisord(tasks: Tasks, peers: Path) -> Iterator[list[psutil.Process]]:
    sections = "".join(
        f"[program:t{number}]\ncommand={tasks.command(f't{number}')}\nautorestart=true\nstartsecs=0\n"
        "stdout_logfile=NONE\nstderr_logfile=NONE\n"
        for number in range(tasks.count)
    )
    config = tasks.folder / "supervisord.conf"
    config.write_text(f"[supervisord]\nnodaemon=true\nminfds=8192\nlogfile={tasks.folder}/log\n{sections}")
    with _daemon(peers / "bin" / "supervisord", "-c", config) as process:
        yield [process]


@contextmanager
def under_circus(tasks: Tasks, peers: Path) -> Iterator[list[psutil.Process]]:
    sections = "".join(
        f"[watcher:t{number}]\ncmd={tasks.command(f't{number}')}\nmax_retry=-1\n" for number in range(tasks.count)
    )
    config = tasks.folder / "circus.ini"
    sockets = "".join(
        f"{name}=ipc://{tasks.folder}/{name}\n" for name in ("endpoint", "pubsub_endpoint", "stats_endpoint")
    )
    config.write_text(f"[circus]\n{sockets}{sections}")
    with _daemon(peers / "bin" / "circusd", config) as process:
        yield [process]


@contextmanager
def under_honcho(tasks: Tasks, peers: Path) -> Iterator[list[psutil.Process]]:
    (tasks.folder / "Procfile").write_text(
        "".join(f"t{number}: {tasks.command(f't{number}')}\n" for number in range(tasks.count))
    )
    with _daemon(peers / "bin" / "honcho", "-f", tasks.folder / "Procfile", "start") as process:
        yield [process]


UNDER = {
    "dtfctl": under_dtfctl,
    "supervisord": under_supervisord,
    "circus": under_circus,
    "honcho": under_honcho,
}
RESTARTS = ("dtfctl", "supervisord", "circus")
"""Honcho ends everything when one process ends."""


@contextmanager
def _daemon(*command: Any) -> Iterator[psutil.Process]:
    process = psutil.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        children = process.children(recursive=True)
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
            process.wait(20)
        for each in (process, *children):
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        with contextlib.suppress(subprocess.TimeoutExpired, psutil.TimeoutExpired):
            process.wait(5)


def measure(name: str, count: int, kills: int, peers: Path) -> dict[str, float]:
    folder = Path(tempfile.mkdtemp(prefix="supervision-"))
    figures: dict[str, float] = {}
    try:
        tasks = Tasks(folder, count)
        begun = time.monotonic()
        with UNDER[name](tasks, peers) as processes:
            tasks.wait_for_all()
            figures["starts_per_s"] = count / (time.monotonic() - begun)
            figures["cpu_ms_per_start"] = 1e3 * cpu_s(processes, tasks) / count
            time.sleep(2)
            figures |= costs(processes, tasks)
            if name == "dtfctl":
                figures["adoption_ms"] = 1e3 * adoption(processes[0], folder / "state" / "bench" / "control.sock")
                processes[:] = dtfctl_processes(tasks)
                figures["status_ms"] = 1e3 * _seconds(lambda: Cluster(ClusterPaths(folder / "state" / "bench")).load())
            if name in RESTARTS and kills:
                kills = kills if name == "dtfctl" else min(kills, PEER_KILLS)
                before, size = cpu_s(processes, tasks), costs(processes, tasks, idle_s=0.0)
                latencies = restart_latencies(tasks, kills)
                figures["kills"] = kills
                figures["cpu_ms_per_restart"] = 1e3 * (cpu_s(processes, tasks) - before) / kills
                figures["restart_median_ms"] = 1e3 * statistics.median(latencies)
                figures["restart_p99_ms"] = 1e3 * sorted(latencies)[int(0.99 * (len(latencies) - 1))]
                after = costs(processes, tasks, idle_s=0.0)
                for each in ("memory_mb", "descriptors"):
                    figures[f"{each}_before_kills"], figures[f"{each}_after_kills"] = size[each], after[each]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return figures


def cpu_s(processes: list[psutil.Process], tasks: Tasks) -> float:
    """Of the supervisor and what stands beside the tasks. Unlike a rate it says the same on a busy machine."""
    pids = set(tasks.pids().values())
    every = {each.pid: each for process in processes for each in (process, *process.children(recursive=True))}
    total = 0.0
    for pid, each in every.items():
        if pid not in pids:
            with contextlib.suppress(psutil.Error):
                total += sum(each.cpu_times()[:2])
    return total


def adoption(daemon: psutil.Process, control: Path) -> float:
    """Seconds from the supervisor's SIGKILL until the next one has adopted all tasks and answers."""
    begun = time.monotonic()
    daemon.kill()
    daemon.wait()
    while (client := ControlClient.connect(control)) is None:
        time.sleep(0.002)
        if time.monotonic() - begun > PATIENCE_S:
            raise SystemExit("the supervisor does not come back")
    client.close()
    return time.monotonic() - begun


def costs(processes: list[psutil.Process], tasks: Tasks, idle_s: float = IDLE_S) -> dict[str, float]:
    """Of the supervisor's own processes; memory is the proportional set size, which counts shared pages once. What
    stands beside each task (dtfctl's shims, honcho's interpreters) is counted apart."""
    cpu = [sum(each.cpu_times()[:2]) for each in processes]
    time.sleep(idle_s)
    figures = {
        "memory_mb": sum(each.memory_full_info().pss for each in processes) / 1e6,
        "descriptors": sum(each.num_fds() for each in processes),
        "threads": sum(each.num_threads() for each in processes),
    }
    if idle_s:
        used = sum(sum(each.cpu_times()[:2]) for each in processes) - sum(cpu)
        figures["idle_cpu_percent"] = 100 * used / idle_s
    own = set(tasks.pids().values()) | {each.pid for each in processes}
    beside = [each for process in processes for each in process.children(recursive=True) if each.pid not in own]
    sample = random.Random(0).sample(beside, min(50, len(beside)))
    if sample:
        mean = statistics.mean(each.memory_full_info().pss for each in sample)
        figures["memory_beside_each_task_kb"] = mean * len(beside) / tasks.count / 1e3
    return figures


def restart_latencies(tasks: Tasks, kills: int) -> list[float]:
    """Seconds from SIGKILL until the new process has its pid, as seen from its first line. Each task in turn: one that
    dies again within moments is delayed on purpose by some of the supervisors."""
    names = sorted(tasks.pids())
    random.Random(1).shuffle(names)
    latencies = []
    for name in itertools.islice(itertools.cycle(names), kills):
        pid = tasks.pids()[name]
        size = tasks.notes.stat().st_size
        begun = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        while True:
            with open(tasks.notes) as notes:
                notes.seek(size)
                fresh = notes.read()
            if f"{name} " in fresh and fresh.endswith("\n"):
                break
            if time.monotonic() - begun > 30:
                raise SystemExit(f"{name} does not come back")
            time.sleep(0.0005)
        latencies.append(time.monotonic() - begun)
        # So that each is measured alone.
        time.sleep(0.02)
    return latencies


def own_start() -> float:
    """What the program itself takes from fork to its first line, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = Tasks(Path(folder), 1)

        def start() -> None:
            size = tasks.notes.stat().st_size
            with subprocess.Popen([tasks.program, "t", tasks.notes]) as process:
                while tasks.notes.stat().st_size == size:
                    time.sleep(0.0002)
                process.kill()

        return _seconds(start)


def _seconds(call: Callable[[], Any], repeats: int = 10) -> float:
    times = []
    for _ in range(repeats):
        begun = time.monotonic()
        call()
        times.append(time.monotonic() - begun)
    return statistics.median(times)


def _command(process: psutil.Process) -> list[str]:
    with contextlib.suppress(psutil.Error):
        return process.cmdline()
    return []


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", metavar=" | ".join(UNDER))
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--peers", type=Path, default=Path("/nowhere"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results: dict[str, Any] = {"own_start_ms": 1e3 * own_start()}
    print(f"the program's own start takes {results['own_start_ms']:.1f} ms", file=sys.stderr)
    for name in options.names or ["dtfctl"]:
        if name != "dtfctl" and not (options.peers / "bin").is_dir():
            raise SystemExit(f"{name} is looked for in --peers FOLDER")
        results[name] = measure(name, options.tasks, options.kills, options.peers)
        print(name, json.dumps({key: round(value, 2) for key, value in results[name].items()}), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
