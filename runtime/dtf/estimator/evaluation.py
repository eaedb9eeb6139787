"""One evaluation: a checkpoint, a number of steps, the figures at the end, and their summary.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/estimator/Estimator#evaluate
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dtf import logging
from dtf.build.ops.ordering import group
from dtf.estimator.spec import GLOBAL_STEP_KEY, LOSS_KEY, EstimatorSpec
from dtf.metrics import mean
from dtf.train.basic_session_run_hooks import FinalOpsHook
from dtf.train.monitored_session import ChiefSessionCreator, MonitoredSession
from dtf.train.session_run_hook import SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.summary_writer import FileWriterCache
from dtf.train.training_util import get_global_step
from dtf.wire.pb import summary_pb2, types_pb2


def evaluate_once(
    spec: EstimatorSpec,
    checkpoint_path: str | None,
    steps: int | None,
    hooks: Sequence[SessionRunHook],
    master: str,
    session_config: Any,
) -> dict[str, Any]:
    """Runs the evaluation of a spec in the default graph. Returns its figures, "loss" and "global_step" among them.

    Args:
      checkpoint_path: the checkpoint to restore; None initialises the model.
      steps: how many batches; None: until the input ends.

    Raises:
      ValueError: the spec has a metric "loss" of its own.
    """
    metrics = dict(spec.eval_metric_ops or {})
    if LOSS_KEY in metrics:
        raise ValueError(f"Metric with name {LOSS_KEY!r} is not allowed, because Estimator already defines it")
    metrics[LOSS_KEY] = mean(spec.loss)
    figures = {name: value for name, (value, _) in metrics.items()} | {GLOBAL_STEP_KEY: get_global_step()}
    update = group(*[metrics[name][1] for name in sorted(metrics)])
    final = FinalOpsHook(figures)
    stop = [_StopAfterHook(steps)] if steps is not None else []
    creator = ChiefSessionCreator(
        scaffold=spec.scaffold,
        master=master,
        config=session_config,
        checkpoint_filename_with_path=checkpoint_path,
    )
    # The figures come before hooks that look at the end of the session, so that those find them written.
    with MonitoredSession(creator, [*stop, *hooks, final]) as session:
        while not session.should_stop():
            session.run(update)
    logging.info("Evaluated %s: %s", checkpoint_path, _line(final.final_ops_values))
    return final.final_ops_values


def write_figures(folder: str, figures: Mapping[str, Any], step: int, checkpoint_path: str | None) -> None:
    """Writes an evaluation's metrics, and the checkpoint's path, as summaries of the training step `step`.

    Numbers become scalars; bytes are parsed as Summary messages; values of other types are skipped and logged.
    """
    summary = summary_pb2.Summary()
    for name in sorted(figures):
        value = figures[name]
        if name == GLOBAL_STEP_KEY:
            continue
        if isinstance(value, bytes):
            shown = summary_pb2.Summary.FromString(value)
            for index, part in enumerate(shown.value):
                part.tag = f"{name}/{index}"
            summary.value.extend(shown.value)
        elif np.ndim(value) == 0 and np.issubdtype(np.asarray(value).dtype, np.number):
            summary.value.add(tag=name, simple_value=float(value))
        else:
            logging.info("Skipping summary for %s, which is not a number: %s", name, type(value).__name__)
    if checkpoint_path:
        text = summary.value.add(tag="checkpoint_path")
        text.metadata.plugin_data.plugin_name = "text"
        text.tensor.dtype = types_pb2.DT_STRING
        text.tensor.string_val.append(checkpoint_path.encode())
    writer = FileWriterCache.get(folder)
    writer.add_summary(summary, step)
    writer.flush()


class _StopAfterHook(SessionRunHook):
    """Asks for the end after so many batches."""

    def __init__(self, steps: int) -> None:
        self._left = steps

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        self._left -= 1
        if self._left <= 0:
            run_context.request_stop()


def _line(figures: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(figures.items()) if not isinstance(value, bytes))
