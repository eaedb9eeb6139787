"""What a kernel may use while a step runs, and the values that a device and a session give it.

Owns `SessionState` and `StepContext`. Runs nothing.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dtf.run.interfaces import StepExchange, Value
from dtf.run.state.resources import ResourceManager
from dtf.run.threads.cancellation import CancellationManager
from dtf.wire import errors, forks

__all__ = ["Collector", "SessionState", "StepContext", "as_derived"]

if TYPE_CHECKING:
    from dtf.run.exchange.collective_groups import Collectives

_State = TypeVar("_State")


class SessionState:
    """What one session keeps at one task between steps: a state per node, such as a random generator.

    TensorFlow caches the kernel object itself; here only what the kernel asks for. Its lock guards the dictionary.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._states: dict[str, Any] = {}

    def node_state(self, name: str, factory: Callable[[], _State]) -> _State:
        """The state of the node of that name, made by `factory()` at the first call."""
        state = self._states.get(name)
        if state is None:
            with self._lock:
                state = self._states.get(name)
                if state is None:
                    state = self._states[name] = factory()
        return state


class Collector(Protocol):
    """Takes the times of nodes when a step is traced."""

    def record(self, node_name: str, op: str, start_ns: int, end_ns: int, outputs: tuple[Value, ...]) -> None:
        """One node ran from `start_ns` to `end_ns` of time.time_ns(). Called from any thread."""


class Attempt(Protocol):
    """One try of a step that may be sent again (`durability.once`)."""

    def results(self) -> dict[str, Value]:
        """What has run, by name. Raises AbortedError when a later attempt has begun."""

    def note(self, name: str, value: Value, is_kept: bool) -> None:
        """An operation has run."""

    def runs(self, cancel: Callable[[errors.OpError], None]) -> None:
        """The attempt runs now; `cancel` stops it."""

    def end(self) -> None:
        """Nothing of the attempt runs any more."""

    def call_number(self, call: str) -> int:
        """How often the attempt has called this before."""


class StepContext:
    """One step at one task.

    Attributes:
      step_id: the master's number of the step.
      resources: variables and queues of the task (or of the session, when it is isolated).
      session: what this session keeps per node.
      exchange: how values of the step reach and leave this task.
      cancellation: tells waiting kernels to give up.
      device_name: full name of the device.
      incarnation: of that device.
      collector: takes times, or None when nobody asked.
      arguments, results: the values of _Arg and _Retval by index.
      depth: how many calls of functions what runs is inside of.
      frame_iteration: "frame:iteration" of what runs, as the last part of rendezvous keys; "0:0" outside of loops.
      collectives: the groups of tasks that the session has joined here (`collective_groups.Collectives`).
      attempt: which operations have run in earlier attempts of the step; None: it is not sent again.
      path: the calls of functions that what runs is inside of, which tell one run of a node from another.
    """

    __slots__ = (
        "_step_resources", "arguments", "attempt", "cancellation", "collectives", "collector", "depth", "device_name",
        "exchange", "frame_iteration", "incarnation", "path", "resources", "results", "session",
        "step_id",
    )  # fmt: skip

    def __init__(
        self,
        step_id: int,
        resources: ResourceManager,
        session: SessionState,
        exchange: StepExchange,
        cancellation: CancellationManager,
        device_name: str = "/job:localhost/replica:0/task:0/device:CPU:0",
        incarnation: int = 1,
        collector: Collector | None = None,
        arguments: Sequence[Value] = (),
        results: MutableMapping[int, Value] | list[Value] | None = None,
        frame_iteration: str = "0:0",
        collectives: Collectives | None = None,
    ) -> None:
        self.step_id = step_id
        self.resources = resources
        self.session = session
        self.exchange = exchange
        self.cancellation = cancellation
        self.device_name = device_name
        self.incarnation = incarnation
        self.collector = collector
        self.arguments = arguments
        self.results = results
        self.frame_iteration = frame_iteration
        self.depth = 0
        self.collectives = collectives
        self.attempt: Attempt | None = None
        self.path = ""
        self._step_resources: ResourceManager | None = None

    @property
    def step_resources(self) -> ResourceManager:
        """As `resources`, but forgotten with the step: tensor arrays, stacks, temporary variables."""
        found = self._step_resources
        if found is None:
            with _making:
                found = self._step_resources
                if found is None:
                    found = self._step_resources = ResourceManager()
        return found

    def forget_resources(self) -> None:
        """The step has ended."""
        if self._step_resources is not None:
            self._step_resources.clear()

    def cancel(self, error: errors.OpError) -> None:
        """Stops the step for the reason `error`: waiting kernels give up, and whoever waits for one of its tensors
        gets `error`, marked as derived.
        """
        self.cancellation.start_cancel(error)
        self.exchange.abort(as_derived(error))

    def call_frame(self, arguments: tuple[Value, ...], call: str = "") -> StepContext:
        """The same step as seen by a function's body: its own arguments, results and cancellation. `call` is the node
        that calls it, and the function.
        """
        step = StepContext(
            self.step_id,
            self.resources,
            self.session,
            self.exchange,
            CancellationManager(),
            self.device_name,
            self.incarnation,
            self.collector,
            arguments,
            {},
            collectives=self.collectives,
        )
        step._step_resources = self.step_resources
        step.depth = self.depth + 1
        if self.attempt is not None:
            path = f"{self.path}{call}@{self.frame_iteration}"
            step.attempt, step.path = self.attempt, f"{path}#{self.attempt.call_number(path)}/"
        return step

    def in_iteration(self, frame_iteration: str) -> StepContext:
        """The same step as seen by an iteration of a loop: with another last part of rendezvous keys."""
        resources = self.step_resources
        step = copy.copy(self)
        step._step_resources = resources
        step.frame_iteration = frame_iteration
        return step


_making = threading.Lock()
"""Held while a step's own resources are made."""


def _begin_anew() -> None:
    global _making
    _making = threading.Lock()


forks.in_child(_begin_anew)


def as_derived(error: errors.OpError) -> errors.OpError:
    """The same error, marked as one that only follows from another."""
    if error.derived:
        return error
    derived = errors.error_from_code(error.error_code, error.message)
    derived.derived = True
    return derived
