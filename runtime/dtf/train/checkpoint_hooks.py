"""CheckpointSaverHook saves a checkpoint at an interval; CheckpointSaverListener adds actions around each
save.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/CheckpointSaverHook
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import GraphKeys
from dtf.train.preemption import has_arrived
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.train.step_timer import SecondOrStepTimer
from dtf.train.training_util import required_global_step_read, step_number
from dtf.wire.task_notes import notes

_HOLD_LOOK_S = 0.02


class CheckpointSaverListener:
    """Base of actions around each save of a CheckpointSaverHook; override the methods that you
    need."""

    def begin(self) -> None:
        """Called when the hook begins."""

    def before_save(self, session: Any, global_step_value: int) -> None:
        """Called before a checkpoint is written."""

    def after_save(self, session: Any, global_step_value: int) -> bool | None:
        """Called after a checkpoint was written. True requests the end of the training."""
        return None

    def end(self, session: Any, global_step_value: int) -> None:
        """Called at the end, after the last save."""


class CheckpointSaverHook(SessionRunHook):
    """Saves a checkpoint every so many seconds or steps, at the start and at the end.

    Args:
      checkpoint_dir: folder of the checkpoints.
      save_secs, save_steps: the interval, one of them.
      saver: a Saver; or `scaffold`, whose saver is used; or neither, for the graph's one in the SAVERS collection.
      checkpoint_basename: the checkpoints' name before "-<step>".
      listeners: CheckpointSaverListeners.
      save_graph_def: whether the first save also writes graph.pbtxt and a meta graph.
      in_background: train on while a checkpoint is written. Its name then has the step at which the save began; the
        saved values may be a few steps newer. `after_save` of listeners and the errors of a save come with the first
        step after it. The saves at the start, at the end and at a supervisor's request are waited for. An argument of
        dtf's own.

    Raises:
      ValueError: both `saver` and `scaffold` are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/CheckpointSaverHook
    """

    def __init__(
        self,
        checkpoint_dir: str,
        save_secs: float | None = None,
        save_steps: int | None = None,
        saver: Any = None,
        checkpoint_basename: str = "model.ckpt",
        scaffold: Any = None,
        listeners: Sequence[CheckpointSaverListener] | None = None,
        save_graph_def: bool = True,
        in_background: bool = False,
    ) -> None:
        if saver is not None and scaffold is not None:
            raise ValueError("You cannot provide both saver and scaffold.")
        self._saver = saver
        self._scaffold = scaffold
        self._checkpoint_dir = checkpoint_dir
        self._save_path = os.path.join(checkpoint_dir, checkpoint_basename)
        self._timer = SecondOrStepTimer(every_secs=save_secs, every_steps=save_steps)
        self._listeners = list(listeners or [])
        self._save_graph_def = save_graph_def
        self._steps_per_run = 0  # the largest observed increment of the global step by a run; 0: none observed yet
        self._step_before: int | None = None
        self._is_noted = False
        self._in_background = in_background
        self._running: _RunningSave | None = None

    def _set_steps_per_run(self, steps_per_run: int) -> None:
        self._steps_per_run = steps_per_run

    def add_listeners(self, listeners: Sequence[CheckpointSaverListener]) -> None:
        """More CheckpointSaverListeners; to be called before the session is made."""
        self._listeners.extend(listeners)

    def begin(self) -> None:
        from dtf.train.summary_writer import FileWriterCache

        self._summary_writer = FileWriterCache.get(self._checkpoint_dir)
        self._global_step_tensor = required_global_step_read("CheckpointSaverHook")
        for listener in self._listeners:
            listener.begin()

    def after_create_session(self, session: Any, coord: Any) -> None:
        from dtf.train.graph_io import write_graph
        from dtf.train.meta_graph import create_meta_graph_def

        if self._running is not None:  # of a session that was lost
            self._running.wait()
            self._running = None
        graph = get_default_graph()
        step = step_number(session.run(self._global_step_tensor))
        if self._save_graph_def:
            write_graph(graph.as_graph_def(add_shapes=True), self._checkpoint_dir, "graph.pbtxt")
        self._summary_writer.add_graph(graph)
        saver_def = self._get_saver().saver_def
        self._summary_writer.add_meta_graph(create_meta_graph_def(graph=graph, saver_def=saver_def))
        self._save(session, step)
        self._timer.update_last_triggered_step(step)
        self._note(True)

    def before_run(self, run_context: SessionRunContext) -> SessionRunArgs:
        return SessionRunArgs(self._global_step_tensor)

    def after_run(self, run_context: SessionRunContext, run_values: SessionRunValues) -> None:
        before = step_number(run_values.results)
        if notes.wanted != notes.saved:
            self._save_as_asked(run_context.session)
        if self._running is not None and self._running.is_over and self._finish_running(run_context.session):
            run_context.request_stop()
        if self._step_before is not None:
            self._steps_per_run = max(self._steps_per_run, before - self._step_before)
        self._step_before = before
        if self._steps_per_run and not self._timer.should_trigger_for_step(before + self._steps_per_run):
            return  # no save can be due, so the step after the run need not be read
        step = step_number(run_context.session.run(self._global_step_tensor))
        self._steps_per_run = max(self._steps_per_run, step - before, 1)
        if self._timer.should_trigger_for_step(step) and self._running is None:
            self._timer.update_last_triggered_step(step)
            if self._in_background:
                self._begin_save(run_context.session, step)
            elif self._save(run_context.session, step):
                run_context.request_stop()

    def end(self, session: Any) -> None:
        self._note(False)
        step = self.save_now(session)
        for listener in self._listeners:
            listener.end(session, step)

    def _note(self, can_save: bool) -> None:
        """Tells the supervisor whether this process can save a checkpoint on request."""
        if can_save != self._is_noted:
            self._is_noted = can_save
            notes.savers += 1 if can_save else -1

    def _save_as_asked(self, session: Any) -> None:
        """Saves because a supervisor is about to end a parameter server. Makes no further step until that server has
        ended or the supervisor has withdrawn its plan. Its end makes the current run fail here.
        """
        wanted = notes.wanted
        step = self.save_now(session)
        notes.saved = wanted
        logging.info("Saved step %d at the supervisor's request: a parameter server is about to end.", step)
        until = time.monotonic() + notes.hold_s
        while notes.wanted == wanted and time.monotonic() < until and not has_arrived():
            time.sleep(_HOLD_LOOK_S)
            session.run(self._global_step_tensor)

    def save_now(self, session: Any) -> int:
        """Saves, if the newest checkpoint is not of this step already. Returns the global step."""
        if self._running is not None:
            self._finish_running(session)
            self._timer.reset()  # its values may be of a later step than its name
        step = step_number(session.run(self._global_step_tensor))
        if step != self._timer.last_triggered_step():
            self._timer.update_last_triggered_step(step)
            self._save(session, step)
        return step

    def _save(self, session: Any, step: int) -> bool:
        """Saves. Returns whether a listener requests the end."""
        self._before_save(session, step)
        self._write(session, step)
        return self._after_save(session, step)

    def _begin_save(self, session: Any, step: int) -> None:
        self._before_save(session, step)
        self._running = _RunningSave(step, lambda: self._write(session, step))

    def _finish_running(self, session: Any) -> bool:
        """Waits for the save in the background and raises its error. Returns whether a listener requests the end."""
        running = self._running
        assert running is not None
        self._running = None
        running.wait()
        if running.error is not None:
            raise running.error
        return self._after_save(session, running.step)

    def _before_save(self, session: Any, step: int) -> None:
        logging.debug("Saving checkpoints for %d into %s.", step, self._save_path)
        for listener in self._listeners:
            listener.before_save(session, step)

    def _write(self, session: Any, step: int) -> None:
        self._get_saver().save(session, self._save_path, global_step=step, write_meta_graph=self._save_graph_def)

    def _after_save(self, session: Any, step: int) -> bool:
        from dtf.wire.pb import event_pb2

        log = event_pb2.SessionLog(status=event_pb2.SessionLog.CHECKPOINT, checkpoint_path=self._save_path)
        self._summary_writer.add_session_log(log, step)
        wanted = [listener.after_save(session, step) for listener in self._listeners]
        return any(wanted)

    def _get_saver(self) -> Any:
        if self._saver is not None:
            return self._saver
        if self._scaffold is not None:
            return self._scaffold.saver
        savers = get_default_graph().get_collection(GraphKeys.SAVERS)
        if len(savers) != 1:
            problem = "No items" if not savers else "More than one item"
            raise RuntimeError(
                f"{problem} in collection {GraphKeys.SAVERS}. Please pass a saver or a scaffold to CheckpointSaverHook."
            )
        self._saver = savers[0]
        return self._saver


class _RunningSave:
    """A save in a thread of its own.

    Attributes:
      step: the step at which it began.
      error: the exception that ended it, once `is_over`.
    """

    def __init__(self, step: int, write: Callable[[], None]) -> None:
        self.step = step
        self.error: Exception | None = None
        self._write = write
        self._thread = threading.Thread(target=self._run, name="dtf-checkpoint", daemon=True)
        self._thread.start()

    @property
    def is_over(self) -> bool:
        return not self._thread.is_alive()

    def wait(self) -> None:
        self._thread.join()

    def _run(self) -> None:
        try:
            self._write()
        except Exception as error:
            self.error = error
