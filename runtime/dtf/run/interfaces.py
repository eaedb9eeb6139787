"""The seams of the runtime: what a master, a worker and an answer are, wherever they run.

Owns Protocols alone. `master.Master`, the server's `InProcessMaster` and rpc's `RemoteMaster` are Masters;
`worker.LocalWorker` and rpc's `RemoteWorker` are Workers. So a session cannot tell a local master from a remote one,
nor a master a local task from a remote one. A test holds each twin to its Protocol, defaults included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from dtf.run.exchange.push import Pushed
    from dtf.run.executor.step import Device
    from dtf.run.master.master import DeviceList
    from dtf.run.threads.cancellation import CancellationManager
    from dtf.wire import errors
    from dtf.wire.pb import config_pb2, graph_pb2, tensorflow_server_pb2, worker_pb2

__all__ = ["Cancel", "Done", "Master", "ServingMaster", "ServingWorker", "Worker"]

#: Takes an answer, once: `done(value)`, with as many values as the call has, or `done(error=OpError)`.
Done: TypeAlias = Callable[..., None]
#: Stops what has been started; does nothing when that is over.
Cancel: TypeAlias = Callable[[], None]


class Master(Protocol):
    """The sessions of one task, as a client sees them. Every method raises OpError subclasses only."""

    def create_session(
        self, graph_def: graph_pb2.GraphDef, config: config_pb2.ConfigProto | None = None, target: str = ""
    ) -> tuple[str, int]:
        """Makes a session: (handle, version of its graph)."""

    def extend_session(self, handle: str, graph_def: graph_pb2.GraphDef, version: int) -> int:
        """Adds nodes to the session's graph, which must be of `version`; its new version."""

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
        """Runs one step: (values of `fetches` in order, metadata if `options` were given)."""

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """Starts a step that several calls of `run_step` feed and fetch; its handle."""

    def make_callable(self, handle: str, options: config_pb2.CallableOptions, request_id: int = 0) -> int:
        """Compiles a signature; a handle for `run_callable`."""

    def run_callable(
        self,
        handle: str,
        callable_handle: int,
        feeds: Sequence[Any],
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> tuple[list[Any], config_pb2.RunMetadata | None]:
        """Runs a callable; `feeds` in the order of its options."""

    def release_callable(self, handle: str, callable_handle: int) -> None:
        """Forgets a callable."""

    def close_session(self, handle: str) -> None:
        """Cancels the session's steps and frees what its tasks hold for it."""

    def list_devices(self, handle: str = "") -> DeviceList:
        """The devices of every task that answers."""

    def reset(self, containers: Sequence[str] = (), device_filters: Sequence[str] = ()) -> None:
        """Closes all sessions and empties the resource containers of all tasks."""

    def close(self) -> None:
        """Closes all sessions of a local master; ends the connection to a remote one."""


class ServingMaster(Master, Protocol):
    """A master as the services of its own task see it."""

    def abandon_session(self, handle: str) -> bool:
        """Closes a session whose client has gone; False: somebody else uses it."""

    def run_callable_async(
        self,
        handle: str,
        callable_handle: int,
        feeds: Sequence[Any],
        on_cancel: Callable[[Cancel], None],
        done: Done,
    ) -> None:
        """Runs a callable: done(values) or done(error=...), here or later in another thread."""


class Worker(Protocol):
    """One task, as masters and other workers see it."""

    def get_status(self, timeout_s: float | None = None) -> list[Device]:
        """The devices of the task."""

    def get_status_async(self, done: Done, timeout_s: float | None = None) -> None:
        """A heartbeat: done(anything) or done(error=...)."""

    def cleanup_all(self, containers: Sequence[str] = ()) -> None:
        """Empties resource containers; the default one if none is named."""

    def create_worker_session(
        self,
        handle: str,
        server_def: tensorflow_server_pb2.ServerDef | None = None,
        isolate: bool = False,
        master_task: str = "",
        master_incarnation: int = 0,
    ) -> None:
        """Makes a session known to the task."""

    def delete_worker_session(self, handle: str) -> None:
        """Has the task forget a session."""

    def delete_worker_session_async(self, handle: str, done: Done, timeout_s: float | None = None) -> None:
        """As `delete_worker_session`, without waiting."""

    def register_graph(
        self,
        session_handle: str,
        graph_def: graph_pb2.GraphDef,
        graph_options: config_pb2.GraphOptions | None = None,
        config: config_pb2.ConfigProto | None = None,
    ) -> str:
        """Gives the task a partition to run; its handle."""

    def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        """Has the task forget a partition."""

    def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sends: Sequence[tuple[str, Any]],
        recv_keys: Sequence[str],
        options: worker_pb2.ExecutorOpts | None,
        done: Done,
    ) -> Cancel:
        """Runs a partition: done(GraphResult) or done(error=...)."""

    def prepare(
        self,
        run_id: int,
        session_handle: str,
        graph_handle: str,
        send_keys: Sequence[str],
        recv_keys: Sequence[str],
        tasks: Sequence[str],
        home: int = -1,
    ) -> None:
        """Agrees that a registered partition will be run by `run_prepared`."""

    def run_prepared(self, run_id: int, step_id: int, values: Sequence[Any], done: Done) -> Cancel:
        """Runs what was prepared: done(values, rest) or done(error=...)."""

    def open_push(self, on_lost: Callable[[], None]) -> bool:
        """Whether values can be pushed to the task; `on_lost` is called when they no longer can."""

    def push(self, pushed: Pushed) -> None:
        """Brings values of a step to the task."""

    def cleanup_graph(self, step_id: int) -> None:
        """Has the task forget a step. Does not wait."""

    def recv_tensor(self, step_id: int, key: str, done: Done) -> Cancel:
        """A value from the step's rendezvous at the task: done(value) or done(error=...)."""

    def complete_group(self, group_key: int, group_size: int, device: Device, done: Done) -> Cancel:
        """Asks the leader of a collective group: done(Membership) or done(error=...)."""


