"""Steps that are sent again: what of them has run, so that nothing runs twice.

Owns the layout of step ids that bear an identity, the entry of each slot, and the wrapping of operations that change
state: one whose result is in the entry of its step is not run again. Does not know how results outlive a process
(`durable_resources`), nor who sends a step again (`master.durable_steps`).

    step id     session u20, slot u8, number u25, attempt u10

A slot runs one step at a time, so a new number says that the step before is over. Numbers wrap around.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol, cast

import numpy as np

from dtf.run.durability.kept import MARK, draws, is_kept
from dtf.run.executor.instructions import SENDS, Instruction
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Value
from dtf.wire import errors
from dtf.wire.pb import graph_pb2

__all__ = [
    "ATTEMPTS_MAX", "SESSION_BITS", "SLOTS_MAX", "Drawn", "Keeper", "StepAttempt", "StepName", "StepRecords",
    "answers_once", "once_each",
]  # fmt: skip

SESSION_BITS, _SLOT_BITS, _NUMBER_BITS, _ATTEMPT_BITS = 20, 8, 25, 10
SLOTS_MAX = 1 << _SLOT_BITS
ATTEMPTS_MAX = 1 << _ATTEMPT_BITS
_NUMBER_MASK = (1 << _NUMBER_BITS) - 1


class StepName(NamedTuple):
    """The identity of a step in its session, and the attempt."""

    session: int
    slot: int
    number: int
    attempt: int

    @property
    def step_id(self) -> int:
        """The identity as a step id."""
        number = self.number & _NUMBER_MASK
        return ((self.session << _SLOT_BITS | self.slot) << _NUMBER_BITS | number) << _ATTEMPT_BITS | self.attempt

    @staticmethod
    def of(step_id: int) -> StepName:
        """The identity that a step id bears."""
        rest = step_id >> _ATTEMPT_BITS
        place = rest >> _NUMBER_BITS
        return StepName(place >> _SLOT_BITS, place & SLOTS_MAX - 1, rest & _NUMBER_MASK, step_id & ATTEMPTS_MAX - 1)


class Keeper(Protocol):
    """Keeps the results of operations beyond the process."""

    def note(self, key: tuple[str, int], number: int, name: str, value: Value) -> None:
        """The operation `name` of step `number` in the slot `key` has run, in the transaction that is open."""

    def forget_session(self, session: str) -> None:
        """The entries of a session are not needed any more."""

    def after_record(self, done: Done[Value], value: Value) -> None:
        """Calls done(value) when the transaction that is open has its record, or done(error=...)."""

    def begin_draw(self, again: tuple[int, ...] | None) -> None:
        """An operation draws random numbers; those at `again`, where it has drawn before."""

    def end_draw(self) -> tuple[int, ...] | None:
        """It has drawn; where its numbers began, or None: nobody can draw them again."""


class Drawn:
    """What stands for random numbers in the entry of a step.

    Attributes:
      at: where they began in their stream.
      value: the numbers, in the process that drew them; None in a later one, which draws them again.
    """

    __slots__ = ("at", "value")

    def __init__(self, at: tuple[int, ...], value: Value = None) -> None:
        self.at = at
        self.value = value


_ANSWER_BYTES_MAX = 4096
_Cancel = Callable[[errors.OpError], None]
_lock = threading.Lock()
"""Guards what entries say of operations that wait."""


class StepEntry:
    """What has run of the last step of a slot.

    Attributes:
      attempt: the newest.
      results: of what has run, by the names of nodes.
      waiting: operations that an attempt has started, and the calls that wait for their ends.
      cancel: cancels the newest attempt; None while none runs.
    """

    __slots__ = ("attempt", "cancel", "number", "results", "waiting")

    def __init__(self, number: int, attempt: int, results: dict[str, Value] | None = None) -> None:
        self.number = number
        self.attempt = attempt
        self.results: dict[str, Value] = {} if results is None else results
        self.waiting: dict[str, list[Callable[[], None]]] = {}
        self.cancel: _Cancel | None = None


class StepRecords:
    """The entries of a task, by (session, slot). The lock guards the table."""

    def __init__(self, keeper: Keeper | None = None) -> None:
        self.entries: dict[tuple[str, int], StepEntry] = {}
        self._keeper = keeper
        self._lock = threading.Lock()

    def begin(self, session: str, step_id: int) -> StepAttempt:
        """An attempt of a step begins. An older one that still runs here is stopped now, so that no two of them wait at
        one queue.

        Raises:
          AbortedError: its slot has gone on to another step, or a later attempt has begun.
        """
        name = StepName.of(step_id)
        key = session, name.slot
        older: _Cancel | None = None
        with self._lock:
            entry = self.entries.get(key)
            ahead = 0 if entry is None else (name.number - entry.number) & _NUMBER_MASK
            if entry is not None and not ahead:
                if name.attempt < entry.attempt:
                    raise errors.AbortedError.of(f"A later attempt of step {step_id} has begun")
                if name.attempt > entry.attempt:
                    older, entry.cancel = entry.cancel, None
                entry.attempt = name.attempt
            elif entry is None or ahead <= _NUMBER_MASK >> 1:
                entry = self.entries[key] = StepEntry(name.number, name.attempt)
            else:
                raise errors.AbortedError.of(f"Step {step_id} is over: its slot runs a later one")
        if older is not None:
            older(errors.AbortedError.of("A later attempt of this step has begun"))
        return StepAttempt(key, entry, name.attempt, self._keeper)

    def forget_session(self, session: str) -> None:
        """Forgets the entries of a session that has ended."""
        with self._lock:
            keys = [key for key in self.entries if key[0] == session]
            for key in keys:
                del self.entries[key]
        if keys and self._keeper is not None:
            self._keeper.forget_session(session)


class StepAttempt:
    """One attempt of a step at this task."""

    __slots__ = ("_attempt", "_calls", "_entry", "_keeper", "_key")

    def __init__(self, key: tuple[str, int], entry: StepEntry, attempt: int, keeper: Keeper | None) -> None:
        self._key = key
        self._entry = entry
        self._attempt = attempt
        self._keeper = keeper
        self._calls: dict[str, int] = {}

    def call_number(self, call: str) -> int:
        """See `step.Attempt.call_number`."""
        number = self._calls[call] = self._calls.get(call, -1) + 1
        return number

    def results(self) -> dict[str, Value]:
        """The results so far. Raises AbortedError when a later attempt has begun: this one must change nothing."""
        if self._entry.attempt != self._attempt:
            raise errors.AbortedError.of("A later attempt of this step has begun")
        return self._entry.results

    def runs(self, cancel: _Cancel) -> None:
        """The attempt runs now; `cancel` stops it."""
        if self._entry.attempt == self._attempt:
            self._entry.cancel = cancel

    def end(self) -> None:
        """Nothing of the attempt runs any more."""
        if self._entry.attempt == self._attempt:
            self._entry.cancel = None

    def starts(self, name: str, later: Callable[[], None]) -> bool:
        """An operation that may wait starts, unless that of an older attempt has not ended yet: then `later` is called
        when it has, by which time its result may be there.
        """
        with _lock:
            waiting = self._entry.waiting.get(name)
            if waiting is None:
                self._entry.waiting[name] = []
                return True
            waiting.append(later)
            return False

    def ends(self, name: str) -> None:
        """An operation that `starts` has let go on has ended."""
        with _lock:
            waiting = self._entry.waiting.pop(name, ())
        for later in waiting:
            later()

    def note(self, name: str, value: Value, is_kept: bool) -> None:
        """An operation has run."""
        self._entry.results[name] = value
        if is_kept and self._keeper is not None:
            self._keeper.note(self._key, self._entry.number, name, value)


def once_each(
    instructions: list[Instruction], graph_def: graph_pb2.GraphDef, is_durable: bool
) -> tuple[list[Instruction], bool]:
    """The instructions, those with the mark wrapped so that each runs once in all attempts of a step; whether there are
    any. On a durable task those that change its state are marked as such.
    """
    marked = {node.name for node in graph_def.node if MARK in node.attr}
    if not marked and not is_durable:
        return instructions, False
    return [_wrapped(each, each.name in marked, is_durable) for each in instructions], bool(marked)


def _wrapped(instruction: Instruction, is_marked: bool, is_durable: bool) -> Instruction:
    keeps = is_durable and is_kept(instruction.op)
    if not is_marked and not keeps:
        return instruction
    name, call, kernel = instruction.name, instruction.function, instruction.kernel
    if kernel.asynchronous:
        function = _asynchronous(name, call, keeps)
    else:
        outputs = instruction.node.op_def.outputs
        gives_reference = len(outputs) == 1 and outputs[0].is_ref and bool(instruction.node.op_def.inputs)
        if keeps and draws(instruction.op):
            function = _drawing(name, call)
        else:
            function = _synchronous(name, call, kernel.stateful, gives_reference, keeps)
    return dataclasses.replace(instruction, kernel=kernel._replace(stateful=True), function=function, keeps=keeps)


def _synchronous(
    name: str, call: Callable[..., Value], takes_step: bool, gives_reference: bool, keeps_result: bool
) -> Callable[..., Value]:
    def run(step: StepContext, *inputs: Value) -> Value:
        attempt = step.attempt
        if attempt is None:
            return call(step, *inputs) if takes_step else call(*inputs)
        key = _key(name, step)
        results = attempt.results()
        if key in results:
            return inputs[0] if gives_reference else results[key]
        value = call(step, *inputs) if takes_step else call(*inputs)
        attempt.note(key, None if gives_reference else value, keeps_result)
        return value

    return run


def _drawing(name: str, call: Callable[..., Value]) -> Callable[..., Value]:
    def run(step: StepContext, *inputs: Value) -> Value:
        attempt = cast("StepAttempt | None", step.attempt)
        if attempt is None:
            return call(step, *inputs)
        key = _key(name, step)
        found = attempt.results().get(key)
        if found is not None and not isinstance(found, Drawn):
            return found
        if found is not None and found.value is not None:
            return found.value
        keeper = cast(Keeper, step.resources)
        keeper.begin_draw(None if found is None else found.at)
        began = None
        try:
            value = call(step, *inputs)
        finally:
            began = keeper.end_draw()
        if found is not None:
            found.value = value
        elif began is None:
            attempt.note(key, value, _is_small(value))
        else:
            attempt.note(key, Drawn(began, value), True)
        return value

    return run


def _asynchronous(name: str, call: Callable[..., Value], keeps: bool) -> Callable[..., Value]:
    def run(step: StepContext, done: Done[Value], *inputs: Value) -> None:
        attempt = cast("StepAttempt | None", step.attempt)
        key = _key(name, step)
        if attempt is not None:
            results = attempt.results()
            if key in results:
                done(results[key])
                return
            if not attempt.starts(key, lambda: again(step, done, *inputs)):
                return

        def finished(value: Value = None, error: errors.OpError | None = None) -> None:
            if error is not None:
                done(error=error)
            else:
                if attempt is not None:
                    attempt.note(key, value, keeps)
                if keeps:
                    cast(Keeper, step.resources).after_record(done, value)
                else:
                    done(value)
            if attempt is not None:
                attempt.ends(key)

        try:
            call(step, finished, *inputs)
        except BaseException:
            if attempt is not None:
                attempt.ends(key)
            raise

    def again(step: StepContext, done: Done[Value], *inputs: Value) -> None:
        try:
            if keeps:
                with step.resources.update_lock:
                    run(step, done, *inputs)
            else:
                run(step, done, *inputs)
        except errors.OpError as error:
            done(error=error)

    return run


def answers_once(instructions: list[Instruction]) -> list[Instruction]:
    """The instructions of a durable task, those wrapped that send or fetch what a change has made: a small value is
    recorded in the transaction of the change, and a later attempt gives the same one. Other values are read again.
    """
    made = {each.index for each in instructions if each.keeps}
    if not made:
        return instructions
    consumers: dict[int, list[int]] = {}
    for each in instructions:
        for source in each.sources():
            consumers.setdefault(source, []).append(each.index)
    left = list(made)
    while left:
        for index in consumers.get(left.pop(), ()):
            if index not in made:
                made.add(index)
                left.append(index)
    return [
        dataclasses.replace(each, function=_answering(each.name, each.function))
        if each.op in SENDS and each.index in made
        else each
        for each in instructions
    ]


def _answering(name: str, call: Callable[..., Value]) -> Callable[[StepContext, Value], None]:
    def run(step: StepContext, value: Value) -> None:
        attempt = step.attempt
        if attempt is not None:
            key = _key(name, step)
            results = attempt.results()
            if key in results:
                value = results[key]
            elif _is_small(value) and step.resources.is_in_transaction():
                attempt.note(key, value, True)
        call(step, value)

    return run


def _is_small(value: Value) -> bool:
    return isinstance(value, np.ndarray | np.generic) and value.nbytes <= _ANSWER_BYTES_MAX


def _key(name: str, step: StepContext) -> str:
    """The name of a node; in a loop or in a function, of one run of it."""
    name = f"{step.path}{name}" if step.path else name
    return name if step.frame_iteration == "0:0" else f"{name}@{step.frame_iteration}"
