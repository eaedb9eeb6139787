"""A small U-Net with crops of unknown sizes and a dice loss; then a critic with a penalty of its gradient."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(10)


def variable(shape):
    return tf.Variable(random.normal(size=shape).astype(np.float32) * 0.3)


def crop_and_concat(x1, x2):
    x1_shape, x2_shape = tf.shape(x1), tf.shape(x2)
    offsets = [0, (x1_shape[1] - x2_shape[1]) // 2, (x1_shape[2] - x2_shape[2]) // 2, 0]
    size = [-1, x2_shape[1], x2_shape[2], -1]
    return tf.concat([tf.slice(x1, offsets, size), x2], 3)


x = tf.placeholder("float", shape=[None, None, None, 2], name="x")
y = tf.placeholder("float", shape=[None, None, None, 2], name="y")
conv = tf.nn.relu(tf.nn.conv2d(x, variable([3, 3, 2, 4]), strides=[1, 1, 1, 1], padding="VALID"))
pool = tf.nn.max_pool(conv, ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
deep = tf.nn.relu(tf.nn.conv2d(pool, variable([3, 3, 4, 8]), strides=[1, 1, 1, 1], padding="SAME"))
shape = tf.shape(deep)
output_shape = tf.stack([shape[0], shape[1] * 2, shape[2] * 2, shape[3] // 2])
up = tf.nn.conv2d_transpose(deep, variable([2, 2, 4, 8]), output_shape, strides=[1, 2, 2, 1], padding="VALID")
logits = tf.nn.conv2d(crop_and_concat(conv, up), variable([1, 1, 8, 2]), [1, 1, 1, 1], "SAME")
exponential = tf.exp(logits)
softmax = tf.div(exponential, tf.tile(tf.reduce_sum(exponential, 3, keep_dims=True), tf.stack([1, 1, 1, 2])))
dice = -(2 * tf.reduce_sum(softmax * y) / (1e-5 + tf.reduce_sum(softmax) + tf.reduce_sum(y)))
gradients = tf.gradients(dice, tf.trainable_variables())
norms = tf.Variable(tf.constant(0.0, shape=[len(gradients)]), trainable=False)
train_net = tf.train.MomentumOptimizer(learning_rate=0.2, momentum=0.2).minimize(dice)
update = tf.assign(norms, [tf.norm(g) for g in gradients])

real, noise = random.normal(size=(5, 4)).astype(np.float32), random.normal(size=(5, 3)).astype(np.float32)
generator, hidden, last = variable([3, 4]), variable([4, 6]), variable([6, 1])


def critic(inputs):
    return tf.matmul(tf.nn.leaky_relu(tf.matmul(inputs, hidden)), last)


fake = tf.matmul(noise, generator)
between = real + np.linspace(0, 1, 5).astype(np.float32)[:, None] * (fake - real)
slopes = tf.sqrt(tf.reduce_sum(tf.square(tf.gradients(critic(between), [between])[0]), reduction_indices=[1]))
penalty = tf.reduce_mean((slopes - 1.) ** 2)
cost = tf.reduce_mean(critic(fake)) - tf.reduce_mean(critic(real)) + 10 * penalty
train_critic = tf.train.RMSPropOptimizer(1e-2, decay=0.9).minimize(cost, var_list=[hidden, last])
with tf.control_dependencies([train_critic]):
    clip = [p.assign(tf.clip_by_value(p, -0.5, 0.5)) for p in [hidden, last]]
images = random.rand(1, 10, 10, 2)
masks = np.eye(2)[random.randint(0, 2, (1, 8, 8))]
LOSSES = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(4):
        loss, _ = sess.run([dice, update], {x: images, y: masks})
        LOSSES += [float(loss), *map(float, sess.run(norms))]
        sess.run(train_net, {x: images, y: masks})
        LOSSES.append(float(sess.run([cost, train_critic])[0]))
        sess.run(clip)
