"""QueueRunner: threads that keep a queue filled.

Owns the threads and how they end; the queue's ops are given. A run that finds the queue closed, the input exhausted
or the coordinator stopped ends its thread; the last one to end closes the queue.

Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/QueueRunner
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from typing import Any

from dtf import logging
from dtf.build.default_graph import get_default_graph, get_default_session
from dtf.build.graph import GraphKeys
from dtf.train.coordinator import Coordinator
from dtf.wire import errors, forks
from dtf.wire.measures import this_thread


class QueueRunner:
    """The threads of one queue.

    Args:
      queue: the queue.
      enqueue_ops: one thread runs each of them again and again.
      close_op: closes the queue; `queue.close()` by default.
      cancel_op: closes it and cancels pending enqueues; `queue.close(cancel_pending_enqueues=True)` by default.
      queue_closed_exception_types: errors that mean that the queue was closed.
      queue_runner_def: a QueueRunnerDef to make it from, instead of all other arguments.
      import_scope: name scope added to the names of a `queue_runner_def`.

    Raises:
      ValueError: both kinds of arguments, or neither, are given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/QueueRunner
    """

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Sequence[Any] | None = None,
        close_op: Any = None,
        cancel_op: Any = None,
        queue_closed_exception_types: Sequence[type[BaseException]] | None = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        if queue_runner_def is not None:
            if queue is not None or enqueue_ops:
                raise ValueError("queue_runner_def and queue are mutually exclusive.")
            self._init_from_proto(queue_runner_def, import_scope)
        else:
            if queue is None or not enqueue_ops:
                raise ValueError("Must provide queue and enqueue_ops.")
            self._queue = queue
            self._enqueue_ops = list(enqueue_ops)
            self._close_op = close_op if close_op is not None else queue.close()
            self._cancel_op = cancel_op if cancel_op is not None else queue.close(cancel_pending_enqueues=True)
            self._closed_types = tuple(queue_closed_exception_types or (errors.OutOfRangeError,))
            if not all(isinstance(each, type) and issubclass(each, errors.OpError) for each in self._closed_types):
                raise TypeError(f"queue_closed_exception_types must be subclasses of tf.errors.OpError: "
                                f"{queue_closed_exception_types}")  # fmt: skip
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._runs_per_session: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()
        self._exceptions_raised: list[BaseException] = []

    @property
    def queue(self) -> Any:
        return self._queue

    @property
    def enqueue_ops(self) -> list[Any]:
        return self._enqueue_ops

    @property
    def close_op(self) -> Any:
        return self._close_op

    @property
    def cancel_op(self) -> Any:
        return self._cancel_op

    @property
    def queue_closed_exception_types(self) -> tuple[type[BaseException], ...]:
        return self._closed_types

    @property
    def name(self) -> str:
        """The name of the queue."""
        return self._queue.name

    @property
    def exceptions_raised(self) -> list[BaseException]:
        """Errors of threads that had no coordinator to report to."""
        return self._exceptions_raised

    def create_threads(
        self, sess: Any, coord: Coordinator | None = None, daemon: bool = False, start: bool = False
    ) -> list[threading.Thread]:
        """Makes the threads for a session, and with a coordinator one more that closes the queue at its stop.

        Returns an empty list when the session has its threads already.
        """
        with self._lock:
            if self._runs_per_session.get(sess, 0) > 0:
                return []
            self._runs_per_session[sess] = len(self._enqueue_ops)
            self._exceptions_raised = []
        threads = [
            threading.Thread(
                target=self._run, args=(sess, op, coord), name=f"QueueRunnerThread-{self.name}-{op.name}", daemon=daemon
            )
            for op in self._enqueue_ops
        ]
        if coord is not None:
            name = f"QueueRunnerThread-{self.name}-close_on_stop"
            threads.append(
                threading.Thread(target=self._close_on_stop, args=(sess, coord), name=name, daemon=daemon)
            )
        for thread in threads:
            if coord is not None:
                coord.register_thread(thread)
            if start:
                thread.start()
        return threads

    def to_proto(self, export_scope: str | None = None) -> Any:
        """The QueueRunnerDef, or None when the queue is outside `export_scope`."""
        from dtf.wire.pb import queue_runner_pb2

        if export_scope is not None and not self._queue.name.startswith(export_scope):
            return None

        def strip(name: str) -> str:
            return name[len(export_scope) + 1 :] if export_scope else name

        return queue_runner_pb2.QueueRunnerDef(
            queue_name=strip(self._queue.name),
            enqueue_op_name=[strip(op.name) for op in self._enqueue_ops],
            close_op_name=strip(self._close_op.name),
            cancel_op_name=strip(self._cancel_op.name),
            queue_closed_exception_types=[_code(kind) for kind in self._closed_types],
        )

    @staticmethod
    def from_proto(queue_runner_def: Any, import_scope: str | None = None) -> QueueRunner:
        """Makes a QueueRunner from a QueueRunnerDef of the default graph."""
        return QueueRunner(queue_runner_def=queue_runner_def, import_scope=import_scope)

    def _init_from_proto(self, proto: Any, import_scope: str | None) -> None:
        graph = get_default_graph()
        prefix = f"{import_scope}/" if import_scope else ""

        def find(name: str) -> Any:
            return graph.as_graph_element(prefix + name)

        self._queue = find(proto.queue_name)
        self._enqueue_ops = [find(name) for name in proto.enqueue_op_name]
        self._close_op = find(proto.close_op_name)
        self._cancel_op = find(proto.cancel_op_name)
        codes = list(proto.queue_closed_exception_types) or [errors.OUT_OF_RANGE]
        self._closed_types = tuple(type(errors.error_from_code(code, "")) for code in codes)

    def _run(self, sess: Any, enqueue_op: Any, coord: Coordinator | None) -> None:
        counted = True
        this_thread.is_helper = True
        try:
            enqueue = sess.make_callable(enqueue_op)
            while coord is None or not coord.should_stop():
                try:
                    enqueue()
                except self._closed_types:
                    with self._lock:
                        self._runs_per_session[sess] -= 1
                        counted = False
                        last = self._runs_per_session[sess] == 0
                    if last:
                        self._close(sess)
                    return
        except Exception as error:
            if coord is not None:
                coord.request_stop(error)
            else:
                logging.error("Exception in QueueRunner: %s", error)
                with self._lock:
                    self._exceptions_raised.append(error)
        finally:
            if counted:
                with self._lock:
                    self._runs_per_session[sess] -= 1

    def _close(self, sess: Any) -> None:
        try:
            sess.run(self._close_op)
        except Exception as error:  # the session may already be closed; then nothing waits for this
        # queue
            logging.vlog(1, "Ignored exception: %s", error)

    def _close_on_stop(self, sess: Any, coord: Coordinator) -> None:
        this_thread.is_helper = True
        coord.wait_for_stop()
        try:
            sess.run(self._cancel_op)
        except Exception as error:
            logging.vlog(1, "Ignored exception: %s", error)


def _code(kind: Any) -> Any:
    """The error code of an exception class."""
    return kind.of("").error_code


def add_queue_runner(qr: QueueRunner, collection: str = GraphKeys.QUEUE_RUNNERS) -> None:
    """Adds a QueueRunner to a collection, for `start_queue_runners`."""
    get_default_graph().add_to_collection(collection, qr)


def start_queue_runners(
    sess: Any = None,
    coord: Coordinator | None = None,
    daemon: bool = True,
    start: bool = True,
    collection: str = GraphKeys.QUEUE_RUNNERS,
) -> list[threading.Thread]:
    """Starts the threads of all QueueRunners of a collection.

    Args:
      sess: the default session if None.

    Returns:
      All threads; none for a MonitoredSession, which has started them itself.

    Raises:
      ValueError: there is no session.
      TypeError: `sess` is not a session.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/start_queue_runners
    """
    sess = sess or get_default_session()
    if sess is None:
        raise ValueError("Cannot start queue runners: No default session is registered. Pass one as `sess`.")
    if type(sess).__name__ in ("MonitoredSession", "SingularMonitoredSession"):  # by name: they import this module
        return []
    if not (hasattr(sess, "graph") and hasattr(sess, "run")):
        raise TypeError(f"sess must be a `tf.Session` object, but is {sess!r}, a {type(sess).__name__}.")
    threads: list[threading.Thread] = []
    for runner in sess.graph.get_collection(collection):
        threads.extend(runner.create_threads(sess, coord=coord, daemon=daemon, start=start))
    return threads
