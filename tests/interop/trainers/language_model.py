"""A stacked LSTM unrolled by hand with shared variables, decayed rates and a state that is fed from step to step."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(7)
words = random.randint(0, 10, 61)


class Config(object):
    batch, steps, size, layers, vocabulary = 3, 4, 6, 2, 10


class Model(object):
    def __init__(self, is_training, config):
        size = config.size
        self.x = tf.placeholder(tf.int32, [config.batch, config.steps])
        self.y = tf.placeholder(tf.int32, [config.batch, config.steps])

        def cell():
            return tf.nn.rnn_cell.BasicLSTMCell(
                size, forget_bias=0.0, state_is_tuple=True, reuse=tf.get_variable_scope().reuse)

        cells = tf.nn.rnn_cell.MultiRNNCell([cell() for _ in range(config.layers)], state_is_tuple=True)
        self.initial_state = cells.zero_state(config.batch, tf.float32)
        with tf.device("/cpu:0"):
            embedding = tf.get_variable("embedding", [config.vocabulary, size], dtype=tf.float32)
            inputs = tf.nn.embedding_lookup(embedding, self.x)
        outputs, state = [], self.initial_state
        with tf.variable_scope("RNN"):
            for time_step in range(config.steps):
                if time_step > 0:
                    tf.get_variable_scope().reuse_variables()
                (output, state) = cells(inputs[:, time_step, :], state)
                outputs.append(output)
        output = tf.reshape(tf.stack(axis=1, values=outputs), [-1, size])
        softmax_w = tf.get_variable("softmax_w", [size, config.vocabulary])
        softmax_b = tf.get_variable("softmax_b", [config.vocabulary])
        logits = tf.matmul(output, softmax_w) + softmax_b
        loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(self.y, [-1]), logits=logits)
        self.cost = tf.reduce_sum(loss) / config.batch
        self.final_state = state
        if not is_training:
            return
        self.lr = tf.Variable(0.0, trainable=False)
        tvars = tf.trainable_variables()
        grads, _ = tf.clip_by_global_norm(tf.gradients(self.cost, tvars), 5)
        optimizer = tf.train.GradientDescentOptimizer(self.lr)
        self.train_op = optimizer.apply_gradients(zip(grads, tvars))
        self.new_lr = tf.placeholder(tf.float32, shape=[], name="new_learning_rate")
        self.lr_update = tf.assign(self.lr, self.new_lr)


def fixed(shape, dtype=None, partition_info=None):
    return tf.constant(random.uniform(-0.3, 0.3, [int(d) for d in shape]).astype(np.float32))


def producer(config):
    length = len(words) // config.batch
    data = words[: config.batch * length].reshape([config.batch, length])
    for i in range((length - 1) // config.steps):
        x = data[:, i * config.steps : (i + 1) * config.steps]
        yield x, data[:, i * config.steps + 1 : (i + 1) * config.steps + 1]


def run_epoch(session, model, eval_op=None):
    costs, state = 0.0, session.run(model.initial_state)
    fetches = {"cost": model.cost, "final_state": model.final_state}
    if eval_op is not None:
        fetches["eval_op"] = eval_op
    for x, y in producer(Config):
        feed_dict = {model.x: x, model.y: y}
        for i, (c, h) in enumerate(model.initial_state):
            feed_dict[c] = state[i].c
            feed_dict[h] = state[i].h
        vals = session.run(fetches, feed_dict)
        costs, state = costs + vals["cost"], vals["final_state"]
    return float(costs)


with tf.name_scope("Train"), tf.variable_scope("Model", reuse=None, initializer=fixed):
    m = Model(True, Config)
with tf.name_scope("Valid"), tf.variable_scope("Model", reuse=True, initializer=fixed):
    mvalid = Model(False, Config)
LOSSES = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for epoch in range(3):
        session.run(m.lr_update, feed_dict={m.new_lr: 0.5 ** max(epoch - 1, 0.0)})
        LOSSES += [run_epoch(session, m, m.train_op), run_epoch(session, mvalid)]
