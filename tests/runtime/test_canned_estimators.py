"""Estimators with their models, and feature columns: what they learn, tell and export, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from tests.runtime.estimator_cluster import Cluster, side_by_side

RANDOM = np.random.RandomState(0)
N = 120
AGE = RANDOM.uniform(10, 90, N).astype(np.float32)
TOWN = np.array(["Bonn", "Ulm", "Kiel"])[RANDOM.randint(0, 3, N)]
X = RANDOM.randn(N, 2).astype(np.float32)
IS_OLD = (AGE > 50).astype(np.int64)
KIND = np.where(TOWN == "Ulm", 2, IS_OLD)
PRICE = (0.01 * AGE + X[:, 0] + (TOWN == "Kiel")).astype(np.float32)
FEATURES = {"age": AGE, "town": TOWN, "x": X}


def columns():
    fc = tf.feature_column
    age = fc.bucketized_column(fc.numeric_column("age"), [30, 50, 70])
    town = fc.categorical_column_with_vocabulary_list("town", ["Bonn", "Ulm", "Kiel"])
    return age, town, fc.numeric_column("x", shape=2)


def wide():
    return list(columns())


def deep():
    age, town, x = columns()
    return [age, tf.feature_column.embedding_column(town, 2), x]


def inputs(labels, batch=40, epochs=None, features=FEATURES):
    return tf.estimator.inputs.numpy_input_fn(features, labels, batch, num_epochs=epochs, shuffle=False)


def config(folder, **more):
    return tf.estimator.RunConfig(str(folder / "model"), tf_random_seed=1, log_step_count_steps=None, **more)


def test_two_classes_are_told_apart_by_a_linear_model(tmp_path):
    classifier = tf.estimator.LinearClassifier(wide(), config=config(tmp_path))
    classifier.train(inputs(IS_OLD), steps=60)
    assert classifier.get_variable_names()[:1] == ["global_step"]
    names = [name for name in classifier.get_variable_names() if "Ftrl" not in name]
    assert names == [
        "global_step", "linear/linear_model/age_bucketized/weights", "linear/linear_model/bias_weights",
        "linear/linear_model/town/weights", "linear/linear_model/x/weights",
    ]  # fmt: skip
    figures = classifier.evaluate(inputs(IS_OLD, epochs=1))
    assert set(figures) == {
        "accuracy", "accuracy_baseline", "auc", "auc_precision_recall", "average_loss", "global_step", "label/mean",
        "loss", "precision", "prediction/mean", "recall",
    }  # fmt: skip
    assert figures["accuracy"] == figures["precision"] == figures["recall"] == 1 and figures["auc"] > 0.999
    assert figures["label/mean"] == pytest.approx(IS_OLD.mean(), rel=1e-5)
    assert figures["accuracy_baseline"] == pytest.approx(max(IS_OLD.mean(), 1 - IS_OLD.mean()), rel=1e-5)
    assert figures["loss"] == pytest.approx(40 * figures["average_loss"], rel=1e-4)
    rows = list(classifier.predict(inputs(None, epochs=1)))
    assert [row["class_ids"][0] for row in rows] == IS_OLD.tolist()
    assert [row["classes"][0] for row in rows] == [str(label).encode() for label in IS_OLD]
    np.testing.assert_allclose([row["probabilities"][1] for row in rows], [row["logistic"][0] for row in rows], 1e-5)


def test_several_classes_with_words_for_labels_are_told_apart_by_a_net(tmp_path):
    words = ["young", "old", "of Ulm"]
    labels = np.array(words)[KIND]
    classifier = tf.estimator.DNNClassifier(
        [16, 8], deep(), n_classes=3, label_vocabulary=words, optimizer="Adam", config=config(tmp_path)
    )
    classifier.train(inputs(labels), steps=100)
    assert {"dnn/hiddenlayer_0/kernel", "dnn/hiddenlayer_1/bias", "dnn/logits/kernel"} < set(
        classifier.get_variable_names()
    )
    embedding = "dnn/input_from_feature_columns/input_layer/town_embedding/embedding_weights"
    assert classifier.get_variable_value(embedding).shape == (3, 2)
    assert classifier.evaluate(inputs(labels, epochs=1))["accuracy"] > 0.95
    found = [row["classes"][0].decode() for row in classifier.predict(inputs(None, epochs=1))]
    assert np.mean(np.array(found) == labels) > 0.95


def test_numbers_are_learned_wide_and_deep(tmp_path):
    regressor = tf.estimator.DNNLinearCombinedRegressor(
        linear_feature_columns=wide(),
        dnn_feature_columns=deep(),
        dnn_hidden_units=[8],
        dnn_dropout=0.0,
        config=config(tmp_path),
    )
    regressor.train(inputs(PRICE), steps=200)
    figures = regressor.evaluate(inputs(PRICE, epochs=1))
    assert figures["average_loss"] < 0.2 * PRICE.var()
    assert figures["label/mean"] == pytest.approx(PRICE.mean(), rel=1e-5)
    found = np.array([row["predictions"] for row in regressor.predict(inputs(None, epochs=1))])
    assert np.square(found[:, 0] - PRICE).mean() == pytest.approx(figures["average_loss"], rel=1e-4)


def test_a_step_is_what_numpy_computes(tmp_path):
    x = tf.feature_column.numeric_column("x", shape=2)
    weights = np.arange(4, dtype=np.float32)
    features = {"x": X[:4], "weight": weights}
    regressor = tf.estimator.LinearRegressor(
        [x], optimizer=tf.train.GradientDescentOptimizer(0.1), weight_column="weight", config=config(tmp_path)
    )
    regressor.train(inputs(PRICE[:4], 4, features=features), steps=1)
    np.testing.assert_allclose(
        regressor.get_variable_value("linear/linear_model/x/weights")[:, 0],
        0.1 * 2 * X[:4].T @ (weights * PRICE[:4]),
        rtol=1e-5,
    )
    first = f"{regressor.model_dir}/model.ckpt-0"
    figures = regressor.evaluate(inputs(PRICE[:4], 4, 1, features), checkpoint_path=first)
    assert figures["loss"] == pytest.approx((weights * PRICE[:4] ** 2).sum(), rel=1e-5)
    assert figures["average_loss"] == pytest.approx((weights * PRICE[:4] ** 2).sum() / weights.sum(), rel=1e-5)


def test_a_classifier_is_exported_with_its_columns(tmp_path):
    classifier = tf.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide(),
        dnn_feature_columns=deep(),
        dnn_hidden_units=[8],
        n_classes=3,
        config=config(tmp_path),
    )
    classifier.train(inputs(KIND), steps=20)
    spec = tf.feature_column.make_parse_example_spec([*wide(), *deep()])
    receiver = tf.estimator.export.build_parsing_serving_input_receiver_fn(spec)
    folder = classifier.export_saved_model(str(tmp_path / "exports"), receiver).decode()

    def example(index):
        feature, train = tf.train.Feature, tf.train
        made = {
            "age": feature(float_list=train.FloatList(value=[AGE[index]])),
            "town": feature(bytes_list=train.BytesList(value=[TOWN[index].encode()])),
            "x": feature(float_list=train.FloatList(value=X[index])),
        }
        return train.Example(features=train.Features(feature=made)).SerializeToString()

    with tf.Graph().as_default(), tf.Session() as session:
        signatures = tf.saved_model.load(session, ["serve"], folder).signature_def
        assert set(signatures) == {"serving_default", "classification", "predict"}
        signature = signatures["serving_default"]
        scores, classes = session.run(
            [signature.outputs["scores"].name, signature.outputs["classes"].name],
            {signature.inputs["inputs"].name: [example(index) for index in range(10)]},
        )
    assert classes.tolist() == [[b"0", b"1", b"2"]] * 10
    expected = [row["probabilities"] for row in classifier.predict(inputs(None, epochs=1))][:10]
    np.testing.assert_allclose(scores, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_a_cluster_trains_them_too(tmp_path):
    """Embeddings and their sparse gradients on a ps; tables, which are filled anew in each task."""
    cluster = Cluster(tmp_path, ps=1)
    train_spec = tf.estimator.TrainSpec(inputs(KIND), max_steps=200)
    eval_spec = tf.estimator.EvalSpec(inputs(KIND, epochs=1), None, start_delay_secs=0, throttle_secs=0)

    def run(job, index):
        task_config = cluster.config(job, index)
        classifier = tf.estimator.DNNClassifier([8], deep(), n_classes=3, optimizer="Adam", config=task_config)
        tf.estimator.train_and_evaluate(classifier, train_spec, eval_spec)

    side_by_side({task: lambda task=task: run(*task) for task in [*cluster.tasks, ("evaluator", 0)]})
    figures = tf.estimator.experimental.read_eval_metrics(f"{cluster.folder}/eval")
    assert max(figures) >= 200 and figures[max(figures)]["accuracy"] > 0.9


def test_what_is_wrong_with_columns_is_named():
    fc = tf.feature_column
    number, town = fc.numeric_column("x", 2), fc.categorical_column_with_vocabulary_list("town", ["Bonn"])
    features = {"x": X, "town": TOWN}
    identity = fc.categorical_column_with_identity
    for error, words, make in (
        (ValueError, "must be greater than 0", lambda: fc.numeric_column("x", 0)),
        (ValueError, "convertible to float", lambda: fc.numeric_column("x", dtype=tf.string)),
        (TypeError, "must be a callable", lambda: fc.numeric_column("x", normalizer_fn=1)),
        (ValueError, "must be a numeric column", lambda: fc.bucketized_column(town, [1])),
        (ValueError, "sorted list", lambda: fc.bucketized_column(fc.numeric_column("x"), [2, 1])),
        (ValueError, "Input must be a CategoricalColumn", lambda: fc.indicator_column(number)),
        (ValueError, "Invalid dimension 0", lambda: fc.embedding_column(town, 0)),
        (ValueError, "combiner must be one of", lambda: fc.embedding_column(town, 1, "max")),
        (ValueError, "initializer must be callable", lambda: fc.embedding_column(town, 1, initializer=1)),
        (ValueError, "num_buckets 0 < 1", lambda: identity("i", 0)),
        (ValueError, "not in range", lambda: identity("i", 2, 2)),
        (ValueError, "must be non-empty", lambda: fc.categorical_column_with_vocabulary_list("w", [])),
        (ValueError, "Duplicate keys", lambda: fc.categorical_column_with_vocabulary_list("w", ["a", "a"])),
        (ValueError, "do not match", lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], tf.int64)),
        (ValueError, "both", lambda: fc.categorical_column_with_vocabulary_list("w", ["a"], None, 0, 1)),
        (ValueError, "at least 1", lambda: fc.categorical_column_with_hash_bucket("h", 0)),
        (ValueError, "string or integer", lambda: fc.categorical_column_with_hash_bucket("h", 2, tf.float32)),
        (ValueError, "must be dense columns", lambda: fc.input_layer(features, [town])),
        (ValueError, "must not be empty", lambda: fc.input_layer(features, [])),
        (ValueError, "must be feature columns", lambda: fc.linear_model(features, ["x"])),
        (ValueError, r"Duplicate .*\['x'\]", lambda: fc.input_layer(features, [number, number])),
        (ValueError, "Feature y is not in .*'town', 'x'", lambda: fc.input_layer(features, fc.numeric_column("y"))),
        (ValueError, "takes string; the feature is float", lambda: fc.linear_model({"town": X}, [town])),
        (ValueError, "combiner must be one of", lambda: fc.linear_model(features, [town], sparse_combiner="max")),
        (ValueError, "must be feature columns", lambda: fc.make_parse_example_spec(["x"])),
        (ValueError, "x is read in two ways", lambda: fc.make_parse_example_spec([number, fc.numeric_column("x")])),
    ):
        with pytest.raises(error, match=words):
            make()
    layer = fc.input_layer({"i": tf.constant([1, 5])}, fc.indicator_column(identity("i", 5)))
    with tf.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match="classes from 0 to 4"):
        session.run(layer)


def test_what_is_wrong_with_models_is_named(tmp_path):
    make = tf.estimator
    dense = [tf.feature_column.numeric_column("x", 2)]
    for words, build in (
        ("needs feature_columns", lambda: make.LinearClassifier([])),
        ("needs feature_columns", lambda: make.DNNLinearCombinedClassifier()),
        ("dnn_hidden_units must be", lambda: make.DNNLinearCombinedClassifier(dnn_feature_columns=dense)),
        ("n_classes must be at least 2", lambda: make.LinearClassifier(dense, n_classes=1)),
        ("one word for each of the classes", lambda: make.LinearClassifier(dense, label_vocabulary=["a"])),
        ("An optimizer must be an object of tf.train", lambda: make.DNNRegressor([1], dense, optimizer="Adamant")),
        ("should be a dictionary", lambda: make.LinearRegressor(dense).train(lambda: (tf.constant(X), PRICE), steps=1)),
        ("returns no labels", lambda: make.LinearRegressor(dense).train(inputs(None), steps=1)),
        ("pass the class names as label_vocabulary", lambda: make.LinearClassifier(dense).train(inputs(TOWN), steps=1)),
        ("the weight column 'w'", lambda: make.LinearRegressor(dense, weight_column="w").train(inputs(PRICE), steps=1)),
    ):
        with pytest.raises(ValueError, match=words):
            build()
