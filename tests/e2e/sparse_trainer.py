"""A between-graph program whose workers know of the parameter servers and themselves only; on dtf or TensorFlow.

Adds one to a shared counter until it has reached 10 times the number of workers that take part. Arguments: the
runtime, and the number of workers.
"""

import json
import os
import sys
import time

if sys.argv[1] == "tensorflow":
    import tensorflow.compat.v1 as tf

    tf.disable_v2_behavior()
else:
    import dtf as tf

job, index = os.environ["JOB_NAME"], int(os.environ["TASK_INDEX"])
spec = json.loads(os.environ["CLUSTER_SPEC"])
server = tf.train.Server(tf.train.ClusterSpec(spec), job_name=job, task_index=index)
if job == "ps":
    server.join()
    sys.exit()
with tf.device("/job:ps/task:0"):
    counter = tf.Variable(0, name="counter")
    done = tf.assign_add(counter, 1)
    arrived = tf.Variable([0] * int(sys.argv[2]), name="arrived")
arrive = tf.scatter_update(arrived, [index], [1])
with tf.Session(server.target) as session:
    if index == 0:
        session.run(tf.variables_initializer([counter, arrived]))
    while not session.run(tf.is_variable_initialized(arrived)):
        time.sleep(0.05)
    session.run(arrive)
    for _ in range(10):
        session.run(done)
    while session.run(counter) < 10 * int(sys.argv[2]):
        time.sleep(0.05)
    print("knows", sorted(spec), "workers", spec["worker"], "counted", session.run(counter), flush=True)
