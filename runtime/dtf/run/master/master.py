"""Master: the sessions of one task.

`Master` is what a client talks to, here directly and over gRPC through `rpc.RemoteMaster`, which has the same methods.
Owns the sessions by handle, and which requests have come before. What a session does is in `master_session`.

    master = Master("/job:localhost/replica:0/task:0", LocalTasks(...))
    handle, version = master.create_session(graph_def, config, target="")
    values, metadata = master.run_step(handle, {"x:0": 1.0}, ["y:0"], [])

Only tasks that a step uses are ever contacted, when a step first uses them.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from dtf.run.interfaces import Cancel, Device, DeviceList, Done, StepResult, Value
from dtf.run.master.session_tasks import LIST_DEVICES_TIMEOUT_S, SessionTasks, Tasks
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.request_ids import RecentRequestIds
from dtf.wire import errors, limits
from dtf.wire.pb import config_pb2, graph_pb2

if TYPE_CHECKING:
    from dtf.run.master.master_session import MasterSession

_REQUESTS_REMEMBERED_MAX = 10_000
_RESET_TIMEOUT_S = 30.0


TasksOfCluster = Callable[[config_pb2.ConfigProto, str], Tasks]
"""(the config with its cluster_def, the session's target) -> the tasks. Raises InvalidArgumentError if the cluster does
not have this server.
"""


class Master:
    """All sessions whose target is this task. Its lock guards the dictionary of sessions."""

    def __init__(
        self,
        tasks: Tasks,
        default_config: config_pb2.ConfigProto | None = None,
        tasks_of_cluster: TasksOfCluster | None = None,
    ) -> None:
        """A master.

        Args:
          tasks: the tasks that this master can reach, its own among them.
          default_config: settings for sessions that leave them unset.
          tasks_of_cluster: finds the tasks of a session that brings its cluster; None where sessions are local, and
            where the threads are therefore the session's own.
        """
        self._tasks = tasks
        self._default_config = default_config
        self._tasks_of_cluster = tasks_of_cluster
        self._lock = threading.Lock()
        self._sessions: dict[str, MasterSession] = {}
        self._gone: errors.OpError | None = None
        self._request_ids = RecentRequestIds(_REQUESTS_REMEMBERED_MAX)

    def create_session(
        self, graph_def: graph_pb2.GraphDef, config: config_pb2.ConfigProto | None = None, target: str = ""
    ) -> tuple[str, int]:
        """Makes a session and returns (handle, graph version). Contacts no task.

        Raises:
          InvalidArgumentError: the config or the graph cannot be used.
          ResourceExhaustedError: there are `limits.SESSIONS` already, or the graph stands for too much.
        """
        with self._lock:
            limits.SESSIONS.check(len(self._sessions) + 1, "The task cannot open another session: their number")
        merged = config_pb2.ConfigProto()
        if self._default_config is not None:
            merged.CopyFrom(self._default_config)
        if config is not None:
            merged.MergeFrom(config)
        from dtf.run.master.master_session import MasterSession  # which a ps, the master of nobody, does without

        handle = secrets.token_hex(8)  # who knows it may use the session
        session = MasterSession(handle, self._tasks_for(merged, target), merged)
        try:
            session.graph.add(graph_def)
        except errors.OpError:
            session.close()
            raise
        with self._lock:
            self._sessions[handle] = session
        return handle, session.graph.version

    def extend_session(self, handle: str, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """Adds nodes to the session's graph and returns its new version.

        Raises:
          AbortedError: `version` is not the current one, or there is no such session.
          InvalidArgumentError: a node is there already.
        """
        return self._session(handle).graph.extend(graph_def, version)

    def run_step(
        self,
        handle: str,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        options: config_pb2.RunOptions | None = None,
        partial_run_handle: str = "",
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> StepResult:
        """Runs one step.

        `cancellation` stops the step when its caller has gone.

        Raises:
          OpError: what failed first; its message names the op and, if it is another one, the task.
        """
        session = self._session(handle)
        self._request_ids.check(request_id, "RunStep (Master)")
        if partial_run_handle:
            return StepResult(session.run_partial(partial_run_handle, feeds, fetches, cancellation))
        return session.run(feeds, fetches, targets, options, cancellation)

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """Starts a step that is fed and fetched bit by bit; the handle goes to `run_step`."""
        session = self._session(handle)
        self._request_ids.check(request_id, "PartialRunSetup")
        return session.setup_partial(feeds, fetches, targets)

    def make_callable(self, handle: str, options: config_pb2.CallableOptions, request_id: int = 0) -> int:
        """Compiles a signature now and returns a handle for `run_callable`."""
        session = self._session(handle)
        self._request_ids.check(request_id, "MakeCallable")
        return session.make_callable(options)

    def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value], request_id: int = 0
    ) -> StepResult:
        """Runs a callable for a client of this process, which waits; `feeds` in the order of its options."""
        session = self._session(handle)
        self._request_ids.check(request_id, "RunCallable")
        return session.run_callable(callable_handle, feeds)

    def start_callable(
        self,
        handle: str,
        callable_handle: int,
        feeds: Sequence[Value],
        on_cancel: Callable[[Cancel], None],
        done: Done[StepResult],
        request_id: int = 0,
    ) -> None:
        """Runs a callable for a service: done(StepResult) or done(error=OpError), here or later in another
        thread. `on_cancel` is given the function that stops the step.

        Raises:
          OpError: it has not even begun.
        """
        session = self._session(handle)
        self._request_ids.check(request_id, "RunCallable")
        session.start_callable(callable_handle, feeds, on_cancel, done)

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
            raise errors.AbortedError.of(f"Session {handle} is not found. Possibly, this master has restarted.")
        session.close()

    def has_session(self, handle: str) -> bool:
        """Whether the session is open."""
        return handle in self._sessions

    def abandon_session(self, handle: str) -> bool:
        """Closes a session whose client has gone. False: a step has run in it since the last call."""
        session = self._sessions.get(handle)
        if session is not None and session.take_use():
            return False
        with contextlib.suppress(errors.OpError):  # it has been closed meanwhile, or a task has gone too
            self.close_session(handle)
        return True

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
                raise errors.InvalidArgumentError.of(f"Session {handle} is not found.")
            return DeviceList(tuple(session.list_devices()), ())
        tasks = SessionTasks("", self._tasks, config_pb2.ConfigProto())
        local: list[Device] = []
        remote: list[Device] = []
        for device in tasks.list_devices(LIST_DEVICES_TIMEOUT_S):
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
        """Closes all sessions, as when the server stops: their clients have lost their master, UnavailableError."""
        gone = errors.UnavailableError.of(f"{self._tasks.own_task} has shut down")
        with self._lock:
            self._gone = gone
            sessions = list(self._sessions.values())
            self._sessions.clear()
        for session in sessions:
            session.close(gone)

    def _session(self, handle: str) -> MasterSession:
        session = self._sessions.get(handle)
        if session is None:
            if self._gone is not None:
                raise self._gone
            raise errors.AbortedError.of(f"Session {handle} is not found.")
        return session

    def _tasks_for(self, config: config_pb2.ConfigProto, target: str) -> Tasks:
        if self._tasks_of_cluster is not None and (
            config.use_per_session_threads or config.session_inter_op_thread_pool
        ):
            raise errors.InvalidArgumentError.of(
                "ConfigProto.use_per_session_threads and session_inter_op_thread_pool: the threads of a server belong "
                "to all of its sessions.",
            )
        if not config.cluster_def.job:
            return self._tasks
        if self._tasks_of_cluster is None:
            raise errors.InvalidArgumentError.of(
                "ConfigProto.cluster_def needs a session whose target is a server of that cluster."
            )
        return self._tasks_of_cluster(config, target)
