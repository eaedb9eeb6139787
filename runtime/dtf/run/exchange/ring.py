"""The ring: how values go round the members of a group. Each member receives from its left neighbour.

Owns `Exchange`, one execution of one collective at one task, and the three ways round: `all_reduce`, `all_gather` and
`broadcast`. Groups are `collective_groups`'.

Each member puts the part for its right neighbour into the group's table at its own task. It asks its left neighbour for
the next part (RecvTensor, by channel or gRPC) before that part exists, so the part leaves as soon as it is ready and
costs one way. A reduction of n members cuts the tensor into n parts. In n - 1 rounds each part passes all members, and
each adds its own values (reduce-scatter). In n - 1 more rounds the finished parts go round (all-gather). So each member
sends and receives 2 (n - 1) / n of the tensor at any n. One member finishes each part, so all have the same bits.

Source: P. Patarasuk, X. Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations", 2009.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from dtf.run.exchange.collective_groups import BROKEN, Collectives, Group
from dtf.run.exchange.rendezvous import make_key
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Device, Done, Outputs, Value
from dtf.run.master.step_monitor import watchman
from dtf.run.threads import reader_thread
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.device import task_of

__all__ = ["Call", "Exchange", "all_gather", "all_reduce", "broadcast", "start"]


_LONG_FROM_BYTES = 1 << 16
_TAKEN_WITHIN_S = 2.0
_HEARTBEAT_PERIOD_S = 10.0
_HEARTBEAT_TIMEOUT_S = 10.0
_TELL_AFTER_S = 60.0


@dataclass(frozen=True)
class Call:
    """What one op asks for: the keys of TensorFlow's collectives; `timeout_s` is 0 for no limit."""

    op: str
    device: str
    group_key: int
    group_size: int
    instance_key: int
    timeout_s: float = 0.0


def start(step: StepContext, call: Call, begin: Callable[[Exchange], None], done: Done[Outputs]) -> None:
    """Runs `begin(exchange)` once the group is complete; done(value) or done(error=OpError) when the exchange ends.

    Errors:
      AbortedError: a member was lost, or has left; its name is in the message.
      InvalidArgumentError: members do not agree in what they do.
      DeadlineExceededError: the call's own limit has passed.
    """
    collectives = step.collectives
    if collectives is None:
        raise errors.InternalError.of("A step without a session takes part in no collective group")
    exchange = Exchange(call, collectives, step, done)

    def joined(group: Group | None = None, error: errors.OpError | None = None) -> None:
        if group is None:
            assert error is not None
            exchange.fail(error)
        else:
            exchange.enter(group, begin)

    if exchange.is_watched():
        collectives.group(call.group_key, call.group_size, call.device, joined)


