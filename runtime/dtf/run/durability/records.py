"""Records: the bytes of one transaction, and what they say of values and of operations that have run.

    record      bytes of the words u32, words as JSON, padding, values (`tensor_frames`)

Owns the layout. Does not know all words (`durable_resources`). Most transactions are those of a training step: they
update the same variables each time, and their words are the same but for a few numbers. `UpdateRecords` remembers them.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dtf.run.durability.durable_streams import Position
from dtf.run.durability.durable_variable import DurableVariable
from dtf.run.durability.once import Drawn
from dtf.run.interfaces import Value
from dtf.run.state.resources import Variable
from dtf.run.value_types import Array
from dtf.wire import dtypes, tensor_frames

__all__ = ["Ran", "ReadWords", "UpdateRecords", "Words", "packed_record", "say_steps", "say_value", "unpacked_record"]

Words = dict[str, list[list[object]]]
ReadWords = Any
"""Words as JSON gives them."""
Ran = tuple[tuple[str, int], int, str, Value]
"""An operation that has run: session and slot of its step, the step's number, the node, the result."""

_LENGTH = struct.Struct("<I")
_ALIGNMENT = 16
_NUMBER = "\0"
"""Stands in a template for a number that differs from record to record."""
_TEMPLATES_MAX = 256
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def packed_record(words: Words, values: Sequence[Value]) -> bytes:
    """The bytes of a record."""
    return _packed(_encode(words).encode(), values)


def unpacked_record(text: bytes) -> tuple[ReadWords, list[Array]]:
    """The words and the values of a record. The values do not refer to it."""
    (size,) = _LENGTH.unpack_from(text)
    words = json.loads(text[4 : 4 + size])
    at = 4 + size + -(4 + size) % _ALIGNMENT
    return words, [np.array(each) if isinstance(each, np.ndarray) else each for each in tensor_frames.unpack(text, at)]


def say_value(variable: DurableVariable, words: Words, values: list[Value], is_all: bool) -> None:
    """Says which value an initialized variable has: `i` or `b`. The rows of a block that have changed are in it, and
    only `is_all` names it again.
    """
    block = variable.block
    if block is None:
        words.setdefault("i", []).append([variable.number, len(values)])
        values.append(variable.read())
    elif is_all or block is not variable.kept:
        enum = dtypes.as_dtype(block.array.dtype).as_datatype_enum
        words.setdefault("b", []).append([variable.number, block.number, enum, list(block.array.shape)])


def say_steps(ran: Iterable[Ran], words: Words, values: list[Value]) -> None:
    """Says which operations have run, with their results: `s`."""
    by_step: dict[tuple[str, int, int], list[list[object]]] = {}
    for (session, slot), number, name, value in ran:
        place: int | list[int] | dict[str, Position] = -1
        if isinstance(value, Drawn):
            place = {"at": value.at}
        elif isinstance(value, tuple | list):
            place = list(range(len(values), len(values) + len(value)))
            values += value
        elif value is not None and not isinstance(value, Variable):
            place = len(values)
            values.append(value)
        by_step.setdefault((session, slot, number), []).append([name, place])
    if by_step:
        words["s"] = [[*step, names] for step, names in by_step.items()]


class UpdateRecords:
    """Writes transactions that update known variables in one step, by templates of their words."""

    def __init__(self) -> None:
        self._templates: dict[tuple[object, ...], str] = {}

    def text(self, changed: Sequence[DurableVariable], ran: Sequence[Ran]) -> bytes | None:
        """The record that says this; None: it is no such transaction."""
        key: list[object] = []
        numbers: list[int] = []
        values: list[Value] = []
        for variable in changed:
            described = variable.described
            if (
                described is None
                or described[0] is not variable.dtype
                or described[1] != variable.declared_shape
                or not variable.is_initialized
            ):
                return None
            block = variable.block
            if block is None:
                key.append(variable.number)
                values.append(variable.read())
            elif block is variable.kept:
                key.append(-variable.number)
            else:
                key.append((variable.number, block.array.dtype, block.array.shape))
                numbers.append(block.number)
        if ran:
            step, number = ran[0][:2]
            key.append(step)
            numbers.append(number)
            for its_step, its_number, name, value in ran:
                if its_number != number or its_step != step or isinstance(value, tuple | list | Drawn):
                    return None
                if value is None or isinstance(value, Variable):
                    key.append(name)
                else:
                    key.append((name,))
                    values.append(value)
        known = tuple(key)
        template = self._templates.get(known)
        if template is None:
            template = _template(changed, ran, len(numbers))
            if template is None:
                return None
            if len(self._templates) >= _TEMPLATES_MAX:
                self._templates.clear()
            self._templates[known] = template
        return _packed((template % tuple(numbers)).encode(), values)


def _template(changed: Sequence[DurableVariable], ran: Sequence[Ran], count: int) -> str | None:
    words: Words = {}
    values: list[Value] = []
    for variable in changed:
        say_value(variable, words, values, False)
    say_steps(ran, words, values)
    for said in words.get("b", ()):
        said[1] = _NUMBER
    for said in words.get("s", ()):
        said[2] = _NUMBER
    pieces = _encode(words).replace("%", "%%").split(_encode(_NUMBER))
    return "%d".join(pieces) if len(pieces) == count + 1 else None  # a name may look like the place of a number


def _packed(head: bytes, values: Sequence[Value]) -> bytes:
    size = 4 + len(head)
    return b"".join((_LENGTH.pack(len(head)), head, bytes(-size % _ALIGNMENT), *tensor_frames.pack(values)))
