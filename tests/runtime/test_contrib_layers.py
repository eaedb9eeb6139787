"""The layers of tf.contrib.layers: their names and defaults."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

contrib = tf.contrib.layers
random = np.random.RandomState(1)
MATRIX = random.uniform(-1, 1, (4, 5)).astype(np.float32)
IMAGES = random.uniform(-1, 1, (2, 6, 6, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(fetches):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(fetches)


def names() -> list[str]:
    return [variable.op.name for variable in tf.global_variables()]


def test_variables_are_weights_and_biases_and_activation_is_relu():
    first = contrib.fully_connected(MATRIX, 3, outputs_collections="outputs", variables_collections=["mine"])
    second = contrib.linear(MATRIX, 2, biases_initializer=None)
    assert names() == ["fully_connected/weights", "fully_connected/biases", "fully_connected_1/weights"]
    assert tf.get_collection("outputs") == [first] and tf.get_collection("mine") == tf.global_variables()[:2]
    one, other, weights, biases, linear = run([first, second, *tf.global_variables()])
    np.testing.assert_allclose(one, np.maximum(MATRIX @ weights + biases, 0), rtol=1e-5)
    np.testing.assert_allclose(other, MATRIX @ linear, rtol=1e-5)


def test_a_convolution_with_batch_norm_has_no_biases():
    outputs = contrib.conv2d(
        IMAGES, 4, [3, 3], normalizer_fn=contrib.batch_norm, normalizer_params={"scale": True, "decay": 0.5},
        weights_regularizer=contrib.l2_regularizer(0.1), scope="c1",
    )  # fmt: skip
    again = contrib.conv2d(
        IMAGES, 4, [3, 3], normalizer_fn=contrib.batch_norm, normalizer_params={"scale": True}, reuse=True, scope="c1"
    )
    variables = ["weights", "BatchNorm/gamma", "BatchNorm/beta", "BatchNorm/moving_mean", "BatchNorm/moving_variance"]
    assert names() == [f"c1/{name}" for name in variables]
    assert outputs.shape.as_list() == again.shape.as_list() == [2, 6, 6, 4]
    assert len(tf.losses.get_regularization_losses()) == 1
    assert len(tf.get_collection(tf.GraphKeys.UPDATE_OPS)) == 4
    one, other = run([outputs, again])
    np.testing.assert_allclose(one, other, rtol=1e-5)
    assert one.min() == 0


def test_without_a_collection_the_outputs_wait_for_the_updates():
    outputs = contrib.batch_norm(MATRIX, decay=0.0, updates_collections=None)
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(outputs)
        np.testing.assert_allclose(session.run(tf.global_variables()[1]), MATRIX.mean(0), rtol=1e-4, atol=1e-6)


def test_pools_flat_and_dropped():
    pooled = contrib.max_pool2d(IMAGES, [2, 2])
    found = run([pooled, contrib.avg_pool2d(IMAGES, 2, stride=1), contrib.flatten(pooled)])
    assert [each.shape for each in found] == [(2, 3, 3, 3), (2, 5, 5, 3), (2, 27)]
    np.testing.assert_array_equal(run(contrib.dropout(MATRIX, 0.1, is_training=False)), MATRIX)
    assert (run(contrib.dropout(np.ones([50, 50], np.float32), 0.1, seed=1)) == 0).mean() > 0.8
    with pytest.raises(ValueError, match="NCHW or NHWC"):
        contrib.conv2d(IMAGES, 2, 3, data_format="HWCN")


def test_a_regularizer_may_be_of_both_kinds():
    weights = tf.constant([3.0, -4.0])
    assert run(contrib.l1_l2_regularizer(0.5, 0.1)(weights)) == pytest.approx(0.5 * 7 + 0.1 * 25 / 2)
    assert run(contrib.l1_l2_regularizer(0.0, 0.1)(weights)) == pytest.approx(1.25)
    assert contrib.l1_l2_regularizer(0.0, 0.0)(weights) is None
