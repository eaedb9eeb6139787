"""A trainer whose sums are known: each step adds one to a variable, to a row of a table, and to the global step.

It ends after so many steps as STEPS says, or when there is a file `done`.
"""

import argparse
import os
import time

import numpy as np

import dtf as tf

parser = argparse.ArgumentParser()
parser.add_argument("--ps_hosts")
parser.add_argument("--worker_hosts")
parser.add_argument("--job_name")
parser.add_argument("--task_index", type=int)
flags = parser.parse_args()

STEPS = int(os.environ.get("STEPS", "400"))
cluster = tf.train.ClusterSpec({"ps": flags.ps_hosts.split(","), "worker": flags.worker_hosts.split(",")})
server = tf.train.Server(cluster, flags.job_name, flags.task_index)
if flags.job_name == "ps":
    server.join()
worker = f"/job:worker/task:{flags.task_index}"
with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=worker)):
    step = tf.train.get_or_create_global_step()
    total = tf.get_variable("total", [5000], initializer=tf.zeros_initializer())
    table = tf.get_variable("table", [1000, 4], initializer=tf.zeros_initializer(), use_resource=True)
    train = tf.group(
        total.assign_add(tf.ones([5000])), table.scatter_add(tf.IndexedSlices(tf.ones([1, 4]), [7])), step.assign_add(1)
    )
last = 0
with tf.train.MonitoredTrainingSession(server.target, is_chief=flags.task_index == 0) as session:
    while last < STEPS and not os.path.exists("done"):
        session.run(train)
        before, last = last, session.run(step)
        assert last > before, f"the global step went from {before} to {last}"
        time.sleep(0.02)
    found = session.run([total, table, step])
time.sleep(1)
if flags.task_index == 1:
    print("sums", sorted(set(np.unique(found[0])) | set(np.unique(found[1][7]))), "at step", found[2], flush=True)
