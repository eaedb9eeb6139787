"""The seams of the runtime: masters, workers and the exchange of a step's values, wherever they run.

Owns Protocols, and the values that cross them. `master.Master`, the server's `InProcessMaster` and rpc's `RemoteMaster`
are Masters; `worker.LocalWorker` and rpc's `RemoteWorker` are Workers. So a session cannot tell a local master from a
remote one, nor a master a local task from a remote one. A `StepExchange` moves the values of one step at one task:
`rendezvous.StepRendezvous` keeps them until a receiver asks (TensorFlow's RecvTensor), `push_exchange.PushExchange`
sends them unasked. Kernels and compiled partitions know the Protocol alone. A test holds each twin to its Protocol,
defaults included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, TypeVar, overload

if TYPE_CHECKING:
    from dtf.run.threads.cancellation import CancellationManager
    from dtf.wire import errors
    from dtf.wire.pb import config_pb2, graph_pb2, step_stats_pb2, tensorflow_server_pb2, worker_pb2

__all__ = [
    "Answer", "Cancel", "Device", "DeviceList", "Done", "GraphResult", "Key", "Master", "Membership", "Outputs",
    "PreparedResult", "Pushed", "Rest", "ServingMaster", "ServingWorker", "StepExchange", "StepResult", "Value",
    "Worker",
]  # fmt: skip

Value: TypeAlias = object
"""A tensor in this process: an array, a numpy scalar, bytes, a `ResourceHandle`, a variant, what a device's backend
keeps, an unread `Variable`, or `kernels.DEAD`. The seams pass it on and do not look into it.
"""

Outputs: TypeAlias = object
"""What a kernel gives: the value of its output, or a sequence of the values of several."""

Answer = TypeVar("Answer", contravariant=True)


class Done(Protocol[Answer]):
    """Takes the answer to a call: called once, from any thread, with a value or with an error."""

    @overload
    def __call__(self, value: Answer, /) -> None: ...

    @overload
    def __call__(self, *, error: errors.OpError) -> None: ...


#: Stops what has been started; does nothing when that is over.
Cancel: TypeAlias = Callable[[], None]


class Device(NamedTuple):
    """A device as GetStatus reports it.

    Attributes:
      name: the full name, such as "/job:ps/replica:0/task:0/device:CPU:0".
      device_type: "CPU", "GPU" ...
      memory_limit: bytes.
      incarnation: random and not zero, new with every start of the task: a client with another number spoke to a former
        self.
      description: what is known of the hardware; "" for a CPU.
    """

    name: str
    device_type: str = "CPU"
    memory_limit: int = 256 << 20
    incarnation: int = 0
    description: str = ""


class Membership(NamedTuple):
    """A complete group: its epoch, and its members' devices in the order of their ranks."""

    epoch: int
    members: tuple[Device, ...]


class DeviceList(NamedTuple):
    """What `Master.list_devices` found: devices of the master's own task, and of all others."""

    local: tuple[Device, ...]
    remote: tuple[Device, ...]


class GraphResult(NamedTuple):
    """What one partition gives: values by rendezvous key, and StepStats and its graph if they were asked for."""

    values: dict[str, Value]
    step_stats: step_stats_pb2.StepStats | None = None
    graph_def: graph_pb2.GraphDef | None = None


Key: TypeAlias = int | str
"""The name of a value within a step: its rendezvous key, or the number that two tasks have agreed on for it."""

Rest: TypeAlias = tuple[Sequence[int], Sequence[Value]]
"""The numbers and values that are pushed with an answer."""


class PreparedResult(NamedTuple):
    """What a prepared partition gives: values in the order of its recv keys, and what is pushed with them."""

    values: Sequence[Value]
    rest: Rest | None = None


class StepResult(NamedTuple):
    """What a step gives its client: the values of its fetches in order, and metadata if options were given."""

    values: list[Value]
    metadata: config_pb2.RunMetadata | None = None


class Pushed:
    """Values for one task, from the task with the number `source` in the step. `keys` has the number of each value that
    the tasks have agreed on, the rendezvous key of each other one.
    """

    __slots__ = ("keys", "run_id", "source", "step_id", "values")

    def __init__(
        self, run_id: int, step_id: int, source: int, keys: Sequence[Key], values: Sequence[Value]
    ) -> None:
        self.run_id = run_id
        self.step_id = step_id
        self.source = source
        self.keys = keys
        self.values = values


