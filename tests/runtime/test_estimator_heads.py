"""Heads that programs pass to Estimators, and the ready-made Estimators that take them."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import dtf as tf

heads = tf.contrib.estimator
X = np.random.RandomState(0).rand(32, 3).astype(np.float32)
SUMS = X.sum(1)
COLUMNS = [tf.feature_column.numeric_column("x", (3,))]


def spec_of(head, labels, mode="eval", **kwargs):
    logits = tf.layers.dense(X, head.logits_dimension, kernel_initializer=tf.constant_initializer(0.3))
    weights = tf.constant(np.arange(32) % 2, tf.float32)
    return head.create_estimator_spec({"x": X, "w": weights}, mode, logits, labels, **kwargs)


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def evaluate(spec):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        session.run([update for _, update in spec.eval_metric_ops.values()])
        return session.run(spec.loss), session.run({name: value for name, (value, _) in spec.eval_metric_ops.items()})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_the_losses_of_all_heads_are_the_means_of_their_formulas():
    logits = 0.3 * SUMS
    ones = (SUMS > 1.5).astype(np.float32)
    several = (X > 0.5).astype(int)
    counts = np.round(SUMS)
    cross = np.log1p(np.exp(-logits)) * ones + np.log1p(np.exp(logits)) * (1 - ones)
    cases = [
        (heads.regression_head(), SUMS, np.mean((SUMS - logits) ** 2)),
        (heads.binary_classification_head(), ones.astype(int), np.mean(cross)),
        (heads.binary_classification_head("w"), ones.astype(int), np.mean(cross * (np.arange(32) % 2))),
        (heads.logistic_regression_head(), ones, np.mean(cross)),
        (heads.multi_class_head(3), counts.astype(int) % 3, np.log(3)),
        (heads.poisson_regression_head(compute_full_loss=False), counts, np.mean(np.exp(logits) - counts * logits)),
        (heads.regression_head(loss_fn=lambda labels, logits: tf.abs(labels - logits)), SUMS, np.mean(SUMS - logits)),
    ]
    for head, labels, expected in cases:
        with tf.Graph().as_default():
            assert evaluate(spec_of(head, labels))[0] == pytest.approx(expected, rel=1e-4)
    losses = np.log1p(np.exp(logits))[:, None] - several * logits[:, None]
    with tf.Graph().as_default():
        head = heads.multi_label_head(3, thresholds=[0.6], classes_for_class_based_metrics=[1], name="m")
        loss, figures = evaluate(spec_of(head, several))
    assert loss == pytest.approx(losses.mean(), rel=1e-4)
    chosen = (sigmoid(logits) > 0.6)[:, None] == several
    assert figures["accuracy/positive_threshold_0.6/m"] == pytest.approx(chosen.mean())
    assert figures["probability_mean/class1/m"] == pytest.approx(sigmoid(logits).mean(), rel=1e-4)


def test_labels_of_several_classes_may_be_sparse_words():
    words = tf.SparseTensor([[0, 0], [1, 0], [1, 1]], ["b", "a", "c"], [2, 2])
    head = heads.multi_label_head(3, label_vocabulary=["a", "b", "c"])
    spec = head.create_estimator_spec({"x": X[:2]}, "eval", tf.constant([[0.0, 1, 2], [3, 4, 5]]), words)
    logits, truths = np.array([[0.0, 1, 2], [3, 4, 5]]), np.array([[0, 1, 0], [1, 0, 1]])
    assert evaluate(spec)[0] == pytest.approx((np.log1p(np.exp(logits)) - truths * logits).mean(), rel=1e-5)


def test_the_loss_of_several_heads_is_the_weighted_sum_of_theirs():
    both = heads.multi_head([heads.regression_head(name="a"), heads.regression_head(name="b")], [1.0, 0.5])
    assert both.logits_dimension == 2 and both.name == "a_b"
    loss, figures = evaluate(spec_of(both, {"a": SUMS, "b": SUMS + 1}, regularization_losses=[tf.constant(10.0)]))
    expected = figures["average_loss/a"] + 0.5 * figures["average_loss/b"] + 10
    assert loss == pytest.approx(expected, rel=1e-5)
    spec = spec_of(both, None, "infer")
    assert set(spec.predictions) == {("a", "predictions"), ("b", "predictions")}
    assert {"a", "b", "predict", "a/predict", "serving_default"} <= set(spec.export_outputs)
    with pytest.raises(ValueError, match="same size"):
        heads.multi_head([heads.regression_head(name="a")], [1.0, 2.0])
    with pytest.raises(ValueError, match="name specified"):
        heads.multi_head([heads.regression_head()])


def test_training_needs_an_optimizer_or_a_function_and_runs_the_collected_updates():
    head = heads.regression_head()
    with pytest.raises(ValueError, match="can not both be None"):
        spec_of(head, SUMS, "train")
    with pytest.raises(ValueError, match="can not both be set"):
        spec_of(head, SUMS, "train", optimizer=tf.train.AdamOptimizer(), train_op_fn=tf.no_op)
    count = tf.Variable(0)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1))
    step = tf.train.get_or_create_global_step()
    spec = spec_of(head, SUMS, "train", optimizer=tf.train.GradientDescentOptimizer(0.1))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        first, _ = session.run([spec.loss, spec.train_op])
        assert session.run([count, step]) == [1, 1] and session.run(spec.loss) < first


@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.estimator.DNNEstimator(heads.regression_head(), [4], COLUMNS),
        lambda: tf.estimator.DNNLinearCombinedEstimator(
            heads.regression_head(), dnn_feature_columns=COLUMNS, dnn_hidden_units=[4], batch_norm=True
        ),
        lambda: tf.estimator.BaselineRegressor(optimizer=lambda: tf.train.GradientDescentOptimizer(0.005)),
        lambda: tf.estimator.LinearRegressor(COLUMNS, partitioner=tf.fixed_size_partitioner(2)),
    ],
)
def test_ready_made_estimators_train_with_heads_partitions_and_normalisation(make, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    estimator = make()
    assert isinstance(estimator, tf.estimator.Estimator)

    def input_fn():
        return {"x": tf.constant(X)}, tf.constant(SUMS)

    before = np.mean(SUMS**2)
    estimator.train(input_fn, steps=6)
    assert estimator.evaluate(input_fn, steps=1)["average_loss"] < before


def test_ready_made_estimators_are_classes_with_the_arguments_of_tensorflow_in_their_order():
    class Own(tf.estimator.DNNClassifier):
        pass

    assert isinstance(Own([4], COLUMNS, model_dir="unused"), tf.estimator.Estimator)
    tail = ["dropout", "input_layer_partitioner", "config", "warm_start_from", "loss_reduction", "batch_norm"]
    assert list(inspect.signature(tf.estimator.DNNClassifier).parameters)[-6:] == tail
