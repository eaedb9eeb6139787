"""What durable parameter servers cost: `python -m tests.bench.durability [--rounds N] [MODEL ...]`.

A cluster of two ps for each level trains the same model of `programs` from this process. Windows of half a second take
turns, so that a busy machine slows all alike; the ratios are medians of neighbouring windows. With `host` the backups
are processes of the same machine, so their work counts against the training.
"""

from __future__ import annotations

import argparse
import json
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

from dtf.places import lines
from dtf.wire import errors
from tests.bench.cluster import Tasks, load_runtime, wait_until_listening
from tests.bench.programs import MODELS
from tests.bench.task import DURABILITY
from tests.ports import free_ports

WINDOW_S = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.durability", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--levels", default="process,host", help="beside none")
    parser.add_argument("models", nargs="*", default=["linear", "mlp", "embedding"])
    chosen = parser.parse_args()
    tf = load_runtime("dtf")
    levels = ["none", *chosen.levels.split(",")]
    for model in chosen.models:
        folder = Path(tempfile.mkdtemp(prefix="dtf-bench-", dir="/dev/shm"))
        try:
            with ExitStack() as stack:
                trainings = {level: _training(tf, model, level, folder / level, stack) for level in levels}
                windows = {level: window for level, (window, _) in trainings.items()}
                for window in windows.values():
                    window()
                found = []
                for turn in range(chosen.rounds):
                    order = levels if turn % 2 else levels[::-1]
                    found.append({level: windows[level]() for level in order})
                memory = {level: processes() for level, (_, processes) in trainings.items()}
        finally:
            shutil.rmtree(folder)
        if "host" in memory:
            primary, backup = sum(memory["host"][:2]), sum(memory["host"][2:])
            print(
                f"{model}: a backup has {backup / 2**21:.0f} MiB, {backup / primary:.2f}x of its primary and "
                f"{backup / sum(memory['none'][:2]):.2f}x of a ps without durability"
            )
        for level in levels[1:]:
            ratios = sorted(each[level][0] / each["none"][0] for each in found)
            cpu = statistics.median(each[level][1] / each["none"][1] for each in found)
            rates = {name: statistics.median(each[name][0] for each in found) for name in ("none", level)}
            quarter = len(ratios) // 4
            print(
                f"{model}: {rates['none']:.0f} steps/s without, {rates[level]:.0f} with '{level}': "
                f"{statistics.median(ratios):.2f}x ({ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f}); "
                f"CPU time of a step {cpu:.2f}x",
                flush=True,
            )


_Window = Callable[[], tuple[float, float]]


def _training(
    tf: object, model: str, level: str, folder: Path, stack: ExitStack
) -> tuple[_Window, Callable[[], list[int]]]:
    """A function that trains for a window: steps a second, and seconds of CPU for a step in all processes; and one that
    gives the bytes that each ps has in memory, the primaries first.
    """
    tasks = stack.enter_context(Tasks("dtf", ps=2, worker=1))
    others = stack.enter_context(Tasks("dtf", ps=2))
    peers = [f"localhost:{port}" for port in free_ports(4)]
    config = tf.ConfigProto()
    if level == "host":
        config.experimental.durability_places = ";".join(
            f"ps:{index}={tasks.cluster['ps'][index]}/{peers[2 * index].rpartition(':')[2]},"
            f"{others.cluster['ps'][index]}/{peers[2 * index + 1].rpartition(':')[2]}"
            for index in range(2)
        )
    others.cluster = tasks.cluster
    for place, started in enumerate([tasks, others] if level == "host" else [tasks]):
        for index in range(2):
            os.environ[DURABILITY] = "" if level == "none" else json.dumps(
                [level, str(folder / f"ps-{index}-{place}"), config.experimental.durability_places, place]
            )
            started.start("ps", index)
    os.environ.pop(DURABILITY)
    for address in tasks.cluster["ps"]:
        wait_until_listening(address)
    server = stack.enter_context(tf.train.Server(tasks.cluster, "worker", 0, config=config))
    graph = tf.Graph()
    with graph.as_default(), tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        step = tf.train.get_or_create_global_step()
        loss, feed, optimizer = MODELS[model](tf, np.random.RandomState(0))
        train = optimizer.minimize(loss, global_step=step)
        initial = tf.global_variables_initializer()
    session = stack.enter_context(tf.Session(server.target, graph=graph))
    session.run(initial)
    of_tasks = [*tasks.processes.values(), *others.processes.values()]
    processes = [psutil.Process(), *(psutil.Process(each.pid) for each in of_tasks)]
    for peer in peers if level == "host" else []:
        while not {"in sync", True} & _sync_of(peer):
            time.sleep(0.01)

    def cpu_s() -> float:
        times = [process.cpu_times() for process in processes]
        return sum(each.user + each.system for each in times)

    def window() -> tuple[float, float]:
        steps, before, began = 0, cpu_s(), time.perf_counter()
        while time.perf_counter() < began + WINDOW_S:
            session.run(train, feed)
            steps += 1
        return steps / (time.perf_counter() - began), (cpu_s() - before) / steps

    return window, lambda: [process.memory_info().rss for process in processes[1:]]


def _sync_of(peer: str) -> set[object]:
    """Whether a place is a backup in sync, or has one."""
    try:
        state = lines.ask(peer, {"ask": "state"}, 5.0)["state"]
    except errors.UnavailableError:
        return set()
    return {state["has_right"] or None, (state["backup"] or {}).get("state")}


if __name__ == "__main__":
    main()
