"""Layers: the names of their variables, sharing, and that they compute what they say."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

random = np.random.RandomState(2)
MATRIX = random.uniform(-1, 1, (4, 5)).astype(np.float32)
IMAGES = random.uniform(-1, 1, (2, 6, 6, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches, feeds=None, steps: int = 1):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            found = session.run(fetches, feeds)
        return found


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def test_layers_without_a_name_are_numbered():
    net = tf.layers.dense(tf.layers.dense(MATRIX, 3, tf.nn.relu), 2, use_bias=False)
    tf.layers.conv2d(IMAGES, 4, 3)
    tf.layers.batch_normalization(net)
    assert names() == [
        "dense/kernel",
        "dense/bias",
        "dense_1/kernel",
        "conv2d/kernel",
        "conv2d/bias",
        "batch_normalization/gamma",
        "batch_normalization/beta",
        "batch_normalization/moving_mean",
        "batch_normalization/moving_variance",
    ]
    assert [variable.op.name for variable in tf.trainable_variables()][-2:] == [
        "batch_normalization/gamma",
        "batch_normalization/beta",
    ]


def test_dense_multiplies_and_adds():
    outputs = tf.layers.dense(MATRIX, 3, tf.nn.relu, bias_initializer=tf.constant_initializer(0.25), name="fc")
    assert outputs.op.type == "Relu"
    found, kernel, bias = run([outputs, *tf.trainable_variables()])
    np.testing.assert_allclose(found, np.maximum(MATRIX @ kernel + bias, 0), rtol=1e-5)
    assert kernel.std() > 0
    np.testing.assert_array_equal(bias, [0.25] * 3)


def test_dense_takes_any_rank():
    outputs = tf.layers.dense(MATRIX.reshape(2, 2, 5), 3)
    assert outputs.shape.as_list() == [2, 2, 3]
    found, kernel, _ = run([outputs, *tf.trainable_variables()])
    np.testing.assert_allclose(found.reshape(4, 3), MATRIX @ kernel, rtol=1e-5)


def test_a_layer_is_shared_by_its_name():
    first = tf.layers.dense(MATRIX, 3, name="shared")
    second = tf.layers.dense(MATRIX, 3, name="shared", reuse=True)
    assert names() == ["shared/kernel", "shared/bias"]
    np.testing.assert_array_equal(*run([first, second]))
    with pytest.raises(ValueError):
        tf.layers.dense(MATRIX, 3, name="shared")


def test_regularizers_are_collected():
    tf.layers.dense(
        MATRIX,
        3,
        kernel_regularizer=tf.nn.l2_loss,
        activity_regularizer=lambda outputs: tf.reduce_sum(outputs),
    )
    assert len(tf.losses.get_regularization_losses()) == 2


def test_conv2d_and_pooling_have_the_shapes_of_their_windows():
    same = tf.layers.conv2d(IMAGES, 4, [3, 2], strides=2, padding="same", activation=tf.nn.relu)
    valid = tf.layers.conv2d(IMAGES, 4, 3, dilation_rate=2)
    assert (same.shape.as_list(), valid.shape.as_list()) == ([2, 3, 3, 4], [2, 2, 2, 4])
    pooled = tf.layers.max_pooling2d(IMAGES, 2, 2)
    mean = tf.layers.average_pooling2d(IMAGES, (3, 3), 1, padding="same")
    assert tf.layers.flatten(pooled).shape.as_list() == [2, 27]
    found = run([same, valid, pooled, mean])
    assert [each.shape for each in found] == [(2, 3, 3, 4), (2, 2, 2, 4), (2, 3, 3, 3), (2, 6, 6, 3)]
    np.testing.assert_allclose(found[2], IMAGES.reshape(2, 3, 2, 3, 2, 3).max((2, 4)))


def test_channels_first_is_the_same_convolution():
    last = tf.layers.conv2d(IMAGES, 4, 3, name="c")
    first = tf.layers.conv2d(np.moveaxis(IMAGES, -1, 1), 4, 3, data_format="channels_first", name="c", reuse=True)
    found = run([last, first])
    np.testing.assert_allclose(found[0], np.moveaxis(found[1], 1, -1), rtol=1e-4, atol=1e-6)


def test_a_transposed_convolution_undoes_the_shape():
    for padding, size in (("valid", 13), ("same", 12)):
        outputs = tf.layers.conv2d_transpose(IMAGES, 2, 3, strides=2, padding=padding)
        assert outputs.shape.as_list() == [2, size, size, 2]
        assert run(outputs).shape == (2, size, size, 2)


def test_a_separable_convolution_is_two():
    outputs = tf.layers.separable_conv2d(IMAGES, 5, 3, depth_multiplier=2)
    assert outputs.shape.as_list() == [2, 4, 4, 5]
    kernels = [each.shape.as_list() for each in tf.trainable_variables()]
    assert kernels == [[3, 3, 3, 2], [1, 1, 6, 5], [5]]
    assert run(outputs).shape == (2, 4, 4, 5)


@pytest.mark.parametrize("inputs", [MATRIX, IMAGES], ids=["matrix", "images"])
@pytest.mark.parametrize("training", [True, "fed"], ids=["bool", "tensor"])
def test_batch_normalization_uses_the_batch_and_moves_its_averages(inputs, training):
    flag = tf.placeholder(tf.bool, []) if training == "fed" else True
    outputs = tf.layers.batch_normalization(inputs, momentum=0.75, training=flag)
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
    assert len(updates) == 2
    axes = tuple(range(inputs.ndim - 1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        on, off = ({flag: True}, {flag: False}) if training == "fed" else (None, None)
        found, *_ = session.run([outputs, *updates], on)
        mean, variance = session.run(tf.global_variables()[2:])
        normal = (inputs - inputs.mean(axes)) / np.sqrt(inputs.var(axes) + 1e-3)
        np.testing.assert_allclose(found, normal, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(mean, 0.25 * inputs.mean(axes), rtol=1e-4, atol=1e-6)
        # The one op for images gives the variance of the population that the batch is a sample of.
        sample = inputs.var(axes, ddof=1 if inputs.ndim == 4 else 0)
        np.testing.assert_allclose(variance, 0.75 + 0.25 * sample, rtol=1e-4)
        if training == "fed":
            session.run(updates, off)
            np.testing.assert_array_equal(session.run(tf.global_variables()[2]), mean)
            found = session.run(outputs, off)
            np.testing.assert_allclose(found, (inputs - mean) / np.sqrt(variance + 1e-3), rtol=1e-3, atol=1e-5)


def test_batch_normalization_for_inference_adds_no_updates():
    outputs = tf.layers.batch_normalization(MATRIX)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    np.testing.assert_allclose(run(outputs), MATRIX / np.sqrt(1.001), rtol=1e-5)


def test_batch_normalization_trains():
    net = tf.layers.batch_normalization(tf.layers.conv2d(IMAGES, 4, 3, use_bias=False), training=True)
    loss = tf.reduce_mean(tf.square(net - 3.0))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    first = run(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(30):
            session.run(train)
        assert session.run(loss) < first / 5


def test_dropout_only_drops_while_training():
    flag = tf.placeholder(tf.bool, [])
    ones = np.ones((100, 100), np.float32)
    outputs = tf.layers.dropout(ones, 0.25, seed=3, training=flag)
    kept = run(outputs, {flag: True})
    np.testing.assert_allclose(np.unique(kept), [0, 1 / 0.75], rtol=1e-6)
    assert abs((kept == 0).mean() - 0.25) < 0.02
    np.testing.assert_array_equal(run(outputs, {flag: False}), ones)
    np.testing.assert_array_equal(run(tf.layers.dropout(ones)), ones)


def test_flatten_keeps_an_unknown_batch():
    fed = tf.placeholder(tf.float32, [None, 2, 3])
    flat = tf.layers.flatten(fed)
    assert flat.shape.as_list() == [None, 6]
    assert run(flat, {fed: np.zeros((5, 2, 3))}).shape == (5, 6)


def test_a_layer_says_what_is_wrong():
    with pytest.raises(ValueError, match="must be known"):
        tf.layers.dense(tf.placeholder(tf.float32, [2, None]), 3)
    with pytest.raises(ValueError, match="data_format"):
        tf.layers.conv2d(IMAGES, 4, 3, data_format="NHWC")
    with pytest.raises(ValueError, match="one integer or 2 of them"):
        tf.layers.conv2d(IMAGES, 4, [1, 2, 3])
    with pytest.raises(ValueError, match="Fused batch norm"):
        tf.layers.batch_normalization(MATRIX, fused=True)
