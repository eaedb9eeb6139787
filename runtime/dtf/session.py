"""Session: runs parts of a graph, here or at a server.

Owns the client's state of a session: the part of the graph that the master has, and the plans of earlier calls. Fetch
structures and feed checks are in `fetches`; where the master is, in `server`. It cannot tell a local master from a
remote one.

    with tf.Session("grpc://localhost:2222") as session:
        session.run([loss, train_op], {x: batch})
"""

from __future__ import annotations

import contextlib
import logging
import re
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dtf import server
from dtf.build import graph_rewrites
from dtf.build.default_graph import get_default_graph
from dtf.build.graph import Graph, default_session_stack
from dtf.build.tensor import Operation, Tensor
from dtf.build.variables import Variable
from dtf.cost_model import CostModel
from dtf.fetches import (
    FeedSlot,
    FetchPlan,
    feed_items,
    feed_keys_for_partial_run,
    feedable,
    plan_fetches,
    register_session_run_conversion_functions,
)
from dtf.session_handles import HANDLE_OPS, TensorHandle, delete
from dtf.wire import errors, forks
from dtf.wire.device import canonical_name
from dtf.wire.durability import lineage_of
from dtf.wire.measures import measures, this_thread
from dtf.wire.pb import config_pb2, graph_pb2
from dtf.wire.step_traces import Wish, step_traces
from dtf.wire.task_notes import notes

__all__ = ["InteractiveSession", "Session", "register_session_run_conversion_functions"]

_PLANS_MAX = 10_000
_DEAD_HANDLES_MAX = 10
_NODE_IN_MESSAGE = re.compile(r"\{\{node ([^}\s]+)\}\}")
_PARTITION_SUFFIX = re.compile(r"_[SG]\d+$")
"""Prefixes and suffixes that TensorFlow's master adds to the names of nodes that it splits or copies."""


@dataclass(frozen=True)
class DeviceAttributes:
    """A device as `Session.list_devices` gives it; its name is written in full."""

    name: str
    device_type: str
    memory_limit_bytes: int
    incarnation: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", canonical_name(self.name))

    def __repr__(self) -> str:
        return f"_DeviceAttributes({self.name}, {self.device_type}, {self.memory_limit_bytes}, {self.incarnation})"


@dataclass(frozen=True)
class _Plan:
    """One kind of call: the feeds by position and the fetches, checked and named."""

    slots: tuple[FeedSlot, ...]
    fetches: FetchPlan
    fetch_names: tuple[str, ...]
    target_names: tuple[str, ...]
    fed_fetches: tuple[int | None, ...]
    """For each tensor of `fetches`, which feed gives its value, or None when it is fetched."""
    kept: tuple[tuple[int, Any], ...] = ()
    """Positions among the fetched tensors that are handles, with the dtypes of the tensors that they stand for."""


