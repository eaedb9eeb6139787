"""What all datasets share: `Dataset`, the `Elements` of one pass over it, and the `Scope` that a pass runs in.

A dataset is a value: it can be iterated any number of times. One pass is an `Elements`, taken from by one thread at a
time (the iterator's lock sees to it). What may run at the same time, as prefetching and parallel calls do, has threads
of its own, which end with the scope.

The position of a pass is a tree of dicts, lists, numbers, strings, None and arrays, in which every `Elements` keeps
what it knows; `saved_state` and `restored_state` turn it into a variant tensor's value and back.
"""

from __future__ import annotations

import contextlib
import json
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn, TypeVar

import numpy as np

from dtf.run.exchange.rendezvous import StepRendezvous
from dtf.run.executor.functions import FunctionBody
from dtf.run.executor.step import SessionState, StepContext
from dtf.run.interfaces import Value
from dtf.run.state.resources import ResourceManager
from dtf.run.threads.cancellation import CancellationManager
from dtf.run.value_types import Array, Element, Position
from dtf.wire import errors
from dtf.wire.variants import Encode, IteratorState

__all__ = [
    "INFINITE", "UNKNOWN", "Answer", "Dataset", "Elements", "Function", "Scope", "restored_state",
    "saved_state",
]  # fmt: skip

INFINITE = -1
UNKNOWN = -2


_Memory = TypeVar("_Memory")


class Elements:
    """One pass over a dataset, and where it stands. Subclasses are the kinds of datasets.

    `inputs` are the passes that this one takes from; they end with it.
    """

    inputs: Sequence[Elements] = ()

    def __iter__(self) -> Elements:
        return self

    def __next__(self) -> Element:
        """The next element.

        Raises:
          StopIteration: there are no more.
          OpError: this element could not be made; the next call goes on behind it.
        """
        raise NotImplementedError

    def save(self) -> Position:
        """The position, as a tree."""
        return [each.save() for each in self.inputs]

    def restore(self, state: Position) -> None:
        """Goes to a position that `save` of the same dataset gave; nothing has been taken yet."""
        for each, saved in zip(self.inputs, state, strict=True):
            each.restore(saved)

    def close(self) -> None:
        """Nobody will take any more."""
        for each in self.inputs:
            each.close()


@dataclass(frozen=True, eq=False)
class Dataset:
    """The value of a dataset's variant tensor.

    Attributes:
      kind: the op that made it, for messages.
      start: begins a pass over it within a scope.
      cardinality: how many elements a pass has; INFINITE or UNKNOWN.
    """

    kind: str
    start: Callable[[Scope], Elements]
    cardinality: int = UNKNOWN

    # For those who only look at how large a value is: to numpy it is a scalar.
    shape: ClassVar[tuple[()]] = ()
    nbytes: ClassVar[int] = 0
    ndim: ClassVar[int] = 0

    def to_proto(self, encode: Encode) -> NoReturn:
        """A dataset stays where it was made.

        Raises:
          UnimplementedError: always.
        """
        raise errors.UnimplementedError.of(
            f"A dataset ({self.kind}) cannot be sent to another task or fetched: put the dataset and its iterator "
            "under one tf.device block",
        )


class Scope:
    """What the passes of one iterator share: the task's resources, memory of earlier passes, and their end.

    `close` ends it: what waits gives up. It does not keep the iterator alive. Its lock guards the memory and the takes.

    A thread that makes elements says so (`taking`): then it can be interrupted by itself, and the pass goes on when
    the next element is requested.
    """

    def __init__(self, resources: ResourceManager, device_name: str, incarnation: int) -> None:
        self.cancellation = CancellationManager()
        self._resources = resources
        self._device_name = device_name
        self._incarnation = incarnation
        self._session = SessionState()
        self._lock = threading.Lock()
        self._takes: set[CancellationManager] = set()
        self._thread = threading.local()
        self._memory: weakref.WeakKeyDictionary[object, Any] = weakref.WeakKeyDictionary()

    @staticmethod
    def of_step(step: StepContext) -> Scope:
        """A scope with the resources of a step."""
        return Scope(step.resources, step.device_name, step.incarnation)

    def fresh(self) -> Scope:
        """Another one with the same resources, and nothing else."""
        return Scope(self._resources, self._device_name, self._incarnation)

    def memory(self, owner: object, make: Callable[[], _Memory]) -> _Memory:
        """What `owner`, a dataset, remembers from one pass to the next; made by `make()` at first."""
        with self._lock:
            found = self._memory.get(owner)
            if found is None:
                found = self._memory[owner] = make()
            memory: _Memory = found
            return memory

    def close(self) -> None:
        """Ends all that waits in this scope."""
        self.cancellation.start_cancel()
        with self._lock:
            takes = list(self._takes)
        for take in takes:
            take.start_cancel()

    @contextlib.contextmanager
    def taking(self, take: CancellationManager) -> Iterator[None]:
        """In the block, `take` interrupts this thread's work for the pass. Raises CancelledError when it does."""
        outer = self.current
        self.adopt(take)
        self._thread.take = take
        try:
            yield
        finally:
            self._thread.take = outer
            self.disown(take)

    def adopt(self, take: CancellationManager) -> None:
        """Has the scope's end cancel `take` too."""
        with self._lock:
            self._takes.add(take)
        if self.cancellation.is_cancelled:
            take.start_cancel()

    def disown(self, take: CancellationManager) -> None:
        """What was adopted is over."""
        with self._lock:
            self._takes.discard(take)

    @property
    def current(self) -> CancellationManager:
        """What interrupts this thread's work for the pass."""
        return getattr(self._thread, "take", None) or self.cancellation

    def check(self) -> None:
        """Raises CancelledError when the scope has ended, or this thread is to stop."""
        if self.cancellation.is_cancelled:
            raise errors.CancelledError.of("The iterator was deleted or initialized anew")
        if self.current.is_cancelled:
            raise errors.CancelledError.of("The step was cancelled while it waited for the next element")

    def step(self, cancellation: CancellationManager | None = None) -> StepContext:
        """The step in which a function is called; `cancellation` stops it, by default what interrupts this thread."""
        return StepContext(
            0,
            self._resources,
            self._session,
            StepRendezvous(0),
            cancellation or self.current,
            self._device_name,
            self._incarnation,
        )


