"""Supervisor, the session manager of older trainers: prepares a session, and runs services in other threads.

    supervisor = tf.train.Supervisor(is_chief=(task == 0), logdir="checkpoints", saver=saver, global_step=step)
    with supervisor.managed_session(server.target) as session:
        while not supervisor.should_stop():
            session.run(train_op)

Owns the defaults, the choice between the chief's way to a session and the other workers', and the order at the end.
Restoring and waiting are `session_manager`'s, the services' own work is in `supervisor_services`. New trainers use
MonitoredTrainingSession, which also recovers automatically.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/Supervisor
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import GraphKeys
from dtf.build.ops.lookup import tables_initializer
from dtf.build.ops.ordering import group
from dtf.build.ops.summary_ops import merge_all
from dtf.build.variable_collections import (
    global_variables,
    global_variables_initializer,
    local_variables_initializer,
    report_uninitialized_variables,
)
from dtf.train import supervisor_services as services
from dtf.train.coordinator import Coordinator, LooperThread
from dtf.train.graph_io import write_graph
from dtf.train.meta_graph import create_meta_graph_def
from dtf.train.preemption import PreemptionNotice
from dtf.train.saver import Saver
from dtf.train.session_manager import SessionManager
from dtf.train.summary_writer import FileWriter
from dtf.train.training_util import find_global_step
from dtf.train.training_util import global_step as value_of_global_step
from dtf.wire.pb import event_pb2

_VARIABLE_OPS = ("Variable", "VariableV2")
_RECOVERY_WAIT_S = 0.05


class Supervisor:
    """Takes care of a training program: initialises or restores, saves, summarises, and ends all threads together.

    Where an argument is `USE_DEFAULT`, the op of the graph's collection is taken, or made; None means none at all. The
    graph is final from then on.

    Args:
      graph: the default graph if None.
      ready_op: a tensor of the names of uninitialised variables; empty when the model is ready.
      ready_for_local_init_op: the same for the variables that `local_init_op` needs; by default only the op in the
          graph's collection.
      is_chief: whether this one initialises the model, saves it, and writes summaries.
      init_op: initialises the model; all global variables by default.
      init_feed_dict: fed to it.
      local_init_op: run in every new session; local variables and tables by default.
      logdir: folder of checkpoints and event files; None: nothing is written, nor restored.
      summary_op: all summaries merged by default.
      saver: a Saver of all variables by default.
      global_step: a variable with one number; by default the graph's, if its values are integers.
      save_summaries_secs, save_model_secs: seconds between two summaries and two checkpoints; 0 for none.
      recovery_wait_secs: seconds between two looks at whether the model is ready; a look is cheap here, so the default
        is shorter than TensorFlow's 30.
      stop_grace_secs: seconds that threads have to end.
      checkpoint_basename: the checkpoints' name before "-<step>".
      session_manager: makes the sessions, instead of a SessionManager of the ops above.
      summary_writer: a FileWriter in `logdir` by default.
      init_fn: called as init_fn(session) after `init_op`.
      local_init_run_options: RunOptions for `local_init_op`.

    Raises:
      ValueError: a variable of a worker that is not the chief has no device.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Supervisor
    """

    USE_DEFAULT = 0

    def __init__(
        self,
        graph: Any = None,
        ready_op: Any = USE_DEFAULT,
        ready_for_local_init_op: Any = USE_DEFAULT,
        is_chief: bool = True,
        init_op: Any = USE_DEFAULT,
        init_feed_dict: dict[Any, Any] | None = None,
        local_init_op: Any = USE_DEFAULT,
        logdir: str | None = None,
        summary_op: Any = USE_DEFAULT,
        saver: Any = USE_DEFAULT,
        global_step: Any = USE_DEFAULT,
        save_summaries_secs: float = 120,
        save_model_secs: float = 600,
        recovery_wait_secs: float = _RECOVERY_WAIT_S,
        stop_grace_secs: float = 120,
        checkpoint_basename: str = "model.ckpt",
        session_manager: Any = None,
        summary_writer: Any = USE_DEFAULT,
        init_fn: Callable[[Any], Any] | None = None,
        local_init_run_options: Any = None,
    ) -> None:
        self._graph = graph if graph is not None else get_default_graph()
        self._is_chief = is_chief
        self._init_feed_dict = init_feed_dict
        self._init_fn = init_fn
        self._logdir = logdir or ""
        self._save_summaries_secs = save_summaries_secs
        self._save_model_secs = save_model_secs
        self._stop_grace_secs = stop_grace_secs
        self._coord = Coordinator()
        self._notice = PreemptionNotice(self.request_stop)
        with self._graph.as_default():
            self._ready_op = self._given(ready_op, GraphKeys.READY_OP, report_uninitialized_variables)
            self._ready_for_local_init_op = self._given(ready_for_local_init_op, GraphKeys.READY_FOR_LOCAL_INIT_OP)
            self._init_op = self._given(init_op, GraphKeys.INIT_OP, global_variables_initializer)
            self._local_init_op = self._given(local_init_op, GraphKeys.LOCAL_INIT_OP, _default_local_init_op)
            self._saver = self._given(saver, GraphKeys.SAVERS, lambda: Saver() if global_variables() else None)
            # Only the chief writes summaries and events.
            self._summary_op: Any = None
            self._global_step: Any = None
            if is_chief:
                self._summary_op = self._given(summary_op, GraphKeys.SUMMARY_OP, merge_all)
            self._global_step = _default_global_step() if global_step is self.USE_DEFAULT else global_step
        self._save_path = os.path.join(self._logdir, checkpoint_basename) if is_chief and logdir else None
        self._summary_writer: Any = None
        if is_chief:
            if summary_writer is not self.USE_DEFAULT:
                self._summary_writer = summary_writer
            elif self._logdir:
                self._summary_writer = FileWriter(self._logdir, flush_secs=1)
        self._session_manager = session_manager or SessionManager(
            local_init_op=self._local_init_op,
            ready_op=self._ready_op,
            ready_for_local_init_op=self._ready_for_local_init_op,
            graph=self._graph,
            recovery_wait_secs=recovery_wait_secs,
            local_init_run_options=local_init_run_options,
        )
        self._check_devices()
        self._graph.finalize()

    # -- the life of a session

    @contextlib.contextmanager
    def managed_session(
        self,
        master: str = "",
        config: Any = None,
        start_standard_services: bool = True,
        close_summary_writer: bool = True,
    ) -> Iterator[Any]:
        """Yields a session whose model is ready, and ends all threads and closes it after the block.

        In the main thread, SIGTERM requests a stop unless the program has a handler of its own. The chief then
        saves a last checkpoint, and the process ends with status 143 (see `preemption`).

        Raises:
          The error of the block or of one of the threads; the end of the input (OutOfRangeError) is none.
        """
        session: Any = None
        self._notice.watch()
        try:
            try:
                with self._notice.interruptible(at_once=True):
                    session = self.prepare_or_wait_for_session(
                        master, config, start_standard_services=start_standard_services
                    )
                yield session
            except Exception as error:
                self.request_stop(error)
            finally:
                try:
                    if self._notice.arrived and session is not None:
                        self._save_last_checkpoint(session)
                    # Threads that run in the session end at its close at the latest; the caller has released
                    # it.
                    self.stop(close_summary_writer=close_summary_writer, ignore_live_threads=True)
                finally:
                    if session is not None:
                        _close_quietly(session)
        finally:
            self._notice.release()
        self._notice.leave()

    def prepare_or_wait_for_session(
        self,
        master: str = "",
        config: Any = None,
        wait_for_checkpoint: bool = False,
        max_wait_secs: float = 7200,
        start_standard_services: bool = True,
    ) -> Any:
        """Returns a session whose model is ready; the caller closes it.

        The chief restores the latest checkpoint of `logdir`, or initialises, and starts the services; others wait
        until it has done so. Queue runners are started with the services.

        Args:
          wait_for_checkpoint: the chief waits until there is a checkpoint, instead of initialising.
          max_wait_secs: how long to wait.

        Raises:
          RuntimeError: the model cannot be made ready.
          DeadlineExceededError: it was not ready in time.
        """
        self._coord.clear_stop()
        if self._summary_writer is not None:
            self._summary_writer.reopen()
        if not self._is_chief:
            session = self._session_manager.wait_for_session(master, config=config, max_wait_secs=max_wait_secs)
        else:
            session = self._session_manager.prepare_session(
                master,
                init_op=self._init_op,
                saver=self._saver,
                checkpoint_dir=self._logdir or None,
                wait_for_checkpoint=wait_for_checkpoint,
                max_wait_secs=max_wait_secs,
                config=config,
                init_feed_dict=self._init_feed_dict,
                init_fn=self._init_fn,
            )
            self._write_graph()
            if start_standard_services:
                logging.info("Starting standard services.")
                self.start_standard_services(session)
        if start_standard_services:
            logging.info("Starting queue runners.")
            self.start_queue_runners(session)
        return session

    def start_standard_services(self, sess: Any) -> list[LooperThread] | None:
        """Starts the threads that save summaries, the step rate and checkpoints; None without a `logdir`.

        Raises:
          RuntimeError: this is not the chief.
        """
        if not self._is_chief:
            raise RuntimeError(
                "Only chief supervisor can start standard services. Because only chief supervisors can write events."
            )
        if not self._logdir:
            logging.warning("Standard services need a 'logdir' passed to the Supervisor.")
            return None
        if self._global_step is not None and self._summary_writer is not None:
            log = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._summary_writer.add_session_log(log, value_of_global_step(sess, self._global_step))
        threads = []
        if self._save_summaries_secs and self._summary_writer is not None:
            if self._summary_op is not None:
                threads.append(self.loop(self._save_summaries_secs, services.save_summary, (self, sess)))
            if self._global_step is not None:
                step_rate = services.StepRate(self, sess)
                threads.append(self.loop(self._save_summaries_secs, step_rate.record))
        if self._saver is not None and self._save_model_secs:
            threads.append(self.loop(self._save_model_secs, services.save_checkpoint, (self, sess)))
        return threads

    def start_queue_runners(self, sess: Any, queue_runners: Iterable[Any] | None = None) -> list[threading.Thread]:
        """Starts the threads of QueueRunners; by default of those in the graph's collection. They end with
        `stop`."""
        runners = self._graph.get_collection(GraphKeys.QUEUE_RUNNERS) if queue_runners is None else queue_runners
        threads: list[threading.Thread] = []
        for runner in runners:
            threads += runner.create_threads(sess, coord=self._coord, daemon=True, start=True)
        return threads

    def loop(
        self,
        timer_interval_secs: float | None,
        target: Callable[..., Any],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> LooperThread:
        """Starts a thread that calls `target` every so many seconds (None: without a pause) until the stop."""
        return LooperThread.loop(self._coord, timer_interval_secs, target, args or (), kwargs)

    def summary_computed(self, sess: Any, summary: Any, global_step: Any = None) -> None:
        """Writes a summary that the trainer has computed itself, at the global step if none is given.

        Raises:
          RuntimeError: there is no summary writer: no `logdir`, or this is not the chief.
        """
        if self._summary_writer is None:
            raise RuntimeError("Writing a summary requires a summary writer.")
        if global_step is None and self._global_step is not None:
            global_step = value_of_global_step(sess, self._global_step)
        self._summary_writer.add_summary(summary, global_step)

    # -- the end

    def should_stop(self) -> bool:
        """Whether the training loop and all threads are to end."""
        return self._coord.should_stop()

    def request_stop(self, ex: Any = None) -> None:
        """Asks all threads to end; see `Coordinator.request_stop`."""
        self._coord.request_stop(ex)

    def wait_for_stop(self) -> None:
        """Blocks until a stop is requested."""
        self._coord.wait_for_stop()

    def stop_on_exception(self) -> Any:
        """A context that turns an exception of its block into `request_stop`."""
        return self._coord.stop_on_exception()

    def stop(
        self,
        threads: Iterable[threading.Thread] | None = None,
        close_summary_writer: bool = True,
        ignore_live_threads: bool = False,
    ) -> None:
        """Requests a stop, waits for the threads, and closes the event file. Does not close the session.

        Raises:
          RuntimeError: threads are still alive after the grace period.
          The first exception that was given to `request_stop`.
        """
        self._coord.request_stop()
        try:
            self._coord.join(
                threads, stop_grace_period_secs=self._stop_grace_secs, ignore_live_threads=ignore_live_threads
            )
        finally:
            if close_summary_writer and self._summary_writer is not None:
                self._summary_writer.add_session_log(event_pb2.SessionLog(status=event_pb2.SessionLog.STOP))
                self._summary_writer.close()

    # -- constructor arguments

    @property
    def coord(self) -> Coordinator:
        """The Coordinator of all threads."""
        return self._coord

    @property
    def session_manager(self) -> Any:
        return self._session_manager

    @property
    def is_chief(self) -> bool:
        return self._is_chief

    @property
    def init_op(self) -> Any:
        return self._init_op

    @property
    def init_feed_dict(self) -> dict[Any, Any] | None:
        return self._init_feed_dict

    @property
    def ready_op(self) -> Any:
        return self._ready_op

    @property
    def ready_for_local_init_op(self) -> Any:
        return self._ready_for_local_init_op

    @property
    def saver(self) -> Any:
        return self._saver

    @property
    def save_path(self) -> str | None:
        """The prefix of checkpoint names before "-<step>"; None if no checkpoints are saved."""
        return self._save_path

    @property
    def save_model_secs(self) -> float:
        return self._save_model_secs

    @property
    def save_summaries_secs(self) -> float:
        return self._save_summaries_secs

    @property
    def summary_op(self) -> Any:
        """None where this is not the chief."""
        return self._summary_op

    @property
    def summary_writer(self) -> Any:
        """None without a `logdir`, and where this is not the chief."""
        return self._summary_writer

    @property
    def global_step(self) -> Any:
        return self._global_step

    # Names of the first releases.
    PrepareSession = prepare_or_wait_for_session
    StartStandardServices = start_standard_services
    StartQueueRunners = start_queue_runners
    Loop = loop
    SummaryComputed = summary_computed
    ShouldStop = should_stop
    RequestStop = request_stop
    WaitForStop = wait_for_stop
    StopOnException = stop_on_exception
    Stop = stop

    def _given(self, value: Any, collection: str, make: Callable[[], Any] = lambda: None) -> Any:
        """The given value; for USE_DEFAULT the first item of a collection, made and added if missing."""
        if value is not self.USE_DEFAULT:
            return value
        found = self._graph.get_collection(collection)
        if found:
            return found[0]
        made = make()
        if made is not None:
            self._graph.add_to_collection(collection, made)
        return made

    def _check_devices(self) -> None:
        """Replicas share variables by their devices, so each has to have one."""
        if self._is_chief:
            return
        for op in self._graph.get_operations():
            if op.type in _VARIABLE_OPS and not op.device:
                raise ValueError(f"When using replicas, all Variables must have their device set: {op.name}")

    def _write_graph(self) -> None:
        if self._logdir:
            write_graph(self._graph.as_graph_def(add_shapes=True), self._logdir, "graph.pbtxt")
        if self._summary_writer is not None:
            saver_def = self._saver.saver_def if self._saver is not None else None
            self._summary_writer.add_graph(self._graph)
            self._summary_writer.add_meta_graph(create_meta_graph_def(graph=self._graph, saver_def=saver_def))

    def _save_last_checkpoint(self, session: Any) -> None:
        if self._saver is not None and self._save_path is not None:
            self._saver.save(session, self._save_path, global_step=self._global_step)


def _default_local_init_op() -> Any:
    return group(local_variables_initializer(), tables_initializer())


def _close_quietly(session: Any) -> None:
    try:
        session.close()
    except Exception as error:  # the training is over, and its own error takes precedence
        logging.warning("Closing the session failed: %s", error)


def _default_global_step() -> Any:
    """The graph's global step. One of another type than an integer is found only in the GLOBAL_STEP collection."""
    step = find_global_step()
    if step is None or step.dtype.base_dtype.is_integer or get_default_graph().get_collection(GraphKeys.GLOBAL_STEP):
        return step
    logging.warning("The Supervisor does not use %s as its global step: it is of type %s.", step.name, step.dtype.name)
    return None
