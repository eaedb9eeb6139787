"""tf.contrib.learn.Experiment: an estimator with its data, and the work of each task of a cluster.

    learn_runner.run(experiment_fn, run_config=tf.contrib.learn.RunConfig(model_dir="model"))

Owns the schedules; the work is tf.estimator's.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/learn/Experiment
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import dtf as tf

__all__ = [
    "Experiment", "MetricSpec", "ModeKeys", "PredictionKey", "RunConfig", "learn_runner", "make_export_strategy", "run",
    "tune",
]  # fmt: skip


class ModeKeys:
    """The mode of a model function."""

    TRAIN = "train"
    EVAL = "eval"
    INFER = "infer"


class PredictionKey:
    """The names of predictions."""

    CLASSES = "classes"
    PROBABILITIES = "probabilities"
    LOGITS = "logits"
    LOGISTIC = "logistic"
    SCORES = "scores"


class MetricSpec:
    """A metric of contrib, and the predictions and labels that it takes.

    Args:
      metric_fn: a function of (predictions, labels) or (predictions, labels, weights).
      prediction_key, label_key, weight_key: which of several.
    """

    def __init__(
        self, metric_fn: Callable[..., Any], prediction_key: str | None = None, label_key: str | None = None,
        weight_key: str | None = None,
    ) -> None:  # fmt: skip
        self.metric_fn, self.prediction_key = metric_fn, prediction_key
        self.label_key, self.weight_key = label_key, weight_key

    def create_metric_ops(self, inputs: Any, labels: Any, predictions: Any) -> Any:
        """(value, update)."""
        given = predictions[self.prediction_key] if isinstance(predictions, Mapping) else predictions
        wanted = labels[self.label_key] if isinstance(labels, Mapping) else labels
        more = {"weights": inputs[self.weight_key]} if self.weight_key else {}
        return self.metric_fn(given, wanted, **more)


def RunConfig(  # noqa: N802
    master: str | None = None, num_cores: int = 0, log_device_placement: bool = False,
    gpu_memory_fraction: float = 1, tf_random_seed: int | None = None, save_summary_steps: int = 100,
    save_checkpoints_secs: Any = "default", save_checkpoints_steps: int | None = None, keep_checkpoint_max: int = 5,
    keep_checkpoint_every_n_hours: float = 10000, log_step_count_steps: int | None = 100,
    evaluation_master: str = "", model_dir: str | None = None, session_config: Any = None,
    session_creation_timeout_secs: float = 7200,
    **kwargs: Any,
) -> Any:  # fmt: skip
    """tf.estimator.RunConfig with contrib's arguments."""
    more: dict[str, Any] = {}
    if save_checkpoints_steps is not None:
        more["save_checkpoints_steps"] = save_checkpoints_steps
    elif save_checkpoints_secs != "default":
        more["save_checkpoints_secs"] = save_checkpoints_secs
    if session_config is None and (num_cores or log_device_placement):
        session_config = tf.ConfigProto(
            log_device_placement=log_device_placement, inter_op_parallelism_threads=num_cores,
            intra_op_parallelism_threads=num_cores,
        )  # fmt: skip
    return tf.estimator.RunConfig(
        model_dir=model_dir, tf_random_seed=tf_random_seed, save_summary_steps=save_summary_steps,
        keep_checkpoint_max=keep_checkpoint_max, keep_checkpoint_every_n_hours=keep_checkpoint_every_n_hours,
        log_step_count_steps=log_step_count_steps, session_config=session_config,
        session_creation_timeout_secs=session_creation_timeout_secs, **more,
    )  # fmt: skip


