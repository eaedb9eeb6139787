"""Rarer forms of tf.contrib.layers: weighted and corrected batch statistics, sequences, initializers."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

layers = tf.contrib.layers
X = np.random.RandomState(0).randn(4, 5, 5, 2).astype(np.float32)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def normalized(mean, variance):
    return (X - mean) / np.sqrt(variance + 0.001)


@pytest.mark.parametrize("collections", [None, "updates"])
def test_a_moving_mean_without_a_lean_is_the_batch_mean_after_the_first_step(collections):
    phase = tf.placeholder_with_default(True, [])
    outputs = layers.batch_norm(
        X, 0.9, is_training=phase, zero_debias_moving_mean=True, updates_collections=collections, scope="norm"
    )
    mean, variance = X.mean((0, 1, 2)), X.var((0, 1, 2))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        trained = session.run([outputs, tf.get_collection("updates")])[0]
        moving = session.run(["norm/moving_mean:0", "norm/moving_variance:0"])
        recalled = session.run(outputs, {phase: False})
    np.testing.assert_allclose(trained, normalized(mean, variance), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(moving[0], mean, rtol=1e-4)
    np.testing.assert_allclose(moving[1], 0.9 + 0.1 * variance * 100 / 99, rtol=1e-4)
    np.testing.assert_allclose(recalled, normalized(*moving), rtol=1e-4, atol=1e-5)


def test_examples_of_weight_zero_do_not_count_in_the_batch_statistics():
    outputs = layers.batch_norm(X, batch_weights=[0.0, 1, 1, 0], updates_collections=None)
    part = X[1:3]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        expected = normalized(part.mean((0, 1, 2)), part.var((0, 1, 2)))
        np.testing.assert_allclose(session.run(outputs), expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="neither renorm"):
        layers.batch_norm(X, batch_weights=[1.0] * 4, renorm=True)


def test_images_become_sequences_of_columns_and_return():
    sequence = layers.images_to_sequence(X)
    assert sequence.shape == (5, 20, 2)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(layers.sequence_to_images(sequence, 5)), X)
        np.testing.assert_array_equal(session.run(sequence)[2], X[:, :, 2].reshape(20, 2))
        sparse = session.run(layers.dense_to_sparse([[3, 0], [0, 4]]))
    assert sparse.indices.tolist() == [[0, 0], [1, 1]] and sparse.values.tolist() == [3, 4]


def test_the_temperature_of_a_spatial_softmax_is_a_variable_of_the_model():
    dynamic = tf.placeholder(tf.float32, [None, None, None, 2])
    outputs = layers.spatial_softmax(dynamic, temperature=2.0, trainable=False)
    assert [each.op.name for each in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES)] == ["spatial_softmax/temperature"]
    assert not tf.trainable_variables()
    weights = np.exp(X / 2) / np.exp(X / 2).sum((1, 2), keepdims=True)
    places = np.linspace(-1, 1, 5)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        found = session.run(outputs, {dynamic: X}).reshape(4, 2, 2)
    np.testing.assert_allclose(found[:, :, 0], np.einsum("bhwc,h->bc", weights, places), atol=1e-5)
    np.testing.assert_allclose(found[:, :, 1], np.einsum("bhwc,w->bc", weights, places), atol=1e-5)


def test_vectors_shorten_and_gradients_scale():
    x = tf.constant([[3.0, 4.0], [0.3, 0.4]])
    (gradient,) = tf.gradients(layers.scale_gradient(x, 0.5), [x])
    with tf.Session() as session:
        short = session.run(layers.poincare_normalize(x))
        assert session.run(gradient).tolist() == [[0.5, 0.5]] * 2
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), [1, 0.5], atol=1e-4)


def test_a_truncated_initializer_has_the_deviation_of_contrib():
    values = layers.variance_scaling_initializer(seed=1)([40, 50])
    plain = tf.truncated_normal([40, 50], 0.0, np.sqrt(1.3 * 2 / 40), seed=1)
    with tf.Session() as session:
        np.testing.assert_allclose(*session.run([values, plain]), rtol=1e-5)
    with pytest.raises(TypeError, match="Unknown mode"):
        layers.variance_scaling_initializer(mode="FAN")
