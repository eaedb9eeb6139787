"""FileWriter: writes summaries, graphs and other events for TensorBoard, from a thread of its own.

Owns the queue between a training loop and its event file, and the cache of one writer per folder. Framing and file
names are `dtf.wire.events`'; the summaries themselves are made by summary ops.

    with tf.summary.FileWriter("logs", session.graph) as writer:
        writer.add_summary(session.run(merged), global_step=step)

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/FileWriter
"""

from __future__ import annotations

import functools
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from dtf import logging
from dtf.build.graph import Graph
from dtf.wire import errors, forks
from dtf.wire.events import EventsWriter, read_events
from dtf.wire.pb import event_pb2, graph_pb2, summary_pb2

Clock = Callable[[], float]


class FileWriter:
    """Writes events to one file in a folder. Thread-safe.

    Args:
      logdir: the folder, made if need be.
      graph: a Graph to add at once, with its meta graph.
      max_queue: how many events wait for the disk before `add_...` blocks.
      flush_secs: the longest time in seconds before events are flushed to the file.
      graph_def: deprecated form of `graph`.
      filename_suffix: added to the file name.
      session: accepted for TensorFlow's sake; must be None.
      clock: seconds since the epoch, for the events' times; passed in for tests.

    Raises:
      ValueError: a session is given.
      PermissionDeniedError, NotFoundError: the folder or file cannot be made.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/summary/FileWriter
    """

    def __init__(
        self,
        logdir: str,
        graph: Graph | None = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: None = None,
        clock: Clock = time.time,
    ) -> None:
        if session is not None:
            raise ValueError("FileWriter writes files itself, not through ops of a session")
        logdir = os.fsdecode(logdir)
        self._logdir = logdir
        self._clock = clock
        self._tags_with_metadata: set[str] = set()
        self._run_tags: set[str] = set()
        self._arguments = (max_queue, flush_secs, filename_suffix or "")
        self._lock = threading.Lock()
        forks.renew_in_child(self, "_lock")
        self._sink: _Sink | None = _Sink(logdir, *self._arguments, clock)
        self._warned = False
        if graph is not None or graph_def is not None:
            from dtf.train.meta_graph import create_meta_graph_def

            self.add_graph(graph, graph_def=graph_def)
            whole = graph.as_graph_def(add_shapes=True) if isinstance(graph, Graph) else graph_def
            self.add_meta_graph(create_meta_graph_def(graph_def=whole))

    def get_logdir(self) -> str:
        """The folder."""
        return self._logdir

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a Summary message, or the bytes of one as summary ops give them."""
        message = summary_pb2.Summary()
        if isinstance(summary, bytes):
            message.ParseFromString(summary)
        else:
            message.CopyFrom(summary)
        # Only the first value of a tag carries its description.
        for value in message.value:
            if value.HasField("metadata"):
                if value.tag in self._tags_with_metadata:
                    value.ClearField("metadata")
                else:
                    self._tags_with_metadata.add(value.tag)
        self._add(event_pb2.Event(summary=message), global_step)

    def add_session_log(self, session_log: Any, global_step: Any = None) -> None:
        """Adds a SessionLog message: that a session started, stopped, or saved a checkpoint."""
        self._add(event_pb2.Event(session_log=session_log), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a Graph, or a GraphDef.

        Raises:
          ValueError: both or neither are given.
          TypeError: `graph` is neither.
        """
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        if isinstance(graph, Graph):
            graph_def = graph.as_graph_def(add_shapes=True)
        elif isinstance(graph, graph_pb2.GraphDef):
            graph_def = graph
        elif graph is not None:
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
        elif graph_def is None:
            raise ValueError("Please pass a graph.")
        self._add(event_pb2.Event(graph_def=graph_def.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: Any, global_step: Any = None) -> None:
        """Adds a MetaGraphDef.

        Raises:
          TypeError: it is none.
        """
        from dtf.wire.pb import meta_graph_pb2

        if not isinstance(meta_graph_def, meta_graph_pb2.MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(event_pb2.Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: Any, tag: str, global_step: Any = None) -> None:
        """Adds the RunMetadata of one run.

        Raises:
          ValueError: the tag was used before.
        """
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        event = event_pb2.Event()
        event.tagged_run_metadata.tag = tag
        event.tagged_run_metadata.run_metadata = run_metadata.SerializeToString()
        self._add(event, global_step)

    def add_event(self, event: Any) -> None:
        """Adds an Event message unchanged. Does nothing, with a warning, after `close`."""
        with self._lock:
            sink = self._sink
            warn, self._warned = sink is None and not self._warned, self._warned or sink is None
        if sink is not None:
            sink.put(event)
        elif warn:
            logging.warning("Attempting to use a closed FileWriter; added values are lost until it is reopened.")

    def flush(self) -> None:
        """Returns when all that was added is with the operating system."""
        with self._lock:
            sink = self._sink
        if sink is not None:
            sink.flush()

    def close(self) -> None:
        """Writes all that was added, closes the file and ends the thread."""
        with self._lock:
            sink, self._sink = self._sink, None
        if sink is not None:
            sink.close()

    def reopen(self) -> None:
        """After a `close`, continues in a new file."""
        with self._lock:
            if self._sink is None:
                self._sink = _Sink(self._logdir, *self._arguments, self._clock)
                self._warned = False

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _add(self, event: Any, global_step: Any) -> None:
        event.wall_time = self._clock()
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)


class FileWriterCache:
    """Caches one FileWriter per folder, for hooks that write to the same one."""

    _lock = threading.Lock()
    _writers: dict[str, FileWriter] = {}

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The writer of a folder; made at the first call."""
        with FileWriterCache._lock:
            if logdir not in FileWriterCache._writers:
                # Flush often: readers (TensorBoard, dtfctl) must see the current state of the run.
                FileWriterCache._writers[logdir] = FileWriter(logdir, flush_secs=1)
            return FileWriterCache._writers[logdir]

    @staticmethod
    def clear() -> None:
        """Closes and forgets all writers."""
        with FileWriterCache._lock:
            writers, FileWriterCache._writers = FileWriterCache._writers, {}
        for writer in writers.values():
            writer.close()


def summary_iterator(path: str) -> Iterator[Any]:
    """Yields the Event messages of an event file.

    Args:
      path: the path of an event file.

    Returns:
      An iterator over Event messages.

    Raises:
      NotFoundError, DataLossError: the file does not exist, is damaged, or is cut short.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/summary_iterator
    """
    return read_events(path, allow_cut_end=False)


class _Sink:
    """One event file, the thread that writes it, and the bounded queue in between."""

    def __init__(self, folder: str, max_queue: int, flush_secs: float, suffix: str, clock: Clock) -> None:
        self._writer = EventsWriter(folder, suffix, clock)
        self._queue: queue.Queue[Any] = queue.Queue(max(1, max_queue))
        self._flush_secs = flush_secs
        self._failed = False
        self._generation = forks.generation()
        self._thread = threading.Thread(target=self._write, name="event-file-writer", daemon=True)
        self._thread.start()

    def put(self, event: Any) -> None:
        if self._generation != forks.generation():
            raise errors.FailedPreconditionError(
                None,
                None,
                f"The event file {self._writer.path} was opened before this process was forked and belongs to the "
                "parent; make a new FileWriter after the fork.",
            )
        self._queue.put(event)

    def flush(self) -> None:
        if self._generation != forks.generation():
            return
        done = threading.Event()
        self._queue.put(done)
        done.wait()

    def close(self) -> None:
        if self._generation != forks.generation():
            return
        self._queue.put(None)
        self._thread.join()

    def _write(self) -> None:
        due = None  # when what was written has to be flushed
        while True:
            try:
                item = self._queue.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                self._attempt(self._writer.flush)
                due = None
                continue
            if item is None:
                self._attempt(self._writer.close)
                return
            if isinstance(item, threading.Event):
                self._attempt(self._writer.flush)
                due = None
                item.set()
                continue
            self._attempt(functools.partial(self._writer.write, item))
            if due is None:
                due = time.monotonic() + self._flush_secs

    def _attempt(self, action: Callable[[], None]) -> None:
        """Logs a write error once: a full disk must not stop the training."""
        try:
            action()
        except (OSError, errors.OpError) as error:
            if not self._failed:
                logging.error("Events are lost: %s cannot be written: %s", self._writer.path, error)
            self._failed = True


def _begin_anew() -> None:
    """In a forked process: the writers, and their threads, are the parent's."""
    FileWriterCache._lock = threading.Lock()
    FileWriterCache._writers = {}


forks.in_child(_begin_anew)
