"""Changes to good examples, each by a `random.Random`: of bytes, of protobuf messages, of texts and trees."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

NUMBERS = (0, 1, 2, 7, 8, 127, 128, 255, 256, 32767, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40,
           (1 << 63) - 1, -1, -2, -128, -(1 << 31), -(1 << 63))  # fmt: skip
WORDS = ("", " ", "\n", "a", ":", "/", "^", "a:0", "^a", "\x00", "é", "\ud7ff", "a" * 300, "{", "}", "${A}", "..",
         "%s", "0", "-1", "1e999", "nan", "true", "null", "[", "]", "/job:ps/task:0", "../../x", "~", "*", "&a",
         "<<")  # fmt: skip


def of_bytes(chance: random.Random, data: bytes, others: Sequence[bytes] = ()) -> bytes:
    """A few changes: bits, bytes, numbers of 1 to 8 bytes, pieces removed, repeated, or taken from others."""
    result = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        size = len(result)
        at = chance.randrange(size + 1)
        kind = chance.randrange(8)
        if kind == 0 and size:
            result[chance.randrange(size)] ^= 1 << chance.randrange(8)
        elif kind == 1 and size:
            result[chance.randrange(size)] = chance.randrange(256)
        elif kind == 2:
            width = chance.choice((1, 2, 4, 8))
            number = chance.choice(NUMBERS) & ((1 << 8 * width) - 1)
            result[at : at + width] = number.to_bytes(width, chance.choice(("little", "big")))
        elif kind == 3:
            del result[at : at + chance.choice((1, 2, 4, 16, 64, size))]
        elif kind == 4:
            result[at:at] = result[at : at + chance.choice((1, 4, 16, 64))] * chance.choice((1, 2, 50))
        elif kind == 5 and others:
            other = chance.choice(others)
            begin = chance.randrange(len(other) + 1)
            result[at : at + chance.randrange(32)] = other[begin : begin + chance.randrange(64)]
        elif kind == 6:
            result[at:at] = bytes(chance.randrange(256) for _ in range(chance.choice((1, 4, 16))))
        elif kind == 7:
            del result[at:]
    return bytes(result)


def of_message(chance: random.Random, message: Any, others: Sequence[Any] = (), changes: int = 0) -> None:
    """Changes fields of a message, wherever they are in it, and now and then takes parts of another of its kind."""
    for _ in range(changes or chance.choice((1, 1, 2, 3))):
        _change_one(chance, chance.choice(_parts(message)), others)


def _parts(message: Any) -> list[Any]:
    """The message and all messages within it."""
    found = [message]
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                # A map has no order of its own.
                for key in sorted(value):
                    found += _parts(value[key])
        elif _is_repeated(field):
            for inner in value:
                found += _parts(inner)
        else:
            found += _parts(value)
    return found


def _change_one(chance: random.Random, message: Any, others: Sequence[Any]) -> None:
    fields = [field for field, _ in message.ListFields()]
    known = list(message.DESCRIPTOR.fields)
    if not known:
        return
    field = chance.choice(fields if fields and chance.random() < 0.8 else known)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        _change_map(chance, field, getattr(message, field.name))
    elif _is_repeated(field):
        _change_list(chance, field, getattr(message, field.name))
    elif field.message_type is not None:
        inner = getattr(message, field.name)
        if chance.random() < 0.5:
            message.ClearField(field.name)
        else:
            _change_one(chance, inner, others)
            inner.SetInParent()
    else:
        setattr(message, field.name, _scalar(chance, field, getattr(message, field.name)))


def _change_list(chance: random.Random, field: Any, values: Any) -> None:
    kind = chance.randrange(5)
    if kind == 0 and len(values):
        del values[chance.randrange(len(values))]
    elif kind == 1 and len(values):
        copies = [values[chance.randrange(len(values))] for _ in range(chance.choice((1, 1, 30)))]
        values.extend(copies)
    elif kind == 2 and len(values) > 1:
        order = list(values)
        chance.shuffle(order)
        copied = [
            type(each).FromString(each.SerializeToString(deterministic=True)) if field.message_type else each
            for each in order
        ]
        del values[:]
        values.extend(copied)
    elif field.message_type is not None:
        inner = values[chance.randrange(len(values))] if len(values) and kind == 3 else values.add()
        _change_one(chance, inner, ())
    elif len(values) and kind == 3:
        at = chance.randrange(len(values))
        values[at] = _scalar(chance, field, values[at])
    else:
        values.append(_scalar(chance, field, values[0] if len(values) else _zero(field)))


def _change_map(chance: random.Random, field: Any, values: Any) -> None:
    key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    keys = sorted(values)
    if keys and chance.random() < 0.4:
        del values[chance.choice(keys)]
        return
    name = (
        chance.choice(keys) if keys and chance.random() < 0.7 else _scalar(chance, key, keys[0] if keys else _zero(key))
    )
    if value.message_type is not None:
        _change_one(chance, values[name], ())
    else:
        values[name] = _scalar(chance, value, values[name] if name in values else _zero(value))


def _is_repeated(field: Any) -> bool:
    repeated = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if repeated is None else bool(repeated)


def _zero(field: Any) -> Any:
    kind = field.cpp_type
    return {field.CPPTYPE_STRING: b"" if field.type == field.TYPE_BYTES else "", field.CPPTYPE_BOOL: False}.get(kind, 0)


def _scalar(chance: random.Random, field: Any, now: Any) -> Any:
    kind = field.cpp_type
    if kind == field.CPPTYPE_STRING:
        if field.type == field.TYPE_BYTES:
            return of_bytes(chance, now) if chance.random() < 0.7 else chance.choice(WORDS).encode("utf-8")
        return of_text(chance, now) if chance.random() < 0.5 else chance.choice(WORDS)
    if kind == field.CPPTYPE_BOOL:
        return not now
    if kind in (field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE):
        return chance.choice((0.0, -1.0, 1e30, float("nan"), float("inf"), now * 2))
    if kind == field.CPPTYPE_ENUM:
        return chance.choice((*field.enum_type.values_by_number, 0, 1, 99, 1000))
    number = chance.choice((*NUMBERS, now + 1, now - 1, now * 2, chance.randrange(20)))
    bits = 32 if kind in (field.CPPTYPE_INT32, field.CPPTYPE_UINT32) else 64
    if kind in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
        return number % (1 << bits)
    return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def of_text(chance: random.Random, text: str) -> str:
    """A few changes of characters, words and lines."""
    for _ in range(chance.choice((1, 1, 2, 4))):
        at, end = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
        end = min(end, at + chance.choice((1, 2, 10, 100)))
        kind = chance.randrange(5)
        if kind == 0:
            text = text[:at] + chance.choice(WORDS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[end:]
        elif kind == 2:
            text = text[:at] + text[at:end] * chance.choice((2, 3, 40)) + text[end:]
        elif kind == 3:
            text = text[:at] + str(chance.choice(NUMBERS)) + text[end:]
        else:
            lines = text.split("\n")
            chance.shuffle(lines)
            text = "\n".join(lines)
    return text


def of_tree(chance: random.Random, value: Any) -> Any:
    """A JSON value with one part changed: removed, repeated, or of another type."""
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(sorted(value))
        kind = chance.randrange(6)
        if kind == 0:
            return {name: each for name, each in value.items() if name != key}
        if kind == 1:
            return {**value, chance.choice(WORDS): value[key]}
        return {**value, key: of_tree(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        kind = chance.randrange(6)
        if kind == 0:
            return value[:at] + value[at + 1 :]
        if kind == 1:
            return value * chance.choice((2, 20))
        return [*value[:at], of_tree(chance, value[at]), *value[at + 1 :]]
    if isinstance(value, str) and chance.random() < 0.5:
        return of_text(chance, value)
    deep: Any = 1
    for _ in range(chance.choice((1, 50, 5000))):
        deep = [deep]
    return chance.choice((None, True, 1.5, float("nan"), {}, [], deep, *NUMBERS, *WORDS))
