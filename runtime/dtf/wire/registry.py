"""Tables keyed by name: kernels, shape rules, gradients are each one `Table`, filled by decorators.

A duplicate is an error that names both places, an unknown name one that lists near names:

    shape_rules = Table("shape rule")

    @shape_rules("Add", "Sub")
    def broadcast(op): ...

    shape_rules["Ad"]    # UnknownNameError: no shape rule for 'Ad'; did you mean 'Add'?
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

Entry = TypeVar("Entry")


class UnknownNameError(LookupError):
    """A name that a table does not hold; the message lists the nearest ones that it does."""


class Table(Generic[Entry]):
    """A dict from names to entries of one `kind` (the noun of the messages); entries are never replaced."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        self._places: dict[str, str] = {}

    def __call__(self, *names: str) -> Callable[[Entry], Entry]:
        """A decorator that stores the same entry under each of `names`."""
        place = _caller_place()

        def store(entry: Entry) -> Entry:
            for name in names:
                self.add(name, entry, place)
            return entry

        return store

    def add(self, name: str, entry: Entry, place: str | None = None) -> None:
        """Stores `entry`, written at `place` ("file:line"); a second one of a name is a ValueError."""
        here = _code_place(entry) or place or _caller_place()
        if name in self._entries:
            there = self._places[name]
            raise ValueError(f"second {self.kind} for {name!r} at {here}; the first one is at {there}")
        self._entries[name] = entry
        self._places[name] = here

    def place(self, name: str) -> str:
        """Where the entry of `name` was written: "file:line"."""
        self[name]
        return self._places[name]

    def names(self) -> list[str]:
        return sorted(self._entries)

    def get(self, name: str, default: Any = None) -> Any:
        return self._entries.get(name, default)

    def __getitem__(self, name: str) -> Entry:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError(unknown_name_message(self.kind, name, self._entries)) from None

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def unknown_name_message(kind: str, name: str, known: Any) -> str:
    """The words for a `name` that is not among the names `known`, with the nearest ones that are."""
    import difflib  # slow to import, and seldom needed

    near = difflib.get_close_matches(str(name), list(known), n=3)
    hint = f"; did you mean {' or '.join(repr(each) for each in near)}?" if near else ""
    return f"no {kind} for {name!r}{hint}"


def _code_place(entry: object) -> str | None:
    code = getattr(entry, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None


def _caller_place() -> str:
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