class BaseSession:
    """Base of Session and InteractiveSession. Its lock guards the handle and the record of nodes that the
    master has."""

    def __init__(self, target: str | bytes = "", graph: Graph | None = None, config: Any = None) -> None:
        """A session for `graph` (by default the default graph). Makes no connection before the first
        call.

        Args:
          target: "" for a session in this process, the target of a Server, or "grpc://host:port".
          config: a ConfigProto.

        Raises:
          TypeError: an argument is of the wrong type.
          InvalidArgumentError: the target is malformed.
        """
        if graph is not None and not isinstance(graph, Graph):
            raise TypeError(f"graph must be a tf.Graph, but got {type(graph)}")
        if not isinstance(target, (str, bytes)):
            raise TypeError(f"target must be a string, but got {type(target)}")
        if config is not None and not isinstance(config, config_pb2.ConfigProto):
            raise TypeError(f"config must be a tf.ConfigProto, but got {type(config)}")
        self._graph = graph if graph is not None else get_default_graph()
        self._target = target.decode() if isinstance(target, bytes) else target
        self._config = graph_rewrites.with_rewrites(config if config is not None else config_pb2.ConfigProto())
        self._lock = threading.Lock()
        self._handle = ""
        self._sent_nodes = 0
        self._graph_version = 0
        self._plans: dict[Any, _Plan] = {}
        self._cost_model = CostModel(self._config.graph_options)
        self._slots: dict[Tensor, FeedSlot] = {}
        self.handle_steps: dict[Any, Any] = {}
        """Nodes that `session_handles` adds to the graph, once for each dtype and device."""
        self._dead_handles: list[str] = []
        self._master = server.find_master(self._target, self._config)
        self._closed = False
        _sessions.add(self)

    @property
    def graph(self) -> Graph:
        """The graph that this session runs."""
        return self._graph

    @property
    def graph_def(self) -> Any:
        """The graph as a GraphDef."""
        return self._graph.as_graph_def(add_shapes=self._config.graph_options.infer_shapes)

    @property
    def sess_str(self) -> bytes:
        """The target."""
        return self._target.encode()

    def run(
        self,
        fetches: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        options: Any = None,
        run_metadata: Any = None,
    ) -> Any:
        """Runs one step.

        Args:
          fetches: a tensor, operation, name, SparseTensor, IndexedSlices, or nested lists, tuples, dictionaries.
          feed_dict: values that replace tensors for this step.
          options: a RunOptions.
          run_metadata: a RunMetadata, filled with what `options` ask for.

        Returns:
          the values, in the structure of `fetches`; an operation gives None.

        Raises:
          RuntimeError: the session has been closed.
          TypeError, ValueError: `fetches` or `feed_dict` do not fit the graph.
          OpError: the step failed.
        """
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        if len(self._dead_handles) >= _DEAD_HANDLES_MAX:
            self._delete_dead_handles()
        key = _plan_key(fetches, feed_dict)
        plan = self._plans.get(key) if key is not None else None
        if plan is None:
            return self._run_new(key, fetches, feed_dict, options, run_metadata)
        values = list(feed_dict.values()) if feed_dict else ()
        return self._run_plan(plan, values, options, run_metadata)

    def make_callable(
        self, fetches: Any, feed_list: Sequence[Any] | None = None, accept_options: bool = False
    ) -> Callable[..., Any]:
        """A function that runs `fetches`, with the values of `feed_list` as its positional arguments.

        With accept_options it also takes the keywords `options` and `run_metadata`.

        Raises:
          TypeError, ValueError: as `run`.
        """
        if feed_list is not None and not isinstance(feed_list, (list, tuple)):
            raise TypeError("`feed_list` must be a list or tuple.")
        plan = self._plan(fetches, [feedable(self._graph, feed) for feed in feed_list or ()])

        def run(*feeds: Any, options: Any = None, run_metadata: Any = None) -> Any:
            self._check_callable()
            if len(feeds) != len(plan.slots):
                raise TypeError(f"the callable takes {len(plan.slots)} feed values, but {len(feeds)} were given")
            if not accept_options and (options is not None or run_metadata is not None):
                raise TypeError("this callable was not made with accept_options=True")
            return self._run_plan(plan, feeds, options, run_metadata)

        return run

    def partial_run_setup(self, fetches: Any, feeds: Sequence[Any] | None = None) -> str:
        """Begins a step that `partial_run` feeds and fetches bit by bit; returns its handle."""
        plan = plan_fetches(self._graph, fetches)
        keys = [part for feed in feeds or () for part in feed_keys_for_partial_run(feed)]
        feed_names = [feedable(self._graph, key).name for key in keys]
        self._extend_graph()
        fetch_names = [tensor.name for tensor in plan.tensors]
        target_names = [operation.name for operation in plan.operations]
        with _ClientErrors(self._graph):
            return self._master.partial_run_setup(self._handle, feed_names, fetch_names, target_names)

    def partial_run(self, handle: str, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """One more part of a partial run: gives some feeds, returns some fetches."""
        if self._closed:
            raise RuntimeError("Attempted to use a closed Session.")
        plan = plan_fetches(self._graph, fetches)
        self._extend_graph()
        if plan.operations:
            raise RuntimeError("A partial run's fetches must be tensors; operations run when it is complete.")
        feeds = {
            tensor.name: self._slot(tensor).convert(value)
            for tensor, value in feed_items(self._graph, feed_dict or {})
        }
        names = [tensor.name for tensor in plan.tensors]
        with _ClientErrors(self._graph):
            values, _ = self._master.run_step(self._handle, feeds, names, (), None, handle)
        return plan.build([_fetched(value) for value in values])

    def list_devices(self) -> list[DeviceAttributes]:
        """The devices of all tasks that answer.

        Raises:
          CancelledError: the session has been closed.
        """
        self._check_callable()
        self._begin()
        found = self._master.list_devices(self._handle)
        return [
            DeviceAttributes(device.name, device.device_type, device.memory_limit, device.incarnation)
            for device in (*found.local, *found.remote)
        ]

    def _has_durable_tasks(self) -> bool:
        """Whether a task that answers keeps its variables when its process dies. See runtime/durability.md.

        Raises:
          CancelledError: the session has been closed.
        """
        self._check_callable()
        self._begin()
        found = self._master.list_devices(self._handle)
        return bool(lineage_of(device.description for device in (*found.local, *found.remote)))

    def close(self) -> None:
        """Cancels running steps and frees what the session holds. Harmless when repeated or the server is dead."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            handle, self._handle = self._handle, ""
        self._plans.clear()
        if handle:
            try:
                self._master.close_session(handle)
            except errors.OpError as error:
                # The server is gone or has dropped the session: nothing is left to close.
                logging.getLogger("dtf").debug("closing a session: %s", error.message)
        server.release_master(self._master)

    def as_default(self) -> AbstractContextManager[Any]:
        """A context in which this is the default session of `Tensor.eval` and `Operation.run`. Does not close it."""
        return default_session_stack.using(self)

    def __del__(self) -> None:
        # At the interpreter's end modules are already gone; a local session's state is freed with the
        # process.
        if not getattr(self, "_closed", True) and not self._target and not sys.is_finalizing():
            self.close()

    def _make_callable_from_options(self, callable_options: Any) -> Callable[..., list[Any]]:
        """A function of the feeds of a CallableOptions, in order, that returns the list of its fetches."""
        options = config_pb2.CallableOptions.FromString(callable_options.SerializeToString())
        self._extend_graph()
        with _ClientErrors(self._graph):
            callable_handle = self._master.make_callable(self._handle, options)
        slots = [self._slot(feedable(self._graph, name)) for name in options.feed]

        def run(*feeds: Any, run_metadata: Any = None) -> list[Any]:
            self._check_callable()
            if len(feeds) != len(slots):
                raise TypeError(f"the callable takes {len(slots)} feed values, but {len(feeds)} were given")
            arrays = [slot.convert(value) for slot, value in zip(slots, feeds, strict=True)]
            with _ClientErrors(self._graph):
                values, metadata = self._master.run_callable(self._handle, callable_handle, arrays)
            if run_metadata is not None and metadata is not None:
                run_metadata.CopyFrom(metadata)
            return [_fetched(value) for value in values]

        return run

    def forget_handle(self, handle: str) -> None:
        """Schedules the deletion of a kept tensor, because its last TensorHandle is gone."""
        if not self._closed:
            self._dead_handles.append(handle)

    def _delete_dead_handles(self) -> None:
        dead, self._dead_handles = self._dead_handles, []
        for handle in dead:
            delete(self, handle)

    def _check_callable(self) -> None:
        if self._closed:
            raise errors.CancelledError.of("Session has been closed.")

    def _run_new(
        self, key: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None, options: Any, run_metadata: Any
    ) -> Any:
        items = list(feed_items(self._graph, feed_dict or {}))
        plan = self._plan(fetches, [tensor for tensor, _ in items])
        if self._graph.version == 0:
            raise RuntimeError("The Session graph is empty. Add operations to the graph before calling run().")
        if key is not None:
            if len(self._plans) >= _PLANS_MAX:
                self._plans.clear()
            self._plans[key] = plan
        return self._run_plan(plan, [value for _, value in items], options, run_metadata)

    def _plan(self, fetches: Any, feeds: Sequence[Tensor]) -> _Plan:
        plan = plan_fetches(self._graph, fetches)
        slots = tuple(self._slot(tensor) for tensor in feeds)
        position = {tensor: index for index, tensor in enumerate(feeds)}
        fetched = [tensor for tensor in plan.tensors if tensor not in position]
        return _Plan(
            slots,
            plan,
            tuple(tensor.name for tensor in fetched),
            tuple(operation.name for operation in plan.operations),
            tuple(position.get(tensor) for tensor in plan.tensors),
            tuple(
                (index, tensor.op.inputs[0].dtype.base_dtype)
                for index, tensor in enumerate(fetched)
                if tensor.op.type in HANDLE_OPS
            ),
        )

    def _slot(self, tensor: Tensor) -> FeedSlot:
        slot = self._slots.get(tensor)
        if slot is None:
            slot = self._slots[tensor] = FeedSlot(tensor)
        return slot

    def _run_plan(self, plan: _Plan, values: Sequence[Any], options: Any, run_metadata: Any) -> Any:
        feeds = {slot.name: slot.convert(value) for slot, value in zip(plan.slots, values)}  # noqa: B905 (hot)
        if self._sent_nodes != self._graph.version or not self._handle:
            self._extend_graph()
        if plan.fetch_names or plan.target_names:
            if options is None and run_metadata is not None:
                options = config_pb2.RunOptions()
            started = time.perf_counter()
            asked, is_measured = options, self._cost_model.is_due((*plan.fetch_names, *plan.target_names))
            if is_measured and run_metadata is not None:
                options = self._cost_model.measured(options)
            try:
                if step_traces.wish is None or options is not None:
                    values, metadata = self._master.run_step(
                        self._handle, feeds, plan.fetch_names, plan.target_names, options
                    )
                else:
                    values, metadata = self._run_for_wish(step_traces.wish, feeds, plan)
            except errors.OpError as error:
                if self._closed and not self._target and isinstance(error, errors.FailedPreconditionError):
                    self._check_callable()  # closed by another thread at the same time
                raise _as_client_error(self._graph, error) from error.__cause__
            if not this_thread.is_helper:
                measures.runs.add(time.perf_counter() - started)
                notes.runs += 1
            if run_metadata is not None and metadata is not None:
                if is_measured:
                    self._cost_model.add_costs(metadata, asked)
                run_metadata.CopyFrom(metadata)
            results = [_fetched(value) for value in values]
            for index, dtype in plan.kept:
                results[index] = TensorHandle(results[index], dtype, self)
        else:
            results = []
        if feeds and any(index is not None for index in plan.fed_fetches):
            fetched = iter(results)
            given = list(feeds.values())
            results = [next(fetched) if index is None else given[index] for index in plan.fed_fetches]
        return plan.fetches.build(results)

    def _run_for_wish(self, wish: Wish, feeds: dict[str, Any], plan: _Plan) -> tuple[Sequence[Any], Any]:
        """A run while the supervisor wishes for traces; whether this one is traced is the wish's decision."""
        key = (*plan.fetch_names, *plan.target_names)
        is_traced = step_traces.is_wanted(wish) and wish.begin(key)
        options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE) if is_traced else None
        start_ns = time.time_ns()
        values, metadata = self._master.run_step(self._handle, feeds, plan.fetch_names, plan.target_names, options)
        wish.ran(key, start_ns, time.time_ns(), metadata.step_stats if is_traced and metadata is not None else None)
        return values, None

    def _begin(self) -> None:
        """Makes the session at the master, without nodes: errors in the graph are reported by the first run."""
        with self._lock:
            if not self._handle and not self._closed:
                self._handle, self._graph_version = self._master.create_session(
                    graph_pb2.GraphDef(versions=self._graph.as_graph_def().versions), self._config, self._target
                )

    def _extend_graph(self) -> None:
        """Sends what the graph grew by; makes the session at the first call."""
        with self._lock:
            if self._closed:
                raise RuntimeError("Attempted to use a closed Session.")
            if self._handle and self._graph.version == self._sent_nodes:
                return
            graph_def = self._graph.as_graph_def(from_version=self._sent_nodes)
            with _ClientErrors(self._graph):
                if not self._handle:
                    self._handle, self._graph_version = self._master.create_session(
                        graph_def, self._config, self._target
                    )
                else:
                    self._graph_version = self._master.extend_session(
                        self._handle, graph_def, self._graph_version
                    )
            self._sent_nodes += len(graph_def.node)


