"""Actor-critic: a shared network, a local copy that is synchronised, clipped gradients, RMSProp."""

import numpy as np
import tensorflow as tf

random = np.random.RandomState(1)


class ActorCritic:
    def __init__(self, scope):
        with tf.variable_scope(scope):
            self.state = tf.placeholder(tf.float32, [None, 4])
            first = tf.constant_initializer(np.random.RandomState(2).normal(size=(4, 8)) * 0.3)
            second = tf.constant_initializer(np.random.RandomState(3).normal(size=(8, 2)) * 0.3)
            hidden = tf.layers.dense(self.state, 8, tf.nn.elu, kernel_initializer=first)
            self.policy = tf.nn.softmax(tf.layers.dense(hidden, 2, kernel_initializer=second))
            self.value = tf.layers.dense(hidden, 1, kernel_initializer=tf.ones_initializer())[:, 0]
        self.variables = tf.get_collection(tf.GraphKeys.TRAINABLE_VARIABLES, scope)


shared, local = ActorCritic("global"), ActorCritic("worker_0")
actions = tf.placeholder(tf.int32, [None])
returns = tf.placeholder(tf.float32, [None])
chosen = tf.reduce_sum(local.policy * tf.one_hot(actions, 2), 1)
advantage = tf.stop_gradient(returns - local.value)
entropy = -tf.reduce_sum(local.policy * tf.log(local.policy + 1e-8))
loss = (
    -tf.reduce_sum(tf.log(chosen) * advantage) + 0.5 * tf.reduce_sum(tf.square(returns - local.value)) - 0.01 * entropy
)
gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, local.variables), 40.0)
train = tf.train.RMSPropOptimizer(0.01, decay=0.99, epsilon=0.1).apply_gradients(zip(gradients, shared.variables))
pull = tf.group(*[mine.assign(theirs) for mine, theirs in zip(local.variables, shared.variables)])
LOSSES = []
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for _ in range(5):
        session.run(pull)
        feeds = {
            local.state: random.normal(size=(6, 4)),
            actions: random.randint(0, 2, 6),
            returns: random.normal(size=6),
        }
        LOSSES += [float(each) for each in session.run([loss, norm, train], feeds)[:2]]
