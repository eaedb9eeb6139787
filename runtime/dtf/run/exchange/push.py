"""Pushed steps: compiled steps of dtf tasks only, whose tensors are pushed instead of requested.

In TensorFlow's protocol the consumer of a tensor asks its producer for it, one call per tensor, and the master tells
every task when a step is over. Where all tasks of a compiled step can reach each other over the channel, they agree on
it once (`prepare`), and from then on

    - a _Send puts its value into the step's `PushExchange`, which sends many in one message;
    - an arriving value goes straight to the slot where the step wants it (see `endpoint_binding`); in a partition with
      loops, by its key;
    - a partition that ends well forgets the step by itself; the master speaks only when one fails.

Owns the agreements, and what the loss of a peer means: the running steps that it takes part in fail at once with
UnavailableError. Does not know how messages look or travel (`rpc.push`), nor how steps run (`worker`).
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dtf.run.exchange.endpoint_binding import EndpointBinding
from dtf.run.exchange.push_exchange import PushExchange
from dtf.run.exchange.rendezvous import Rendezvous, make_key, parse_key
from dtf.run.executor.executor import Executor
from dtf.run.executor.flat_run import FlatRun
from dtf.run.executor.instructions import RECVS, SENDS
from dtf.run.interfaces import Done, Key, PreparedResult, Pushed, Rest, Value, Worker
from dtf.run.kernels import DEAD
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.worker_steps import WorkerSteps, shown
from dtf.wire import errors
from dtf.wire.device import task_of
from dtf.wire.names import printable
from dtf.wire.pb import attr_value_pb2, graph_pb2

if TYPE_CHECKING:
    from dtf.run.worker.worker_session import RegisteredGraph, WorkerSession

__all__ = ["PreparedStep", "PushedSteps", "dead_fetch", "unmade_fetch"]

_PUSHES_REMEMBERED = 64
_AGREEMENTS_MAX = 8
"""On one partition: a master whose steps did not reach everybody agrees anew, and needs the last one only."""

Peers = Callable[[str], Worker]


class PreparedStep(NamedTuple):
    """What this task knows of a compiled step.

    Attributes:
      run_id: the master's number of it.
      session, registered: the partition here.
      executor: of the partition with its endpoints bound (see `endpoint_binding`).
      send_keys, recv_keys: of the client's feeds and fetches here, in the order in which values come and go.
      tasks: all that take part, in the same order everywhere.
      home: the one that answers go to, if it takes part.
      outgoing: task -> number of each key that is sent to it.
      incoming: for each of `tasks`, the keys that it sends here.
    """

    run_id: int
    session: WorkerSession
    registered: RegisteredGraph
    executor: Executor
    send_keys: tuple[str, ...]
    recv_keys: tuple[str, ...]
    tasks: tuple[str, ...]
    own_index: int
    home: str | None
    outgoing: dict[str, dict[str, int]]
    incoming: tuple[tuple[str, ...], ...]

    @property
    def peers(self) -> set[str]:
        """The tasks that this one exchanges tensors with."""
        return {*self.outgoing, *(task for task, keys in zip(self.tasks, self.incoming, strict=True) if keys)}


class PushedSteps:
    """The pushed steps of one task. Its lock guards all that it keeps; only the end of a step is noted without."""

    def __init__(
        self, own_task: str, rendezvous: Rendezvous, steps: WorkerSteps, peers: Callable[[], Peers | None]
    ) -> None:
        self._own_task = own_task
        self._rendezvous = rendezvous
        self._steps = steps
        self._peers = peers
        self._lock = threading.Lock()
        self._prepared: dict[int, PreparedStep] = {}
        self._running: dict[int, _Running] = {}
        self._early: dict[int, list[Pushed]] = {}
        self._pushed: dict[str, deque[int]] = {}

    def prepare(
        self,
        run_id: int,
        session: WorkerSession,
        registered: RegisteredGraph,
        send_keys: Sequence[str],
        recv_keys: Sequence[str],
        tasks: Sequence[str],
        home: int,
    ) -> None:
        """Agrees to push the values of a partition.

        Raises:
          InvalidArgumentError: the tasks are not those of a step in which this one takes part, or a key is malformed.
          UnimplementedError: one of the tasks that this one exchanges tensors with cannot be reached over the channel.
        """
        if self._own_task not in tasks or len(set(tasks)) != len(tasks) or home >= len(tasks):
            raise errors.InvalidArgumentError.of(
                f"{self._own_task} takes no part in a step of {printable(', '.join(tasks))} with the answer at {home}",
            )
        for key in (*send_keys, *recv_keys):
            parse_key(key)
        outgoing: dict[str, list[str]] = {}
        incoming: dict[str, list[str]] = {task: [] for task in tasks}
        for is_sent, device, key in _edges_of(registered.graph_def):
            try:
                task = task_of(device)
            except ValueError as error:
                raise errors.InvalidArgumentError.of(f"An edge between tasks: {error}") from None
            if task != self._own_task:
                (outgoing if is_sent else incoming).setdefault(task, []).append(key)
        numbers = {task: {key: number for number, key in enumerate(sorted(keys))} for task, keys in outgoing.items()}
        known = tuple(tuple(sorted(incoming[task])) for task in tasks)
        binding = EndpointBinding(
            {key: place for place, key in enumerate(send_keys)},
            {key: place for place, key in enumerate(recv_keys)},
            {key: (task, number) for task, keys in numbers.items() for key, number in keys.items()},
            {key: (source, number) for source, keys in enumerate(known) for number, key in enumerate(keys)},
            len(tasks),
        )
        executor = registered.executor.bound(binding)
        own_index = list(tasks).index(self._own_task)
        prepared = PreparedStep(
            run_id, session, registered, executor, tuple(send_keys), tuple(recv_keys), tuple(tasks), own_index,
            tasks[home] if home >= 0 else None, numbers, known,
        )  # fmt: skip
        peers = self._peers()
        for task in prepared.peers:
            if task not in tasks or peers is None or not peers(task).open_push(self._on_lost(task)):
                raise errors.UnimplementedError.of(f"{self._own_task} has no channel to {task}")
        with self._lock:
            self._prepared[run_id] = prepared
            same = [number for number, each in self._prepared.items() if each.registered is registered]
            self._forget(same[:-_AGREEMENTS_MAX])

    def find(self, run_id: int) -> PreparedStep:
        """What was agreed on. AbortedError when it is not known, as after a restart."""
        prepared = self._prepared.get(run_id)
        if prepared is None:
            raise errors.AbortedError.of(
                f'The step is not known here. Possibly this worker ("{self._own_task}") just restarted.'
            )
        return prepared

    def forget_session(self, session_handle: str) -> None:
        """Drops what was agreed on in a session."""
        with self._lock:
            self._forget([number for number, each in self._prepared.items() if each.session.handle == session_handle])

    def forget_graph(self, registered: RegisteredGraph) -> None:
        """Drops what was agreed on for a partition."""
        with self._lock:
            self._forget([number for number, each in self._prepared.items() if each.registered is registered])

    def _forget(self, run_ids: Sequence[int]) -> None:
        """Drops agreements, and the values that came for steps of them that have not begun. The lock is held."""
        for run_id in run_ids:
            del self._prepared[run_id]
        if run_ids:
            self._early = {
                step_id: kept
                for step_id, early in self._early.items()
                if (kept := [pushed for pushed in early if pushed.run_id not in run_ids])
            }

    def run(
        self,
        prepared: PreparedStep,
        step_id: int,
        values: Sequence[Value],
        done: Done[PreparedResult],
        cancellation: CancellationManager | None = None,
    ) -> Callable[[], None]:
        """Runs a step of a prepared partition; see `LocalWorker.run_prepared`."""
        if len(values) != len(prepared.send_keys):
            raise errors.InvalidArgumentError.of(
                f"{len(prepared.send_keys)} values are to be fed, but {len(values)} came"
            )
        exchange = PushExchange(prepared.run_id, step_id, prepared.own_index, prepared.home, self._push)
        results = [_UNMADE] * len(prepared.recv_keys)
        executor = prepared.executor
        running = self._steps.enter(
            prepared.session, step_id, exchange, None, values, results, cancellation, executor.may_repeat
        )

        def finished(error: errors.OpError | None) -> None:
            self._running.pop(step_id, None)
            self._steps.leave(running)
            if error is not None:
                done(error=error)
                return
            if executor.has_loops:
                self._rendezvous.forget(step_id)  # a value that no iteration waited for may still come
            _give(results, prepared.recv_keys, exchange.rest, done)

        run = executor.begin(running.step, finished)
        arrive = run.arrive if isinstance(run, FlatRun) else _by_key(prepared, exchange)
        self._started(prepared, step_id, running.cancel, arrive)
        run.start()
        return running.cancel

    def _started(
        self, prepared: PreparedStep, step_id: int, cancel: Callable[[errors.OpError], None], arrive: _Arrive
    ) -> None:
        """A step runs; `cancel(error)` stops it. `arrive` takes the values that came before."""
        with self._lock:
            self._running[step_id] = prepared, cancel, arrive
            early = self._early.pop(step_id, ()) if self._early else ()
        for pushed in early:
            try:
                _check_run(pushed, prepared)
                arrive(pushed.source, pushed.keys, pushed.values)
            except LookupError:
                cancel(_unknown_push(pushed))
            except errors.OpError as error:
                cancel(error)

    def cleanup(self, step_id: int) -> None:
        """Forgets what has arrived for a step that is over."""
        with self._lock:
            self._early.pop(step_id, None)

    def deliver(self, pushed: Pushed) -> None:
        """Takes values that another task has pushed, and runs what they make ready, in this thread. A step that is over
        takes none.

        Raises:
          AbortedError: the compiled step is not known here.
          InvalidArgumentError: the step has no such task or value.
          InternalError: a value came before.
        """
        self.find(pushed.run_id)
        running = self._running.get(pushed.step_id) or self._running_now(pushed)
        if running is not None:
            _check_run(pushed, running[0])
            try:
                running[2](pushed.source, pushed.keys, pushed.values)
            except LookupError:
                raise _unknown_push(pushed) from None

    def _running_now(self, early: Pushed) -> _Running | None:
        """The step of these values, if it runs by now; else they are kept for it."""
        with self._lock:
            running = self._running.get(early.step_id)
            if running is None and not self._rendezvous.is_over(early.step_id):
                self._early.setdefault(early.step_id, []).append(early)
        return running

    def _push(self, task: str, pushed: Pushed) -> None:
        peers = self._peers()
        assert peers is not None
        self._pushed.setdefault(task, deque(maxlen=_PUSHES_REMEMBERED)).append(pushed.step_id)
        peers(task).push(pushed)

    def _on_lost(self, task: str) -> Callable[[], None]:
        return lambda: growing_pool.submit(self._lost, task)

    def _lost(self, task: str) -> None:
        """The channel to a task is gone: fails what runs with it, and tells it so, for what was on its way is lost."""
        with self._lock:
            running = [cancel for prepared, cancel, _ in list(self._running.values()) if task in prepared.peers]
        for cancel in running:
            cancel(errors.UnavailableError.of(f"{task}: the connection was lost"))
        peers = self._peers()
        if peers is None:
            return
        for step_id in list(self._pushed.pop(task, ())):
            try:
                peers(task).cleanup_graph(step_id)
            except errors.OpError as error:
                _logger.info("%s: %s", task, error.message)
                return


def _check_run(pushed: Pushed, prepared: PreparedStep) -> None:
    """Raises InvalidArgumentError for values of another compiled step than the one that runs under this number."""
    if pushed.run_id != prepared.run_id:
        raise errors.InvalidArgumentError.of(f"Step {pushed.step_id} is one of another compiled step")


def _unknown_push(pushed: Pushed) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError.of(
        f"Task number {pushed.source} of the step pushed a value that it was not to push"
    )


_UNMADE = object()
"""The place of a result that the step has not made."""


def _by_key(prepared: PreparedStep, exchange: PushExchange) -> _Arrive:
    """Gives arriving values to the step's exchange, under their rendezvous keys."""

    def arrive(source: int, keys: Sequence[Key], values: Sequence[Value]) -> None:
        known = prepared.incoming[source]
        exchange.arrived([known[key] if type(key) is int else key for key in keys], values)

    return arrive


