"""Work queues: shards of records that workers lease, so that each record counts in exactly one confirmed step.

Owns `WorkQueue`, an object of a parameter server. A worker takes a shard for a while (a lease), and confirms with each
step how far it has come. A lease that is not confirmed for `lease_s` seconds ends; its shard goes to another worker,
from the last confirmed record on. A confirmation by a former holder fails, so that its step changes nothing.

The state is small, whatever the number of shards: how many were given out for the first time, and those of them that
are not finished, each with its position. Leases are not part of it: a restored queue has none.

Source: https://www.tensorflow.org/api_docs/python/tf/data/experimental/service (dynamic sharding)
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

import numpy as np

from dtf.run.interfaces import Done
from dtf.run.kernels.arguments import invalid
from dtf.run.state.change_log import NOT_KEPT, ChangeLog, Entries, EntryKey, Parts
from dtf.run.state.wait_queue import Operation, WaitQueue, flush
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors

__all__ = ["Lease", "WorkQueue"]

SHARDS_MAX = 100_000_000
"""A limit for what a peer declares; the names of so many take some GB."""


class Item(NamedTuple):
    """One shard in one epoch, and how many of its records are confirmed."""

    epoch: int
    shard: int
    position: int


class Lease(NamedTuple):
    """What a worker gets: the lease's number, the shard's name, the epoch, and the first record not yet confirmed."""

    number: int
    work: bytes
    epoch: int
    position: int


class _Held:
    __slots__ = ("holder", "item", "until")

    def __init__(self, item: Item, holder: str, until: float) -> None:
        self.item = item
        self.holder = holder
        self.until = until


class WorkQueue:
    """The shards of all epochs, in their order. The lock guards it.

    An epoch may begin while the last shards of the former are still leased, so that nobody waits for the slowest
    worker. The order of an epoch follows from the seed and the epoch's number.

    Attributes:
      name: its name in its container.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        """clock: seconds; passed in for tests."""
        self.name = name
        self._clock = clock
        self._lock = threading.RLock()
        self._waiting = WaitQueue(self._lock)
        self._timer: threading.Timer | None = None
        self._settings: tuple[object, ...] | None = None
        self._restored: list[int] | None = None
        self._works: Sequence[bytes] = ()
        self._epochs = 0
        self._seed: int | None = None
        self._lease_s = 0.0
        self._order: tuple[int, np.ndarray] | None = None
        self._begun = 0
        self._returned: deque[Item] = deque()
        self._held: dict[int, _Held] = {}
        self._lost: dict[int, str] = {}
        # A lease of a former queue of this name must never be taken for one of this.
        self._number = secrets.randbits(42) << 20
        self._log: ChangeLog = NOT_KEPT

    def create(self, works: Sequence[bytes], epochs: int, seed: int | None, lease_s: float) -> None:
        """Fills the queue once; again with the same arguments, as every worker does, changes nothing.

        Args:
          works: the names of the shards.
          epochs: how often each is given out; 0: without end.
          seed: of the order; None: the order of `works`.
          lease_s: seconds.

        Raises:
          FailedPreconditionError: it has been filled with something else.
          InvalidArgumentError: an argument is out of range.
        """
        if not 0 < len(works) <= SHARDS_MAX:
            raise invalid(f"work queue {self.name} needs 1 to {SHARDS_MAX} shards, but got {len(works)}")
        if epochs < 0 or not 0 < lease_s < threading.TIMEOUT_MAX:
            raise invalid(
                f"work queue {self.name}: num_epochs must not be negative and lease_s must be positive, "
                f"but they are {epochs} and {lease_s}"
            )
        settings = (tuple(works), epochs, seed, lease_s)
        with self._lock:
            if self._settings is not None and self._settings != settings:
                raise errors.FailedPreconditionError.of(
                    f"Work queue {self.name} has other shards or settings already; give this one another name."
                )
            if self._settings is not None:
                return
            self._works, self._epochs, self._seed, self._lease_s = works, epochs, seed, lease_s
            if self._restored is not None:
                self._begun, self._returned = self._state_of(self._restored)
                self._restored = None
                self._log.remove(_RESTORED)
            self._settings = settings
            self._log.put(_WORKS, [_strings(self._works)])
            self._log.put(_SETTINGS, self._settings_parts())
            self._log_counts()
            self._log_returned()
        flush(self._lock, self._waiting)

    def take(self, holder: str, cancellation: CancellationManager | None, done: Done[Lease]) -> None:
        """Leases the next shard to `holder`, which only messages name. Waits while all that is left is leased.

        Fails with OutOfRangeError when all epochs are confirmed.
        """

        def attempt(operation: Operation) -> bool:
            if self._settings is None:
                return operation.fail(
                    errors.FailedPreconditionError.of(
                        f"Work queue {self.name} is not initialized: run tf.tables_initializer() first."
                    )
                )
            self._expire()
            item = self._next()
            if item is not None:
                operation.value = self._lend(item, holder)
                self._log_counts()
                return True
            if self._held:
                self._set_timer()
                return False
            return operation.fail(errors.OutOfRangeError.of(f"Work queue {self.name}: all epochs are confirmed."))

        operation = Operation(attempt, done, cancellation, f"Taking from work queue {self.name} was cancelled")
        if not self._waiting.join(operation):
            operation.report()
            return
        flush(self._lock, self._waiting)

    def confirm(self, number: int, position: int, is_done: bool) -> None:
        """Records before `position` of a lease's shard count from now on; the lease begins anew, or ends if `is_done`.

        Raises:
          FailedPreconditionError: the lease has ended. Nothing changes.
          InvalidArgumentError: `position` is before the one that was confirmed.
        """
        with self._lock:
            self._expire()
            held = self._holding(number)
            if position < held.item.position:
                raise invalid(
                    f"work queue {self.name}: record {held.item.position} of shard {self._text(held.item)} is "
                    f"confirmed, so the position cannot go back to {position}"
                )
            held.item = held.item._replace(position=position)
            held.until = self._clock() + self._lease_s
            if is_done:
                del self._held[number]
                self._log.remove(number)
            else:
                self._log_held(number, held)
        if is_done:
            flush(self._lock, self._waiting)

    def release(self, number: int) -> None:
        """Gives a shard back before its end: the next worker goes on from the last confirmed record.

        Raises:
          FailedPreconditionError: the lease has ended.
        """
        with self._lock:
            self._expire()
            self._returned.append(self._holding(number).item)
            del self._held[number]
            self._log.remove(number)
            self._log_returned()
        flush(self._lock, self._waiting)

    def export(self) -> np.ndarray:
        """The state: int64 [1 + 3 * unfinished], the number of shards begun, then (epoch, shard, position) of each."""
        with self._lock:
            unfinished = sorted([*self._returned, *(held.item for held in self._held.values())])
            return np.array([self._begun, *(number for item in unfinished for number in item)], np.int64)

    def restore(self, state: np.ndarray) -> None:
        """Takes on an exported state, now or once the queue is filled: a checkpoint is restored before tables are
        filled. All leases end.

        Raises:
          InvalidArgumentError: it is not a state of a queue with these shards; `create` raises this too.
        """
        numbers = np.ravel(state).tolist()
        with self._lock:
            if self._settings is None:
                self._restored = numbers
                self._log.put(_RESTORED, [np.array(numbers, np.int64)])
                return
            begun, returned = self._state_of(numbers)
            for number, held in self._held.items():
                self._lose(number, f"{held.holder} held it when the queue was restored from a checkpoint")
                self._log.remove(number)
            self._held.clear()
            self._begun, self._returned = begun, returned
            self._log_counts()
            self._log_returned()
        flush(self._lock, self._waiting)

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._log, self._waiting.guard = log, guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`. The times at which leases end are not part of it."""
        with self._lock:
            kept: dict[EntryKey, Parts] = {_COUNTS: self._counts(), _RETURNED: self._returned_parts()}
            if self._restored is not None:
                kept[_RESTORED] = [np.array(self._restored, np.int64)]
            if self._settings is not None:
                kept[_WORKS], kept[_SETTINGS] = [_strings(self._works)], self._settings_parts()
            kept.update((number, _held_parts(held)) for number, held in self._held.items())
            return kept

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`. Each lease begins anew: its holder may have been unable to confirm."""
        with self._lock:
            if _WORKS in entries:
                self._works = np.ravel(entries[_WORKS][0]).tolist()
                epochs, has_seed, seed = np.ravel(entries[_SETTINGS][0]).tolist()
                self._epochs, self._lease_s = epochs, float(entries[_SETTINGS][1])
                self._seed = seed if has_seed else None
                self._settings = tuple(self._works), self._epochs, self._seed, self._lease_s
            if _RESTORED in entries:
                self._restored = np.ravel(entries[_RESTORED][0]).tolist()
            if _COUNTS in entries:
                self._begun, self._number = np.ravel(entries[_COUNTS][0]).tolist()
            if _RETURNED in entries:
                self._returned = deque(Item(*each) for each in np.asarray(entries[_RETURNED][0]).tolist())
            until = self._clock() + self._lease_s
            for number, parts in entries.items():
                if isinstance(number, int):
                    holder = np.ravel(parts[1]).tolist()[0].decode(errors="backslashreplace")
                    self._held[number] = _Held(Item(*np.ravel(parts[0]).tolist()), holder, until)

    def close(self) -> None:
        """Ends what waits, with CancelledError; the queue's container was emptied."""
        with self._lock:
            self._cancel_timer()
            ended = self._waiting.drain(
                lambda operation: errors.CancelledError.of(f"Work queue {self.name} was removed")
            )
        for operation in ended:
            operation.report()

    # Under the lock

    def _state_of(self, numbers: Sequence[int]) -> tuple[int, deque[Item]]:
        items = [Item(*numbers[at : at + 3]) for at in range(1, len(numbers) - 2, 3)]
        total = self._epochs * len(self._works)
        if (
            len(numbers) % 3 != 1
            or not 0 <= numbers[0] <= (total or numbers[0])
            or len({item[:2] for item in items}) < len(items)
            or not all(0 <= item.shard < len(self._works) and item.epoch >= 0 <= item.position for item in items)
        ):
            raise invalid(f"work queue {self.name}: the state to restore is not one of its {len(self._works)} shards")
        return numbers[0], deque(items)

    def _next(self) -> Item | None:
        if self._returned:
            item = self._returned.popleft()
            self._log_returned()
            return item
        epoch, place = divmod(self._begun, len(self._works))
        if self._epochs and epoch >= self._epochs:
            return None
        self._begun += 1
        return Item(epoch, self._at(epoch, place), 0)

    def _at(self, epoch: int, place: int) -> int:
        if self._seed is None:
            return place
        if self._order is None or self._order[0] != epoch:
            generator = np.random.Generator(np.random.PCG64([self._seed & (2**64 - 1), epoch]))
            self._order = (epoch, generator.permutation(len(self._works)))
        return int(self._order[1][place])

    def _lend(self, item: Item, holder: str) -> Lease:
        self._number += 1
        held = self._held[self._number] = _Held(item, holder, self._clock() + self._lease_s)
        self._log_held(self._number, held)
        return Lease(self._number, self._works[item.shard], item.epoch, item.position)

    def _holding(self, number: int) -> _Held:
        held = self._held.get(number)
        if held is None:
            why = self._lost.get(number, "it is finished, or was made by a former queue of this name")
            raise errors.FailedPreconditionError.of(f"Lease {number} of work queue {self.name} has ended: {why}.")
        return held

    def _expire(self) -> None:
        now = self._clock()
        for number in [number for number, held in self._held.items() if held.until <= now]:
            held = self._held.pop(number)
            self._lose(number, f"{held.holder} confirmed nothing for {self._lease_s:g} s")
            self._returned.append(held.item)
            self._log.remove(number)
            self._log_returned()

    def _lose(self, number: int, why: str) -> None:
        self._lost[number] = why
        if len(self._lost) > 1000:
            del self._lost[next(iter(self._lost))]

    def _set_timer(self) -> None:
        """Wakes what waits when the first lease ends."""
        if self._timer is not None and self._timer.is_alive():
            return
        first = min(held.until for held in self._held.values())
        self._timer = threading.Timer(max(0.0, first - self._clock()) + 0.01, self._wake)
        self._timer.daemon = True
        self._timer.start()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wake(self) -> None:
        with self._lock:
            self._timer = None
        with self._waiting.guard:
            flush(self._lock, self._waiting)

    def _text(self, item: Item) -> str:
        return f"{self._works[item.shard].decode(errors='backslashreplace')} (epoch {item.epoch})"

    def _log_counts(self) -> None:
        if self._log.is_kept:
            self._log.put(_COUNTS, self._counts())

    def _log_returned(self) -> None:
        if self._log.is_kept:
            self._log.put(_RETURNED, self._returned_parts())

    def _log_held(self, number: int, held: _Held) -> None:
        if self._log.is_kept:
            self._log.put(number, _held_parts(held))

    def _counts(self) -> Parts:
        return [np.array([self._begun, self._number], np.int64)]

    def _returned_parts(self) -> Parts:
        return [np.array(list(self._returned), np.int64).reshape(-1, 3)]

    def _settings_parts(self) -> Parts:
        seed = self._seed
        return [np.array([self._epochs, seed is not None, seed or 0], np.int64), np.float64(self._lease_s)]


_WORKS, _SETTINGS, _COUNTS, _RETURNED, _RESTORED = "works", "settings", "counts", "returned", "restored"


def _held_parts(held: _Held) -> Parts:
    return [np.array(held.item, np.int64), _strings([held.holder.encode()])]


def _strings(texts: Sequence[bytes]) -> np.ndarray:
    made = np.empty(len(texts), object)
    made[:] = texts
    return made
