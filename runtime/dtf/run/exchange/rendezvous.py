"""Rendezvous: where the tensors of a step change hands, within a task and between tasks.

Owns the tables of one task, key -> value or waiter, one table per step. Does not open connections: a remote value
comes through the `remote` function that the worker gives to a step.

A key is five parts joined by ';': source device, source incarnation (16 hex digits), destination device, tensor name,
and "frame:iteration" ("0:0" outside of loops). Each key is sent once and received once, in either order; a receiver
may even come before the task has heard of the step. A sender never waits.

When a step ends, `cleanup` drops its table and the id is remembered for a while, so that a message that comes late
fails instead of waiting for a step that is over.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from dtf.run.interfaces import Done, Key, Value
from dtf.run.value_types import AttrValue
from dtf.wire import errors
from dtf.wire.device import task_of
from dtf.wire.names import printable
from dtf.wire.text_cache import cached_by_text

__all__ = ["OUTSIDE", "ParsedKey", "Rendezvous", "StepRendezvous", "key_maker", "make_key", "parse_key"]

OUTSIDE = "0:0"
"""The frame and iteration of all values outside of loops, whose keys are the same in every step."""

_STEPS_REMEMBERED_MAX = 10_000


class ParsedKey(NamedTuple):
    """The parts of a key. `source_incarnation` is unsigned."""

    source_device: str
    source_incarnation: int
    destination_device: str
    tensor_name: str
    frame_iteration: str

    @property
    def source_task(self) -> str:
        return task_of(self.source_device)


def make_key(
    source_device: str,
    source_incarnation: int,
    destination_device: str,
    tensor_name: str,
    frame_iteration: str = OUTSIDE,
) -> str:
    """The key of a tensor. The incarnation may be given signed (as node attributes hold it) or unsigned."""
    incarnation = source_incarnation & 0xFFFFFFFFFFFFFFFF
    return f"{source_device};{incarnation:016x};{destination_device};{tensor_name};{frame_iteration}"


def key_maker(attrs: Mapping[str, AttrValue]) -> Callable[[str], str]:
    """frame_iteration -> key, for a _Send or _Recv with these attributes."""
    source, destination = attrs["send_device"].decode(), attrs["recv_device"].decode()
    name, incarnation = attrs["tensor_name"].decode(), attrs["send_device_incarnation"]

    def key_of(frame_iteration: str) -> str:
        return make_key(source, incarnation, destination, name, frame_iteration)

    return key_of


@cached_by_text(65536)
def parse_key(key: str) -> ParsedKey:
    """The parts of a key. Raises InvalidArgumentError when it is malformed."""
    parts = key.split(";")
    try:
        if len(parts) == 5 and parts[0] and parts[2] and parts[3]:
            return ParsedKey(parts[0], int(parts[1], 16), parts[2], parts[3], parts[4])
    except ValueError:
        pass
    raise errors.InvalidArgumentError.of(f"Invalid rendezvous key: {printable(key)}")


class Rendezvous:
    """All steps of one task. Its lock guards the two dictionaries; the steps have locks of their own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: dict[int, StepRendezvous] = {}
        self._cleaned: OrderedDict[int, errors.OpError | None] = OrderedDict()

    def step(self, step_id: int) -> StepRendezvous:
        """The table of a step, made when it is first asked for.

        Raises:
          AbortedError: the step has been cleaned up.
          OpError: why it was forgotten.
        """
        found = self._steps.get(step_id)
        if found is None:
            with self._lock:
                if step_id in self._cleaned:
                    why = self._cleaned[step_id]
                    if why is not None:
                        raise errors.error_from_code(why.error_code, why.message)
                    raise _derived_aborted(f"Cleanup {step_id}")
                found = self._steps.get(step_id)
                if found is None:
                    found = self._steps[step_id] = StepRendezvous(step_id)
        return found

    def find(self, step_id: int) -> StepRendezvous | None:
        """The table of a step that is known here and not over, else None."""
        return self._steps.get(step_id)

    def is_over(self, step_id: int) -> bool:
        """Whether a step has been cleaned up."""
        return step_id in self._cleaned

    def cleanup(self, step_id: int) -> None:
        """Ends a step: who still waits gets AbortedError, values that nobody fetched are dropped. Harmless when
        repeated.
        """
        with self._lock:
            found = self._steps.pop(step_id, None)
            self._cleaned[step_id] = None
            if len(self._cleaned) > _STEPS_REMEMBERED_MAX:
                self._cleaned.popitem(last=False)
        if found is not None:
            found.abort(_derived_aborted(f"Cleanup {step_id}"))

    def forget(self, step_id: int, error: errors.OpError | None = None) -> None:
        """Ends a step for which nobody waits any more; who comes late is told `error`, or that it was cleaned up."""
        with self._lock:
            self._steps.pop(step_id, None)
            self._cleaned[step_id] = error
            if len(self._cleaned) > _STEPS_REMEMBERED_MAX:
                self._cleaned.popitem(last=False)

    def forget_unused(self, step_id: int) -> None:
        """Drops the table of a step of which nothing has happened here, as after a receive that came early was
        taken back.
        """
        with self._lock:
            found = self._steps.get(step_id)
            if found is not None and found.is_unused:
                del self._steps[step_id]

    def abort_all(self, error: errors.OpError) -> None:
        """Aborts every step, as when the task shuts down."""
        with self._lock:
            steps = list(self._steps.values())
            self._steps.clear()
        for step in steps:
            step.abort(error)


