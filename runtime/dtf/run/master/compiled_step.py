"""CompiledStep: one signature of a session (feeds, fetches, targets), registered at the tasks that take part.

Owns how one step runs: values go to the partitions, all partitions start at once under a fresh step id, the results
come together, the first root cause stops the rest, and every partition is told to forget the step. Does not know how
the partitions came to be (`master_session`), nor what a task does with one (`worker`).

Every wait here ends: the partitions answer, the caller's deadline comes, the step is cancelled, or a task no longer
answers its heartbeat.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, cast

import numpy as np

from dtf.run.exchange.push import dead_fetch
from dtf.run.executor.instructions import CALLS_USERS
from dtf.run.executor.step import as_derived
from dtf.run.interfaces import Cancel, Done, GraphResult, PreparedResult, Pushed, ServingWorker, StepResult, Value
from dtf.run.kernels import DEAD
from dtf.run.master.prepare import Preparation
from dtf.run.master.registered_partition import RegisteredPartition
from dtf.run.master.step_monitor import Watch, watchman
from dtf.run.threads import growing_pool, reader_thread
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import dtypes, errors
from dtf.wire.pb import config_pb2, graph_pb2, worker_pb2

_STEP_ID_BITS = 57
_LONG_START_S = 0.005


class StepOwner(Protocol):
    """What a running step needs of its session: a place where a cancel finds it."""

    def add_step(self, step: MasterStep) -> None:
        """Called before the step starts. Raises OpError when the session takes no more steps."""

    def remove_step(self, step: MasterStep) -> None:
        """Called when the step has ended."""


class CompiledStep:
    """Runs one signature, any number of times and from any number of threads at once."""

    def __init__(self, session_handle: str, partitions: Sequence[RegisteredPartition], fetches: Sequence[str]) -> None:
        self.session_handle = session_handle
        # The others first: the local one, which then is the last, runs in the caller's thread.
        self.partitions = sorted(partitions, key=lambda partition: partition.is_local)
        self._fetches = list(fetches)
        self._preparation = Preparation(session_handle, self.partitions)
        self._feed_dtypes = _feed_dtypes(partitions)
        self.may_repeat = any(partition.may_repeat for partition in partitions)
        # How long a start takes, which runs what is here until it waits; infinite where that may differ each time.
        self._start_s = 0.0
        if self.partitions and self.partitions[-1].is_local:
            self._start_s = math.inf if may_go_on(self.partitions[-1].graph_def) else 2 * _LONG_START_S

    def run(
        self,
        owner: StepOwner,
        feeds: Mapping[str, Value],
        options: config_pb2.RunOptions | None = None,
        timeout_s: float | None = None,
        cancellation: CancellationManager | None = None,
        step_id: int = 0,
    ) -> StepResult:
        """Runs one step and returns the values of the fetches, in order.

        Args:
          owner: the session.
          feeds: values by tensor name.
          options: what to record; None: nothing.
          timeout_s: limit of the whole step; None: none.
          cancellation: stops the step when its caller has gone.
          step_id: bears the identity of a step that may be sent again; 0: a new one.

        Raises:
          InternalError: a feed is of another dtype than its tensor.
          OpError: the root cause of the failure, its message begun by the name of the task when that is another one.
          DeadlineExceededError: `timeout_s` has passed; the step has been cancelled.
        """
        before_start = None if cancellation is None else partial(MasterStep.obey, cancellation=cancellation)
        step = self.begin(owner, feeds, options, timeout_s, before_start, step_id)
        try:
            step.wait()
        except BaseException:
            step.abandon()
            raise
        finally:
            self._leave(owner, step)
        return self._outcome(step, options)

    def start(
        self,
        owner: StepOwner,
        feeds: Mapping[str, Value],
        options: config_pb2.RunOptions | None,
        timeout_s: float | None,
        on_cancel: Callable[[Cancel], None],
        done: Done[StepResult],
    ) -> None:
        """As `run`, but no thread waits: done(StepResult) or done(error=OpError) at the step's end, here or in another
        thread. `on_cancel` is given the function that stops the step.
        """

        def before_start(step: MasterStep) -> None:
            step.when_ended(partial(ended, step))
            on_cancel(step.abandon)

        def ended(step: MasterStep) -> None:
            self._leave(owner, step)
            try:
                result = self._outcome(step, options)
            except errors.OpError as error:
                done(error=error)
            else:
                done(result)

        step = self.begin(owner, feeds, options, timeout_s, before_start)
        if timeout_s is None and not step.has_ended:
            step.watch(None)

    def begin(
        self,
        owner: StepOwner,
        feeds: Mapping[str, Value],
        options: config_pb2.RunOptions | None,
        timeout_s: float | None,
        before_start: Callable[[MasterStep], None] | None,
        step_id: int = 0,
    ) -> MasterStep:
        """Starts one step and returns it; its end is told by `MasterStep.wait` or `MasterStep.when_ended`.
        `before_start` gets the step while it cannot end yet.
        """
        self.check_feeds(feeds)
        run_id = self._preparation.run_id() if options is None else None
        step = MasterStep(self, feeds, _executor_options(options), run_id, step_id)
        owner.add_step(step)
        try:
            if before_start is not None:
                before_start(step)
            self._start(step, timeout_s)
        except BaseException:
            step.abandon()
            self._leave(owner, step)
            raise
        return step

    def _start(self, step: MasterStep, timeout_s: float | None) -> None:
        """Starts a step. One with a time limit is watched from the beginning, and runs in another thread if its start
        may take long: what cannot be stopped then holds nobody.
        """
        if timeout_s is None:
            step.start()
            return
        step.watch(timeout_s)
        if self._start_s > _LONG_START_S:
            growing_pool.submit(step.start_apart)
            return
        started = time.perf_counter()
        step.start()
        self.started(time.perf_counter() - started)

    def started(self, seconds: float) -> None:
        """A start has taken so long."""
        if self._start_s is not math.inf:
            self._start_s = seconds

    def _leave(self, owner: StepOwner, step: MasterStep) -> None:
        owner.remove_step(step)
        step.obey(None)
        if step.run_id is None or step.error is not None:
            for partition in self.partitions:
                partition.worker.cleanup_graph(step.step_id)

    def _outcome(
        self, step: MasterStep, options: config_pb2.RunOptions | None
    ) -> StepResult:
        if step.error is not None:
            if step.run_id is not None and step.error.error_code == errors.UNAVAILABLE:
                self._preparation.end(step.run_id)
            raise step.error
        metadata = self._metadata(step, options) if options is not None else None
        values = step.values
        return StepResult([self._value(values, name) for name in self._fetches], metadata)

    def check_feeds(self, feeds: Mapping[str, Value]) -> None:
        """Raises InternalError, TensorFlow's code for it, when a feed is of another dtype than its tensor."""
        for name, value in feeds.items():
            given = getattr(value, "dtype", None)
            wanted = self._feed_dtypes.get(name)
            if wanted is not None and given is not None and given != wanted:
                raise errors.InternalError.of(f"The feed for {name} is of {given}, but the tensor is of {wanted.name}.")

    def _value(self, values: dict[str, Value], name: str) -> Value:
        value = values.pop(name)
        if value is DEAD:
            raise dead_fetch(name)
        return value

    def _metadata(self, step: MasterStep, options: config_pb2.RunOptions) -> config_pb2.RunMetadata | None:
        metadata = config_pb2.RunMetadata()
        for result in step.results:
            if result.step_stats is not None:
                metadata.step_stats.MergeFrom(result.step_stats)
        if options.output_partition_graphs:
            metadata.partition_graphs.extend(partition.graph_def for partition in self.partitions)
        return metadata


