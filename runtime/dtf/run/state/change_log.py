"""ChangeLog: the changes of an object whose state outlives its process, as its owner reports them.

Owns the words in which objects describe their state: entries, each a key and a few arrays, in order. A queue has one
entry for each element, a table one for each batch of keys. An object reports each change of its entries when it makes
it, under its own lock. A record then holds what was added or removed, and not all of a large object.

Does not know records (`durability.durable_objects`). An object of a task without durability has the log `NOT_KEPT`,
which forgets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias

from dtf.run.value_types import Array

__all__ = ["NOT_KEPT", "ChangeLog", "Entries", "EntryKey", "Keepable", "Parts"]

EntryKey: TypeAlias = int | str
Parts: TypeAlias = Sequence[Array]
Entries: TypeAlias = Mapping[EntryKey, Parts]


class ChangeLog:
    """Takes changes and forgets them."""

    __slots__ = ()

    is_kept = False

    def put(self, key: EntryKey, parts: Parts) -> None:
        """The entry `key` now has these arrays, which nobody modifies before the transaction ends. A new key is last
        in the order; a known one keeps its place.
        """

    def remove(self, key: EntryKey) -> None:
        """The entry `key` is gone."""

    def move(self, key: EntryKey, to: EntryKey) -> None:
        """The arrays of the entry `key` now are those of `to`, and `key` is gone."""

    def clear(self) -> None:
        """All entries are gone."""


NOT_KEPT = ChangeLog()


class Keepable(Protocol):
    """An object whose state can outlive its process."""

    def keep(self, log: ChangeLog, guard: AbstractContextManager[object]) -> None:
        """Reports all changes from now on. `guard` is held during changes that no operation of a step makes, such as
        those after an operation was cancelled.
        """

    def entries(self) -> Entries:
        """All of the state."""

    def fill(self, entries: Entries) -> None:
        """Gives a new object this state. Called before `keep`."""
