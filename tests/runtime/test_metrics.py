"""Metrics: that they gather batches, and are what they say; that bad arguments are named."""

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


def gathered(metric, feeds=({},)):
    """The figure after updates with these feeds."""
    value, update = metric
    with tf.Session() as session:
        session.run([tf.local_variables_initializer()])
        for feed in feeds:
            session.run(update, feed)
        return session.run(value)


SCORES = np.array([0.1, 0.4, 0.35, 0.8, 0.65, 0.9], np.float32)
TRUTH = np.array([0, 0, 1, 1, 0, 1])


def test_the_area_under_the_curve_is_the_part_of_the_pairs_in_order():
    positive, negative = SCORES[TRUTH == 1], SCORES[TRUTH == 0]
    wanted = np.mean(positive[:, None] > negative)
    labels, scores = tf.placeholder(tf.bool, [3]), tf.placeholder(tf.float32, [3])
    feeds = [{labels: TRUTH[:3], scores: SCORES[:3]}, {labels: TRUTH[3:], scores: SCORES[3:]}]
    metric = tf.metrics.auc(labels, scores)
    assert [each.op.name for each in tf.local_variables()] == [
        "auc/true_positives", "auc/false_negatives", "auc/true_negatives", "auc/false_positives",
    ]  # fmt: skip
    assert gathered(metric, feeds) == pytest.approx(wanted, abs=1e-5)


def test_the_area_under_precision_and_recall_is_careful():
    careful = gathered(tf.metrics.auc(TRUTH, SCORES, curve="PR", summation_method="careful_interpolation"))
    bounds = [
        gathered(tf.metrics.auc(TRUTH, SCORES, curve="PR", summation_method=method))
        for method in ("minoring", "trapezoidal", "majoring")
    ]
    assert bounds == sorted(bounds) and bounds[0] <= careful <= bounds[2]


def test_scores_are_counted_at_thresholds():
    thresholds = [0.3, 0.5, 0.7]
    found = gathered(tf.metrics.precision_at_thresholds(TRUTH, SCORES, thresholds))
    np.testing.assert_allclose(found, [3 / 5, 2 / 3, 1], rtol=1e-5)
    found = gathered(tf.metrics.recall_at_thresholds(TRUTH, SCORES, thresholds, weights=[1, 1, 2, 1, 1, 1]))
    np.testing.assert_allclose(found, [1, 2 / 4, 2 / 4], rtol=1e-5)
    found = gathered(tf.metrics.false_positives_at_thresholds(TRUTH, SCORES, thresholds))
    np.testing.assert_array_equal(found, [2, 1, 0])
    assert gathered(tf.metrics.sensitivity_at_specificity(TRUTH, SCORES, 0.9)) == pytest.approx(2 / 3, abs=1e-5)
    assert gathered(tf.metrics.specificity_at_sensitivity(TRUTH, SCORES, 0.9)) == pytest.approx(1 / 3, abs=1e-5)
    fed = tf.placeholder(tf.float32, [1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="predictions must be in"):
        gathered(tf.metrics.auc([1], fed), [{fed: [1.5]}])


def test_every_class_counts_alike():
    labels, guesses = [[0, 0, 0], [1, 2, 2]], [[0, 0, 1], [1, 1, 2]]
    assert gathered(tf.metrics.mean_iou(labels, guesses, 4)) == pytest.approx((2 / 3 + 1 / 3 + 1 / 2) / 3)
    accuracy = tf.metrics.mean_per_class_accuracy(labels, guesses, 4)
    assert gathered(accuracy) == pytest.approx((2 / 3 + 1 + 1 / 2) / 4)


def test_the_best_classes_are_compared_with_the_labels():
    scores = np.array([[0.1, 0.5, 0.3, 0.2], [0.9, 0.2, 0.3, 0.1]], np.float32)
    labels = np.array([[2, 3], [0, 3]])
    assert gathered(tf.metrics.precision_at_k(labels, scores, 2)) == 2 / 4
    assert gathered(tf.metrics.recall_at_k(labels, scores, 2)) == 2 / 4
    assert gathered(tf.metrics.recall_at_k(labels, scores, 2, class_id=3)) == 0
    assert gathered(tf.metrics.average_precision_at_k(labels, scores, 3)) == pytest.approx(
        ((1 / 2 + 2 / 3) / 2 + (1 / 1) / 2) / 2
    )
    sparse = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], np.array([2, 0, 3]), [2, 2])
    assert gathered(tf.metrics.recall_at_k(sparse, scores, 2, weights=[1, 2])) == 3 / 5
    assert gathered(tf.metrics.recall_at_top_k([2, 1], [[1, 2], [0, 3]])) == 1 / 2
    assert np.isnan(gathered(tf.metrics.recall_at_k(labels, scores, 2, class_id=1)))


def test_means_of_differences():
    labels, guesses = np.float32([[1, 2], [4, 0]]), np.float32([[2, 2], [2, 3]])
    assert gathered(tf.metrics.mean_relative_error(labels, guesses, labels)) == pytest.approx((1 + 0 + 0.5 + 0) / 4)
    assert gathered(tf.metrics.mean_cosine_distance([[0.6, 0.8]], [[1.0, 0.0]], 1)) == pytest.approx(0.4)
    assert gathered(tf.metrics.percentage_below(guesses, 2.5)) == 3 / 4
    np.testing.assert_allclose(gathered(tf.metrics.mean_tensor(labels, [[1], [0]]), [{}, {}]), [[1, 2], [0, 0]])


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="ROC or PR"):
        tf.metrics.auc(TRUTH, SCORES, curve="LIFT")
    with pytest.raises(ValueError, match="summation_method: left"):
        tf.metrics.auc(TRUTH, SCORES, summation_method="left")
    with pytest.raises(ValueError, match="specificity. must be in the range"):
        tf.metrics.sensitivity_at_specificity(TRUTH, SCORES, 1.5)
    with pytest.raises(ValueError, match="sensitivity. must be in the range"):
        tf.metrics.specificity_at_sensitivity(TRUTH, SCORES, -1)
    with pytest.raises(ValueError, match="can not be broadcast"):
        tf.metrics.mean(np.ones([2, 3]), np.ones([2, 2]))
    with pytest.raises(ValueError, match="incompatible"):
        tf.metrics.accuracy([1, 2], [1, 2, 3])
    with pytest.raises(ValueError, match="Invalid k=0"):
        tf.metrics.average_precision_at_k([[0]], [[0.5, 0.5]], 0)
