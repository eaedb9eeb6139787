"""A training with a fault that `dtfctl explain` or the page is to find: hot, slow, large, small, uneven.

hot: nearly all bytes lie on ps:0. slow: worker 1 computes much more for each step. large: one variable is most of what
moves. small: a step has next to nothing to compute. uneven: ps:0 computes for all steps, and worker 1 makes a pause
before each step.
"""

import json
import os
import sys
import time

import numpy as np

import dtf as tf

CASE = sys.argv[1]
SIZES = {
    "hot": {"table": (0, 1024), "first": (1, 8), "second": (1, 8)},
    "slow": {"weights": (0, 8)},
    "large": {"table": (0, 1536), "rest": (0, 8)},
    "small": {"weights": (0, 8)},
    "uneven": {"weights": (0, 8), "others": (1, 8)},
}
"""Of each variable (the ps that has it, rows of 1024 numbers)."""


def main():
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    server = tf.train.Server(json.loads(os.environ["CLUSTER_SPEC"]), job_name=job, task_index=index)
    if job == "ps":
        server.join()
        return
    variables = []
    for name, (ps, rows) in SIZES[CASE].items():
        with tf.device(f"/job:ps/task:{ps}"):
            variables.append(tf.get_variable(name, [rows, 1024], initializer=tf.zeros_initializer()))
    with tf.device("/job:ps/task:0"):
        step = tf.train.get_or_create_global_step()
    with tf.device(f"/job:worker/task:{index}"):
        x = tf.placeholder(tf.float32, [8, 1024], name="x")
        loss = tf.add_n([tf.reduce_mean(each) for each in variables]) * tf.reduce_mean(x)
        extra = x
        if CASE == "slow" and index == 1:
            wide = tf.random_uniform([1024, 1024])
            for _ in range(4):
                wide = tf.matmul(wide, wide) / 1024.0
            extra = tf.reduce_mean(wide)
        with tf.control_dependencies([extra]):
            train = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    if CASE == "uneven":
        with tf.device("/job:ps/task:0"):
            wide = tf.random_uniform([512, 512])
            for _ in range(3):
                wide = tf.matmul(wide, wide) / 512.0
            train = tf.group(train, tf.reduce_mean(wide))
    hooks = [tf.train.StopAtStepHook(last_step=1_000_000)]
    config = tf.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{index}"])
    data = np.random.RandomState(index).rand(8, 1024).astype(np.float32)
    with tf.train.MonitoredTrainingSession(server.target, is_chief=index == 0, hooks=hooks, config=config) as session:
        while not session.should_stop():
            if CASE == "uneven" and index == 1:
                time.sleep(0.5)
            session.run(train, {x: data})


if __name__ == "__main__":
    main()