def _give(values: Sequence[Value], keys: Sequence[str], rest: Rest | None, done: Done[PreparedResult]) -> None:
    """Calls done(PreparedResult), or done(error=...) when one of them is dead."""
    for value, key in zip(values, keys, strict=True):
        if value is DEAD:
            done(error=dead_fetch(parse_key(key).tensor_name))
            return
        if value is _UNMADE:
            done(error=unmade_fetch(key))
            return
    done(PreparedResult([shown(value) for value in values], rest))


def unmade_fetch(key: str) -> errors.InvalidArgumentError:
    """The error for a fetched tensor that has no value under its rendezvous key when the step is over."""
    parts = key.split(";")
    name = printable(parts[3] if len(parts) == 5 else key)
    return errors.InvalidArgumentError.of(
        f"Retval[0] does not have value. No operation made {name} during the step; a value inside a loop can be "
        "fetched only behind the loop's Exit."
    )


def dead_fetch(name: str) -> errors.InvalidArgumentError:
    """The error for a fetched tensor that control flow did not reach."""
    return errors.InvalidArgumentError.of(
        f"Retval[0] does not have value. The tensor returned for {name} was not valid: its branch was not taken."
    )


def _edges_of(graph_def: graph_pb2.GraphDef) -> list[tuple[bool, str, str]]:
    """(Whether it is sent, the device at the other end, key) of each edge between tasks; in loops, the key of what is
    outside of them.
    """
    return [
        (
            node.op in SENDS,
            (node.attr["recv_device"] if node.op in SENDS else node.attr["send_device"]).s.decode(),
            _key(node.attr),
        )
        for node in graph_def.node
        if (node.op in SENDS or node.op in RECVS) and not node.attr["client_terminated"].b
    ]


def _key(attr: Mapping[str, attr_value_pb2.AttrValue]) -> str:
    return make_key(
        attr["send_device"].s.decode(),
        attr["send_device_incarnation"].i,
        attr["recv_device"].s.decode(),
        attr["tensor_name"].s.decode(),
    )


_Arrive = Callable[[int, Sequence[Key], Sequence[Value]], None]
"""Takes values of a source (its number) under their keys. Raises LookupError for one that the step does not expect."""
_Running = tuple[PreparedStep, Callable[[errors.OpError], None], _Arrive]
"""A step that runs: what was prepared, what cancels it, and what takes values for it."""
_logger = logging.getLogger("dtf")