class Session(BaseSession):
    """A session; as a context manager also the default session, and its graph the default graph, closed at the end.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/Session
    """

    def __init__(self, target: str | bytes = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._contexts: list[AbstractContextManager[Any]] = []

    def __enter__(self) -> Session:
        if self._contexts:
            raise RuntimeError(
                "Session context managers are not re-entrant. Use `Session.as_default()` to enter a session several "
                "times."
            )
        for context in (self._graph.as_default(), self.as_default()):
            context.__enter__()
            self._contexts.append(context)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, errors.OpError):
            logging.getLogger("dtf").error("Session closing due to error %s", error)
        try:
            for _ in range(2):
                self._contexts.pop().__exit__(kind, error, traceback)
        finally:
            self.close()

    @staticmethod
    def reset(target: str, containers: Sequence[str] | None = None, config: Any = None) -> None:
        """Closes all sessions of the server at `target` and empties resource containers of all its tasks.

        Args:
          containers: their names; the default container if none is given.

        Raises:
          OpError: a task could not be reached.
        """
        if containers is not None and (isinstance(containers, str) or not all(isinstance(c, str) for c in containers)):
            raise TypeError("containers must be a list of strings")
        master = server.find_master(target, config if config is not None else config_pb2.ConfigProto())
        try:
            master.reset(list(containers or ()))
        finally:
            server.release_master(master)


