"""Master: the sessions of one task, each a graph that grows and the compiled steps of it.

`Master` is what a client talks to, here directly and over gRPC through `rpc.RemoteMaster`, which has the same methods.
Owns the sessions by handle, the compiled-step cache, and the order prune -> place -> optimize -> partition -> register.
Does not run steps (`compiled_step`), nor find and reach the tasks of a session (`session_tasks`).

    master = Master("/job:localhost/replica:0/task:0", LocalTasks(...))
    handle, version = master.create_session(graph_def, config, target="")
    values, metadata = master.run_step(handle, {"x:0": 1.0}, ["y:0"], [])

Only tasks that a step uses are ever contacted, when a step first uses them.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.run import borrowed
from dtf.run.cancellation import CancellationManager
from dtf.run.compiled_step import CompiledStep, RegisteredPartition, RunningStep
from dtf.run.partial_run import PartialRun
from dtf.run.passes import Nodes
from dtf.run.passes.optimize import optimize
from dtf.run.passes.partition import Partition, partition
from dtf.run.passes.place import Request, choose_task, collect_requests, place, unplaceable
from dtf.run.passes.prune import prune
from dtf.run.session_tasks import SessionTasks, Tasks
from dtf.run.step import Device
from dtf.wire import errors
from dtf.wire.pb import config_pb2, function_pb2, graph_pb2, versions_pb2

_REQUESTS_REMEMBERED_MAX = 10_000
_CLOSED_BY_CALL = "Step was cancelled by an explicit call to `Session::Close()`."
_STEPS_END_TIMEOUT_S = 10.0
_LIST_DEVICES_TIMEOUT_S = 10.0
_RESET_TIMEOUT_S = 30.0
_Signature = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


@dataclass(frozen=True)
class DeviceList:
    """What `Master.list_devices` found: devices of the master's own task, and of all others."""

    local: tuple[Device, ...]
    remote: tuple[Device, ...]


