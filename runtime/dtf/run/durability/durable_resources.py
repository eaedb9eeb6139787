"""DurableResources: the variables of a task, in memory that outlives its process.

Owns transactions: a segment that changes state holds `update_lock`, and releasing the lock writes one record of all
that changed. Owns what records say, and how a restarted task reads them. The files are `journal`'s, the values of
variables `durable_variable`'s.

    record      bytes of the words u32, words as JSON, padding, values (`tensor_frames`)
    words       d: variables [number, container, name, dtype, shape]; b: values in blocks [number, block, dtype, shape];
                i: values in the record [number, place]; c: without a value; x: removed; s: operations that have run
                [session, slot, number of the step, [[node, place or -1]]]; f: sessions that are over; g: generation;
                q: queues and accumulators [container, class, name, numbers, places of arrays]; y: those removed;
                r: positions of random streams [session, node, counter]; l: lineage
"""

from __future__ import annotations

import json
import logging
import secrets
import struct
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from dtf.run.durability.durable_variable import DurableVariable
from dtf.run.durability.journal import Block, Journal
from dtf.run.durability.once import StepEntry, StepRecords
from dtf.run.durability.transaction_lock import TransactionLock
from dtf.run.executor.step import SessionState
from dtf.run.interfaces import Done, Value
from dtf.run.lib.philox import PhiloxDraws
from dtf.run.state.accumulators import Accumulator
from dtf.run.state.queues import Queue
from dtf.run.state.resources import DEFAULT_CONTAINER, ResourceManager, Variable, handle_of
from dtf.run.value_types import Array
from dtf.wire import dtypes, errors, tensor_frames
from dtf.wire.dtypes import DType
from dtf.wire.durability import described

__all__ = ["DurableResources"]

_ORPHANS_KEPT_S = 600.0
_LENGTH = struct.Struct("<I")
_ALIGNMENT = 16

_Resource = TypeVar("_Resource")
_State = TypeVar("_State")
_ObjectKey = tuple[str, str, str]
"""Container, class and name of a queue or an accumulator."""
_Words = dict[str, list[list[object]]]
_Read = Any
"""Words as JSON gives them."""


class _KeptDraws(PhiloxDraws):
    """A stream of random numbers whose position is in the records."""

    def __init__(self, draws: PhiloxDraws, counter: int, moved: Callable[[int], None]) -> None:
        super().__init__(draws.key, counter)
        self._moved = moved

    def reserve(self, counters: int) -> int:
        first = super().reserve(counters)
        self._moved(self.counter)
        return first


class _DurableSessionState(SessionState):
    """The state of the nodes of one session. Streams of random numbers go on where the former process was."""

    def __init__(self, owner: DurableResources, session: str) -> None:
        super().__init__()
        self._owner = owner
        self._session = session

    def node_state(self, name: str, factory: Callable[[], _State]) -> _State:
        """See `SessionState.node_state`."""

        def create() -> _State:
            made = factory()
            if not isinstance(made, PhiloxDraws):
                return made
            counter = self._owner.positions.get((self._session, name), made.counter)
            kept = _KeptDraws(made, counter, lambda now: self._owner.move(self._session, name, now))
            return cast(_State, kept)

        return super().node_state(name, create)


