"""Queues: tuples of arrays that wait between steps, shared by name.

Owns `Queue`, its four kinds of storage (first in first out, shuffled, padded, by priority), and the rules of when an
operation waits, fails or ends. An operation that must wait stands in a `WaitQueue` and holds no thread. Does not know
ops or nodes: `kernels/data_flow.py` binds it to them.

The words of errors and the rules are those of TensorFlow's queues
(https://www.tensorflow.org/api_docs/python/tf/queue/QueueBase).
"""

from __future__ import annotations

import heapq
import itertools
import threading
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from dtf.run.lib.growth import Growth
from dtf.run.state.change_log import NOT_KEPT, ChangeLog, Entries, EntryKey, Parts
from dtf.run.state.wait_queue import Done, Operation, Outputs, WaitQueue, flush
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array, Element
from dtf.wire import errors, limits
from dtf.wire.dtypes import DType, runtime_name
from dtf.wire.measures import measures
from dtf.wire.tensor_shape import TensorShape

__all__ = ["FifoStorage", "PriorityStorage", "Queue", "ShuffleStorage", "Storage"]



class Storage(Protocol):
    """How a queue keeps its elements: the only thing that differs between the kinds.

    Attributes:
      gathers: whether those who take many set aside what is there while they wait for more.
      log: where changes are reported; each element is an entry.
    """

    gathers: bool
    log: ChangeLog

    def __len__(self) -> int: ...

    def available(self, closed: bool) -> int:
        """How many elements may be taken now."""

    def put(self, element: Element) -> None: ...

    def take(self) -> Element: ...

    def put_back(self, elements: Sequence[Element]) -> None:
        """Returns what was taken, in the order of taking, so that it comes first again."""

    def entries(self) -> dict[EntryKey, Parts]:
        """All elements, and whatever else decides which one comes next."""

    def fill(self, entries: Entries) -> None:
        """Gives a new storage this state."""


class FifoStorage:
    """First in, first out."""

    gathers = True

    def __init__(self) -> None:
        self.log: ChangeLog = NOT_KEPT
        self._first = 0  # the number of the first element, which is its key
        self._elements: deque[Element] = deque()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, closed: bool) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        self.log.put(self._first + len(self._elements), element)
        self._elements.append(element)

    def take(self) -> Element:
        self.log.remove(self._first)
        self._first += 1
        return self._elements.popleft()

    def put_back(self, elements: Sequence[Element]) -> None:
        for element in reversed(elements):
            self._first -= 1
            self.log.put(self._first, element)
            self._elements.appendleft(element)

    def entries(self) -> dict[EntryKey, Parts]:
        return dict(enumerate(self._elements, self._first))

    def fill(self, entries: Entries) -> None:
        elements = _numbered(entries)
        self._first = elements[0][0] if elements else 0
        self._elements.extend(tuple(parts) for _, parts in elements)


class ShuffleStorage:
    """Takes a random element, and keeps `min_after_dequeue` of them back until the queue is closed."""

    gathers = True

    def __init__(self, min_after_dequeue: int, seed: int | None) -> None:
        self.log: ChangeLog = NOT_KEPT
        self.min_after_dequeue = min_after_dequeue
        self._bits = np.random.PCG64(seed)
        self._random = np.random.Generator(self._bits)
        self._elements: list[Element] = []

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, closed: bool) -> int:
        return len(self._elements) if closed else max(0, len(self._elements) - self.min_after_dequeue)

    def put(self, element: Element) -> None:
        self.log.put(len(self._elements), element)
        self._elements.append(element)

    def take(self) -> Element:
        at = int(self._random.integers(len(self._elements)))
        last = len(self._elements) - 1
        if self.log.is_kept:
            self.log.put(_RANDOM, [self._random_state()])
            if at == last:
                self.log.remove(at)
            else:
                self.log.move(last, at)
        self._elements[at], self._elements[-1] = self._elements[-1], self._elements[at]
        return self._elements.pop()

    def put_back(self, elements: Sequence[Element]) -> None:
        for element in elements:
            self.put(element)

    def entries(self) -> dict[EntryKey, Parts]:
        return {_RANDOM: [self._random_state()], **dict(enumerate(self._elements))}

    def fill(self, entries: Entries) -> None:
        self._elements.extend(tuple(parts) for _, parts in _numbered(entries))
        if _RANDOM in entries:
            words = [int(word) for word in entries[_RANDOM][0]]
            self._bits.state = {
                "bit_generator": "PCG64",
                "state": {"state": words[0] << 64 | words[1], "inc": words[2] << 64 | words[3]},
                "has_uint32": words[4],
                "uinteger": words[5],
            }

    def _random_state(self) -> np.ndarray:
        state = self._bits.state
        both = [int(state["state"][name]) for name in ("state", "inc")]
        words = [word for number in both for word in divmod(number, 1 << 64)]
        return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