class Experiment:
    """An estimator with its data.

    Args:
      estimator: one of tf.estimator, or of tf.contrib.learn.
      train_input_fn, eval_input_fn: functions that give (features, labels).
      eval_metrics: {name: MetricSpec}, with an estimator of contrib.
      train_steps, eval_steps: None for no end.
      train_monitors: hooks.
      eval_delay_secs: how long `continuous_eval` waits before it begins.
      continuous_eval_throttle_secs: the least time between two evaluations.
      min_eval_frequency: not used: each new checkpoint is evaluated.
      export_strategies: exporters, or results of `make_export_strategy`.
      eval_hooks: of evaluations.
    """

    def __init__(
        self, estimator: Any, train_input_fn: Callable[[], Any], eval_input_fn: Callable[[], Any],
        eval_metrics: Mapping[str, MetricSpec] | None = None, train_steps: int | None = None,
        eval_steps: int | None = 100, train_monitors: Any = None, eval_hooks: Any = None,
        local_eval_frequency: int | None = None, eval_delay_secs: float = 120,
        continuous_eval_throttle_secs: float = 60, min_eval_frequency: int | None = None,
        delay_workers_by_global_step: bool = False, export_strategies: Any = None,
        train_steps_per_iteration: Any = None,
        checkpoint_and_export: bool = False, saving_listeners: Any = None, check_interval_secs: float = 5,
    ) -> None:  # fmt: skip
        inner = getattr(estimator, "_estimator", estimator)
        if eval_metrics:
            inner = _with_metrics(inner, eval_metrics)
        self.estimator = inner
        self._train_input_fn, self._eval_input_fn = train_input_fn, eval_input_fn
        self._train_steps, self._eval_steps = train_steps, eval_steps
        self._hooks, self._eval_hooks = list(train_monitors or ()), list(eval_hooks or ())
        self._delay_s, self._throttle_s = eval_delay_secs, continuous_eval_throttle_secs
        given = export_strategies or ()
        self._exporters = list(given) if isinstance(given, list | tuple | set) else [given]

    def _train_spec(self) -> Any:
        return tf.estimator.TrainSpec(self._train_input_fn, self._train_steps, self._hooks)

    def _eval_spec(self) -> Any:
        return tf.estimator.EvalSpec(
            self._eval_input_fn, self._eval_steps, hooks=self._eval_hooks, exporters=self._exporters or None,
            start_delay_secs=self._delay_s, throttle_secs=self._throttle_s,
        )  # fmt: skip

    def train(self, delay_secs: float | None = None) -> Any:
        """Trains to `train_steps`, in this task's place in the cluster; a ps serves."""
        if _has_cluster():
            return self.train_and_evaluate()
        return self.estimator.train(self._train_input_fn, self._hooks, max_steps=self._train_steps)

    def evaluate(self, delay_secs: float | None = None, name: str | None = None) -> Any:
        """The figures of the last checkpoint."""
        return self.estimator.evaluate(self._eval_input_fn, self._eval_steps, self._eval_hooks, name=name)

    def train_and_evaluate(self) -> Any:
        """Trains, with evaluations of new checkpoints, as this task's place in the cluster says."""
        return tf.estimator.train_and_evaluate(self.estimator, self._train_spec(), self._eval_spec())

    def continuous_eval(self, *args: Any, **kwargs: Any) -> None:
        """Evaluates each new checkpoint up to `train_steps`."""
        for path in tf.train.checkpoints_iterator(self.estimator.model_dir, self._throttle_s):
            self.estimator.evaluate(self._eval_input_fn, self._eval_steps, self._eval_hooks, checkpoint_path=path)
            step = int(path.rpartition("-")[2]) if path.rpartition("-")[2].isdigit() else 0
            if self._train_steps is not None and step >= self._train_steps:
                return

    def run_std_server(self) -> None:
        """Serves, as a ps, until it is stopped."""
        self.train_and_evaluate()

    def test(self) -> Any:
        """One step of training, and an evaluation of one."""
        self.estimator.train(self._train_input_fn, self._hooks, steps=1)
        return self.estimator.evaluate(self._eval_input_fn, 1, self._eval_hooks, name="one_pass")

    local_run = train_and_evaluate


def _has_cluster() -> bool:
    config = os.environ.get("TF_CONFIG")
    return bool(config) and bool(json.loads(config or "{}").get("cluster"))


def _with_metrics(estimator: Any, metrics: Mapping[str, MetricSpec]) -> Any:
    def metric_fn(features: Any, labels: Any, predictions: Any) -> Any:
        return {name: spec.create_metric_ops(features, labels, predictions) for name, spec in metrics.items()}

    add: Any = getattr(tf.estimator, "add_metrics", None)
    return estimator if add is None else add(estimator, metric_fn)


def make_export_strategy(
    serving_input_fn: Callable[[], Any], default_output_alternative_key: str | None = None, assets_extra: Any = None,
    as_text: bool = False, exports_to_keep: int | None = 5, strip_default_attrs: Any = None,
) -> Any:  # fmt: skip
    """A tf.estimator.LatestExporter named Servo."""
    return tf.estimator.LatestExporter("Servo", serving_input_fn, assets_extra, as_text, exports_to_keep)


def run(
    experiment_fn: Callable[..., Experiment], output_dir: str | None = None, schedule: str | None = None,
    run_config: Any = None, hparams: Any = None,
) -> Any:  # fmt: skip
    """Makes the experiment and runs the schedule of this task.

    Args:
      experiment_fn: a function of (run_config, hparams), or of the output folder.
      schedule: a method of Experiment; by default what the task's type says.

    Raises:
      ValueError: both a folder and a configuration are given, or neither; or the schedule is unknown.
    """
    if output_dir is not None and run_config is not None:
        raise ValueError("Cannot provide both `output_dir` and `run_config`")
    if output_dir is None and run_config is None:
        raise ValueError("Must set value for `output_dir` or `run_config`")
    if not callable(experiment_fn):
        raise TypeError("Experiment builder is not callable.")
    made = experiment_fn(run_config, hparams) if run_config is not None else experiment_fn(output_dir)
    if not isinstance(made, Experiment):
        raise TypeError(f"Experiment builder did not return an Experiment instance, got {type(made)} instead.")
    config = made.estimator.config
    usual = "train" if config.num_worker_replicas > 1 else "train_and_evaluate"
    name = schedule or {"ps": "run_std_server", "evaluator": "continuous_eval"}.get(config.task_type, usual)
    if not name.startswith("_") and callable(getattr(made, name, None)):
        return getattr(made, name)()
    known = ", ".join(each for each in dir(made) if not each.startswith("_") and callable(getattr(made, each)))
    raise ValueError(f"Schedule references non-existent task {name}; the tasks are: {known}")


def tune(experiment_fn: Callable[..., Experiment], tuner: Any) -> None:
    """Runs experiments with the hyperparameters of a tuner, while it has some."""
    while tuner.next_trial():
        tuner.run_experiment(experiment_fn)


learn_runner: Any = sys.modules[__name__]
