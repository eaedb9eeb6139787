"""Capsules with dynamic routing, in the names of TensorFlow 1.2 (keep_dims, dim)."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(6)
images = random.rand(3, 8, 8, 1).astype(np.float32)
labels = np.array([0, 2, 1])


def squash(vector, epsilon=1e-9):
    squared = tf.reduce_sum(tf.square(vector), -2, keep_dims=True)
    return squared / (1 + squared) / tf.sqrt(squared + epsilon) * vector


def constant(shape, scale):
    return tf.constant_initializer(random.normal(size=shape).astype(np.float32) * scale)


conv = tf.layers.conv2d(
    images, 8, kernel_size=3, strides=2, padding="VALID", activation=tf.nn.relu,
    kernel_initializer=constant([3, 3, 1, 8], 0.4))
capsules = squash(tf.reshape(conv, (3, -1, 4, 1)))
count = capsules.get_shape().as_list()[1]
W = tf.get_variable("Weight", shape=(1, count, 3, 6, 4), initializer=constant((1, count, 3, 6, 4), 0.3))
u = tf.tile(tf.reshape(capsules, [3, count, 1, 4, 1]), [1, 1, 3, 1, 1])
u_hat = tf.matmul(tf.tile(W, [3, 1, 1, 1, 1]), u)
stopped = tf.stop_gradient(u_hat, name="stop_gradient")
b = tf.zeros([3, count, 3, 1, 1])
for iteration in range(3):
    with tf.variable_scope("iter_" + str(iteration)):
        c = tf.nn.softmax(b, dim=2)
        if iteration == 2:
            v = squash(tf.reduce_sum(tf.multiply(c, u_hat), axis=1, keep_dims=True))
        else:
            v = squash(tf.reduce_sum(tf.multiply(c, stopped), axis=1, keep_dims=True))
            b += tf.reduce_sum(stopped * tf.tile(v, [1, count, 1, 1, 1]), axis=3, keep_dims=True)
lengths = tf.reshape(tf.sqrt(tf.reduce_sum(tf.square(v), axis=3, keep_dims=True) + 1e-9), [3, 3])
target = tf.one_hot(labels, depth=3, axis=1, dtype=tf.float32)
present = tf.square(tf.maximum(0., 0.9 - lengths))
missing = tf.square(tf.maximum(0., lengths - 0.1))
loss = tf.reduce_mean(tf.reduce_sum(target * present + 0.5 * (1 - target) * missing, axis=1))
global_step = tf.Variable(0, name="global_step", trainable=False)
train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=global_step)
LOSSES = []
supervisor = tf.train.Supervisor(logdir=None, global_step=global_step, save_model_secs=0, summary_op=None)
with supervisor.managed_session() as sess:
    while global_step.eval(session=sess) < 6:
        LOSSES.append(float(sess.run([loss, train_op])[0]))
