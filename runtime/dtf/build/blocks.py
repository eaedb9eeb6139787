"""The device and colocation blocks around a node, with the places in the program that opened them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

__all__ = ["Block", "block_here"]


@dataclass(frozen=True)
class Block:
    """A block.

    Attributes:
      obj: the device's name, or a function's name with its place; None for a colocation.
      filename: the file of the user's program that opened the block; "" if no frame is the user's.
      lineno: the line.
    """

    obj: str | None
    filename: str
    lineno: int


def block_here(obj: Any) -> Block:
    """A block that the innermost frame outside of this package opens now."""
    text: str | None
    if callable(obj):
        code = getattr(obj, "__code__", None)
        place = f"{code.co_filename}, {code.co_firstlineno}" if code is not None else "unknown, 0"
        text = f"{getattr(obj, '__name__', type(obj).__name__)}<{place}>"
    elif obj is None or isinstance(obj, str):
        text = obj
    else:
        text = str(obj.to_string() if hasattr(obj, "to_string") else obj)
    frame = sys._getframe(1)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module != "contextlib" and module.partition(".")[0] != "dtf":
            return Block(text, frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return Block(text, "", 0)
