"""The figures: what a client's session.run costs, how fast training programs go, start-up, memory, a ps lost.

`python -m tests.bench.figures RUNTIME [NAME ...]` measures in this process as the client, against tasks in processes
of their own, and prints one JSON object {figure: value}. Units end the names. `compare.py` runs it for both runtimes.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import psutil

from tests.bench.cluster import Tasks, load_runtime, wait_until_listening

TRAINING_SECONDS = 4.0
MEGABYTE = 1_000_000


def seconds_per_call(call: Callable[[], Any], at_least_s: float = 0.5, most_calls: int = 500) -> float:
    """The median time of one call, after one to warm up."""
    call()
    times: list[float] = []
    while (sum(times) < at_least_s or len(times) < 3) and len(times) < most_calls:
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def round_trips(tf: Any, runtime: str) -> dict[str, float]:
    """One worker and one ps; the client is in a third process, as in the design's table."""
    figures: dict[str, float] = {}
    with Tasks(runtime, ps=1, worker=1) as tasks:
        tasks.serve(["ps", "worker"])
        with tf.Graph().as_default():
            with tf.device("/job:worker/task:0"):
                x = tf.placeholder(tf.float32, [])
                plus_one = x + 1.0
            with tf.device("/job:ps/task:0"):
                small = tf.Variable(tf.zeros([100]))
                many = [tf.Variable(tf.zeros([64, 16])) for _ in range(160)]
            with tf.device("/job:worker/task:0"):
                push = small.assign_add(tf.fill([100], x)).op
                pull = tf.identity(small).op
                scaled = [tf.identity(variable) * 0.5 for variable in many]
            exchange = tf.group(*[v.assign(value) for v, value in zip(many, scaled, strict=True)])
            with tf.Session(tasks.target("worker")) as session:
                session.run(tf.global_variables_initializer())
                feed = {x: 1.0}
                figures["x_plus_1_us"] = 1e6 * seconds_per_call(lambda: session.run(plus_one, feed))
                figures["push_100_floats_us"] = 1e6 * seconds_per_call(lambda: session.run(push, feed))
                figures["pull_100_floats_us"] = 1e6 * seconds_per_call(lambda: session.run(pull))
                figures["exchange_160_variables_ms"] = 1e3 * seconds_per_call(lambda: session.run(exchange))
    return figures


def bandwidth(tf: Any, runtime: str) -> dict[str, float]:
    """Large tensors between ps and worker, and between client and worker, in MB/s."""
    figures: dict[str, float] = {}
    for size_mb in (1, 16, 100):
        with Tasks(runtime, ps=1, worker=1) as tasks:
            tasks.serve(["ps", "worker"])
            for name, seconds in transfer_times(tf, tasks.target("worker"), size_mb).items():
                figures[f"{name}_{size_mb}_mb_mb_per_s"] = size_mb / seconds
    return figures


def transfer_times(tf: Any, target: str, size_mb: float) -> dict[str, float]:
    """Seconds for one tensor of `size_mb` to go each way."""
    count = int(size_mb * MEGABYTE) // 4
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            on_ps = tf.Variable(tf.zeros([count]))
        with tf.device("/job:worker/task:0"):
            on_worker = tf.Variable(tf.zeros([count]))
            fed = tf.placeholder(tf.float32, [count])
            take = tf.identity(fed).op
            pull = tf.identity(on_ps).op
            fetched = tf.identity(on_worker)
        push = on_ps.assign(on_worker).op
        with tf.Session(target) as session:
            session.run(tf.global_variables_initializer())
            data = np.zeros(count, np.float32)
            calls: dict[str, Callable[[], Any]] = {"push": lambda: session.run(push), "pull": lambda: session.run(pull)}
            if size_mb == 100:
                calls["feed"] = lambda: session.run(take, {fed: data})
                calls["fetch"] = lambda: session.run(fetched)
            return {name: seconds_per_call(call, most_calls=30) for name, call in calls.items()}


def training(model: str, mode: str = "async") -> Callable[[Any, str], dict[str, float]]:
    """Global steps per second of 2 workers with 2 ps, or in a ring."""

    def measure(tf: Any, runtime: str) -> dict[str, float]:
        servers = {} if mode == "ring" else {"ps": 2}
        with Tasks(runtime, **servers, worker=2) as tasks:
            tasks.serve(list(servers))
            chief = tasks.start("worker", 0, model, str(TRAINING_SECONDS), mode)
            tasks.start("worker", 1, model, str(TRAINING_SECONDS), mode)
            return {f"{model}_{mode}_steps_per_s": report(chief)["steps_per_s"]}

    return measure


def ps_lost(tf: Any, runtime: str) -> dict[str, float]:
    """The longest pause between two steps when a ps is killed and started again at once."""
    with tempfile.TemporaryDirectory() as folder, Tasks(runtime, ps=1, worker=1) as tasks:
        tasks.serve(["ps"])
        chief = tasks.start("worker", 0, "linear", "12", "gaps", folder)
        assert chief.stdout is not None and chief.stdout.readline().strip() == "training"
        time.sleep(3)
        victim = tasks.processes["ps", 0]
        victim.kill()
        victim.wait()
        tasks.start("ps", 0)
        return {"ps_lost_pause_s": report(chief)["longest_pause_s"]}


def start_up(tf: Any, runtime: str) -> dict[str, float]:
    """Seconds until two servers answer a client that is loaded already, and the memory of an idle one."""
    with Tasks(runtime, ps=1) as tasks:
        tasks.serve(["ps"])
        with tf.Graph().as_default(), tf.Session(tasks.target("ps")) as session:
            session.run(tf.constant(1.0))
    with Tasks(runtime, ps=1, worker=1) as tasks:
        began = time.perf_counter()
        first = tasks.start("ps", 0)
        tasks.start("worker", 0)
        for job in ("ps", "worker"):
            wait_until_listening(tasks.cluster[job][0])
        for job in ("ps", "worker"):
            with tf.Graph().as_default(), tf.Session(tasks.target(job)) as session:
                session.run(tf.constant(1.0))
        elapsed = time.perf_counter() - began
        return {
            "two_servers_started_s": elapsed,
            "idle_server_memory_mb": psutil.Process(first.pid).memory_info().rss / MEGABYTE,
        }


def report(process: Any) -> dict[str, float]:
    """The JSON line that a chief prints."""
    for line in process.stdout:
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError(f"the chief ended with status {process.wait()} before it reported")


FIGURES: dict[str, Callable[[Any, str], dict[str, float]]] = {
    "round_trips": round_trips,
    "bandwidth": bandwidth,
    "linear": training("linear"),
    "embedding": training("embedding"),
    "mlp": training("mlp"),
    "mlp_sync": training("mlp", "sync"),
    "mlp_ring": training("mlp", "ring"),
    "convnet": training("convnet"),
    "start_up": start_up,
    "ps_lost": ps_lost,
}


def main(runtime: str, *names: str) -> None:
    tf = load_runtime(runtime)
    figures: dict[str, float | str] = {}
    for name in names or FIGURES:
        try:
            figures.update(FIGURES[name](tf, runtime))
        except Exception as error:  # one figure that fails must not hide the others
            figures[name] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    print(json.dumps(figures))


if __name__ == "__main__":
    main(*sys.argv[1:])
