"""The training session of an Estimator: its hooks, its saver, and the loop.

Owns the hooks and their order; `estimator` owns the graph.
"""

from __future__ import annotations

from collections.abc import Sequence

from dtf.build.default_graph import add_to_collection, get_collection
from dtf.build.graph import GraphKeys
from dtf.build.ops.summary_ops import scalar
from dtf.estimator.run_config import RunConfig
from dtf.estimator.spec import LOSS_KEY, EstimatorSpec
from dtf.train.basic_session_run_hooks import (
    CheckpointSaverHook,
    CheckpointSaverListener,
    LoggingTensorHook,
    NanTensorHook,
)
from dtf.train.monitored_session import MonitoredTrainingSession
from dtf.train.saver import Saver
from dtf.train.session_run_hook import SessionRunHook
from dtf.train.training_util import get_global_step


def run_training(
    spec: EstimatorSpec,
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
    config: RunConfig,
) -> float | None:
    """Trains the default graph until a hook or the input ends it.

    Returns:
      The loss of the last step, None without a step.

    Raises:
      ValueError: there are listeners, and nothing that saves checkpoints.
      NanLossDuringTrainingError: the loss became NaN.
    """
    if not any(summary.op.name == LOSS_KEY for summary in get_collection(GraphKeys.SUMMARIES)):
        scalar(LOSS_KEY, spec.loss)
    all_hooks = [*hooks, NanTensorHook(spec.loss)]
    if config.log_step_count_steps:
        shown = {LOSS_KEY: spec.loss, "step": get_global_step()}
        all_hooks.append(LoggingTensorHook(shown, every_n_iter=config.log_step_count_steps))
    all_hooks += spec.training_hooks or ()
    chief_hooks = list(spec.training_chief_hooks or ())
    if config.is_chief:
        chief_hooks += _checkpoint_hooks(spec, [*all_hooks, *chief_hooks], listeners, config)
    loss = None
    with MonitoredTrainingSession(
        master=config.master,
        is_chief=config.is_chief,
        checkpoint_dir=config.model_dir,
        scaffold=spec.scaffold,
        hooks=all_hooks,
        chief_only_hooks=chief_hooks,
        save_checkpoint_secs=None,  # by a hook of our own, which knows the listeners
        save_checkpoint_steps=None,
        save_summaries_steps=config.save_summary_steps,
        config=config.session_config,
        log_step_count_steps=config.log_step_count_steps,
        max_wait_secs=config.session_creation_timeout_secs,
    ) as session:
        while not session.should_stop():
            _, loss = session.run([spec.train_op, spec.loss])
    return loss


def _checkpoint_hooks(
    spec: EstimatorSpec,
    hooks: Sequence[SessionRunHook],
    listeners: Sequence[CheckpointSaverListener],
    config: RunConfig,
) -> list[SessionRunHook]:
    """The hook that saves, unless the user brings one, which then gets the listeners."""
    scaffold, folder = spec.scaffold, config.model_dir
    assert scaffold is not None and folder is not None
    existing = next((hook for hook in hooks if isinstance(hook, CheckpointSaverHook)), None)
    if existing is not None:
        existing.add_listeners(listeners)
        return []
    if not (config.save_checkpoints_secs or config.save_checkpoints_steps):
        if listeners:
            raise ValueError(
                "saving_listeners need checkpoints. Set RunConfig.save_checkpoints_steps or save_checkpoints_secs."
            )
        return []
    if scaffold.saver is None and not get_collection(GraphKeys.SAVERS):
        saver = Saver(
            sharded=True,
            max_to_keep=config.keep_checkpoint_max,
            keep_checkpoint_every_n_hours=config.keep_checkpoint_every_n_hours,
            defer_build=True,
            save_relative_paths=True,
        )
        add_to_collection(GraphKeys.SAVERS, saver)
    return [
        CheckpointSaverHook(
            folder,
            save_secs=config.save_checkpoints_secs,
            save_steps=config.save_checkpoints_steps,
            scaffold=scaffold,
            listeners=listeners,
            save_graph_def=config.checkpoint_save_graph_def,
        )
    ]
