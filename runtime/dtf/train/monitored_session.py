"""MonitoredSession and MonitoredTrainingSession: a session with hooks that recovers when a task was restarted.

Owns the public interface. `session_layers` holds the layers around a plain session, `session_creators` makes
sessions, `recovery` decides how often to retry, and `preemption` handles SIGTERM.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/MonitoredTrainingSession
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.train import basic_session_run_hooks as basic_hooks
from dtf.train.preemption import Preempted, PreemptionNotice
from dtf.train.recovery import LOST, RecoveryPolicy, cause
from dtf.train.scaffold import Scaffold
from dtf.train.session_creators import ChiefSessionCreator, WorkerSessionCreator
from dtf.train.session_layers import CoordinatedSessionCreator, RecoverableSession, StepContext
from dtf.train.session_run_hook import SessionRunHook
from dtf.wire import errors

USE_DEFAULT = object()

def MonitoredTrainingSession(  # noqa: N802  (TensorFlow's name)
    master: str = "",
    is_chief: bool = True,
    checkpoint_dir: str | None = None,
    scaffold: Scaffold | None = None,
    hooks: Sequence[SessionRunHook] | None = None,
    chief_only_hooks: Sequence[SessionRunHook] | None = None,
    save_checkpoint_secs: Any = USE_DEFAULT,
    save_summaries_steps: Any = USE_DEFAULT,
    save_summaries_secs: Any = USE_DEFAULT,
    config: Any = None,
    stop_grace_period_secs: float = 120,
    log_step_count_steps: int | None = 100,
    max_wait_secs: float = 7200,
    save_checkpoint_steps: Any = USE_DEFAULT,
    summary_dir: str | None = None,
    save_graph_def: bool = True,
    recovery: RecoveryPolicy | None = None,
) -> MonitoredSession:
    """Makes a MonitoredSession for training.

    The chief initialises or restores the model and saves checkpoints (every 600 s by default) and summaries (every
    100 steps by default). Other workers wait until the model is ready.

    In the main thread, SIGTERM is a preemption notice unless the program has a handler of its own. The training stops
    after the step and the chief saves a last checkpoint. When the session ends, the process exits with status 143
    (see `preemption`).

    Args:
      master: the session target, such as `server.target`.
      is_chief: whether this is the chief.
      checkpoint_dir: folder to restore from and save to; None saves nothing.
      scaffold: gathers ops and the saver.
      hooks: SessionRunHooks.
      chief_only_hooks: hooks that only the chief uses.
      save_checkpoint_secs, save_checkpoint_steps: the interval, at most one of them; None for both saves nothing.
      save_summaries_steps, save_summaries_secs: the same for summaries.
      config: a ConfigProto.
      stop_grace_period_secs: seconds that queue-runner threads have to end.
      log_step_count_steps: steps between two lines of "global_step/sec"; None for none.
      max_wait_secs: seconds that a worker waits for the chief.
      summary_dir: folder of the summaries; `checkpoint_dir` by default.
      save_graph_def: whether graph.pbtxt is written.
      recovery: how often and how long a lost session is recreated (dtf's own argument).

    Returns:
      A MonitoredSession.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/MonitoredTrainingSession
    """
    if save_summaries_steps is USE_DEFAULT and save_summaries_secs is USE_DEFAULT:
        save_summaries_steps, save_summaries_secs = 100, None
    save_summaries_steps = _unless_default(save_summaries_steps)
    save_summaries_secs = _unless_default(save_summaries_secs)
    if save_checkpoint_secs is USE_DEFAULT and save_checkpoint_steps is USE_DEFAULT:
        save_checkpoint_secs, save_checkpoint_steps = 600, None
    save_checkpoint_secs = _unless_default(save_checkpoint_secs)
    save_checkpoint_steps = _unless_default(save_checkpoint_steps)

    scaffold = scaffold or Scaffold()
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs, recovery)

    # The saver's come before the caller's, as in TensorFlow: at the end of those all is saved.
    all_hooks: list[SessionRunHook] = list(chief_only_hooks or [])
    summary_dir = summary_dir or checkpoint_dir
    if summary_dir:
        if log_step_count_steps and log_step_count_steps > 0:
            all_hooks.append(
                basic_hooks.StepCounterHook(output_dir=summary_dir, every_n_steps=log_step_count_steps)
            )
        if (save_summaries_steps and save_summaries_steps > 0) or (save_summaries_secs and save_summaries_secs > 0):
            all_hooks.append(
                basic_hooks.SummarySaverHook(
                    save_steps=save_summaries_steps,
                    save_secs=save_summaries_secs,
                    scaffold=scaffold,
                    output_dir=summary_dir,
                )
            )
    if checkpoint_dir and (
        (save_checkpoint_secs and save_checkpoint_secs > 0) or (save_checkpoint_steps and save_checkpoint_steps > 0)
    ):
        all_hooks.append(
            basic_hooks.CheckpointSaverHook(
                checkpoint_dir,
                save_secs=save_checkpoint_secs,
                save_steps=save_checkpoint_steps,
                scaffold=scaffold,
                save_graph_def=save_graph_def,
            )
        )
    all_hooks += hooks or []
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, all_hooks, stop_grace_period_secs, recovery)


class _MonitoredSession:
    """The shared part of MonitoredSession and SingularMonitoredSession; the one owner of the wrapped
    session."""

    def __init__(
        self,
        session_creator: Any,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float,
        recovery: RecoveryPolicy | None = None,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._notice = PreemptionNotice()
        self._creator = CoordinatedSessionCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs, self._notice
        )
        self._notice.watch()
        # A session that is dropped without a close must not keep the process deaf to SIGTERM.
        weakref.finalize(self, self._notice.release).atexit = False
        try:
            self._sess: Any = (
                RecoverableSession(self._creator, self._notice, recovery)
                if should_recover
                else self._creator.create_session()
            )
        except BaseException:
            self._notice.release()
            raise

    @property
    def graph(self) -> Any:
        """The graph of the session; None after the close."""
        raw = self._tf_sess()
        return None if raw is None else raw.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs as `Session.run` does, with the hooks around it.

        Raises:
          RuntimeError: the session is closed.
          OpError: any error of the run that recovery does not handle.
        """
        if self._is_closed():
            raise RuntimeError("Run called even after the session was closed.")
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Runs `step_fn(step_context)`, or a method with self before it, which may run the session several times.

        `step_context.session` is the plain session, `step_context.run_with_hooks` runs with hooks,
        `step_context.request_stop()` leaves the session's block.

        Raises:
          ValueError: the function has other arguments.
          StopIteration: the function has called `request_stop`.
          RuntimeError: the session is closed.
        """
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = inspect.signature(step_fn).parameters.values()
        arguments = [each.name for each in parameters if each.kind in kinds]
        if arguments not in (["step_context"], ["self", "step_context"]):
            raise ValueError(
                f"step_fn must take the argument step_context, or be a method that does, but it takes {arguments}."
            )
        if self._is_closed():
            raise RuntimeError("run_step_fn called even after the session was closed.")
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def should_stop(self) -> bool:
        """Whether the training loop is to end."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Ends the session without an error; the hooks' `end` is called.

        Raises:
          SystemExit: SIGTERM was received; everything is saved.
          RuntimeError: the session is closed already.
          OpError: an error that a queue runner or another thread of the coordinator has reported.
        """
        self._close_internal()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> bool:
        clean: tuple[type[BaseException], ...] = (errors.OutOfRangeError, StopIteration)
        if self._notice.arrived:
            clean += (Preempted, KeyboardInterrupt)  # an interrupted step is not an error
        if exception_type is not None and issubclass(exception_type, clean):
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _close_internal(self, exception_type: Any = None) -> None:
        if self._sess is None and exception_type is None:
            raise RuntimeError("The session is already closed. A with block closes it at its end.")
        try:
            if exception_type is None and self._creator.tf_sess is not None:
                self._end_hooks(self._creator.tf_sess)
        finally:
            try:
                if self._sess is not None:
                    self._sess.close()
            finally:
                self._sess = None
                self._creator.forget()
                self._notice.release()
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()
        if exception_type is None:
            self._notice.leave()

    def _end_hooks(self, session: Any) -> None:
        try:
            for hook in self._hooks:
                hook.end(session)
        except LOST as error:
            if not self._notice.arrived:
                raise
            logging.warning("SIGTERM received, but the last step could not be saved. Cause: %s", cause(error))

    def _is_closed(self) -> bool:
        return self._sess is None

    def _tf_sess(self) -> Any:
        return self._creator.tf_sess


class MonitoredSession(_MonitoredSession):
    """A session with hooks, which recovers from the loss of a task.

    Args:
      session_creator: ChiefSessionCreator (the default), WorkerSessionCreator, or anything with `create_session`.
      hooks: SessionRunHooks, called in this order.
      stop_grace_period_secs: seconds that queue-runner threads have to end at the close.
      recovery: how often and how long a lost session is recreated (dtf's own argument).

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/MonitoredSession
    """

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
        recovery: RecoveryPolicy | None = None,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs, recovery)

    StepContext: Any = None  # set below, TensorFlow's place for the class


class SingularMonitoredSession(_MonitoredSession):
    """A session with hooks that does not recover: errors reach the caller."""

    def __init__(
        self,
        hooks: Iterable[SessionRunHook] | None = None,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        stop_grace_period_secs: float = 120,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        creator = ChiefSessionCreator(scaffold, master, config, checkpoint_dir, checkpoint_filename_with_path)
        super().__init__(creator, hooks, False, stop_grace_period_secs)

    def raw_session(self) -> Any:
        """The plain session under the hooks."""
        return self._tf_sess()


MonitoredSession.StepContext = StepContext


def _unless_default(value: Any) -> Any:
    return None if value is USE_DEFAULT else value
