"""A training with a trouble that the page is to find: queue, diverge, straggler, pause, saves, network.

queue: worker 0 waits for a queue that nobody fills. diverge: the learning rate is far too large, and the loss grows
without ever being NaN. straggler: workers that average their gradients in a ring, and worker 1 computes much more.
pause: the same, and worker 1 makes a pause before each step. saves: a checkpoint every two seconds, on a disk
that takes a second for each file. network: nothing is wrong with the program.
"""

import json
import os
import sys
import time

import numpy as np

import dtf as tf
from dtf.wire import filesystems

CASE, FOLDER = sys.argv[1], sys.argv[2]
sync = filesystems.sync


def write_slowly(file):
    time.sleep(1.0)
    sync(file)


def main():
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    cluster = json.loads(os.environ["CLUSTER_SPEC"])
    server = tf.train.Server(cluster, job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    workers = len(cluster["worker"])
    is_ring = CASE in ("straggler", "pause")
    with tf.device(f"/job:worker/task:{index}" if is_ring else f"/job:ps/task:{len(cluster['ps']) - 1}"):
        w = tf.get_variable("w", [1024], initializer=tf.ones_initializer())
        step = tf.train.get_or_create_global_step()
        queue = tf.FIFOQueue(10, [tf.float32], [[]], shared_name="input", name="input")
    with tf.device(f"/job:worker/task:{index}"):
        x = tf.placeholder(tf.float32, [8, 1024], name="x")
        value = queue.dequeue() if CASE == "queue" else tf.constant(1.0)
        extra = value
        if CASE == "straggler" and index == 1:
            wide = tf.random_uniform([700, 700])
            for _ in range(12):
                wide = tf.matmul(wide, wide) / 700.0
            extra = tf.reduce_mean(wide)
        with tf.control_dependencies([extra]):
            loss = tf.reduce_mean(tf.square(tf.tensordot(x, w, 1)))
        data = np.random.RandomState(index).rand(8, 1024).astype(np.float32)
        # Beyond 2 / (largest curvature) each step makes the error larger: by 2 % with this rate.
        curvature = 2 / 8 * np.linalg.norm(data, 2) ** 2
        rate = 2.02 / curvature if CASE == "diverge" else 1e-5
        optimizer = tf.train.GradientDescentOptimizer(rate)
        hooks = [tf.train.StopAtStepHook(last_step=1_000_000)]
        if is_ring:
            optimizer = tf.train.AllReduceOptimizer(optimizer, workers)
            hooks.append(optimizer.make_session_run_hook(index == 0, last_step=1_000_000))
        train = optimizer.minimize(loss, global_step=step)
    tf.summary.scalar("loss", loss)
    secs = 2 if CASE == "saves" else 600
    with tf.train.MonitoredTrainingSession(
        server.target, is_chief=index == 0, checkpoint_dir=FOLDER, hooks=hooks, save_checkpoint_secs=secs,
        save_summaries_steps=2,
        config=None if is_ring else tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"]),
    ) as session:  # fmt: skip
        while not session.should_stop():
            if CASE == "pause" and index == 1:
                time.sleep(0.4)
            if CASE == "diverge":
                time.sleep(0.1)
            session.run(train, {x: data})


if __name__ == "__main__":
    if CASE == "saves":
        filesystems.sync = write_slowly
    main()
