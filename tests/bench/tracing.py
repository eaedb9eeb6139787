"""What counting and tracing cost a training: `python -m tests.bench.tracing`.

One ps and one worker in processes of their own train a small net from this process; windows without and with a wish
for traces take turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import statistics
import sys
import time

import numpy as np

import dtf as tf
from dtf.testing import LocalCluster
from dtf.wire.measures import Measures
from dtf.wire.step_traces import step_traces

WINDOW_S = 4.0
STEPS = 20
PAUSE = 2


def main(rounds: int = 8) -> None:
    with LocalCluster({"ps": 1, "worker": 1}, processes=True) as cluster:
        with tf.device(tf.train.replica_device_setter(worker_device="/job:worker/task:0", ps_tasks=1)):
            x = tf.placeholder(tf.float32, [None, 256])
            hidden = tf.layers.dense(x, 256, tf.nn.relu)
            loss = tf.reduce_mean(tf.square(tf.layers.dense(hidden, 10)))
            train = tf.train.AdamOptimizer(0.01).minimize(loss)
        data = np.random.RandomState(0).rand(64, 256).astype(np.float32)
        with tf.Session(cluster.target("worker")) as session:
            session.run(tf.global_variables_initializer())

            def window(number: int) -> float:
                steps, began = 0, time.perf_counter()
                while time.perf_counter() < began + WINDOW_S:
                    if number and (step_traces.wish is None or step_traces.wish.is_fulfilled):
                        step_traces.ask(number + steps, STEPS, PAUSE)
                    session.run(train, {x: data})
                    steps += 1
                step_traces.wish = None
                return steps / (time.perf_counter() - began)

            window(0)
            rates = [(window(0), window(1_000_000 * round_number)) for round_number in range(1, rounds + 1)]
    for off, on in rates:
        print(f"{off:8.1f} steps/s without, {on:8.1f} with traces")
    cost = statistics.median(1 - on / off for off, on in rates)
    print(f"median cost of tracing all the time: {cost:.1%}")
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
