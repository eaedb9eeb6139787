"""Peers: the tasks of a cluster as the master and the worker of one task see them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from dtf.rpc.discovery import Transport, connect
from dtf.rpc.remote import RemoteWorker
from dtf.rpc.roaming import RoamingConnection
from dtf.run.interfaces import Worker
from dtf.wire import errors
from dtf.wire.cluster import ClusterSpec
from dtf.wire.credentials import Credentials
from dtf.wire.device import task_name
from dtf.wire.durability import Place
from dtf.wire.pb import cluster_pb2, tensorflow_server_pb2


class Peers:
    """A `session_tasks.Tasks`: one connection for each requested task. Its lock guards the connections."""

    def __init__(
        self,
        cluster: ClusterSpec,
        own_task: str,
        own_worker: Worker,
        credentials: Credentials | None = None,
        places: dict[str, list[Place]] | None = None,
        ask_place: Callable[[Place], Sequence[Place]] = lambda _: (),
    ) -> None:
        """The tasks of a cluster.

        Args:
          places: for tasks that may be at several addresses (see runtime/durability.md, `host`): all of
            these. It is changed when places move.
          ask_place: asks one of them where the others are; see `RoamingConnection`.
        """
        self.own_task = own_task
        self.announced: cluster_pb2.ClusterDef | None = None
        self._credentials = credentials
        self._own_worker = own_worker
        self._addresses = {
            task_name(job, index): cluster.task_address(job, index)
            for job in cluster.jobs
            for index in cluster.task_indices(job)
        }
        self._places = {} if places is None else places
        self._ask_place = ask_place
        self.names = tuple(self._addresses)
        self._lock = threading.Lock()
        self._connections: dict[str, Transport] = {}
        self._workers: dict[str, Worker] = {own_task: own_worker}

    def worker(self, task: str) -> Worker:
        """The worker of a task.

        Raises:
          InvalidArgumentError: the cluster does not contain the task, or its address is malformed.
        """
        worker = self._workers.get(task)
        if worker is None:
            address = self.address(task)
            with self._lock:
                worker = self._workers.get(task)
                if worker is None:
                    connection = self._connections[task] = self._connect(address, task)
                    worker = self._workers[task] = RemoteWorker(connection)
        return worker

    def learn(self, server_def: tensorflow_server_pb2.ServerDef, master: str) -> bool:
        """Takes over tasks that this one does not know yet from the cluster of a session's master, and the master's own
        address. Returns whether it is the same cluster: if another address or this task's own name differs, it is not,
        and nothing is taken over. A durable task with several places may have any address.
        """
        told = {
            task_name(job.name, index): address
            for job in server_def.cluster.job
            for index, address in job.tasks.items()
        }
        own_task = task_name(server_def.job_name, server_def.task_index, server_def.replica)
        with self._lock:
            known = self._addresses
            for task in told.keys() & self._places.keys() & known.keys():
                # Its places may have moved since one of the two processes was started.
                self._places[task] = _with(told.pop(task), self._places[task])
            differing = {task for task, address in told.items() if known.get(task, address) != address}
            if own_task != self.own_task or differing - {master} or (differing and master == self.own_task):
                return False
            moved = [self._connections.pop(task, None) for task in differing]
            for task in differing:
                self._workers.pop(task, None)
            self._addresses = {**known, **told}
        for connection in moved:
            if connection is not None:
                connection.close()
        return True

    def _connect(self, address: str, task: str) -> Transport:
        places = self._places.get(task)
        if places is None:
            return connect(address, task, self._credentials)

        def moved(places: Sequence[Place]) -> None:
            self._places[task] = list(places)  # for the sessions that come later, with clusters of their own, too

        return RoamingConnection(_with(address, places), task, self._credentials, moved, self._ask_place)

    def address(self, task: str) -> str:
        """ "host:port" of a task; raises InvalidArgumentError for an unknown task."""
        try:
            return self._addresses[task]
        except KeyError:
            raise errors.InvalidArgumentError.of(
                f"The cluster has no task {task}; it has {', '.join(self._addresses)}."
            ) from None

    def close(self) -> None:
        """Ends all connections."""
        with self._lock:
            connections = list(self._connections.values())
            self._connections.clear()
            self._workers = {self.own_task: self._own_worker}
        for connection in connections:
            connection.close()


def _with(address: str, places: Sequence[Place]) -> list[Place]:
    """The places, with that at this address first. One that none of them has is without a second port."""
    own = next((each for each in places if each.address == address), Place(address, ""))
    return [own, *(each for each in places if each.address != address)]
