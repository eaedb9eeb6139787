"""The position of an iterator in checkpoints: `make_saveable_from_iterator`, and a hook that saves it automatically.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/data/experimental/CheckpointInputPipelineHook
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.default_graph import colocate_with, get_default_graph
from dtf.build.ops.data_iterators import Iterator
from dtf.build.tensor import Operation, Tensor
from dtf.train.basic_session_run_hooks import SecondOrStepTimer
from dtf.train.checkpoint_management import latest_checkpoint
from dtf.train.saveable import SaveableObject, SaveSpec
from dtf.train.saver import Saver
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.training_util import get_global_step
from dtf.wire import dtypes, filesystems

__all__ = ["CheckpointInputPipelineHook", "make_saveable_from_iterator"]

_POLICIES = {"warn": 0, "ignore": 1, "fail": 2}


def make_saveable_from_iterator(iterator: Iterator, external_state_policy: str | None = None) -> SaveableObject:
    """Makes a saveable object from an iterator: add it to the collection SAVEABLE_OBJECTS, or to a Saver's
    list.

    An iterator is initialized before it is restored. Datasets of Python generators have no position.

    Args:
      external_state_policy: "warn", "ignore" or "fail" (the default).

    Raises:
      ValueError: another policy.
    """
    return _saveable(iterator._iterator_resource, external_state_policy)


def _saveable(resource: Tensor, external_state_policy: str | None) -> SaveableObject:
    policy = "fail" if external_state_policy is None else external_state_policy
    if policy not in _POLICIES:
        raise ValueError(f"Invalid `external_state_policy`: {policy}; it must be one of {', '.join(_POLICIES)}.")
    return _IteratorSaveable(resource, _POLICIES[policy])


class _IteratorSaveable(SaveableObject):
    def __init__(self, resource: Tensor, policy: int) -> None:
        with colocate_with(resource):
            serialized = apply_op(
                "SerializeIterator", None, resource_handle=resource, external_state_policy=policy
            )
        self._resource = resource
        super().__init__(resource, [SaveSpec(serialized, "", f"{resource.name}_STATE", dtypes.variant)], resource.name)

    def restore(self, restored_tensors: Sequence[Tensor], restored_shapes: Sequence[Tensor] | None) -> Operation:
        with colocate_with(self._resource):
            return apply_op(
                "DeserializeIterator", None, resource_handle=self._resource, serialized=restored_tensors[0]
            )


class CheckpointInputPipelineHook(SessionRunHook):
    """Saves the positions of the graph's iterators as often as the estimator saves its model, and restores the last.

    Each worker's files are named "input..." in the model's folder and listed in a state file of their own. A model
    can thus be restored with or without its input.

    Args:
      estimator: has `model_dir` and `config` (save_checkpoints_secs, save_checkpoints_steps, num_worker_replicas,
        task_type, task_id).
    """

    def __init__(self, estimator: Any, external_state_policy: str | None = None) -> None:
        config = estimator.config
        name = "input"
        if (getattr(config, "num_worker_replicas", 1) or 1) > 1:
            name = f"input_{config.task_type}_{config.task_id}"
        self._folder = estimator.model_dir
        self._path = os.path.join(self._folder, f"{name}.ckpt")
        self._latest = f"checkpoint_{name}"
        self._policy = external_state_policy
        self._timer = SecondOrStepTimer(
            every_secs=config.save_checkpoints_secs, every_steps=config.save_checkpoints_steps
        )
        self._saver: Saver | None = None
        self._global_step: Any = None

    def begin(self) -> None:
        """Makes the save and restore ops unless the graph already has them.

        Raises:
          ValueError: there is no iterator.
          RuntimeError: there is no global step.
        """
        graph = get_default_graph()
        self._global_step = get_global_step()
        if self._global_step is None:
            raise RuntimeError("CheckpointInputPipelineHook needs a global step")
        made = graph.get_collection(self._latest)
        if not made:
            resources = graph.get_collection("iterators")
            if not resources:
                raise ValueError("The graph has no iterator with a position to save")
            made = [Saver([_saveable(each, self._policy) for each in dict.fromkeys(resources)])]
            graph.add_to_collection(self._latest, made[0])
        self._saver = made[0]

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Restores the last position if one was saved; otherwise saves the first."""
        path = latest_checkpoint(self._folder, self._latest)
        step = int(session.run(self._global_step))
        if path is None:
            self._save(session, step)
        else:
            assert self._saver is not None
            self._saver.restore(session, path)
        self._timer.update_last_triggered_step(step)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        """Asks for the step."""
        return SessionRunArgs(self._global_step)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        """Saves when it is time."""
        if not self._timer.should_trigger_for_step(int(run_values.results) + 1):
            return
        step = int(run_context.session.run(self._global_step))
        if self._timer.should_trigger_for_step(step):
            self._timer.update_last_triggered_step(step)
            self._save(run_context.session, step)

    def end(self, session: Any) -> None:
        """Saves the last position."""
        step = int(session.run(self._global_step))
        if step != self._timer.last_triggered_step():
            self._save(session, step)

    def _save(self, session: Any, step: int) -> None:
        assert self._saver is not None
        filesystems.makedirs(self._folder)
        self._saver.save(session, self._path, step, latest_filename=self._latest, write_meta_graph=False)