class DurableResources(ResourceManager):
    """As `ResourceManager`, of one folder. `update_lock` guards the journal and what the transaction has gathered.

    Attributes:
      lineage: the name of the state; a folder that was made anew has another one.
      generation: how often the folder has been taken by a process.
      steps: for each step, the operations that have run.
      positions: where the streams of random numbers are, by session and node.
    """

    def __init__(self, folder: Path) -> None:
        """Reads the folder, or makes it.

        Raises:
          FailedPreconditionError: another process has it.
          DataLossError: its files contradict each other.
          ResourceExhaustedError, UnavailableError: it cannot be written.
        """
        super().__init__()
        self._transactions = TransactionLock(self._end)
        self.update_lock = self._transactions
        self.journal = Journal(folder)
        self.steps = StepRecords(self)
        self.positions: dict[tuple[str, str], int] = {}
        self._moved: dict[tuple[str, str], None] = {}
        self._stored: dict[_ObjectKey, tuple[list[int], list[list[Array]]]] = {}
        self._kept_objects: dict[_ObjectKey, Queue | Accumulator[object]] = {}
        self._object_keys: dict[int, _ObjectKey] = {}
        self._changed_objects: dict[_ObjectKey, None] = {}
        self._removed_objects: list[_ObjectKey] = []
        self.lineage = ""
        self.generation = 0
        self._failure: errors.OpError | None = None
        self._variables: dict[int, DurableVariable] = {}
        self._places: dict[int, tuple[str, str]] = {}
        self._next_number = 1
        self._changed: dict[DurableVariable, None] = {}
        self._removed: list[DurableVariable] = []
        self._ran: list[tuple[tuple[str, int], int, str, Value]] = []
        self._forgotten: list[str] = []
        started = time.monotonic()
        self._read()
        self._orphans = {session for session, _ in [*self.steps.entries, *self.positions]}
        self._orphans_until_s = time.monotonic() + _ORPHANS_KEPT_S
        self.generation += 1
        self.lineage = self.lineage or secrets.token_hex(8)
        with self.update_lock:
            self.journal.begin_anew(self._everything())
        self.journal.drop_other_blocks({each.block.number for each in self._variables.values() if each.block})
        _logger.info(
            "durable state %s in %s: generation %d, %d variables, read in %.3f s",
            self.lineage, folder, self.generation, len(self._variables), time.monotonic() - started,
        )  # fmt: skip

    @property
    def description(self) -> str:
        """What the device of the task says of it."""
        return described(self.lineage)

    def _lookup_or_create_object(
        self, container: str, name: str, kind: type[_Resource], factory: Callable[[], _Resource]
    ) -> _Resource:
        key = container or DEFAULT_CONTAINER, kind.__name__, name

        def create() -> _Resource:
            made = factory()
            assert isinstance(made, Queue | Accumulator)
            if isinstance(made, Queue):
                made.is_whole = True
            stored = self._stored.pop(key, None)
            if stored is not None:
                _fill(made, *stored)
            for wait_queue in made.wait_queues:
                wait_queue.guard = _Guard(self, made)
            self._object_keys[id(made)] = key
            self._kept_objects[key] = made
            return cast(_Resource, made)

        return super().lookup_or_create(container, name, kind, create)

    def lookup_or_create(
        self, container: str, name: str, kind: type[_Resource], factory: Callable[[], _Resource]
    ) -> _Resource:
        """See `ResourceManager.lookup_or_create`. Variables are made durable."""
        if kind in (Queue, Accumulator):
            return self._lookup_or_create_object(container, name, kind, factory)
        if kind is not Variable:
            return super().lookup_or_create(container, name, kind, factory)

        def create() -> Variable:
            plain = cast(Variable, factory())
            if plain.storage is not None:
                raise errors.UnimplementedError.of(f"Variable {name} is not in the host's memory and cannot be durable")
            variable = DurableVariable(self, self._next_number, plain.name, plain.dtype, plain.declared_shape)
            self._next_number += 1
            self._variables[variable.number] = variable
            self._places[variable.number] = container or DEFAULT_CONTAINER, name
            return variable

        return cast(_Resource, super().lookup_or_create(container, name, Variable, create))

    def delete(self, container: str, name: str, kind: type) -> None:
        """See `ResourceManager.delete`."""
        found = self.lookup(container, name, kind)
        with self.update_lock:
            super().delete(container, name, kind)
            self._gone([found])
            self._stored.pop((container or DEFAULT_CONTAINER, kind.__name__, name), None)

    def cleanup(self, containers: Iterable[str] = ()) -> None:
        """See `ResourceManager.cleanup`."""
        with self.update_lock:
            super().cleanup(containers)
            left = {id(each) for each in self._objects.values()}
            self._gone([each for each in self._variables.values() if id(each) not in left])
            self._gone([each for each in self._kept_objects.values() if id(each) not in left])
            wanted = {container or DEFAULT_CONTAINER for container in containers} or {DEFAULT_CONTAINER}
            for key in [key for key in self._stored if key[0] in wanted]:
                del self._stored[key]
                self._removed_objects.append(key)

    def touch(self, variable: DurableVariable) -> None:
        """A variable is about to change. Raises InternalError outside of a transaction, which would lose the change."""
        if self._failure is not None:
            raise self._failure
        if not self._transactions.is_mine:
            raise errors.InternalError.of(
                f"Variable {variable.name} of a durable task is changed outside of a transaction"
            )
        self._changed[variable] = None

    def session_state(self, session: str) -> SessionState:
        """What a session keeps per node."""
        return _DurableSessionState(self, session)

    def move(self, session: str, node: str, counter: int) -> None:
        """A stream of random numbers has moved on. Raises InternalError outside of a transaction."""
        if not self._transactions.is_mine:
            raise errors.InternalError.of(f"Node {node} of a durable task draws outside of a transaction")
        self.positions[session, node] = counter
        self._moved[session, node] = None

    def touch_object(self, handle: Value) -> None:
        """See `once.Keeper.touch_object`."""
        if self._failure is not None:
            raise self._failure
        found = handle
        if not isinstance(found, Queue | Accumulator):
            at = handle_of(handle)
            found = self.lookup(at.container, at.name, Queue)
            if found is None:
                found = self.lookup(at.container, at.name, Accumulator)
        key = self._object_keys.get(id(found))
        if key is None:
            raise errors.UnimplementedError.of("A durable task keeps only queues and accumulators with a shared_name")
        if not self._transactions.is_mine:
            raise errors.InternalError.of(f"{key[2]} of a durable task is changed outside of a transaction")
        self._changed_objects[key] = None

    def after_record(self, done: Done[Value], value: Value) -> None:
        """See `once.Keeper.after_record`."""
        if self._transactions.is_mine:
            self._transactions.waiting.append((done, value))
        else:
            done(error=errors.InternalError.of("An operation of a durable task has ended outside of a transaction"))

    def note(self, key: tuple[str, int], number: int, name: str, value: Value) -> None:
        """See `once.Keeper.note`."""
        self._ran.append((key, number, name, value))

    def forget_session(self, session: str) -> None:
        """See `once.Keeper.forget_session`. The next record says so."""
        self._forgotten.append(session)

    def close(self) -> None:
        """Releases the folder: nothing changes any more."""
        with self._transactions.lock:
            self._failure = self._failure or errors.UnavailableError.of("The task has shut down")
            self.journal.close()

    def _gone(self, resources: Iterable[object]) -> None:
        for each in resources:
            if isinstance(each, DurableVariable) and self._variables.pop(each.number, None) is not None:
                self._places.pop(each.number)
                self._changed.pop(each, None)
                self._removed.append(each)
            elif id(each) in self._object_keys:
                key = self._object_keys.pop(id(each))
                self._kept_objects.pop(key, None)
                self._changed_objects.pop(key, None)
                self._removed_objects.append(key)

    # -- writing

    def _end(self) -> None:
        """Writes the record of a transaction."""
        if not (
            self._changed or self._ran or self._removed or self._moved or self._changed_objects or self._removed_objects
        ):
            return
        if self._failure is not None:
            raise self._failure
        words: _Words = {}
        values: list[Value] = []
        changed, self._changed = list(self._changed), {}
        for variable in changed:
            self._say_variable(variable, words, values, False)
        ran, self._ran = self._ran, []
        self._say_steps(ran, words, values)
        objects, self._changed_objects = self._changed_objects, {}
        self._say_objects({key: _state_of(self._kept_objects[key]) for key in objects}, words, values)
        gone, self._removed_objects = self._removed_objects, []
        if gone:
            words["y"] = [[*key] for key in gone]
        moved, self._moved = self._moved, {}
        if moved:
            words["r"] = [[*key, str(self.positions[key])] for key in moved]
        removed, self._removed = self._removed, []
        if removed:
            words["x"] = [[each.number] for each in removed]
        forgotten, self._forgotten = self._forgotten, []
        if forgotten:
            words["f"] = [[each] for each in forgotten]
            for key in [key for key in self.positions if key[0] in forgotten]:
                del self.positions[key]
        try:
            self.journal.append(_text(words, values))
        except errors.OpError as error:
            # What is in memory is ahead of the records. A task that went on would confirm what it may lose.
            self._failure = error
            _logger.error("%s; this task takes no more updates", error.message)
            raise
        for variable in changed:
            variable.settle(self.journal.drop_block)
        for variable in removed:
            variable.remove(self.journal.drop_block)
        if self.journal.is_long:
            self._compact()

    def _compact(self) -> None:
        """Replaces the records by one. They go on growing where there is no room for it; each of them is written."""
        try:
            self.journal.begin_anew(self._everything())
        except errors.OpError as error:
            _logger.warning("%s Its records are not compacted now.", error.message)

    def _say_variable(self, variable: DurableVariable, words: _Words, values: list[Value], is_new: bool) -> None:
        number, described = variable.number, (variable.dtype, variable.declared_shape)
        if is_new or variable.described != described:
            container, name = self._places[number]
            words.setdefault("d", []).append(
                [number, container, name, variable.name, variable.dtype.as_datatype_enum, described[1]]
            )
            variable.described = described
        if not variable.is_initialized:
            words.setdefault("c", []).append([number])
        elif variable.block is None:
            words.setdefault("i", []).append([number, len(values)])
            values.append(variable.read())
        elif is_new or variable.block is not variable.kept:
            array = variable.block.array
            enum = dtypes.as_dtype(array.dtype).as_datatype_enum
            words.setdefault("b", []).append([number, variable.block.number, enum, list(array.shape)])

    def _say_steps(
        self, ran: Iterable[tuple[tuple[str, int], int, str, Value]], words: _Words, values: list[Value]
    ) -> None:
        by_step: dict[tuple[str, int, int], list[list[object]]] = {}
        for (session, slot), number, name, value in ran:
            place: int | list[int] = -1
            if isinstance(value, tuple | list):
                place = list(range(len(values), len(values) + len(value)))
                values += value
            elif value is not None and not isinstance(value, Variable):
                place = len(values)
                values.append(value)
            by_step.setdefault((session, slot, number), []).append([name, place])
        if by_step:
            words["s"] = [[*step, names] for step, names in by_step.items()]

    def _say_objects(
        self, states: Mapping[_ObjectKey, tuple[list[int], list[list[Array]]]], words: _Words, values: list[Value]
    ) -> None:
        for key, (numbers, groups) in states.items():
            places: list[list[int]] = []
            for group in groups:
                places.append(list(range(len(values), len(values) + len(group))))
                values += group
            words.setdefault("q", []).append([*key, numbers, places])

    def _everything(self) -> bytes:
        """One record that says all."""
        words: _Words = {"g": [[self.generation]], "l": [[self.lineage]]}
        values: list[Value] = []
        for variable in self._variables.values():
            if variable.is_initialized:
                self._say_variable(variable, words, values, True)
            else:
                variable.described = None
        if self._orphans and time.monotonic() > self._orphans_until_s:
            for key in [key for key in self.steps.entries if key[0] in self._orphans]:
                self.steps.entries.pop(key, None)
            for node in [node for node in self.positions if node[0] in self._orphans]:
                del self.positions[node]
            self._orphans = set()
        words["r"] = [[*node, str(counter)] for node, counter in self.positions.items()]
        self._say_objects(self._stored, words, values)
        self._say_objects({key: _state_of(each) for key, each in self._kept_objects.items()}, words, values)
        self._say_steps(
            [
                (key, entry.number, name, value)
                for key, entry in list(self.steps.entries.items())
                for name, value in list(entry.results.items())
            ],
            words,
            values,
        )
        return _text(words, values)

    def session_is_here(self, session: str) -> None:
        """The client of a session has come back."""
        self._orphans.discard(session)

    # -- reading

    def _read(self) -> None:
        blocks: dict[int, tuple[int, np.dtype, tuple[int, ...]]] = {}
        held: dict[int, Array] = {}
        for text in self.journal.read():
            (size,) = _LENGTH.unpack_from(text)
            words = json.loads(text[4 : 4 + size])
            at = 4 + size + -(4 + size) % _ALIGNMENT
            values = [
                np.array(each) if isinstance(each, np.ndarray) else each for each in tensor_frames.unpack(text, at)
            ]
            self.generation = words.get("g", [[self.generation]])[0][0]
            self.lineage = words.get("l", [[self.lineage]])[0][0]
            self._read_variables(words, values, blocks, held)
            self._read_steps(words, values)
            self._read_objects(words, values)
            for (session,) in words.get("f", ()):
                for key in [key for key in self.steps.entries if key[0] == session]:
                    del self.steps.entries[key]
                for node in [node for node in self.positions if node[0] == session]:
                    del self.positions[node]
        by_number: dict[int, Block] = {}
        for number, variable in self._variables.items():
            if number in blocks:
                block = self.journal.load_block(*blocks[number])
                by_number[block.number] = block
                variable.recovered(block, None)
            elif number in held:
                variable.recovered(None, held[number])
        self.journal.put_back(by_number.get)

    def _read_variables(
        self,
        words: _Read,
        values: Sequence[Array],
        blocks: dict[int, tuple[int, np.dtype, tuple[int, ...]]],
        held: dict[int, Array],
    ) -> None:
        """What one record says of variables: `blocks` and `held` get their values by number."""
        for number, container, name, own_name, enum, shape in words.get("d", ()):
            self._known(number, container, name, own_name, dtypes.as_dtype(enum), shape)
        for number, block, enum, shape in words.get("b", ()):
            held.pop(number, None)
            blocks[number] = block, np.dtype(dtypes.as_dtype(enum).as_numpy_dtype), tuple(shape)
        for number, place in words.get("i", ()):
            blocks.pop(number, None)
            held[number] = values[place]
        for (number,) in [*words.get("c", ()), *words.get("x", ())]:
            blocks.pop(number, None)
            held.pop(number, None)
        for (number,) in words.get("x", ()):
            if self._variables.pop(number, None) is not None:
                container, name = self._places.pop(number)
                del self._objects[container, Variable, name]

    def _read_steps(self, words: _Read, values: Sequence[Array]) -> None:
        """What one record says of operations that have run, and of random streams."""
        entries = self.steps.entries
        for session, slot, number, names in words.get("s", ()):
            entry = entries.get((session, slot))
            if entry is None or entry.number != number:
                entry = entries[session, slot] = StepEntry(number, 0)
            for name, place in names:
                if isinstance(place, list):
                    entry.results[name] = tuple(values[each] for each in place)
                else:
                    entry.results[name] = None if place < 0 else values[place]
        for session, node, counter in words.get("r", ()):
            self.positions[session, node] = int(counter)

    def _read_objects(self, words: _Read, values: Sequence[Array]) -> None:
        """What one record says of queues and accumulators."""
        for container, kind, name, numbers, places in words.get("q", ()):
            groups = [[values[place] for place in group] for group in places]
            self._stored[container, kind, name] = numbers, groups
        for container, kind, name in words.get("y", ()):
            self._stored.pop((container, kind, name), None)

    def _known(
        self, number: int, container: str, name: str, own_name: str, dtype: DType, shape: list[int | None] | None
    ) -> None:
        declared = None if shape is None else tuple(shape)
        variable = self._variables.get(number)
        if variable is None:
            variable = DurableVariable(self, number, own_name, dtype, declared)
            self._variables[number] = variable
            self._places[number] = container, name
            self._objects[container, Variable, name] = variable
            self._next_number = max(self._next_number, number + 1)
        variable.dtype, variable.declared_shape = dtype, declared


