"""Attention with several heads, masks of the future and of padding, and layer normalization by hand."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(4)


def initializer(shape, dtype=tf.float32, partition_info=None):
    return tf.constant(random.normal(size=[int(d) for d in shape]).astype(np.float32) * 0.2)


def normalize(inputs, epsilon=1e-8, scope="ln", reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        size = inputs.get_shape()[-1:]
        mean, variance = tf.nn.moments(inputs, [-1], keep_dims=True)
        beta = tf.get_variable("beta", size, initializer=tf.zeros_initializer)
        gamma = tf.get_variable("gamma", size, initializer=tf.ones_initializer)
        return gamma * ((inputs - mean) / ((variance + epsilon) ** (.5))) + beta


def multihead_attention(queries, keys, num_units, num_heads=2, scope="multihead_attention"):
    with tf.variable_scope(scope):
        Q = tf.layers.dense(queries, num_units, use_bias=False)
        K = tf.layers.dense(keys, num_units, use_bias=False)
        V = tf.layers.dense(keys, num_units, use_bias=False)
        Q_, K_, V_ = [tf.concat(tf.split(each, num_heads, axis=2), axis=0) for each in (Q, K, V)]
        outputs = tf.matmul(Q_, tf.transpose(K_, [0, 2, 1])) / (K_.get_shape().as_list()[-1] ** 0.5)
        key_masks = tf.tile(tf.sign(tf.reduce_sum(tf.abs(keys), axis=-1)), [num_heads, 1])
        key_masks = tf.tile(tf.expand_dims(key_masks, 1), [1, tf.shape(queries)[1], 1])
        paddings = tf.ones_like(outputs) * (-2 ** 32 + 1)
        outputs = tf.where(tf.equal(key_masks, 0), paddings, outputs)
        tril = tf.linalg.LinearOperatorLowerTriangular(tf.ones_like(outputs[0, :, :])).to_dense()
        masks = tf.tile(tf.expand_dims(tril, 0), [tf.shape(outputs)[0], 1, 1])
        outputs = tf.nn.softmax(tf.where(tf.equal(masks, 0), paddings, outputs))
        outputs = tf.concat(tf.split(tf.matmul(outputs, V_), num_heads, axis=0), axis=2)
        outputs += queries
        return normalize(outputs)


def feedforward(inputs, num_units, scope="ff"):
    with tf.variable_scope(scope):
        outputs = tf.layers.conv1d(inputs=inputs, filters=num_units[0], kernel_size=1, activation=tf.nn.relu)
        outputs = tf.layers.conv1d(inputs=outputs, filters=num_units[1], kernel_size=1)
        return normalize(outputs + inputs)


x = tf.placeholder(tf.int32, shape=(None, 5))
y = tf.placeholder(tf.int32, shape=(None, 5))
with tf.variable_scope("model", initializer=initializer):
    table = tf.get_variable("lookup_table", dtype=tf.float32, shape=[12, 8])
    table = tf.concat((tf.zeros(shape=[1, 8]), table[1:, :]), 0)
    enc = tf.nn.embedding_lookup(table, x) * (8 ** 0.5)
    places = tf.tile(tf.expand_dims(tf.range(tf.shape(x)[1]), 0), [tf.shape(x)[0], 1])
    enc += tf.nn.embedding_lookup(tf.get_variable("positions", [5, 8]), places)
    for i in range(2):
        with tf.variable_scope("blocks_{}".format(i)):
            enc = feedforward(multihead_attention(enc, enc, 8), [16, 8])
    logits = tf.layers.dense(enc, 12)
smoothed = 0.9 * tf.one_hot(y, depth=12) + 0.1 / 12
istarget = tf.to_float(tf.not_equal(y, 0))
loss = tf.nn.softmax_cross_entropy_with_logits_v2(logits=logits, labels=smoothed)
mean_loss = tf.reduce_sum(loss * istarget) / (tf.reduce_sum(istarget))
global_step = tf.train.get_or_create_global_step()
step = tf.to_float(global_step) + 1.0
rate = 0.05 * tf.minimum(step ** -0.5, step * 4 ** -1.5)
train_op = tf.train.AdamOptimizer(rate, beta1=0.9, beta2=0.98, epsilon=1e-8).minimize(mean_loss, global_step)
xs = random.randint(1, 12, (4, 5))
xs[1, 3:] = 0
LOSSES = []
with tf.Session() as sess:
    sess.run(tf.global_variables_initializer())
    for _ in range(6):
        LOSSES.append(float(sess.run([mean_loss, train_op], {x: xs, y: np.roll(xs, -1, 1)})[0]))
