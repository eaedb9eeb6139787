"""PushExchange: the values of one pushed step at one task.

Owns the send buffer, and the table of values that came under their rendezvous keys. A value that was sent waits in the
buffer until its message leaves: when the thread has nothing more to run, when much has gathered, or when the last
message was long ago. `piggyback` says which values may wait for others. Does not know how messages look or travel
(`rpc.push`), nor which steps run (`push`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import cast

from dtf.run.exchange.rendezvous import StepRendezvous
from dtf.run.interfaces import Done, Key, Pushed, Rest, Value
from dtf.wire import errors

__all__ = ["PushExchange"]

_GATHERED_BYTES_MAX = 1 << 20
_GATHERED_FOR_S_MAX = 0.002
_WORTH_EARLY_BYTES = 1 << 16
_PIGGYBACKED_BYTES_MAX = 4096
_VALUES_A_LOOK = 16

_Batch = tuple[str, list[tuple[Key, Value]]]


class PushExchange:
    """A `StepExchange` that pushes values. One thread flushes at a time, under the lock. `_count` is not 0 while a
    value waits whose thread has finished adding it. `_alone` names the tasks for which a value waits that is of use by
    itself. `_piggybacked` has small values that need no message of their own. A partition that was bound to the step
    (`endpoint_binding`) receives in its slots; only one with loops receives by key, from `_table`.

    Attributes:
      rest: what the last flush has left for the answer to take with it.
    """

    __slots__ = (
        "_aborted", "_alone", "_bytes", "_count", "_home", "_is_computing", "_is_held", "_lock", "_piggybacked",
        "_push", "_run_id", "_since", "_source", "_step_id", "_table", "_waiting", "rest",
    )  # fmt: skip

    def __init__(
        self, run_id: int, step_id: int, source: int, home: str | None, push: Callable[[str, Pushed], None]
    ) -> None:
        """An exchange without values.

        Args:
          run_id, step_id: of the step.
          source: the number of this task among those of the step.
          home: the task that the answer goes to, if it takes part.
          push: brings values to a task. Raises UnavailableError.
        """
        self._run_id = run_id
        self._step_id = step_id
        self._source = source
        self._home = home
        self._push = push
        self._lock = threading.Lock()
        self._waiting: dict[str, list[tuple[Key, Value]]] = {}
        self._piggybacked: dict[str, list[tuple[Key, Value]]] = {}
        self._alone: set[str] = set()
        self._count = 0
        self._bytes = 0
        self._since = 0.0
        self._is_computing = False
        self._is_held: Callable[[], bool] | None = None
        self._table: StepRendezvous | None = None
        self._aborted: errors.OpError | None = None
        self.rest: Rest | None = None

    def send(self, key: Key, value: Value, task: str | None = None) -> None:
        """See `StepExchange.send`."""
        if task is None:
            self._received().send(key, value)
            return
        if not self._alone and not self._is_computing:
            self._since = time.monotonic()
        self._alone.add(task)
        self.send_grouped(key, value, task)
        # Who computes for long makes few values; of many, one in a while looks at the clock.
        if (self._is_computing or self._count % _VALUES_A_LOOK == 0) and (
            time.monotonic() > self._since + _GATHERED_FOR_S_MAX
        ):
            self._flush_early()

    def send_grouped(self, key: Key, value: Value, task: str) -> None:
        """See `StepExchange.send_grouped`: the value does not leave early without the others, unless it is large."""
        pairs = self._waiting.get(task)
        if pairs is None:
            pairs = self._waiting.setdefault(task, [])
        pairs.append((key, value))
        self._count += 1
        self._bytes += getattr(value, "nbytes", 0)
        if self._bytes > _GATHERED_BYTES_MAX:
            self._flush_early()

    def send_piggybacked(self, key: Key, value: Value, task: str) -> None:
        """See `StepExchange.send_piggybacked`: the value leaves with the next ones, or at the end of the step."""
        if getattr(value, "nbytes", 0) > _PIGGYBACKED_BYTES_MAX:
            self.send(key, value, task)
            return
        with self._lock:
            self._piggybacked.setdefault(task, []).append((key, value))

    def recv(self, key: str, done: Done[Value], task: str | None = None) -> None:
        """See `StepExchange.recv`. The value comes unasked, whichever task makes it."""
        self._received().recv(key, done)

    def arrived(self, keys: Sequence[Key], values: Sequence[Value]) -> None:
        """Takes values that another task has pushed under their keys, and runs what they make ready, in this thread. A
        step that was aborted takes none.

        Raises:
          InternalError: a key came before.
        """
        try:
            awaited = self._received().send_all(keys, values)
        except errors.OpError:
            if self._aborted is None:
                raise
            return
        for done, value in awaited:
            done(value)

    def hold_back(self, is_held: Callable[[], bool]) -> None:
        """See `StepExchange.hold_back`."""
        self._is_held = is_held

    def computing(self) -> None:
        """See `StepExchange.computing`: a value that was long in the making does not wait for a next one."""
        self._is_computing = True
        self._since = time.monotonic()

    def flush(self, is_last: bool = False) -> None:
        """See `StepExchange.flush`. The last values for the task of the master are left in `rest`."""
        if self._count or (is_last and self._piggybacked):
            with self._lock:
                self._count = self._bytes = 0
                self._since = time.monotonic()
                batches = [self._take(task) for task, pairs in list(self._waiting.items()) if pairs]
                if is_last:
                    batches += [self._take(task) for task in list(self._piggybacked)]
            self._send(batches, is_last)

    def abort(self, error: errors.OpError) -> None:
        """See `StepExchange.abort`."""
        with self._lock:
            self._aborted = self._aborted or error
            table = self._table
        if table is not None:
            table.abort(error)

    def _received(self) -> StepRendezvous:
        """The table of values that came by key, made when it is first needed."""
        table = self._table
        if table is None:
            with self._lock:
                table = self._table
                if table is None:
                    table = StepRendezvous(self._step_id)
                    if self._aborted is not None:
                        table.abort(self._aborted)
                    self._table = table
        return table

    def _flush_early(self) -> None:
        """As `flush`, while more is being made: a value that is of no use without the rest waits for it, unless it is
        large.
        """
        if self._is_held is not None and self._is_held():
            return
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

    def _take(self, task: str) -> _Batch:
        """The task with all that waits for it, which waits no more. The lock is held."""
        self._alone.discard(task)
        pairs = self._waiting.get(task, [])
        batch = pairs[:]
        del pairs[: len(batch)]  # what others add meanwhile comes after
        return task, self._piggybacked.pop(task, []) + batch

    def _send(self, batches: Sequence[_Batch], is_last: bool) -> None:
        for task, batch in batches:
            keys, values = zip(*batch, strict=True)
            if is_last and task == self._home:
                self.rest = cast("Sequence[int]", keys), values  # a partition without loops has numbers only
                continue
            self._push(task, Pushed(self._run_id, self._step_id, self._source, keys, values))
