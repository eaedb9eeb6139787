"""What counting and tracing cost a training: `python -m tests.bench.tracing`.

One ps and one worker in processes of their own train a small net from this process. Windows without and with wishes
for traces take turns, each pair in the other order than the one before, so that a busy machine slows both alike.
CPU time is that of this process and the two servers; a busy machine changes it least.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

import numpy as np

import dtf as tf
from dtf.testing import LocalCluster
from dtf.wire.measures import Measures
from dtf.wire.step_traces import step_traces

WINDOW_S = 2.0
STEPS = 20
PAUSE = 2


def main(rounds: int = 30) -> None:
    with LocalCluster({"ps": 1, "worker": 1}, processes=True) as cluster:
        with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", ps_tasks=1)):
            x = tf.placeholder(tf.float32, [None, 256])
            hidden = tf.layers.dense(x, 256, tf.nn.relu)
            loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 10)))
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
        data = np.random.RandomState(0).rand(64, 256).astype(np.float32)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())

            def window(number: int) -> tuple[float, float]:
                """(steps a second, CPU seconds a step)."""
                steps, began, cpu_s = 0, time.perf_counter(), cpu_seconds()
                while time.perf_counter() < began + WINDOW_S:
                    if number and (step_traces.wish is None or step_traces.wish.is_fulfilled):
                        if step_traces.wish is not None:
                            step_traces.found(step_traces.wish.number, forget=True)
                        step_traces.ask(number + steps, STEPS, PAUSE)
                    session.run(train, {x: data})
                    steps += 1
                if step_traces.wish is not None:
                    step_traces.found(step_traces.wish.number, forget=True)
                return steps / (time.perf_counter() - began), (cpu_seconds() - cpu_s) / steps

            window(0)
            rates = []
            for number in range(1, rounds + 1):
                order = (0, number) if number % 2 else (number, 0)
                pair = {bool(each): window(1_000_000 * each) for each in order}
                rates.append((pair[False], pair[True]))
    off, on = (statistics.median(rate for rate, _ in each) for each in zip(*rates, strict=True))
    print(f"medians of {rounds} windows: {off:.1f} steps/s without, {on:.1f} with traces")
    quartiles("time", [1 - on[0] / off[0] for off, on in rates])
    quartiles("CPU time", [on[1] / off[1] - 1 for off, on in rates])
    measures, count = Measures(), 200_000
    traffic = measures.traffic("x", "tcp", "sent")
    began = time.perf_counter()
    for _ in range(count):
        traffic.messages += 1
        traffic.bytes += 5
    print(f"counting a message: {(time.perf_counter() - began) / count * 1e9:.0f} ns")
    began = time.perf_counter()
    for _ in range(count):
        measures.runs.add(0.003)
    print(f"counting a run: {(time.perf_counter() - began) / count * 1e9:.0f} ns")


def quartiles(what: str, costs: list[float]) -> None:
    first, middle, last = statistics.quantiles(costs, n=4)
    print(f"cost in {what} of tracing all the time: median {middle:.1%}, half of the pairs {first:.1%} to {last:.1%}")


def cpu_seconds() -> float:
    """CPU seconds so far of this process and its children that live."""
    threads = Path("/proc/self/task").iterdir()
    children = {child for thread in threads for child in (thread / "children").read_text().split()}
    ticks = 0
    for pid in children:
        values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(values[11]) + int(values[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
