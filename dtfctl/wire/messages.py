"""What one process of dtfctl may say to another: shapes of values, and the only way from bytes to a checked message.

    TASKS = fields({"tasks": each(text()), "why": text()}, {"id": text()})
    request = message(line, "do", {"stop": TASKS, "start": TASKS})      # raises BadMessage, in words

A shape is a function that looks at a value and raises BadMessage, which names the place, when the value is not what
the receiver expects. Whoever reads a line, a record or a row that another process has written declares its shape and
reads it through here, so that a wrong type, a missing key, NaN, half a line, bad UTF-8 or a thousand brackets costs
one refused message and never a traceback. Imports only Python's standard library: the keeper and the agent on other
machines use it too.

The protocols: control's in control/protocol.py, the keeper's in launchers/keeper/protocol.py, the agent's in
launchers/agent/protocol.py. Shapes of dataclasses, for the plan and the store, come from typed.py.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import time
from collections.abc import Callable, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:  # the keeper starts without the time that `typing` takes
    from typing import Any, NoReturn

Shape = Callable[[object, str], None]
"""Looks at a value, found at that place of its message; raises BadMessage."""

NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[0-9]{1,9})?", re.ASCII)
"""Of clusters, jobs, hosts and tasks: each becomes part of a file's name somewhere."""

DIGITS = re.compile(r"[0-9]+", re.ASCII)
DIGITS_MAX = 400
WHOLE_MAX = (1 << 63) - 1
ITEMS_MAX = 1_000_000
TEXT_MAX = 16 << 20
WORDS_MAX = 1 << 16
"""Of reasons and errors, in characters."""

SHOWN_MAX = 40


class BadMessage(ValueError):
    """Bytes or a value that another process sent, and that are not what the receiver expects; where and why."""


def message(line: str | bytes | bytearray, key: str, shapes: Mapping[str, Shape]) -> Any:
    """The message in `line`: an object whose `key` names one of the `shapes`, and that has that shape.

    Raises:
      BadMessage: it is anything else.
    """
    document = value_of(line)
    if not isinstance(document, dict) or not isinstance(document.get(key), str):
        raise BadMessage(f'it must be an object with the key "{key}"')
    kind = document[key]
    if kind not in shapes:
        raise BadMessage(f'"{key}" is {shown(kind)}; it must be one of {", ".join(shapes)}')
    content = {name: value for name, value in document.items() if name != key}
    try:
        shapes[kind](content, "")
    except BadMessage as error:
        raise BadMessage(f"{kind}: {error}") from None
    return document


def checked(line: str | bytes | bytearray, shape: Shape) -> Any:
    """The value in `line`, which has this shape. Raises BadMessage."""
    value = value_of(line)
    shape(value, "")
    return value


