"""A layer answers for its settings, the numbers of its variables, and the inputs and outputs of its calls."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def _a_graph_of_its_own():
    with tf.Graph().as_default():
        yield


def test_settings_make_another_layer_of_the_same_kind():
    layer = tf.layers.Conv2D(4, [3, 3], padding="same", activation=tf.nn.relu, name="c")
    config = layer.get_config()
    assert config["filters"] == 4 and config["padding"] == "same" and config["name"] == "c"
    other = tf.layers.Conv2D.from_config(config)
    assert other(tf.zeros([1, 5, 5, 2])).shape.as_list() == [1, 5, 5, 4]
    cell = tf.nn.rnn_cell.LSTMCell.from_config(tf.nn.rnn_cell.LSTMCell(3, forget_bias=2.0).get_config())
    assert cell.get_config()["forget_bias"] == 2.0 and cell.output_size == 3


def test_weights_are_read_and_set_in_the_default_session():
    layer = tf.layers.Dense(2)
    outputs = layer(tf.ones([1, 3]))
    with pytest.raises(ValueError, match="default session"):
        layer.get_weights()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        layer.set_weights([np.full([3, 2], 2.0), [1.0, 2.0]])
        assert session.run(outputs).tolist() == [[7.0, 8.0]]
        assert [each.shape for each in layer.get_weights()] == [(3, 2), (2,)]
        with pytest.raises(ValueError, match="not compatible"):
            layer.set_weights([np.zeros([2, 2]), [0.0, 0.0]])
        with pytest.raises(ValueError, match="expecting 2 weights"):
            layer.set_weights([])


def test_inputs_and_outputs_are_those_of_the_calls():
    layer = tf.layers.Dense(2, name="d")
    with pytest.raises(AttributeError, match="never been called"):
        layer.input  # noqa: B018
    first, second = tf.ones([1, 3]), tf.ones([4, 3])
    output = layer(first)
    assert layer.input is first and layer.output is output
    assert layer.input_shape == (1, 3) and layer.output_shape == (1, 2)
    layer(second)
    assert layer.get_input_at(1) is second and layer.get_output_shape_at(1) == (4, 2)
    with pytest.raises(AttributeError, match="multiple inbound nodes"):
        layer.output  # noqa: B018
    assert layer.compute_output_signature(tf.TensorSpec([7, 3])) == tf.TensorSpec([7, 2])
