"""SessionTasks: the tasks that one session has joined, learnt one by one as steps need them.

Owns the first contact with a task (GetStatus, then CreateWorkerSession), its time limit, and its log lines. A task that
no step uses is never contacted. The session's operation timeout bounds each wait. Without a timeout the wait goes on,
and every 10 s a log line names the task.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from dtf.run.exchange.retry import ATTEMPT_TIMEOUT_S, ask
from dtf.run.interfaces import Device, Worker
from dtf.run.worker.worker_session import devices_of_session
from dtf.wire import errors
from dtf.wire.device import DeviceSpec, task_of
from dtf.wire.durability import KeptState, kept_state
from dtf.wire.pb import cluster_pb2, config_pb2, tensorflow_server_pb2

LIST_DEVICES_TIMEOUT_S = 10.0
_LEAVE_TIMEOUT_S = 3.0

_logger = logging.getLogger("dtf")


_Result = TypeVar("_Result")


class Tasks(Protocol):
    """How a master reaches tasks: the rpc module's connections in a server, one entry in a local session."""

    own_task: str
    """The master's own task, "/job:worker/replica:0/task:0"."""

    names: tuple[str, ...]
    """All tasks of the cluster in its order, the own one among them."""

    announced: cluster_pb2.ClusterDef | None
    """The cluster as the tasks of each session are to know it, where they may know less of it; else None."""

    def worker(self, task: str) -> Worker:
        """The Worker of a task; the same object at every call. Contacts nobody."""

    def address(self, task: str) -> str:
        """ "host:port", or "this process"."""

    def close(self) -> None:
        """Ends the connections; a session calls it when it is over and the tasks are those of its own cluster."""


class JoinedTask(NamedTuple):
    """A task that knows this session. The devices carry the incarnation that it had when it joined."""

    name: str
    worker: Worker
    devices: tuple[Device, ...]


