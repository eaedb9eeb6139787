"""Staging areas, barriers and mutexes: where tuples wait between steps, by order or by key.

Owns `StagingArea`, `MapStagingArea`, `Barrier` and `Mutex`. An operation that must wait stands in a `WaitQueue`
and holds no thread. `kernels/staging.py` binds them to ops; queues proper are in `queues.py`.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from dtf.run.lib.growth import Growth
from dtf.run.state.change_log import NOT_KEPT, ChangeLog, Entries, EntryKey, Parts
from dtf.run.state.wait_queue import Done, Operation, Outputs, WaitQueue, flush
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array, Element
from dtf.wire import errors

_FIRST_INDEX = -(2**63)


class _WaitQueues:
    """Operations on one object that wait independently of each other. `lock` guards them and the owner's state.
    `guard` is that of `WaitQueue`.
    """

    def __init__(self, what: str) -> None:
        self.lock = threading.RLock()
        self._what = what
        self._wait_queues: set[WaitQueue] = set()
        self.guard: AbstractContextManager[object] = nullcontext()

    def run(
        self, attempt: Callable[[Operation], bool], cancellation: CancellationManager | None, done: Done[Any]
    ) -> None:
        """Reports to `done` when `attempt` has succeeded, now or after another operation has."""
        wait_queue = WaitQueue(self.lock)
        wait_queue.guard = self.guard
        operation = Operation(attempt, done, cancellation, f"{self._what} operation was cancelled")
        with self.lock:
            self._wait_queues.add(wait_queue)
        if not wait_queue.join(operation):
            operation.report()
        self.advance()

    def advance(self) -> None:
        """Tries all operations again, until none moves."""
        with self.lock:
            wait_queues = list(self._wait_queues)
        flush(self.lock, *wait_queues)
        with self.lock:
            self._wait_queues -= {wait_queue for wait_queue in wait_queues if not len(wait_queue)}


class StagingArea:
    """A first-in-first-out line of tuples, bounded by their number and by their bytes (0: not bounded)."""

    def __init__(self, capacity: int, memory_limit: int) -> None:
        self._capacity, self._memory_limit = capacity, memory_limit
        self._log: ChangeLog = NOT_KEPT
        self._first = 0  # the number of the first element, which is the key of its entry
        self._elements: deque[Element] = deque()
        self._growth = Growth("a staging area")
        self._wait_queues = _WaitQueues("Stage")

    def __len__(self) -> int:
        return len(self._elements)

    def put(self, element: Element, cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        """Adds a tuple; waits while there is no room."""
        check_memory(element, self._memory_limit)
        self._growth.add(element, len(self._elements))

        def attempt(operation: Operation) -> bool:
            if not has_room(self._elements, element, self._capacity, self._memory_limit):
                return False
            self._log.put(self._first + len(self._elements), element)
            self._elements.append(element)
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def take(self, cancellation: CancellationManager | None, done: Done[Element]) -> None:
        """Removes the oldest tuple; waits while the area is empty."""
        self._get(0, self._popped, cancellation, done)

    def peek(self, index: int, cancellation: CancellationManager | None, done: Done[Element]) -> None:
        """The tuple at `index`; waits while there are not so many."""
        self._get(index, lambda: self._elements[index], cancellation, done)

    def clear(self) -> None:
        """Removes all tuples."""
        with self._wait_queues.lock:
            self._log.clear()
            self._elements.clear()
        self._wait_queues.advance()

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._log, self._wait_queues.guard = log, guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            return dict(enumerate(self._elements, self._first))

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            numbers = sorted(key for key in entries if isinstance(key, int))
            self._first = numbers[0] if numbers else 0
            self._elements.extend(tuple(entries[number]) for number in numbers)

    def _popped(self) -> Element:
        self._log.remove(self._first)
        self._first += 1
        return self._elements.popleft()

    def _get(
        self,
        index: int,
        get: Callable[[], Element],
        cancellation: CancellationManager | None,
        done: Done[Element],
    ) -> None:
        def attempt(operation: Operation) -> bool:
            if index >= len(self._elements):
                return False
            operation.value = get()
            return True

        self._wait_queues.run(attempt, cancellation, done)


class MapStagingArea:
    """Tuples by int64 key, put in by parts; a tuple can be taken when it is whole. Bounded as `StagingArea`."""

    def __init__(self, capacity: int, memory_limit: int, size: int) -> None:
        self._capacity, self._memory_limit, self._size = capacity, memory_limit, size
        self._log: ChangeLog = NOT_KEPT
        self._incomplete: dict[int, dict[int, Array]] = {}
        self._complete: dict[int, dict[int, Array]] = {}
        self._growth = Growth("a staging area")
        self._wait_queues = _WaitQueues("Map stage")

    def __len__(self) -> int:
        return len(self._complete)

    @property
    def incomplete_size(self) -> int:
        """How many keys still miss parts."""
        return len(self._incomplete)

    def put(
        self,
        key: int,
        indices: Sequence[int],
        values: Sequence[Array],
        cancellation: CancellationManager | None,
        done: Done[Outputs],
    ) -> None:
        """Adds the parts `indices` of the tuple `key`; the last of them waits while there is no room.

        Raises:
          InvalidArgumentError: an index is out of range, or its part is there already.
        """
        self._check(indices)
        check_memory(values, self._memory_limit)
        self._growth.add(values, len(self._incomplete) + len(self._complete))
        with self._wait_queues.lock:
            parts = {**self._incomplete.get(key, self._complete.get(key, {}))}
            for index in indices:
                if index in parts:
                    raise _invalid(f"The tensor for index '{index}' for key '{key}' was already initialized "
                                   f"'{self._size}'.")  # fmt: skip
        new = dict(zip(indices, values, strict=True))

        def attempt(operation: Operation) -> bool:
            parts = {**self._incomplete.get(key, {}), **new}
            held = [tuple(each.values()) for each in self._complete.values()]
            if len(parts) < self._size:
                self._incomplete[key] = parts
                self._log.put(f"incomplete {key}", _numbered_parts(parts))
            elif has_room(held, tuple(parts.values()), self._capacity, self._memory_limit):
                if self._incomplete.pop(key, None) is not None:
                    self._log.remove(f"incomplete {key}")
                self._complete[key] = parts
                self._log.put(key, _numbered_parts(parts))
            else:
                return False
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def take(
        self,
        key: int | None,
        indices: Sequence[int],
        ordered: bool,
        cancellation: CancellationManager | None,
        done: Done[tuple[int, Element]],
    ) -> None:
        """(key, the parts `indices`), removed; of any key (the least if `ordered`) without `key`. Waits for it."""
        self._check(indices)

        def attempt(operation: Operation) -> bool:
            if not self._complete or key is not None and key not in self._complete:
                return False
            found = key if key is not None else min(self._complete) if ordered else next(iter(self._complete))
            parts = self._complete[found]
            if any(index not in parts for index in indices):
                return operation.fail(_invalid(f"Some of the parts {list(indices)} of key '{found}' are gone."))
            operation.value = (found, tuple(parts.pop(index) for index in indices))
            if parts:
                self._log.put(found, _numbered_parts(parts))
            else:
                del self._complete[found]
                self._log.remove(found)
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def peek(
        self, key: int, indices: Sequence[int], cancellation: CancellationManager | None, done: Done[Element]
    ) -> None:
        """The parts `indices` of the whole tuple `key`; waits for it."""
        self._check(indices)

        def attempt(operation: Operation) -> bool:
            if key not in self._complete:
                return False
            operation.value = tuple(self._complete[key][index] for index in indices)
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def clear(self) -> None:
        """Removes everything."""
        with self._wait_queues.lock:
            self._log.clear()
            self._complete.clear()
            self._incomplete.clear()
        self._wait_queues.advance()

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._log, self._wait_queues.guard = log, guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            kept: dict[EntryKey, Parts] = {}
            for key, parts in self._incomplete.items():
                kept[f"incomplete {key}"] = _numbered_parts(parts)
            kept.update((key, _numbered_parts(parts)) for key, parts in self._complete.items())
            return kept

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            for key, parts in entries.items():
                if isinstance(key, int):
                    self._complete[key] = _parts_by_number(parts)
                else:
                    self._incomplete[int(key.split()[1])] = _parts_by_number(parts)

    def _check(self, indices: Sequence[int]) -> None:
        for index in indices:
            if not 0 <= index < self._size:
                raise _invalid(f"Index '{index}' for key was out of bounds '{self._size}'.")
        if any(index >= following for index, following in itertools.pairwise(indices)):
            raise _invalid(f"The indices {list(indices)} are not strictly ordered; give them in ascending order.")


class Barrier:
    """Tuples by string key, put in component by component; whole ones are taken in the order of their first part."""

    def __init__(self, name: str, types: Sequence[Array], shapes: Sequence[Sequence[int]]) -> None:
        """types, shapes: numpy's, of the components."""
        self.name = name
        self._types, self._shapes = types, shapes
        self._size = len(types)
        # By key: the number of the insertion that began it, its order of arrival, the parts.
        self._log: ChangeLog = NOT_KEPT
        self._incomplete: dict[bytes, tuple[int, int, dict[int, Array]]] = {}
        self._ready: list[tuple[int, int, bytes, dict[int, Array]]] = []
        self._next_index = _FIRST_INDEX
        self._arrivals = itertools.count()
        self._is_closed = False
        self._is_cancelled = False
        self._growth = Growth(f"barrier {name}")
        self._wait_queues = _WaitQueues("Barrier")

    def check_same(self, types: Sequence[Array], shapes: Sequence[Sequence[int]]) -> None:
        """Raises InvalidArgumentError when an op with other components shares this barrier."""
        for what, own, wanted in (
            ("types", [np.dtype(each).name for each in self._types], [np.dtype(each).name for each in types]),
            ("shapes", [list(each) for each in self._shapes], [list(each) for each in shapes]),
        ):
            if own != wanted:
                raise errors.InvalidArgumentError.of(
                    f"Shared barrier '{self.name}' has component {what} {own} but requested component {what} were "
                    f"{wanted}"
                )

    @property
    def ready_size(self) -> int:
        """How many whole tuples wait."""
        return len(self._ready)

    @property
    def incomplete_size(self) -> int:
        """How many tuples still miss components."""
        return len(self._incomplete)

    def read(self) -> np.ndarray:
        """The value of the string handle: container and name."""
        return np.array([b"", self.name.encode()], object)

    def insert_many(self, component: int, keys: Sequence[bytes], values: Sequence[Array]) -> None:
        """Puts values[i] as that component of the tuple keys[i].

        Raises:
          InvalidArgumentError: one is there already.
          CancelledError: the barrier is closed, and a key new.
        """
        if not 0 <= component < self._size:
            raise _invalid(f"The component ID is out of range {component} > num_components (= {self._size})")
        with self._wait_queues.lock:
            new = sum(key not in self._incomplete for key in keys)
            if self._is_cancelled or self._is_closed and new:
                raise errors.CancelledError.of(
                    f"Barrier {self.name} is closed.  Pending enqueues cancelled: "
                    f"{int(self._is_cancelled)}.  Number of new insertions: {new}.  Number of incomplete keys: "
                    f"{len(self._incomplete)}.",
                )  # fmt: skip
            self._growth.add(values, len(self._incomplete) + len(self._ready))
            for key, value in zip(keys, values, strict=True):
                self._insert(component, key, value)
            # All that one insertion begins has one number.
            self._next_index += bool(new)
            self._log_state()
        self._wait_queues.advance()

    def _insert(self, component: int, key: bytes, value: Array) -> None:
        if key not in self._incomplete:
            self._incomplete[key] = (self._next_index, next(self._arrivals), {})
        index, arrival, parts = self._incomplete[key]
        if component in parts:
            raise _invalid(f"Key {key.decode(errors='replace')} already has a value for component {component} in "
                           f"barrier {self.name}")  # fmt: skip
        parts[component] = value
        if len(parts) == self._size:
            del self._incomplete[key]
            heapq.heappush(self._ready, (index, arrival, key, parts))
        if self._log.is_kept:
            self._log.put(arrival, _barrier_parts(index, key, parts))

    def take_many(
        self, count: int, allow_small: bool, cancellation: CancellationManager | None, done: Done[Outputs],
    ) -> None:  # fmt: skip
        """(indices, keys, components), each stacked, of `count` whole tuples; waits until there are so many.

        A closed barrier gives fewer with `allow_small`; else it waits as long as tuples that began before the close
        can make up the number. OutOfRangeError when they cannot, or nothing is left.
        """
        if count < 0:
            raise _invalid(f"num_elements must be >= 0, got {count}")

        def attempt(operation: Operation) -> bool:
            wanted = count
            if self._is_closed:
                coming = len(self._ready) + (0 if allow_small else len(self._incomplete))
                wanted = min(count, coming) if allow_small else count
                if coming < max(wanted, 1):
                    return operation.fail(errors.OutOfRangeError.of(
                        f"Barrier '{self.name}' is closed and has insufficient elements (requested "
                        f"{count}, total size {coming})",
                    ))  # fmt: skip
            if len(self._ready) < wanted:
                return False
            taken = [heapq.heappop(self._ready) for _ in range(wanted)]
            for _, arrival, *_ in taken:
                self._log.remove(arrival)
            keys = np.empty(len(taken), object)
            keys[:] = [key for _, _, key, _ in taken]
            components = [
                np.stack([parts[number] for *_, parts in taken]) if taken else np.zeros((0, *shape), dtype)
                for number, (dtype, shape) in enumerate(zip(self._types, self._shapes, strict=True))
            ]
            operation.value = (np.array([index for index, *_ in taken], np.int64), keys, *components)
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def shut(self, cancel_pending_enqueues: bool) -> None:
        """No new keys any more; nor, if so asked, anything for those that miss components.

        Raises:
          CancelledError: it is closed already, and this would not cancel more.
        """
        with self._wait_queues.lock:
            if self._is_closed and (self._is_cancelled or not cancel_pending_enqueues):
                raise errors.CancelledError.of(f"Barrier '{self.name}' is already closed.")
            self._is_closed = True
            if cancel_pending_enqueues:
                self._is_cancelled = True
                for _, arrival, _ in self._incomplete.values():
                    self._log.remove(arrival)
                self._incomplete.clear()
            self._log_state()
        self._wait_queues.advance()

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`."""
        self._log, self._wait_queues.guard = log, guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            kept: dict[EntryKey, Parts] = {_STATE: self._state()}
            for key, (index, arrival, parts) in self._incomplete.items():
                kept[arrival] = _barrier_parts(index, key, parts)
            kept.update((arrival, _barrier_parts(index, key, parts)) for index, arrival, key, parts in self._ready)
            return kept

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`."""
        with self._wait_queues.lock:
            last = -1
            for arrival, arrays in entries.items():
                if isinstance(arrival, str):
                    self._next_index = int(arrays[0][0])
                    self._is_closed, self._is_cancelled = bool(arrays[0][1]), bool(arrays[0][2])
                    continue
                last = max(last, arrival)
                index, key, parts = int(arrays[0]), np.ravel(arrays[1]).tolist()[0], _parts_by_number(arrays[2:])
                if len(parts) == self._size:
                    heapq.heappush(self._ready, (index, arrival, key, parts))
                else:
                    self._incomplete[key] = index, arrival, parts
            self._arrivals = itertools.count(last + 1)

    def _log_state(self) -> None:
        if self._log.is_kept:
            self._log.put(_STATE, self._state())

    def _state(self) -> Parts:
        return [np.array([self._next_index, self._is_closed, self._is_cancelled], np.int64)]


class Mutex:
    """A lock that steps take in turn. Who holds it keeps the `MutexHold`; the lock is free when that is gone."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._is_held = False
        self._wait_queues = _WaitQueues("Mutex lock")

    def lock(self, cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        """done(MutexHold) when the lock is this caller's."""

        def attempt(operation: Operation) -> bool:
            if self._is_held:
                return False
            self._is_held = True
            operation.value = MutexHold(self)
            return True

        self._wait_queues.run(attempt, cancellation, done)

    def release(self) -> None:
        """Gives the lock to the next in line."""
        with self._wait_queues.lock:
            self._is_held = False
        self._wait_queues.advance()


class MutexHold:
    """The right to a locked `Mutex`, which ends with this object or by `release`, whichever comes first."""

    def __init__(self, mutex: Mutex) -> None:
        self._mutex: Mutex | None = mutex

    def release(self) -> None:
        mutex, self._mutex = self._mutex, None
        if mutex is not None:
            mutex.release()

    def __del__(self) -> None:
        self.release()


_STATE = "state"


def _numbered_parts(parts: dict[int, Array]) -> Parts:
    return [np.array(list(parts), np.int64), *parts.values()]


def _parts_by_number(numbered: Parts) -> dict[int, Array]:
    return dict(zip(np.ravel(numbered[0]).tolist(), numbered[1:], strict=True))


def _barrier_parts(index: int, key: bytes, parts: dict[int, Array]) -> Parts:
    return [np.int64(index), np.array([key], object), *_numbered_parts(parts)]


def has_room(held: Sequence[Sequence[Array]], element: Sequence[Array], capacity: int, memory_limit: int) -> bool:
    """Whether one more tuple keeps within both bounds (0: no bound)."""
    if capacity and len(held) >= capacity:
        return False
    return not memory_limit or sum(map(_bytes, held)) + _bytes(element) <= memory_limit


def check_memory(element: Sequence[Array], memory_limit: int) -> None:
    """Raises ResourceExhaustedError for a tuple that can never have room."""
    if memory_limit and _bytes(element) > memory_limit:
        raise errors.ResourceExhaustedError.of(
            f"Attempted to insert tensors with combined size of '{_bytes(element)}' bytes into Staging "
            f"Area with a memory limit of '{memory_limit}'.",
        )  # fmt: skip


def _bytes(element: Sequence[Array]) -> int:
    return sum(np.asarray(value).nbytes for value in element)


def _invalid(message: str) -> errors.OpError:
    return errors.InvalidArgumentError.of(message)
