"""The Python traceback at the end of a task's log: what a failure that repeats itself is recognised by."""

from __future__ import annotations

import os
import re

TAIL_BYTES = 1 << 16
TEXT_MAX = 4000

_BEGIN = "Traceback (most recent call last):"
_LAST = re.compile(r"[A-Za-z_][\w.]*(: .*)?$")
_OF_INTERPRETER = re.compile(
    r"\S*python[\d.]*: (Error while finding|No module named|can't (open file|find '__main__')).*"
)


def traceback_of(log: str) -> str:
    """The last traceback in the log, "" without one. Addresses of objects are left out: they always differ."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL_BYTES))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    return re.sub(r"0x[0-9a-fA-F]+", "0x", "\n".join(last_traceback(lines)))[-TEXT_MAX:]


def last_traceback(lines: list[str]) -> list[str]:
    """Its lines. What the interpreter says of a program that it cannot read has no heading of its own."""
    begin = next((at for at in reversed(range(len(lines))) if lines[at] == _BEGIN), None)
    if begin is None:
        said = [line for line in lines if _OF_INTERPRETER.fullmatch(line)]
        if said:
            return said[-1:]
        begin = next((at for at in reversed(range(len(lines))) if lines[at].startswith('  File "')), None)
    if begin is None:
        return []
    for at in range(begin + 1, len(lines)):
        if lines[at] and not lines[at][0].isspace() and _LAST.match(lines[at]):
            return lines[begin : at + 1]
    return []