class Exchange:
    """One execution of a collective at one task. Its lock guards what is counted and the end.

    It ends well when its value is there and the right neighbour has taken all that was sent, so that a task may end
    right after its last collective; a neighbour that does not come is not waited for long.
    """

    def __init__(self, call: Call, collectives: Collectives, step: StepContext, done: Done[Outputs]) -> None:
        self._call = call
        self._collectives = collectives
        self._step = step
        self._done = done
        self._lock = threading.Lock()
        self._is_over = False
        self._untaken = 0
        self._value: Array | None = None
        self._finished_at: float | None = None
        self._cancels: list[Callable[[], None]] = []
        self._token: int | None = None
        self._began = time.monotonic()
        self._tell_at = self._began + _TELL_AFTER_S
        self._heartbeat_at = self._began + _HEARTBEAT_PERIOD_S
        self.group: Group | None = None
        self._prefix = ""

    def is_watched(self) -> bool:
        """Begins to mind the step's cancellation and the time. False, and it has failed, when it is too late."""
        self._token = self._step.cancellation.register(self._cancelled)
        watchman.add(self)
        if self._token is None:
            self._cancelled()
            return False
        return True

    def enter(self, group: Group, begin: Callable[[Exchange], None]) -> None:
        """The group is complete: takes its turn and begins, unless the step has been cancelled meanwhile."""
        if self._is_over:
            return
        if group.error is not None:
            self.fail(group.error)
            return
        self.group = group
        self._prefix = f"{self._call.instance_key}:{group.next_turn(self._call.instance_key)}"
        self._untaken = 1  # what comes may be all that this task waits for, before it has sent its own
        try:
            begin(self)
        except Exception as error:
            self.fail(error)
        self._taken()

    def send(self, part: str, value: Array) -> None:
        """Lays a part down for the right neighbour."""
        group = self._required_group()
        with self._lock:
            self._untaken += 1
        try:
            group.table.offer(self._key(group.members[group.rank], group.right, part), value, self._taken)
        except errors.OpError as error:
            self.fail(error)

    def receive(self, part: str, handle: Callable[[Array], None]) -> None:
        """Has handle(value) called with a part of the left neighbour."""
        group = self._required_group()

        def answered(value: Value = None, error: errors.OpError | None = None) -> None:
            if self._is_over:
                return
            if error is not None:
                self.fail(group.loss_of(group.left, error))
                return
            try:
                theirs = cast(Array, value)
                if theirs.nbytes >= _LONG_FROM_BYTES:
                    reader_thread.yield_reader()
                handle(theirs)
            except Exception as failure:
                self.fail(failure)

        key = self._key(group.left, group.members[group.rank], part)
        cancel = self._collectives.worker(task_of(group.left.name)).recv_tensor(group.epoch, key, answered)
        with self._lock:
            if not self._is_over:
                self._cancels.append(cancel)
                return
        cancel()

    def finish(self, value: Array) -> None:
        """The value is there."""
        with self._lock:
            self._value = value
            self._finished_at = time.monotonic()
            is_over = self._untaken == 0
        if is_over:
            self._end()

    def fail(self, error: Exception) -> None:
        """Ends with an error, and breaks the group: nobody can go on in step with a member that has failed."""
        if self._is_over:
            return
        if self.group is not None and not _is_about_groups(error):
            told = self._explained(error)
            self.group.breaks(told)
        elif isinstance(error, errors.OpError):
            told = error if self.group is None else self.group.breaks(error)
        else:
            told = errors.InternalError.of(repr(error))
        if self._close():
            self._done(error=told)

    def disagrees(self, what: str) -> None:
        """Ends with InvalidArgumentError: the left neighbour does something else than this task."""
        group = self._required_group()
        names = f"{task_of(group.left.name)} and {task_of(group.members[group.rank].name)}"
        message = f"{BROKEN} {group.key}: {names} do not agree in '{self._call.op}': {what}"
        self.fail(errors.InvalidArgumentError.of(message))

    def look(self) -> None:
        """What is due now and then, as `step_watch.Watch.look`."""
        now = time.monotonic()
        if self._finished_at is not None and now >= self._finished_at + _TAKEN_WITHIN_S:
            self._end()
            return
        if self._call.timeout_s and now >= self._began + self._call.timeout_s:
            message = f"{self._call.op} has taken more than its {self._call.timeout_s:g} s; {self._waits_for()}"
            self.fail(errors.DeadlineExceededError.of(message))
        elif now >= self._tell_at:
            self._tell_at = now + _TELL_AFTER_S
            _logger.warning("'%s' has waited for %.0f s: %s", self._call.op, now - self._began, self._waits_for())
        if self.group is not None and now >= self._heartbeat_at:
            self._heartbeat_at = now + _HEARTBEAT_PERIOD_S
            self._send_heartbeat(self.group)

    # --

    def _waits_for(self) -> str:
        if self.group is None:
            size = self._call.group_size
            return f"collective group {self._call.group_key} of {size} members is not complete yet"
        return f"{task_of(self.group.left.name)} has not sent its part"

    def _send_heartbeat(self, group: Group) -> None:
        def done(_: Value = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                message = f"it has stopped answering: {error.message}"
                self.fail(group.loss_of(group.left, errors.UnavailableError.of(message)))

        self._collectives.worker(task_of(group.left.name)).heartbeat(done, timeout_s=_HEARTBEAT_TIMEOUT_S)

    def _explained(self, error: Exception) -> errors.OpError:
        """An error of this task in words that are right at every member."""
        assert self.group is not None
        here = task_of(self.group.members[self.group.rank].name)
        if not isinstance(error, errors.OpError) or isinstance(error, errors.CancelledError):
            message = f"{BROKEN} {self.group.key} has lost {here}, which gave up '{self._call.op}': {error}"
            return errors.AbortedError.of(message)
        message = f"{BROKEN} {self.group.key}: '{self._call.op}' failed at {here}: {error.message}"
        return errors.error_from_code(error.error_code, message)

    def _cancelled(self) -> None:
        error = errors.CancelledError.of(f"'{self._call.op}' was cancelled")
        error.derived = True
        if self.group is not None:
            self.group.breaks(self._explained(error))
        if self._close():
            self._done(error=error)

    def _taken(self) -> None:
        with self._lock:
            self._untaken -= 1
            is_over = self._untaken == 0 and self._finished_at is not None
        if is_over:
            self._end()

    def _end(self) -> None:
        value = self._value
        if self._close():
            self._done(value)

    def _close(self) -> bool:
        """Lets go of everything. True for the one caller that ends it."""
        with self._lock:
            if self._is_over:
                return False
            self._is_over = True
            cancels, self._cancels = self._cancels, []
            self._value = None
            has_ended_well = self._finished_at is not None
        watchman.forget(self)
        self._step.cancellation.deregister(self._token)
        if not has_ended_well:
            for cancel in cancels:
                cancel()
        return True

    def _key(self, source: Device, destination: Device, part: str) -> str:
        return make_key(source.name, source.incarnation, destination.name, f"{self._prefix}:{part}")

    def _required_group(self) -> Group:
        assert self.group is not None
        return self.group


def all_reduce(exchange: Exchange, value: Array, merge: np.ufunc, final: Callable[[np.ndarray, int], None]) -> None:
    """Every member gets `merge` over all members' values, on which final(value, number of members) was done in place.
    In a group of one, that is the value itself.
    """
    group = exchange.group
    assert group is not None
    count, rank = len(group), group.rank
    whole = np.asarray(value, order="C")
    if count == 1:
        exchange.finish(whole)
        return
    ours = whole.reshape(-1)
    bounds = [part * ours.size // count for part in range(count + 1)]
    result = np.empty_like(ours)
    scatters = count - 1
    left = _Countdown(2 * scatters)

    def part_of(array: np.ndarray, part: int) -> np.ndarray:
        return array[bounds[part] : bounds[part + 1]]

    def received(phase: int, theirs: Array) -> None:
        # Phases below `scatters` bring what is to be merged, the others what is finished.
        part = (rank - phase - 1) % count
        own, place = part_of(ours, part), part_of(result, part)
        if theirs.shape != own.shape or theirs.dtype != own.dtype:
            exchange.disagrees(
                f"of a tensor of {ours.size} {ours.dtype}, part {part} of {count} has {own.size}; there it has "
                f"{theirs.size} {theirs.dtype}"
            )
            return
        if phase < scatters - 1:
            passed_on = merge(theirs, own)
        elif phase == scatters - 1:
            merge(theirs, own, out=place)
            final(place, count)
            passed_on = place
        else:
            place[...] = theirs
            passed_on = place
        if phase + 1 < 2 * scatters:
            exchange.send(str(phase + 1), passed_on)
        if left.passed():
            exchange.finish(result.reshape(whole.shape))

    for phase in range(2 * scatters):
        exchange.receive(str(phase), functools.partial(received, phase))
    exchange.send("0", part_of(ours, rank))


def all_gather(exchange: Exchange, value: Array) -> None:
    """Every member gets all members' values, one after the other along the first dimension."""
    group = exchange.group
    assert group is not None
    count, rank = len(group), group.rank
    own = np.asarray(value, order="C")
    blocks = [own] * count
    left = _Countdown(count - 1)

    def received(phase: int, theirs: Array) -> None:
        if theirs.shape != own.shape or theirs.dtype != own.dtype:
            exchange.disagrees(f"one has {own.dtype} {list(own.shape)}, the other {theirs.dtype} {list(theirs.shape)}")
            return
        blocks[(rank - phase - 1) % count] = theirs
        if phase + 1 < count - 1:
            exchange.send(str(phase + 1), theirs)
        if left.passed():
            exchange.finish(np.concatenate(blocks))

    if count == 1:
        exchange.finish(own)
        return
    for phase in range(count - 1):
        exchange.receive(str(phase), functools.partial(received, phase))
    exchange.send("0", own)


def broadcast(exchange: Exchange, value: Array | None, check: Callable[[Array], str]) -> None:
    """Every member gets the value of the one that has one; `value` is None at the others.

    The value goes round with the rank of its source, which comes back to the source and shows that it is the only one.
    `check(value)` says what is wrong with a value that came, or "".
    """
    group = exchange.group
    assert group is not None
    count, rank = len(group), group.rank
    if value is not None:
        own = np.asarray(value, order="C")
        if count == 1:
            exchange.finish(own)
            return

        def returned(source: Array) -> None:
            if int(source) != rank:
                other = task_of(group.members[int(source)].name)
                exchange.disagrees(f"both {other} and {task_of(group.members[rank].name)} send")
            else:
                exchange.finish(own)

        exchange.receive("source", returned)
        exchange.send("source", np.int64(rank))
        exchange.send("value", own)
        return

    came: dict[str, Array] = {}
    left = _Countdown(2)

    def received(what: str, theirs: Array) -> None:
        came[what] = theirs
        if what == "source":
            exchange.send("source", theirs)
        if not left.passed():
            return
        wrong = check(came["value"])
        if wrong:
            exchange.disagrees(wrong)
            return
        if (rank + 1) % count != int(came["source"]):
            exchange.send("value", came["value"])
        exchange.finish(came["value"])

    if count == 1:
        exchange.fail(errors.InvalidArgumentError.of("a group of one has no other member to receive from"))
        return
    for what in ("source", "value"):
        exchange.receive(what, functools.partial(received, what))


class _Countdown:
    """Says who is the last of several that may pass at the same time."""

    def __init__(self, count: int) -> None:
        self._lock = threading.Lock()
        self._left = count

    def passed(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left == 0


def _is_about_groups(error: Exception) -> bool:
    return isinstance(error, errors.OpError) and error.message.startswith(BROKEN)


_logger = logging.getLogger("dtf")
