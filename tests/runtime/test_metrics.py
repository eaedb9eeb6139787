from __future__ import annotations

import numpy as np
import pytest

import dtf as tf

LABELS = np.array([[1, 0, 1, 1], [0, 0, 1, 0]])
GUESSES = np.array([[1, 1, 0, 1], [0, 0, 1, 1]])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("accuracy", [2 / 4, 5 / 8]),
        ("precision", [2 / 3, 3 / 5]),
        ("recall", [2 / 3, 3 / 4]),
        ("mean_squared_error", [0.5, 0.375]),
        ("mean_absolute_error", [0.5, 0.375]),
        ("root_mean_squared_error", [0.5**0.5, 0.375**0.5]),
        ("false_negatives", [1, 1]),
    ],
)
def test_a_metric_gathers_batches_until_it_is_initialized_again(name, wanted):
    labels, guesses = tf.placeholder(tf.int64, [4]), tf.placeholder(tf.float32, [4])
    value, update = getattr(tf.metrics, name)(labels, guesses, updates_collections="updates")
    assert tf.get_collection("updates") == [update]
    assert all(variable.name.startswith(name) for variable in tf.local_variables())
    with tf.Session() as session:
        for _ in range(2):
            session.run(tf.local_variables_initializer())
            assert session.run(value) == 0.0
            for batch in range(2):
                found = session.run(update, {labels: LABELS[batch], guesses: GUESSES[batch]})
                assert found == pytest.approx(wanted[batch])
            assert session.run(value) == found


def test_a_weighted_mean_counts_the_weights():
    value, update = tf.metrics.mean([1.0, 2.0, 4.0], weights=[1.0, 0.0, 3.0])
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        session.run(update)
        assert session.run(value) == 13 / 4


def test_a_confusion_matrix_has_labels_in_rows():
    matrix = tf.confusion_matrix([0, 2, 2], [1, 2, 2])
    weighted = tf.confusion_matrix([0, 1], [1, 1], num_classes=2, dtype=tf.float32, weights=[0.5, 2.0])
    with tf.Session() as session:
        assert session.run(matrix).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 2]]
        assert session.run(weighted).tolist() == [[0, 0.5], [0, 2]]