def value_of(line: str | bytes | bytearray) -> Any:
    """What the JSON text `line` (bytes in UTF-8, or text) says. Raises BadMessage, whatever the bytes are."""
    try:
        return _DECODER.decode(line.decode() if isinstance(line, bytes | bytearray) else line)
    except UnicodeDecodeError as error:
        raise BadMessage(f"its byte {error.start} is not UTF-8") from None
    except RecursionError:
        raise BadMessage("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise BadMessage(f"it is not JSON: {error.msg} at character {error.pos}") from None
    except (TypeError, AttributeError):
        raise BadMessage(f"it is not text but {shown(line)}") from None


def shown(value: object) -> str:
    """A value in short, as ASCII, for an error."""
    if isinstance(value, dict | list | tuple):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    words = json.dumps(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return words if len(words) <= SHOWN_MAX else f"{words[: SHOWN_MAX - 3]}..."


class Complaints:
    """One line in the log for each bad message, and no more than `LINES_MAX` a minute; of the others the number."""

    LINES_MAX = 20
    PERIOD_S = 60.0

    def __init__(self, clock: Callable[[], float] = time.monotonic, write: Callable[[str], None] | None = None) -> None:
        self._clock = clock
        self._write = write or _to_log
        self._since = clock()
        self._lines = 0
        self._untold = 0

    def tell(self, words: str) -> None:
        now = self._clock()
        if now >= self._since + self.PERIOD_S:
            if self._untold:
                self._write(f"{self._untold} more messages were refused in the meantime")
            self._since, self._lines, self._untold = now, 0, 0
        if self._lines >= self.LINES_MAX:
            self._untold += 1
            return
        self._lines += 1
        self._write(" ".join(words.split())[:WORDS_MAX])


def _to_log(line: str) -> None:
    """The log may lie on a full disk; then nobody is the worse for it."""
    with contextlib.suppress(OSError):
        os.write(2, f"{line}\n".encode(errors="backslashreplace"))


# -- shapes


def text(most: int = WORDS_MAX, pattern: re.Pattern[str] | None = None, is_any: bool = False) -> Shape:
    """Text of at most `most` characters that can be written as UTF-8; only where it `is_any` text it may have a NUL."""

    def look(value: object, where: str) -> None:
        if not isinstance(value, str):
            raise _wrong(where, "text", value)
        if len(value) > most:
            raise BadMessage(f"{_at(where)} has {len(value)} characters; at most {most} are allowed")
        if ("\0" in value and not is_any) or (not value.isascii() and not _is_utf8(value)):
            raise BadMessage(f"{_at(where)} contains characters that are not allowed in text: {shown(value)}")
        if pattern is not None and not pattern.fullmatch(value):
            raise BadMessage(f"{_at(where)} is {shown(value)}, which is not a valid name")

    return look


def name() -> Shape:
    """Of a cluster, job, host or task."""
    return text(300, NAME)


def system_text(most: int = TEXT_MAX) -> Shape:
    """What the system gives and takes (paths, arguments, variables): bytes that are not UTF-8 are surrogates in it."""

    def look(value: object, where: str) -> None:
        if not isinstance(value, str):
            raise _wrong(where, "text", value)
        if len(value) > most:
            raise BadMessage(f"{_at(where)} has {len(value)} characters; at most {most} are allowed")
        if "\0" in value or (not value.isascii() and not _is_utf8(value, "surrogateescape")):
            raise BadMessage(f"{_at(where)} contains characters that the system cannot take: {shown(value)}")

    return look


def whole(least: int = -WHOLE_MAX, most: int = WHOLE_MAX) -> Shape:
    def look(value: object, where: str) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(where, "a whole number", value)
        if not least <= value <= most:
            raise BadMessage(f"{_at(where)} is {shown(value)}; it must lie between {least} and {most}")

    return look


def number(least: float = -1e15, most: float = 1e15) -> Shape:
    def look(value: object, where: str) -> None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _wrong(where, "a number", value)
        if not (least <= value <= most and math.isfinite(value)):
            raise BadMessage(f"{_at(where)} is {shown(value)}; it must lie between {least:g} and {most:g}")

    return look


def flag(value: object, where: str) -> None:
    if not isinstance(value, bool):
        raise _wrong(where, "true or false", value)


def nothing(value: object, where: str) -> None:
    if value is not None:
        raise _wrong(where, "null", value)


def anything(value: object, where: str) -> None:
    """What JSON can say, as value_of has bounded it already."""


def maybe(shape: Shape) -> Shape:
    def look(value: object, where: str) -> None:
        if value is not None:
            shape(value, where)

    return look


def one_of(*values: str) -> Shape:
    def look(value: object, where: str) -> None:
        if not isinstance(value, str) or value not in values:
            raise BadMessage(f"{_at(where)} is {shown(value)}; it must be one of {', '.join(values)}")

    return look


def either(*shapes: Shape) -> Shape:
    """Any of these shapes; the error is that of the last."""

    def look(value: object, where: str) -> None:
        for shape in shapes[:-1]:
            try:
                return shape(value, where)
            except BadMessage:
                continue
        return shapes[-1](value, where)

    return look


def each(shape: Shape, most: int = ITEMS_MAX) -> Shape:
    """A list of values of one shape."""

    def look(value: object, where: str) -> None:
        if not isinstance(value, list | tuple):
            raise _wrong(where, "a list", value)
        if len(value) > most:
            raise BadMessage(f"{_at(where)} has {len(value)} values; at most {most} are allowed")
        for position, item in enumerate(value):
            shape(item, f"{where}[{position}]")

    return look


def row(*shapes: Shape) -> Shape:
    """A list of exactly these."""

    def look(value: object, where: str) -> None:
        if not isinstance(value, list | tuple) or len(value) != len(shapes):
            raise _wrong(where, f"a list of {len(shapes)}", value)
        for position, (shape, item) in enumerate(zip(shapes, value, strict=True)):
            shape(item, f"{where}[{position}]")

    return look


def table(shape: Shape, key: Shape | None = None) -> Shape:
    """An object with any keys, or keys of one shape, and values of one shape."""
    key_shape = key or system_text(WORDS_MAX)

    def look(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        for item_key, item in value.items():
            key_shape(item_key, f"a key of {_at(where)}")
            shape(item, f"{where}.{item_key}" if where else item_key)

    return look


def fields(required: Mapping[str, Shape], optional: Mapping[str, Shape] | None = None, is_open: bool = False) -> Shape:
    """An object with these keys, each of its shape, and no others unless it `is_open`."""
    optional = optional or {}
    known = {**required, **optional}

    def look(value: object, where: str) -> None:
        if not isinstance(value, dict):
            raise _wrong(where, "an object", value)
        for key in required:
            if key not in value:
                raise BadMessage(f'{_at(where)} lacks the key "{key}"' if where else f'the key "{key}" is missing')
        for key, item in value.items():
            if key in known:
                known[key](item, f"{where}.{key}" if where else key)
            elif not is_open:
                raise BadMessage(f"{_at(where)} has the unknown key {shown(key)}")

    return look


def _at(where: str) -> str:
    return where if where.startswith("a key of") else f'"{where}"' if where else "it"


def _wrong(where: str, wanted: str, value: object) -> BadMessage:
    return BadMessage(f"{_at(where)} must be {wanted}, not {shown(value)}")


def _is_utf8(value: str, errors: str = "strict") -> bool:
    try:
        value.encode(errors=errors)
        return True
    except UnicodeEncodeError:
        return False


def _whole(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise BadMessage(f"it has a number of {len(digits)} digits")
    return int(digits)


def _no_number(words: str) -> NoReturn:
    raise BadMessage(f"{words} is not a number")


_DECODER = json.JSONDecoder(parse_int=_whole, parse_constant=_no_number)
