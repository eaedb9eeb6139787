"""The parts of tf.contrib beside layers and slim."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.contrib import framework, learn, legacy_seq2seq, lookup, metrics, more_layers, opt, seq2seq, training
from dtf.contrib.tensorboard import projector

random = np.random.RandomState(1)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(3)
        yield graph


def run(fetches, feeds=None):
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()])
        return session.run(fetches, feeds)


# -- hyperparameters


def test_hyperparameters_keep_their_types():
    hparams = training.HParams(rate=0.1, sizes=[1, 2], name="adam", sync=False)
    hparams.parse("rate=1,sizes=[3,4,5],sync=true,name=sgd")
    assert hparams.values() == {"rate": 1.0, "sizes": [3, 4, 5], "name": "sgd", "sync": True}
    assert hparams.parse("sizes[1]=9").sizes == [3, 9, 5]
    assert training.HParams(rate=0.5).parse_json('{"rate": 2}').to_json() == '{"rate": 2.0}'
    assert "rate" in hparams and hparams.get("none", 7) == 7


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rate=x", "Could not parse hparam 'rate'"),
        ("unknown=1", "Unknown hyperparameter type for unknown"),
        ("rate", "Malformed hyperparameter value"),
        ("rate=1,rate=2", "Multiple assignments"),
        ("sizes=3", "Must pass a list"),
        ("rate=[1,2]", "Must not pass a list"),
    ],
)
def test_texts_that_do_not_fit_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        training.HParams(rate=0.1, sizes=[1]).parse(text)


# -- tables


def test_words_have_numbers_and_numbers_words(tmp_path):
    path = tmp_path / "words"
    path.write_text("a\nb\nc\n")
    by_list = lookup.index_table_from_tensor(["a", "b", "c"], num_oov_buckets=2)
    by_file = lookup.index_table_from_file(str(path), default_value=7)
    words = lookup.index_to_string_table_from_tensor(["a", "b", "c"])
    sparse = tf.SparseTensor([[0, 0], [1, 1]], ["c", "z"], [2, 2])
    numbers, others, back, of_sparse, size = run(
        [
            by_list.lookup(tf.constant(["b", "x", "c"])),
            by_file.lookup(tf.constant(["b", "x"])),
            words.lookup(tf.constant([2, 9], tf.int64)),
            by_list.lookup(sparse),
            by_list.size(),
        ]
    )
    assert numbers[0] == 1 and numbers[1] in (3, 4) and numbers[2] == 2
    assert list(others) == [1, 7] and list(back) == [b"c", b"UNK"]
    assert of_sparse.values[0] == 2 and of_sparse.values[1] in (3, 4)
    assert size == 5
    with pytest.raises(ValueError, match="mapping must be specified"):
        lookup.index_table_from_tensor(None)


# -- metrics


def test_streaming_figures_are_those_of_all_values():
    x, y = random.normal(size=(2, 3, 10)).astype(np.float32)
    a, b = tf.placeholder(tf.float32, [10]), tf.placeholder(tf.float32, [10])
    pairs = [
        metrics.streaming_pearson_correlation(a, b), metrics.streaming_covariance(a, b), metrics.streaming_concat(a),
        metrics.streaming_mean_absolute_error(a, b),
    ]  # fmt: skip
    values, updates = metrics.aggregate_metrics(*pairs)
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        for one, other in zip(x, y, strict=True):
            last = session.run(updates, {a: one, b: other})
        found = session.run(values)
    np.testing.assert_allclose(found[0], np.corrcoef(x.ravel(), y.ravel())[0, 1], rtol=1e-5)
    np.testing.assert_allclose(found[1], np.cov(x.ravel(), y.ravel())[0, 1], rtol=1e-5)
    np.testing.assert_allclose(found[2], x.ravel())
    np.testing.assert_allclose(found[3], np.abs(x - y).mean(), rtol=1e-5)
    np.testing.assert_allclose(last[0], found[0])


# -- layers


def test_norms_have_no_mean_and_the_variance_one():
    x = random.normal(2, 3, size=(4, 5, 5, 6)).astype(np.float32)
    layer, instance, group = run(
        [
            more_layers.layer_norm(tf.constant(x)),
            more_layers.instance_norm(tf.constant(x)),
            more_layers.group_norm(tf.constant(x), groups=3),
        ]
    )
    for values, axes in ((layer, (1, 2, 3)), (instance, (1, 2))):
        np.testing.assert_allclose(values.mean(axes), 0, atol=1e-4)
        np.testing.assert_allclose(values.var(axes), 1, rtol=1e-3)
    np.testing.assert_allclose(group.reshape(4, 25, 3, 2).mean((1, 3)), 0, atol=1e-4)


def test_other_layers_have_contribs_shapes_and_names():
    x = tf.constant(random.normal(size=(2, 6, 6, 4)).astype(np.float32))
    shapes = {
        "separable": more_layers.separable_conv2d(x, 5, [3, 3], depth_multiplier=2, scope="separable"),
        "depthwise": more_layers.separable_conv2d(x, None, [3, 3], depth_multiplier=2, scope="depthwise"),
        "transposed": more_layers.conv2d_transpose(x, 3, [3, 3], stride=2, scope="transposed"),
        "plane": more_layers.conv2d_in_plane(x, [1, 3], scope="plane"),
        "maxout": more_layers.maxout(x, 2),
        "spatial": more_layers.spatial_softmax(x, name="spatial"),
        "stack": more_layers.stack(
            tf.zeros([2, 3]), framework.add_arg_scope(tf.contrib.layers.fully_connected), [4, 5]
        ),
        "hot": more_layers.one_hot_encoding([1, 0], 3),
        "words": more_layers.embed_sequence(tf.constant([[1, 2]]), 10, 3),
    }
    found = {name: tensor.shape.as_list() for name, tensor in shapes.items()}
    assert found == {
        "separable": [2, 6, 6, 5], "depthwise": [2, 6, 6, 8], "transposed": [2, 12, 12, 3], "plane": [2, 6, 6, 4],
        "maxout": [2, 6, 6, 2], "spatial": [2, 8], "stack": [2, 5], "hot": [2, 3], "words": [1, 2, 3],
    }  # fmt: skip
    names = {variable.op.name for variable in tf.global_variables()}
    assert {"separable/depthwise_weights", "separable/pointwise_weights", "transposed/weights", "plane/weights",
            "Stack/fully_connected_2/biases", "spatial/temperature"} <= names  # fmt: skip
    assert all(np.isfinite(value).all() for value in run(list(shapes.values())))


def test_optimize_loss_trains_counts_and_clips():
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    train = tf.contrib.layers.optimize_loss(
        tf.reduce_sum(tf.square(w)), tf.train.get_or_create_global_step(), 0.5, "SGD", clip_gradients=1.0,
        gradient_multipliers={"w": 2.0}, learning_rate_decay_fn=lambda rate, step: rate * 0.5,
    )  # fmt: skip
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), 1 - 0.25 / np.sqrt(2), rtol=1e-5)
        assert session.run(tf.train.get_global_step()) == 1
    with pytest.raises(ValueError, match="Optimizer name should be one of"):
        tf.contrib.layers.optimize_loss(tf.constant(1.0), None, 0.1, "Best")


# -- optimizers


def test_weights_decay_apart_from_gradients():
    w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    make = opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)
    train = make(0.25, learning_rate=0.5).minimize(tf.reduce_sum(w * [1.0, 2.0]))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        np.testing.assert_allclose(session.run(w), [0.25, -0.25])
        opt.AdamWOptimizer(0.1, 0.01).minimize(tf.reduce_sum(w))
        opt.MomentumWOptimizer(0.1, 0.01, 0.9).minimize(tf.reduce_sum(w))


def test_averages_are_saved_in_place_of_variables(tmp_path):
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    averaging = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), 0.5)
    train = averaging.minimize(w * 1.0)
    saver = averaging.swapping_saver()
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train)
        path = saver.save(session, str(tmp_path / "m"))
    assert tf.train.load_variable(path, "w") == 0.5


# -- sequences


def test_attention_reads_the_memory_that_fits_the_query():
    memory = random.normal(size=(2, 4, 3)).astype(np.float32)
    for mechanism in (seq2seq.LuongAttention, seq2seq.BahdanauAttention):
        attention = mechanism(5, tf.constant(memory), [4, 2])
        alignments, _ = attention(tf.ones([2, 5]), None)
        found = run(alignments)
        np.testing.assert_allclose(found.sum(1), 1, rtol=1e-5)
        assert (found[1, 2:] == 0).all()


def model(helper, lengths=None):
    cell = seq2seq.AttentionWrapper(
        tf.nn.rnn_cell.GRUCell(6),
        seq2seq.LuongAttention(6, tf.constant(random.normal(size=(3, 4, 5)).astype(np.float32))),
        7,
    )
    layer = tf.layers.Dense(8)
    decoder = seq2seq.BasicDecoder(cell, helper, cell.zero_state(3, tf.float32), layer)
    return seq2seq.dynamic_decode(decoder, impute_finished=True, maximum_iterations=9)


def test_a_decoder_runs_as_long_as_its_inputs():
    inputs = tf.constant(random.normal(size=(3, 5, 2)).astype(np.float32))
    outputs, _, lengths = model(seq2seq.TrainingHelper(inputs, [5, 2, 3]))
    assert outputs.rnn_output.shape.as_list()[2] == 8
    loss = seq2seq.sequence_loss(
        outputs.rnn_output, tf.zeros([3, 5], tf.int32), tf.sequence_mask([5, 2, 3], dtype=tf.float32)
    )
    grads = tf.gradients(loss, tf.trainable_variables())
    values, found, gradients, cost = run([outputs.rnn_output, lengths, grads, loss])
    assert list(found) == [5, 2, 3] and values.shape == (3, 5, 8)
    assert (values[1, 2:] == 0).all() and (values[1, :2] != 0).any()
    assert all(np.abs(np.asarray(each)).sum() > 0 for each in gradients) and cost > 0


def test_a_decoder_that_feeds_itself_ends_at_the_limit():
    outputs, _, lengths = model(seq2seq.GreedyEmbeddingHelper(tf.random_normal([8, 2], seed=1), [0, 0, 0], 100))
    values, found = run([outputs.sample_id, lengths])
    assert list(found) == [9, 9, 9] and values.shape == (3, 9)


def test_old_losses_over_lists_are_the_new_one():
    logits = random.normal(size=(4, 3, 5)).astype(np.float32)
    targets = random.randint(0, 5, (4, 3)).astype(np.int32)
    weights = np.ones((4, 3), np.float32)
    lists = [[tf.constant(values[:, step]) for step in range(3)] for values in (logits, targets, weights)]
    old, new = run([legacy_seq2seq.sequence_loss(*lists), seq2seq.sequence_loss(logits, targets, weights)])
    np.testing.assert_allclose(old, new, rtol=1e-5)


def test_an_old_decoder_feeds_its_own_words():
    cell = tf.nn.rnn_cell.BasicRNNCell(5)
    words = [tf.constant([1, 2]) for _ in range(3)]
    outputs, state = legacy_seq2seq.embedding_rnn_decoder(
        words, cell.zero_state(2, tf.float32), cell, 5, 4, feed_previous=True
    )
    assert [output.shape.as_list() for output in outputs] == [[2, 5]] * 3 and state.shape.as_list() == [2, 5]
    outputs, _ = legacy_seq2seq.basic_rnn_seq2seq(
        [tf.zeros([2, 3])] * 2, [tf.zeros([2, 3])] * 2, tf.nn.rnn_cell.BasicRNNCell(5)
    )
    assert len(run(outputs)) == 2


def test_examples_of_about_one_length_make_a_batch():
    lengths = tf.train.slice_input_producer([np.array([1, 7, 2, 8, 9, 1])], num_epochs=1, shuffle=False)[0]
    found_lengths, (values,) = training.bucket_by_sequence_length(
        lengths, [tf.ones([lengths])], 3, [5], dynamic_pad=True, capacity=10
    )
    with tf.Session() as session:
        session.run(tf.local_variables_initializer())
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        batches = sorted((session.run([found_lengths, values]) for _ in range(2)), key=lambda batch: batch[0][0])
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
    assert [list(batch[0]) for batch in batches] == [[1, 2, 1], [7, 8, 9]]
    assert batches[1][1].shape == (3, 9) and batches[1][1].sum() == 24


# -- estimators


def linear_data():
    x = random.uniform(-1, 1, (64, 2)).astype(np.float32)
    return x, (x @ [2.0, -1.0]).astype(np.float32)


@pytest.mark.slow
def test_an_old_model_function_is_fitted_evaluated_and_asked(tmp_path):
    def model_fn(features, labels, mode):
        w = tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        predictions = tf.reduce_sum(features * w, 1)
        if mode == learn.ModeKeys.INFER:
            return learn.ModelFnOps(mode, {"y": predictions})
        loss = tf.losses.mean_squared_error(labels, predictions)
        train = tf.contrib.layers.optimize_loss(loss, tf.train.get_global_step(), 0.3, "SGD")
        return learn.ModelFnOps(mode, {"y": predictions}, loss, train)

    x, y = linear_data()
    estimator = learn.SKCompat(learn.Estimator(model_fn, str(tmp_path)))
    estimator.fit(x, y, batch_size=64, steps=40)
    assert estimator.score(x, y)["loss"] < 0.01
    np.testing.assert_allclose(estimator.predict(x)["y"], y, atol=0.2)


@pytest.mark.slow
def test_an_experiment_runs_the_schedule_of_its_task(tmp_path, monkeypatch):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    x, y = linear_data()
    given = tf.estimator.inputs.numpy_input_fn({"x": x}, y, 64, None, True)
    once = tf.estimator.inputs.numpy_input_fn({"x": x}, y, 64, 1, False)

    def experiment(config, hparams):
        columns = [tf.contrib.layers.real_valued_column("x", 2)]
        estimator = learn.LinearRegressor(feature_columns=columns, config=config, optimizer=hparams.optimizer)
        return learn.Experiment(estimator, given, once, train_steps=30, eval_delay_secs=0)

    config = learn.RunConfig(model_dir=str(tmp_path), save_checkpoints_steps=30)
    hparams = training.HParams(optimizer="Ftrl")
    result = learn.learn_runner.run(experiment, run_config=config, hparams=hparams)
    assert result[0]["global_step"] == 30
    with pytest.raises(ValueError, match="non-existent task nothing; the tasks are: continuous_eval, evaluate, "):
        learn.learn_runner.run(experiment, run_config=config, hparams=hparams, schedule="nothing")
    with pytest.raises(ValueError, match="Must set value"):
        learn.learn_runner.run(experiment)


# -- others


def test_the_projector_is_told_of_embeddings(tmp_path):
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name, embedding.metadata_path = "words", 'a "b".tsv'
    embedding.sprite.image_path = "s.png"
    embedding.sprite.single_image_dim.extend([8, 8])
    with tf.summary.FileWriter(str(tmp_path)) as writer:
        projector.visualize_embeddings(writer, config)
    assert (tmp_path / "projector_config.pbtxt").read_text() == (
        'embeddings {\n  tensor_name: "words"\n  metadata_path: "a \\"b\\".tsv"\n  sprite {\n'
        '    image_path: "s.png"\n    single_image_dim: 8\n    single_image_dim: 8\n  }\n}\n'
    )


def test_data_sets_have_their_first_names():
    contrib = tf.contrib.data
    dataset = tf.data.Dataset.range(5).apply(contrib.batch_and_drop_remainder(2))
    value = dataset.make_one_shot_iterator().get_next()
    assert list(run(value)) == [0, 1]
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        contrib.nothing  # noqa: B018


def test_what_is_not_here_says_what_to_use():
    with pytest.raises(NotImplementedError, match="simple_save"):
        tf.contrib.session_bundle.exporter(None)


def test_distributions_are_those_of_tf():
    distributions = tf.contrib.distributions
    assert distributions.Normal is tf.distributions.Normal and set(tf.distributions.__all__) <= set(dir(distributions))
    assert run(distributions.kl_divergence(distributions.Normal(0.0, 1.0), distributions.Normal(1.0, 1.0))) == 0.5
    with pytest.raises(AttributeError, match="Empirical"):
        distributions.Empirical  # noqa: B018
