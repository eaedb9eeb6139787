"""DurableResources: the variables of a task, in memory that outlives its process.

Owns transactions: a segment that changes state holds `update_lock`, and releasing the lock writes one record of all
that changed. Owns what records say, and how a restarted task reads them. The files are `journal`'s, the bytes of a
record `records`', the values of variables `durable_variable`'s, queues, tables and the like `durable_objects`'s.

    words       d: variables [number, container, name, dtype, shape]; b: values in blocks [number, block, dtype, shape];
                i: values in the record [number, place]; c: without a value; x: removed; s: operations that have run
                [session, slot, number of the step, [[node, place or -1, or {"at": place in a random stream}]]];
                f: sessions that are over; g: generation; o and y: other objects (`durable_objects`); r: positions of
                random streams [session, node, numbers]; l: lineage; t, m: terms and mode (`replicated_resources`)
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import TypeVar, cast

import numpy as np

from dtf.run.durability.durable_objects import KEPT_KINDS, DurableObjects, ObjectKey
from dtf.run.durability.durable_streams import Draw, Position, kept_stream
from dtf.run.durability.durable_variable import DurableVariable
from dtf.run.durability.journal import Block, Journal
from dtf.run.durability.once import Drawn, StepEntry, StepRecords
from dtf.run.durability.records import (
    Ran,
    ReadWords,
    UpdateRecords,
    Words,
    packed_record,
    say_steps,
    say_value,
    unpacked_record,
)
from dtf.run.durability.transaction_lock import TransactionLock
from dtf.run.executor.step import SessionState
from dtf.run.interfaces import Done, Value
from dtf.run.state.change_log import Keepable
from dtf.run.state.resources import DEFAULT_CONTAINER, ResourceManager, Variable
from dtf.run.value_types import Array
from dtf.wire import dtypes, errors
from dtf.wire.dtypes import DType
from dtf.wire.durability import described

__all__ = ["DurableResources"]

_ORPHANS_KEPT_S = 600.0

_Resource = TypeVar("_Resource")
_State = TypeVar("_State")
_PRIVATE = "(session)"
"""The container of objects that belong to one session."""


class _DurableSessionState(SessionState):
    """The state of the nodes of one session, or of a function in it. Streams of random numbers and objects without a
    shared name go on where the former process was.
    """

    def __init__(self, owner: DurableResources, session: str, prefix: str = "") -> None:
        super().__init__()
        self._owner = owner
        self._session = session
        self._prefix = prefix

    def node_state(self, name: str, factory: Callable[[], _State]) -> _State:
        """See `SessionState.node_state`."""

        def create() -> _State:
            return cast(_State, self._kept(f"{self._prefix}{name}", factory()))

        return super().node_state(name, create)

    def _kept(self, name: str, made: object) -> object:
        owner, session = self._owner, self._session
        stream = kept_stream(made, owner.positions.get((session, name)), _Course(owner, session, name))
        if stream is not None:
            return stream
        if isinstance(made, KEPT_KINDS):
            owner.objects.adopt((_PRIVATE, type(made).__name__, f"{session} {name}"), cast(Keepable, made))
        elif type(made) is SessionState:
            return _DurableSessionState(owner, session, f"{name}/")
        elif isinstance(made, tuple):  # a sampler and its stream
            return tuple(self._kept(name, each) for each in made)
        return made


class _Course:
    """See `durable_streams.Course`."""

    def __init__(self, owner: DurableResources, session: str, node: str) -> None:
        self._owner = owner
        self._session = session
        self._node = node

    def begins(self, position: Position) -> Position:
        draw = self._owner.draw
        if draw is None:
            return position
        at = position if draw.again is None else draw.again
        if draw.began is None:
            draw.began = at
        return at

    def moved(self, position: Position) -> None:
        draw = self._owner.draw
        if draw is not None and draw.again is not None:
            draw.again = position
        else:
            self._owner.move(self._session, self._node, position)


class DurableResources(ResourceManager):
    """As `ResourceManager`, of one folder. `update_lock` guards the journal and what the transaction has gathered.

    Attributes:
      lineage: the name of the state; a folder that was made anew has another one.
      generation: how often the folder has been taken by a process.
      steps: for each step, the operations that have run.
      positions: where the streams of random numbers are, by session and node.
      objects: all that is kept beside variables and streams.
      draw: the operation that draws in the open transaction.
    """

    def __init__(self, folder: Path, is_standby: bool = False) -> None:
        """Reads the folder, or makes it. With `is_standby` the state is only read, until `take_over`.

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
        self.positions: dict[tuple[str, str], Position] = {}
        self._moved: dict[tuple[str, str], None] = {}
        self.draw: Draw | None = None
        self.objects = DurableObjects(self._transactions, self._check_change)
        self.lineage = ""
        self.generation = 0
        self._failure: errors.OpError | None = None
        self._variables: dict[int, DurableVariable] = {}
        self._places: dict[int, tuple[str, str]] = {}
        self._next_number = 1
        self._changed: dict[DurableVariable, None] = {}
        self._removed: list[DurableVariable] = []
        self._ran: list[Ran] = []
        self._updates = UpdateRecords()
        self._forgotten: list[str] = []
        self._orphans: set[str] = set()
        self._orphans_until_s = 0.0
        self._blocks_read: dict[int, tuple[int, np.dtype, tuple[int, ...]]] = {}
        self._held_read: dict[int, Array] = {}
        for text in self.journal.read():
            self.apply(text)
        if not is_standby:
            self.take_over()

    def take_over(self) -> None:
        """The state that was read is this process's from now on."""
        started = time.monotonic()
        self._recover()
        self._orphans = {session for session, _ in [*self.steps.entries, *self.positions]}
        self._orphans |= {_session_of(key) for key in self.objects.known() if key[0] == _PRIVATE}
        self._orphans_until_s = time.monotonic() + _ORPHANS_KEPT_S
        self.generation += 1
        self.lineage = self.lineage or secrets.token_hex(8)
        with self.update_lock:
            self._begin()
        self.journal.drop_other_blocks({each.block.number for each in self._variables.values() if each.block})
        _logger.info(
            "durable state %s in %s: generation %d, %d variables, taken over in %.3f s",
            self.lineage, self.journal.folder, self.generation, len(self._variables), time.monotonic() - started,
        )  # fmt: skip

    def check_serving(self) -> None:
        """Raises UnavailableError while this task may not confirm anything."""

    def confirming(self, done: Done[_State]) -> Done[_State]:
        """`done` of a step, called when all that the step has changed or seen is safe."""
        return done

    def _begin(self) -> None:
        """Writes the first record of this process."""
        self.journal.begin_anew(self._everything())

    @property
    def description(self) -> str:
        """What the device of the task says of it."""
        return described(self.lineage)

    def lookup_or_create(
        self, container: str, name: str, kind: type[_Resource], factory: Callable[[], _Resource]
    ) -> _Resource:
        """See `ResourceManager.lookup_or_create`. Variables are made durable."""
        found = self.lookup(container, name, kind)
        if found is not None:
            return found
        if kind in KEPT_KINDS:

            def create_kept() -> _Resource:
                made = factory()
                self.objects.adopt((container or DEFAULT_CONTAINER, kind.__name__, name), cast(Keepable, made))
                return made

            return super().lookup_or_create(container, name, kind, create_kept)
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
            key = container or DEFAULT_CONTAINER, kind.__name__, name
            self.objects.forget_stored(lambda each: each == key)

    def cleanup(self, containers: Iterable[str] = ()) -> None:
        """See `ResourceManager.cleanup`."""
        with self.update_lock:
            super().cleanup(containers)
            left = {id(each) for each in self._objects.values()}
            self._gone([each for each in self._variables.values() if id(each) not in left])
            wanted = {container or DEFAULT_CONTAINER for container in containers} or {DEFAULT_CONTAINER}
            self.objects.forget_others(left, wanted)
            self.objects.forget_stored(lambda key: key[0] in wanted)

    def touch(self, variable: DurableVariable) -> None:
        """A variable is about to change. Raises InternalError outside of a transaction, which would lose the change."""
        if self._failure is not None or not self._transactions.is_mine:
            self._check_change(variable.name)
        self._changed[variable] = None

    def is_in_transaction(self) -> bool:
        """See `ResourceManager.is_in_transaction`."""
        return self._transactions.is_mine

    def session_state(self, session: str) -> SessionState:
        """What a session keeps per node."""
        return _DurableSessionState(self, session)

    def move(self, session: str, node: str, position: Position) -> None:
        """A stream of random numbers has moved on. Raises InternalError outside of a transaction."""
        if not self._transactions.is_mine:
            raise errors.InternalError.of(f"Node {node} of a durable task draws outside of a transaction")
        self.positions[session, node] = position
        self._moved[session, node] = None

    def begin_draw(self, again: Position | None) -> None:
        """See `once.Keeper.begin_draw`."""
        self.draw = Draw(again)

    def end_draw(self) -> Position | None:
        """See `once.Keeper.end_draw`."""
        draw, self.draw = self.draw, None
        return None if draw is None else draw.began

    def _check_change(self, name: str) -> None:
        if self._failure is not None:
            raise self._failure
        if not self._transactions.is_mine:
            raise errors.InternalError.of(f"{name} of a durable task is changed outside of a transaction")

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
            else:
                self.objects.forget(each)

    # -- writing

    def _end(self) -> None:
        """Writes the record of a transaction."""
        has_more = bool(self._removed or self._moved or self.objects.has_changes)
        if not (self._changed or self._ran or has_more):
            return
        if self._failure is not None:
            raise self._failure
        removed: list[DurableVariable] = []
        changed, self._changed = list(self._changed), {}
        ran, self._ran = self._ran, []
        text = None if has_more or self._forgotten else self._updates.text(changed, ran)
        if text is None:
            words: Words = {}
            values: list[Value] = []
            for variable in changed:
                self._say_variable(variable, words, values, False)
            say_steps(ran, words, values)
            self.objects.say(words, values)
            moved, self._moved = self._moved, {}
            if moved:
                words["r"] = [[*key, self.positions[key]] for key in moved]
            removed, self._removed = self._removed, []
            if removed:
                words["x"] = [[each.number] for each in removed]
            forgotten, self._forgotten = self._forgotten, []
            if forgotten:
                words["f"] = [[each] for each in forgotten]
                self._forget_state(forgotten)
            text = packed_record(words, values)
        try:
            self.journal.append(text)
        except errors.OpError as error:
            # What is in memory is ahead of the records. A task that went on would confirm what it may lose.
            self._failure = error
            _logger.error("%s; this task takes no more updates", error.message)
            raise
        self._written(text, [each.block for each in changed if each.block is not None and each.block is not each.kept])
        for variable in changed:
            variable.settle(self._drop_block)
        for variable in removed:
            variable.remove(self._drop_block)
        if self.journal.is_long:
            self._compact()

    def _written(self, text: bytes, blocks: list[Block], is_whole: bool = False) -> None:
        """A record was written: of a transaction, with the new blocks that it names, or of all (`is_whole`)."""

    def _drop_block(self, number: int) -> None:
        self.journal.drop_block(number)

    def rows_change(self, block: Block, rows: np.ndarray) -> None:
        """See `durable_variable.Transactions`."""

    def _compact(self) -> None:
        """Replaces the records by one. They go on growing where there is no room for it; each of them is written."""
        text = self._everything()
        try:
            self.journal.begin_anew(text)
            self._written(text, [], is_whole=True)
        except errors.OpError as error:
            _logger.warning("%s Its records are not compacted now.", error.message)

    def _say_variable(self, variable: DurableVariable, words: Words, values: list[Value], is_new: bool) -> None:
        number, described = variable.number, (variable.dtype, variable.declared_shape)
        if is_new or variable.described != described:
            container, name = self._places[number]
            words.setdefault("d", []).append(
                [number, container, name, variable.name, variable.dtype.as_datatype_enum, described[1]]
            )
            variable.described = described
        if not variable.is_initialized:
            words.setdefault("c", []).append([number])
        else:
            say_value(variable, words, values, is_new)

    def _everything(self) -> bytes:
        """One record that says all."""
        words: Words = {"g": [[self.generation]], "l": [[self.lineage]], **self._more_words()}
        values: list[Value] = []
        for variable in self._variables.values():
            if variable.is_initialized:
                self._say_variable(variable, words, values, True)
            else:
                variable.described = None
        if self._orphans and time.monotonic() > self._orphans_until_s:
            for key in [key for key in self.steps.entries if key[0] in self._orphans]:
                self.steps.entries.pop(key, None)
            self._forget_state(self._orphans)
            self._orphans = set()
        words["r"] = [[*node, numbers] for node, numbers in list(self.positions.items())]
        self.objects.say_all(words, values)
        say_steps(
            [
                (key, entry.number, name, value)
                for key, entry in list(self.steps.entries.items())
                for name, value in list(entry.results.items())
            ],
            words,
            values,
        )
        return packed_record(words, values)

    def _more_words(self) -> Words:
        """What a record that says all has besides."""
        return {}

    def _forget_state(self, sessions: Collection[str]) -> None:
        """The streams and the own objects of sessions are gone."""
        for key in [key for key in self.positions if key[0] in sessions]:
            del self.positions[key]
        self.objects.drop(lambda key: key[0] == _PRIVATE and _session_of(key) in sessions)

    def session_is_here(self, session: str) -> None:
        """The client of a session has come back."""
        self._orphans.discard(session)

    # -- reading

    def apply(self, text: bytes) -> None:
        """Takes what a record says into the state that is read. Blocks are loaded by `take_over`."""
        self._read_words(*unpacked_record(text))

    def _read_words(self, words: ReadWords, values: Sequence[Array]) -> None:
        self.generation = words.get("g", [[self.generation]])[0][0]
        self.lineage = words.get("l", [[self.lineage]])[0][0]
        self._read_variables(words, values, self._blocks_read, self._held_read)
        self._read_steps(words, values)
        self.objects.read(words, values)
        for (session,) in words.get("f", ()):
            for key in [key for key in self.steps.entries if key[0] == session]:
                del self.steps.entries[key]
            self._forget_state([session])

    def _recover(self) -> None:
        """Gives the variables the values that the records name."""
        blocks, held = self._blocks_read, self._held_read
        by_number: dict[int, Block] = {}
        for number, variable in self._variables.items():
            if number in blocks:
                block = self._load_block(*blocks[number])
                by_number[block.number] = block
                variable.recovered(block, None)
            elif number in held:
                variable.recovered(None, held[number])
        self.journal.put_back(by_number.get)
        self._blocks_read, self._held_read = {}, {}

    def _forget_read(self) -> None:
        """As if nothing had been read."""
        for read in (self._variables, self._places, self._objects, self.steps.entries, self.positions):
            read.clear()
        self.objects.drop(lambda _: True)
        self._blocks_read, self._held_read = {}, {}
        self.lineage, self.generation, self._next_number = "", 0, 1

    def _load_block(self, number: int, dtype: np.dtype, shape: tuple[int, ...]) -> Block:
        return self.journal.load_block(number, dtype, shape)

    def _read_variables(
        self,
        words: ReadWords,
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

    def _read_steps(self, words: ReadWords, values: Sequence[Array]) -> None:
        """What one record says of operations that have run, and of random streams."""
        entries = self.steps.entries
        for session, slot, number, names in words.get("s", ()):
            entry = entries.get((session, slot))
            if entry is None or entry.number != number:
                entry = entries[session, slot] = StepEntry(number, 0)
            for name, place in names:
                if isinstance(place, dict):
                    entry.results[name] = Drawn(tuple(place["at"]))
                elif isinstance(place, list):
                    entry.results[name] = tuple(values[each] for each in place)
                else:
                    entry.results[name] = None if place < 0 else values[place]
        for session, node, numbers in words.get("r", ()):
            self.positions[session, node] = tuple(numbers)

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


def _session_of(key: ObjectKey) -> str:
    """The session of an object of its own."""
    return key[2].partition(" ")[0]


_logger = logging.getLogger("dtf")