class PriorityStorage:
    """Takes the element with the smallest first component; equal ones in order of arrival."""

    gathers = False

    def __init__(self) -> None:
        self.log: ChangeLog = NOT_KEPT
        self._elements: list[tuple[int, int, Element]] = []
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._elements)

    def available(self, closed: bool) -> int:
        return len(self._elements)

    def put(self, element: Element) -> None:
        arrival = next(self._arrivals)
        self.log.put(arrival, element)
        heapq.heappush(self._elements, (int(element[0]), arrival, element))

    def take(self) -> Element:
        _, arrival, element = heapq.heappop(self._elements)
        self.log.remove(arrival)
        return element

    def put_back(self, elements: Sequence[Element]) -> None:
        for element in elements:
            self.put(element)

    def entries(self) -> dict[EntryKey, Parts]:
        return {arrival: element for _, arrival, element in self._elements}

    def fill(self, entries: Entries) -> None:
        elements = _numbered(entries)
        self._elements = [(int(parts[0]), arrival, tuple(parts)) for arrival, parts in elements]
        heapq.heapify(self._elements)
        self._arrivals = itertools.count(elements[-1][0] + 1 if elements else 0)


_RANDOM, _CLOSED = "random", "closed"


def _numbered(entries: Mapping[EntryKey, Parts]) -> list[tuple[int, Parts]]:
    """The entries of elements, by their numbers."""
    return sorted(((key, parts) for key, parts in entries.items() if isinstance(key, int)), key=lambda each: each[0])


