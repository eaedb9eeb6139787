"""tensorflow.python.framework.traceable_stack: a stack whose objects know where they were pushed."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["TraceableObject", "TraceableStack"]


class TraceableObject:
    """An object with the file and the line where it was made.

    Attributes:
      obj: the object.
      filename: the file; None until known.
      lineno: the line; None until known.
    """

    SUCCESS, HEURISTIC_USED, FAILURE = range(3)

    def __init__(self, obj: Any, filename: str | None = None, lineno: int | None = None) -> None:
        self.obj = obj
        self.filename = filename
        self.lineno = lineno

    def set_filename_and_line_from_caller(self, offset: int = 0) -> int:
        """Takes the place of the caller, `offset` calls above this one; of the outermost call if there are fewer.

        Returns:
          SUCCESS, HEURISTIC_USED for the outermost call, or FAILURE.
        """
        frame, result = sys._getframe(1), self.SUCCESS
        for _ in range(offset):
            if frame.f_back is None:
                result = self.HEURISTIC_USED
                break
            frame = frame.f_back
        self.filename, self.lineno = frame.f_code.co_filename, frame.f_lineno
        return result

    def copy_metadata(self) -> TraceableObject:
        """The same place without the object."""
        return TraceableObject(None, self.filename, self.lineno)


class TraceableStack:
    """A stack of TraceableObjects."""

    def __init__(self, existing_stack: list[TraceableObject] | None = None) -> None:
        self._stack = list(existing_stack) if existing_stack else []

    def push_obj(self, obj: Any, offset: int = 0) -> int:
        """Adds an object with the place of the caller, `offset` calls above this one."""
        entry = TraceableObject(obj)
        self._stack.append(entry)
        return entry.set_filename_and_line_from_caller(offset + 1)

    def pop_obj(self) -> Any:
        """Removes the last object and returns it."""
        return self._stack.pop().obj

    def peek_top_obj(self) -> Any:
        """The last object."""
        return self._stack[-1].obj

    def peek_objs(self) -> list[Any]:
        """The objects, the last one first."""
        return [each.obj for each in reversed(self._stack)]

    def peek_traceable_objs(self) -> list[TraceableObject]:
        """The entries, the last one first."""
        return list(reversed(self._stack))

    def copy(self) -> TraceableStack:
        """Another stack of the same entries."""
        return TraceableStack(self._stack)

    def __len__(self) -> int:
        return len(self._stack)