class _Guard(AbstractContextManager[None]):
    """A transaction about one object, for changes without a segment: when an operation is cancelled, others go on."""

    def __init__(self, owner: DurableResources, changed: Queue | Accumulator[object]) -> None:
        self._owner = weakref.ref(owner)
        self._changed = weakref.ref(changed)

    def __enter__(self) -> None:
        owner = self._owner()
        assert owner is not None
        owner.update_lock.acquire()
        changed = self._changed()
        if changed is not None:
            with suppress(errors.OpError):  # it has been removed: nothing of it is kept
                owner.touch_object(changed)

    def __exit__(self, *_: object) -> None:
        owner = self._owner()
        assert owner is not None
        owner.update_lock.release()


def _state_of(kept: Queue | Accumulator[object]) -> tuple[list[int], list[list[Array]]]:
    """The state of a queue or an accumulator: numbers, and groups of arrays."""
    if isinstance(kept, Queue):
        return [int(kept.is_closed)], [list(element) for element in kept.elements()]
    return [kept.num_accumulated, kept.global_step], [kept.parts()]


def _fill(made: Queue | Accumulator[object], numbers: list[int], groups: list[list[Array]]) -> None:
    """Gives a new object the state that `_state_of` has told."""
    if isinstance(made, Queue):
        made.fill([tuple(group) for group in groups], bool(numbers[0]))
    else:
        made.fill(numbers[0], numbers[1], groups[0])


def _text(words: _Words, values: list[Value]) -> bytes:
    head = _encode(words).encode()
    size = 4 + len(head)
    frames = tensor_frames.pack(values)
    return b"".join([_LENGTH.pack(len(head)), head, b"\0" * (-size % _ALIGNMENT), *frames])


_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


_logger = logging.getLogger("dtf")
