"""slim.learning: an op for a step of training, and the loop that runs it under a Supervisor.

    train_op = slim.learning.create_train_op(total_loss, optimizer)
    slim.learning.train(train_op, "logs", number_of_steps=1000, save_summaries_secs=300)

Source: https://github.com/tensorflow/tensorflow/tree/r1.15/tensorflow/contrib/slim (its README)
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import dtf as tf
from dtf.contrib.training import train_ops
from dtf.contrib.training.train_ops import add_gradients_summaries, clip_gradient_norms, multiply_gradients

__all__ = [
    "add_gradients_summaries", "clip_gradient_norms", "create_train_op", "multiply_gradients", "train", "train_step",
]  # fmt: skip

_USE_DEFAULT: Any = 0
_USE_GLOBAL_STEP: Any = 0


def create_train_op(
    total_loss: Any, optimizer: Any, global_step: Any = _USE_GLOBAL_STEP, update_ops: Any = None,
    variables_to_train: Any = None, clip_gradient_norm: float = 0, summarize_gradients: bool = False,
    gate_gradients: int = tf.train.Optimizer.GATE_OP, aggregation_method: Any = None,
    colocate_gradients_with_ops: bool = False, gradient_multipliers: Mapping[Any, Any] | None = None,
    check_numerics: bool = True,
) -> Any:  # fmt: skip
    """An op for one step of training, whose value is the loss; it runs the updates of UPDATE_OPS too.

    Args:
      clip_gradient_norm: the most that each gradient's norm may be; 0 for no limit.
      gradient_multipliers: {variable or its name: factor of its gradient}.

    The other arguments are as in tf.contrib.training.create_train_op.
    """

    def transform(gradients: Any) -> Any:
        if gradient_multipliers:
            gradients = multiply_gradients(gradients, gradient_multipliers)
        if clip_gradient_norm > 0:
            gradients = clip_gradient_norms(gradients, clip_gradient_norm)
        return gradients

    return train_ops.create_train_op(
        total_loss, optimizer, global_step, update_ops, variables_to_train, transform, summarize_gradients,
        gate_gradients, aggregation_method, colocate_gradients_with_ops, check_numerics,
    )  # fmt: skip


def train_step(
    sess: Any, train_op: Any, global_step: Any, train_step_kwargs: Mapping[str, Any]
) -> tuple[Any, bool]:
    """One step. Returns (the loss, whether the training is over).

    Args:
      train_step_kwargs: tensors "should_stop", "should_log" and "should_trace", and the "logdir" of traces.

    Raises:
      ValueError: traces have no folder.
    """
    start = time.monotonic()
    options = metadata = None
    if "should_trace" in train_step_kwargs:
        if "logdir" not in train_step_kwargs:
            raise ValueError("logdir must be present in train_step_kwargs when should_trace is present")
        if sess.run(train_step_kwargs["should_trace"]):
            options, metadata = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), tf.RunMetadata()
    loss, step = sess.run([train_op, global_step], options=options, run_metadata=metadata)
    if metadata is not None:
        _write_trace(metadata, f"{train_step_kwargs['logdir']}/tf_trace-{step}.json")
    if "should_log" in train_step_kwargs and sess.run(train_step_kwargs["should_log"]):
        tf.logging.info("global step %d: loss = %.4f (%.3f sec/step)", step, loss, time.monotonic() - start)
    is_over = "should_stop" in train_step_kwargs and bool(sess.run(train_step_kwargs["should_stop"]))
    return loss, is_over


def _write_trace(metadata: Any, path: str) -> None:
    from dtf.train.timeline import Timeline

    with tf.gfile.GFile(path, "w") as file:
        file.write(Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))


def _synchronized(local_init_op: Any, syncs: Any, is_chief: bool) -> tuple[Any, list[Any], list[Any]]:
    """(local_init_op with the synchronous optimizers' ops, the chief's ops for tokens, its queue runners)."""
    for each in syncs:
        local_init_op = tf.group(local_init_op, each.chief_init_op if is_chief else each.local_step_init_op)
    if not is_chief:
        return local_init_op, [], []
    tokens = [each.get_init_tokens_op() for each in syncs]
    return local_init_op, tokens, [each.get_chief_queue_runner() for each in syncs]


def _check_nothing_is_written(summary_op: Any, saver: Any, trace_every_n_steps: int | None) -> None:
    """Raises ValueError for an argument that needs a folder."""
    if summary_op not in (_USE_DEFAULT, None):
        raise ValueError("Cannot provide summary_op because logdir=None")
    if saver is not None:
        raise ValueError("Cannot provide saver because logdir=None")
    if trace_every_n_steps is not None:
        raise ValueError("Cannot provide trace_every_n_steps because logdir=None")


def train(
    train_op: Any, logdir: str | None, train_step_fn: Callable[..., tuple[Any, bool]] = train_step,
    train_step_kwargs: Any = _USE_DEFAULT, log_every_n_steps: int = 1, graph: Any = None, master: str = "",
    is_chief: bool = True, global_step: Any = None, number_of_steps: int | None = None,
    init_op: Any = _USE_DEFAULT, init_feed_dict: Any = None, local_init_op: Any = _USE_DEFAULT,
    init_fn: Callable[[Any], None] | None = None, ready_op: Any = _USE_DEFAULT, summary_op: Any = _USE_DEFAULT,
    save_summaries_secs: float = 600, summary_writer: Any = _USE_DEFAULT, startup_delay_steps: int = 0,
    saver: Any = None, save_interval_secs: float = 600, sync_optimizer: Any = None, session_config: Any = None,
    session_wrapper: Callable[[Any], Any] | None = None, trace_every_n_steps: int | None = None,
    ignore_live_threads: bool = False,
) -> Any:  # fmt: skip
    """Runs the training op until `number_of_steps`, with checkpoints and summaries in `logdir`.

    Args:
      train_op: the value is the loss.
      logdir: the folder; None writes nothing.
      train_step_fn: a function like `train_step`, and its `train_step_kwargs`.
      log_every_n_steps: 0 or None for no lines.
      master: the target of sessions; `is_chief` says whether this task makes the model ready and saves.
      number_of_steps: of the global step; None for no end.
      init_op, local_init_op, ready_op: the usual ones by default.
      init_fn: a function of the session, called after init_op.
      startup_delay_steps: a worker begins at this global step.
      sync_optimizer: a SyncReplicasOptimizer, or several.
      session_wrapper: makes of a session what takes its place.

    Returns:
      The loss of the last step.

    Raises:
      ValueError: the arguments do not fit each other.
    """
    if train_op is None:
        raise ValueError("train_op cannot be None.")
    if logdir is None:
        _check_nothing_is_written(summary_op, saver, trace_every_n_steps)
    syncs = [sync_optimizer] if isinstance(sync_optimizer, tf.train.SyncReplicasOptimizer) else sync_optimizer
    if sync_optimizer is not None and startup_delay_steps > 0:
        raise ValueError("startup_delay_steps must be zero when sync_optimizer is supplied.")
    if number_of_steps is not None and number_of_steps <= 0:
        raise ValueError("`number_of_steps` must be either None or a positive number.")
    graph = graph or tf.get_default_graph()
    with graph.as_default():
        step = tf.train.get_or_create_global_step() if global_step is None else global_step
        saver = saver or tf.train.Saver()
        if init_op is _USE_DEFAULT:
            init_op = tf.global_variables_initializer()
        if ready_op is _USE_DEFAULT:
            ready_op = tf.report_uninitialized_variables()
        if local_init_op is _USE_DEFAULT:
            local_init_op = tf.group(tf.local_variables_initializer(), tf.tables_initializer())
        local_init_op, sync_inits, queue_runners = _synchronized(local_init_op, syncs or (), is_chief)
        if summary_op is _USE_DEFAULT:
            summary_op = tf.summary.merge_all()
        kwargs = _step_kwargs(
            train_step_kwargs, step, number_of_steps, log_every_n_steps, trace_every_n_steps, logdir
        )
    given = {} if summary_writer is _USE_DEFAULT else {"summary_writer": summary_writer}
    supervisor = tf.train.Supervisor(
        graph=graph, is_chief=is_chief, logdir=logdir, init_op=init_op, init_feed_dict=init_feed_dict,
        local_init_op=local_init_op, ready_for_local_init_op=_ready_for_local_init(graph, syncs),
        ready_op=ready_op, summary_op=summary_op, global_step=step, saver=saver,
        save_summaries_secs=save_summaries_secs, save_model_secs=save_interval_secs, init_fn=init_fn, **given,
    )  # fmt: skip
    total_loss = None
    with supervisor.managed_session(
        master, start_standard_services=False, config=session_config
    ) as session:
        tf.logging.info("Starting Session.")
        wrapped = session_wrapper(session) if session_wrapper is not None else session
        if is_chief:
            if logdir:
                supervisor.start_standard_services(session)
        elif startup_delay_steps > 0:
            _wait_for_step(session, step, min(startup_delay_steps, number_of_steps or startup_delay_steps))
        supervisor.start_queue_runners(session)
        if is_chief and syncs:
            supervisor.start_queue_runners(session, queue_runners)
            session.run(sync_inits)
        try:
            while not supervisor.should_stop():
                total_loss, is_over = train_step_fn(wrapped, train_op, step, kwargs)
                if is_over:
                    tf.logging.info("Stopping Training.")
                    supervisor.request_stop()
                    break
        except tf.errors.OutOfRangeError as error:
            tf.logging.info("Caught OutOfRangeError. Stopping Training. %s", error)
        if logdir and supervisor.is_chief:
            tf.logging.info("Finished training! Saving model to disk.")
            supervisor.saver.save(session, supervisor.save_path, global_step=supervisor.global_step)
            if supervisor.summary_writer is not None:
                supervisor.summary_writer.flush()
    return total_loss


def _ready_for_local_init(graph: Any, syncs: Any) -> Any:
    with graph.as_default():
        return syncs[0].ready_for_local_init_op if syncs else None


def _step_kwargs(
    given: Any, step: Any, number_of_steps: int | None, log_every: int | None, trace_every: int | None,
    logdir: str | None,
) -> Mapping[str, Any]:  # fmt: skip
    if given is not _USE_DEFAULT:
        return given
    with tf.name_scope("train_step"):
        kwargs: dict[str, Any] = {}
        if number_of_steps:
            kwargs["should_stop"] = tf.greater_equal(step, number_of_steps)
        if log_every:
            kwargs["should_log"] = tf.equal(tf.mod(step, log_every), 0)
        if trace_every is not None and logdir is not None:
            kwargs["should_trace"] = tf.equal(tf.mod(step, trace_every), 0)
            kwargs["logdir"] = logdir
    return kwargs


def _wait_for_step(session: Any, global_step: Any, wanted: int) -> None:
    while session.run(global_step) < wanted:
        time.sleep(1)