class Function:
    """A function of a graph with the tensors that it captured."""

    def __init__(self, body: FunctionBody, captured: Element) -> None:
        self._body = body
        self._captured = captured

    def call(self, scope: Scope, element: Element) -> Element:
        """The function's results; waits for them. Raises what the function failed with."""
        answer = Answer()
        self.run(scope, element, answer)
        return answer.wait()

    def run(
        self, scope: Scope, element: Element, answer: Answer, cancellation: CancellationManager | None = None
    ) -> None:
        """A call that gives its results to `answer`; it runs in this thread as far as it does not have to wait.
        `cancellation` as in `Scope.step`.
        """
        self._body.call(scope.step(cancellation), (*element, *self._captured), answer)


class Answer:
    """What a call will give: its callback, and a place to wait."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_here = False
        self._event: threading.Event | None = None
        self._values: Element = ()
        self._error: errors.OpError | None = None

    def __call__(self, values: Element = (), error: errors.OpError | None = None) -> None:
        self._values, self._error = values, error
        with self._lock:
            self._is_here = True
            event = self._event
        if event is not None:
            event.set()

    @property
    def is_here(self) -> bool:
        """Whether `wait` would return at once."""
        return self._is_here

    def wait(self, cancellation: CancellationManager | None = None) -> Element:
        """The values, once they are here. Raises CancelledError when `cancellation` comes first."""
        event = None
        with self._lock:
            if not self._is_here:
                event = self._event = threading.Event()
        if event is not None:
            token = None
            if cancellation is not None:
                token = cancellation.register(event.set)
                if token is None:
                    event.set()
            event.wait()
            if cancellation is not None:
                cancellation.deregister(token)
            if not self._is_here:
                raise errors.CancelledError.of("The step was cancelled while it waited for the next element")
        if self._error is not None:
            raise self._error
        return self._values


# -- positions as values


def saved_state(state: Position) -> IteratorState:
    """The variant of a position.

    Raises:
      UnimplementedError: something in it cannot be saved, such as a dataset in a buffer.
    """
    tensors: list[Array] = []

    def plain(node: Position) -> Position:
        if isinstance(node, dict):
            return {key: plain(value) for key, value in node.items()}
        if isinstance(node, list | tuple):
            return [plain(value) for value in node]
        if isinstance(node, np.ndarray | np.generic):
            if node.dtype == object and any(not isinstance(each, bytes) for each in np.asarray(node).flat):
                raise errors.UnimplementedError.of("The position of an iterator over variants cannot be saved")
            tensors.append(np.asarray(node))
            return {"": len(tensors) - 1}
        return node

    return IteratorState(json.dumps(plain(state)).encode(), tuple(tensors))


def restored_state(value: Value) -> Position:
    """The position in a variant of `saved_state`.

    Raises:
      InvalidArgumentError: it is none.
    """
    if not isinstance(value, IteratorState):
        kind = getattr(value, "type_name", type(value).__name__)
        raise errors.InvalidArgumentError.of(
            f"This is not the position of one of this runtime's iterators but a variant of type '{kind}'"
        )

    def whole(node: Position) -> Position:
        if isinstance(node, dict):
            if "" in node:
                return value.tensors[node[""]]
            return {key: whole(each) for key, each in node.items()}
        return [whole(each) for each in node] if isinstance(node, list) else node

    try:
        return whole(json.loads(value.text))
    except (ValueError, IndexError, TypeError) as error:
        raise errors.InvalidArgumentError.of(f"Malformed position of an iterator: {error}") from None