class SessionTasks:
    """The tasks of one session. Its lock guards `_joined` and is not held while a task is asked."""

    def __init__(self, handle: str, tasks: Tasks, config: config_pb2.ConfigProto) -> None:
        self._handle = handle
        self._tasks = tasks
        self._cluster = config.cluster_def if config.cluster_def.job else None
        self._isolate = config.isolate_session_state or (
            self._cluster is not None and not config.experimental.share_session_state_in_clusterspec_propagation
        )
        self._joined: dict[str, JoinedTask] = {}
        self._lineages: dict[str, KeptState] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._why_stopped: errors.OpError | None = None
        self.own_task = tasks.own_task
        self.names = _filter(tasks.names, tasks.own_task, config.device_filters)

    def address(self, task: str) -> str:
        """Where the task listens."""
        return self._tasks.address(task)

    def join(self, task: str, timeout_s: float | None) -> JoinedTask:
        """The task, after making the session known to it if that has not been done.

        Raises:
          DeadlineExceededError: the task did not answer within `timeout_s`; names it, its address and the last error.
          CancelledError: the session was closed meanwhile.
          InvalidArgumentError: what answers at the address is not this task.
        """
        joined = self._joined.get(task)
        if joined is not None:
            return joined
        worker = self._tasks.worker(task)
        devices = self._ask(task, worker, timeout_s)
        if not any(device.name.startswith(task + "/") for device in devices):
            raise errors.InvalidArgumentError.of(
                f"{self.address(task)} is to be {task}, but the task that answers there calls itself "
                f"{task_of(devices[0].name) if devices else 'nothing'}. Do all tasks have the same ClusterSpec?",
            )
        self._check_lineage(task, devices)
        worker.create_worker_session(
            self._handle,
            self._server_def(task, self._cluster or self._tasks.announced),
            self._isolate,
            self.own_task,
            self._own_incarnation(),
        )
        with self._lock:
            return self._joined.setdefault(task, JoinedTask(task, worker, tuple(devices)))

    @property
    def has_durable(self) -> bool:
        """Whether a task that was joined has state that outlives its process."""
        return bool(self._lineages)

    def is_durable(self, task: str) -> bool:
        """Whether the state of a joined task outlives its process."""
        return task in self._lineages

    def forget_restarted(self, timeout_s: float) -> bool:
        """Waits for the durable tasks that do not answer, and forgets those that have restarted since they were joined:
        they have to be joined again. Whether there are any. A task that was forgotten and not joined again, since it
        was killed before it could be, counts as well.

        Raises:
          DeadlineExceededError: a task did not answer in time.
          AbortedError: a task has another state than before.
        """
        durable = {task: self._joined.get(task) for task in list(self._lineages)}
        asks = {task: functools.partial(self._ask, task, self._tasks.worker(task), timeout_s) for task in durable}
        restarted = []
        for task, outcome in _in_parallel(asks).items():
            if isinstance(outcome, Exception):
                raise outcome
            self._check_lineage(task, outcome)
            joined = durable[task]
            if joined is None or outcome[0].incarnation != joined.devices[0].incarnation:
                restarted.append(task)
        with self._lock:
            for task in restarted:
                if self._joined.get(task) is durable[task]:  # else another step has joined it anew
                    self._joined.pop(task, None)
        return bool(restarted)

    def _check_lineage(self, task: str, devices: Sequence[Device]) -> None:
        """Remembers the state that a task has. Raises AbortedError if it is another one than before."""
        state, before = kept_state(device.description for device in devices), self._lineages.get(task)
        if before is not None and (state is None or not state.follows(before)):
            is_branch = state is not None and state.lineage == before.lineage
            raise errors.AbortedError.of(
                f"{task} at {self.address(task)} has restarted without its durable state: the state was "
                f"{' '.join((before.lineage, *before.terms[-1:]))}, now it is "
                f"{' '.join((state.lineage, *state.terms[-1:])) if state else 'not durable'}. "
                + ("Its places have gone on separately." if is_branch else
                   "Possibly its folder was removed, or it is on another host."),
            )
        if state is not None:
            self._lineages[task] = state

    def join_all(self, tasks: Iterable[str], timeout_s: float | None) -> dict[str, JoinedTask]:
        """Joins several tasks, all at the same time. Raises the first error."""
        ordered = [task for task in self.names if task in set(tasks)]
        joined = {task: there for task in ordered if (there := self._joined.get(task)) is not None}
        missing = [task for task in ordered if task not in joined]
        found = _in_parallel({task: functools.partial(self.join, task, timeout_s) for task in missing})
        for task, outcome in found.items():
            if isinstance(outcome, BaseException):
                raise outcome
            joined[task] = outcome
        return {task: joined[task] for task in ordered}

    def list_devices(self, timeout_s: float) -> list[Device]:
        """The devices of every task that answers in time; those that do not are logged."""
        found = _in_parallel(
            {task: functools.partial(self._ask, task, self._tasks.worker(task), timeout_s) for task in self.names}
        )
        devices: list[Device] = []
        for outcome in found.values():
            if isinstance(outcome, errors.OpError):
                _logger.warning("list_devices: %s", outcome.message)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                devices.extend(outcome)
        return devices

    def cleanup_all(self, containers: Sequence[str], timeout_s: float) -> None:
        """Empties resource containers at every task. Raises the first error after all have been tried."""

        def empty(task: str) -> None:
            worker = self._tasks.worker(task)
            self._ask(task, worker, timeout_s)
            worker.cleanup_all(list(containers))

        for outcome in _in_parallel({task: functools.partial(empty, task) for task in self.names}).values():
            if isinstance(outcome, BaseException):
                raise outcome

    def stop_waiting(self, why: errors.OpError | None = None) -> None:
        """Ends waits for tasks, now and later, with `why`, or with CancelledError."""
        self._why_stopped = why
        self._stopped.set()

    def leave(self) -> None:
        """Tells the joined tasks to forget the session; a dead one costs 3 s at most."""
        with self._lock:
            joined = list(self._joined.values())
            self._joined.clear()
        waiting = threading.Semaphore(0)
        for task in joined:
            task.worker.delete_worker_session(self._handle, lambda *_, **__: waiting.release(), _LEAVE_TIMEOUT_S)
        deadline = time.monotonic() + _LEAVE_TIMEOUT_S
        for _ in joined:
            waiting.acquire(timeout=max(0.0, deadline - time.monotonic()))
        if self._cluster is not None:
            self._tasks.close()

    def _ask(self, task: str, worker: Worker, timeout_s: float | None) -> list[Device]:
        """GetStatus, tried until it is answered; the devices by the names that this session has for them."""
        try:
            devices = ask(worker.get_status, f"{task} at {self.address(task)}", timeout_s, self._stopped)
        except errors.CancelledError as error:
            raise self._why_stopped or error from None
        return list(devices_of_session(devices, self._server_def(task, self._cluster)))

    def _server_def(self, task: str, cluster: cluster_pb2.ClusterDef | None) -> tensorflow_server_pb2.ServerDef:
        """The cluster as a task is to know it, and the task's name in it; nothing if it has the server's."""
        if cluster is None:
            return tensorflow_server_pb2.ServerDef()
        name = DeviceSpec.from_string(task)
        return tensorflow_server_pb2.ServerDef(
            cluster=cluster, job_name=name.job, task_index=name.task, protocol="grpc"
        )

    def _own_incarnation(self) -> int:
        devices = self._tasks.worker(self.own_task).get_status(ATTEMPT_TIMEOUT_S)
        incarnation = devices[0].incarnation if devices else 0
        return incarnation - (1 << 64) if incarnation >> 63 else incarnation


def _filter(names: Sequence[str], own_task: str, filters: Sequence[str]) -> tuple[str, ...]:
    """The tasks that one of the device filters matches, and the own one; all if there are no filters."""
    if not filters:
        return tuple(names)
    specs = []
    for text in filters:
        try:
            specs.append(DeviceSpec.from_string(text))
        except ValueError as error:
            raise errors.InvalidArgumentError.of(f"Malformed device filter '{text}': {error}") from None

    def is_wanted(name: str) -> bool:
        task = DeviceSpec.from_string(name)
        return any(
            spec.job in (None, task.job) and spec.replica in (None, task.replica) and spec.task in (None, task.task)
            for spec in specs
        )

    return tuple(name for name in names if name == own_task or is_wanted(name))


def _in_parallel(calls: Mapping[str, Callable[[], _Result]]) -> dict[str, _Result | Exception]:
    """Runs the calls, each in a thread of its own if there are several; gives results, or the exceptions raised."""
    results: dict[str, _Result | Exception] = {}

    def run(name: str, call: Callable[[], _Result]) -> None:
        try:
            results[name] = call()
        except Exception as error:
            results[name] = error

    threads = [
        threading.Thread(target=run, args=item, name=f"dtf-join-{item[0]}", daemon=True) for item in calls.items()
    ]
    if len(threads) == 1:
        run(*next(iter(calls.items())))
        threads = []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: results[name] for name in calls}
