"""train_and_evaluate: in one process, and as chief, workers, ps and evaluator of a cluster; exporters; early stops."""

from __future__ import annotations

import json
import os
import threading
from functools import partial

import numpy as np
import pytest

import dtf as tf
from dtf.estimator.cluster_place import place_from
from dtf.estimator.evaluator import Evaluator, evaluate_until_trained, last_checkpoint_told, tell_last_checkpoint
from dtf.estimator.serving_end import tell_parameter_servers
from dtf.estimator.training import worker_delay_s
from tests.runtime.estimator_cluster import Cluster, side_by_side

X = np.random.RandomState(0).randn(64, 3).astype(np.float32)
Y = (X @ np.float32([1, -2, 0.5]) + 0.25).astype(np.float32)[:, np.newaxis]
TrainSpec, EvalSpec, RunConfig = tf.estimator.TrainSpec, tf.estimator.EvalSpec, tf.estimator.RunConfig


def model_fn(features, labels, mode):
    """Linear regression by a gradient descent that each replica pushes by itself."""
    w = tf.get_variable("w", [3, 1], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
    y = tf.matmul(features["x"], w) + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, {"y": y})
    loss = tf.reduce_mean(tf.square(y - labels))
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss, tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, y)}
    return tf.estimator.EstimatorSpec(mode, {"y": y}, loss, train_op, metrics)


def train_input():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat().batch(16)


def eval_input():
    return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).batch(64)


def receiver_fn():
    return tf.estimator.export.ServingInputReceiver(
        {"x": tf.placeholder(tf.float32, [None, 3])}, {"x": tf.placeholder(tf.float32, [None, 3])}
    )


class Recorder(tf.estimator.Exporter):
    """Notes what it is called with."""

    def __init__(self, name="recorder"):
        self._name = name
        self.calls = []

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        assert export_path == os.path.join(estimator.model_dir, "export", self._name)
        self.calls.append((int(eval_result["global_step"]), is_the_final_export))
        return b"exported"


def local_estimator(tmp_path, **arguments):
    config = RunConfig(str(tmp_path / "model"), **{"tf_random_seed": 1, "save_checkpoints_steps": 10, **arguments})
    return tf.estimator.Estimator(model_fn, config=config)


# In one process


def test_one_process_evaluates_after_its_checkpoints(tmp_path):
    estimator, recorder = local_estimator(tmp_path), Recorder()
    figures, exports = tf.estimator.train_and_evaluate(
        estimator, TrainSpec(train_input, 30), EvalSpec(eval_input, exporters=recorder, throttle_secs=0)
    )
    assert [step for step, _ in recorder.calls] == [10, 20, 30]
    assert [final for _, final in recorder.calls] == [False, False, True]
    assert figures == estimator.evaluate(eval_input) and exports == [b"exported"]
    assert set(tf.estimator.experimental.read_eval_metrics(estimator.eval_dir())) == {10, 20, 30}
    again = tf.estimator.train_and_evaluate(estimator, TrainSpec(train_input, 30), EvalSpec(eval_input))
    assert again is None and len(recorder.calls) == 3


def test_evaluations_are_not_closer_than_asked_for_and_the_last_is_never_left_out(tmp_path):
    recorder = Recorder()
    tf.estimator.train_and_evaluate(
        local_estimator(tmp_path), TrainSpec(train_input, 30), EvalSpec(eval_input, exporters=[recorder])
    )
    assert recorder.calls == [(30, True)]


# In a cluster


def test_each_task_of_a_cluster_does_its_part_and_ends_by_itself(tmp_path):
    cluster, recorder = Cluster(tmp_path, model_fn), Recorder()
    places = []

    class Places(tf.estimator.SessionRunHook):
        def begin(self):
            lock = threading.Lock()
            with lock:
                places.append({variable.op.name: variable.device for variable in tf.global_variables()})

    exporters = [recorder, tf.estimator.FinalExporter("final", receiver_fn)]
    results = cluster.run(
        TrainSpec(train_input, 200, hooks=[Places()]),
        EvalSpec(eval_input, exporters=exporters, start_delay_secs=0, throttle_secs=0),
    )
    assert set(results.values()) == {None}
    assert places[0] == places[1] == {
        "global_step": "/job:ps/task:0",
        "w": "/job:ps/task:1",
        "b": "/job:ps/task:0",
    }
    step, is_final = recorder.calls[-1]
    assert step >= 200 and is_final and [each for each in recorder.calls if each[1]] == [recorder.calls[-1]]
    estimator = local_estimator(tmp_path)
    figures = estimator.evaluate(eval_input)
    assert figures["error"] < 0.05 and figures["global_step"] == step
    assert len(os.listdir(os.path.join(cluster.folder, "export", "final"))) == 1
    assert set(tf.estimator.experimental.read_eval_metrics(estimator.eval_dir())) >= {step}


