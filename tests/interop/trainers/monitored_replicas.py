"""Between-graph replication with MonitoredTrainingSession, hooks, partitioned variables and an input queue."""

import numpy as np
import tensorflow as tf

server = tf.train.Server.create_local_server()
random = np.random.RandomState(1)
POINTS = random.normal(size=(12, 4)).astype(np.float32)
with tf.device(tf.train.replica_device_setter(0)):
    x, y = tf.train.batch(tf.train.slice_input_producer([POINTS, POINTS.sum(1)], shuffle=False), 4)
    with tf.variable_scope("model", partitioner=tf.fixed_size_partitioner(2)):
        weights = tf.get_variable("weights", [4, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)[:, 0] - 2 * y))
    step = tf.train.get_or_create_global_step()
    train = tf.train.FtrlOptimizer(0.1).minimize(loss, step)
LOSSES = []


class Recorder(tf.train.SessionRunHook):
    def before_run(self, run_context):
        return tf.train.SessionRunArgs([loss, step])

    def after_run(self, run_context, run_values):
        LOSSES.append(float(run_values.results[0]))


hooks = [Recorder(), tf.train.StopAtStepHook(num_steps=6), tf.train.NanTensorHook(loss)]
with tf.train.MonitoredTrainingSession(master=server.target, hooks=hooks) as session:
    while not session.should_stop():
        session.run(train)