class InteractiveSession(BaseSession):
    """A session that is the default one from its construction until `close`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/InteractiveSession
    """

    _count_lock = threading.Lock()
    _active_session_count = 0  # guarded by _count_lock

    def __init__(self, target: str | bytes = "", graph: Graph | None = None, config: Any = None) -> None:
        super().__init__(target, graph, config)
        self._count(1)
        self._contexts: list[AbstractContextManager[Any]] = []
        explicit = [graph.as_default()] if graph is not None else []
        for context in (*explicit, self.as_default()):
            context.__enter__()
            self._contexts.append(context)

    def close(self) -> None:
        """As `Session.close`; the default session is again what it was."""
        if not self._closed:
            self._count(-1)
        super().close()
        while self._contexts:
            with contextlib.suppress(AssertionError):  # a newer one has been opened since, and remains
                self._contexts.pop().__exit__(None, None, None)

    @staticmethod
    def _count(change: int) -> None:
        with InteractiveSession._count_lock:
            is_second = change > 0 and InteractiveSession._active_session_count > 0
            InteractiveSession._active_session_count = max(InteractiveSession._active_session_count + change, 0)
        if is_second:
            warnings.warn(
                "An interactive session is already active. This can cause out-of-memory errors in some cases. You must "
                "explicitly call `InteractiveSession.close()` to release resources held by the other session(s).",
                stacklevel=3,
            )


