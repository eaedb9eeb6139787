"""Each worker adds a tensor of a known pattern to one that the ps holds, until a file named done is there.

The pattern's bytes, PATTERN, are what an eavesdropper would look for.
"""

import os
import sys
import time

import numpy as np

PATTERN = np.full(64, 1.2345678, np.float32)
NAMES = ("total", "steps")


def build(tf):
    """(total, steps): two variables of the ps, by their names known to whoever has a session."""
    with tf.device("/job:ps/task:0"):
        total = tf.Variable(np.zeros((256, 64), np.float32), name=NAMES[0])
        steps = tf.Variable(0, name=NAMES[1])
    return total, steps


def main():
    import json

    import dtf as tf

    if sys.argv[1:2] == ["ask"]:  # as a readiness command: whether somebody of the cluster is answered
        with tf.Session(f"grpc://{sys.argv[2]}") as session:
            sys.exit(not session.list_devices())
    job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
    server = tf.train.Server(json.loads(os.environ["CLUSTER_SPEC"]), job_name=job, task_index=index)
    if job == "ps":
        server.join()
        sys.exit()
    total, steps = build(tf)
    with tf.device(f"/job:worker/task:{index}"):
        pushed = tf.placeholder(tf.float32, [256, 64])
        update = tf.group(total.assign_add(pushed), steps.assign_add(1))
        pulled = tf.identity(total)
    with tf.Session(server.target) as session:
        if index == 0:
            session.run(tf.global_variables_initializer())
        while session.run(tf.report_uninitialized_variables()).size:
            time.sleep(0.05)
        step = 0
        while not os.path.exists("done"):
            step += 1
            print("step", step, flush=True)
            session.run(update, {pushed: np.tile(PATTERN, (256, 1))})
            session.run(pulled)
            time.sleep(0.02)


if __name__ == "__main__":
    main()
