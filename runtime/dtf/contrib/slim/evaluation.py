"""slim.evaluation: figures of a checkpoint, or of each new one.

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/slim (its README)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dtf as tf
from dtf.contrib.training import evaluation

__all__ = ["checkpoints_iterator", "evaluate_once", "evaluation_loop", "wait_for_new_checkpoint"]

checkpoints_iterator = evaluation.checkpoints_iterator
wait_for_new_checkpoint = evaluation.wait_for_new_checkpoint
_USE_DEFAULT: Any = 0


def evaluate_once(
    master: str, checkpoint_path: str, logdir: str | None, num_evals: int = 1, initial_op: Any = None,
    initial_op_feed_dict: Any = None, eval_op: Any = None, eval_op_feed_dict: Any = None, final_op: Any = None,
    final_op_feed_dict: Any = None, summary_op: Any = _USE_DEFAULT, summary_op_feed_dict: Any = None,
    variables_to_restore: Any = None, session_config: Any = None, hooks: Any = None,
) -> Any:  # fmt: skip
    """Restores a checkpoint, runs `eval_op` `num_evals` times, then `final_op`; summaries go to `logdir`.

    Returns:
      The values of `final_op`, or None.
    """
    return evaluation.evaluate_once(
        checkpoint_path, master, _scaffold(variables_to_restore, initial_op, initial_op_feed_dict), eval_op,
        eval_op_feed_dict, final_op, final_op_feed_dict,
        _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks), session_config,
    )  # fmt: skip


def evaluation_loop(
    master: str, checkpoint_dir: str, logdir: str | None, num_evals: int = 1, initial_op: Any = None,
    initial_op_feed_dict: Any = None, init_fn: Callable[[Any], None] | None = None, eval_op: Any = None,
    eval_op_feed_dict: Any = None, final_op: Any = None, final_op_feed_dict: Any = None,
    summary_op: Any = _USE_DEFAULT, summary_op_feed_dict: Any = None, variables_to_restore: Any = None,
    eval_interval_secs: float = 60, max_number_of_evaluations: int | None = None, session_config: Any = None,
    timeout: float | None = None, timeout_fn: Callable[[], bool] | None = None, hooks: Any = None,
) -> Any:  # fmt: skip
    """`evaluate_once` of each new checkpoint of a folder.

    Returns:
      The values of `final_op` of the last one.
    """
    scaffold = _scaffold(variables_to_restore, initial_op, initial_op_feed_dict, init_fn)
    return evaluation.evaluate_repeatedly(
        checkpoint_dir, master, scaffold, eval_op, eval_op_feed_dict, final_op, final_op_feed_dict,
        eval_interval_secs, _hooks(num_evals, logdir, summary_op, summary_op_feed_dict, hooks), session_config,
        max_number_of_evaluations, timeout, timeout_fn,
    )  # fmt: skip


def _scaffold(
    variables: Any, initial_op: Any, feed_dict: Any, init_fn: Callable[[Any], None] | None = None
) -> Any:
    saver = tf.train.Saver(variables or tf.global_variables())

    def begin(_: Any, session: Any) -> None:
        if init_fn is not None:
            init_fn(session)

    return tf.train.Scaffold(init_op=initial_op, init_feed_dict=feed_dict, init_fn=begin, saver=saver)


def _hooks(num_evals: int, logdir: str | None, summary_op: Any, feed_dict: Any, more: Any) -> list[Any]:
    hooks: list[Any] = [evaluation.StopAfterNEvalsHook(num_evals)]
    op = tf.summary.merge_all() if summary_op is _USE_DEFAULT else summary_op
    if op is not None and logdir:
        hooks.append(evaluation.SummaryAtEndHook(logdir, summary_op=op, feed_dict=feed_dict))
    return [*hooks, *(more or ())]
