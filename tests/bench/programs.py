"""The training programs that are timed: between-graph replication in MonitoredTrainingSession, made-up data.

The same code builds the graph on dtf and on TensorFlow. Each worker trains until its parent closes it; the chief
prints one JSON line with the global steps per second of the timed part.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from typing import Any

import numpy as np

from tests.bench.cluster import ROOT

WARM_UP_STEPS = 20


def linear(tf: Any, random: np.random.RandomState):
    """A linear model of 100 inputs, batch 32."""
    x = tf.placeholder(tf.float32, [None, 100])
    y = tf.placeholder(tf.float32, [None, 1])
    w = tf.get_variable("w", [100, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    feed = {x: random.randn(32, 100).astype(np.float32), y: random.randn(32, 1).astype(np.float32)}
    return loss, feed, tf.train.GradientDescentOptimizer(0.01)


def embedding(tf: Any, random: np.random.RandomState):
    """200,000 rows of 64 in two partitions, 256 x 20 ids a step, sparse updates."""
    ids = tf.placeholder(tf.int64, [256, 20])
    table = tf.get_variable(
        "table",
        [200_000, 64],
        initializer=tf.zeros_initializer(),
        partitioner=tf.fixed_size_partitioner(2),
    )
    rows = tf.nn.embedding_lookup(table, ids)
    loss = tf.reduce_mean(tf.square(tf.reduce_sum(rows, 1) - 1.0))
    return loss, {ids: random.randint(0, 200_000, [256, 20])}, tf.train.GradientDescentOptimizer(0.01)


def mlp(tf: Any, random: np.random.RandomState):
    """784-512-512-10, batch 64."""
    x = tf.placeholder(tf.float32, [64, 784])
    y = tf.placeholder(tf.int64, [64])
    net = x
    for number, (fan_in, fan_out) in enumerate([(784, 512), (512, 512), (512, 10)]):
        w = tf.get_variable(f"w{number}", [fan_in, fan_out], initializer=tf.truncated_normal_initializer(stddev=0.05))
        b = tf.get_variable(f"b{number}", [fan_out], initializer=tf.zeros_initializer())
        net = tf.matmul(net, w) + b
        if number < 2:
            net = tf.nn.relu(net)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=net))
    feed = {x: random.rand(64, 784).astype(np.float32), y: random.randint(0, 10, [64])}
    return loss, feed, tf.train.GradientDescentOptimizer(0.01)


def convnet(tf: Any, random: np.random.RandomState):
    """Two 5x5 convolutions (16 and 32 filters) with pooling on 28x28x1, a dense layer, batch 64."""
    x = tf.placeholder(tf.float32, [64, 28, 28, 1])
    y = tf.placeholder(tf.int64, [64])
    net = x
    for number, (channels, filters) in enumerate([(1, 16), (16, 32)]):
        kernel = tf.get_variable(
            f"kernel{number}", [5, 5, channels, filters], initializer=tf.truncated_normal_initializer(stddev=0.1)
        )
        bias = tf.get_variable(f"bias{number}", [filters], initializer=tf.zeros_initializer())
        net = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(net, kernel, [1, 1, 1, 1], "SAME"), bias))
        net = tf.nn.max_pool(net, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    net = tf.reshape(net, [64, 7 * 7 * 32])
    w = tf.get_variable("w", [7 * 7 * 32, 10], initializer=tf.truncated_normal_initializer(stddev=0.05))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(net, w)))
    feed = {x: random.rand(64, 28, 28, 1).astype(np.float32), y: random.randint(0, 10, [64])}
    return loss, feed, tf.train.GradientDescentOptimizer(0.01)


MODELS = {"linear": linear, "embedding": embedding, "mlp": mlp, "convnet": convnet}


def train(
    tf: Any, server: Any, cluster: Any, index: int, model: str, seconds: str, mode: str = "async", folder: str = ""
) -> None:
    """Trains for `seconds` after the warm-up and reports; a worker that is not the chief goes on until killed.

    mode: async, sync (SyncReplicasOptimizer over all workers), ring (AllReduceOptimizer, without ps), or gaps (reports
    the longest pause between steps).
    """
    is_chief = index == 0
    workers = cluster.num_tasks("worker")
    worker = f"/job:worker/task:{index}"
    setter = tf.train.replica_device_setter(worker_device=worker, cluster=cluster)
    with tf.device(worker if mode == "ring" else setter):
        global_step = tf.train.get_or_create_global_step()
        loss, feed, optimizer = MODELS[model](tf, np.random.RandomState(index))
        hooks = []
        if mode == "sync":
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, workers, workers)
            hooks.append(optimizer.make_session_run_hook(is_chief))
        elif mode == "ring":
            optimizer = _all_reduce(tf)(optimizer, workers)
            hooks.append(optimizer.make_session_run_hook(is_chief))
        train_op = optimizer.minimize(loss, global_step=global_step)
    with tf.train.MonitoredTrainingSession(
        master=server.target,
        is_chief=is_chief,
        checkpoint_dir=folder or None,
        hooks=hooks,
        save_checkpoint_secs=1 if folder else None,
        save_summaries_steps=None,
        save_summaries_secs=None,
        log_step_count_steps=None,
    ) as session:
        for _ in range(WARM_UP_STEPS):
            session.run(train_op, feed)
        began, first = time.perf_counter(), int(session.run(global_step))
        last, longest = began, 0.0
        print("training", flush=True)
        while True:
            session.run(train_op, feed)
            now = time.perf_counter()
            longest, last = max(longest, now - last), now
            if is_chief and now - began > float(seconds):
                steps = int(session.run(global_step)) - first
                print(json.dumps({"steps_per_s": steps / (now - began), "longest_pause_s": longest}), flush=True)
                break


def _all_reduce(tf: Any) -> Any:
    """The optimizer of rings; for TensorFlow the one that clusters/ring makes of its operations."""
    if hasattr(tf.train, "AllReduceOptimizer"):
        return tf.train.AllReduceOptimizer
    sys.path.insert(0, str(ROOT / "clusters" / "ring"))
    return importlib.import_module("tensorflow_ring").AllReduceOptimizer
