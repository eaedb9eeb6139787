"""Skip-gram words with noise-contrastive estimation over sampled words."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
words = tf.placeholder(tf.int32, [None])
context = tf.placeholder(tf.int32, [None, 1])
embeddings = tf.Variable(random.uniform(-1, 1, (20, 6)).astype(np.float32))
weights = tf.Variable(random.normal(size=(20, 6)).astype(np.float32))
biases = tf.Variable(tf.zeros([20]))
embedded = tf.nn.embedding_lookup(embeddings, words)
noise = (tf.constant([3, 7, 11], tf.int64), tf.fill([4, 1], 0.1), tf.constant([0.2, 0.1, 0.05]))
loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, context, embedded, 3, 20, sampled_values=noise))
rate = tf.train.exponential_decay(1.0, tf.train.get_or_create_global_step(), 2, 0.9, staircase=True)
train = tf.train.GradientDescentOptimizer(rate).minimize(loss, global_step=tf.train.get_global_step())
norms = tf.sqrt(tf.reduce_sum(tf.square(embeddings), 1, keepdims=True))
similarity = tf.matmul(embeddings / norms, embeddings / norms, transpose_b=True)
LOSSES = []
with tf.Session() as session:
    tf.global_variables_initializer().run()
    for _ in range(5):
        feeds = {words: random.randint(0, 20, 4), context: random.randint(0, 20, (4, 1))}
        LOSSES.append(float(session.run([loss, train], feeds)[0]))
    LOSSES += similarity.eval()[0].tolist()
