"""Towers that share variables, averaged gradients, moving averages, and losses in collections."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
IMAGES = random.normal(size=(8, 12, 12, 3)).astype(np.float32)
LABELS = random.randint(0, 4, 8)


def variable(name, shape, decay, seed):
    value = np.random.RandomState(seed).normal(size=shape).astype(np.float32) * 0.1
    made = tf.get_variable(name, shape, initializer=tf.constant_initializer(value))
    tf.add_to_collection("losses", tf.multiply(tf.nn.l2_loss(made), decay, name="weight_loss"))
    return made


def inference(images):
    with tf.variable_scope("conv1"):
        net = tf.nn.conv2d(images, variable("weights", [5, 5, 3, 6], 0.0, 1), [1, 1, 1, 1], "SAME")
        net = tf.nn.relu(tf.nn.bias_add(net, tf.get_variable("biases", [6], initializer=tf.zeros_initializer())))
    net = tf.nn.max_pool(net, [1, 3, 3, 1], [1, 2, 2, 1], "SAME")
    net = tf.nn.lrn(net, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)
    with tf.variable_scope("local"):
        flat = tf.reshape(net, [images.get_shape().as_list()[0], -1])
        return tf.matmul(flat, variable("weights", [216, 4], 0.004, 2))


def tower_loss(scope, images, labels):
    logits = inference(images)
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    tf.add_to_collection("losses", tf.reduce_mean(entropy, name="cross_entropy"))
    return tf.add_n(tf.get_collection("losses", scope), name="total_loss")


global_step = tf.get_variable("global_step", [], tf.int32, initializer=tf.constant_initializer(0), trainable=False)
rate = tf.train.exponential_decay(0.1, global_step, 2, 0.5, staircase=True)
optimizer = tf.train.GradientDescentOptimizer(rate)
tower_gradients, losses = [], []
with tf.variable_scope(tf.get_variable_scope()):
    for index in range(2):
        with tf.device("/cpu:0"), tf.name_scope("tower_%d" % index) as scope:  # noqa: UP031
            part = slice(index * 4, index * 4 + 4)
            loss = tower_loss(scope, tf.constant(IMAGES[part]), tf.constant(LABELS[part]))
            tf.get_variable_scope().reuse_variables()
            losses.append(loss)
            tower_gradients.append(optimizer.compute_gradients(loss))
average = []
for pairs in zip(*tower_gradients):
    stacked = tf.concat([tf.expand_dims(gradient, 0) for gradient, _ in pairs], 0)
    average.append((tf.reduce_mean(stacked, 0), pairs[0][1]))
apply = optimizer.apply_gradients(average, global_step=global_step)
averages = tf.train.ExponentialMovingAverage(0.9, global_step)
with tf.control_dependencies([apply]):
    train = averages.apply(tf.trainable_variables())
LOSSES = []
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        LOSSES += [float(each) for each in session.run([*losses, train])[:2]]
    LOSSES.append(float(np.abs(session.run(averages.average(tf.trainable_variables()[0]))).sum()))
