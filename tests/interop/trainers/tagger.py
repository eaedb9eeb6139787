"""A tagger of words: two directions of LSTM cells, sequence lengths, clipped gradients, a falling rate, checkpoints."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_integer("tagger_hidden", 5, "size of the cells")
FLAGS = tf.app.flags.FLAGS
random = np.random.RandomState(0)
words = random.randint(1, 15, (24, 7)).astype(np.int32)
lengths = random.randint(3, 8, 24).astype(np.int32)
tags = (words % 3).astype(np.int32)


def initializer(shape, dtype=tf.float32, partition_info=None):
    return tf.constant(0.3 * np.random.RandomState(int(shape[0])).normal(size=[int(d) for d in shape]), dtype)


def model(features, labels, lengths, is_training):
    with tf.variable_scope("tagger", reuse=tf.AUTO_REUSE, initializer=initializer):
        table = tf.get_variable("table", [15, 4])
        inputs = tf.nn.embedding_lookup(table, features)
        keep = 1.0
        cells = [tf.nn.rnn_cell.LSTMCell(5, state_is_tuple=True, use_peepholes=True) for _ in range(2)]
        cells = [tf.nn.rnn_cell.DropoutWrapper(cell, output_keep_prob=keep) for cell in cells]
        (forward, backward), _ = tf.nn.bidirectional_dynamic_rnn(
            cells[0], cells[1], inputs, sequence_length=lengths, dtype=tf.float32)  # fmt: skip
        outputs = tf.concat([forward, backward], 2)
        w = tf.get_variable("w", [10, 3])
        logits = tf.reshape(tf.matmul(tf.reshape(outputs, [-1, 10]), w), [-1, tf.shape(features)[1], 3])
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        mask = tf.sequence_mask(lengths, tf.shape(features)[1], dtype=tf.float32)
        loss = tf.reduce_sum(losses * mask) / tf.reduce_sum(mask)
        right = tf.cast(tf.equal(tf.argmax(logits, 2, output_type=tf.int32), labels), tf.float32)
        return loss, tf.reduce_sum(right * mask) / tf.reduce_sum(mask)


global_step = tf.Variable(0, name="global_step", trainable=False)
x = tf.placeholder(tf.int32, [None, None])
y = tf.placeholder(tf.int32, [None, None])
n = tf.placeholder(tf.int32, [None])
loss, accuracy = model(x, y, n, True)
rate = tf.train.exponential_decay(0.5, global_step, 4, 0.8, staircase=True)
variables = tf.trainable_variables()
gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
train = tf.train.MomentumOptimizer(rate, 0.9).apply_gradients(zip(gradients, variables), global_step=global_step)
saver = tf.train.Saver(max_to_keep=2, keep_checkpoint_every_n_hours=1)
folder = tempfile.mkdtemp()
LOSSES = []
with tf.Session() as sess:
    sess.run([tf.global_variables_initializer(), tf.tables_initializer()])
    for _ in range(5):
        feed = {x: words, y: tags, n: lengths}
        value, right, _, step = sess.run([loss, accuracy, train, global_step], feed_dict=feed)
        LOSSES.append(float(value))
        saver.save(sess, os.path.join(folder, "tagger"), global_step=step)
with tf.Session() as sess:
    state = tf.train.get_checkpoint_state(folder)
    saver.restore(sess, state.model_checkpoint_path)
    LOSSES.extend([float(loss.eval({x: words, y: tags, n: lengths})), float(len(state.all_model_checkpoint_paths))])
shutil.rmtree(folder)
