"""train_and_evaluate: the same call in every task of a cluster, or in a single process.

Owns the work of each task. The chief and the workers train. A ps serves until all of them are done. The evaluator
evaluates each new checkpoint until the last. In one process training stops after a checkpoint to evaluate it.

    train_spec = tf.estimator.TrainSpec(input_fn, max_steps=1000)
    eval_spec = tf.estimator.EvalSpec(eval_input_fn, steps=None)
    tf.estimator.train_and_evaluate(estimator, train_spec, eval_spec)

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/train_and_evaluate
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dtf import logging
from dtf.estimator.cluster_place import TaskType
from dtf.estimator.estimator import Estimator
from dtf.estimator.evaluator import (
    Evaluator,
    evaluate_until_trained,
    evaluating_listener,
    forget_last_checkpoint,
    tell_last_checkpoint,
)
from dtf.estimator.exporter import Exporter
from dtf.estimator.run_config import RunConfig
from dtf.estimator.serving_end import serve_until_all_are_done, tell_parameter_servers
from dtf.server import Server
from dtf.train.basic_session_run_hooks import CheckpointSaverListener
from dtf.train.session_run_hook import SessionRunHook

_WORKER_DELAY_S = 5.0
_DEFAULT_WORKER_DELAY_S = 0.2
_DEFAULT_WORKER_DELAY_MOST_S = 2.0


@dataclass(frozen=True)
class TrainSpec:
    """The data and duration of training.

    Args:
      input_fn: as of `Estimator.train`.
      max_steps: the global step at which training ends; None: when the input ends.
      hooks: for all training tasks, including the chief.
      saving_listeners: called around each checkpoint of the chief.

    Raises:
      ValueError, TypeError: a value is out of range or of another type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/TrainSpec
    """

    input_fn: Callable[..., Any]
    max_steps: int | None = None
    hooks: Sequence[SessionRunHook] | None = None
    saving_listeners: Sequence[CheckpointSaverListener] | None = None

    def __post_init__(self) -> None:
        _check(self, "max_steps")


@dataclass(frozen=True)
class EvalSpec:
    """The data and schedule of evaluation.

    Args:
      input_fn: as of `Estimator.evaluate`.
      steps: how many batches; None: until the input ends.
      name: of the evaluation, where there are several.
      hooks: for the evaluation.
      exporters: Exporters, or one, called after each evaluation.
      start_delay_secs: how long the evaluator of a cluster waits before the first one.
      throttle_secs: the least time from the start of one evaluation to the start of the next; the last one is never
          delayed.

    Raises:
      ValueError, TypeError: a value is out of range or of another type.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/EvalSpec
    """

    input_fn: Callable[..., Any]
    steps: int | None = 100
    name: str | None = None
    hooks: Sequence[SessionRunHook] | None = None
    exporters: Any = None
    start_delay_secs: float = 120
    throttle_secs: float = 600

    def __post_init__(self) -> None:
        _check(self, "steps")
        if self.start_delay_secs < 0 or self.throttle_secs < 0:
            raise ValueError(
                f"start_delay_secs and throttle_secs must be >= 0: {self.start_delay_secs}, {self.throttle_secs}"
            )
        exporters = [self.exporters] if isinstance(self.exporters, Exporter) else list(self.exporters or ())
        for exporter in exporters:
            if not isinstance(exporter, Exporter):
                raise TypeError(f"exporters must be Exporter instances, given: {exporter!r}")
        names = [exporter.name for exporter in exporters]
        if len(set(names)) != len(names) or not all(names):
            raise ValueError(f"Exporters must have different names; got {names}")
        object.__setattr__(self, "exporters", tuple(exporters))


def train_and_evaluate(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any], list[Any]] | None:
    """Does this task's part, as the estimator's RunConfig knows it from TF_CONFIG.

    Returns:
      Without a cluster: the metrics of the last evaluation, and the results of the exporters. In a cluster None.

    Raises:
      TypeError: an argument is of another type.
      ValueError: the task has no part in training.
    """
    for value, kind in ((estimator, Estimator), (train_spec, TrainSpec), (eval_spec, EvalSpec)):
        if not isinstance(value, kind):
            raise TypeError(f"train_and_evaluate takes an {kind.__name__}, given: {value!r}")
    config = estimator.config
    if config.task_type == TaskType.EVALUATOR:
        evaluate_until_trained(Evaluator(estimator, eval_spec, train_spec.max_steps))
        return None
    if not config.cluster_spec:
        return _train_here(estimator, train_spec, eval_spec)
    parts = {
        TaskType.PS: _serve,
        TaskType.CHIEF: _train_as_chief,
        TaskType.MASTER: _train_as_master,
        TaskType.WORKER: _train_as_worker,
    }
    if config.task_type not in parts:
        raise ValueError(f"Tasks of the job {config.task_type!r} do not train; the job must be one of {sorted(parts)}")
    parts[config.task_type](estimator, train_spec, eval_spec)
    return None


def _train_here(
    estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec
) -> tuple[dict[str, Any], list[Any]] | None:
    evaluator = Evaluator(estimator, eval_spec, train_spec.max_steps)
    listener = evaluating_listener(evaluator, eval_spec.throttle_secs)
    _train(estimator, train_spec, [listener])
    if evaluator.last is None:
        logging.warning("Training was already over: nothing is evaluated.")
        return None
    return evaluator.last.figures, evaluator.last.exports


def _train_as_chief(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    forget_last_checkpoint(estimator.model_dir)
    with _server(estimator.config):
        _train(estimator, train_spec)
        last = estimator.latest_checkpoint()
        if last is not None:
            tell_last_checkpoint(estimator.model_dir, last)
        tell_parameter_servers(estimator.config)


def _train_as_master(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    """The older chief, which evaluates too."""
    with _server(estimator.config):
        _train_here(estimator, train_spec, eval_spec)
        tell_parameter_servers(estimator.config)


def _train_as_worker(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    with _server(estimator.config):
        delay_s = worker_delay_s(estimator.config)
        logging.info("Waiting %.1f s before the training starts.", delay_s)
        time.sleep(delay_s)
        _train(estimator, train_spec)
        tell_parameter_servers(estimator.config)


def _serve(estimator: Estimator, train_spec: TrainSpec, eval_spec: EvalSpec) -> None:
    with _server(estimator.config) as server:
        assert server is not None
        serve_until_all_are_done(server, estimator.config)


def worker_delay_s(config: RunConfig) -> float:
    """How long a worker waits at the start, see `RunConfig.experimental_max_worker_delay_secs`."""
    if config.experimental_max_worker_delay_secs is not None:
        return min(float(config.experimental_max_worker_delay_secs), (config.task_id + 1) * _WORKER_DELAY_S)
    return min(_DEFAULT_WORKER_DELAY_MOST_S, (config.task_id + 1) * _DEFAULT_WORKER_DELAY_S)


@contextlib.contextmanager
def _server(config: RunConfig) -> Iterator[Server | None]:
    """The task's server; none of a chief that is alone, whose sessions need none."""
    if not config.master:
        yield None
        return
    with Server(
        config.cluster_spec,
        job_name=config.task_type,
        task_index=config.task_id,
        protocol=config.protocol,
        config=config.session_config,
    ) as server:
        yield server


def _train(estimator: Estimator, spec: TrainSpec, listeners: Sequence[CheckpointSaverListener] = ()) -> None:
    estimator.train(
        spec.input_fn,
        hooks=spec.hooks,
        max_steps=spec.max_steps,
        saving_listeners=[*(spec.saving_listeners or ()), *listeners] if estimator.config.is_chief else None,
    )


def _check(spec: TrainSpec | EvalSpec, steps: str) -> None:
    if not callable(spec.input_fn):
        raise TypeError(f"input_fn must be a function, given: {spec.input_fn!r}")
    number = getattr(spec, steps)
    if number is not None and number <= 0:
        raise ValueError(f"Must specify {steps} > 0, given: {number}")
    for hook in spec.hooks or ():
        if not isinstance(hook, SessionRunHook):
            raise TypeError(f"All hooks must be SessionRunHook instances, given: {hook!r}")
