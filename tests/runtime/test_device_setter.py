"""replica_device_setter: which op goes where."""

from __future__ import annotations

import pytest

import dtf as tf

CLUSTER = {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}


def devices(setter, outer: str = "") -> list[str]:
    """The devices of three variables and one constant under the setter."""
    with tf.Graph().as_default(), tf.device(outer), tf.device(setter):
        made = [tf.Variable(tf.zeros([4 - n]), name=f"v{n}").op for n in range(3)]
        return [op.device for op in made] + [tf.constant(1.0).op.device]


def test_variables_take_turns_over_the_ps_tasks():
    setter = tf.train.replica_device_setter(cluster=CLUSTER, worker_device="/job:worker/task:1")
    assert devices(setter) == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0", "/job:worker/task:1"]


def test_a_number_of_ps_tasks_will_do():
    assert devices(tf.train.replica_device_setter(ps_tasks=1))[:2] == ["/job:ps/task:0"] * 2


def test_without_ps_tasks_there_is_no_setter():
    assert tf.train.replica_device_setter() is None
    assert tf.train.replica_device_setter(cluster={"worker": ["c:1"]}) is None


def test_the_ops_own_device_is_merged_in():
    setter = tf.train.replica_device_setter(cluster=CLUSTER)
    with tf.Graph().as_default(), tf.device(setter), tf.device("/cpu:0"):
        assert tf.Variable(1.0).op.device == "/job:ps/task:0/device:CPU:0"
    with tf.Graph().as_default(), tf.device(setter), tf.device("/job:elsewhere"):
        assert tf.Variable(1.0).op.device == "/job:elsewhere"


def test_a_strategy_may_choose_the_task():
    greedy = tf.contrib.training.GreedyLoadBalancingStrategy(2, tf.contrib.training.byte_size_load_fn)
    setter = tf.train.replica_device_setter(cluster=CLUSTER, ps_strategy=greedy)
    assert devices(setter)[:3] == ["/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:1"]


def test_a_strategy_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match="ps_strategy must be callable"):
        tf.train.replica_device_setter(ps_tasks=1, ps_strategy=3)
