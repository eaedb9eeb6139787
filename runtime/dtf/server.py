"""Server: one task of a cluster in this process, and where the master of a session is.

Owns the parts of a task (worker, master, connections to peers, the port) and their life from `start` to `stop`. gRPC is
in `rpc`, which is imported when the first server starts or the first session has a remote target.

    server = tf.train.Server({"ps": ["host1:2222"], "worker": ["host2:2222"]}, "ps", 0)
    server.join()                       # until the process is ended, or stop() is called

`find_master` is how a session reaches its master: in a runtime of its own ("" as target), in a server of this
process, without a socket between, or over gRPC.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dtf.wire import credentials, errors, forks
from dtf.wire.cluster import ClusterSpec, is_elastic, make_server_def, parse_target, split_address
from dtf.wire.device import task_name
from dtf.wire.durability import PLACES_VARIABLE, parse_places
from dtf.wire.pb import cluster_pb2, config_pb2, tensorflow_server_pb2

if TYPE_CHECKING:
    from pathlib import Path

    from dtf.places.place import PlaceOfTask
    from dtf.rpc.peers import Peers
    from dtf.run.durability.durable_resources import DurableResources
    from dtf.run.interfaces import Master, StepResult, Value, Worker
    from dtf.run.threads.cancellation import CancellationManager
    from dtf.wire.credentials import Credentials
    from dtf.wire.durability import Place

BIND_VARIABLE = "DTF_BIND"
"""The address at which servers of this process listen, when it is another than that by which others know them."""

DURABILITY_VARIABLE, DURABILITY_FOLDER_VARIABLE = "DTF_DURABILITY", "DTF_DURABILITY_DIR"
"""What a server keeps beyond its process, and where, unless its config says it."""

DURABILITY_PLACE_VARIABLE, DURABILITY_SILENCE_VARIABLE = "DTF_DURABILITY_PLACE", "DTF_DURABILITY_SILENCE"
"""Which of the places of its task a server is, and after how many seconds of silence another place counts as lost."""

_SILENCE_S = 2.0
_STOP_GRACE_S = 0.5
_SIGNAL_CHECK_PERIOD_S = 0.5
_LOCAL_TASK = "/job:localhost/replica:0/task:0"


class Server:
    """A task that is a worker for all masters of its cluster and a master for its own sessions.

    Several servers may run in one process. As a context manager it stops at the end of the block.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/Server
    """

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        """Listens at the address that the cluster gives this task, and starts to serve unless told not to.

        With `config.experimental.durability` = "process" (or DTF_DURABILITY=process) the variables of the task outlive
        its process: a server that is started again with the same folder goes on with them, and so do the sessions that
        use it. `config.experimental.durability_folder` (or DTF_DURABILITY_DIR) names the folder, in memory such as
        /dev/shm/NAME; use another one for each task and each training. With "host" one of the places in
        `durability_places` (DTF_DURABILITY_PLACES) serves, and another one is its backup; this returns when this
        process, at place `durability_place` (DTF_DURABILITY_PLACE), is the one that serves. See runtime/durability.md.

        With DTF_ELASTIC=1 in the environment, the tasks of this server's sessions learn from it which tasks there are.
        Two more things come from the environment: DTF_BIND, a host to listen at instead of the one in the cluster, such
        as 0.0.0.0 or an inner address; and, in DTF_TLS_CA, DTF_TLS_CERT and DTF_TLS_KEY, the files with which the
        server speaks TLS, and only to peers of the same authority (see `wire.credentials`).

        Args:
          server_or_cluster_def: a ServerDef, ClusterDef, ClusterSpec or dictionary.
          job_name, task_index: which task this is; may be left out where there is only one.
          protocol: "grpc".
          config: a ConfigProto that the sessions of this server start from.

        Raises:
          TypeError, ValueError: the arguments do not describe a task of the cluster.
          UnimplementedError: another protocol.
          UnknownError: the port is in use, or the address is another machine's.
          InvalidArgumentError: the address is malformed or its host name does not resolve.
          FailedPreconditionError: the TLS files cannot be used, or another process has the durable state.
        """
        from dtf.rpc.peers import Peers
        from dtf.rpc.service import Service
        from dtf.run.devices.listing import devices_of_task
        from dtf.run.exchange.collective_groups import default_leader
        from dtf.run.master.master import Master
        from dtf.run.threads.blas_threads import share_cores
        from dtf.run.worker.worker import LocalWorker

        self._server_def = make_server_def(server_or_cluster_def, job_name, task_index, protocol, config)
        if self._server_def.protocol not in ("", "grpc"):
            raise errors.UnimplementedError.of(
                f"The protocol {self._server_def.protocol!r} is not supported; use 'grpc'."
            )
        cluster = ClusterSpec(self._server_def.cluster)
        self._task = task_name(self._server_def.job_name, self._server_def.task_index)
        address = cluster.task_address(self._server_def.job_name, self._server_def.task_index)
        settings = self._server_def.default_session_config
        share_cores(_tasks_beside(cluster, address), settings.intra_op_parallelism_threads)
        self._credentials = credentials.from_environment()
        places = parse_places(
            settings.experimental.durability_places or os.environ.get(PLACES_VARIABLE, "")
        )
        durable, self._place = _durable_state(settings, self._task, places, self._credentials)
        if self._place is not None:
            address = places[self._task][self._place.resources.place].address
        self._worker = LocalWorker(devices_of_task(self._task, settings), None, self._peers_of_cluster, durable)
        self._places = {task: list(listed) for task, listed in places.items()}
        self._peers = Peers(cluster, self._task, self._worker, self._credentials, self._places, self._ask_place)
        self._worker.peers = self._peers.worker
        self._worker.learn_peers = self._peers.learn
        if is_elastic():
            self._peers.announced = self._server_def.cluster
        self._worker.collective_leader = settings.experimental.collective_group_leader or default_leader(
            self._peers.names
        )
        self._master = Master(self._peers, settings, self._tasks_of_cluster)
        host, port = split_address(address)
        bound = (os.environ.get(BIND_VARIABLE) if port else None) or host  # port 0: a server of its own
        place = f"[{bound}]:{port}" if ":" in bound else f"{bound}:{port}"
        self._service = Service(place, self._task, self._master, self._worker, self._credentials)
        self._address = f"[{host}]:{self._service.port}" if ":" in host else f"{host}:{self._service.port}"
        self._lock = threading.Lock()
        self._is_started = False
        self._stopped = threading.Event()
        self._generation = forks.generation()
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one task, on a free port of this machine."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def server_def(self) -> Any:
        """The ServerDef of this task."""
        return self._server_def

    @property
    def target(self) -> str:
        """What `tf.Session` takes to reach this server: "grpc://host:port"."""
        return f"grpc://{self._address}"

    def start(self) -> None:
        """Begins to serve. Harmless when it has begun.

        Raises:
          FailedPreconditionError: the server has been stopped.
        """
        with self._lock:
            if self._stopped.is_set():
                raise errors.FailedPreconditionError.of(f"The server of {self._task} has been stopped.")
            if not self._is_started:
                self._service.start()
                self._is_started = True
                with _servers_lock:
                    _servers[self._address] = self
        logging.getLogger("dtf").info("Started the server of %s at %s", self._task, self.target)

    def join(self) -> None:
        """Waits until `stop` is called; otherwise for ever, as in TensorFlow, which has no `stop`.

        SIGTERM does what it does to any process: it ends this one at once (a shell calls that status 143), or calls
        the program's own handler. It never lets this method return, because programs rely on that: what comes after
        `if job_name == "ps": server.join()` is often the worker's part, without an else.

        Raises:
          FailedPreconditionError: the server was started before this process was forked.
          SystemExit: a training of this process, which minds SIGTERM itself (see `train.preemption`), was told to go.
        """
        if self._generation != forks.generation():
            raise errors.FailedPreconditionError.of(
                f"The server of {self._task} runs in the process from which this one was forked."
            )
        period_s = _SIGNAL_CHECK_PERIOD_S if threading.current_thread() is threading.main_thread() else None
        # A signal that another thread happens to take does not wake this one, so it looks up now and then.
        while not self._stopped.wait(period_s):
            for look in while_joining:
                look()
        self.stop()

    def stop(self, grace_s: float = _STOP_GRACE_S) -> None:
        """Cancels running steps, answers waiting callers, and frees the port. Harmless when repeated.

        Args:
          grace_s: how long calls that are being answered may take.
        """
        if self._generation != forks.generation():
            return  # it is the parent's
        with self._lock:
            self._stopped.set()
            if not self._is_started:
                self._service.stop(0)
                return
            self._is_started = False
        with _servers_lock:
            if _servers.get(self._address) is self:
                del _servers[self._address]
        self._worker.shut_down()
        self._master.close()
        self._service.stop(grace_s)
        self._peers.close()
        if self._place is not None:
            self._place.close()

    def _peers_of_cluster(self, server_def: tensorflow_server_pb2.ServerDef) -> Peers:
        """The tasks of a cluster that a session brought, in which this one is what `server_def` says."""
        from dtf.rpc.peers import Peers

        own_task = task_name(server_def.job_name, server_def.task_index, server_def.replica)
        cluster = _cluster_of_peer(server_def.cluster, "ServerDef")
        for job in cluster.jobs:
            for address in cluster.job_tasks(job):
                if address is not None:
                    split_address(address)
        return Peers(cluster, own_task, self._worker, self._credentials, self._places, self._ask_place)

    def _ask_place(self, place: Place) -> Sequence[Place]:
        """The places of its task, as this one knows them."""
        from dtf.places.lines import places_known_to

        return places_known_to(place, self._credentials)

    def _tasks_of_cluster(self, config: config_pb2.ConfigProto, target: str) -> Peers:
        """The tasks of a session's own cluster, among which this one is found by the address of the session's target.

        Raises:
          InvalidArgumentError: the cluster is malformed, or none of its tasks has this server's address.
        """
        cluster = _cluster_of_peer(config.cluster_def, "ConfigProto.cluster_def")
        addresses = {self._address, target.partition("://")[2]}
        for job in cluster.jobs:
            for index in cluster.task_indices(job):
                if cluster.task_address(job, index) in addresses:
                    server_def = make_server_def(cluster, job, index)
                    return self._peers_of_cluster(server_def)
        raise errors.InvalidArgumentError.of(
            f"ConfigProto.cluster_def has no task at {self.target}, the session's master. It has {cluster}.",
        )

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: Any) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<Server {self._task} at {self.target}>"


def _durable_state(
    settings: config_pb2.ConfigProto, task: str, places: Mapping[str, Sequence[Place]], trust: Credentials | None
) -> tuple[DurableResources | None, PlaceOfTask | None]:
    """What the task keeps beyond its process (None: nothing), and its place, if a backup has it, too. Waits until this
    place is the primary. Raises OpError if that is impossible.
    """
    experimental = settings.experimental
    level = experimental.durability or os.environ.get(DURABILITY_VARIABLE, "") or "none"
    if level == "none":
        return None, None
    if level not in ("process", "host"):
        raise errors.UnimplementedError.of(
            f"{task}: durability is {level!r}; the levels are 'none', 'process' and 'host'."
        )
    folder = experimental.durability_folder or os.environ.get(DURABILITY_FOLDER_VARIABLE, "")
    if not folder:
        raise errors.InvalidArgumentError.of(
            f"{task}: durability {level!r} needs a folder of its own for this task and this training; set "
            f"experimental.durability_folder or {DURABILITY_FOLDER_VARIABLE}, such as /dev/shm/my-training/ps-0.",
        )
    from pathlib import Path

    if level == "process":
        from dtf.run.durability.durable_resources import DurableResources

        return DurableResources(Path(folder)), None
    place = _serving_place(experimental, task, Path(folder), places, trust)
    return place.resources, place


def _serving_place(
    experimental: config_pb2.ConfigProto.Experimental,
    task: str,
    folder: Path,
    places: Mapping[str, Sequence[Place]],
    trust: Credentials | None,
) -> PlaceOfTask:
    """The place of this process, when it is the primary."""
    if task not in places:
        raise errors.InvalidArgumentError.of(
            f"{task}: durability 'host' needs two places of the task; set {PLACES_VARIABLE}, such as "
            "ps:0=a:2222/2322,b:2222/2322.",
        )
    own = experimental.durability_place or _number_of(DURABILITY_PLACE_VARIABLE, 0, int)
    if not 0 <= own < len(places[task]):
        raise errors.InvalidArgumentError.of(
            f"{task}: {DURABILITY_PLACE_VARIABLE} is {own}, but the task has {len(places[task])} places, from 0."
        )
    silence_s = _number_of(DURABILITY_SILENCE_VARIABLE, _SILENCE_S, float)
    if not 0.01 <= silence_s <= 3600:
        raise errors.InvalidArgumentError.of(f"{DURABILITY_SILENCE_VARIABLE} must be 0.01 to 3600, not {silence_s}.")
    from dtf.places.place import PlaceOfTask
    from dtf.run.durability.replicated_resources import ReplicatedResources

    resources = ReplicatedResources(folder, own)
    place = PlaceOfTask(task, places[task], resources, silence_s, trust, os.environ.get(BIND_VARIABLE, ""))
    try:
        period_s = _SIGNAL_CHECK_PERIOD_S if threading.current_thread() is threading.main_thread() else None
        while not place.wait(period_s):
            for look in while_joining:
                look()
    except BaseException:
        place.close()
        resources.close()
        raise
    return place


_Number = TypeVar("_Number", int, float)


def _number_of(variable: str, default: _Number, kind: Callable[[str], _Number]) -> _Number:
    text = os.environ.get(variable, "")
    try:
        return kind(text) if text else default
    except ValueError:
        raise errors.InvalidArgumentError.of(f"{variable} must be a number, not {text!r}.") from None


def find_master(target: str, config: config_pb2.ConfigProto) -> Master:
    """The Master for a session with this target. Contacts nobody. Give it to `release_master` in the end.

    Raises:
      InvalidArgumentError: the target is malformed.
    """
    if not target:
        return _local_master(config)
    address = parse_target(target)
    if not config.rpc_options.use_rpc_for_inprocess_master:
        with _servers_lock:
            server = _servers.get(address)
        if server is not None:
            return InProcessMaster(server._master)
    from dtf.rpc.discovery import connect
    from dtf.rpc.remote import RemoteMaster

    return RemoteMaster(connect(address, credentials=credentials.from_environment()))


def release_master(master: Master) -> None:
    """Frees what `find_master` made."""
    master.close()


class InProcessMaster:
    """A Master without a wire between it and the client.

    A wire copies what passes it. Here feeds are copied, since the client may change its arrays after the call, and
    fetches that the runtime still references.
    """

    def __init__(self, master: Master, owned: bool = False) -> None:
        from dtf.run.state.resources import unaliased

        self._master = master
        self._is_owned = owned
        self._unaliased = unaliased
        # What carries no tensors is the master's own.
        self.create_session = master.create_session
        self.extend_session = master.extend_session
        self.partial_run_setup = master.partial_run_setup
        self.make_callable = master.make_callable
        self.release_callable = master.release_callable
        self.close_session = master.close_session
        self.list_devices = master.list_devices

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
        """See `Master.run_step`."""
        if feeds:
            feeds = {name: _copied(value) for name, value in feeds.items()}
        result = self._master.run_step(
            handle, feeds, fetches, targets, options, partial_run_handle, request_id, cancellation
        )
        return self._own(result)

    def run_callable(
        self, handle: str, callable_handle: int, feeds: Sequence[Value], request_id: int = 0
    ) -> StepResult:
        """See `Master.run_callable`."""
        copies = [_copied(value) for value in feeds]
        result = self._master.run_callable(handle, callable_handle, copies, request_id)
        return self._own(result)

    def reset(self, containers: Sequence[str] = (), device_filters: Sequence[str] = ()) -> None:
        """See `Master.reset`. A session without a target has nothing that another one could have left behind."""
        self._master.reset(containers, device_filters)

    def close(self) -> None:
        """Ends the runtime, if it is this session's own."""
        if self._is_owned:
            self._master.close()

    def _own(self, result: StepResult) -> StepResult:
        values = result.values
        for index in range(len(values)):
            values[index] = self._unaliased(values, index)
        return result


