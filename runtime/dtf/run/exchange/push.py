"""Direct steps: compiled steps of which every task is dtf, whose tensors are pushed instead of asked for.

In TensorFlow's protocol the consumer of a tensor asks its producer for it, one call per tensor, and the master tells
every task when a step is over. Where all tasks of a compiled step can reach each other over the channel, they agree on
it once (`prepare`), and from then on

    - a _Send puts its value into the step's `Outbox`, which sends what is there for a task in one message: when the
      thread has nothing more to run, when much has gathered, or when the last message was long ago;
    - what arrives goes straight to where the step wants it (see `wiring`); in a partition with loops, by way of the
      task's rendezvous;
    - a partition that ends well forgets the step by itself; the master speaks only when one fails.

Owns what was agreed on, the outboxes, and what the loss of a peer means: the running steps that it takes part in fail
at once with UnavailableError. Does not know how messages look or travel (`rpc.direct`), nor how steps run (`worker`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dtf.run.exchange.endpoint_binding import Wiring
from dtf.run.exchange.rendezvous import Done, Rendezvous, make_key, parse_key
from dtf.run.executor.flat_run import FlatRun
from dtf.run.executor.instructions import RECVS, SENDS
from dtf.run.executor.step import task_of
from dtf.run.kernels import DEAD
from dtf.run.threads import growing_pool
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.worker.running_steps import RunningSteps, shown
from dtf.wire import errors
from dtf.wire.names import printable

if TYPE_CHECKING:
    from dtf.run.executor.flat_program import FlatProgram
    from dtf.run.worker.worker_session import RegisteredGraph, WorkerSession

__all__ = ["DirectSteps", "Outbox", "PreparedStep", "Pushed", "Rest", "dead_fetch", "give"]

_GATHERED_BYTES_MAX = 1 << 20
_GATHERED_FOR_S_MAX = 0.002
_WORTH_EARLY_BYTES = 1 << 16
_RIDING_BYTES_MAX = 4096
_VALUES_A_LOOK = 16
_PUSHES_REMEMBERED = 64

Peers = Callable[[str], Any]


Rest = tuple[Sequence[Any], Sequence[Any]]
"""The keys and values of what is pushed with an answer."""


class Pushed:
    """Values for one task. `keys` numbers those that are known from the agreement; others have their key."""

    __slots__ = ("keys", "run_id", "source", "step_id", "values")

    def __init__(
        self, run_id: int, step_id: int, source: int, keys: Sequence[int | str], values: Sequence[Any]
    ) -> None:
        self.run_id = run_id
        self.step_id = step_id
        self.source = source
        self.keys = keys
        self.values = values


class PreparedStep(NamedTuple):
    """What this task knows of a compiled step.

    Attributes:
      run_id: the master's number of it.
      session, registered: the partition here.
      program: it with its endpoints connected; None where they are not (see `wiring`).
      send_keys, recv_keys: of the client's feeds and fetches here, in the order in which values come and go.
      tasks: all that take part, in the same order everywhere.
      home: the one that answers go to, if it takes part.
      outgoing: task -> number of each key that is sent to it.
      incoming: for each of `tasks`, the keys that it sends here.
    """

    run_id: int
    session: WorkerSession
    registered: RegisteredGraph
    program: FlatProgram | None
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


class DirectSteps:
    """The direct steps of one task. Its lock guards all that it keeps; only that a step does not run any more is told
    without.
    """

    def __init__(
        self, own_task: str, rendezvous: Rendezvous, steps: RunningSteps, peers: Callable[[], Peers | None]
    ) -> None:
        self._own_task = own_task
        self._rendezvous = rendezvous
        self._steps = steps
        self._peers = peers
        self._lock = threading.Lock()
        self._prepared: dict[int, PreparedStep] = {}
        self._running: dict[int, tuple[PreparedStep, Callable[[errors.OpError], None], FlatRun | None]] = {}
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
        """Agrees to run a partition directly.

        Raises:
          InvalidArgumentError: the tasks are not those of a step in which this one takes part, or a key is malformed.
          UnimplementedError: one of the tasks that this one exchanges tensors with cannot be reached over the channel.
        """
        if self._own_task not in tasks or len(set(tasks)) != len(tasks) or home >= len(tasks):
            raise errors.InvalidArgumentError(
                None,
                None,
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
                raise errors.InvalidArgumentError(None, None, f"An edge between tasks: {error}") from None
            if task != self._own_task:
                (outgoing if is_sent else incoming).setdefault(task, []).append(key)
        numbers = {task: {key: number for number, key in enumerate(sorted(keys))} for task, keys in outgoing.items()}
        known = tuple(tuple(sorted(incoming[task])) for task in tasks)
        wiring = Wiring(
            {key: place for place, key in enumerate(send_keys)},
            {key: place for place, key in enumerate(recv_keys)},
            {key: (task, number) for task, keys in numbers.items() for key, number in keys.items()},
            {key: (source, number) for source, keys in enumerate(known) for number, key in enumerate(keys)},
        )
        program = registered.executor.wired(wiring, len(tasks))
        own_index = list(tasks).index(self._own_task)
        prepared = PreparedStep(
            run_id, session, registered, program, tuple(send_keys), tuple(recv_keys), tuple(tasks), own_index,
            tasks[home] if home >= 0 else None, numbers, known,
        )  # fmt: skip
        peers = self._peers()
        for task in prepared.peers:
            if task not in tasks or peers is None or not peers(task).open_push(self._on_lost(task)):
                raise errors.UnimplementedError(None, None, f"{self._own_task} has no channel to {task}")
        with self._lock:
            self._prepared[run_id] = prepared

    def find(self, run_id: int) -> PreparedStep:
        """What was agreed on. AbortedError when it is not known, as after a restart."""
        prepared = self._prepared.get(run_id)
        if prepared is None:
            raise errors.AbortedError(
                None, None, f'The step is not known here. Possibly this worker ("{self._own_task}") just restarted.'
            )
        return prepared

    def forget_session(self, session_handle: str) -> None:
        """Drops what was agreed on in a session."""
        with self._lock:
            for run_id in [
                run_id for run_id, each in self._prepared.items() if each.session.handle == session_handle
            ]:
                del self._prepared[run_id]

    def run(
        self,
        prepared: PreparedStep,
        program: FlatProgram,
        step_id: int,
        values: Sequence[Any],
        done: Done,
        cancellation: CancellationManager | None = None,
    ) -> Callable[[], None]:
        """Runs a step of a partition whose endpoints are connected; see `LocalWorker.run_prepared`."""
        if len(values) != len(prepared.send_keys):
            raise errors.InvalidArgumentError(
                None, None, f"{len(prepared.send_keys)} values are to be fed, but {len(values)} came"
            )
        outbox = self.outbox(prepared, step_id)
        results = [None] * len(prepared.recv_keys)
        running = self._steps.enter(prepared.session, step_id, outbox, None, values, results, cancellation)

        def finished(error: errors.OpError | None) -> None:
            self.ended(step_id)
            self._steps.leave(running)
            if error is not None:
                done(error=error)
            else:
                give(results, prepared.recv_keys, outbox.rest, done)

        run = FlatRun(program, running.step, finished)
        self.started(prepared, step_id, running.cancel, run)
        run.start()
        return running.cancel

    def started(
        self, prepared: PreparedStep, step_id: int, cancel: Callable[[errors.OpError], None], run: FlatRun | None = None
    ) -> None:
        """A step runs; `cancel(error)` stops it. What has arrived before is given to `run`, if it is wired."""
        with self._lock:
            self._running[step_id] = prepared, cancel, run
            early = self._early.pop(step_id, ()) if self._early else ()
        for pushed in early:
            assert run is not None
            try:
                run.arrive(pushed.source, pushed.keys, pushed.values)
            except LookupError:
                cancel(_unknown_push(pushed))

    def ended(self, step_id: int) -> None:
        """It does not run any more."""
        self._running.pop(step_id, None)

    def cleanup(self, step_id: int) -> None:
        """Forgets what has arrived for a step that is over."""
        with self._lock:
            self._early.pop(step_id, None)

    def outbox(self, prepared: PreparedStep, step_id: int) -> Outbox:
        """Where the step's values for other tasks go."""
        return Outbox(prepared, step_id, self._push)

    def deliver(self, pushed: Pushed) -> list[tuple[Callable[..., None], Any]]:
        """Takes values that another task has pushed; gives those that somebody waits for, with who does.

        A step that is over takes none.

        Raises:
          AbortedError: the compiled step is not known here.
          InvalidArgumentError: the step has no such task or value.
        """
        prepared = self.find(pushed.run_id)
        if prepared.program is not None:
            running = self._running.get(pushed.step_id) or self._running_now(pushed)
            if running is not None and running[2] is not None:
                try:
                    running[2].arrive(pushed.source, pushed.keys, pushed.values)
                except LookupError:
                    raise _unknown_push(pushed) from None
            return []
        try:
            known = prepared.incoming[pushed.source]
            keys = [known[key] if type(key) is int else str(key) for key in pushed.keys]
        except LookupError:
            raise _unknown_push(pushed) from None
        try:
            return self._rendezvous.step(pushed.step_id).send_all(keys, pushed.values)
        except errors.AbortedError:
            return []

    def _running_now(self, early: Pushed) -> tuple[PreparedStep, Any, FlatRun | None] | None:
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
            cancel(errors.UnavailableError(None, None, f"{task}: the connection was lost"))
        peers = self._peers()
        if peers is None:
            return
        for step_id in list(self._pushed.pop(task, ())):
            try:
                peers(task).cleanup_graph(step_id)
            except errors.OpError as error:
                _logger.info("%s: %s", task, error.message)
                return