class StepExchange(Protocol):
    """How the values of one step reach and leave one task. Any thread may call any method at any time."""

    def send(self, key: Key, value: Value, task: str | None = None) -> None:
        """Takes a value for `task`, or for this one if that is None. Never waits; `flush` sees that it leaves.

        Raises:
          InternalError: the key was sent before and not yet received.
          UnavailableError: the value had to leave at once, and the task cannot be reached.
          OpError: why the step was aborted.
        """

    def send_grouped(self, key: Key, value: Value, task: str) -> None:
        """As `send`, of one of several values that the task waits for together (see `piggyback`)."""

    def send_piggybacked(self, key: Key, value: Value, task: str) -> None:
        """As `send`, of a small value that the task uses only together with a later one (see `piggyback`)."""

    def recv(self, key: str, done: Done[Value], task: str | None = None) -> None:
        """Calls done(value) when `task` (None: this one) has sent the key; done(error=...) when the step is aborted
        before. The value may be `kernels.DEAD`.
        """

    def hold_back(self, is_held: Callable[[], bool]) -> None:
        """Lets no value leave for another task before `flush` while is_held() is true in the thread that sends it."""

    def computing(self) -> None:
        """Says that the next values take long to make, so that each leaves without waiting for more."""

    def flush(self, is_last: bool = False) -> None:
        """Sends all values that have gathered for other tasks. `is_last`: the step has made its last one.

        Raises:
          UnavailableError: a task cannot be reached.
        """

    def abort(self, error: errors.OpError) -> None:
        """Fails every waiting and later receive with `error`. Only the first call counts."""



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
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str] = (),
        options: config_pb2.RunOptions | None = None,
        partial_run_handle: str = "",
        request_id: int = 0,
        cancellation: CancellationManager | None = None,
    ) -> StepResult:
        """Runs one step."""

    def partial_run_setup(
        self, handle: str, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str], request_id: int = 0
    ) -> str:
        """Starts a step that several calls of `run_step` feed and fetch; its handle."""

    def make_callable(self, handle: str, options: config_pb2.CallableOptions, request_id: int = 0) -> int:
        """Compiles a signature; a handle for `run_callable`."""

    def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value], request_id: int = 0
    ) -> StepResult:
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
        """Closes a session whose client has gone; False: another client uses it."""

    def has_session(self, handle: str) -> bool:
        """Whether the session is open."""

    def start_callable(
        self,
        handle: str,
        callable_handle: int,
        feeds: Sequence[Value],
        on_cancel: Callable[[Cancel], None],
        done: Done[StepResult],
        request_id: int = 0,
    ) -> None:
        """Runs a callable: done(StepResult) or done(error=...), here or later in another thread."""


class Worker(Protocol):
    """One task, as masters and other workers see it."""

    def get_status(self, timeout_s: float | None = None) -> list[Device]:
        """The devices of the task."""

    def heartbeat(self, done: Done[object], timeout_s: float | None = None) -> None:
        """Asks whether the task answers: done(anything) or done(error=...)."""

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

    def delete_worker_session(self, handle: str, done: Done[object], timeout_s: float | None = None) -> None:
        """Has the task forget a session: done(anything) or done(error=...)."""

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
        sends: Sequence[tuple[str, Value]],
        recv_keys: Sequence[str],
        options: worker_pb2.ExecutorOpts | None,
        done: Done[GraphResult],
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

    def run_prepared(self, run_id: int, step_id: int, values: Sequence[Value], done: Done[PreparedResult]) -> Cancel:
        """Runs what was prepared: done(PreparedResult) or done(error=...)."""

    def open_push(self, on_lost: Callable[[], None]) -> bool:
        """Whether values can be pushed to the task; `on_lost` is called when they no longer can."""

    def push(self, pushed: Pushed) -> None:
        """Brings values of a step to the task."""

    def cleanup_graph(self, step_id: int) -> None:
        """Has the task forget a step. Does not wait."""

    def recv_tensor(self, step_id: int, key: str, done: Done[Value]) -> Cancel:
        """A value from the step's rendezvous at the task: done(value) or done(error=...)."""

    def complete_group(self, group_key: int, group_size: int, device: Device, done: Done[Membership]) -> Cancel:
        """Asks the leader of a collective group: done(Membership) or done(error=...)."""


class ServingWorker(Worker, Protocol):
    """A worker as the master and the services of its own task see it."""

    def run_graph(
        self,
        session_handle: str,
        graph_handle: str,
        step_id: int,
        sends: Sequence[tuple[str, Value]],
        recv_keys: Sequence[str],
        options: worker_pb2.ExecutorOpts | None,
        done: Done[GraphResult],
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
        values: Sequence[Value],
        done: Done[PreparedResult],
        cancellation: CancellationManager | None = None,
    ) -> Cancel:
        """As `Worker.run_prepared`; `cancellation` goes to `stop_step`."""

    def stop_step(self, step_id: int, cancellation: CancellationManager) -> None:
        """Cancels what a call with this `cancellation` runs, also before that call returns."""

    def send(self, step_id: int, key: str, value: Value) -> None:
        """Puts a value into a step's rendezvous."""

    def refuse_group(self, group_key: int, error: errors.OpError) -> None:
        """As its leader, ends a collective group that is not complete yet."""

    def step_sequence(self, graph_keys: Sequence[int]) -> dict[int, int]:
        """The next step id of each collective graph."""

    def has_session(self, handle: str) -> bool:
        """Whether the session is known to the task."""

    def abandon_session(self, handle: str) -> bool:
        """Forgets a session whose master has gone; False: a step of it runs."""

    def shut_down(self) -> None:
        """Cancels every step and forgets every session."""
