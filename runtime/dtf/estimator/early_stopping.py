"""Hooks that end a training when the evaluations say so.

The chief decides, from the summaries of evaluations, and informs all training tasks through a variable.

    hook = tf.estimator.experimental.stop_if_no_decrease_hook(estimator, "loss", max_steps_without_decrease=1000)
    train_spec = tf.estimator.TrainSpec(input_fn, hooks=[hook])

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/experimental/make_early_stopping_hook
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable
from typing import Any

from dtf import logging
from dtf.build.graph import GraphKeys
from dtf.build.initializers import constant_initializer
from dtf.build.ops.state import assign
from dtf.build.variable_scope import get_variable, variable_scope
from dtf.estimator.estimator import Estimator
from dtf.estimator.exporter import read_figures
from dtf.train.basic_session_run_hooks import SecondOrStepTimer
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes

_EVENT_FILES = "*tfevents*"


def make_early_stopping_hook(
    estimator: Estimator,
    should_stop_fn: Callable[[], bool],
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """A hook that ends the training on all workers when `should_stop_fn()`, asked on the chief, is true.

    Args:
      run_every_secs, run_every_steps: how often it is asked; one of them.

    Raises:
      TypeError: there is no Estimator.
      ValueError: both or neither of the intervals are given.
    """
    if not isinstance(estimator, Estimator):
        raise TypeError(f"`estimator` must be an Estimator, not {estimator!r}")
    if run_every_secs is not None and run_every_steps is not None:
        raise ValueError("Only one of `run_every_secs` and `run_every_steps` must be set.")
    return _EarlyStoppingHook(
        should_stop_fn if estimator.config.is_chief else None, SecondOrStepTimer(run_every_secs, run_every_steps)
    )


def stop_if_higher_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Ends the training when a figure has been above `threshold`, at a step of at least `min_steps`."""
    return _threshold_hook(
        operator.gt, estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_lower_hook(
    estimator: Estimator,
    metric_name: str,
    threshold: float,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Ends the training when a figure has been below `threshold`, at a step of at least `min_steps`."""
    return _threshold_hook(
        operator.lt, estimator, metric_name, threshold, eval_dir, min_steps, run_every_secs, run_every_steps
    )


def stop_if_no_increase_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_increase: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Ends the training when the best, highest figure is that many steps ago."""
    return _plateau_hook(
        operator.gt,
        estimator,
        metric_name,
        max_steps_without_increase,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def stop_if_no_decrease_hook(
    estimator: Estimator,
    metric_name: str,
    max_steps_without_decrease: int,
    eval_dir: str | None = None,
    min_steps: int = 0,
    run_every_secs: float | None = 60,
    run_every_steps: int | None = None,
) -> SessionRunHook:
    """Ends the training when the best, lowest figure is that many steps ago."""
    return _plateau_hook(
        operator.lt,
        estimator,
        metric_name,
        max_steps_without_decrease,
        eval_dir,
        min_steps,
        run_every_secs,
        run_every_steps,
    )


def read_eval_metrics(eval_dir: str) -> dict[int, dict[str, Any]]:
    """{global step: figures} of the evaluations in a folder, in the order of the steps."""
    figures = read_figures(os.path.join(eval_dir, _EVENT_FILES))
    return {step: {name: v for name, v in each.items() if name != "global_step"} for step, each in figures.items()}


def _threshold_hook(
    is_beyond: Callable[[float, float], bool],
    estimator: Estimator,
    metric: str,
    threshold: float,
    eval_dir: str | None,
    min_steps: int,
    run_every_secs: float | None,
    run_every_steps: int | None,
) -> SessionRunHook:
    folder = eval_dir or estimator.eval_dir()

    def should_stop() -> bool:
        for step, figures in read_eval_metrics(folder).items():
            if step >= min_steps and metric in figures and is_beyond(figures[metric], threshold):
                logging.info("%s was %s at step %d, beyond %s: stopping.", metric, figures[metric], step, threshold)
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


def _plateau_hook(
    is_better: Callable[[float, float], bool],
    estimator: Estimator,
    metric: str,
    max_steps: int,
    eval_dir: str | None,
    min_steps: int,
    run_every_secs: float | None,
    run_every_steps: int | None,
) -> SessionRunHook:
    folder = eval_dir or estimator.eval_dir()

    def should_stop() -> bool:
        best: tuple[int, float] | None = None
        for step, figures in read_eval_metrics(folder).items():
            if step < min_steps or metric not in figures:
                continue
            if best is None or is_better(figures[metric], best[1]):
                best = (step, figures[metric])
            elif step - best[0] >= max_steps:
                logging.info("%s has not been better than %s for %d steps: stopping.", metric, best[1], step - best[0])
                return True
        return False

    return make_early_stopping_hook(estimator, should_stop, run_every_secs, run_every_steps)


class _EarlyStoppingHook(SessionRunHook):
    """Stops when the shared variable says so; on the chief, which has a function, it also sets it."""

    def __init__(self, should_stop_fn: Callable[[], bool] | None, timer: SecondOrStepTimer) -> None:
        self._should_stop_fn = should_stop_fn
        self._timer = timer

    def begin(self) -> None:
        self._global_step = get_global_step()
        with variable_scope("signal_early_stopping"):
            self._signal = get_variable(
                "STOP",
                shape=[],
                dtype=dtypes.bool,
                initializer=constant_initializer(False),
                collections=[GraphKeys.GLOBAL_VARIABLES],
                trainable=False,
            )
        self._stop = assign(self._signal, True).op if self._should_stop_fn is not None else None

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs({"step": self._global_step, "stop": self._signal})

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        step = int(run_values.results["step"])
        if run_values.results["stop"]:
            logging.info("Early stopping at step %d.", step)
            run_context.request_stop()
        elif self._should_stop_fn is not None and self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            if self._should_stop_fn():
                run_context.session.run(self._stop)
                run_context.request_stop()
