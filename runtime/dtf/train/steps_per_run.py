"""Runs of several steps each: the variable that says how many, and the hook that stops exactly at a step.

Source: tensorflow/python/training/basic_session_run_hooks.py of TensorFlow 1.15 (its behaviour)
"""

from __future__ import annotations

from typing import Any

from dtf.build.default_graph import get_collection
from dtf.build.graph_keys import GraphKeys
from dtf.build.initializers import ones_initializer
from dtf.build.variable_scope import AUTO_REUSE, get_variable, variable_scope
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.training_util import required_global_step_read, step_number
from dtf.wire import dtypes

__all__ = ["MultiStepStopAtStepHook", "get_or_create_steps_per_run_variable"]

_COLLECTION = "hooks_steps_per_run"


def get_or_create_steps_per_run_variable() -> Any:
    """The variable `hooks/steps_per_run` of the default graph: a local int32 scalar that begins with 1.

    Raises:
      RuntimeError: the graph has several.
    """
    found = get_collection(_COLLECTION)
    if len(found) > 1:
        raise RuntimeError("Multiple steps_per_run_var in collection.")
    if found:
        return found[0]
    with variable_scope("hooks", reuse=AUTO_REUSE):
        return get_variable(
            "steps_per_run",
            shape=[],
            dtype=dtypes.int32,
            initializer=ones_initializer(),
            trainable=False,
            collections=[_COLLECTION, GraphKeys.LOCAL_VARIABLES],
            use_resource=True,
        )


class MultiStepStopAtStepHook(SessionRunHook):
    """Asks for the end at a global step; each run of the training makes as many steps as a variable says.

    Args:
      num_steps: stop this many steps after the step at which the session starts.
      last_step: stop when the global step is this.
      steps_per_run: steps of a run; the last run makes fewer.

    Raises:
      ValueError: both or neither of the first two are given, or `steps_per_run` is less than 1.
    """

    def __init__(self, num_steps: int | None = None, last_step: int | None = None, steps_per_run: int = 1) -> None:
        if num_steps is None and last_step is None:
            raise ValueError("One of num_steps or last_step must be specified.")
        if num_steps is not None and last_step is not None:
            raise ValueError("Only one of num_steps or last_step can be specified.")
        if steps_per_run is None or steps_per_run < 1:
            raise ValueError("steps_per_run should be greater than 0")
        self._num_steps = num_steps
        self._last_step = last_step
        self._steps_per_run_initial_value = steps_per_run

    def begin(self) -> None:
        self._global_step_tensor = required_global_step_read("StopAtStepHook")
        self._steps_per_run_variable = get_or_create_steps_per_run_variable()

    def after_create_session(self, session: Any, coord: Any) -> None:
        step = step_number(session.run(self._global_step_tensor))
        if self._last_step is None:
            assert self._num_steps is not None
            self._last_step = step + self._num_steps
        self._set_steps(step, self._last_step, session)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        assert self._last_step is not None
        # The fetched value may be from before the run.
        step = step_number(run_context.session.run(self._global_step_tensor))
        if step >= self._last_step:
            run_context.request_stop()
        else:
            self._set_steps(step, self._last_step, run_context.session)

    def _set_steps(self, step: int, last_step: int, session: Any) -> None:
        steps = min(last_step - step, self._steps_per_run_initial_value)
        self._steps_per_run_variable.load(steps, session=session)
