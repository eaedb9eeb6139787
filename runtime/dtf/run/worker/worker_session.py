"""WorkerSession: what one session has at one task: its graphs, its resources, its peers, and the names of its devices.

Owns nothing that runs; `worker` starts steps in it. A session that brings a cluster of its own calls this task by
another name, so its devices have other names too; they are the same devices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from dtf.run.durability.kept import check_kept
from dtf.run.exchange.collective_groups import Collectives
from dtf.run.executor.executor import Executor
from dtf.run.executor.step import SessionState, StepContext
from dtf.run.interfaces import Cancel, Device, Done, Value, Worker
from dtf.run.state.resources import ResourceManager
from dtf.wire import errors
from dtf.wire.device import task_name, task_of
from dtf.wire.names import is_device_name, shown
from dtf.wire.pb import graph_pb2, tensorflow_server_pb2

Peers = Callable[[str], Worker]
"""Task name -> the Worker of that task. Raises InvalidArgumentError for a task that the cluster does not have."""


class ClusterPeers(Protocol):
    """The tasks of a cluster that a session brought."""

    def worker(self, task: str) -> Worker:
        """See `Peers`."""

    def close(self) -> None:
        """Ends the connections."""


class WorkerSession:
    """One session at this task.

    Attributes:
      devices: the task's, by the names that the session has for them.
      resources: the task's, or of the session's own.
      state: what its kernels keep from step to step.
      graphs: by handle.
      collectives: the groups of tasks that it has joined here (`collective_groups.Collectives`), set by the worker.
      collective_leader: the task that its configuration names for that, or "".
      peers: the tasks of a cluster that it brought, else None.
    """

    def __init__(
        self,
        handle: str,
        devices: Sequence[Device],
        resources: ResourceManager,
        cluster: ClusterPeers | None = None,
        master_task: str = "",
        master_incarnation: int = 0,
        durable_state: SessionState | None = None,
    ) -> None:
        """A session without graphs; `cluster` is None when it has the server's. `durable_state` is given where its
        resources outlive the process.
        """
        self.handle = handle
        self.devices = tuple(devices)
        self.resources = resources
        self.master_task = master_task
        self.master_incarnation = master_incarnation
        self.is_durable = durable_state is not None
        self.state = durable_state or SessionState()
        self.graphs: dict[str, RegisteredGraph] = {}
        self.was_used = False  # by a step, since it was last asked whether its master has gone
        self.collectives: Collectives | None = None
        self.collective_leader = ""
        self._cluster = cluster
        self.peers: Peers | None = None if cluster is None else cluster.worker
        self.peers_recv: Callable[..., Callable[[], None] | None] | None = None
        if cluster is not None:
            self.peers_recv = lambda task, step_id, key, done: recv_from(cluster.worker, task, step_id, key, done)

    def add_graph(self, graph_handle: str, graph_def: graph_pb2.GraphDef) -> None:
        """Compiles a partition.

        Raises:
          InvalidArgumentError: a node is meant for another task.
          InvalidArgumentError, NotFoundError: the graph cannot be run.
        """
        task = task_of(self.devices[0].name)
        for device in {node.device for node in graph_def.node}:
            if device and not is_device_name(device):
                raise errors.InvalidArgumentError.of(f"Malformed device specification {shown(device)}")
            if device and task_of(device) != task:
                raise errors.InvalidArgumentError.of(
                    f"The graph has nodes on {device}, but this session knows this task as {task}."
                )
        # The steps of a master in this task are usually bound to their feeds and fetches, and compiled so.
        is_deferred = self.master_task == task
        if self.is_durable:
            check_kept(graph_def, task)
        executor = Executor(
            graph_def, self.state, self.devices[0], is_deferred=is_deferred, is_durable=self.is_durable
        )
        self.graphs[graph_handle] = RegisteredGraph(executor, graph_def)

    def close(self) -> None:
        """Leaves all groups, and ends the connections to a cluster of its own."""
        if self.collectives is not None:
            self.collectives.close()
        # Graphs hold large constants, and no cycle keeps them for the garbage collector.
        self.collectives = None
        self.graphs.clear()
        if self._cluster is not None:
            self._cluster.close()


def devices_of_session(
    devices: Sequence[Device], server_def: tensorflow_server_pb2.ServerDef | None
) -> tuple[Device, ...]:
    """The devices of a task by the name that a ServerDef gives to the task, if it tells of a cluster. Raises
    InvalidArgumentError when the name is malformed.
    """
    if server_def is None or not server_def.cluster.job:
        return tuple(devices)
    try:
        task = task_name(server_def.job_name, server_def.task_index, server_def.replica)
    except ValueError as error:
        raise errors.InvalidArgumentError.of(f"Malformed ServerDef: {error}") from None
    return tuple(device._replace(name=_renamed(device.name, task)) for device in devices)


def _renamed(device: str, task: str) -> str:
    return f"{task}/{device.rpartition('/')[2]}"


class RegisteredGraph(NamedTuple):
    """A partition that the master gave, as it came and compiled."""

    executor: Executor
    graph_def: graph_pb2.GraphDef


class WorkerStep:
    """A step that runs here, and the session that it is one of."""

    __slots__ = ("session", "step")

    def __init__(self, step: StepContext, session: WorkerSession) -> None:
        self.step = step
        self.session = session

    def cancel(self, error: errors.OpError | None = None) -> None:
        """Stops the step, which then ends with `error` or another that is marked as derived."""
        if error is None:
            error = derived(errors.CancelledError.of(f"Step {self.step.step_id} was cancelled"))
        self.step.cancel(error)


def recv_from(peers: Peers | None, task: str, step_id: int, key: str, done: Done[Value]) -> Cancel | None:
    if peers is None:
        done(
            error=errors.InvalidArgumentError.of(f"There is no task {task} in a cluster of one; wanted {key}")
        )
        return None
    try:
        return peers(task).recv_tensor(step_id, key, done)
    except errors.OpError as error:
        done(error=error)
        return None


def derived(error: errors.OpError) -> errors.OpError:
    """The same error, now marked as one that follows from another."""
    error.derived = True
    return error
