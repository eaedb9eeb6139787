"""How dtf grows: `python -m tests.bench.growth [--json FILE] [--small] [SCALE ...]`.

One table a scale, measured on dtf alone: what a step costs with more workers, more ps, more variables, larger tensors,
and how long many tasks take to be up. `--small` stops each scale early, to try the program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import psutil

from tests.bench.cluster import Tasks, load_runtime, wait_until_listening
from tests.bench.figures import MEGABYTE, report, seconds_per_call, transfer_times

TRAINING_SECONDS = 3.0
Row = dict[str, float]


def workers(tf: Any, counts: Sequence[int] = (1, 2, 4, 8, 16, 32)) -> list[Row]:
    """Global steps per second of the linear model on one ps."""
    return [{"workers": count, **_steps_per_s(ps=1, worker=count)} for count in counts]


def parameter_servers(tf: Any, counts: Sequence[int] = (1, 2, 4, 8)) -> list[Row]:
    """Global steps per second of the MLP with two workers."""
    return [{"ps": count, **_steps_per_s("mlp", ps=count, worker=2)} for count in counts]


def variables(tf: Any, counts: Sequence[int] = (1, 10, 100, 1000)) -> list[Row]:
    """Milliseconds to pull, scale and push back variables of 64 x 16 on one ps."""
    rows = []
    for count in counts:
        with Tasks("dtf", ps=1, worker=1) as tasks, tf.Graph().as_default():
            tasks.serve(["ps", "worker"])
            rows.append({"variables": count, **_exchange_ms(tf, tasks.target("worker"), count)})
    return rows


def tensor_sizes(tf: Any, sizes_kb: Sequence[int] = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)) -> list[Row]:
    """MB/s of one tensor from a ps variable to a worker, and back."""
    rows = []
    for size_kb in sizes_kb:
        with Tasks("dtf", ps=1, worker=1) as tasks:
            tasks.serve(["ps", "worker"])
            times = transfer_times(tf, tasks.target("worker"), size_kb / 1000)
            rows.append({"kb": size_kb, **{f"{way}_mb_per_s": size_kb / 1000 / times[way] for way in ("push", "pull")}})
    return rows


def tasks_up(tf: Any, counts: Sequence[int] = (2, 4, 8, 16, 32, 64)) -> list[Row]:
    """Seconds until so many servers listen that were started at once, and the memory of all of them: each started by
    itself, and all forked by `dtf.serve`.
    """
    return [{"tasks": count, **_up(count, False, ""), **_up(count, True, "forked_")} for count in counts]


def graph_nodes(tf: Any, counts: Sequence[int] = (100, 1_000, 10_000, 100_000)) -> list[Row]:
    """A chain of nodes, `sin` and `+ 1.0` in turn, in a process of its own: CPU seconds to build it and of its first
    step, CPU ms of the second, and the memory of both in kB for each node.
    """
    script = (
        "import time, psutil, dtf as tf\n"
        "me, now, nodes = psutil.Process(), time.process_time, {count}\n"
        "with tf.Session() as session: session.run(tf.constant(1.0) + 1.0)\n"
        "memory, times = me.memory_info().rss, [now()]\n"
        "value = fed = tf.placeholder(tf.float32, [])\n"
        "for _ in range(nodes // 2): value = tf.sin(value) + 1.0\n"
        "times.append(now())\n"
        "session = tf.Session()\n"
        "for _ in range(2): session.run(value, {{fed: 1.0}}); times.append(now())\n"
        "print(*times, (me.memory_info().rss - memory) / nodes / 1024)\n"
    )
    rows = []
    for count in counts:
        run = subprocess.run(
            [sys.executable, "-c", script.format(count=count)], capture_output=True, text=True, check=True
        )
        start, built, first, second, kb = map(float, run.stdout.split())
        row = {"nodes": count, "build_s": built - start, "first_s": first - built, "second_ms": 1e3 * (second - first)}
        rows.append({**row, "kb_per_node": kb})
    return rows


def _up(count: int, is_forked: bool, prefix: str) -> Row:
    with Tasks("dtf", ps=count) as tasks:
        began = time.perf_counter()
        if is_forked:
            tasks.serve_forked("ps")
        else:
            for index in range(count):
                tasks.start("ps", index)
        for address in tasks.cluster["ps"]:
            wait_until_listening(address)
        elapsed = time.perf_counter() - began
        found = [psutil.Process(process.pid) for process in tasks.processes.values()]
        found += [child for process in found for child in process.children()]
        memory = sum(_own_memory(process.pid) for process in found)
        return {f"{prefix}up_s": elapsed, f"{prefix}memory_mb": memory / MEGABYTE}


SCALES: dict[str, Callable[..., list[Row]]] = {
    "workers": workers,
    "parameter_servers": parameter_servers,
    "variables": variables,
    "tensor_sizes": tensor_sizes,
    "tasks_up": tasks_up,
    "graph_nodes": graph_nodes,
}


def _exchange_ms(tf: Any, target: str, count: int) -> Row:
    with tf.device("/job:ps/task:0"):
        held = [tf.Variable(tf.zeros([64, 16])) for _ in range(count)]
    with tf.device("/job:worker/task:0"):
        scaled = [tf.identity(variable) * 0.5 for variable in held]
    exchange = tf.group(*[v.assign(value) for v, value in zip(held, scaled, strict=True)])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        session.run(exchange)
        began = time.perf_counter()
        session.run(exchange)  # in which the tasks agree on how the next ones go
        second = time.perf_counter() - began
        return {
            "exchange_ms": 1e3 * seconds_per_call(lambda: session.run(exchange)),
            "second_step_ms": 1e3 * second,
        }


def _steps_per_s(model: str = "linear", **jobs: int) -> Row:
    with Tasks("dtf", **jobs) as tasks:
        tasks.serve(["ps"])
        chief = tasks.start("worker", 0, model, str(TRAINING_SECONDS), "async")
        for index in range(1, jobs["worker"]):
            tasks.start("worker", index, model, str(TRAINING_SECONDS), "async")
        return {"steps_per_s": report(chief)["steps_per_s"]}


def _own_memory(pid: int) -> int:
    """Bytes that the process does not share with others (USS)."""
    return psutil.Process(pid).memory_full_info().uss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scales", nargs="*", choices=[[], *SCALES], help="default: all")
    parser.add_argument("--json", help="also write the rows to this file")
    parser.add_argument("--small", action="store_true", help="only the first two rows of each scale")
    arguments = parser.parse_args()
    tf = load_runtime("dtf")
    tables: dict[str, list[Row]] = {}
    for name in arguments.scales or SCALES:
        measure = SCALES[name]
        counts = measure.__defaults__[0]  # type: ignore[attr-defined]
        rows = tables[name] = measure(tf, counts[:2] if arguments.small else counts)
        columns = list(rows[0])
        print(f"\n{measure.__doc__}\n\n| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
        for row in rows:
            print(f"| {' | '.join(f'{value:,.4g}' if value < 1000 else f'{value:,.0f}' for value in row.values())} |")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(tables, file, indent=1)


if __name__ == "__main__":
    main()