class Outbox:
    """The values of one step at one task that go to other tasks. Any thread may add and flush at any time; one flushes
    at once, under the lock. `_count` is not 0 while something waits whose thread is done with adding it. `_alone` names
    the tasks for which something waits that is of use by itself, `_riding` has small values that need no message of
    their own: what they are for waits for another one from here as well. To a wired step the outbox is what a
    rendezvous is to others.

    Attributes:
      rest: what the last flush has left for the answer to take with it.
    """

    __slots__ = (
        "_alone", "_bytes", "_count", "_is_computing", "_lock", "_prepared", "_push", "_riding", "_since", "_step_id",
        "_waiting", "rest",
    )  # fmt: skip

    def __init__(self, prepared: PreparedStep, step_id: int, push: Callable[[str, Pushed], None]) -> None:
        self._prepared = prepared
        self._step_id = step_id
        self._push = push
        self._lock = threading.Lock()
        self._waiting: dict[str, list[tuple[int | str, Any]]] = {}
        self._riding: dict[str, list[tuple[int | str, Any]]] = {}
        self._alone: set[str] = set()
        self._count = 0
        self._bytes = 0
        self._since = 0.0
        self._is_computing = False
        self.rest: Rest | None = None

    def add(self, task: str, key: int | str, value: Any) -> None:
        """Takes a value for a task, under its number or its rendezvous key.

        Raises:
          UnavailableError: it had to go at once, and the task cannot be reached.
        """
        if not self._alone and not self._is_computing:
            self._since = time.monotonic()
        self._alone.add(task)
        self.gather(task, key, value)
        # Who computes for long makes few values; of many, one in a while looks at the clock.
        if (self._is_computing or self._count % _VALUES_A_LOOK == 0) and (
            time.monotonic() > self._since + _GATHERED_FOR_S_MAX
        ):
            self._flush_early()

    def gather(self, task: str, key: int | str, value: Any) -> None:
        """Takes one of several values that the task waits for together. Errors as `add`."""
        pairs = self._waiting.get(task)
        if pairs is None:
            pairs = self._waiting.setdefault(task, [])
        pairs.append((key, value))
        self._count += 1
        self._bytes += getattr(value, "nbytes", 0)
        if self._bytes > _GATHERED_BYTES_MAX:
            self._flush_early()

    def ride(self, task: str, key: int | str, value: Any) -> None:
        """Takes a value that goes with the next ones for the task, or at the end of the step. Errors as `add`."""
        if getattr(value, "nbytes", 0) > _RIDING_BYTES_MAX:
            self.add(task, key, value)
            return
        with self._lock:
            self._riding.setdefault(task, []).append((key, value))

    def computing(self) -> None:
        """What is made from now on takes long: a value that was long in the making does not wait for a next one."""
        self._is_computing = True
        self._since = time.monotonic()

    def send(self, key: str, value: Any, task: str) -> None:
        """As `add`, with the rendezvous key."""
        self.add(task, self._prepared.outgoing.get(task, _NOTHING).get(key, key), value)

    def abort(self, error: errors.OpError) -> None:
        """The step is over; there is nobody here who waits for a value."""

    def flush(self, is_last: bool = False) -> None:
        """Sends what there is. At the end of a step, what is for the task of the master is left in `rest`.

        Raises:
          UnavailableError: a task cannot be reached.
        """
        if self._count or (is_last and self._riding):
            with self._lock:
                self._count = self._bytes = 0
                self._since = time.monotonic()
                batches = [self._take(task) for task, pairs in list(self._waiting.items()) if pairs]
                if is_last:
                    batches += [self._take(task) for task in list(self._riding)]
            self._send(batches, is_last)

    def _flush_early(self) -> None:
        """As `flush`, while more is being made: what is of no use without the rest waits for it, unless it is large."""
        with self._lock:
            self._count = self._bytes = 0
            self._since = time.monotonic()
            batches = []
            for task, pairs in list(self._waiting.items()):
                size = sum(getattr(value, "nbytes", 0) for _, value in pairs[:])
                if pairs and (task in self._alone or size >= _WORTH_EARLY_BYTES):
                    batches.append(self._take(task))
                elif pairs:  # never adds 0, which could undo what another thread counts in this moment
                    self._count += len(pairs)
                    self._bytes += size
        self._send(batches, False)

    def _take(self, task: str) -> tuple[str, list[tuple[int | str, Any]]]:
        """The task with all that waits for it, which waits no more. The lock is held."""
        self._alone.discard(task)
        pairs = self._waiting.get(task, [])
        batch = pairs[:]
        del pairs[: len(batch)]  # what others add meanwhile comes after
        return task, self._riding.pop(task, []) + batch

    def _send(self, batches: Sequence[tuple[str, list[tuple[int | str, Any]]]], is_last: bool) -> None:
        prepared = self._prepared
        for task, batch in batches:
            keys, values = zip(*batch, strict=True)
            if is_last and task == prepared.home:
                self.rest = keys, values
                continue
            self._push(task, Pushed(prepared.run_id, self._step_id, prepared.own_index, keys, values))


def _unknown_push(pushed: Pushed) -> errors.InvalidArgumentError:
    return errors.InvalidArgumentError(
        None, None, f"Task number {pushed.source} of the step pushed a value that it was not to push"
    )


_NOTHING: dict[str, int] = {}
_logger = logging.getLogger("dtf")


def give(values: Sequence[Any], keys: Sequence[str], rest: Rest | None, done: Done) -> None:
    """Calls done(values, rest), or done(error=...) when one of them is dead."""
    for value, key in zip(values, keys, strict=True):
        if value is DEAD:
            done(error=dead_fetch(parse_key(key).tensor_name))
            return
    done([shown(value) for value in values], rest)


def dead_fetch(name: str) -> errors.InvalidArgumentError:
    """The error for a fetched tensor that control flow did not reach."""
    return errors.InvalidArgumentError(
        None, None, f"The tensor returned for {name} was not valid: it is in a branch that was not taken."
    )


def _edges_of(graph_def: Any) -> list[tuple[bool, str, str]]:
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


def _key(attr: Any) -> str:
    return make_key(
        attr["send_device"].s.decode(),
        attr["send_device_incarnation"].i,
        attr["recv_device"].s.decode(),
        attr["tensor_name"].s.decode(),
    )


