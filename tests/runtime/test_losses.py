"""Losses: reductions, weights, collections. Values beside TensorFlow's are in tests/interop."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

LABELS = np.float32([[1, 2, 3], [4, 5, 6]])
PREDICTIONS = np.float32([[1, 4, 3], [1, 5, 2]])  # squared errors 4, 9, 16


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def value(tensor):
    with tf.Session() as session:
        return session.run(tensor)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [("SUM", 12.5), ("MEAN", 12.5 / 1.5), ("SUM_OVER_BATCH_SIZE", 12.5 / 6), ("SUM_BY_NONZERO_WEIGHTS", 12.5 / 3)],
)
def test_a_reduction_divides_by_what_it_says(reduction: str, expected: float):
    loss = tf.losses.mean_squared_error(
        LABELS, PREDICTIONS, [[0.0], [0.5]], reduction=getattr(tf.losses.Reduction, reduction)
    )
    np.testing.assert_allclose(value(loss), expected, rtol=1e-6)


def test_no_reduction_keeps_the_elements():
    loss = tf.losses.mean_squared_error(LABELS, PREDICTIONS, [[0.0], [0.5]], reduction=tf.losses.Reduction.NONE)
    np.testing.assert_allclose(value(loss), [[0, 0, 0], [4.5, 0, 8]])


def test_weights_of_zero_give_zero_not_nan():
    assert value(tf.losses.absolute_difference(LABELS, PREDICTIONS, 0.0)) == 0
    assert value(tf.losses.mean_pairwise_squared_error(LABELS, PREDICTIONS, 0.0)) == 0


def test_a_loss_is_collected_and_summed_with_the_regularizers():
    with tf.variable_scope("model", regularizer=lambda w: 0.5 * tf.reduce_sum(w)):
        tf.get_variable("w", initializer=[1.0, 3.0])
    loss = tf.losses.huber_loss(LABELS, PREDICTIONS)
    tf.losses.add_loss(tf.constant(10.0))
    tf.losses.log_loss([1.0], [0.5], loss_collection=None)
    assert tf.losses.get_losses()[0] is loss
    assert len(tf.losses.get_losses()) == 2
    assert len(tf.losses.get_regularization_losses()) == 1
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        total, parts = session.run([tf.losses.get_total_loss(), loss])
        regularization = session.run(tf.losses.get_regularization_loss())
    assert regularization == 2
    np.testing.assert_allclose(total, parts + 12)


def test_there_is_no_regularization_without_regularizers():
    assert value(tf.losses.get_regularization_loss()) == 0
    with pytest.raises(ValueError):
        tf.losses.get_total_loss()


def test_label_smoothing_moves_labels_to_the_middle():
    logits = np.float32([[2, -1]])
    smooth = tf.losses.softmax_cross_entropy([[1.0, 0.0]], logits, label_smoothing=0.2)
    by_hand = tf.losses.softmax_cross_entropy([[0.9, 0.1]], logits)
    np.testing.assert_allclose(*value([smooth, by_hand]), rtol=1e-6)


def test_sparse_labels_may_have_a_last_dimension_of_one():
    logits = np.float32([[2, -1], [0, 1]])
    wide = tf.losses.sparse_softmax_cross_entropy([[0], [1]], logits, [[1.0], [2.0]])
    flat = tf.losses.sparse_softmax_cross_entropy([0, 1], logits, [1.0, 2.0])
    np.testing.assert_allclose(*value([wide, flat]))


def test_a_loss_says_what_is_wrong():
    with pytest.raises(ValueError, match="weights can not be broadcast"):
        tf.losses.mean_squared_error(LABELS, PREDICTIONS, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        tf.losses.mean_squared_error(LABELS, PREDICTIONS[:1, :2])
    with pytest.raises(ValueError, match="Invalid Reduction Key"):
        tf.losses.mean_squared_error(LABELS, PREDICTIONS, reduction="half")
    with pytest.raises(ValueError, match="You must specify 'axis'"):
        tf.losses.cosine_distance(LABELS, PREDICTIONS)