def test_input_that_ends_ends_the_training_of_a_cluster_too(tmp_path):
    cluster, recorder = Cluster(tmp_path, model_fn, ps=1), Recorder()

    def once():
        return tf.data.Dataset.from_tensor_slices(({"x": X}, Y)).repeat(5).batch(16)

    cluster.run(TrainSpec(once), EvalSpec(eval_input, exporters=recorder, start_delay_secs=0.2, throttle_secs=0))
    last = last_checkpoint_told(cluster.folder)
    assert last == os.path.basename(local_estimator(tmp_path).latest_checkpoint())
    # The other worker may go on between the naming of a checkpoint and the reading of what it holds.
    named = int(last.rpartition("-")[2])
    assert named <= recorder.calls[-1][0] <= named + 2


def test_a_chief_alone_leaves_evaluation_to_the_evaluator(tmp_path):
    cluster, recorder = Cluster(tmp_path, model_fn, ps=0, workers=0), Recorder()
    spec = EvalSpec(eval_input, exporters=recorder, start_delay_secs=0, throttle_secs=0)
    cluster.run(TrainSpec(train_input, 30), spec, evaluator=False)
    assert not recorder.calls
    cluster.run(TrainSpec(train_input, 60), spec)
    assert recorder.calls[-1] == (60, True)


def test_replicas_may_be_synchronous(tmp_path):
    def synchronous(features, labels, mode, config):
        spec = model_fn(features, labels, mode)
        if mode != tf.estimator.ModeKeys.TRAIN:
            return spec
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(0.05), 2, total_num_replicas=2)
        train_op = optimizer.minimize(spec.loss, tf.train.get_global_step())
        hook = optimizer.make_session_run_hook(config.is_chief, num_tokens=0)
        return tf.estimator.EstimatorSpec(mode, loss=spec.loss, train_op=train_op, training_hooks=[hook])

    def half(config):
        index = config.global_id_in_cluster
        return tf.data.Dataset.from_tensor_slices(({"x": X[index::2]}, Y[index::2])).repeat().batch(32)

    cluster = Cluster(tmp_path, synchronous, ps=1)
    cluster.run(TrainSpec(half, 20), EvalSpec(eval_input), evaluator=False)
    w, b = np.zeros((3, 1)), np.zeros(1)
    for _ in range(20):
        error = X @ w + b - Y
        w, b = w - 0.1 * X.T @ error / 64, b - 0.1 * error.mean(0)
    estimator = local_estimator(tmp_path)
    assert estimator.get_variable_value("global_step") == 20
    np.testing.assert_allclose(estimator.get_variable_value("w"), w, rtol=1e-4)
    np.testing.assert_allclose(estimator.get_variable_value("b"), b, rtol=1e-4)


def test_an_early_stop_ends_all_who_train(tmp_path):
    cluster = Cluster(tmp_path, model_fn, ps=1)
    chief = cluster.estimator("chief", 0)
    writer = tf.summary.FileWriter(chief.eval_dir())
    for step, loss in ((10, 1.0), (20, 0.5), (30, 0.6), (60, 0.7)):
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=loss)]), step)
    writer.close()

    def hook(job, index):
        return tf.estimator.experimental.stop_if_no_decrease_hook(
            cluster.estimator(job, index), "loss", 40, run_every_secs=None, run_every_steps=1
        )

    def run(task):
        spec = TrainSpec(train_input, 1_000_000, hooks=[hook(*task)])
        tf.estimator.train_and_evaluate(cluster.estimator(*task), spec, EvalSpec(eval_input))

    side_by_side({task: partial(run, task) for task in cluster.tasks})
    assert chief.get_variable_value("signal_early_stopping/STOP")
    assert chief.get_variable_value("global_step") < 1_000_000


def test_a_ps_that_is_not_there_is_not_told(tmp_path, monkeypatch):
    monkeypatch.setattr("dtf.estimator.serving_end._TELL_TIMEOUT_MS", 200)
    chief = Cluster(tmp_path, model_fn, ps=1).estimator("chief", 0)
    with tf.train.Server(chief.config.cluster_spec, "chief", 0):
        tell_parameter_servers(chief.config)