class MasterStep:
    """One step in flight. Its lock guards what the partitions' answers change; the last one releases `_ended`."""

    __slots__ = (
        "_cancellation", "_cancels", "_ended", "_feeds", "_lock", "_options", "_pending", "_stop_local", "_told_ended",
        "_watch", "compiled", "error", "is_stopped", "results", "run_id", "step_id", "values",
    )  # fmt: skip

    def __init__(
        self,
        compiled: CompiledStep,
        feeds: Mapping[str, Value],
        options: worker_pb2.ExecutorOpts | None,
        run_id: int | None = None,
        step_id: int = 0,
    ) -> None:
        self.compiled = compiled
        self.run_id = run_id
        self._cancellation: tuple[CancellationManager, int | None] | None = None
        self._told_ended: Callable[[], None] | None = None
        self._watch: Watch | None = None
        self.step_id = step_id or secrets.randbits(_STEP_ID_BITS) or 1
        self.values: dict[str, Value] = {}
        self.results: list[GraphResult] = []
        self.error: errors.OpError | None = None
        self._options = options
        self._lock = threading.Lock()
        self._ended = threading.Lock()
        self._ended.acquire()
        self._feeds = feeds
        self._pending = dict.fromkeys(range(len(compiled.partitions)))
        self._cancels: list[Callable[[], None]] = []
        self._stop_local: Callable[[], None] | None = None
        self.is_stopped = False

    def obey(self, cancellation: CancellationManager | None) -> None:
        """Lets `cancellation` stop the step; None: what could so far no longer can."""
        if self._cancellation is not None:
            manager, token = self._cancellation
            manager.deregister(token)
            self._cancellation = None
        if cancellation is not None:
            self._cancellation = cancellation, cancellation.register(self.abandon)
            if cancellation.is_cancelled:
                self.abandon()

    def when_ended(self, callback: Callable[[], None]) -> None:
        """Has `callback()` called once when the step has ended; nobody is to `wait` then."""
        self._told_ended = callback

    def watch(self, timeout_s: float | None) -> None:
        """Has the watchman mind the step, until it ends or a thread waits for it."""
        watch = Watch(self, timeout_s)
        with self._lock:
            if not self._pending:
                return
            self._watch = watch
        watchman.add(watch)
        if not self._pending:
            watchman.forget(watch)

    @property
    def has_ended(self) -> bool:
        """Whether every partition has answered or been given up."""
        return not self._pending

    def start(self) -> None:
        """Sends the step to every partition. Answers may come before this returns."""
        if not self._pending:
            self._end()
        for number, partition in enumerate(self.compiled.partitions):
            self._start(number, partition)

    def start_apart(self) -> None:
        """As `start`, in a thread that nobody waits for."""
        started = time.perf_counter()
        try:
            self.start()
        except BaseException as error:
            if not isinstance(error, errors.OpError):
                error = errors.InternalError.of(f"The step could not be started: {error!r}")
            self.cancel(error)
            self.give_up()
        self.compiled.started(time.perf_counter() - started)

    def wait(self) -> None:
        """Returns when every partition has answered or been given up; the outcome is in `error` and `values`. This
        thread minds the step meanwhile, in the watchman's stead.
        """
        if self._ended.acquire(blocking=False):
            return
        reader_thread.yield_reader()
        watch = self._watch
        if watch is None:
            watch = Watch(self, None)
        else:
            watchman.forget(watch)
        watch.wait()

    def wait_ended(self, timeout_s: float) -> bool:
        """Whether it ends within this time; -1: waits for it."""
        return self._ended.acquire(timeout=timeout_s)

    def cancel(self, error: errors.OpError) -> None:
        """Stops the step for the reason `error`, unless it has ended or has a root cause already."""
        with self._lock:
            if not self._pending:
                return
            if self.error is None or self.error.derived:
                self.error = error
            self.is_stopped = True
        self._cancel_rest()

    def abandon(self) -> None:
        """Stops the step because nobody waits for it any more."""
        self.cancel(errors.CancelledError.of("The caller of the step disconnected."))

    def give_up(self) -> None:
        """Ends a step that has been stopped, although not every partition has answered: what computes there, such as a
        function of the user's, cannot be interrupted.
        """
        with self._lock:
            if not self._pending:
                return
            self._pending.clear()
        self._end()

    def pending_partitions(self) -> list[RegisteredPartition]:
        """The partitions that have not answered yet."""
        with self._lock:
            return [self.compiled.partitions[number] for number in self._pending]

    def _start(self, number: int, partition: RegisteredPartition) -> None:
        def done(
            result: GraphResult | PreparedResult | None = None, error: errors.OpError | None = None
        ) -> None:
            self._answered(number, partition, result, error)
            if isinstance(result, PreparedResult) and result.rest is not None:
                assert self.run_id is not None
                home = self.compiled.partitions[-1]
                assert home.is_local
                home.worker.push(Pushed(self.run_id, self.step_id, number, *result.rest))

        feeds = self._feeds
        here: dict[str, Value] = {}
        if partition.is_local:
            # It runs in this thread, and has to be found by who stops it meanwhile.
            cancellation = here["cancellation"] = CancellationManager()
            self._stop_local = partial(
                cast(ServingWorker, partition.worker).stop_step, self.step_id, cancellation
            )
        if self.is_stopped or (self.error is not None and not self.error.derived):
            done(error=as_derived(errors.CancelledError.of("The step was stopped before it began.")))
            return
        try:
            if self.run_id is not None:
                values = [feeds[name] for name in partition.feeds]
                cancel = partition.worker.run_prepared(self.run_id, self.step_id, values, done, **here)
            else:
                cancel = partition.worker.run_graph(
                    self.compiled.session_handle,
                    partition.graph_handle,
                    self.step_id,
                    [(key, feeds[name]) for name, key in partition.feeds.items()],
                    list(partition.fetches.values()),
                    self._options,
                    done,
                    **here,
                )
        except errors.OpError as error:
            done(error=error)
            return
        if here or cancel is None or number not in self._pending:
            return
        with self._lock:
            self._cancels.append(cancel)
            stopped = self.error is not None and not self.error.derived
        if stopped:
            cancel()

    def _answered(
        self,
        number: int,
        partition: RegisteredPartition,
        result: GraphResult | PreparedResult | None,
        error: errors.OpError | None,
    ) -> None:
        if error is not None and not partition.is_local:
            error = _with_task(error, partition.task)
        with self._lock:
            if number not in self._pending:
                return
            del self._pending[number]
            ended = not self._pending
            stop = False
            if error is not None:
                stop = not error.derived and not ended
                if self.error is None or (self.error.derived and not error.derived):
                    self.error = error
            elif isinstance(result, PreparedResult):
                self.values.update(zip(partition.fetches, result.values, strict=True))
            else:
                assert result is not None
                self.results.append(result)
                for name, key in partition.fetches.items():
                    self.values[name] = result.values[key]
        if ended:
            self._end()
        elif stop:
            self._cancel_rest()

    def _end(self) -> None:
        self._ended.release()
        # What ends here is let go here, for a step may hold much memory: no cycle is left to the garbage collector.
        watch, self._watch = self._watch, None
        if watch is not None:
            watchman.forget(watch)
        told_ended, self._told_ended = self._told_ended, None
        if told_ended is None:
            reader_thread.tell_ended(self)
        else:
            told_ended()

    def _cancel_rest(self) -> None:
        with self._lock:
            cancels = list(self._cancels)
            self._cancels.clear()
            stop_local, self._stop_local = self._stop_local, None
        if stop_local is not None:
            stop_local()
        for cancel in cancels:
            cancel()


