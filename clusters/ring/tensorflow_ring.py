"""What `tf.train.AllReduceOptimizer` of dtf does, with the operations that TensorFlow has for it.

The graph is of the same ops (CollectiveReduce, CollectiveBcastSend, CollectiveBcastRecv) and the same keys. What is
missing is the packing of small gradients, and that the workers go on when one of them was lost: TensorFlow's groups
end with their first member.
"""

from __future__ import annotations

import itertools

import tensorflow.compat.v1 as tf

LEADER = "/job:worker/replica:0/task:0"


def server_config():
    """The configuration of each worker's server: who brings the members of a group together."""
    config = tf.ConfigProto()
    config.experimental.collective_group_leader = LEADER
    return config


class AllReduceOptimizer:
    """Averages the gradients of all workers, each of whom then makes the update that the optimizer inside makes."""

    def __init__(self, opt, num_workers):
        self._opt = opt
        self._instances = itertools.count(1)
        self._keys = {"group_size": num_workers, "group_key": 1}

    def minimize(self, loss, global_step):
        """The train op."""
        pairs = self._opt.compute_gradients(loss)
        means = [
            tf.raw_ops.CollectiveReduce(
                input=gradient, merge_op="Add", final_op="Div", subdiv_offsets=[0], **self._next_keys()
            )
            for gradient, _ in pairs
        ]
        with tf.control_dependencies(means):
            means = [tf.identity(mean) for mean in means]
        return self._opt.apply_gradients(zip(means, (variable for _, variable in pairs), strict=True), global_step)

    def make_session_run_hook(self, is_chief, last_step=None):
        """The hook that gives all workers the chief's variables."""
        del last_step  # one that returns at the end is no better off than one that returns before
        return _Hook(self._next_keys, is_chief)

    def _next_keys(self):
        return {**self._keys, "instance_key": next(self._instances)}


class _Hook(tf.train.SessionRunHook):
    def __init__(self, next_keys, is_chief):
        self._next_keys = next_keys
        self._is_chief = is_chief

    def begin(self):
        shared = []
        for variable in tf.global_variables():
            keys = {"shape": variable.shape, **self._next_keys()}
            with tf.device(variable.device):
                if self._is_chief:
                    shared.append(tf.raw_ops.CollectiveBcastSend(input=variable.read_value(), **keys).op)
                else:
                    value = tf.raw_ops.CollectiveBcastRecv(T=variable.dtype.base_dtype, **keys)
                    shared.append(variable.assign(value).op)
        self._share = tf.group(*shared)
        if not self._is_chief:
            # Nobody else initialises this worker's own copy.
            own = tf.group(tf.train.Scaffold.default_local_init_op(), tf.global_variables_initializer())
            tf.add_to_collection(tf.GraphKeys.LOCAL_INIT_OP, own)
            tf.add_to_collection(tf.GraphKeys.READY_FOR_LOCAL_INIT_OP, tf.constant([], tf.string))

    def after_create_session(self, session, coord):
        session.run(self._share)