def test_workers_begin_one_after_the_other():
    def delays(most):
        cluster = {"chief": ["c:1"], "worker": [f"w{index}:1" for index in range(30)]}
        for index in (0, 2, 29):
            text = json.dumps({"cluster": cluster, "task": {"type": "worker", "index": index}})
            config = RunConfig(experimental_max_worker_delay_secs=most, place=place_from({"TF_CONFIG": text}))
            yield worker_delay_s(config)

    assert list(delays(None)) == pytest.approx([0.2, 0.6, 2.0])
    assert list(delays(60)) == [5, 15, 60]
    assert list(delays(0)) == [0, 0, 0]


# The evaluator


class Clock:
    """Time that passes by sleeping."""

    def __init__(self, on_sleep=lambda now: None):
        self.now = 0.0
        self._on_sleep = on_sleep

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += max(seconds, 0.01)
        self._on_sleep(self.now)


def test_the_evaluator_waits_as_told_but_not_before_the_last_checkpoint(tmp_path):
    estimator, recorder = local_estimator(tmp_path), Recorder()
    seen = []

    def train_meanwhile(now):
        if now > 5 and not seen:
            seen.append(estimator.train(train_input, max_steps=10))
        if now > 100 and len(seen) == 1:
            seen.append(estimator.train(train_input, max_steps=20))
            tell_last_checkpoint(estimator.model_dir, estimator.latest_checkpoint())

    clock = Clock(train_meanwhile)
    spec = EvalSpec(eval_input, exporters=recorder, start_delay_secs=30, throttle_secs=600)
    evaluate_until_trained(Evaluator(estimator, spec, 20), clock, clock.sleep)
    assert recorder.calls == [(10, False), (20, True)]
    assert 100 < clock.now < 105


def test_the_evaluator_ends_with_the_checkpoint_that_the_chief_told_of(tmp_path):
    estimator, recorder = local_estimator(tmp_path), Recorder()
    estimator.train(train_input, max_steps=10)

    def tell_later(now):
        if now > 50:
            tell_last_checkpoint(estimator.model_dir, estimator.latest_checkpoint())

    clock = Clock(tell_later)
    spec = EvalSpec(eval_input, exporters=recorder, start_delay_secs=1, throttle_secs=10)
    evaluate_until_trained(Evaluator(estimator, spec, 1000), clock, clock.sleep)
    assert recorder.calls == [(10, False), (10, True)]


@pytest.mark.parametrize("tells", [True, False], ids=["the chief tells", "the chief is lost"])
def test_the_evaluator_waits_for_the_checkpoint_that_the_chief_saves_at_its_end(tmp_path, tells):
    estimator, recorder = local_estimator(tmp_path), Recorder()
    estimator.train(train_input, max_steps=20)

    def end_later(now):
        if now > 10 and tells and estimator.latest_checkpoint().endswith("-20"):
            estimator.train(train_input, max_steps=21)  # a step of another worker, which came after the chief's last
            tell_last_checkpoint(estimator.model_dir, estimator.latest_checkpoint())

    clock = Clock(end_later)
    spec = EvalSpec(eval_input, exporters=recorder, start_delay_secs=0, throttle_secs=0)
    evaluate_until_trained(Evaluator(estimator, spec, 20), clock, clock.sleep)
    last, earliest = (21, 10) if tells else (20, 60)
    assert recorder.calls == [(last, True)]
    assert earliest <= clock.now < earliest + 1


def test_a_checkpoint_that_vanishes_before_it_is_evaluated_is_passed_over(tmp_path):
    estimator, recorder = local_estimator(tmp_path, keep_checkpoint_max=1), Recorder()
    estimator.train(train_input, max_steps=10)

    class Vanishing(tf.estimator.SessionRunHook):
        def begin(self):
            if estimator.get_variable_value("global_step") == 10:
                estimator.train(train_input, max_steps=20)

    spec = EvalSpec(eval_input, exporters=recorder, hooks=[Vanishing()], start_delay_secs=0, throttle_secs=0)
    clock = Clock()
    evaluate_until_trained(Evaluator(estimator, spec, 20), clock, clock.sleep)
    assert recorder.calls == [(20, True)]


# Exporters