class MasterOfParent:
    """Stands for the master of a session that was made before this process was forked."""

    def close(self) -> None:
        """Leaves the connections to the parent."""

    def close_session(self, handle: str) -> None:
        """Leaves the session to the parent."""

    def __getattr__(self, name: str) -> Any:
        return self._refuse

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise errors.FailedPreconditionError.of(
            "This session was made before this process was forked; its threads and connections belong to process "
            f"{os.getppid()}, the parent. Make a new session after the fork.",
        )


class _OneTask:
    """A `session_tasks.Tasks` of a session without a cluster."""

    def __init__(self, worker: Worker) -> None:
        self.own_task = _LOCAL_TASK
        self.announced: cluster_pb2.ClusterDef | None = None
        self.names: tuple[str, ...] = (_LOCAL_TASK,)
        self._worker = worker

    def worker(self, task: str) -> Worker:
        return self._worker

    def address(self, task: str) -> str:
        return "this process"

    def close(self) -> None:
        """There are no connections."""


def _local_master(config: config_pb2.ConfigProto) -> InProcessMaster:
    from dtf.run.devices.listing import devices_of_task
    from dtf.run.master.master import Master
    from dtf.run.worker.worker import LocalWorker

    worker = LocalWorker(devices_of_task(_LOCAL_TASK, config))
    return InProcessMaster(Master(_OneTask(worker)), owned=True)


def _tasks_beside(cluster: ClusterSpec, address: str) -> int:
    """How many tasks of the cluster are on the host of `address`, its own among them."""
    host, _ = split_address(address)
    addresses = [each for job in cluster.jobs for each in cluster.job_tasks(job) if each]
    return sum(split_address(each)[0] == host for each in addresses)


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


while_joining: list[Callable[[], None]] = []
"""What the main thread calls now and then while it waits in `Server.join`. An exception ends the waiting."""

_servers: dict[str, Server] = {}
_servers_lock = threading.Lock()


def _begin_anew() -> None:
    """In a forked process: servers are reached as those of another process."""
    global _servers_lock
    _servers_lock = threading.Lock()
    _servers.clear()


forks.in_child(_begin_anew)


def _cluster_of_peer(cluster_def: cluster_pb2.ClusterDef, what: str) -> ClusterSpec:
    try:
        return ClusterSpec(cluster_def)
    except (ValueError, TypeError) as error:
        raise errors.InvalidArgumentError.of(f"Malformed {what}: {error}") from None
