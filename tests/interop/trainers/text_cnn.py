"""A sentence classifier by convolutions of several widths, with clipped gradients and summaries of them."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(3)


def fixed(shape):
    return tf.constant(random.normal(size=shape).astype(np.float32) * 0.3)


class TextCNN(object):
    def __init__(self, length, classes, vocabulary, size, widths, filters):
        self.input_x = tf.placeholder(tf.int32, [None, length], name="input_x")
        self.input_y = tf.placeholder(tf.float32, [None, classes], name="input_y")
        l2_loss = tf.constant(0.0)
        with tf.device("/cpu:0"), tf.name_scope("embedding"):
            self.W = tf.Variable(fixed([vocabulary, size]), name="W")
            embedded = tf.expand_dims(tf.nn.embedding_lookup(self.W, self.input_x), -1)
        pooled = []
        for width in widths:
            with tf.name_scope("conv-maxpool-%s" % width):
                W = tf.Variable(fixed([width, size, 1, filters]), name="W")
                b = tf.Variable(tf.constant(0.1, shape=[filters]), name="b")
                conv = tf.nn.conv2d(embedded, W, strides=[1, 1, 1, 1], padding="VALID", name="conv")
                h = tf.nn.relu(tf.nn.bias_add(conv, b), name="relu")
                pooled.append(tf.nn.max_pool(
                    h, ksize=[1, length - width + 1, 1, 1], strides=[1, 1, 1, 1], padding="VALID", name="pool"))
        flat = tf.reshape(tf.concat(pooled, 3), [-1, filters * len(widths)])
        with tf.name_scope("output"):
            W = tf.get_variable("W", initializer=fixed([filters * len(widths), classes]))
            b = tf.Variable(tf.constant(0.1, shape=[classes]), name="b")
            l2_loss += tf.nn.l2_loss(W) + tf.nn.l2_loss(b)
            self.scores = tf.nn.xw_plus_b(flat, W, b, name="scores")
        losses = tf.nn.softmax_cross_entropy_with_logits(logits=self.scores, labels=self.input_y)
        self.loss = tf.reduce_mean(losses) + 0.1 * l2_loss
        right = tf.equal(tf.argmax(self.scores, 1), tf.argmax(self.input_y, 1))
        self.accuracy = tf.reduce_mean(tf.cast(right, "float"), name="accuracy")


cnn = TextCNN(9, 3, 20, 6, [2, 3, 4], 4)
global_step = tf.Variable(0, name="global_step", trainable=False)
optimizer = tf.train.AdamOptimizer(1e-2)
pairs = optimizer.compute_gradients(cnn.loss)
pairs = [(tf.clip_by_norm(g, 1.0) if not isinstance(g, tf.IndexedSlices) else g, v) for g, v in pairs]
train_op = optimizer.apply_gradients(pairs, global_step=global_step)
for g, v in pairs:
    tf.summary.scalar("{}/grad/sparsity".format(v.op.name), tf.nn.zero_fraction(tf.convert_to_tensor(g)))
merged = tf.summary.merge_all()
x, y = random.randint(0, 20, (6, 9)), np.eye(3)[[0, 1, 2, 0, 1, 2]]
LOSSES = []
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    sess.run(tf.initialize_all_variables())
    for _ in range(6):
        _, step, loss, accuracy, summary = sess.run(
            [train_op, global_step, cnn.loss, cnn.accuracy, merged], {cnn.input_x: x, cnn.input_y: y})
        LOSSES += [float(loss), float(accuracy)]
    LOSSES.append(float(tf.train.global_step(sess, global_step)))
