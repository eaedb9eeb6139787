"""tf.contrib.training's evaluation of checkpoints: once, or of each new one.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/training/evaluate_repeatedly
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import dtf as tf

__all__ = [
    "StopAfterNEvalsHook", "SummaryAtEndHook", "checkpoints_iterator", "evaluate_once", "evaluate_repeatedly",
    "get_or_create_eval_step", "wait_for_new_checkpoint",
]  # fmt: skip

checkpoints_iterator = tf.train.checkpoints_iterator


def get_or_create_eval_step() -> Any:
    """The variable that counts the steps of an evaluation.

    Raises:
      ValueError: there are several.
    """
    found = tf.get_collection(tf.GraphKeys.EVAL_STEP)
    if len(found) > 1:
        raise ValueError("Multiple tensors added to tf.GraphKeys.EVAL_STEP")
    if found:
        return found[0]
    return tf.get_variable(
        "eval_step", [], tf.int64, tf.zeros_initializer(), trainable=False,
        collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.EVAL_STEP],
    )  # fmt: skip


class StopAfterNEvalsHook(tf.train.SessionRunHook):
    """Ends an evaluation after so many steps.

    Args:
      num_evals: the steps; None for no end.
      log_progress: whether to log each step.
    """

    def __init__(self, num_evals: int | None, log_progress: bool = True) -> None:
        self._num_evals = num_evals
        self._log_progress = log_progress
        self._done: Any = None

    def begin(self) -> None:
        """Finds the op that counts."""
        self._done = tf.assign_add(get_or_create_eval_step(), 1)

    def before_run(self, run_context: Any) -> Any:
        """Asks for the count."""
        return tf.train.SessionRunArgs({"done": self._done})

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Ends it at the last step."""
        done = run_values.results["done"]
        if self._log_progress:
            of = "" if self._num_evals is None else f"/{self._num_evals}"
            tf.logging.info("Evaluation [%d%s]", done, of)
        if self._num_evals is not None and done >= self._num_evals:
            run_context.request_stop()


class SummaryAtEndHook(tf.train.SessionRunHook):
    """Writes the summaries when a session ends.

    Args:
      log_dir: the folder; or
      summary_writer: a writer.
      summary_op: all summaries by default.
      feed_dict: the feeds of the op.

    Raises:
      ValueError: neither a folder nor a writer is given.
    """

    def __init__(
        self, log_dir: str | None = None, summary_writer: Any = None, summary_op: Any = None, feed_dict: Any = None
    ) -> None:
        if log_dir is None and summary_writer is None:
            raise ValueError("One of log_dir or summary_writer should be used.")
        self._log_dir = log_dir
        self._writer = summary_writer
        self._summary_op = summary_op
        self._feed_dict = feed_dict
        self._global_step: Any = None

    def begin(self) -> None:
        """Finds the summaries and the step."""
        if self._summary_op is None:
            self._summary_op = tf.summary.merge_all()
        self._global_step = tf.train.get_or_create_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Opens the writer."""
        if self._writer is None and self._log_dir:
            self._writer = tf.summary.FileWriter(self._log_dir)

    def end(self, session: Any) -> None:
        """Writes them."""
        if self._summary_op is None:
            return
        step = tf.train.global_step(session, self._global_step)
        self._writer.add_summary(session.run(self._summary_op, self._feed_dict), step)
        self._writer.flush()


def wait_for_new_checkpoint(
    checkpoint_dir: str, last_checkpoint: str | None = None, seconds_to_sleep: float = 1,
    timeout: float | None = None,
) -> str | None:  # fmt: skip
    """The path of the next checkpoint; None if none appears within `timeout` seconds."""
    end = None if timeout is None else time.monotonic() + timeout
    while True:
        found = tf.train.latest_checkpoint(checkpoint_dir)
        if found is not None and found != last_checkpoint:
            return found
        if end is not None and time.monotonic() + seconds_to_sleep > end:
            return None
        time.sleep(seconds_to_sleep)


def evaluate_once(
    checkpoint_path: str | None, master: str = "", scaffold: Any = None, eval_ops: Any = None, feed_dict: Any = None,
    final_ops: Any = None, final_ops_feed_dict: Any = None, hooks: Any = None, config: Any = None,
) -> Any:  # fmt: skip
    """Restores a checkpoint, runs `eval_ops` until a hook stops that (once without hooks), then `final_ops`.

    Returns:
      The values of `final_ops`, or None.
    """
    hooks = list(hooks or [])
    counter = get_or_create_eval_step()
    if eval_ops is not None:
        _count_steps(hooks)
        eval_ops = [eval_ops, counter] if not isinstance(eval_ops, dict) else {**eval_ops, "update_eval_step": counter}
    final = tf.train.FinalOpsHook(final_ops, final_ops_feed_dict)
    creator = tf.train.ChiefSessionCreator(
        scaffold=scaffold, checkpoint_filename_with_path=checkpoint_path, master=master, config=config
    )
    with tf.train.MonitoredSession(session_creator=creator, hooks=[*hooks, final]) as session:
        if eval_ops is not None:
            while not session.should_stop():
                session.run(eval_ops, feed_dict)
    return final.final_ops_values


def _count_steps(hooks: list[Any]) -> None:
    """Without a hook that counts, one step."""
    if not any(isinstance(hook, StopAfterNEvalsHook) or type(hook).__name__.startswith("StopAfter") for hook in hooks):
        hooks.append(StopAfterNEvalsHook(1, log_progress=False))


def evaluate_repeatedly(
    checkpoint_dir: str, master: str = "", scaffold: Any = None, eval_ops: Any = None, feed_dict: Any = None,
    final_ops: Any = None, final_ops_feed_dict: Any = None, eval_interval_secs: float = 60, hooks: Any = None,
    config: Any = None, max_number_of_evaluations: int | None = None, timeout: float | None = None,
    timeout_fn: Callable[[], bool] | None = None,
) -> Any:  # fmt: skip
    """`evaluate_once` of each new checkpoint of a folder.

    Args:
      eval_interval_secs: the least time between two evaluations.
      max_number_of_evaluations: ends after so many; None for no end.
      timeout: ends after so many seconds without a new checkpoint, unless `timeout_fn` says no.

    Returns:
      The values of `final_ops` of the last one.
    """
    values = None
    checkpoints = checkpoints_iterator(checkpoint_dir, eval_interval_secs, timeout, timeout_fn)
    for count, path in enumerate(checkpoints, 1):
        values = evaluate_once(
            path, master, scaffold, eval_ops, feed_dict, final_ops, final_ops_feed_dict, hooks, config
        )
        if max_number_of_evaluations is not None and count >= max_number_of_evaluations:
            break
    return values