def test_exporters_keep_the_latest_the_final_and_the_best(tmp_path):
    estimator = local_estimator(tmp_path)
    estimator.train(train_input, max_steps=1)
    exporters = {
        "latest": tf.estimator.LatestExporter("latest", receiver_fn, exports_to_keep=2),
        "final": tf.estimator.FinalExporter("final", receiver_fn),
        "best": tf.estimator.BestExporter("best", receiver_fn, exports_to_keep=1),
    }

    def export(name, exporter, loss, step, is_final=False):
        path = os.path.join(estimator.model_dir, "export", name)
        result = {"loss": loss, "global_step": step}
        done = exporter.export(estimator, path, estimator.latest_checkpoint(), result, is_final)
        return done is not None

    did = {
        name: [export(name, exporter, loss, step, step == 4) for step, loss in enumerate([3, 2, 4, 1, 5])]
        for name, exporter in exporters.items()
    }
    assert did == {
        "latest": [True] * 5,
        "final": [False] * 4 + [True],
        "best": [True, True, False, True, False],
    }
    counts = {name: len(os.listdir(os.path.join(estimator.model_dir, "export", name))) for name in exporters}
    assert counts == {"latest": 2, "final": 1, "best": 1}
    # A restarted process learns from the event files what was the best.
    with tf.summary.FileWriter(estimator.eval_dir()) as writer:
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="loss", simple_value=1.0)]), 3)
    restarted = tf.estimator.BestExporter("best", receiver_fn, event_file_pattern="eval/*tfevents*")
    assert [export("best", restarted, loss, 6) for loss in (1.5, 0.5)] == [False, True]
    greatest = tf.estimator.BestExporter(
        "greatest", receiver_fn, compare_fn=lambda best_eval_result, current_eval_result: True
    )
    assert export("greatest", greatest, 9, 7) and export("greatest", greatest, 10, 8)
    with pytest.raises(ValueError, match="must contain 'loss'"):
        restarted.export(estimator, "/nowhere", "x", {"global_step": 9}, False)


def test_wrong_specs_are_named(tmp_path):
    estimator = local_estimator(tmp_path)
    spec = TrainSpec(train_input)
    for error, words, make in (
        (TypeError, "input_fn must be a function", lambda: TrainSpec(None)),
        (ValueError, "max_steps > 0, given: 0", lambda: TrainSpec(train_input, 0)),
        (TypeError, "must be SessionRunHook", lambda: TrainSpec(train_input, hooks=[1])),
        (ValueError, "steps > 0, given: -1", lambda: EvalSpec(eval_input, -1)),
        (ValueError, "must be >= 0", lambda: EvalSpec(eval_input, throttle_secs=-1)),
        (TypeError, "must be Exporter instances", lambda: EvalSpec(eval_input, exporters=[1])),
        (ValueError, "different names; got", lambda: EvalSpec(eval_input, exporters=[Recorder(), Recorder()])),
        (ValueError, "must be positive", lambda: tf.estimator.LatestExporter("a", receiver_fn, exports_to_keep=0)),
        (ValueError, "needs a serving_input_receiver_fn", lambda: tf.estimator.BestExporter()),
        (TypeError, "takes an Estimator", lambda: tf.estimator.train_and_evaluate(1, spec, EvalSpec(eval_input))),
        (TypeError, "takes an EvalSpec", lambda: tf.estimator.train_and_evaluate(estimator, spec, spec)),
        (TypeError, "must be an Estimator", lambda: tf.estimator.experimental.make_early_stopping_hook(1, bool)),
    ):
        with pytest.raises(error, match=words):
            make()


# Early stopping in one process


def test_hooks_stop_when_a_figure_is_beyond_a_threshold_or_stays(tmp_path):
    experimental = tf.estimator.experimental
    estimator = local_estimator(tmp_path)
    with tf.summary.FileWriter(estimator.eval_dir()) as writer:
        for step, value in ((10, 1.0), (20, 3.0), (30, 2.0), (40, 2.5)):
            writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag="f", simple_value=value)]), step)

    def stops(make, *arguments, **more):
        hook = make(estimator, "f", *arguments, run_every_secs=None, run_every_steps=1, **more)
        return hook._should_stop_fn()

    assert stops(experimental.stop_if_higher_hook, 2.9)
    assert not stops(experimental.stop_if_higher_hook, 3.0)
    assert not stops(experimental.stop_if_higher_hook, 2.9, min_steps=30)
    assert stops(experimental.stop_if_lower_hook, 1.1)
    assert stops(experimental.stop_if_no_increase_hook, 20)
    assert not stops(experimental.stop_if_no_increase_hook, 21)
    assert stops(experimental.stop_if_no_decrease_hook, 30)
    assert not stops(experimental.stop_if_no_decrease_hook, 30, min_steps=30)
    assert list(experimental.read_eval_metrics(estimator.eval_dir()).items())[0] == (10, {"f": 1.0})
    hook = experimental.stop_if_higher_hook(estimator, "f", 2.9, run_every_secs=None, run_every_steps=1)
    estimator.train(train_input, max_steps=50, hooks=[hook])
    assert estimator.get_variable_value("global_step") == 1
    with pytest.raises(ValueError, match="Only one of"):
        experimental.make_early_stopping_hook(estimator, bool, run_every_secs=1, run_every_steps=1)
