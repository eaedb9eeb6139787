"""When checkpoints are evaluated: after each in one process, or as they appear by a task of its own.

Owns the order of evaluation and export; one evaluation is `Estimator.evaluate`'s.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dtf import logging
from dtf.estimator.estimator import Estimator, step_of
from dtf.estimator.spec import GLOBAL_STEP_KEY
from dtf.train.basic_session_run_hooks import CheckpointSaverListener, SecondOrStepTimer
from dtf.train.checkpoint_management import checkpoint_exists
from dtf.wire import errors, filesystems
from dtf.wire.files import file_errors, write_atomically

_POLL_PERIOD_S = 0.2
# A chief saves once more at its end if another worker's step came after its last checkpoint; then it announces. One
# that was killed in between comes back within this time, or not at all.
_TELLING_MOST_S = 60.0
_TOLD = "training_is_over"


@dataclass(frozen=True)
class Evaluation:
    """One evaluation that was made.

    Attributes:
      checkpoint_path: the path of the evaluated checkpoint.
      figures: the result of `Estimator.evaluate`.
      exports: the result of each exporter, in order.
      is_final: training is over with this checkpoint, as far as anybody knows.
    """

    checkpoint_path: str
    figures: dict[str, Any]
    exports: list[Any]
    is_final: bool


class Evaluator:
    """Evaluates an estimator's newest checkpoint, and exports it.

    Args:
      eval_spec: an EvalSpec.
      max_steps: the global step at which training ends; None: unknown, so that every checkpoint may be the last.
    """

    def __init__(self, estimator: Estimator, eval_spec: Any, max_steps: int | None) -> None:
        self.estimator = estimator
        self.spec = eval_spec
        self.max_steps = max_steps
        self.last: Evaluation | None = None

    def evaluate(self) -> Evaluation | None:
        """Evaluates the newest checkpoint; returns None if no checkpoint is new."""
        path = self.estimator.latest_checkpoint()
        if path is None:
            return None
        is_final = self.max_steps is None or self.is_the_last(path)
        if self.last is not None and path == self.last.checkpoint_path and self.last.is_final >= is_final:
            return None
        figures = self.estimator.evaluate(
            self.spec.input_fn,
            steps=self.spec.steps,
            hooks=self.spec.hooks,
            checkpoint_path=path,
            name=self.spec.name,
        )
        exports = [
            exporter.export(
                estimator=self.estimator,
                export_path=os.path.join(self.estimator.model_dir, "export", exporter.name),
                checkpoint_path=path,
                eval_result=figures,
                is_the_final_export=is_final,
            )
            for exporter in self.spec.exporters
        ]
        self.last = Evaluation(path, figures, exports, is_final)
        return self.last

    def is_the_last(self, checkpoint_path: str) -> bool:
        """Whether training is over with this checkpoint."""
        if self.max_steps is not None and step_of(checkpoint_path) >= self.max_steps:
            return True
        return self.is_told_of(checkpoint_path)

    def is_told_of(self, checkpoint_path: str) -> bool:
        """Whether the chief has announced that training is over with this checkpoint."""
        return last_checkpoint_told(self.estimator.model_dir) == os.path.basename(checkpoint_path)

    def is_training_over(self) -> bool:
        """Whether the newest checkpoint is the last."""
        path = self.estimator.latest_checkpoint()
        return path is not None and self.is_the_last(path)

    def may_another_follow(self) -> bool:
        """Whether the newest checkpoint is of `max_steps`, and the chief has not yet announced that it is the last."""
        path = self.estimator.latest_checkpoint()
        return path is not None and self.is_the_last(path) and not self.is_told_of(path)

    def has_evaluated_the_last(self) -> bool:
        """Whether all evaluations are done."""
        last = self.last
        return last is not None and last.is_final and self.is_the_last(last.checkpoint_path)


def evaluate_until_trained(
    evaluator: Evaluator,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Evaluates new checkpoints until the last one: the checkpoint that the chief announces, or the one of `max_steps`
    if the chief announces none for a minute."""
    spec = evaluator.spec
    due = clock() + spec.start_delay_secs
    logging.info("Evaluating checkpoints in %s, from %.0f s from now.", evaluator.estimator.model_dir, due - clock())
    is_first = True
    while not evaluator.has_evaluated_the_last():
        # The announcement of an earlier run's chief in this folder stays until the chief of this run begins.
        while clock() < due and (is_first or not evaluator.is_training_over()):
            sleep(min(_POLL_PERIOD_S, max(0.0, due - clock())))
        is_first = False
        given_up = clock() + _TELLING_MOST_S
        while clock() < given_up and evaluator.may_another_follow():
            sleep(_POLL_PERIOD_S)
        began = clock()
        if _evaluate_if_still_there(evaluator) is None:
            sleep(_POLL_PERIOD_S)
        else:
            due = began + spec.throttle_secs
    logging.info("Training is over; the last checkpoint was evaluated.")


def _evaluate_if_still_there(evaluator: Evaluator) -> Evaluation | None:
    """Evaluates; None also if the chief removed the checkpoint meanwhile, for a newer one."""
    before = evaluator.estimator.latest_checkpoint()
    try:
        return evaluator.evaluate()
    except (errors.NotFoundError, ValueError) as error:
        if before is None or checkpoint_exists(before):
            raise
        logging.info("Checkpoint %s was removed before its evaluation: %s", before, error)
        return None


def tell_last_checkpoint(model_dir: str, checkpoint_path: str) -> None:
    """Tells the evaluator, by a file, that training is over with this checkpoint. Raises OpError."""
    path = os.path.join(model_dir, _TOLD)
    with file_errors(path):
        write_atomically(path, os.path.basename(checkpoint_path).encode())


def forget_last_checkpoint(model_dir: str) -> None:
    """Training continues: removes an earlier announcement."""
    with contextlib.suppress(FileNotFoundError):
        filesystems.remove(os.path.join(model_dir, _TOLD))


def last_checkpoint_told(model_dir: str) -> str | None:
    """The name of the final checkpoint, or None while training continues."""
    try:
        with filesystems.open(os.path.join(model_dir, _TOLD), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return None


def evaluating_listener(
    evaluator: Evaluator, throttle_secs: float, clock: Callable[[], float] = time.monotonic
) -> CheckpointSaverListener:
    """Evaluates within the training process: after a checkpoint, if the last evaluation is long enough ago, and at
    the end."""
    return _EvaluatingListener(evaluator, SecondOrStepTimer(every_secs=throttle_secs, clock=clock))


class _EvaluatingListener(CheckpointSaverListener):
    def __init__(self, evaluator: Evaluator, timer: SecondOrStepTimer) -> None:
        self._evaluator = evaluator
        self._timer = timer
        self._is_first = True

    def after_save(self, session: Any, global_step_value: int) -> None:
        if self._is_first:  # the model as it began
            self._is_first = False
            self._timer.update_last_triggered_step(global_step_value)
        elif self._timer.should_trigger_for_step(global_step_value):
            self._evaluate(global_step_value)
        else:
            logging.info("The last evaluation began less than throttle_secs ago: skipping this checkpoint.")

    def end(self, session: Any, global_step_value: int) -> None:
        last = self._evaluator.last
        if last is None or last.figures[GLOBAL_STEP_KEY] != global_step_value:
            self._evaluate(global_step_value)

    def _evaluate(self, step: int) -> None:
        self._timer.update_last_triggered_step(step)
        self._evaluator.evaluate()