class _ClientErrors:
    """A context that gives OpErrors the operation of the client's graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if isinstance(error, errors.OpError):
            raise _as_client_error(self._graph, error) from error.__cause__


def _as_client_error(graph: Graph, error: errors.OpError) -> errors.OpError:
    """The same error with the client's operation that the message names, if its graph has it."""
    found = _NODE_IN_MESSAGE.search(error.message)
    name = found[1] if found else getattr(error.node_def, "name", None)
    op = None
    for candidate in () if name is None else (name, _PARTITION_SUFFIX.sub("", name)):
        with contextlib.suppress(KeyError, ValueError):  # it may be a node that the runtime added
            op = graph.get_operation_by_name(candidate)
            break
    node_def = op.node_def if op is not None else error.node_def
    client_error = errors.error_from_code(error.error_code, error.message, node_def, op)
    client_error.derived = error.derived
    return client_error


def _fetched(value: Any) -> Any:
    """Converts a fetched value for the caller: scalars become numbers or strings, arrays become
    writable."""
    if type(value) is np.ndarray:
        if value.ndim == 0:
            return value[()]
        if not value.flags.writeable:
            return value.copy()  # it shows the memory of a message
    return value


def _plan_key(fetches: Any, feed_dict: Any) -> Any:
    """The key of this call's plan, or None if it fetches or feeds an unusual object."""
    structure = _structure_key(fetches)
    if structure is None or not feed_dict:
        return structure
    for key in feed_dict:
        if type(key) is not Tensor:
            return None
    return structure, tuple(feed_dict)


def _structure_key(fetches: Any) -> Any:
    """A hashable form of nested lists, tuples and dictionaries of plain fetches, which tells any two apart."""
    kind = type(fetches)
    if kind is Tensor or kind is Operation or kind is Variable or kind is str:
        return fetches
    if kind is list or kind is tuple:
        parts = [_structure_key(part) for part in fetches]
    elif kind is dict:
        parts = [tuple(fetches), *[_structure_key(part) for part in fetches.values()]]
    else:
        return None
    return None if None in parts else (kind, *parts)


_sessions: weakref.WeakSet[BaseSession] = weakref.WeakSet()
_masters_of_parent: list[Any] = []
"""Kept, since their end would end connections of the parent."""


def _begin_anew() -> None:
    """In a forked process: sessions at servers are the parent's. A session without a server is a copy, which is whole
    only if no other thread was in the runtime.
    """
    for session in list(_sessions):
        session._lock = threading.Lock()
        if session._target or not forks.was_quiet():
            _masters_of_parent.append(session._master)
            session._master = server.MasterOfParent()


forks.in_child(_begin_anew)