class StepRendezvous:
    """The table of one step, and TensorFlow's way to move its values: a `StepExchange` that other tasks ask for them,
    as it asks them. Its lock guards `_values`, `_waiters` and `_error`; callbacks run outside of it.

    Attributes:
      step_id: the step.
      remote: fetches a key from another task, `remote(task, step_id, key, done) -> cancel or None`; the worker sets it.
    """

    __slots__ = (
        "_error", "_held", "_is_held", "_lock", "_offers", "_remote_cancels", "_values", "_waiters", "remote",
        "step_id",
    )  # fmt: skip

    def __init__(self, step_id: int, remote: Callable[..., Callable[[], None] | None] | None = None) -> None:
        self.step_id = step_id
        self.remote = remote
        self._lock = threading.Lock()
        self._values: dict[Key, Value] = {}
        self._waiters: dict[Key, Done[Value]] = {}
        self._offers: dict[Key, Callable[[], None]] = {}
        self._remote_cancels: dict[str, Callable[[], None]] = {}
        self._error: errors.OpError | None = None
        self._held: list[tuple[Key, Value]] = []
        self._is_held: Callable[[], bool] | None = None

    def __repr__(self) -> str:
        values, waiters = sorted(map(str, self._values)), sorted(map(str, self._waiters))
        return f"StepRendezvous({self.step_id}, values={values}, waiters={waiters})"

    @property
    def is_unused(self) -> bool:
        """Whether no step runs on this table, and it holds nothing."""
        return self.remote is None and not self._values and not self._waiters and self._error is None

    def send(self, key: Key, value: Value, task: str | None = None) -> None:
        """See `StepExchange.send`; never raises UnavailableError."""
        if task is not None and self._is_held is not None and self._is_held():
            self._held.append((key, value))
            return
        waiter = self._lay(key, value, None)
        if waiter is not None:
            waiter(value)

    def offer(self, key: str, value: Value, taken: Callable[[], None]) -> None:
        """As `send`, and calls taken() once its receiver has the value."""
        waiter = self._lay(key, value, taken)
        if waiter is not None:
            waiter(value)
            taken()

    def _lay(self, key: Key, value: Value, taken: Callable[[], None] | None) -> Done[Value] | None:
        """The receiver that waits for the value; without one, the value is kept and `taken` with it."""
        with self._lock:
            if self._error is not None:
                raise self._error
            waiter = self._waiters.pop(key, None)
            if waiter is None:
                if key in self._values:
                    raise errors.InternalError.of(f"Duplicate send of {key} in step {self.step_id}")
                self._values[key] = value
                if taken is not None:
                    self._offers[key] = taken
            return waiter

    def send_all(self, keys: Sequence[Key], values: Sequence[Value]) -> list[tuple[Done[Value], Value]]:
        """Stores values; returns those that have a waiting receiver, with the receiver's callback. Errors as `send`."""
        awaited: list[tuple[Done[Value], Value]] = []
        with self._lock:
            if self._error is not None:
                raise self._error
            for key, value in zip(keys, values, strict=True):
                waiter = self._waiters.pop(key, None)
                if waiter is not None:
                    awaited.append((waiter, value))
                elif key in self._values:
                    raise errors.InternalError.of(f"Duplicate send of {key} in step {self.step_id}")
                else:
                    self._values[key] = value
        return awaited

    def send_grouped(self, key: Key, value: Value, task: str) -> None:
        """As `send`: no value waits for another one to be sent."""
        self.send(key, value)

    def send_piggybacked(self, key: Key, value: Value, task: str) -> None:
        """As `send`: no value waits for another one to be sent."""
        self.send(key, value)

    def hold_back(self, is_held: Callable[[], bool]) -> None:
        """See `StepExchange.hold_back`."""
        self._is_held = is_held

    def computing(self) -> None:
        """See `StepExchange.computing`; no value waits here."""

    def flush(self, is_last: bool = False) -> None:
        """See `StepExchange.flush`; other tasks ask for their values."""
        while self._held:
            self.send(*self._held.pop(0))

    def take(self, key: str) -> Value:
        """The value of a key that has been sent, at once. Raises KeyError when it has not, OpError when the step
        was aborted.
        """
        with self._lock:
            if self._error is not None and key not in self._values:
                raise self._error
            return self._values.pop(key)

    def recv(self, key: str, done: Done[Value], task: str | None = None) -> None:
        """See `StepExchange.recv`."""
        if task is not None:
            self._recv_remote(key, done, task)
            return
        error: errors.OpError | None = None
        value = taken = None
        with self._lock:
            if key in self._values:
                value = self._values.pop(key)
                taken = self._offers.pop(key, None) if self._offers else None
            elif self._error is not None:
                error = self._error
            elif key in self._waiters:
                error = errors.InternalError.of(f"Duplicate receive of {key} in step {self.step_id}")
            else:
                self._waiters[key] = done
                return
        if error is not None:
            done(error=error)
            return
        done(value)
        if taken is not None:
            taken()

    def forget(self, key: str, done: Done[Value]) -> bool:
        """Takes back a receive whose caller has given up. False when it has been, or is being, answered."""
        with self._lock:
            if self._waiters.get(key) != done:
                return False
            del self._waiters[key]
            return True

    def abort(self, error: errors.OpError) -> None:
        """See `StepExchange.abort`; fails every later send too."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            waiters = list(self._waiters.values())
            self._waiters.clear()
            self._values.clear()
            self._offers.clear()
            cancels = list(self._remote_cancels.values())
            self._remote_cancels.clear()
        for waiter in waiters:
            waiter(error=error)
        for cancel in cancels:
            cancel()

    def _recv_remote(self, key: str, done: Done[Value], task: str) -> None:
        with self._lock:
            error = self._error
        if error is None and self.remote is None:
            error = errors.InternalError.of(f"Task {task} cannot be reached from here; wanted {key}")
        if error is not None:
            done(error=error)
            return
        assert self.remote is not None
        answered = False

        def answer(value: Value = None, error: errors.OpError | None = None) -> None:
            nonlocal answered
            with self._lock:
                answered = True
                self._remote_cancels.pop(key, None)
                reason = self._error
            if error is not None:
                # The answer to a call that we cancelled says so; what counts is why.
                done(error=reason if reason is not None else error)
            else:
                done(value)

        cancel = self.remote(task, self.step_id, key, answer)
        if cancel is None:
            return
        with self._lock:
            if self._error is None:
                if not answered:
                    self._remote_cancels[key] = cancel
                return
        cancel()


def _derived_aborted(message: str) -> errors.OpError:
    error = errors.AbortedError.of(message)
    error.derived = True
    return error
