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

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dtf.run.executor.step import task_of
from dtf.run.interfaces import Done
from dtf.wire import errors
from dtf.wire.names import printable

__all__ = ["ParsedKey", "Rendezvous", "StepRendezvous", "make_key", "parse_key"]

"""done(value) or done(error=OpError). The value may be kernels.DEAD."""

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
    source_device: str, source_incarnation: int, destination_device: str, tensor_name: str, frame_iteration: str = "0:0"
) -> str:
    """The key of a tensor. The incarnation may be given signed (as node attributes hold it) or unsigned."""
    incarnation = source_incarnation & 0xFFFFFFFFFFFFFFFF
    return f"{source_device};{incarnation:016x};{destination_device};{tensor_name};{frame_iteration}"


@functools.lru_cache(maxsize=65536)
def parse_key(key: str) -> ParsedKey:
    """The parts of a key. Raises InvalidArgumentError when it is malformed."""
    parts = key.split(";")
    try:
        if len(parts) == 5 and parts[0] and parts[2] and parts[3]:
            return ParsedKey(parts[0], int(parts[1], 16), parts[2], parts[3], parts[4])
    except ValueError:
        pass
    raise errors.InvalidArgumentError(None, None, f"Invalid rendezvous key: {printable(key)}")


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
    """The table of one step. Its lock guards `_values`, `_waiters` and `_error`; callbacks run outside of it.

    Attributes:
      step_id: the step.
      remote: fetches a key from another task, `remote(task, step_id, key, done) -> cancel or None`; the worker sets it.
      outbox: where values for other tasks go in a direct step (`direct`), in which none is fetched; else None.
    """

    __slots__ = ("_error", "_lock", "_offers", "_remote_cancels", "_values", "_waiters", "outbox", "remote", "step_id")

    def __init__(self, step_id: int, remote: Callable[..., Callable[[], None] | None] | None = None) -> None:
        self.step_id = step_id
        self.remote = remote
        self.outbox: Any = None
        self._lock = threading.Lock()
        self._values: dict[str, Any] = {}
        self._waiters: dict[str, Done] = {}
        self._offers: dict[str, Callable[[], None]] = {}
        self._remote_cancels: dict[str, Callable[[], None]] = {}
        self._error: errors.OpError | None = None

    def __repr__(self) -> str:
        return f"StepRendezvous({self.step_id}, values={sorted(self._values)}, waiters={sorted(self._waiters)})"

    @property
    def is_unused(self) -> bool:
        """Whether no step runs on this table, and it holds nothing."""
        return self.remote is None and not self._values and not self._waiters and self._error is None

    def send(self, key: str, value: Any, task: str | None = None) -> None:
        """Hands a value over; never waits. `task` names the task that wants it, when it is not this one.

        Raises:
          InternalError: the key was sent before and not yet received.
          OpError: why the step was aborted.
        """
        if task is not None and self.outbox is not None and self._error is None:
            self.outbox.send(key, value, task)
            return
        with self._lock:
            if self._error is not None:
                raise self._error
            waiter = self._waiters.pop(key, None)
            if waiter is None:
                if key in self._values:
                    raise errors.InternalError(None, None, f"Duplicate send of {key} in step {self.step_id}")
                self._values[key] = value
                return
        waiter(value)

    def offer(self, key: str, value: Any, taken: Callable[[], None]) -> None:
        """As `send`, and calls taken() once the value has been handed over to whoever receives it."""
        with self._lock:
            if self._error is not None:
                raise self._error
            waiter = self._waiters.pop(key, None)
            if waiter is None:
                if key in self._values:
                    raise errors.InternalError(None, None, f"Duplicate send of {key} in step {self.step_id}")
                self._values[key] = value
                self._offers[key] = taken
                return
        waiter(value)
        taken()

    def send_all(self, keys: Sequence[str], values: Sequence[Any]) -> list[tuple[Done, Any]]:
        """Hands values over; gives those that somebody waits for, with who does, to be called. Errors as `send`."""
        awaited: list[tuple[Done, Any]] = []
        with self._lock:
            if self._error is not None:
                raise self._error
            for key, value in zip(keys, values, strict=True):
                waiter = self._waiters.pop(key, None)
                if waiter is not None:
                    awaited.append((waiter, value))
                elif key in self._values:
                    raise errors.InternalError(None, None, f"Duplicate send of {key} in step {self.step_id}")
                else:
                    self._values[key] = value
        return awaited

    def computing(self) -> None:
        """What is made from now on takes long."""
        if self.outbox is not None:
            self.outbox.computing()

    def flush(self, is_last: bool = False) -> None:
        """Sends what has gathered for other tasks. Raises UnavailableError when one cannot be reached."""
        if self.outbox is not None:
            self.outbox.flush()

    def take(self, key: str) -> Any:
        """The value of a key that has been sent, at once. Raises KeyError when it has not, OpError when the step
        was aborted.
        """
        with self._lock:
            if self._error is not None and key not in self._values:
                raise self._error
            return self._values.pop(key)

    def recv_async(self, key: str, done: Done, task: str | None = None) -> None:
        """Calls done(value) when the key has been sent, or done(error=...) when the step is aborted before.

        `task` names the task that makes the value, when it is not this one.
        """
        if task is not None and self.outbox is None:
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
                error = errors.InternalError(None, None, f"Duplicate receive of {key} in step {self.step_id}")
            else:
                self._waiters[key] = done
                return
        if error is not None:
            done(error=error)
            return
        done(value)
        if taken is not None:
            taken()

    def forget(self, key: str, done: Done) -> bool:
        """Takes back a receive whose caller has given up. False when it has been, or is being, answered."""
        with self._lock:
            if self._waiters.get(key) != done:
                return False
            del self._waiters[key]
            return True

    def abort(self, error: errors.OpError) -> None:
        """Fails every waiting and later receive, and every later send, with `error`. Only the first call counts."""
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

    def _recv_remote(self, key: str, done: Done, task: str) -> None:
        with self._lock:
            error = self._error
        if error is None and self.remote is None:
            error = errors.InternalError(None, None, f"Task {task} cannot be reached from here; wanted {key}")
        if error is not None:
            done(error=error)
            return
        assert self.remote is not None
        answered = False

        def answer(value: Any = None, error: errors.OpError | None = None) -> None:
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
    error = errors.AbortedError(None, None, message)
    error.derived = True
    return error
