"""What a save costs a training: `python -m tests.bench.checkpoints [--mb 400] [--rounds N] [--updates dense]`.

Two ps hold tables of `--mb` MB together. One client trains them without a pause, another saves them. Prints, for dtf
and for TensorFlow in turn: the usual step, the longest step while a save runs and while none does, the time of a save
and of a restore, and the memory that a ps takes besides while it saves. The bare write and read of as many bytes stand
beside them. `DTF_TENSORFLOW_PYTHON` names a Python with TensorFlow; without it only dtf runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.cluster import ROOT, RUNTIMES, Tasks, load_runtime

WIDTH = 64
ROWS_PER_STEP = 1000
SAVES = 3
QUIET_S = 3.0
LOOK_S = 0.005


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mb", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", choices=["sparse", "dense"], default="sparse")
    parser.add_argument("--runtime", choices=sorted(RUNTIMES), help="run this one here, and print its figures as JSON")
    arguments = parser.parse_args()
    if arguments.runtime:
        print(json.dumps(measured(arguments.runtime, arguments.mb, arguments.updates)))
        return
    pythons = {"dtf": sys.executable, "tensorflow": os.environ.get("DTF_TENSORFLOW_PYTHON")}
    found: dict[str, list[dict[str, float]]] = {}
    for _ in range(arguments.rounds):
        for runtime, python in pythons.items():
            if python:
                command = [python, "-m", __spec__.name, "--runtime", runtime, "--mb", str(arguments.mb)]
                result = subprocess.run(
                    [*command, "--updates", arguments.updates], cwd=ROOT, stdout=subprocess.PIPE, check=True
                )
                found.setdefault(runtime, []).append(json.loads(result.stdout.splitlines()[-1]))
        found.setdefault("a file", []).append(bare(arguments.mb))
    for runtime, rounds in found.items():
        for figure in rounds[0]:
            values = sorted(each[figure] for each in rounds)
            print(
                f"{runtime:>10}  {figure:<28} {statistics.median(values):10.1f}  ({values[0]:.1f} to {values[-1]:.1f})"
            )


def measured(runtime: str, mb: int, updates: str) -> dict[str, float]:
    """The figures of one runtime: times in ms, sizes in MB."""
    tf = load_runtime(runtime)
    with Tasks(runtime, ps=2, worker=2) as tasks, tempfile.TemporaryDirectory() as folder:
        tasks.serve(["ps", "worker"])
        rows = mb * 1_000_000 // (2 * WIDTH * 4)
        init, update = _graph(tf, rows, updates)
        saver = tf.train.Saver(sharded=True, max_to_keep=1)
        with tf.Session(tasks.target("worker", 0)) as session, tf.Session(tasks.target("worker", 1)) as other:
            session.run(init)
            training = _Training(lambda: other.run(update))
            pids = [tasks.processes["ps", index].pid for index in range(2)]
            memory = _Memory(pids)
            time.sleep(QUIET_S)
            memory.mark()
            saves = []
            for number in range(SAVES):
                began = time.perf_counter()
                path = saver.save(session, os.path.join(folder, "model"), global_step=number, write_meta_graph=False)
                saves.append((began, time.perf_counter()))
                time.sleep(0.5)
            grown = memory.stop()
            steps = training.stop()
            began = time.perf_counter()
            saver.restore(session, path)
            restored = time.perf_counter() - began
    in_save = [end - start for start, end in steps if any(start < last and end > first for first, last in saves)]
    others = [end - start for start, end in steps if not any(start < last and end > first for first, last in saves)]
    return {
        "usual step (ms)": statistics.median(others) * 1e3,
        "longest step without (ms)": max(others) * 1e3,
        "longest step in saves (ms)": max(in_save) * 1e3,
        "usual step in saves (ms)": statistics.median(in_save) * 1e3,
        "save (ms)": statistics.median(end - start for start, end in saves) * 1e3,
        "restore (ms)": restored * 1e3,
        "memory besides, a ps (%)": 100 * max(grown) / (mb / 2),
    }


def _graph(tf: Any, rows: int, updates: str) -> tuple[Any, Any]:
    inits, steps = [], []
    initializer = tf.random_uniform_initializer()
    for task in range(2):
        with tf.device(f"/job:ps/task:{task}"):
            parts = 1 if updates == "sparse" else 10
            for part in range(parts):
                table = tf.get_variable(
                    f"table_{task}_{part}",
                    [rows // parts, WIDTH],
                    initializer=initializer,
                    use_resource=True,
                )
                if updates == "sparse":
                    ids = tf.random_uniform([ROWS_PER_STEP], 0, rows, tf.int32)
                    change = tf.IndexedSlices(tf.ones([ROWS_PER_STEP, WIDTH]), ids)
                    steps.append(table.scatter_sub(change))
                else:
                    steps.append(table.assign_sub(tf.fill([rows // parts, WIDTH], 0.001), read_value=False))
                inits.append(table.initializer)
    return tf.group(*inits), tf.group(*steps)


class _Training:
    """Runs steps in a thread of its own and notes when each began and ended."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self._step = step
        self._steps: list[tuple[float, float]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for _ in range(10):
            self._step()
        while not self._is_over.is_set():
            began = time.perf_counter()
            self._step()
            self._steps.append((began, time.perf_counter()))

    def stop(self) -> list[tuple[float, float]]:
        self._is_over.set()
        self._thread.join()
        return self._steps


class _Memory:
    """The most that processes take in memory of their own, in MB above the most until `mark`."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._before = [0.0] * len(pids)
        self._most = list(self._before)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._is_over.wait(LOOK_S):
            self._most = [max(most, _resident_mb(pid)) for most, pid in zip(self._most, self._pids, strict=True)]

    def mark(self) -> None:
        self._before = list(self._most)

    def stop(self) -> list[float]:
        self._is_over.set()
        self._thread.join()
        return [most - before for most, before in zip(self._most, self._before, strict=True)]


def _resident_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) / 1000
    return 0.0


def bare(mb: int) -> dict[str, float]:
    """A bare write, synced, and a bare read of as many bytes, in ms."""
    piece = np.zeros(1_000_000, np.uint8)
    with tempfile.NamedTemporaryFile() as file:
        began = time.perf_counter()
        for _ in range(mb):
            file.write(memoryview(piece))
        file.flush()
        os.fsync(file.fileno())
        written = time.perf_counter()
        for _ in range(2):
            started = time.perf_counter()
            np.fromfile(file.name, np.uint8)
            read = time.perf_counter() - started
    return {"write and sync (ms)": (written - began) * 1e3, "read (ms)": read * 1e3}


if __name__ == "__main__":
    main()
