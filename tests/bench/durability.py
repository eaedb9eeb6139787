"""What durable parameter servers cost: `python -m tests.bench.durability [--rounds N] [MODEL ...]`.

Two clusters of two ps each, one of them durable, train the same model of `programs` from this process. Windows of half
a second take turns, so that a busy machine slows both alike; the ratios are medians of neighbouring windows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import psutil

from tests.bench.cluster import Tasks, load_runtime
from tests.bench.programs import MODELS
from tests.bench.task import DURABILITY

WINDOW_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.durability", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("models", nargs="*", default=["linear", "mlp", "embedding"])
    chosen = parser.parse_args()
    tf = load_runtime("dtf")
    for model in chosen.models:
        folder = Path(tempfile.mkdtemp(prefix="dtf-bench-", dir="/dev/shm"))
        try:
            with ExitStack() as stack:
                windows = {level: _training(tf, model, level, folder, stack) for level in ("none", "process")}
                for window in windows.values():
                    window()
                found = []
                for turn in range(chosen.rounds):
                    order = ("none", "process") if turn % 2 else ("process", "none")
                    found.append({level: windows[level]() for level in order})
        finally:
            shutil.rmtree(folder)
        rates = statistics.median(each["process"][0] / each["none"][0] for each in found)
        cpu = statistics.median(each["process"][1] / each["none"][1] for each in found)
        medians = {level: statistics.median(each[level][0] for each in found) for level in windows}
        print(
            f"{model}: {medians['none']:.0f} steps/s without, {medians['process']:.0f} with durability: {rates:.2f}x; "
            f"CPU time of a step {cpu:.2f}x",
            flush=True,
        )


def _training(tf: object, model: str, level: str, folder: Path, stack: ExitStack) -> Callable[[], tuple[float, float]]:
    """A function that trains for a window: steps a second, and seconds of CPU for a step in all processes."""
    tasks = stack.enter_context(Tasks("dtf", ps=2, worker=1))
    os.environ.pop(DURABILITY, None)
    if level != "none":
        os.environ[DURABILITY] = str(folder)
    tasks.serve(["ps"])
    os.environ.pop(DURABILITY, None)
    server = stack.enter_context(tf.train.Server(tasks.cluster, "worker", 0))
    graph = tf.Graph()
    with graph.as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        step = tf.train.get_or_create_global_step()
        loss, feed, optimizer = MODELS[model](tf, np.random.RandomState(0))
        train = optimizer.minimize(loss, global_step=step)
        initial = tf.global_variables_initializer()
    session = stack.enter_context(tf.Session(server.target, graph=graph))
    session.run(initial)
    processes = [psutil.Process(), *(psutil.Process(each.pid) for each in tasks.processes.values())]

    def cpu_s() -> float:
        times = [process.cpu_times() for process in processes]
        return sum(each.user + each.system for each in times)

    def window() -> tuple[float, float]:
        steps, before, began = 0, cpu_s(), time.perf_counter()
        while time.perf_counter() < began + WINDOW_S:
            session.run(train, feed)
            steps += 1
        return steps / (time.perf_counter() - began), (cpu_s() - before) / steps

    return window


if __name__ == "__main__":
    main()
