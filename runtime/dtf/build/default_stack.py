"""The default graph and the default session of each thread, as stacks.

Owns both stacks and the check that blocks are left in reverse order of entry. `default_graph` defines the value when
the stack of graphs is empty.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class DefaultStack:
    """Objects made the default by `with` blocks, one stack per thread."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._local = threading.local()

    def top(self) -> Any:
        """The innermost default object of this thread, or None."""
        stack = self._stack()
        return stack[-1] if stack else None

    def entries(self) -> list[Any]:
        """The default objects of this thread, the innermost last."""
        return list(self._stack())

    def is_empty(self) -> bool:
        """Whether this thread is outside every block."""
        return not self._stack()

    def clear(self) -> None:
        """Leaves all blocks of this thread."""
        self._stack().clear()

    @contextmanager
    def using(self, value: Any) -> Iterator[Any]:
        """A context in which `value` is this thread's default.

        Raises:
          AssertionError: the block is left while a block that was entered later is still open.
        """
        stack = self._stack()
        stack.append(value)
        try:
            yield value
        finally:
            if not stack or stack[-1] is not value:
                if value in stack:
                    stack.remove(value)
                raise AssertionError(
                    f"Nesting violated: the default {self._kind} that is left, {value}, is not the innermost one."
                )
            stack.pop()

    def _stack(self) -> list[Any]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack


default_graph_stack = DefaultStack("graph")

#: Sessions made the default with `with session:` or `session.as_default()`.
default_session_stack = DefaultStack("session")
