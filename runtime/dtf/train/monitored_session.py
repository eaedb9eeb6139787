"""MonitoredSession and MonitoredTrainingSession: a session with hooks that recovers when a task was restarted.

Three wrappers, each with one job, around a plain session:

    _RecoverableSession   makes the rest anew when a run raises AbortedError or UnavailableError
      _CoordinatedSession lets the errors of queue-runner threads reach the caller, and joins them at the end
        _HookedSession    calls the hooks around each run

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/MonitoredTrainingSession
"""

from __future__ import annotations

import contextlib
import inspect
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dtf import logging
from dtf.build.graph import get_default_graph
from dtf.train import basic_session_run_hooks as basic_hooks
from dtf.train.checkpoint_management import remove_unfinished
from dtf.train.coordinator import Coordinator
from dtf.train.queue_runner import start_queue_runners
from dtf.train.scaffold import Scaffold
from dtf.train.session_manager import SessionManager
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.wire import errors

USE_DEFAULT = object()
_PREEMPTION_ERRORS = (errors.AbortedError, errors.UnavailableError)

# Recovery: a session that cannot be made again is tried until the deadline, with growing pauses; one that is made
# again and again without a single good run in between is given up.
_RECOVERY_DEADLINE_S = 7200.0
_RECOVERY_PAUSES_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_MOST_RECOVERIES_WITHOUT_A_RUN = 20
_LOG_EVERY_S = 10.0


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
) -> MonitoredSession:
    """Makes a MonitoredSession for training.

    The chief initialises or restores the model, saves checkpoints (every 600 s by default) and summaries (every 100
    steps by default); other workers wait until it has done so.

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
    all_hooks: list[SessionRunHook] = list(hooks or [])
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, all_hooks, stop_grace_period_secs)

    all_hooks += list(chief_only_hooks or [])
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
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    return MonitoredSession(chief, all_hooks, stop_grace_period_secs)


class SessionCreator:
    """Base of what makes the sessions of a MonitoredSession."""

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        raise NotImplementedError("a SessionCreator must have the method create_session")


class ChiefSessionCreator(SessionCreator):
    """Makes sessions for the chief: restores the latest checkpoint, or initialises."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        checkpoint_dir: str | None = None,
        checkpoint_filename_with_path: str | None = None,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._checkpoint_dir = checkpoint_dir
        self._checkpoint_filename_with_path = checkpoint_filename_with_path
        self._session_manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        self._scaffold.finalize()
        if self._checkpoint_dir:
            os.makedirs(self._checkpoint_dir, exist_ok=True)
            remove_unfinished(self._checkpoint_dir)
        if self._session_manager is None:
            self._session_manager = _session_manager(self._scaffold)
        return self._session_manager.prepare_session(
            self._master,
            saver=self._scaffold.saver,
            checkpoint_dir=self._checkpoint_dir,
            checkpoint_filename_with_path=self._checkpoint_filename_with_path,
            config=self._config,
            init_op=self._scaffold.init_op,
            init_feed_dict=self._scaffold.init_feed_dict,
            init_fn=self._scaffold.init_fn,
        )


class WorkerSessionCreator(SessionCreator):
    """Makes sessions for a worker that is not the chief: waits until the model is ready."""

    def __init__(
        self,
        scaffold: Scaffold | None = None,
        master: str = "",
        config: Any = None,
        max_wait_secs: float = 30 * 60,
    ) -> None:
        self._scaffold = scaffold or Scaffold()
        self._master = master
        self._config = config
        self._max_wait_secs = max_wait_secs
        self._session_manager: SessionManager | None = None

    def create_session(self) -> Any:
        """Returns a session whose model is ready."""
        self._scaffold.finalize()
        if self._session_manager is None:
            self._session_manager = _session_manager(self._scaffold)
        return self._session_manager.wait_for_session(
            self._master, config=self._config, max_wait_secs=self._max_wait_secs
        )


