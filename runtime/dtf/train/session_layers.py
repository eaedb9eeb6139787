"""The layers of a MonitoredSession around a plain session, each with one job:

    RecoverableSession    makes the rest anew when a run raises AbortedError or UnavailableError
      CoordinatedSession  lets the errors of queue-runner threads reach the caller, and joins them at the end
        HookedSession     calls the hooks around each run, and lets a preemption notice cut the run off

`CoordinatedSessionCreator` puts the inner two around a session with its queue runners.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.train.coordinator import Coordinator
from dtf.train.preemption import Preempted, PreemptionNotice
from dtf.train.queue_runner import start_queue_runners
from dtf.train.recovery import LOST, Recovery, RecoveryPolicy, cause
from dtf.train.session_run_hook import SessionRunArgs, SessionRunContext, SessionRunHook, SessionRunValues
from dtf.wire import errors
from dtf.wire.measures import this_thread


class StepContext:
    """The argument of a step function; see `MonitoredSession.run_step_fn`."""

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
        """Ends the training loop: the session's block is left without an error.

        Raises:
          StopIteration: always; the step function must not catch it.
        """
        raise StopIteration("step_fn has requested the iterations to stop.")


class CoordinatedSessionCreator:
    """Makes a plain session with its queue runners, and wraps it for the coordinator and the hooks."""

    def __init__(
        self,
        session_creator: Any,
        hooks: list[SessionRunHook],
        stop_grace_period_secs: float,
        notice: PreemptionNotice,
    ) -> None:
        self._session_creator = session_creator
        self._hooks = hooks
        self._stop_grace_period_secs = stop_grace_period_secs
        self._notice = notice
        self.tf_sess: Any = None
        self.coord: Coordinator | None = None

    def create_session(self) -> CoordinatedSession:
        """Makes a new session; a preemption notice ends the wait at once, since nothing needs saving."""
        with self._notice.interruptible(at_once=True):
            return self._create_session()

    def _create_session(self) -> CoordinatedSession:
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
        hooked = HookedSession(self.tf_sess, self._hooks, self._notice)
        return CoordinatedSession(hooked, self.coord, self._stop_grace_period_secs)

    def tell_of_loss(self, error: errors.OpError) -> None:
        """Lets those hooks that have a method `session_lost` take what they can out of a session that is given up.

        When a listener reports that the whole model is still available, it is saved, because the missing tasks may
        stay away.
        """
        session = self.tf_sess
        if session is None:
            return
        told = [hook.session_lost(session, error) for hook in self._hooks if hasattr(hook, "session_lost")]
        if not any(told):
            return
        for hook in self._hooks:
            if hasattr(hook, "save_now"):
                try:
                    hook.save_now(session)
                except errors.OpError as failure:
                    logging.warning("The model could not be saved before it is restored: %s", cause(failure))

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


class WrappedSession:
    """A session around another one, which it closes; the base of the layers.

    A subclass overrides `_check_stop` to end the training loop.
    """

    def __init__(self, sess: Any) -> None:
        self._sess = sess

    @property
    def graph(self) -> Any:
        """The graph of the session."""
        return self._sess.graph

    @property
    def sess_str(self) -> Any:
        """The target of the session."""
        return self._sess.sess_str

    def should_stop(self) -> bool:
        """Whether the training loop is to end: it is over after a close."""
        if self._check_stop() or self._sess is None:
            return True
        return isinstance(self._sess, WrappedSession) and self._sess.should_stop()

    def _check_stop(self) -> bool:
        return False

    def close(self) -> None:
        """Closes the session, once; that a task is lost is no error then."""
        sess, self._sess = self._sess, None
        if sess is not None:
            try:
                sess.close()
            except LOST as error:
                logging.warning("The session was lost while it was being closed: %s", cause(error))

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._sess.run(*args, **kwargs)

    def run_step_fn(self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Any) -> Any:
        """Calls a step function; see `MonitoredSession.run_step_fn`."""
        context = StepContext(raw_session, run_with_hooks or self.run)
        arguments = inspect.signature(step_fn).parameters
        return step_fn(self, context) if "self" in arguments else step_fn(context)


class RecoverableSession(WrappedSession):
    """Recreates its session when a task was lost, within the bounds of a RecoveryPolicy."""

    def __init__(
        self, creator: Any, notice: PreemptionNotice | None = None, policy: RecoveryPolicy | None = None
    ) -> None:
        self._creator = creator
        self._notice = notice or PreemptionNotice()  # one that never arrives
        self._recovery = Recovery(policy)
        super().__init__(self._create())

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        return self._recovering(lambda: self._sess.run(fetches, feed_dict, options, run_metadata))

    def run_step_fn(self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Any) -> Any:
        return self._recovering(
            lambda: self._sess.run_step_fn(step_fn, getattr(self._creator, "tf_sess", raw_session), run_with_hooks)
        )

    def should_stop(self) -> bool:
        if self._sess is None:
            return True
        try:
            return self._sess.should_stop()
        except LOST as error:
            self._give_up_session(error)
            self._sess = self._create()
            return False
        except Exception as error:  # an error that a thread has reported; `close` raises it
            logging.info("The training stops because a thread has failed: %s", error)
            return True

    def _recovering(self, run: Callable[[], Any]) -> Any:
        while True:
            if self._sess is None:
                self._sess = self._create()
            try:
                result = run()
            except LOST as error:
                self._give_up_session(error)
                continue
            self._recovery.went_well()
            return result

    def _give_up_session(self, error: errors.OpError) -> None:
        """Closes what is left of a lost session; raises when too many were lost in a row."""
        with self._notice.interruptible(at_once=True):
            self._recovery.lost(error)
        lost, self._sess = self._sess, None
        if isinstance(self._creator, CoordinatedSessionCreator):
            self._creator.tell_of_loss(error)
            self._creator.abandon()
        else:  # a program's own: the session owns all there is
            with contextlib.suppress(Exception):  # the cause is known already
                lost.close()

    def _create(self) -> Any:
        with self._notice.interruptible(at_once=True):
            return self._recovery.until_made(self._creator.create_session)


class CoordinatedSession(WrappedSession):
    """Watches the coordinator: its stop ends the loop, its error is raised."""

    def __init__(self, sess: Any, coord: Coordinator, stop_grace_period_secs: float = 120) -> None:
        super().__init__(sess)
        self._coord = coord
        self._stop_grace_period_secs = stop_grace_period_secs

    def run(self, *args: Any, **kwargs: Any) -> Any:
        return self._guarded(lambda: self._sess.run(*args, **kwargs))

    def run_step_fn(self, step_fn: Callable[..., Any], raw_session: Any, run_with_hooks: Any) -> Any:
        run_of_hooks = run_with_hooks or self._sess.run
        return self._guarded(lambda: WrappedSession.run_step_fn(self, step_fn, raw_session, run_of_hooks))

    def _check_stop(self) -> bool:
        self._coord.raise_requested_exception()
        return self._coord.should_stop()

    def close(self) -> None:
        self._coord.request_stop()
        try:
            self._coord.join(stop_grace_period_secs=self._stop_grace_period_secs, ignore_live_threads=True)
        finally:
            with contextlib.suppress(errors.OpError, RuntimeError):
                super().close()

    def _guarded(self, run: Callable[[], Any]) -> Any:
        try:
            return run()
        except LOST:
            raise
        except Exception:
            # A run often fails only because a thread lost a task before it: that one is the root cause. Any other
            # error of a thread is raised by `should_stop` and `close`.
            try:
                self._coord.raise_requested_exception()
            except LOST:
                raise
            except Exception as error:
                logging.info("A thread of the session failed as well: %s", error)
            raise


class HookedSession(WrappedSession):
    """Calls the hooks around each run of a plain session."""

    def __init__(self, sess: Any, hooks: list[SessionRunHook], notice: PreemptionNotice | None = None) -> None:
        super().__init__(sess)
        self._hooks = hooks
        self._notice = notice or PreemptionNotice()  # one that never arrives
        self._should_stop = False

    def _check_stop(self) -> bool:
        return self._should_stop or self._notice.arrived

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None, run_metadata: Any = None) -> Any:
        if self._notice.arrived:
            raise Preempted  # from a loop that does not check `should_stop`
        if self._should_stop:
            raise RuntimeError("Run called even after should_stop requested.")
        context = SessionRunContext(SessionRunArgs(fetches, feed_dict), self._sess)
        actual_fetches: dict[Any, Any] = {"caller": fetches}
        feeds: dict[Any, Any] = {}
        asked: dict[SessionRunHook, SessionRunArgs] = {}
        for hook in self._hooks:
            with this_thread.helping():
                request = hook.before_run(context)
            if request is None:
                continue
            asked[hook] = request
            if request.fetches is not None:
                actual_fetches[hook] = request.fetches
            self._merge_feeds(feeds, feed_dict, request.feed_dict, hook)
            if request.options is not None:
                options = _merged_options(options or _messages().RunOptions(), request.options)
        # Hooks always find both messages. A run without options must keep none: it is faster.
        with_options = options is not None or run_metadata is not None
        options = options or _messages().RunOptions()
        run_metadata = run_metadata or _messages().RunMetadata()
        # A dict keyed by hooks cannot be fetched; a list in the same order can.
        with self._notice.interruptible():
            values = self._sess.run(
                list(actual_fetches.values()),
                feed_dict={**(feed_dict or {}), **feeds} if feeds else feed_dict,
                options=options if with_options else None,
                run_metadata=run_metadata if with_options else None,
            )
        outputs = dict(zip(actual_fetches, values, strict=True))
        with this_thread.helping():
            for hook in self._hooks:
                hook.after_run(context, SessionRunValues(outputs.get(hook), options, run_metadata))
        self._should_stop = self._should_stop or context.stop_requested
        return outputs["caller"]

    @staticmethod
    def _merge_feeds(
        feeds: dict[Any, Any], feed_dict: Any, more: dict[Any, Any] | None, hook: SessionRunHook
    ) -> None:
        for key, value in (more or {}).items():
            if key in feeds or key in (feed_dict or ()):
                raise RuntimeError(f"Same tensor is fed by two sources: {key}, the second of them {hook}.")
            feeds[key] = value


def _merged_options(ours: Any, more: Any) -> Any:
    """Merges two RunOptions: the higher level and limits, and the debug watches of both."""
    merged = type(ours)()
    merged.CopyFrom(ours)
    merged.trace_level = max(ours.trace_level, more.trace_level)
    merged.timeout_in_ms = max(ours.timeout_in_ms, more.timeout_in_ms)
    merged.inter_op_thread_pool = max(ours.inter_op_thread_pool, more.inter_op_thread_pool)
    merged.output_partition_graphs = ours.output_partition_graphs or more.output_partition_graphs
    merged.report_tensor_allocations_upon_oom |= more.report_tensor_allocations_upon_oom
    if more.HasField("debug_options"):
        merged.debug_options.debug_tensor_watch_opts.extend(more.debug_options.debug_tensor_watch_opts)
        merged.debug_options.reset_disk_byte_usage |= more.debug_options.reset_disk_byte_usage
        merged.debug_options.global_step = max(ours.debug_options.global_step, more.debug_options.global_step)
    return merged


def _messages() -> Any:
    from dtf.wire.pb import config_pb2

    return config_pb2
