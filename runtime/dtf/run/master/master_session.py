"""MasterSession: one session of a master: its graph compiled signature by signature, its callables and partial runs.

Owns the compiled-step cache, the order prune -> place -> optimize -> partition -> register, and which steps run. The
graph itself is a `ClientGraph`; steps run in `compiled_step`; the tasks are reached through `session_tasks`.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from dtf.run.durability.kept import mark_once
from dtf.run.exchange import piggyback
from dtf.run.executor.instructions import SHOWN_AT_END
from dtf.run.interfaces import Cancel, Device, Done, ServingWorker, StepResult, Value, Worker
from dtf.run.kernels import may_wait
from dtf.run.master.client_graph import ClientGraph
from dtf.run.master.compiled_step import CompiledStep, MasterStep
from dtf.run.master.durable_steps import DurableSteps, Recovery
from dtf.run.master.endpoint_names import EndpointNames
from dtf.run.master.partial_run import PartialRun
from dtf.run.master.registered_partition import RegisteredPartition
from dtf.run.master.session_tasks import LIST_DEVICES_TIMEOUT_S, SessionTasks, Tasks
from dtf.run.passes import Nodes, mixed_precision, parse_tensor_name
from dtf.run.passes.optimize import optimize
from dtf.run.passes.partition import Partition, partition
from dtf.run.passes.place import Request, choose_task, place, unplaceable
from dtf.run.threads import growing_pool, reader_thread
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors
from dtf.wire.pb import config_pb2

_CLOSED_BY_CALL = "Step was cancelled by an explicit call to `Session::Close()`."
_STEPS_END_TIMEOUT_S = 10.0
_Signature = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class _Callable:
    compiled: CompiledStep
    signature: _Signature
    feeds: tuple[str, ...]
    options: config_pb2.RunOptions | None
    timeout_s: float | None


class MasterSession:
    """One session. `_lock` guards what was compiled, `_steps_lock` who runs and `_is_closed`."""

    def __init__(self, handle: str, tasks: Tasks, config: config_pb2.ConfigProto) -> None:
        self._handle = handle
        self._config = config
        self._tasks = SessionTasks(handle, tasks, config)
        self.graph = ClientGraph(is_spread=len(self._tasks.names) > 1)
        self._lock = threading.Lock()
        self._compiled: dict[_Signature, CompiledStep] = {}
        self._durable_steps = DurableSteps()
        self._recovery = Recovery(self._tasks)
        self._compiled_at = 0
        self._callables: dict[int, _Callable] = {}
        self._partial_runs: dict[str, PartialRun] = {}
        self._endpoint_names = EndpointNames()
        self._logged: set[str] = set()
        self._ids = itertools.count(1)
        self._edge_numbers = itertools.count()
        self._steps_lock = threading.Lock()
        self._steps_ended = threading.Condition(self._steps_lock)
        self._steps: set[MasterStep] = set()
        self._was_used = False
        self._is_closed = False
        self._why_closed: errors.OpError | None = None
        self._default_timeout_s = config.operation_timeout_in_ms / 1000 or None

    def run(
        self,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: config_pb2.RunOptions | None,
        cancellation: CancellationManager | None = None,
    ) -> StepResult:
        """Runs one step; see `Master.run_step`."""
        timeout_s = self._limit_s(options)
        signature = (tuple(feeds), tuple(fetches), tuple(targets))
        compiled = self._compiled.get(signature)
        if compiled is None and not self._tasks.has_durable:
            started = time.monotonic()
            compiled = self._compile(signature, timeout_s)
            if timeout_s is not None:
                timeout_s = max(0.001, timeout_s - (time.monotonic() - started))
        if compiled is None or compiled.may_repeat:
            return self._run_durably(signature, feeds, options, timeout_s, cancellation)
        return compiled.run(self, feeds, options, timeout_s, cancellation)

    def _run_durably(
        self,
        signature: _Signature,
        feeds: Mapping[str, Value],
        options: config_pb2.RunOptions | None,
        timeout_s: float | None,
        cancellation: CancellationManager | None,
    ) -> StepResult:
        """As `run`, of a step in which durable tasks may take part. It is sent again when one of them has restarted."""
        with self._durable_steps.slot() as slot:
            while True:
                count = self._recovery.count
                try:
                    compiled = self._compiled_now(signature, timeout_s)
                    step_id = slot.step_id if compiled.may_repeat else 0
                    return compiled.run(self, feeds, options, timeout_s, cancellation, step_id)
                except errors.OpError as error:
                    is_over = self._is_closed or (cancellation is not None and cancellation.is_cancelled)
                    if is_over or not self._recovery.may_go_on(error, slot, count, timeout_s):
                        raise

    def _compiled_now(self, signature: _Signature, timeout_s: float | None) -> CompiledStep:
        """The compiled step of a signature; made anew when a durable task has restarted since it was made."""
        if self._compiled_at != self._recovery.count:
            with self._lock:
                self._compiled_at = self._recovery.count
                self._compiled.clear()
        return self._compiled.get(signature) or self._compile(signature, timeout_s)

    def setup_partial(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Starts a partial run; see `Master.partial_run_setup`."""
        own = self._tasks.join(self._tasks.own_task, self._default_timeout_s)
        client = next(device for device in own.devices if device.device_type == "CPU")
        registered = self._register(feeds, fetches, targets, self._default_timeout_s, client, may_repeat=False)
        dependencies = {fetch: self.graph.feeds_of(feeds, fetch) for fetch in fetches}
        own_worker = cast("ServingWorker", own.worker)  # that of this process
        run = PartialRun(self._handle, registered, own_worker, feeds, dependencies)
        handle = f"{self._handle}_{next(self._ids)}"
        run.start(self)
        with self._lock:
            self._partial_runs[handle] = run
        return handle

    def run_partial(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        cancellation: CancellationManager | None = None,
    ) -> list[Value]:
        """One part of a partial run; `cancellation` ends the whole run."""
        with self._lock:
            run = self._partial_runs.get(handle)
        if run is None:
            raise errors.InvalidArgumentError.of(
                "Must run 'setup' before performing partial runs, and a partial run ends with its last fetch.",
            )
        is_finished = True
        try:
            run.obey(cancellation)
            values, is_finished = run.run(feeds, fetches, self._default_timeout_s)
        finally:
            run.obey(None)
            if is_finished:
                with self._lock:
                    self._partial_runs.pop(handle, None)
                run.finish(self)
        return values

    def make_callable(self, options: config_pb2.CallableOptions) -> int:
        """See `Master.make_callable`."""
        signature = (tuple(options.feed), tuple(options.fetch), tuple(options.target))
        if options.tensor_connection:
            connections = [(each.from_tensor, each.to_tensor) for each in options.tensor_connection]
            registered = self._register(
                *signature, self._default_timeout_s, connections=connections, may_repeat=False
            )
            compiled = CompiledStep(self._handle, registered, signature[1])
        else:
            compiled = self._compiled.get(signature) or self._compile(signature, self._default_timeout_s)
        handle = next(self._ids)
        run_options = options.run_options if options.HasField("run_options") else None
        self._callables[handle] = _Callable(
            compiled, signature, signature[0], run_options, self._limit_s(run_options)
        )
        return handle

    def run_callable(self, handle: int, feeds: Sequence[Value]) -> StepResult:
        """See `Master.run_callable`."""
        found, named = self._callable(handle, feeds)
        if found.compiled.may_repeat:
            return self._run_durably(found.signature, named, found.options, found.timeout_s, None)
        return found.compiled.run(self, named, found.options, found.timeout_s)

    def start_callable(
        self, handle: int, feeds: Sequence[Value], on_cancel: Callable[[Cancel], None], done: Done[StepResult]
    ) -> None:
        """See `Master.start_callable`."""
        found, named = self._callable(handle, feeds)
        if not found.compiled.may_repeat:
            found.compiled.start(self, named, found.options, found.timeout_s, on_cancel, done)
            return
        cancellation = CancellationManager()
        on_cancel(cancellation.start_cancel)

        def run() -> None:
            try:
                result = self._run_durably(found.signature, named, found.options, found.timeout_s, cancellation)
            except errors.OpError as error:
                done(error=error)
            except Exception as error:  # the caller waits for an answer
                done(error=errors.InternalError.of(f"{type(error).__name__}: {error}"))
            else:
                done(result)

        growing_pool.submit(run)

    def _limit_s(self, options: config_pb2.RunOptions | None) -> float | None:
        """How long a step may take: what its options say, else the session's limit; None: without one."""
        if options is not None and options.timeout_in_ms > 0:
            return options.timeout_in_ms / 1000
        return self._default_timeout_s

    def _callable(self, handle: int, feeds: Sequence[Value]) -> tuple[_Callable, dict[str, Value]]:
        """The callable, and its feeds by name."""
        found = self._callables.get(handle)
        if found is None:
            raise errors.InvalidArgumentError.of(f"No such callable handle: {handle}")
        if len(feeds) != len(found.feeds):
            raise errors.InvalidArgumentError.of(
                f"The callable takes {len(found.feeds)} feeds, but {len(feeds)} were given."
            )
        return found, dict(zip(found.feeds, feeds, strict=True))

    def release_callable(self, handle: int) -> None:
        """See `Master.release_callable`."""
        self._callables.pop(handle, None)

    def list_devices(self) -> list[Device]:
        """The devices of every task that answers in time."""
        return self._tasks.list_devices(self._default_timeout_s or LIST_DEVICES_TIMEOUT_S)

    def add_step(self, step: MasterStep) -> None:
        """See `compiled_step.StepOwner`."""
        with self._steps_lock:
            if self._is_closed:
                raise self._closed()
            self._steps.add(step)
            self._was_used = True

    def remove_step(self, step: MasterStep) -> None:
        """See `compiled_step.StepOwner`."""
        with self._steps_lock:
            self._steps.discard(step)
            if self._is_closed and not self._steps:
                self._steps_ended.notify_all()

    @property
    def is_running(self) -> bool:
        """Whether a step runs, those that wait for another part of a partial run left out."""
        return len(self._steps) > len(self._partial_runs)

    def take_use(self) -> bool:
        """Whether a step runs, or has begun since this was last asked."""
        with self._steps_lock:
            was_used, self._was_used = self._was_used, False
        return was_used or self.is_running

    def close(self, why: errors.OpError | None = None) -> None:
        """Cancels the running steps, waits for them to end (10 s at most), and lets the tasks forget the session.

        Args:
          why: what the steps end with, and later ones raise; None: a client closes its session.
        """
        with self._steps_lock:
            self._is_closed = True
            self._why_closed = why
            steps = list(self._steps)
        self._tasks.stop_waiting(why)
        for step in steps:
            step.cancel(why or errors.CancelledError.of(_CLOSED_BY_CALL))
        with self._lock:
            partial_runs = list(self._partial_runs.values())
            self._partial_runs.clear()
        for run in partial_runs:
            run.finish(self)
        with self._steps_lock:
            self._steps_ended.wait_for(lambda: not self._steps, timeout=_STEPS_END_TIMEOUT_S)
        self._tasks.leave()
        self._compiled.clear()
        self._callables.clear()

    def _closed(self) -> errors.OpError:
        return self._why_closed or errors.FailedPreconditionError.of("Session is closed.")

    def _compile(self, signature: _Signature, timeout_s: float | None) -> CompiledStep:
        reader_thread.yield_reader()
        count = self._recovery.count
        registered = self._register(*signature, timeout_s)
        compiled = CompiledStep(self._handle, registered, signature[1])
        with self._lock:
            if self._recovery.count != count:  # a task has restarted meanwhile, perhaps one of these
                return compiled
            return self._compiled.setdefault(signature, compiled)

    def _register(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        timeout_s: float | None,
        client_device: Device | None = None,
        connections: Sequence[tuple[str, str]] = (),
        may_repeat: bool = True,
    ) -> list[RegisteredPartition]:
        needed, requests = self.graph.needed(feeds, fetches, targets, connections)
        if self._is_closed:
            raise self._closed()
        tasks = self._needed_tasks(needed, requests, timeout_s)
        if client_device is not None:
            tasks.add(self._tasks.own_task)
        joined = self._tasks.join_all(tasks, timeout_s)
        devices = {task: there.devices for task, there in joined.items()}
        soft, whole = self._config.allow_soft_placement, self.graph.whole()
        placed = place(needed, requests, self._tasks.names, self._tasks.own_task, devices, soft, whole)
        self.graph.assign(placed)
        if self._config.log_device_placement:
            self._log_placement(placed, [device for there in devices.values() for device in there])
        if mixed_precision.is_wanted(self._config.graph_options):
            kept = {parse_tensor_name(text)[0] for text in (*feeds, *fetches, *targets)}
            placed = mixed_precision.in_mixed_precision(placed, kept)
        parts = partition(
            optimize(placed, self._config.graph_options), devices, client_device, self._edge_numbers
        )
        if len(parts) > 1:
            piggyback.mark(parts, may_wait)
        may_repeat = may_repeat and any(self._tasks.is_durable(task) for task in parts)
        if may_repeat:
            mark_once(part.graph_def for part in parts.values())
        return [self._register_at(joined[task].worker, part, may_repeat) for task, part in parts.items()]

    def _register_at(self, worker: Worker, part: Partition, may_repeat: bool) -> RegisteredPartition:
        if part.task == self._tasks.own_task:
            _show_references_at_end(part)
        self._endpoint_names.settle(part.task, part.graph_def)
        part.graph_def.versions.CopyFrom(self.graph.versions)
        part.graph_def.library.CopyFrom(self.graph.library)
        graph_handle = worker.register_graph(self._handle, part.graph_def, self._config.graph_options, self._config)
        return RegisteredPartition(
            part.task,
            self._tasks.address(part.task),
            worker,
            graph_handle,
            part.feeds,
            part.fetches,
            part.graph_def,
            part.task == self._tasks.own_task,
            may_repeat,
        )

    def _known_places(self, timeout_s: float | None) -> list[str]:
        """The devices of this task, and the names of the other tasks, whose devices were not requested."""
        own = self._tasks.own_task
        devices = [device.name for device in self._tasks.join(own, timeout_s).devices]
        return [*devices, *(task for task in self._tasks.names if task != own)]

    def _needed_tasks(
        self, needed: Nodes, requests: Mapping[str, Request], timeout_s: float | None
    ) -> set[str]:
        tasks: set[str] = set()
        chosen: dict[Request, str] = {}
        for name, node in needed.items():
            request = requests.get(name)
            if request is None or request in chosen:
                continue
            is_impossible = request.is_impossible(self._config.allow_soft_placement)
            task = None if is_impossible else choose_task(request, self._tasks.names, self._tasks.own_task)
            if task is None:
                raise unplaceable(node, request, self._known_places(timeout_s))
            chosen[request] = task
            tasks.add(task)
        return tasks or {self._tasks.own_task}

    def _log_placement(self, placed: Nodes, devices: Sequence[Device]) -> None:
        """Logs devices and nodes in the form of TensorFlow's log, which tools read."""
        for device in devices:
            if device.description and device.name not in self._logged:
                self._logged.add(device.name)
                _logger.warning("Device mapping: %s -> %s", device.name, device.description)
        for name, node in placed.items():
            if node.device and name not in self._logged:
                self._logged.add(name)
                _logger.warning("%s: (%s): %s", name, node.op, node.device)


def _show_references_at_end(part: Partition) -> None:
    """What TensorFlow's shared buffers come to at the master's own task: a variable that is fetched beside its update
    shows the update. A variable of another task is sent when it is read.
    """
    for node in part.graph_def.node:
        if node.op == "_Send" and node.attr["client_terminated"].b:
            node.attr[SHOWN_AT_END].b = True


_logger = logging.getLogger("dtf")
