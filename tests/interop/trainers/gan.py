"""Generator and discriminator, trained in turn, with shared variables and transposed convolutions."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)


def start(shape, seed):
    return tf.constant_initializer(np.random.RandomState(seed).normal(size=shape) * 0.2)


def generator(noise):
    with tf.variable_scope("generator"):
        net = tf.nn.relu(tf.layers.dense(noise, 8, kernel_initializer=start((3, 8), 2)))
        net = tf.reshape(net, [-1, 2, 2, 2])
        return tf.layers.conv2d_transpose(
            net, 1, 3, 2, "same", activation=tf.nn.tanh, kernel_initializer=start((3, 3, 1, 2), 3))  # fmt: skip


def discriminator(images, reuse=False):
    with tf.variable_scope("discriminator", reuse=reuse):
        net = tf.layers.conv2d(
            images, 4, 3, 2, "same", activation=tf.nn.leaky_relu, kernel_initializer=start((3, 3, 1, 4), 4)
        )
        return tf.layers.dense(tf.layers.flatten(net), 1, kernel_initializer=start((16, 1), 5))


noise = tf.placeholder(tf.float32, [None, 3])
images = tf.placeholder(tf.float32, [None, 4, 4, 1])
fake = generator(noise)
real_logits, fake_logits = discriminator(images), discriminator(fake, reuse=True)
entropy = tf.nn.sigmoid_cross_entropy_with_logits
d_loss = tf.reduce_mean(entropy(labels=tf.ones_like(real_logits), logits=real_logits))
d_loss += tf.reduce_mean(entropy(labels=tf.zeros_like(fake_logits), logits=fake_logits))
g_loss = tf.reduce_mean(entropy(labels=tf.ones_like(fake_logits), logits=fake_logits))
d_variables = [each for each in tf.trainable_variables() if each.name.startswith("discriminator")]
g_variables = [each for each in tf.trainable_variables() if each.name.startswith("generator")]
d_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(d_loss, var_list=d_variables)
g_train = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(g_loss, var_list=g_variables)
LOSSES = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        feeds = {noise: random.normal(size=(5, 3)), images: random.normal(size=(5, 4, 4, 1))}
        LOSSES.append(float(session.run([d_loss, d_train], feeds)[0]))
        LOSSES.append(float(session.run([g_loss, g_train], feeds)[0]))
