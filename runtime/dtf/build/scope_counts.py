"""How often each variable scope has been opened, so that default names are made unique.

Owns the counts of one thread. Each call takes time in proportion to what it changes, not to the number of scopes.

    counts = ScopeCounts()
    counts.open("net/dense")
    counts.unique("net/dense")       # "net/dense_1"
    counts.close_inside("net")       # names inside count from the start when "net" is opened again
"""

from __future__ import annotations

import re

__all__ = ["ScopeCounts"]

_NUMBER = re.compile(r"_\d+$")


class ScopeCounts:
    """Counts by full name of the scope. Not for several threads."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._inside: dict[str, dict[str, None]] = {}  # by scope, those in it that were opened or hold one
        self._next: dict[str, int] = {}  # by name, the first number that may be free
        self._changes: list[tuple[str, int]] = []  # names with their counts before, while anybody may restore them
        self._marks = 0

    def open(self, name: str) -> None:
        """Counts one more scope of this name."""
        self._set(name, self._counts.get(name, 0) + 1)

    def unique(self, name: str) -> str:
        """The name, or the name with the lowest number behind it that makes it one that is not open."""
        if not self._counts.get(name):
            return name
        number = self._next.get(name, 1)
        while self._counts.get(f"{name}_{number}"):
            number += 1
        self._next[name] = number
        return f"{name}_{number}"

    def close_inside(self, scope: str) -> None:
        """Forgets all scopes inside this one; of "", all."""
        pending = list(self._inside.pop(scope, ()))
        if not scope and self._counts.get(""):
            self._set("", 0)
        while pending:
            name = pending.pop()
            pending.extend(self._inside.pop(name, ()))
            if self._counts.get(name):
                self._set(name, 0)

    def mark(self) -> int:
        """Begins to note changes; give the result to `restore`. Marks are restored in the reverse order."""
        self._marks += 1
        return len(self._changes)

    def restore(self, mark: int) -> None:
        """Undoes all changes since the mark."""
        while len(self._changes) > mark:
            name, count = self._changes.pop()
            self._put(name, count)
        self._marks -= 1

    def _set(self, name: str, count: int) -> None:
        if self._marks:
            self._changes.append((name, self._counts.get(name, 0)))
        self._put(name, count)

    def _put(self, name: str, count: int) -> None:
        if count:
            self._counts[name] = count
            self._join(name)
            return
        self._counts.pop(name, None)
        self._next.pop(name, None)
        self._next.pop(_NUMBER.sub("", name), None)

    def _join(self, name: str) -> None:
        """Enters a name, and the scopes around it, in those that hold them."""
        while name:
            around = name.rpartition("/")[0]
            inside = self._inside.setdefault(around, {})
            if name in inside:
                return
            inside[name] = None
            name = around
