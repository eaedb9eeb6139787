from __future__ import annotations

import numpy as np
import pytest

import dtf as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


X = np.arange(12, dtype=np.float32).reshape(4, 3)


def test_map_fn_applies_a_function_to_each_element():
    result = tf.map_fn(lambda row: tf.reduce_sum(row) + 1.0, tf.constant(X))
    assert result.shape.as_list() == [4]
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(result), X.sum(1) + 1)


def test_map_fn_takes_and_gives_structures():
    results = tf.map_fn(
        lambda pair: (pair[0] * pair[1], tf.cast(pair[1], tf.int32)), (X, X[::-1]), dtype=(tf.float32, tf.int32)
    )
    with tf.Session() as session:
        product, cast = session.run(results)
    np.testing.assert_array_equal(product, X * X[::-1])
    np.testing.assert_array_equal(cast, X[::-1].astype(int))


def test_map_fn_follows_a_length_known_only_at_the_step():
    x = tf.placeholder(tf.float32, [None, 3])
    with tf.Session() as session:
        for length in (0, 1, 4):
            assert session.run(tf.map_fn(lambda row: row * 2.0, x), {x: X[:length]}).shape == (length, 3)


def test_scan_keeps_every_accumulator_and_can_go_backwards():
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.scan(lambda a, b: a + b, X)), X.cumsum(0))
        backwards = tf.scan(lambda a, b: a + b, X, initializer=np.float32([1, 1, 1]), reverse=True)
        np.testing.assert_array_equal(session.run(backwards), X[::-1].cumsum(0)[::-1] + 1)


def test_folds_go_from_either_end():
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.foldl(lambda a, b: a - b, X)), X[0] - X[1:].sum(0))
        np.testing.assert_array_equal(session.run(tf.foldr(lambda a, b: a - b, X)), X[3] - X[:3].sum(0))


def test_gradients_go_through_map_and_scan():
    x = tf.constant(X)
    with tf.Session() as session:
        np.testing.assert_array_equal(session.run(tf.gradients(tf.map_fn(tf.square, x), x)[0]), 2 * X)
        weights = np.arange(4, 0, -1)[:, None] * np.ones_like(X)
        np.testing.assert_array_equal(session.run(tf.gradients(tf.scan(lambda a, b: a + b, x), x)[0]), weights)


def test_a_scalar_has_no_elements():
    with pytest.raises(ValueError, match="not scalars"):
        tf.map_fn(tf.identity, 1.0)