class Queue:
    """A bounded queue of tuples of arrays.

    Attributes:
      kind: "FIFOQueue", "RandomShuffleQueue", "PaddingFIFOQueue" or "PriorityQueue", as messages call it.
      name: its name in its container.
      capacity: the most elements it holds; None for no bound.
      dtypes, shapes: of the components; no shapes: anything goes.
      is_whole: an operation adds or takes all of its elements at once, as transactions need it (see `durability`).

    The lock guards the storage, the two wait queues and `is_closed`; no callback runs under it.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        storage: Storage,
        capacity: int | None,
        dtypes: Sequence[DType],
        shapes: Sequence[TensorShape] = (),
    ) -> None:
        self.kind = kind
        self.name = name
        self.capacity = capacity
        self.dtypes = tuple(dtypes)
        self.shapes = tuple(shapes)
        self.is_closed = False
        self.is_whole = False
        self._storage = storage
        self._growth = Growth(f"{kind} '{name}'")
        self._lock = threading.RLock()
        self._enqueues = WaitQueue(self._lock)
        self._dequeues = WaitQueue(self._lock)
        _queues.add(self)
        self._enqueues.neighbours = self._dequeues.neighbours = (self._enqueues, self._dequeues)

    def __repr__(self) -> str:
        state = ", closed" if self.is_closed else ""
        return f"Queue({self.kind} {self.name!r}, {len(self)} of {self.capacity}{state})"

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def pads(self) -> bool:
        return self.kind == "PaddingFIFOQueue"

    def read(self) -> np.ndarray:
        """The value of the old string handle: container and name."""
        return np.array([b"", self.name.encode()], object)

    def check_same(
        self, kind: str, capacity: int | None, dtypes: Sequence[DType], shapes: Sequence[TensorShape]
    ) -> None:
        """Raises InvalidArgumentError when a node that shares this queue by name describes another one."""
        if kind != self.kind:
            raise _invalid(f"Shared queue '{self.name}': expected {kind}, found {self.kind}")
        if capacity != self.capacity:
            raise _invalid(
                f"Shared queue '{self.name}' has capacity {_bound(self.capacity)} but requested capacity was "
                f"{_bound(capacity)}"
            )
        if tuple(dtypes) != self.dtypes:
            raise _invalid(
                f"Shared queue '{self.name}' has component types {_names(self.dtypes)} but requested component "
                "types were "
                f"{_names(dtypes)}"
            )
        if [str(shape) for shape in shapes] != [str(shape) for shape in self.shapes]:
            raise _invalid(
                f"Shared queue '{self.name}' has component shapes {_shapes_text(self.shapes)} but requested "
                "component shapes were "
                f"{_shapes_text(shapes)}"
            )

    # -- the five operations

    def enqueue(self, element: Element, cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        """Adds one element; waits while the queue is full.

        done(): added. done(error): InvalidArgumentError for another shape; CancelledError when the queue is closed.
        """
        self._check_element(element, leading=())
        self._growth.add(element, len(self._storage))
        self._enqueue([element], cancellation, done)

    def enqueue_many(self, components: Element, cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        """Adds each slice along the first dimension as one element, as room allows."""
        sizes = [np.shape(component)[:1] for component in components]
        if any(not size for size in sizes):
            raise _invalid("Input tuple components must have at least one dimension.")
        for i, size in enumerate(sizes):
            if size != sizes[0]:
                raise _invalid(
                    "All input tuples must have the same size in the 0th dimension. Component 0 has "
                    f"{sizes[0][0]} entries, and component {i} has {size[0]}."
                )
        self._check_element(components, leading=sizes[0])
        self._growth.add(components, len(self._storage) + sizes[0][0])
        rows = [tuple(component[(i, ...)] for component in components) for i in range(sizes[0][0])]
        self._enqueue(rows, cancellation, done)

    def dequeue(self, cancellation: CancellationManager | None, done: Done[Element]) -> None:
        """Takes one element; waits while the queue is empty. done(components); OutOfRangeError if closed and empty."""

        def attempt(operation: Operation) -> bool:
            if self._storage.available(self.is_closed):
                operation.value = self._storage.take()
                return True
            return self.is_closed and operation.fail(self._insufficient(1))

        self._wait(self._dequeues, Operation(attempt, done, cancellation, "Dequeue operation was cancelled"))

    @property
    def longest_dequeue_s(self) -> float | None:
        """For how many seconds a dequeue has waited here, None where none waits."""
        return self._dequeues.longest_s

    def dequeue_many(
        self, count: int, cancellation: CancellationManager | None, done: Done[Element], allow_fewer: bool = False
    ) -> None:
        """Takes `count` elements, stacked along a new first dimension; waits until they are there.

        On a closed queue with fewer elements left: OutOfRangeError and they stay, or with `allow_fewer` (DequeueUpTo)
          all that are left.
        Elements are set aside as they come, so that more can be taken than the queue's capacity.
        """
        method = "DequeueUpTo" if allow_fewer else "DequeueMany"
        if count < 0:
            raise _invalid(f"{method}Op requested {count} < 0 elements")
        if not self.shapes or not (self.pads or all(shape.is_fully_defined() for shape in self.shapes)):
            raise _invalid(
                f"{self.kind}'s DequeueMany and DequeueUpTo require the components to have specified shapes."
            )
        self._check_whole(count)
        taken: list[Element] = []

        def attempt(operation: Operation) -> bool:
            gathers = self._storage.gathers and not self.is_whole
            enough = gathers or self.is_closed or self._storage.available(False) >= count
            while enough and len(taken) < count and self._storage.available(self.is_closed):
                taken.append(self._storage.take())
                operation.has_moved = True
            if len(taken) == count or (allow_fewer and taken and self.is_closed):
                operation.value = self._stack(taken)
                return True
            if self.is_closed:
                found = len(taken)
                self._storage.put_back(taken)
                taken.clear()
                return operation.fail(self._insufficient(count, found))
            return False

        def give_back_when_cancelled(value: Element = (), error: errors.OpError | None = None) -> None:
            if error is not None and taken:
                with self._lock:
                    self._storage.put_back(taken)
                    taken.clear()
            done(value) if error is None else done(error=error)

        operation = Operation(attempt, give_back_when_cancelled, cancellation, "Dequeue operation was cancelled")
        self._wait(self._dequeues, operation)

    def shut(
        self, cancel_pending_enqueues: bool, cancellation: CancellationManager | None, done: Done[Outputs]
    ) -> None:
        """Closes the queue: nothing more is taken in, what is in it can still be taken out.

        Enqueues that wait are cancelled, or waited for: then the queue closes behind the last of them.
        """
        ended: list[Operation] = []
        if cancel_pending_enqueues:
            with self._lock:
                self._set_closed()
                ended = self._enqueues.drain(
                    lambda waiting: errors.CancelledError.of(waiting.cancelled_message)
                )
        for operation in ended:
            operation.report()

        def attempt(operation: Operation) -> bool:
            if self.is_closed and not cancel_pending_enqueues:
                return operation.fail(errors.CancelledError.of(f"Queue '{self.name}' is already closed."))
            self._set_closed()
            return True

        self._wait(self._enqueues, Operation(attempt, done, cancellation, "Close operation was cancelled"))

    def close(self) -> None:
        """The container that held this queue is gone: everyone who waits gets a CancelledError."""
        with self._lock:
            self.is_closed = True
            ended = [
                operation
                for wait_queue in (self._enqueues, self._dequeues)
                for operation in wait_queue.drain(
                    lambda _: errors.CancelledError.of(f"{self.kind} '{self.name}' was removed")
                )
            ]
        for operation in ended:
            operation.report()

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """See `change_log.Keepable`. Operations are whole from now on."""
        self.is_whole = True
        self._storage.log = log
        for wait_queue in (self._enqueues, self._dequeues):
            wait_queue.guard = guard

    def entries(self) -> Entries:
        """See `change_log.Keepable`."""
        with self._lock:
            return {**({_CLOSED: []} if self.is_closed else {}), **self._storage.entries()}

    def fill(self, entries: Entries) -> None:
        """See `change_log.Keepable`."""
        with self._lock:
            self._storage.fill(entries)
            self.is_closed = _CLOSED in entries

    # -- within

    def _set_closed(self) -> None:
        if not self.is_closed:
            self._storage.log.put(_CLOSED, [])
        self.is_closed = True

    def _check_whole(self, count: int) -> None:
        if self.is_whole and self.capacity is not None and count > self.capacity:
            raise _invalid(
                f"{self.kind} '{self.name}' of a durable task has capacity {self.capacity}, and {count} elements "
                "cannot be added or taken at once"
            )

    def _enqueue(self, rows: list[Element], cancellation: CancellationManager | None, done: Done[Outputs]) -> None:
        self._check_whole(len(rows))
        waiting = deque(rows)

        def attempt(operation: Operation) -> bool:
            if self.is_closed:
                return operation.fail(errors.CancelledError.of(f"{self.kind} '{self.name}' is closed."))
            if self.is_whole and self.capacity is not None and len(self._storage) + len(waiting) > self.capacity:
                return False
            while waiting and (self.capacity is None or len(self._storage) < self.capacity):
                self._storage.put(waiting.popleft())
                operation.has_moved = True
            return not waiting

        self._wait(self._enqueues, Operation(attempt, done, cancellation, "Enqueue operation was cancelled"))

    def _wait(self, wait_queue: WaitQueue, operation: Operation) -> None:
        if wait_queue.join(operation):
            flush(self._lock, self._enqueues, self._dequeues)
        else:
            operation.report()

    def _insufficient(self, requested: int, current: int | None = None) -> errors.OpError:
        size = len(self._storage) if current is None else current
        return errors.OutOfRangeError.of(
            f"{self.kind} '{self.name}' is closed and has insufficient elements (requested {requested}, current "
            f"size {size})",
        )

    def _check_element(self, components: Element, leading: tuple[int, ...]) -> None:
        if len(components) != len(self.dtypes):
            raise _invalid(f"Wrong number of components in tuple. Expected {len(self.dtypes)}, got {len(components)}")
        for i, (component, shape) in enumerate(zip(components, self.shapes, strict=False)):
            got = np.shape(component)
            expected = TensorShape(list(leading)).concatenate(shape)
            if not expected.is_compatible_with(TensorShape(list(got))):
                raise _invalid(
                    f"Shape mismatch in tuple component {i}. Expected {_shape_text(expected)}, got "
                    f"{_shape_text(TensorShape(list(got)))}"
                )

    def _stack(self, elements: list[Element]) -> Element:
        return tuple(self._stack_component(i, [element[i] for element in elements]) for i in range(len(self.dtypes)))

    def _stack_component(self, i: int, values: list[Array]) -> np.ndarray:
        dtype = self.dtypes[i].as_numpy_dtype
        if not values:
            return np.zeros((0, *(dim or 0 for dim in self.shapes[i].as_list())), dtype)
        shape = np.max([np.shape(value) for value in values], axis=0).astype(int) if self.pads else np.shape(values[0])
        limits.check_room((len(values), *shape), np.dtype(dtype).itemsize, self.dtypes[i].name)
        out = np.full((len(values), *shape), b"" if dtype == np.object_ else 0, dtype)
        for row, value in zip(out, values, strict=True) if out.ndim > 1 else ():
            row[tuple(slice(size) for size in np.shape(value))] = value
        if out.ndim == 1:
            for at, value in enumerate(values):
                out[at] = value[()] if isinstance(value, np.ndarray) else value
        return out


def _invalid(message: str) -> errors.OpError:
    return errors.InvalidArgumentError.of(message)


def _bound(capacity: int | None) -> int:
    """No bound, as TensorFlow's queues count it."""
    return 2**31 - 1 if capacity is None else capacity


def _names(dtypes: Sequence[DType]) -> str:
    return ", ".join(map(runtime_name, dtypes))


def _shape_text(shape: TensorShape) -> str:
    if shape.ndims is None:
        return "<unknown>"
    return "[" + ",".join("?" if dim is None else str(dim) for dim in shape.as_list()) + "]"


def _shapes_text(shapes: Sequence[TensorShape]) -> str:
    return "[" + ", ".join(map(_shape_text, shapes)) + "]"


def _waits(queues: Iterable[Queue]) -> Iterator[tuple[str, float]]:
    for queue in queues:
        waited_s = queue.longest_dequeue_s
        if waited_s is not None:
            yield queue.name, round(waited_s, 1)


_queues: weakref.WeakSet[Queue] = weakref.WeakSet()
measures.ask("queue_waits_s", lambda: _waits(list(_queues)))
measures.ask("queue_elements", lambda: [(queue.name, len(queue)) for queue in list(_queues)])
