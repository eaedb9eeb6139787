"""A between-graph trainer whose result can be checked exactly: each step of a worker adds one to its own counter.

A worker ends with SIGTERM, or when there is a file `done`, after the step that it is in, and says how many steps were
confirmed to it. The chief (worker:0) then also says what the ps has counted.
"""

import json
import os
import signal
import sys
import time

import dtf as tf

WORKERS_MAX = 64

job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
spec = json.loads(os.environ["CLUSTER_SPEC"])
server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
is_asked = []
signal.signal(signal.SIGTERM, lambda *_: is_asked.append(True))
with tf.device("/job:ps/task:0"):
    counts = tf.get_variable("counts", [WORKERS_MAX], tf.int64, tf.zeros_initializer())
step = tf.scatter_add(counts, [index], tf.constant([1], tf.int64))
with tf.Session(server.target) as session:
    if index == 0:
        session.run(counts.initializer)
    while not session.run(tf.is_variable_initialized(counts)):
        time.sleep(0.05)
    before = int(session.run(counts)[index])
    confirmed = 0
    while not is_asked and not os.path.exists("done"):
        session.run(step)
        confirmed += 1
        if confirmed == 1:
            print(f"first step at {time.time():.3f}", flush=True)
        time.sleep(0.01)
    print(f"worker {index} confirmed {before + confirmed}", flush=True)
    if index == 0:
        while not os.path.exists("counted"):
            time.sleep(0.05)
        print("counted", json.dumps(session.run(counts).tolist()), flush=True)
