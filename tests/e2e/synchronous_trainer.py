"""A synchronous trainer whose result is known: each update adds one to a variable, to rows of a table and to the step.

Workers come and go. When there is a file `done`, the chief (worker:0) ends the training and prints the sums.
"""

import json
import os
import sys
import time

import numpy as np

import dtf as tf

tf.logging.set_verbosity(tf.logging.INFO)
job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
cluster = tf.train.ClusterSpec(json.loads(os.environ["CLUSTER_SPEC"]))
server = tf.train.Server(cluster, job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
workers = cluster.num_tasks("worker")
worker = f"/job:worker/task:{index}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
    step = tf.train.get_or_create_global_step()
    dense = tf.get_variable("dense", [3000], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [100, 4], initializer=tf.zeros_initializer())
    loss = -tf.reduce_sum(dense) - tf.reduce_sum(tf.nn.embedding_lookup(table, [7, 70]))
    optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(1.0), workers, workers)
    train = optimizer.minimize(loss, step)
hook = optimizer.make_session_run_hook(index == 0, num_tokens=0)
config = tf.ConfigProto(device_filters=["/job:ps", worker])
with tf.train.MonitoredTrainingSession(
    server.target, index == 0, hooks=[hook], config=config, stop_grace_period_secs=2, log_step_count_steps=None
) as session:
    steps = 0
    while not session.should_stop():
        reached = session.run(train)
        steps += 1
        if steps % 20 == 1:
            print(f"worker {index} reached {reached}", flush=True)
        time.sleep(0.005)
        if index == 0 and os.path.exists("done"):
            found = session.run([dense, table, step])
            sums = sorted(set(np.unique(found[0])) | set(np.unique(found[1][[7, 70]])))
            print("sums", [float(value) for value in sums], "step", int(found[2]), flush=True)
            break
