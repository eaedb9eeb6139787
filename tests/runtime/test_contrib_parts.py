"""Parts of tf.contrib that single programs use: TPU shims, cuDNN's layers, predictors, image transforms, and others."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.as_tensorflow.historic import debug
from dtf.contrib import cudnn_rnn, estimator, image, learn, linalg, metric_learning, predictor, tpu
from dtf.contrib.distributions import MultivariateNormalDiag, kl_divergence
from dtf.contrib.learn.preprocessing import VocabularyProcessor


@pytest.fixture(autouse=True)
def own_graph():
    with tf.Graph().as_default():
        yield


def fetch(value, feed_dict=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        return session.run(value, feed_dict)


def model_fn(features, labels, mode, params):
    prediction = tf.layers.dense(features["x"], 1, kernel_initializer=tf.zeros_initializer(), name="out")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tpu.TPUEstimatorSpec(mode, {"y": prediction, "size": tf.fill([2], params["batch_size"])})
    loss = tf.losses.mean_squared_error(features["y"], prediction)
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    train_op = optimizer.minimize(loss, tf.train.get_global_step())
    metrics = (lambda error: {"error": tf.metrics.mean(error)}, [tf.abs(features["y"] - prediction)])
    return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, eval_metrics=metrics, host_call=None)


def input_fn(params):
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1)
    return tf.data.Dataset.from_tensor_slices({"x": x, "y": 2 * x}).repeat().batch(params["batch_size"])


def test_a_tpu_estimator_trains_on_cpus_with_its_batch_sizes(tmp_path):
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(iterations_per_loop=10, num_shards=8))
    assert config.tpu_config.num_shards == 8
    sizes = {"train_batch_size": 8, "eval_batch_size": 4, "predict_batch_size": 2}
    trainer = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, **sizes)
    trainer.train(input_fn, max_steps=40)
    assert trainer.evaluate(input_fn, steps=2)["error"] < 0.1
    assert next(iter(trainer.predict(input_fn)))["size"] == 2
    with pytest.raises(ValueError, match="use_tpu=False"):
        tpu.TPUEstimator(model_fn, config=config)
    with pytest.raises(ValueError, match="no master"):
        tpu.RunConfig(master="grpc://10.0.0.1:8470")


def test_cudnn_layers_are_layers_of_the_compatible_cells():
    inputs = tf.constant(np.random.RandomState(0).rand(4, 2, 3).astype(np.float32))
    for make, states in ((cudnn_rnn.CudnnLSTM, 2), (cudnn_rnn.CudnnGRU, 1)):
        layer = make(2, 5, direction="bidirectional", kernel_initializer=tf.constant_initializer(0.1))
        before = len(tf.trainable_variables())
        outputs, last = layer(inputs)
        assert len(tf.trainable_variables()) - before == (8 if states == 2 else 24)
        assert fetch(outputs).shape == (4, 2, 10) and [part.shape.as_list() for part in last] == [[4, 2, 5]] * states
        lengths = tf.constant([4, 2])
        cut, _ = make(1, 5)(inputs, sequence_lengths=lengths)
        assert (fetch(cut)[2:, 1] == 0).all()
    with pytest.raises(ValueError, match="direction"):
        cudnn_rnn.CudnnLSTM(1, 2, direction="both")


def test_a_predictor_of_a_saved_model_takes_and_gives_arrays(tmp_path):
    x = tf.placeholder(tf.float32, [None])
    with tf.Session() as session:
        tf.saved_model.simple_save(session, str(tmp_path / "1"), {"x": x}, {"y": x * 2.0})
    predict = predictor.from_saved_model(str(tmp_path / "1"))
    np.testing.assert_array_equal(predict({"x": [1.0, 2.0]})["y"], [2.0, 4.0])
    with pytest.raises(ValueError, match=r"unexpected inputs \['z'\]"):
        predict({"z": 1})
    with pytest.raises(ValueError, match="no signature 'other'"):
        predictor.from_saved_model(str(tmp_path / "1"), "other")


def test_images_turn_and_move():
    picture = np.arange(9, dtype=np.float32).reshape(3, 3)
    for interpolation in ("NEAREST", "BILINEAR"):
        turned = fetch(image.rotate(picture, np.pi / 2, interpolation))
        np.testing.assert_allclose(turned, np.rot90(picture), atol=1e-5)
    moved = fetch(image.translate(picture[None, :, :, None], [1, 0]))[0, :, :, 0]
    np.testing.assert_array_equal(moved, [[0, 0, 1], [0, 3, 4], [0, 6, 7]])
    there, back = (image.translations_to_projective_transforms([move, 0]) for move in (1, -1))
    both = image.compose_transforms(there, back)
    np.testing.assert_array_equal(fetch(image.transform(picture, both)), picture)


def test_normal_vectors_are_independent_normal_numbers():
    vector, unit = MultivariateNormalDiag([0.0, 1.0], [1.0, 2.0]), MultivariateNormalDiag(tf.zeros([2]))
    assert (vector.batch_shape.as_list(), vector.event_shape.as_list()) == ([], [2])
    density, entropy, distance, sample = fetch(
        [vector.log_prob([0.0, 1.0]), vector.entropy(), kl_divergence(vector, unit), vector.sample(7)])  # fmt: skip
    np.testing.assert_allclose([density, entropy], [-np.log(4 * np.pi), np.log(2) + 1 + np.log(2 * np.pi)], rtol=1e-6)
    np.testing.assert_allclose(distance, 0.5 * (4 + 1 - 1) - np.log(2), rtol=1e-6)
    assert sample.shape == (7, 2)


def test_linear_operators_know_their_matrices():
    lower = linalg.LinearOperatorTriL([[2.0, 9.0], [1.0, 4.0]])
    assert fetch(lower.to_dense()).tolist() == [[2, 0], [1, 4]] and fetch(lower.determinant()) == 8
    np.testing.assert_allclose(fetch(lower.matvec(lower.solvevec([2.0, 5.0]))), [2.0, 5.0])
    diagonal = tf.linalg.LinearOperatorDiag([2.0, 4.0])
    assert fetch([diagonal.solvevec([2.0, 2.0]), diagonal.matvec([1.0, 1.0])])[0].tolist() == [1.0, 0.5]
    assert fetch(tf.linalg.LinearOperatorIdentity(3).trace()) == 3


def test_triplets_take_the_nearest_negative_beyond_the_positive():
    # Distances squared: anchor 0 and positive 1: 1; negatives 4 and 9.
    points, labels = tf.constant([[0.0], [1.0], [2.0], [3.0]]), tf.constant([0, 0, 1, 1])
    pairs = [max(0, 1 - 4 + 3), max(0, 1 - 4 + 3), max(0, 1 - 4 + 3), max(0, 1 - 4 + 3)]
    np.testing.assert_allclose(fetch(metric_learning.triplet_semihard_loss(labels, points, 3.0)), np.mean(pairs))
    contrast = metric_learning.contrastive_loss([1, 0], tf.zeros([2, 1]), [[2.0], [0.25]])
    np.testing.assert_allclose(fetch(contrast), (4 + 0.75**2) / 2)
    assert np.isfinite(fetch(metric_learning.npairs_loss(labels, points, points)))


def test_gradients_are_bounded_by_their_global_norm():
    weights = [tf.get_variable(name, initializer=[value]) for name, value in (("a", 3.0), ("b", 4.0))]
    optimizer = estimator.clip_gradients_by_norm(tf.train.GradientDescentOptimizer(1.0), 1.0)
    train = optimizer.minimize(tf.add_n([tf.reduce_sum(tf.square(each)) / 2.0 for each in weights]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(weights), [[2.4], [3.2]], rtol=1e-6)


@pytest.mark.parametrize(
    ("optimizer", "rate"), [("SGD", 0.2), (None, 0.2 / 1e-3 / 1.01), (tf.train.GradientDescentOptimizer(0.05), 0.05)]
)
def test_estimators_of_contrib_learn_bound_their_gradients(optimizer, rate):
    """A name has the learning rate that it has without the bound, 0.2 for a linear part of one column. Ftrl's
    first step does not grow with the gradient."""
    column = tf.feature_column.numeric_column("x")
    given = {} if optimizer is None else {"optimizer": optimizer}
    made = learn.LinearRegressor(feature_columns=[column], gradient_clip_norm=1e-3, **given)
    made.fit(input_fn=lambda: ({"x": tf.constant([[1000.0]])}, tf.constant([[1e6]])), steps=1)
    found = made.get_variable_value("linear/linear_model/x/weights").item()
    assert 0 < abs(found) <= rate * 1e-3 * 1.01


def test_documents_become_rows_of_word_numbers(tmp_path):
    processor = VocabularyProcessor(4)
    rows = np.array(list(processor.fit_transform(["a cat, a dog", "the cat isn't here at all"])))
    assert rows.tolist() == [[1, 2, 1, 3], [4, 2, 5, 6]] and len(processor.vocabulary_) == 9
    processor.save(str(tmp_path / "vocab"))
    again = VocabularyProcessor.restore(str(tmp_path / "vocab"))
    assert list(map(list, again.transform(["dog zebra"]))) == [[3, 0, 0, 0]]
    assert list(again.reverse([[1, 2]])) == ["a cat"]
    (tmp_path / "vocab").write_bytes(b"\x80\x03c")
    with pytest.raises(ValueError, match="not written by"):
        VocabularyProcessor.restore(str(tmp_path / "vocab"))


def test_the_profiler_counts_parameters_and_operations(capsys):
    tf.layers.dense(tf.layers.dense(tf.ones([2, 3]), 4, name="a"), 5, use_bias=False, name="b")
    tree = tf.profiler.profile(options=tf.profiler.ProfileOptionBuilder.trainable_variables_parameter())
    assert tree.total_parameters == 3 * 4 + 4 + 4 * 5
    assert "  a (16 params)" in capsys.readouterr().out
    options = tf.profiler.ProfileOptionBuilder(tf.profiler.ProfileOptionBuilder.float_operation())
    counted = tf.profiler.profile(options=options.with_max_depth(3).with_empty_output().build())
    assert counted.total_float_ops >= 2 * 2 * 4 * 3 + 2 * 4 + 2 * 2 * 5 * 4
    assert capsys.readouterr().out == ""


def test_the_debugger_steps_aside():
    with tf.Session() as session:
        wrapped = debug.LocalCLIDebugWrapperSession(session)
        wrapped.add_tensor_filter("has_inf_or_nan", debug.has_inf_or_nan)
        assert wrapped.run(tf.constant(1)) == 1
    assert debug.has_inf_or_nan(None, [1.0, np.inf]) and not debug.has_inf_or_nan(None, [1, 2])


def test_datasets_are_grouped_resampled_and_made_sparse():
    data, experimental = tf.data.Dataset, tf.data.experimental
    reducer = experimental.Reducer(lambda key: np.int64(0), lambda total, x: total + x, lambda total: total)
    sums = data.range(10).apply(experimental.group_by_reducer(lambda x: x % 2, reducer))
    iterator = tf.data.make_one_shot_iterator(sums)
    first, after = experimental.get_next_as_optional(iterator), iterator.get_next()
    with tf.Session() as session:
        assert session.run(first.get_value()) == 20 and session.run(after) == 25
        assert not session.run(first.has_value())
    some = experimental.Optional.from_value({"a": tf.constant(3)})
    assert fetch(some.get_value()) == {"a": 3}
    assert not fetch(experimental.Optional.none_from_structure(some.value_structure).has_value())
    rows = data.range(1, 3).map(lambda n: tf.fill([n], n)).apply(experimental.dense_to_sparse_batch(2, [3]))
    batch = fetch(tf.data.make_one_shot_iterator(rows).get_next())
    assert batch.dense_shape.tolist() == [2, 3] and batch.values.tolist() == [1, 2, 2]
    skewed = data.from_tensor_slices([0, 0, 0, 1] * 200)
    for initial in (None, [0.75, 0.25]):
        even = skewed.apply(experimental.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=3)).batch(800)
        kinds, elements = fetch(tf.data.make_one_shot_iterator(even).get_next())
        assert (kinds == elements).all() and 0.42 < kinds.mean() < 0.58
