"""Translation of sequences: a bidirectional encoder, a decoder with attention unrolled in a loop, masked losses."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)
source = tf.placeholder(tf.int32, [None, None])
target = tf.placeholder(tf.int32, [None, None])
lengths = tf.placeholder(tf.int32, [None])
table = tf.get_variable("table", initializer=random.normal(size=(9, 5)).astype(np.float32))
with tf.variable_scope("model", initializer=tf.constant_initializer(0.11)):
    cells = [tf.nn.rnn_cell.GRUCell(6), tf.nn.rnn_cell.LSTMCell(6)]
    outputs, _ = tf.nn.bidirectional_dynamic_rnn(
        cells[0], cells[1], tf.nn.embedding_lookup(table, source), lengths, dtype=tf.float32)  # fmt: skip
    memory = tf.concat(outputs, 2)
    mask = tf.sequence_mask(lengths, tf.shape(memory)[1], tf.float32)
    query_weights = tf.get_variable("query", [7, 12])
    cell = tf.nn.rnn_cell.DropoutWrapper(tf.nn.rnn_cell.BasicLSTMCell(7), output_keep_prob=1.0)
    projection = tf.layers.Dense(9, kernel_initializer=tf.constant_initializer(random.normal(size=(19, 9))))
    inputs = tf.transpose(tf.nn.embedding_lookup(table, target), [1, 0, 2])
    steps = tf.shape(inputs)[0]

    def step(time, state, logits):
        output, state = cell(inputs[time], state)
        scores = tf.einsum("bd,btd->bt", tf.matmul(output, query_weights), memory) + (1.0 - mask) * -1e9
        context = tf.reduce_sum(tf.expand_dims(tf.nn.softmax(scores), 2) * memory, 1)
        return time + 1, state, logits.write(time, projection(tf.concat([output, context], 1)))

    first = cell.zero_state(tf.shape(source)[0], tf.float32)
    array = tf.TensorArray(tf.float32, steps)
    _, _, array = tf.while_loop(lambda time, *_: time < steps, step, (tf.constant(0), first, array))
logits = tf.transpose(array.stack(), [1, 0, 2])
weights = tf.cast(tf.not_equal(target, 0), tf.float32)
losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=logits) * weights
loss = tf.reduce_sum(losses) / tf.reduce_sum(weights)
gradients, variables = zip(*tf.train.AdamOptimizer(0.01).compute_gradients(loss))
clipped, norm = tf.clip_by_global_norm(gradients, 1.0)
train = tf.train.AdamOptimizer(0.01).apply_gradients(zip(clipped, variables))
LOSSES = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(4):
        feeds = {source: random.randint(1, 9, (3, 5)), target: random.randint(0, 9, (3, 4)), lengths: [5, 3, 4]}
        LOSSES += [float(each) for each in session.run([loss, norm, train], feeds)[:2]]