class Master:
    """All sessions whose target is this task. Its lock guards the dictionary of sessions and the request ids."""

    def __init__(self, tasks: Tasks, default_config: config_pb2.ConfigProto | None = None) -> None:
        """A master.

        Args:
          tasks: the tasks that this master can reach, its own among them.
          default_config: settings for sessions that leave them unset.
        """
        self._tasks = tasks
        self._default_config = default_config
        self._lock = threading.Lock()
        self._sessions: dict[str, MasterSession] = {}
        self._request_ids: OrderedDict[int, None] = OrderedDict()

    def create_session(
        self, graph_def: graph_pb2.GraphDef, config: config_pb2.ConfigProto | None = None, target: str = ""
    ) -> tuple[str, int]:
        """Makes a session and returns (handle, graph version). Contacts no task.

        Raises:
          InvalidArgumentError: the config or the graph cannot be used.
        """
        merged = config_pb2.ConfigProto()
        if self._default_config is not None:
            merged.CopyFrom(self._default_config)
        if config is not None:
            merged.MergeFrom(config)
        handle = f"{random.getrandbits(64):016x}"
        session = MasterSession(handle, self._tasks, merged)
        session.add_nodes(graph_def)
        with self._lock:
            self._sessions[handle] = session
        return handle, session.graph_version

    def extend_session(self, handle: str, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """Adds nodes to the session's graph and returns its new version.

        Raises:
          AbortedError: `version` is not the current one, or there is no such session.
          InvalidArgumentError: a node is there already.
        """
        return self._session(handle).extend(graph_def, version)

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Any],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        options: config_pb2.RunOptions | None = None,
        partial_run_handle: str = "",
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> tuple[list[Any], config_pb2.RunMetadata | None]:
        """Runs one step and returns (values of `fetches` in order, metadata if `options` were given).

        `cancellation` stops the step when its caller has gone.

        Raises:
          OpError: what failed first; its message names the op and, if it is another one, the task.
        """
        session = self._session(handle)
        if request_id:
            self._check_request(request_id, "RunStep (Master)")
        if partial_run_handle:
            return session.run_partial(partial_run_handle, feeds, fetches), None
        return session.run(feeds, fetches, targets, options, cancellation)

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """Starts a step that is fed and fetched bit by bit; the handle goes to `run_step`."""
        session = self._session(handle)
        if request_id:
            self._check_request(request_id, "PartialRunSetup")
        return session.setup_partial(feeds, fetches, targets)

    def make_callable(self, handle: str, options: config_pb2.CallableOptions, request_id: int = 0) -> int:
        """Compiles a signature now and returns a handle for `run_callable`."""
        session = self._session(handle)
        if request_id:
            self._check_request(request_id, "MakeCallable")
        return session.make_callable(options)

    def run_callable(
        self,
        handle: str,
        callable_handle: int,
        feeds: Sequence[Any],
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> tuple[list[Any], config_pb2.RunMetadata | None]:
        """Runs a callable; `feeds` in the order of its options. `cancellation` stops it when its caller has gone."""
        session = self._session(handle)
        if request_id:
            self._check_request(request_id, "RunCallable")
        return session.run_callable(callable_handle, feeds, cancellation)

    def release_callable(self, handle: str, callable_handle: int) -> None:
        """Forgets a callable. Harmless when it is not known."""
        self._session(handle).release_callable(callable_handle)

    def close_session(self, handle: str) -> None:
        """Cancels the session's steps, waits for them (bounded), and frees what its tasks hold for it.

        Raises:
          AbortedError: there is no such session.
        """
        with self._lock:
            session = self._sessions.pop(handle, None)
        if session is None:
            raise errors.AbortedError(
                None, None, f"Session {handle} is not found. Possibly, this master has restarted."
            )
        session.close()

    def list_devices(self, handle: str = "") -> DeviceList:
        """The devices of every task that answers within the session's operation timeout (10 s if it has none).

        With a session, all are given as local, as TensorFlow does.

        Raises:
          InvalidArgumentError: there is no such session.
        """
        if handle:
            with self._lock:
                session = self._sessions.get(handle)
            if session is None:
                raise errors.InvalidArgumentError(None, None, f"Session {handle} is not found.")
            return DeviceList(tuple(session.list_devices()), ())
        tasks = SessionTasks("", self._tasks, config_pb2.ConfigProto())
        local: list[Device] = []
        remote: list[Device] = []
        for device in tasks.list_devices(_LIST_DEVICES_TIMEOUT_S):
            (local if device.name.startswith(self._tasks.own_task + "/") else remote).append(device)
        return DeviceList(tuple(local), tuple(remote))

    def reset(self, containers: Sequence[str] = (), device_filters: Sequence[str] = ()) -> None:
        """Closes all sessions and empties the resource containers (the default one if none is named) of all tasks.

        Raises:
          OpError: a task could not be told; all others have been.
        """
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.close()
        config = config_pb2.ConfigProto(device_filters=device_filters)
        SessionTasks("", self._tasks, config).cleanup_all(containers, _RESET_TIMEOUT_S)

    def close(self) -> None:
        """Closes all sessions, as when the server stops."""
        with self._lock:
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.close()

    def _session(self, handle: str) -> MasterSession:
        session = self._sessions.get(handle)
        if session is None:
            raise errors.AbortedError(None, None, f"Session {handle} is not found.")
        return session

    def _check_request(self, request_id: int, what: str) -> None:
        with self._lock:
            if request_id in self._request_ids:
                raise errors.AbortedError(
                    None, None, f"The same {what} request was received twice. request_id: {request_id}"
                )
            self._request_ids[request_id] = None
            if len(self._request_ids) > _REQUESTS_REMEMBERED_MAX:
                self._request_ids.popitem(last=False)


class MasterSession:
    """One session. `_graph_lock` guards the graph and what was compiled, `_steps_lock` who runs and `_is_closed`."""

    def __init__(self, handle: str, tasks: Tasks, config: config_pb2.ConfigProto) -> None:
        if config.HasField("cluster_def") and config.cluster_def.job:
            raise errors.UnimplementedError(
                None, None, "ConfigProto.cluster_def: a session cannot bring a cluster of its own yet."
            )
        self.graph_version = 0
        self._handle = handle
        self._config = config
        self._tasks = SessionTasks(handle, tasks, config)
        self._graph_lock = threading.RLock()
        self._nodes: Nodes = {}
        self._library = function_pb2.FunctionDefLibrary()
        self._versions = versions_pb2.VersionDef()
        self._requests: dict[str, Request] | None = None
        self._assigned: dict[str, str] = {}
        self._compiled: dict[_Signature, CompiledStep] = {}
        self._callables: dict[int, tuple[config_pb2.CallableOptions, CompiledStep]] = {}
        self._partial_runs: dict[str, PartialRun] = {}
        self._ids = itertools.count(1)
        self._steps_lock = threading.Condition()
        self._steps: set[RunningStep] = set()
        self._is_closed = False
        self._default_timeout_s = config.operation_timeout_in_ms / 1000 or None

    def extend(self, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """Adds nodes; see `Master.extend_session`."""
        with self._graph_lock:
            if version != self.graph_version:
                raise errors.AbortedError(
                    None, None, f"Current version is {self.graph_version} but caller expected {version}."
                )
            self.add_nodes(graph_def)
            self.graph_version += 1
            return self.graph_version

    def add_nodes(self, graph_def: graph_pb2.GraphDef) -> None:
        """Adds nodes, and functions that are new.

        Raises:
          InvalidArgumentError: a node is there already.
        """
        with self._graph_lock:
            for node in graph_def.node:
                if node.name in self._nodes:
                    raise errors.InvalidArgumentError(
                        None, None, f"The graph has a node '{node.name}' already; it cannot be added again."
                    )
            self._nodes.update((node.name, node) for node in graph_def.node)
            self._add_functions(graph_def.library)
            self._versions.CopyFrom(graph_def.versions)
            self._requests = None

    def run(
        self,
        feeds: Mapping[str, Any],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: config_pb2.RunOptions | None,
        cancellation: CancellationManager | None = None,
    ) -> tuple[list[Any], config_pb2.RunMetadata | None]:
        """Runs one step; see `Master.run_step`."""
        timeout_s = self._default_timeout_s
        if options is not None and options.timeout_in_ms > 0:
            timeout_s = options.timeout_in_ms / 1000
        signature = (tuple(feeds), tuple(fetches), tuple(targets))
        compiled = self._compiled.get(signature)
        if compiled is None:
            started = time.monotonic()
            compiled = self._compile(signature, timeout_s)
            if timeout_s is not None:
                timeout_s = max(0.001, timeout_s - (time.monotonic() - started))
        return compiled.run(self, feeds, options, timeout_s, cancellation)

    def setup_partial(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Starts a partial run; see `Master.partial_run_setup`."""
        own = self._tasks.join(self._tasks.own_task, self._default_timeout_s)
        client = next(device for device in own.devices if device.device_type == "CPU")
        registered = self._register(feeds, fetches, targets, self._default_timeout_s, client)
        with self._graph_lock:
            dependencies = {fetch: _feeds_of(prune(self._nodes, feeds, [fetch], [])) for fetch in fetches}
        run = PartialRun(self._handle, registered, own.worker, dependencies)
        handle = f"{self._handle}_{next(self._ids)}"
        run.start(self)
        with self._graph_lock:
            self._partial_runs[handle] = run
        return handle

    def run_partial(self, handle: str, feeds: Mapping[str, Any], fetches: Sequence[str]) -> list[Any]:
        """One part of a partial run."""
        with self._graph_lock:
            run = self._partial_runs.get(handle)
        if run is None:
            raise errors.InvalidArgumentError(
                None,
                None,
                "Must run 'setup' before performing partial runs, and a partial run ends with its last fetch.",
            )
        try:
            values, is_finished = run.run(feeds, fetches, self._default_timeout_s)
        except errors.OpError:
            is_finished = True
            raise
        finally:
            if is_finished:
                with self._graph_lock:
                    self._partial_runs.pop(handle, None)
                run.finish(self)
        return values

    def make_callable(self, options: config_pb2.CallableOptions) -> int:
        """See `Master.make_callable`."""
        if options.tensor_connection:
            raise errors.UnimplementedError(None, None, "CallableOptions.tensor_connection is not supported.")
        signature = (tuple(options.feed), tuple(options.fetch), tuple(options.target))
        compiled = self._compiled.get(signature) or self._compile(signature, self._default_timeout_s)
        handle = next(self._ids)
        self._callables[handle] = (options, compiled)
        return handle

    def run_callable(
        self, handle: int, feeds: Sequence[Any], cancellation: CancellationManager | None = None
    ) -> tuple[list[Any], config_pb2.RunMetadata | None]:
        """See `Master.run_callable`."""
        if handle not in self._callables:
            raise errors.InvalidArgumentError(None, None, f"No such callable handle: {handle}")
        options, compiled = self._callables[handle]
        if len(feeds) != len(options.feed):
            raise errors.InvalidArgumentError(
                None, None, f"The callable takes {len(options.feed)} feeds, but {len(feeds)} were given."
            )
        run_options = options.run_options if options.HasField("run_options") else None
        timeout_s = self._default_timeout_s
        if run_options is not None and run_options.timeout_in_ms > 0:
            timeout_s = run_options.timeout_in_ms / 1000
        return compiled.run(self, dict(zip(options.feed, feeds, strict=True)), run_options, timeout_s, cancellation)

    def release_callable(self, handle: int) -> None:
        """See `Master.release_callable`."""
        self._callables.pop(handle, None)

    def list_devices(self) -> list[Device]:
        """The devices of every task that answers in time."""
        return self._tasks.list_devices(self._default_timeout_s or _LIST_DEVICES_TIMEOUT_S)

    def add_step(self, step: RunningStep) -> None:
        """See `compiled_step.StepOwner`."""
        with self._steps_lock:
            if self._is_closed:
                raise errors.FailedPreconditionError(None, None, "Session is closed.")
            self._steps.add(step)

    def remove_step(self, step: RunningStep) -> None:
        """See `compiled_step.StepOwner`."""
        with self._steps_lock:
            self._steps.discard(step)
            if self._is_closed and not self._steps:
                self._steps_lock.notify_all()

    def close(self) -> None:
        """Cancels the running steps, waits for them to end (10 s at most), and lets the tasks forget the session."""
        with self._steps_lock:
            self._is_closed = True
            steps = list(self._steps)
        self._tasks.stop_waiting()
        for step in steps:
            step.cancel(errors.CancelledError(None, None, _CLOSED_BY_CALL))
        with self._graph_lock:
            partial_runs = list(self._partial_runs.values())
            self._partial_runs.clear()
        for run in partial_runs:
            run.finish(self)
        with self._steps_lock:
            self._steps_lock.wait_for(lambda: not self._steps, timeout=_STEPS_END_TIMEOUT_S)
        self._tasks.leave()

    def _compile(self, signature: _Signature, timeout_s: float | None) -> CompiledStep:
        borrowed.before_long()
        registered = self._register(*signature, timeout_s)
        compiled = CompiledStep(self._handle, registered, signature[1])
        with self._graph_lock:
            return self._compiled.setdefault(signature, compiled)

    def _register(
        self,
        feeds: Sequence[str],
        fetches: Sequence[str],
        targets: Sequence[str],
        timeout_s: float | None,
        client_device: Device | None = None,
    ) -> list[RegisteredPartition]:
        with self._graph_lock:
            needed = prune(self._nodes, feeds, fetches, targets)
            if self._requests is None:
                self._requests = collect_requests(self._nodes, self._assigned)
            requests = self._requests
        if self._is_closed:
            raise errors.FailedPreconditionError(None, None, "Session is closed.")
        tasks = self._needed_tasks(needed, requests)
        if client_device is not None:
            tasks.add(self._tasks.own_task)
        joined = self._tasks.join_all(tasks, timeout_s)
        devices = {task: there.devices for task, there in joined.items()}
        placed = place(
            needed, requests, self._tasks.names, self._tasks.own_task, devices, self._config.allow_soft_placement
        )
        with self._graph_lock:
            self._assigned.update((name, node.device) for name, node in placed.items() if node.device)
        parts = partition(optimize(placed, self._config.graph_options), devices, client_device)
        return [self._register_at(joined[task].worker, part) for task, part in parts.items()]

    def _register_at(self, worker: Any, part: Partition) -> RegisteredPartition:
        part.graph_def.versions.CopyFrom(self._versions)
        part.graph_def.library.CopyFrom(self._library)
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
        )

    def _needed_tasks(self, needed: Nodes, requests: Mapping[str, Request]) -> set[str]:
        tasks: set[str] = set()
        chosen: dict[Request, str] = {}
        for name, node in needed.items():
            request = requests.get(name)
            if request is None or request in chosen:
                continue
            task = None if request.conflict else choose_task(request, self._tasks.names, self._tasks.own_task)
            if task is None:
                raise unplaceable(node, request, self._tasks.names)
            chosen[request] = task
            tasks.add(task)
        return tasks or {self._tasks.own_task}

    def _add_functions(self, library: function_pb2.FunctionDefLibrary) -> None:
        known = {function.signature.name for function in self._library.function}
        self._library.function.extend(f for f in library.function if f.signature.name not in known)
        gradients = {gradient.function_name for gradient in self._library.gradient}
        self._library.gradient.extend(g for g in library.gradient if g.function_name not in gradients)


def _feeds_of(needed: Nodes) -> frozenset[str]:
    return frozenset(node.attr["tensor_name"].s.decode() for node in needed.values() if node.op == "_Recv")
