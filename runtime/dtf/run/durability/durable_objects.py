"""DurableObjects: queues, accumulators, tables, staging areas, barriers and work queues of a task that outlive it.

Owns which objects are kept, and what records say of them: the changes of their entries (`state.change_log`). Does not
know what an entry means, so that a record can be applied where no such object exists: after a restart, before a step
names the object again, and on another host.

    record words    o: [container, class, name, changes]; y: those removed [container, class, name]
    change          ["c"] no entries; ["p", key, places of arrays]; ["r", key] removed; ["m", key, key] moved
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import TypeAlias

from dtf.run.interfaces import Value
from dtf.run.state.accumulators import Accumulator
from dtf.run.state.change_log import ChangeLog, EntryKey, Keepable, Parts
from dtf.run.state.lookup_tables import LookupTable
from dtf.run.state.queues import Queue
from dtf.run.state.resources import UpdateLock
from dtf.run.state.staging import Barrier, MapStagingArea, StagingArea
from dtf.run.state.work_queue import WorkQueue
from dtf.run.value_types import Array
from dtf.wire import errors

__all__ = ["KEPT_KINDS", "DurableObjects", "ObjectKey"]

KEPT_KINDS: tuple[type, ...] = (Accumulator, Barrier, LookupTable, MapStagingArea, Queue, StagingArea, WorkQueue)

ObjectKey: TypeAlias = tuple[str, str, str]
"""Container, class and name."""
_Words: TypeAlias = dict[str, list[list[object]]]
_Change: TypeAlias = "list[object]"


class _Log(ChangeLog):
    """The changes of one object in the transaction that is open. `touch` refuses a change outside of one."""

    __slots__ = ("_touch", "changes", "key", "values")

    is_kept = True

    def __init__(self, key: ObjectKey, touch: Callable[[_Log], None]) -> None:
        self.key = key
        self.changes: list[tuple[str, EntryKey, EntryKey | Parts]] = []
        self._touch = touch

    def put(self, key: EntryKey, parts: Parts) -> None:
        self._touch(self)
        self.changes.append(("p", key, parts))

    def remove(self, key: EntryKey) -> None:
        self._touch(self)
        self.changes.append(("r", key, ""))

    def move(self, key: EntryKey, to: EntryKey) -> None:
        self._touch(self)
        self.changes.append(("m", key, to))

    def clear(self) -> None:
        self._touch(self)
        self.changes = [("c", "", "")]


class DurableObjects:
    """The objects of one task. The task's update lock guards them."""

    def __init__(self, lock: UpdateLock, check: Callable[[str], None]) -> None:
        """check(name): raises where the object of that name must not change now."""
        self._guard = _Guard(lock)
        self._check = check
        self._stored: dict[ObjectKey, dict[EntryKey, list[Array]]] = {}
        self._live: dict[ObjectKey, Keepable] = {}
        self._keys: dict[int, ObjectKey] = {}
        self._changed: dict[_Log, None] = {}
        self._removed: list[ObjectKey] = []

    @property
    def has_changes(self) -> bool:
        """Whether the next record has something to say of objects."""
        return bool(self._changed or self._removed)

    def adopt(self, key: ObjectKey, made: Keepable) -> None:
        """Keeps a new object from now on, and gives it the state that the records have of it."""
        stored = self._stored.get(key)
        if stored is not None:
            made.fill(stored)
        made.keep(_Log(key, self._touch), self._guard)
        self._keys[id(made)] = key
        self._live[key] = made
        self._stored.pop(key, None)  # last: a record of everything may be made at the same time

    def forget(self, made: object) -> None:
        """The object is gone. Ignores one that is not kept."""
        key = self._keys.pop(id(made), None)
        if key is not None:
            del self._live[key]
            self._changed = {log: None for log in self._changed if log.key != key}
            self._removed.append(key)

    def forget_others(self, left: set[int], containers: set[str]) -> None:
        """The objects of these containers whose id() is not in `left` are gone."""
        for each in [each for key, each in self._live.items() if key[0] in containers and id(each) not in left]:
            self.forget(each)

    def forget_stored(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """As `forget`, of objects that no step has named since the restart."""
        for key in [key for key in self._stored if is_gone(key)]:
            del self._stored[key]
            self._removed.append(key)

    def drop(self, is_gone: Callable[[ObjectKey], bool]) -> None:
        """As `forget` and `forget_stored`, where a record says so by other words."""
        for key in [key for key in self._live if is_gone(key)]:
            self._keys.pop(id(self._live.pop(key)), None)
        for key in [key for key in self._stored if is_gone(key)]:
            del self._stored[key]

    def known(self) -> list[ObjectKey]:
        """All that are kept."""
        return [*self._live, *self._stored]

    # -- writing

    def say(self, words: _Words, values: list[Value]) -> None:
        """Adds what has changed to a record."""
        changed, self._changed = self._changed, {}
        for log in changed:
            changes, log.changes = log.changes, []
            words.setdefault("o", []).append([*log.key, [_said(each, values) for each in changes]])
        removed, self._removed = self._removed, []
        if removed:
            words["y"] = [[*key] for key in removed]

    def say_all(self, words: _Words, values: list[Value]) -> None:
        """Adds all of the state to a record."""
        stored = list(self._stored.items())
        for key, entries in [*stored, *((key, each.entries()) for key, each in list(self._live.items()))]:
            puts: Iterable[_Change] = (_said(("p", name, parts), values) for name, parts in entries.items())
            words.setdefault("o", []).append([*key, [["c"], *puts]])

    # -- reading

    def read(self, words: Mapping[str, Sequence[Sequence[object]]], values: Sequence[Array]) -> None:
        """Takes what a record says."""
        for container, kind, name, changes in words.get("o", ()):
            entries = self._stored.setdefault((str(container), str(kind), str(name)), {})
            for change in changes:  # type: ignore[attr-defined]
                _apply(entries, change, values)
        for container, kind, name in words.get("y", ()):
            self._stored.pop((str(container), str(kind), str(name)), None)

    def _touch(self, log: _Log) -> None:
        self._check(log.key[2])
        self._changed[log] = None


class _Guard(AbstractContextManager[None]):
    """A transaction for changes without a segment: when an operation is cancelled, others go on."""

    def __init__(self, lock: UpdateLock) -> None:
        # Weak: an object that a step still holds must not keep the task's state.
        self._lock: Callable[[], UpdateLock | None] = weakref.ref(lock)

    def __enter__(self) -> None:
        lock = self._lock()
        if lock is not None:
            lock.acquire()

    def __exit__(self, *_: object) -> None:
        lock = self._lock()
        if lock is not None:
            with suppress(errors.OpError):  # the operations that wait for the record get it
                lock.release()


def _said(change: tuple[str, EntryKey, EntryKey | Parts], values: list[Value]) -> _Change:
    kind, key, rest = change
    if kind == "p":
        places = list(range(len(values), len(values) + len(rest)))  # type: ignore[arg-type]
        values += rest  # type: ignore[arg-type]
        return [kind, key, places]
    return [kind, key, rest] if kind == "m" else [kind, key]


def _apply(entries: dict[EntryKey, list[Array]], change: Sequence[object], values: Sequence[Array]) -> None:
    match change:
        case ["p", int() | str() as key, list() as places]:
            entries[key] = [values[place] for place in places]
        case ["r", int() | str() as key]:
            entries.pop(key, None)
        case ["m", int() | str() as key, int() | str() as to]:
            entries[to] = entries.pop(key)
        case _:
            entries.clear()