class ServingWorker(Worker, Protocol):
    """A worker as the master and the services of its own task see it."""

    def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sends: Sequence[tuple[str, Any]],
        recv_keys: Sequence[str],
        options: worker_pb2.ExecutorOpts | None,
        done: Done,
        is_partial: bool = False,
        is_last_partial_run: bool = False,
        cancellation: CancellationManager | None = None,
    ) -> Cancel:
        """As `Worker.run_graph`; `is_partial` steps are fed and fetched by several calls. `cancellation` goes to
        `stop_step`.
        """

    def run_prepared(
        self,
        run_id: int,
        step_id: int,
        values: Sequence[Any],
        done: Done,
        cancellation: CancellationManager | None = None,
    ) -> Cancel:
        """As `Worker.run_prepared`; `cancellation` goes to `stop_step`."""

    def stop_step(self, step_id: int, cancellation: CancellationManager) -> None:
        """Cancels what a call with this `cancellation` runs, also before that call returns."""

    def send(self, step_id: int, key: str, value: Any) -> None:
        """Puts a value into a step's rendezvous."""

    def refuse_group(self, group_key: int, error: errors.OpError) -> None:
        """As its leader, ends a collective group that is not complete yet."""

    def step_sequence(self, graph_keys: Sequence[int]) -> dict[int, int]:
        """The next step id of each collective graph."""

    def logging(self, request: worker_pb2.LoggingRequest) -> worker_pb2.LoggingResponse:
        """The calls of past steps."""

    def tracing(self, request: worker_pb2.TracingRequest) -> worker_pb2.TracingResponse:
        """Starts a trace of the task."""

    def abandon_session(self, handle: str) -> bool:
        """Forgets a session whose master has gone; False: a step of it runs."""

    def shut_down(self) -> None:
        """Cancels every step and forgets every session."""
