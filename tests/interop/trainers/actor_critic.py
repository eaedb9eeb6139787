"""Deterministic policy gradients: target networks, gradients of gradients' outputs, and averages by a custom getter."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(8)
S = tf.placeholder(tf.float32, [None, 3], "s")
S_ = tf.placeholder(tf.float32, [None, 3], "s_")
R = tf.placeholder(tf.float32, [None, 1], "r")
values = {}


def initial(shape, dtype=None, partition_info=None):
    return tf.constant(random.normal(0.0, 0.3, [int(d) for d in shape]).astype(np.float32))


def build_a(s, reuse=None, custom_getter=None):
    trainable = True if reuse is None else False
    with tf.variable_scope("Actor", reuse=reuse, custom_getter=custom_getter):
        net = tf.layers.dense(s, 8, activation=tf.nn.relu, name="l1", trainable=trainable, kernel_initializer=initial)
        a = tf.layers.dense(net, 2, activation=tf.nn.tanh, name="a", trainable=trainable, kernel_initializer=initial)
        return tf.multiply(a, [1.0, 2.0], name="scaled_a")


def build_c(s, a, reuse=None, custom_getter=None):
    trainable = True if reuse is None else False
    with tf.variable_scope("Critic", reuse=reuse, custom_getter=custom_getter):
        w1_s = tf.get_variable("w1_s", [3, 8], initializer=initial, trainable=trainable)
        w1_a = tf.get_variable("w1_a", [2, 8], initializer=initial, trainable=trainable)
        b1 = tf.get_variable("b1", [1, 8], initializer=tf.zeros_initializer(), trainable=trainable)
        net = tf.nn.relu(tf.matmul(s, w1_s) + tf.matmul(a, w1_a) + b1)
        return tf.layers.dense(net, 1, trainable=trainable, kernel_initializer=initial)


a = build_a(S)
q = build_c(S, a)
a_params = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Actor")
c_params = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope="Critic")
ema = tf.train.ExponentialMovingAverage(decay=1 - 0.01)


def ema_getter(getter, name, *args, **kwargs):
    return ema.average(getter(name, *args, **kwargs))


target_update = [ema.apply(a_params), ema.apply(c_params)]
a_ = build_a(S_, reuse=True, custom_getter=ema_getter)
q_ = build_c(S_, a_, reuse=True, custom_getter=ema_getter)
a_loss = -tf.reduce_mean(q)
atrain = tf.train.AdamOptimizer(0.01).minimize(a_loss, var_list=a_params)
td_error = tf.losses.mean_squared_error(labels=R + 0.9 * q_, predictions=q)
ctrain = tf.train.AdamOptimizer(0.02).minimize(td_error, var_list=c_params)
sess = tf.InteractiveSession()
tf.global_variables_initializer().run()
LOSSES = []
for _ in range(5):
    bs, bs_, br = random.rand(4, 3), random.rand(4, 3), random.rand(4, 1)
    actions = a.eval({S: bs[:1]})[0]
    sess.run(target_update)
    sess.run(atrain, {S: bs})
    loss, _ = sess.run([td_error, ctrain], {S: bs, a: random.rand(4, 2), R: br, S_: bs_})
    LOSSES += [float(loss), float(np.abs(actions).sum())]
sess.close()