class _MonitoredSession:
    """What MonitoredSession and SingularMonitoredSession share; the one owner of the wrapped session."""

    def __init__(
        self,
        session_creator: Any,
        hooks: Iterable[SessionRunHook] | None,
        should_recover: bool,
        stop_grace_period_secs: float,
    ) -> None:
        self._graph_was_finalized = get_default_graph().finalized
        self._hooks = list(hooks or [])
        for hook in self._hooks:
            hook.begin()
        self._creator = _CoordinatedSessionCreator(
            session_creator or ChiefSessionCreator(), self._hooks, stop_grace_period_secs
        )
        self._sess: Any = _RecoverableSession(self._creator) if should_recover else self._creator.create_session()

    @property
    def graph(self) -> Any:
        """The graph of the session; None after the close."""
        raw = self._tf_sess()
        return None if raw is None else raw.graph

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        """Runs as `Session.run` does, with the hooks around it.

        Raises:
          RuntimeError: the session is closed.
          OpError: what the run raises and recovery does not mend.
        """
        if self._is_closed():
            raise RuntimeError("Run called even after the session was closed.")
        return self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)

    def run_step_fn(self, step_fn: Callable[..., Any]) -> Any:
        """Runs `step_fn(step_context)`, or a method with self before it, which may run the session several times.

        `step_context.session` is the plain session, `step_context.run_with_hooks` runs with hooks,
        `step_context.request_stop()` ends the loop.

        Raises:
          ValueError: the function has other arguments.
        """
        arguments = [name for name in inspect.signature(step_fn).parameters if name != "self"]
        if arguments != ["step_context"]:
            raise ValueError(f"'step_fn' may either have one 'step_context' argument, or a method: has {arguments}.")
        if self._is_closed():
            return None
        return self._sess.run_step_fn(step_fn, self._tf_sess(), run_with_hooks=None)

    def should_stop(self) -> bool:
        """Whether the training loop is to end."""
        return self._sess is None or self._sess.should_stop()

    def close(self) -> None:
        """Ends the session without an error; the hooks' `end` is called."""
        self._close_internal()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, exception_type: Any, exception_value: Any, traceback: Any) -> bool:
        clean = (errors.OutOfRangeError, StopIteration)
        if exception_type is not None and issubclass(exception_type, clean):
            exception_type = None
        self._close_internal(exception_type)
        return exception_type is None

    def _close_internal(self, exception_type: Any = None) -> None:
        try:
            if exception_type is None and self._creator.tf_sess is not None:
                for hook in self._hooks:
                    hook.end(self._creator.tf_sess)
        finally:
            try:
                if self._sess is not None:
                    self._sess.close()
            finally:
                self._sess = None
                self._creator.forget()
                if not self._graph_was_finalized:
                    get_default_graph()._unsafe_unfinalize()

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
    """

    def __init__(
        self,
        session_creator: Any = None,
        hooks: Iterable[SessionRunHook] | None = None,
        stop_grace_period_secs: float = 120,
    ) -> None:
        super().__init__(session_creator, hooks, True, stop_grace_period_secs)

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


class StepContext:
    """What a step function gets; see `MonitoredSession.run_step_fn`."""

    def __init__(self, session: Any, run_with_hooks_fn: Callable[..., Any]) -> None:
        self._session = session
        self._run_with_hooks_fn = run_with_hooks_fn

    @property
    def session(self) -> Any:
        return self._session

    def run_with_hooks(self, *args: Any, **kwargs: Any) -> Any:
        """Runs as `MonitoredSession.run`."""
        return self._run_with_hooks_fn(*args, **kwargs)

    def request_stop(self) -> None:
        """Ends the training loop."""
        raise StopIteration("step_fn has requested the iterations to stop.")


MonitoredSession.StepContext = StepContext


class _CoordinatedSessionCreator:
    """Makes a plain session with its queue runners, and wraps it for the coordinator and the hooks."""

    def __init__(self, session_creator: Any, hooks: list[SessionRunHook], stop_grace_period_secs: float) -> None:
        self._session_creator = session_creator
        self._hooks = hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self.tf_sess: Any = None
        self.coord: Coordinator | None = None

    def create_session(self) -> _CoordinatedSession:
        self.tf_sess = self._session_creator.create_session()
        self.coord = Coordinator(clean_stop_exception_types=())
        try:
            if get_default_graph().get_collection("queue_runners"):
                start_queue_runners(sess=self.tf_sess, coord=self.coord)
            for hook in self._hooks:
                hook.after_create_session(self.tf_sess, self.coord)
        except BaseException:
            self.abandon()
            raise
        hooked = _HookedSession(self.tf_sess, self._hooks)
        return _CoordinatedSession(hooked, self.coord, self._stop_grace_period_secs)

    def abandon(self) -> None:
        """Ends a session that is lost: at once, since its threads cannot finish what they wait for."""
        session, coord = self.tf_sess, self.coord
        self.forget()
        if coord is not None:
            coord.request_stop()
        if session is not None:
            session.close()
        if coord is not None:
            with contextlib.suppress(Exception):  # the cause is known already
                coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)

    def forget(self) -> None:
        """The session is closed."""
        self.tf_sess = None
        self.coord = None


class _RecoverableSession:
    """Makes its session anew when a task was lost, with growing pauses, a bound, and the cause in the log."""

    def __init__(self, creator: _CoordinatedSessionCreator) -> None:
        self._creator = creator
        self._recoveries = 0
        self._sess: Any = self._create()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        return self._recovering(
            lambda: self._sess.run(fetches, feed_dict=feed_dict, options=options, run_metadata=run_metadata)
        )

    def run_step_fn(self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Any) -> Any:
        return self._recovering(
            lambda: self._sess.run_step_fn(step_fn, self._creator.tf_sess, run_with_hooks), step_fn=True
        )

    def should_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return self._sess.should_stop()
        except _PREEMPTION_ERRORS as error:
            self._give_up_session(error)
            return False

    def close(self) -> None:
        if self._sess is not None:
            try:
                self._sess.close()
            except _PREEMPTION_ERRORS as error:
                logging.warning("The session was lost as it was being closed: %s", _cause(error))
            finally:
                self._sess = None

    def _recovering(self, run: Callable[[], Any], step_fn: bool = False) -> Any:
        while True:
            if self._sess is None:
                self._sess = self._create()
            try:
                result = run()
            except _PREEMPTION_ERRORS as error:
                self._give_up_session(error)
                continue
            self._recoveries = 0
            return result

    def _give_up_session(self, error: errors.OpError) -> None:
        """Closes what is left of a lost session; raises when too many were lost in a row."""
        self._recoveries += 1
        if self._recoveries > _MOST_RECOVERIES_WITHOUT_A_RUN:
            raise error
        logging.info(
            "A task was lost or restarted; the session is made again and the last checkpoint restored (%d of %d). "
            "Cause: %s",
            self._recoveries,
            _MOST_RECOVERIES_WITHOUT_A_RUN,
            _cause(error),
        )
        self._sess = None
        self._creator.abandon()

    def _create(self) -> _CoordinatedSession:
        deadline = time.monotonic() + _RECOVERY_DEADLINE_S
        log_at = 0.0
        attempt = 0
        while True:
            try:
                return self._creator.create_session()
            except _PREEMPTION_ERRORS as error:
                pause_s = _RECOVERY_PAUSES_S[min(attempt, len(_RECOVERY_PAUSES_S) - 1)]
                attempt += 1
                if time.monotonic() + pause_s > deadline:
                    raise
                if time.monotonic() >= log_at:
                    log_at = time.monotonic() + _LOG_EVERY_S
                    logging.info("The session cannot be made yet; it is tried again. Cause: %s", _cause(error))
                time.sleep(pause_s)


class _CoordinatedSession:
    """Watches the coordinator: its stop ends the loop, its error is raised."""

    def __init__(self, sess: _HookedSession, coord: Coordinator, stop_grace_period_secs: float) -> None:
        self._sess = sess
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._guarded(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Any) -> Any:
        def run() -> Any:
            context = StepContext(raw_session, self._sess.run)
            arguments = inspect.signature(step_fn).parameters
            try:
                return step_fn(self, context) if "self" in arguments else step_fn(context)
            except StopIteration:
                self._sess.request_stop()
                return None

        return self._guarded(run)

    def should_stop(self) -> bool:
        if self._coord.should_stop():
            self._coord.raise_requested_exception()
            return True
        return self._sess.should_stop()

    def close(self) -> None:
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            with contextlib.suppress(errors.OpError, RuntimeError):
                self._sess.close()

    def _guarded(self, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except _PREEMPTION_ERRORS:
            raise
        except Exception:
            # A run often fails only because a queue runner failed before it: that one is the root cause.
            self._coord.raise_requested_exception()
            raise


class _HookedSession:
    """Calls the hooks around each run of a plain session."""

    def __init__(self, sess: Any, hooks: list[SessionRunHook]) -> None:
        self._sess = sess
        self._hooks = hooks
        self._should_stop = False

    def should_stop(self) -> bool:
        return self._should_stop

    def request_stop(self) -> None:
        self._should_stop = True

    def close(self) -> None:
        self._sess.close()

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        if self._should_stop:
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        actual_fetches: dict[Any, Any] = {"caller": fetches}
        feeds = dict(feed_dict or {})
        asked: dict[SessionRunHook, SessionRunArgs] = {}
        for hook in self._hooks:
            request = hook.before_run(context)
            if request is None:
                continue
            asked[hook] = request
            if request.fetches is not None:
                actual_fetches[hook] = request.fetches
            self._merge_feeds(feeds, request.feed_dict, hook)
            options = _merged_options(options, request.options)
        if options is not None and run_metadata is None:
            from dtf.wire.pb import config_pb2

            run_metadata = config_pb2.RunMetadata()
        # A dict keyed by hooks is no fetch structure; a list in the same order is.
        values = self._sess.run(
            list(actual_fetches.values()), feed_dict=feeds or None, options=options, run_metadata=run_metadata
        )
        outputs = dict(zip(actual_fetches, values, strict=True))
        for hook in self._hooks:
            hook.after_run(context, SessionRunValues(outputs.get(hook), options, run_metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return outputs["caller"]

    @staticmethod
    def _merge_feeds(feeds: dict[Any, Any], more: dict[Any, Any] | None, hook: SessionRunHook) -> None:
        for key, value in (more or {}).items():
            if key in feeds:
                raise RuntimeError(f"Same tensor is fed by two sources: {key}, the second of them {hook}.")
            feeds[key] = value


def _merged_options(ours: Any, more: Any) -> Any:
    if more is None:
        return ours
    if ours is None:
        return more
    merged = type(ours)()
    merged.CopyFrom(ours)
    merged.trace_level = max(ours.trace_level, more.trace_level)
    merged.timeout_in_ms = max(ours.timeout_in_ms, more.timeout_in_ms)
    merged.output_partition_graphs = ours.output_partition_graphs or more.output_partition_graphs
    return merged


def _session_manager(scaffold: Scaffold) -> SessionManager:
    return SessionManager(
        local_init_op=scaffold.local_init_op,
        local_init_feed_dict=scaffold.local_init_feed_dict,
        ready_op=scaffold.ready_op,
        ready_for_local_init_op=scaffold.ready_for_local_init_op,
        graph=get_default_graph(),
    )


def _unless_default(value: Any) -> Any:
    return None if value is USE_DEFAULT else value


def _cause(error: errors.OpError) -> str:
    """The first line that says what happened."""
    lines = [line for line in str(error.message).splitlines() if line.strip() and not line.startswith("From /job:")]
    line = lines[0].replace("[_Derived_]", "") if lines else ""
    return f"{type(error).__name__}: {line}"
