"""Double deep Q-learning: dueling networks in scopes, a replay memory, clipped gradients, and soft updates."""

import collections

import numpy as np
import tensorflow as tf

random = np.random.RandomState(0)
STATE, ACTIONS = 4, 3


def weights(shape, dtype=None, partition_info=None):
    seed = int(np.prod([int(size) for size in shape]))
    return tf.constant(0.2 * np.random.RandomState(seed).normal(size=shape), tf.float32)


def network(states, scope, reuse=None):
    with tf.variable_scope(scope, reuse=reuse):
        hidden = tf.layers.dense(states, 8, tf.nn.relu, kernel_initializer=weights, name="hidden")
        with tf.variable_scope("value"):
            value = tf.layers.dense(hidden, 1, kernel_initializer=weights)
        with tf.variable_scope("advantage"):
            advantage = tf.layers.dense(hidden, ACTIONS, kernel_initializer=weights)
        return value + advantage - tf.reduce_mean(advantage, axis=1, keep_dims=True)


class Agent(object):
    def __init__(self, session):
        self.session = session
        self.memory = collections.deque(maxlen=64)
        self.s = tf.placeholder(tf.float32, [None, STATE], "s")
        self.s2 = tf.placeholder(tf.float32, [None, STATE], "s2")
        self.a = tf.placeholder(tf.int32, [None], "a")
        self.r = tf.placeholder(tf.float32, [None], "r")
        self.q = network(self.s, "online")
        best = tf.argmax(network(self.s2, "online", reuse=True), axis=1, output_type=tf.int32)
        rows = tf.range(tf.shape(best)[0])
        later = tf.gather_nd(network(self.s2, "target"), tf.stack([rows, best], 1))
        wanted = tf.stop_gradient(self.r + 0.9 * later)
        taken = tf.reduce_sum(self.q * tf.one_hot(self.a, ACTIONS), axis=1)
        self.loss = tf.reduce_mean(tf.losses.huber_loss(wanted, taken, reduction=tf.losses.Reduction.NONE))
        online = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="online")
        target = tf.get_collection(tf.GraphKeys.GLOBAL_VARIABLES, scope="target")
        self.soft = [tf.assign(t, 0.9 * t + 0.1 * o) for t, o in zip(target, online)]
        optimizer = tf.train.RMSPropOptimizer(0.01, decay=0.99, epsilon=1e-5)
        gradients, variables = zip(*optimizer.compute_gradients(self.loss, var_list=online))
        clipped, self.norm = tf.clip_by_global_norm(gradients, 0.5)
        self.train = optimizer.apply_gradients(list(zip(clipped, variables)))
        tf.summary.scalar("loss", self.loss)
        self.merged = tf.summary.merge_all()

    def learn(self):
        batch = [self.memory[i] for i in random.choice(len(self.memory), 8)]
        s, a, r, s2 = map(np.array, zip(*batch))
        feed = {self.s: s, self.a: a, self.r: r, self.s2: s2}
        loss, norm, _, _ = self.session.run([self.loss, self.norm, self.merged, self.train], feed)
        self.session.run(self.soft)
        return float(loss), float(norm)


LOSSES = []
with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    agent = Agent(sess)
    sess.run(tf.global_variables_initializer())
    state = random.normal(size=STATE)
    for step in range(40):
        values = sess.run(agent.q, {agent.s: state[None]})
        action = int(np.argmax(values)) if random.rand() > 0.3 else random.randint(ACTIONS)
        following = random.normal(size=STATE)
        agent.memory.append((state, action, float(state[action] > 0), following))
        state = following
        if step >= 30:
            LOSSES.extend(agent.learn())
