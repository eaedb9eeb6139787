"""copy.deepcopy of layers and cells: own settings, the same graph and variables."""

from __future__ import annotations

import copy

import pytest

import dtf as tf

rnn_cell = tf.nn.rnn_cell


def use(layer, x):
    return layer(x, layer.zero_state(2, tf.float32))[0] if isinstance(layer, rnn_cell.RNNCell) else layer(x)


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.layers.Dense(3, kernel_regularizer=tf.nn.l2_loss),
        lambda: tf.layers.BatchNormalization(),
        lambda: rnn_cell.LSTMCell(3),
        lambda: rnn_cell.GRUCell(3),
        lambda: rnn_cell.MultiRNNCell([rnn_cell.BasicLSTMCell(3), rnn_cell.BasicRNNCell(3)]),
        lambda: rnn_cell.DropoutWrapper(rnn_cell.ResidualWrapper(rnn_cell.GRUCell(3)), 1.0),
    ],
)
def test_a_copy_of_a_built_layer_shares_its_variables(make):
    with tf.Graph().as_default() as graph, tf.Session() as session:
        x = tf.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        layer = make()
        outputs = use(layer, x)
        before = tf.global_variables()
        copied = copy.deepcopy(layer)
        again = use(copied, x)
        assert copied is not layer and copied.built == layer.built and again.graph is graph
        assert tf.global_variables() == before
        assert [id(each) for each in copied.weights] == [id(each) for each in layer.weights]
        session.run(tf.global_variables_initializer())
        ours, theirs = session.run([outputs, again])
        assert (ours == theirs).all()


def test_a_copy_of_a_layer_that_was_not_called_has_variables_of_its_own():
    with tf.Graph().as_default():
        layer = tf.layers.Dense(3)
        copied = copy.deepcopy(layer)
        x = tf.zeros([2, 2])
        layer(x), copied(x)
        assert [v.op.name for v in tf.global_variables()] == [
            "dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias",
        ]  # fmt: skip
