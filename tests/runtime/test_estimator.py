"""Estimator: train, evaluate, predict and export, and what is wrong with what it is given."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import dtf as tf
from dtf.estimator.exporter import read_figures

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(64, 3).astype(np.float32)
Y = (X @ np.float32([1, -2, 0.5]) + 0.25).astype(np.float32)[:, np.newaxis]
ModeKeys, EstimatorSpec = tf.estimator.ModeKeys, tf.estimator.EstimatorSpec


def model_fn(features, labels, mode, params):
    """Linear regression."""
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], w) + b
    if mode == ModeKeys.PREDICT:
        outputs = {"serving_default": tf.estimator.export.PredictOutput({"y": y})}
        outputs["regress"] = tf.estimator.export.RegressionOutput(y)
        return EstimatorSpec(mode, {"y": y, "twice": 2 * y}, export_outputs=outputs)
    loss = tf.reduce_mean(tf.square(y - labels))
    train_op = tf.train.GradientDescentOptimizer(params["rate"]).minimize(loss, tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, y)}
    return EstimatorSpec(mode, {"y": y}, loss, train_op, metrics)


def train_input():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(16)


def eval_input():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(24)


@pytest.fixture
def estimator(tmp_path):
    config = tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=20, log_step_count_steps=10)
    return tf.estimator.Estimator(model_fn, str(tmp_path / "model"), config, {"rate": 0.1})


def numpy_training(steps, rate=0.1):
    w, b = np.zeros((3, 1), np.float32), np.zeros(1, np.float32)
    for step in range(steps):
        rows = slice(16 * (step % 4), 16 * (step % 4) + 16)
        error = X[rows] @ w + b - Y[rows]
        w, b = w - rate * 2 * X[rows].T @ error / 16, b - rate * 2 * error.mean(0)
    return w, b


# Train


def test_training_is_what_numpy_computes_and_goes_on_from_the_checkpoint(estimator):
    assert estimator.train(train_input, steps=6) is estimator
    w, b = numpy_training(6)
    np.testing.assert_allclose(estimator.get_variable_value("w"), w, rtol=1e-4)
    np.testing.assert_allclose(estimator.get_variable_value("b"), b, rtol=1e-4)
    assert estimator.get_variable_names() == ["b", "global_step", "w"]
    estimator.train(train_input, max_steps=8)
    assert estimator.latest_checkpoint().endswith("model.ckpt-8")
    before = os.listdir(estimator.model_dir)
    estimator.train(lambda: 1 / 0, max_steps=8)  # over already: nobody is asked
    assert os.listdir(estimator.model_dir) == before
    estimator.train(train_input, steps=2)
    assert estimator.get_variable_value("global_step") == 10


def test_hooks_listeners_and_summaries_of_training(estimator):
    told = []

    class Hook(tf.estimator.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def end(self, session):
            told.append(self.name)

    class Listener(tf.estimator.CheckpointSaverListener):
        def after_save(self, session, step):
            told.append(step)

    def with_hooks(features, labels, mode, params):
        spec = model_fn(features, labels, mode, params)
        return spec._replace(training_hooks=[Hook("all")], training_chief_hooks=[Hook("chief")])

    trained = tf.estimator.Estimator(with_hooks, config=estimator.config, params={"rate": 0.1})
    trained.train(train_input, steps=40, hooks=[Hook("mine")], saving_listeners=[Listener()])
    assert told == [0, 20, 40, "chief", "mine", "all"]
    figures = read_figures(os.path.join(trained.model_dir, "*tfevents*"))
    assert any("loss" in figure for figure in figures.values())


def test_a_step_that_gives_nan_ends_the_training(estimator):
    diverging = tf.estimator.Estimator(model_fn, config=estimator.config, params={"rate": float("nan")})
    with pytest.raises(tf.estimator.NanLossDuringTrainingError):
        diverging.train(train_input, steps=5)


def test_input_that_ends_ends_the_training(estimator):
    estimator.train(eval_input)
    assert estimator.get_variable_value("global_step") == 3


def test_a_warm_start_begins_with_other_values_only_once(estimator, tmp_path):
    estimator.train(train_input, steps=5)
    values = estimator.get_variable_value("w")
    for name, settings in (
        ("all", estimator.model_dir),
        ("w", tf.estimator.WarmStartSettings(estimator.model_dir, vars_to_warm_start="w")),
    ):
        other = tf.estimator.Estimator(
            model_fn,
            config=estimator.config.replace(model_dir=str(tmp_path / name)),
            params={"rate": 0.0},
            warm_start_from=settings,
        )
        other.train(train_input, steps=1)
        np.testing.assert_array_equal(other.get_variable_value("w"), values)
        assert (other.get_variable_value("b") == 0).all() == (name == "w")
        assert other.get_variable_value("global_step") == 1


# Evaluate


def test_evaluation_gives_the_figures_of_the_checkpoint_and_writes_them(estimator):
    estimator.train(train_input, steps=20)
    w, b = numpy_training(20)
    figures = estimator.evaluate(eval_input)
    errors = X @ w + b - Y
    np.testing.assert_allclose(figures["error"], np.abs(errors).mean(), rtol=1e-3)
    losses = [np.square(errors[start : start + 24]).mean() for start in (0, 24, 48)]
    np.testing.assert_allclose(figures["loss"], np.mean(losses), rtol=1e-3)
    assert figures["global_step"] == 20
    written = read_figures(os.path.join(estimator.eval_dir(), "*tfevents*"))
    assert written == {20: {"global_step": 20, "error": figures["error"], "loss": figures["loss"]}}
    one = estimator.evaluate(eval_input, steps=1, name="one")
    np.testing.assert_allclose(one["loss"], losses[0], rtol=1e-3)
    assert os.listdir(os.path.join(estimator.model_dir, "eval_one"))
    first = os.path.join(estimator.model_dir, "model.ckpt-0")
    np.testing.assert_allclose(
        estimator.evaluate(eval_input, checkpoint_path=first)["error"], np.abs(Y).mean(), rtol=1e-5
    )


def test_more_figures_can_be_added(estimator):
    estimator.train(train_input, steps=1)

    def of_labels(labels, predictions):
        return {"labels": tf.metrics.mean(labels), "error": tf.metrics.mean(predictions["y"])}

    more = tf.estimator.add_metrics(estimator, of_labels)
    figures = more.evaluate(eval_input)
    assert set(figures) == {"error", "global_step", "labels", "loss"} and figures["global_step"] == 1
    np.testing.assert_allclose(figures["labels"], Y.mean(), rtol=1e-4)
    assert figures["loss"] == estimator.evaluate(eval_input)["loss"] != figures["error"]
    with pytest.raises(ValueError, match=r"not expected args: \['label'\]"):
        tf.estimator.add_metrics(estimator, lambda label: {})


def test_a_checkpoint_hook_of_ones_own_gets_the_listeners(estimator):
    told = []

    class Listener(tf.estimator.CheckpointSaverListener):
        def after_save(self, session, step):
            told.append(step)

    hook = tf.estimator.CheckpointSaverHook(estimator.model_dir, save_steps=3, saver=None)

    def with_hook(features, labels, mode, params):
        return model_fn(features, labels, mode, params)._replace(training_chief_hooks=[hook])

    own = tf.estimator.Estimator(with_hook, config=estimator.config, params={"rate": 0.1})
    own.train(train_input, steps=4, saving_listeners=[Listener()])
    assert told == [0, 3, 4]


def test_a_model_without_a_checkpoint_is_initialised_to_be_evaluated(estimator):
    figures = estimator.evaluate(eval_input)
    np.testing.assert_allclose(figures["error"], np.abs(Y).mean(), rtol=1e-5)
    assert figures["global_step"] == 0


# Predict


def test_predictions_come_one_by_one_or_in_batches(estimator):
    estimator.train(train_input, steps=20)
    w, b = numpy_training(20)
    rows = list(estimator.predict(eval_input))
    assert len(rows) == 64 and set(rows[0]) == {"y", "twice"}
    np.testing.assert_allclose([row["y"] for row in rows], X @ w + b, rtol=1e-3, atol=1e-5)
    batches = list(estimator.predict(eval_input, predict_keys=["twice"], yield_single_examples=False))
    assert [batch["twice"].shape for batch in batches] == [(24, 1), (24, 1), (16, 1)]
    assert set(batches[0]) == {"twice"}


def test_the_taker_of_predictions_may_do_anything_between_two_of_them(estimator):
    estimator.train(train_input, steps=1)
    predictions = estimator.predict(eval_input)
    next(predictions)
    default = tf.get_default_graph()
    with tf.Graph().as_default():
        tf.constant(1)
        next(predictions)
    assert tf.get_default_graph() is default
    predictions.close()
    assert tf.get_default_graph() is default


def test_predictions_that_are_no_dict_and_keys_that_are_not_there(estimator):
    def plain(features, mode):
        return EstimatorSpec(mode, features["x"] * 2.0)

    plain_estimator = tf.estimator.Estimator(plain)
    rows = list(plain_estimator.predict(eval_input))
    np.testing.assert_array_equal(rows, X * 2)
    with pytest.raises(ValueError, match="not valid in case of non-dict predictions"):
        next(plain_estimator.predict(eval_input, "y"))
    with pytest.raises(ValueError, match=r"from \['twice', 'y'\], provided \['z'\]"):
        next(estimator.predict(eval_input, ["z"]))

    def uneven(features, mode):
        return EstimatorSpec(mode, {"x": features["x"], "sum": tf.reduce_sum(features["x"])})

    with pytest.raises(ValueError, match="Batch length of predictions should be same"):
        next(tf.estimator.Estimator(uneven).predict(eval_input))


# Export


def signature(folder, key, feeds):
    with tf.Graph().as_default(), tf.Session() as session:
        found = tf.saved_model.load(session, ["serve"], folder).signature_def[key]
        outputs = {name: info.name for name, info in found.outputs.items()}
        return session.run(outputs, {found.inputs[name].name: value for name, value in feeds.items()})


def example(row):
    feature = tf.train.Feature(float_list=tf.train.FloatList(value=row))
    return tf.train.Example(features=tf.train.Features(feature={"x": feature})).SerializeToString()


def test_an_exported_model_answers_as_the_estimator_does(estimator, tmp_path):
    estimator.train(train_input, steps=20)
    expected = [row["y"] for row in estimator.predict(eval_input)]
    extra = tmp_path / "words.txt"
    extra.write_text("extra")
    parsing = tf.estimator.export.build_parsing_serving_input_receiver_fn({"x": tf.FixedLenFeature([3], tf.float32)})
    base = str(tmp_path / "exports")
    folder = estimator.export_saved_model(base, parsing, assets_extra={"more/words.txt": str(extra)}).decode()
    assert os.path.dirname(folder) == base and os.listdir(base) == [os.path.basename(folder)]
    assert Path(folder, "assets.extra", "more", "words.txt").read_text() == "extra"
    examples = [example(row) for row in X]
    np.testing.assert_allclose(signature(folder, "serving_default", {"examples": examples})["y"], expected)
    np.testing.assert_allclose(signature(folder, "regress", {"inputs": examples})["outputs"], expected)

    with tf.Graph().as_default():
        raw = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.placeholder(tf.float32, [None, 3])})
    second = estimator.export_savedmodel(base, raw, as_text=True).decode()
    assert second != folder and os.path.exists(os.path.join(second, "saved_model.pbtxt"))
    np.testing.assert_allclose(signature(second, "serving_default", {"x": X})["y"], expected)


def test_what_cannot_be_exported_says_why(estimator, tmp_path):
    raw = tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X)})
    base = str(tmp_path / "exports")
    with pytest.raises(ValueError, match="find trained model at"):
        estimator.export_saved_model(base, raw)
    estimator.train(train_input, steps=1)
    with pytest.raises(ValueError, match="input_receiver_fn must be defined"):
        estimator.export_saved_model(base, None)
    with pytest.raises(tf.errors.NotFoundError, match="nowhere.txt"):
        estimator.export_saved_model(base, raw, assets_extra={"a.txt": str(tmp_path / "nowhere.txt")})
    assert os.listdir(base) == []

    def only_classes(features, mode):
        y = tf.reduce_sum(features["x"], 1)
        return EstimatorSpec(mode, y, export_outputs={"c": tf.estimator.export.ClassificationOutput(scores=y)})

    refused = tf.estimator.Estimator(only_classes)
    with pytest.raises(ValueError, match="No output of the model can be served"):
        refused.export_saved_model(base, raw, checkpoint_path=estimator.latest_checkpoint())


def test_export_outputs_and_receivers_are_checked():
    export = tf.estimator.export
    x, words = tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.string, [None])
    assert export.PredictOutput(x).outputs == {"output": x}
    assert export.ClassificationOutput(classes=words).classes is words
    assert export.RegressionOutput(x).value is x
    assert export.ServingInputReceiver(x, words).features == {"feature": x}
    assert export.TensorServingInputReceiver(x, words, {"other": x}).receiver_tensors_alternatives == {
        "other": {"input": x}
    }
    for words_of_error, make in (
        ("key must be a string", lambda: export.PredictOutput({1: x})),
        ("value must be a Tensor", lambda: export.PredictOutput(1)),
        ("At least one of", lambda: export.ClassificationOutput()),
        ("scores must be a float", lambda: export.ClassificationOutput(scores=words)),
        ("classes must be a string", lambda: export.ClassificationOutput(classes=x)),
        ("must be a float Tensor", lambda: export.RegressionOutput(words)),
        ("features must be defined", lambda: export.ServingInputReceiver(None, words)),
        ("input a must be a Tensor", lambda: export.ServingInputReceiver(x, {"a": 1})),
        ("feature keys must be strings", lambda: export.ServingInputReceiver({1: x}, words)),
        ("features must be a Tensor", lambda: export.TensorServingInputReceiver({"x": x}, words)),
    ):
        with pytest.raises(ValueError, match=words_of_error):
            make()


# What users' functions may be


def test_input_functions_may_give_tensors_features_alone_and_ask_for_arguments(estimator):
    asked = {}

    def tensors(mode, params, config):
        asked.update(mode=mode, params=params, config=config)
        return {"x": tf.constant(X)}, tf.constant(Y)

    estimator.train(tensors, steps=2)
    assert asked == {"mode": "train", "params": {"rate": 0.1}, "config": estimator.config}
    assert len([*zip(range(70), estimator.predict(lambda: {"x": tf.constant(X)}), strict=False)]) == 70


@pytest.mark.parametrize(
    "input_fn, words",
    [
        (lambda: ({"x": tf.constant(X)},), r"should return \(features, labels\)"),
        (lambda: None, "no features"),
        (lambda: {}, "no features"),
        ("train", "must be a function"),
    ],
)
def test_a_wrong_input_function_is_named(estimator, input_fn, words):
    with pytest.raises(ValueError, match=words):
        estimator.train(input_fn, steps=1)


def test_a_wrong_model_function_is_named(estimator):
    make = tf.estimator.Estimator
    with pytest.raises(ValueError, match="must include features"):
        make(lambda labels: None)
    with pytest.raises(ValueError, match="does not include params"):
        make(lambda features: None, params={})
    with pytest.raises(ValueError, match=r"not expected args: \['else_'\]"):
        make(lambda features, else_: None)
    with pytest.raises(ValueError, match="must be a function"):
        make(None)
    with pytest.raises(ValueError, match="does not take labels"):
        make(lambda features, mode: None).train(train_input, steps=1)
    with pytest.raises(ValueError, match="should return an EstimatorSpec, not None"):
        make(lambda features, labels: None).train(train_input, steps=1)
    with pytest.raises(ValueError, match="of mode 'infer'"):
        make(lambda features, labels: EstimatorSpec("infer", features["x"])).train(train_input, steps=1)
    with pytest.raises(ValueError, match="give it once"):
        make(model_fn, "/a", tf.estimator.RunConfig(model_dir="/b"), params={})
    with pytest.raises(ValueError, match="instance of RunConfig"):
        make(model_fn, config={})
    with pytest.raises(ValueError, match="warm_start_from must be"):
        make(model_fn, params={}, warm_start_from=1)


def test_wrong_steps_and_hooks_are_named(estimator):
    with pytest.raises(ValueError, match="both steps and max_steps"):
        estimator.train(train_input, steps=1, max_steps=1)
    for call in (estimator.train, estimator.evaluate):
        with pytest.raises(ValueError, match="Must specify steps > 0, given: 0"):
            call(train_input, steps=0)
        with pytest.raises(TypeError, match="must be SessionRunHook instances"):
            call(train_input, steps=1, hooks=["hook"])
    silent = tf.estimator.Estimator(
        model_fn, config=estimator.config.replace(save_checkpoints_steps=None), params={"rate": 0.1}
    )
    with pytest.raises(ValueError, match="saving_listeners need checkpoints"):
        silent.train(train_input, steps=1, saving_listeners=[tf.estimator.CheckpointSaverListener()])


def test_a_spec_has_what_its_mode_needs():
    with tf.Graph().as_default():
        loss, op = tf.constant([1.0]), tf.no_op()
        assert EstimatorSpec("train", loss=loss, train_op=op).loss.shape.ndims == 0
        elsewhere = tf.constant(1.0)
        for error, words, arguments in (
            (ValueError, "one of tf.estimator.ModeKeys", {"mode": "training"}),
            (ValueError, "Missing train_op", {"mode": "train", "loss": loss}),
            (ValueError, "Missing loss", {"mode": "eval"}),
            (ValueError, "Missing predictions", {"mode": "infer"}),
            (ValueError, "Loss must be scalar", {"mode": "eval", "loss": tf.constant([1.0, 2.0])}),
            (TypeError, "must be an Operation or Tensor", {"mode": "train", "loss": loss, "train_op": "op"}),
            (TypeError, r"predictions\['a'\] must be a Tensor", {"mode": "infer", "predictions": {"a": 1}}),
            (TypeError, "tuples, given", {"mode": "eval", "loss": loss, "eval_metric_ops": {"a": loss}}),
            (TypeError, "training_hooks must be", {"mode": "infer", "predictions": loss, "training_hooks": [1]}),
            (TypeError, "scaffold must be", {"mode": "infer", "predictions": loss, "scaffold": 1}),
            (TypeError, "must be dict", {"mode": "infer", "predictions": loss, "export_outputs": 1}),
            (TypeError, "must be ExportOutput", {"mode": "infer", "predictions": loss, "export_outputs": {"a": 1}}),
        ):
            with pytest.raises(error, match=words):
                EstimatorSpec(**arguments)
        output = tf.estimator.export.PredictOutput(loss)
        with pytest.raises(ValueError, match="name one of them as the default"):
            EstimatorSpec("infer", loss, export_outputs={"a": output, "b": output})
    with tf.Graph().as_default(), pytest.raises(ValueError, match="not in the graph that model_fn was called in"):
        EstimatorSpec("eval", loss=tf.constant(1.0), predictions=elsewhere)


# numpy_input_fn


def drawn(input_fn, seed=None):
    with tf.Graph().as_default():
        if seed is not None:
            tf.set_random_seed(seed)
        tensors = input_fn()
        with tf.train.MonitoredSession() as session:
            batches = []
            while not session.should_stop():
                try:
                    batches.append(session.run(tensors))
                except tf.errors.OutOfRangeError:
                    return batches
    return batches


def test_arrays_come_in_batches_that_go_on_over_epochs():
    inputs = tf.estimator.inputs
    x, y = {"a": np.arange(5), "b": np.arange(10.0).reshape(5, 2)}, np.array(list("vwxyz"))
    batches = drawn(inputs.numpy_input_fn(x, y, 3, num_epochs=2, shuffle=False))
    assert [features["a"].tolist() for features, _ in batches] == [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4]]
    assert batches[1][0]["b"].tolist() == [[6, 7], [8, 9], [0, 1]]
    assert [labels.tolist() for _, labels in batches][-1] == [b"z"]
    shuffled = drawn(inputs.numpy_input_fn(np.arange(50), batch_size=50, shuffle=True))
    assert sorted(shuffled[0].tolist()) == list(range(50)) and shuffled[0].tolist() != list(range(50))
    of_fifty = inputs.numpy_input_fn(np.arange(50), shuffle=True)
    one, again, other = (drawn(of_fifty, seed)[0].tolist() for seed in (1, 1, 2))
    assert one == again != other
    assert list(drawn(inputs.numpy_input_fn(np.arange(4), {"l": np.arange(4)}, 4, shuffle=False))[0][1]) == ["l"]


def test_wrong_arrays_are_named():
    make = tf.estimator.inputs.numpy_input_fn
    with pytest.raises(ValueError, match="shuffle must be provided"):
        make(X)
    with pytest.raises(ValueError, match="mismatched: {'x': 64, 'y': 3}"):
        make(X, np.zeros(3), shuffle=False)
    with pytest.raises(ValueError, match="x cannot be empty"):
        make({}, shuffle=False)
    with pytest.raises(TypeError, match="must be an array; got list"):
        make({"a": [1]}, shuffle=False)
    with pytest.raises(TypeError, match="x must be a dict or array"):
        make([1], shuffle=False)
