"""LocalWorker: what one task does for the masters of a cluster: keeps sessions, runs partitions, hands out tensors.

Owns the task's sessions, their registered graphs, the running steps and the rendezvous; `resources` outlive all of
them. Does not know how requests arrive: the master of this process calls it directly, a server's masters and peers
through `rpc`, whose `RemoteWorker` has the same methods.

What can wait takes `done`, called as done(value) or done(error=OpError) exactly once, from any thread, and returns a
function that cancels it. The other calls return at once.

Rules that peers rely on, TensorFlow's worker service being the model: a session that is not known here is
AbortedError (the task restarted, and whoever asks has to start again); a receive may come before the step; a step
that has been cleaned up is over.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dtf.run.durability.once import StepRecords
from dtf.run.exchange.collective_groups import Collectives, GroupLeader
from dtf.run.exchange.push import PushedSteps, unmade_fetch
from dtf.run.exchange.rendezvous import Rendezvous, StepRendezvous, parse_key
from dtf.run.executor.executor import Executor
from dtf.run.executor.step import as_derived
from dtf.run.executor.step_stats import StepStatsCollector
from dtf.run.interfaces import Cancel, Device, Done, GraphResult, Membership, PreparedResult, Pushed, Value, Worker
from dtf.run.lib.allocator import keep_freed_memory
from dtf.run.state.resources import ResourceManager
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.partial_step import PartialStep
from dtf.run.worker.worker_session import (
    ClusterPeers,
    Peers,
    RegisteredGraph,
    WorkerSession,
    WorkerStep,
    derived,
    devices_of_session,
    recv_from,
)
from dtf.run.worker.worker_steps import WorkerSteps, shown
from dtf.wire import errors, limits
from dtf.wire.device import DeviceSpec, task_name, task_of
from dtf.wire.pb import config_pb2, graph_pb2, tensorflow_server_pb2, worker_pb2

if TYPE_CHECKING:
    from dtf.run.durability.durable_resources import DurableResources

__all__ = ["LocalWorker"]

_STEP_SEQUENCES_MAX = 10_000

PeersOfCluster = Callable[[tensorflow_server_pb2.ServerDef], ClusterPeers]

class LocalWorker:
    """The worker of a task. Its lock guards `_sessions` and `_partial`; no kernel and no callback runs
    under it.

    Attributes:
      task: "/job:ps/replica:0/task:0".
      devices: the task's devices; the first one is where everything runs.
      resources: shared by all sessions that are not isolated.
      rendezvous: the tables of all steps, for code that receives tensors from other tasks.
      pushed_steps: the compiled steps whose tensors are pushed.
      collective_leader: the task that brings the groups of collective operations together.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        peers: Peers | None = None,
        peers_of_cluster: PeersOfCluster | None = None,
        durable: DurableResources | None = None,
    ) -> None:
        """A worker with no sessions.

        Args:
          devices: with full names and incarnations.
          peers: how to reach the other tasks; None in a cluster of one. It may also be set later (`worker.peers =
            ...`).
          peers_of_cluster: the same for a session that brings a cluster of its own.
          durable: resources that outlive the process; the worker closes them.
        """
        keep_freed_memory()
        self._durable = durable
        self.devices = tuple(devices)
        if durable is not None:
            self.devices = tuple(each._replace(description=durable.description) for each in devices)
        self.task = task_of(self.devices[0].name)
        self.peers = peers
        self.resources = ResourceManager() if durable is None else durable
        self._records = StepRecords() if durable is None else durable.steps
        self.rendezvous = Rendezvous()
        self._peers_of_cluster = peers_of_cluster
        self.learn_peers: Callable[[tensorflow_server_pb2.ServerDef, str], bool] = lambda *_: False
        """Whether a session's cluster is this task's; the server sets it, and takes over tasks that it did not know."""
        self._lock = threading.Lock()
        self._sessions: dict[str, WorkerSession] = {}
        self.collective_leader = self.task
        self._groups = GroupLeader()
        shared = None if durable is None else durable.session_state("")
        self._legacy = WorkerSession("", self.devices, self.resources, durable_state=shared)
        self._legacy.collectives = self._collectives(self._legacy)
        self._running = WorkerSteps(self._records)
        self.pushed_steps = PushedSteps(self.task, self.rendezvous, self._running, lambda: self.peers)
        self._partial: dict[int, PartialStep] = {}
        self._step_sequences: dict[int, int] = {}
        self._gone: errors.OpError | None = None
        self._graph_numbers = itertools.count(1)

    # -- the task

    def get_status(self, timeout_s: float | None = None) -> list[Device]:
        """The devices of the task. Raises UnavailableError while a durable task may not confirm anything."""
        if self._durable is not None:
            self._durable.check_serving()
            return [each._replace(description=self._durable.description) for each in self.devices]
        return list(self.devices)

    def heartbeat(self, done: Done[object], timeout_s: float | None = None) -> None:
        """The task is there: done(None)."""
        done(None)

    def cleanup_all(self, containers: Sequence[str] = ()) -> None:
        """Removes all resources of these containers; of the default one when none is named."""
        self.resources.cleanup(containers)

    def step_sequence(self, graph_keys: Sequence[int]) -> dict[int, int]:
        """The next step id of each collective graph, as the leader of a group hands them out. Those of the graphs that
        were asked for last are remembered.
        """
        with self._lock:
            for key in graph_keys:
                self._step_sequences[key] = self._step_sequences.pop(key, 0) + 1
            found = {key: self._step_sequences[key] for key in graph_keys}
            while len(self._step_sequences) > _STEP_SEQUENCES_MAX:
                del self._step_sequences[next(iter(self._step_sequences))]
            return found

    def shut_down(self) -> None:
        """Stops every step and forgets every session. Whoever waits for any of it, or asks from now on, gets
        UnavailableError: its peers have lost a task, which is no cancellation of theirs.
        """
        gone = errors.UnavailableError.of(f"{self.task} has shut down")
        with self._lock:
            self._gone = gone
            handles = list(self._sessions)
        for step in self._running.of():
            step.cancel(gone)
        self.rendezvous.abort_all(as_derived(gone))
        for handle in handles:
            self._drop_session(handle, gone)
        for step in self._running.of():  # those that began meanwhile
            step.cancel(gone)
        if self._durable is not None:
            self._durable.close()

    # -- sessions

    def create_worker_session(
        self,
        handle: str,
        server_def: tensorflow_server_pb2.ServerDef | None = None,
        isolate: bool = False,
        master_task: str = "",
        master_incarnation: int = 0,
    ) -> None:
        """Makes a session known here. Sessions that a former self of the same master left behind are dropped.

        Args:
          handle: the master's name of it. Creating it again changes nothing.
          server_def: a cluster of the session's own, and what this task is called in it; None or empty: the server's.
          isolate: whether it has resources of its own.
          master_task, master_incarnation: who asks; "" and 0 when it does not say.

        Raises:
          InvalidArgumentError: an address of the cluster is malformed.
          UnavailableError: the task has shut down.
          ResourceExhaustedError: there are `limits.SESSIONS` already.
        """
        if self._gone is not None:
            raise self._gone
        if handle not in self._sessions:
            limits.SESSIONS.check(len(self._sessions) + 1, f"{self.task} cannot join another session: their number")
        cluster = None
        if server_def is not None and server_def.cluster.job and self._peers_of_cluster is not None:
            is_own = not isolate and self.learn_peers(server_def, master_task)
            cluster = None if is_own else self._peers_of_cluster(server_def)
        devices = devices_of_session(self.devices, server_def)
        resources = ResourceManager() if isolate else self.resources
        state = None
        if self._durable is not None:
            if isolate:
                raise errors.UnimplementedError.of(
                    f"{self.task} is durable, and does not keep the state of an isolated session; set "
                    "isolate_session_state to false, or durability to 'none'.",
                )
            self._durable.session_is_here(handle)
            state = self._durable.session_state(handle)
        session = WorkerSession(handle, devices, resources, cluster, master_task, master_incarnation, state)
        session.collectives = self._collectives(session)
        with self._lock:
            stale = [
                each.handle
                for each in self._sessions.values()
                if master_task and each.master_task == master_task and each.master_incarnation != master_incarnation
            ]
            kept = self._sessions.setdefault(handle, session)
        if kept is not session:
            session.close()
        for old in stale:
            _logger.info("dropping session %s: its master %s has restarted", old, master_task)
            self._drop_session(old)

    def delete_worker_session(self, handle: str, done: Done[object], timeout_s: float | None = None) -> None:
        """Forgets a session, its graphs and its isolated resources; its running steps are cancelled. Then done(None).
        Harmless when repeated.
        """
        self._drop_session(handle)
        done(None)

    def _drop_session(self, handle: str, why: errors.OpError | None = None) -> None:
        """Forgets a session; its running steps end with `why`, or with CancelledError."""
        if why is None:
            why = derived(errors.CancelledError.of(f"Session {handle} has been closed"))
        with self._lock:
            session = self._sessions.pop(handle, None)
            running = self._running.of(session) if session is not None else []
        if session is None:
            return
        self.pushed_steps.forget_session(handle)
        for step in running:
            step.cancel(why)
        if self._gone is None:  # else the state of a durable task goes on in the next process
            self._records.forget_session(handle)
        if session.resources is not self.resources:
            session.resources.clear()
        session.close()

    def has_session(self, handle: str) -> bool:
        """Whether the session is known here."""
        return handle in self._sessions

    def abandon_session(self, handle: str) -> bool:
        """Forgets a session whose master has gone. False: a step of it runs, or has run since this was last asked."""
        session = self._sessions.get(handle)
        if session is not None:
            was_used, session.was_used = session.was_used, False
            if was_used or self._running.of(session):
                return False
        self._drop_session(handle)
        return True

    # -- graphs

    def register_graph(
        self,
        session_handle: str,
        graph_def: graph_pb2.GraphDef,
        graph_options: config_pb2.GraphOptions | None = None,
        config: config_pb2.ConfigProto | None = None,
    ) -> str:
        """Compiles a partition and returns its handle. An empty session handle means the session that all share.

        Raises:
          AbortedError: the session is not known here.
          InvalidArgumentError, NotFoundError: the graph cannot be run.
        """
        session = self._session(session_handle)
        if config is not None and config.experimental.collective_group_leader:
            session.collective_leader = config.experimental.collective_group_leader
        handle = f"{next(self._graph_numbers):016x}"
        session.add_graph(handle, graph_def)
        if session is self._legacy:
            self._forget_least_used()
        return handle

    def _forget_least_used(self) -> None:
        """Bounds the graphs of masters that have no session here: nobody tells when such a master has gone. A living
        one whose graph is forgotten meets what it meets when the task restarts.
        """
        graphs = self._legacy.graphs
        forgotten: list[RegisteredGraph] = []
        with self._lock:
            while not limits.SHARED_GRAPHS.allows(len(graphs)):
                forgotten.append(graphs.pop(next(iter(graphs))))
        for registered in forgotten:
            self.pushed_steps.forget_graph(registered)

    def deregister_graph(self, session_handle: str, graph_handle: str) -> None:
        """Forgets a partition. Raises AbortedError when it or the session is not known here."""
        session = self._session(session_handle)
        with self._lock:
            found = session.graphs.pop(graph_handle, None)
        if found is None:
            raise self._unknown_graph(graph_handle)
        self.pushed_steps.forget_graph(found)

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
        """Runs a partition's step: done(GraphResult) or done(error=OpError). Runs in this thread until it has to wait.

        Args:
          sends: (rendezvous key, value) of what the client feeds.
          recv_keys: keys of what it fetches.
          options: what to record.
          is_partial: the step is fed and fetched by several calls; the first one starts it.
          is_last_partial_run: this call answers only when the step is over.
          cancellation: what `stop_step` takes, so that the step can be stopped before this call returns.

        Returns:
          what cancels the step; it does nothing once the step is over.

        Raises:
          AbortedError: the session or the graph is not known here, or the step has been cleaned up.
        """
        session, registered = self._graph(session_handle, graph_handle)
        if self._durable is not None:
            done = self._durable.confirming(done)
        if is_partial:
            return self._run_partial(
                session, registered.executor, step_id, sends, recv_keys, done, is_last_partial_run, cancellation
            )
        collector = StepStatsCollector(session.devices[0].name) if options and options.record_timeline else None
        running, table = self._start_step(
            session, step_id, collector, cancellation, registered.executor.may_repeat
        )

        def over(values: dict[str, Value] | None = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                done(error=error)
                return
            assert values is not None
            stats = collector.step_stats(registered.graph_def) if collector is not None else None
            wanted = options is not None and options.record_partition_graphs
            done(GraphResult(values, stats, registered.graph_def if wanted else None))

        return self._run(registered.executor, running, table, sends, recv_keys, over)

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
        """Agrees that a registered partition will be run by `run_prepared`, its tensors pushed; see `exchange.push`.

        Args:
          run_id: the master's number for it, the same at all tasks.
          send_keys, recv_keys: what the client feeds and fetches here.
          tasks: all that take part.
          home: which of them is the master's, if any: what is pushed to it last comes with the answer.

        Raises:
          AbortedError: the session or the graph is not known here.
          UnimplementedError: a task that the partition exchanges tensors with cannot be reached over the channel, or
            the session has a cluster of its own.
        """
        session, registered = self._graph(session_handle, graph_handle)
        if session.peers_recv is not None:
            raise errors.UnimplementedError.of("A session with a cluster of its own has no pushed steps.")
        self.pushed_steps.prepare(run_id, session, registered, send_keys, recv_keys, tasks, home)

    def run_prepared(
        self,
        run_id: int,
        step_id: int,
        values: Sequence[Value],
        done: Done[PreparedResult],
        cancellation: CancellationManager | None = None,
    ) -> Cancel:
        """As `run_graph`, of what was prepared: `values` in the order of its send keys. Calls done(PreparedResult) with
        the values of its recv keys and what is left to push to the master's task, or done(error=OpError). A step that
        ends well is forgotten here, without `cleanup_graph`.
        """
        prepared = self.pushed_steps.find(run_id)
        prepared.session.was_used = True
        if self._durable is not None:
            done = self._durable.confirming(done)
        return self.pushed_steps.run(prepared, step_id, values, done, cancellation)

    def open_push(self, on_lost: Callable[[], None]) -> bool:
        """True: a task can always push to itself."""
        return True

    def push(self, pushed: Pushed) -> None:
        """Takes values that another task pushes, and runs what they make ready, in this thread."""
        self.pushed_steps.deliver(pushed)

    def stop_step(self, step_id: int, cancellation: CancellationManager) -> None:
        """Cancels the step that a call with this `cancellation` runs, or is about to."""
        cancellation.start_cancel()
        running = self._running.find(step_id)
        if running is not None and running.step.cancellation is cancellation:
            running.cancel()

    def cleanup_graph(self, step_id: int) -> None:
        """Forgets a step: what still runs of it is cancelled, who waits for its tensors is told."""
        with self._lock:
            running = self._running.find(step_id)
            self._partial.pop(step_id, None)
        if running is not None:
            running.cancel(derived(errors.CancelledError.of(f"Step {step_id} was cleaned up")))
        self.rendezvous.cleanup(step_id)
        self.pushed_steps.cleanup(step_id)

    # -- tensors

    def recv_tensor(self, step_id: int, key: str, done: Done[Value]) -> Cancel:
        """Gives a tensor that a step of this task makes: done(value), where the value may be kernels.DEAD, or
        done(error=OpError).

        Errors:
          InvalidArgumentError: the key is malformed.
          AbortedError: the key names a former self of this task, or the step is over.
        """
        try:
            self._check_incarnation(key)
            table = self.rendezvous.step(step_id)
        except errors.OpError as error:
            done(error=error)
            return _nothing
        table.recv(key, done)

        def cancel() -> None:
            if table.forget(key, done):
                self.rendezvous.forget_unused(step_id)
                done(error=derived(errors.CancelledError.of(f"The receive of {key} was cancelled")))

        return cancel

    def complete_group(self, group_key: int, group_size: int, device: Device, done: Done[Membership]) -> Cancel:
        """As the leader of a group: done(collective_groups.Membership) when all its members have asked."""
        return self._groups.join(group_key, group_size, device, done)

    def refuse_group(self, group_key: int, error: errors.OpError) -> None:
        """As its leader, ends a group that is not complete yet."""
        self._groups.refuse(group_key, error)

    def send(self, step_id: int, key: str, value: Value) -> None:
        """Puts a tensor into a step's rendezvous here, as when a peer or the client brings it.

        Raises:
          AbortedError: the step is over.
        """
        self.rendezvous.step(step_id).send(key, value)

    # --

    def _run(
        self,
        executor: Executor,
        running: WorkerStep,
        table: StepRendezvous,
        sends: Sequence[tuple[str, Value]],
        recv_keys: Sequence[str],
        over: Done[dict[str, Value]],
    ) -> Cancel:
        """Runs a step that has been entered: over(values by key), or over(error=...)."""
        def finished(error: errors.OpError | None) -> None:
            self._running.leave(running)
            values: dict[str, Value] = {}
            if error is None:
                try:
                    values = {key: shown(table.take(key)) for key in recv_keys}
                except KeyError as missing:
                    error = unmade_fetch(missing.args[0])
                except errors.OpError as aborted:
                    error = aborted
            if error is not None:
                over(error=error)
            else:
                over(values)

        try:
            for key, value in sends:
                table.send(key, value)
        except errors.OpError as error:
            finished(error)
            return _nothing
        executor.run_async(running.step, finished)
        return running.cancel

    def _graph(self, session_handle: str, graph_handle: str) -> tuple[WorkerSession, RegisteredGraph]:
        session = self._session(session_handle)
        registered = session.graphs.get(graph_handle) if session is not self._legacy else self._used_last(graph_handle)
        if registered is None:
            raise self._unknown_graph(graph_handle)
        session.was_used = True
        return session, registered

    def _used_last(self, graph_handle: str) -> RegisteredGraph | None:
        graphs = self._legacy.graphs
        with self._lock:
            found = graphs.pop(graph_handle, None)
            if found is not None:
                graphs[graph_handle] = found
        return found

    def _session(self, handle: str) -> WorkerSession:
        if self._gone is not None:
            raise self._gone
        if not handle:
            return self._legacy
        session = self._sessions.get(handle)
        if session is None:
            raise errors.AbortedError.of(
                f'Session handle is not found: {handle}. Possibly this worker ("{self.task}") just restarted.',
            )
        return session

    def _unknown_graph(self, handle: str) -> errors.OpError:
        return errors.AbortedError.of(
            f'Graph handle is not found: {handle}. Possibly this worker ("{self.task}") just restarted.'
        )

    def _check_incarnation(self, key: str) -> None:
        parsed = parse_key(key)
        own = self.devices[0]
        if parsed.source_incarnation == own.incarnation & 0xFFFFFFFFFFFFFFFF and parsed.source_device == own.name:
            return
        local_part = parsed.source_device.rpartition("/")[2]
        device = next((each for each in self.devices if each.name.rpartition("/")[2] == local_part), self.devices[0])
        if parsed.source_incarnation != device.incarnation & 0xFFFFFFFFFFFFFFFF:
            raise errors.AbortedError.of(
                f"RecvTensor expects a different device incarnation: {parsed.source_incarnation} vs. "
                f'{device.incarnation}. Your worker job ("{self.task}") was probably restarted. Check your worker job '
                "for the reason why it was restarted.",
            )

    def _start_step(
        self,
        session: WorkerSession,
        step_id: int,
        collector: StepStatsCollector | None,
        cancellation: CancellationManager | None,
        may_repeat: bool = False,
    ) -> tuple[WorkerStep, StepRendezvous]:
        """A step that moves its values in TensorFlow's way, and their table."""
        table = self.rendezvous.step(step_id)
        table.remote = session.peers_recv or self._recv_from_peer
        return (
            self._running.enter(
                session, step_id, table, collector, cancellation=cancellation, may_repeat=may_repeat
            ),
            table,
        )

    def _collectives(self, session: WorkerSession) -> Collectives:
        own_task = task_of(session.devices[0].name)

        def worker(task: str) -> Worker:
            if task == own_task:
                return self
            peers = session.peers or self.peers
            if peers is None:
                raise errors.InvalidArgumentError.of(f"There is no task {task} in a cluster of one")
            return peers(task)

        def leader() -> str:
            return _full_task_name(session.collective_leader or self.collective_leader)

        return Collectives(session.devices, self.rendezvous, worker, leader)

    def _recv_from_peer(self, task: str, step_id: int, key: str, done: Done[Value]) -> Callable[[], None] | None:
        return recv_from(self.peers, task, step_id, key, done)

    def _run_partial(
        self,
        session: WorkerSession,
        executor: Executor,
        step_id: int,
        sends: Sequence[tuple[str, Value]],
        recv_keys: Sequence[str],
        done: Done[GraphResult],
        is_last: bool,
        cancellation: CancellationManager | None,
    ) -> Cancel:
        with self._lock:
            partial = self._partial.get(step_id)
        if partial is None:
            running, table = self._start_step(session, step_id, None, cancellation)
            partial = PartialStep(running, table)
            with self._lock:
                self._partial[step_id] = partial

            def finished(error: errors.OpError | None) -> None:
                self._running.leave(running)
                partial.finished(error)

            executor.run_async(running.step, finished)
        partial.part(sends, recv_keys, done, is_last)
        if is_last:
            with self._lock:
                self._partial.pop(step_id, None)
        return partial.running.cancel


def _full_task_name(task: str) -> str:
    """ "/job:worker/task:0" -> "/job:worker/replica:0/task:0"."""
    spec = DeviceSpec.from_string(task)
    return task_name(spec.job or "worker", spec.task or 0, spec.replica or 0)


def _nothing() -> None:
    """Cancels what is over already."""


_logger = logging.getLogger("dtf")