def may_go_on(graph_def: graph_pb2.GraphDef) -> bool:
    """Whether a step of the graph may take any time, however long the one before took: it has loops, calls functions
    of its own library, or of the user's.
    """
    functions = {function.signature.name for function in graph_def.library.function}
    return any(
        node.op in _LOOPS_AND_USERS
        or node.op in functions
        or any(attr.HasField("func") or attr.list.func for attr in node.attr.values())
        for node in graph_def.node
    )


_LOOPS_AND_USERS = frozenset({"Enter", "RefEnter"}) | CALLS_USERS


def _feed_dtypes(partitions: Sequence[RegisteredPartition]) -> dict[str, np.dtype]:
    """The numpy dtype of each feed that is an array."""
    found: dict[str, np.dtype] = {}
    for partition in partitions:
        if not partition.feeds:
            continue
        for node in partition.graph_def.node:
            if node.op == "_Recv" and (name := node.attr["tensor_name"].s.decode()) in partition.feeds:
                dtype = dtypes.as_dtype(node.attr["tensor_type"].type)
                if dtype not in (dtypes.resource, dtypes.variant):
                    found[name] = np.dtype(dtype.as_numpy_dtype)
    return found


def _with_task(error: errors.OpError, task: str) -> errors.OpError:
    if error.message.startswith("From /job:"):
        return error
    named = errors.error_from_code(error.error_code, f"From {task}:\n{error.message}", error.node_def, error.op)
    named.derived = error.derived
    named.__cause__ = error.__cause__
    return named


def _executor_options(options: config_pb2.RunOptions | None) -> worker_pb2.ExecutorOpts | None:
    if options is None or options.trace_level == config_pb2.RunOptions.NO_TRACE:
        return None
    return worker_pb2.ExecutorOpts(record_timeline=True)
