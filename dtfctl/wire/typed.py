"""Dataclasses as JSON: the shape (messages.py) of a class, and the value of a document that has this shape.

Both follow from the annotations of the class, each class is looked at once. A field with a default may be missing, as
in a document that an earlier version has written.

    document = checked(line, shape_of(Run))
    run = from_document(Run, document)
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from dtfctl.wire import messages
from dtfctl.wire.messages import Shape

Value = TypeVar("Value")
_NUMBER_KEY = messages.text(9, messages.DIGITS)
_PLAIN: dict[Any, Shape] = {
    str: messages.system_text(),
    int: messages.whole(),
    float: messages.number(),
    bool: messages.flag,
    type(None): messages.nothing,
    Any: messages.anything,
}


@cache
def shape_of(kind: Any) -> Shape:
    """The shape of what `json.dumps(asdict(value))` makes of a value of this type."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        required: dict[str, Shape] = {}
        optional: dict[str, Shape] = {}
        for field in fields(kind):
            has_default = field.default is not MISSING or field.default_factory is not MISSING
            (optional if has_default else required)[field.name] = shape_of(hints[field.name])
        return messages.fields(required, optional)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        kinds = [argument for argument in arguments if argument is not type(None)]
        shape = messages.either(*map(shape_of, kinds)) if len(kinds) > 1 else shape_of(kinds[0])
        return shape if len(kinds) == len(arguments) else messages.maybe(shape)
    if origin is tuple and arguments[-1] is Ellipsis:
        return messages.each(shape_of(arguments[0]))
    if origin is tuple:
        return messages.row(*map(shape_of, arguments))
    if origin in (dict, Mapping):
        return messages.table(shape_of(arguments[1]), _NUMBER_KEY if arguments[0] is int else None)
    raise AssertionError(f"no shape is known for {kind}")


def from_document(kind: type[Value], document: Any) -> Value:
    """The value of type `kind` that a document stands for; the document has the shape `shape_of(kind)`."""
    make: Callable[[Any], Value] = _maker(kind)  # type: ignore[arg-type]  # each class is hashable
    return make(document)


@cache
def _maker(kind: Any) -> Callable[[Any], Any]:
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        makers = {field.name: _maker(hints[field.name]) for field in fields(kind)}
        build = cast(Callable[..., Any], kind)
        return lambda document: build(**{name: makers[name](value) for name, value in document.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _maker_of_union([argument for argument in arguments if argument is not type(None)])
    if origin is tuple and arguments[-1] is Ellipsis:
        item = _maker(arguments[0])
        return lambda items: tuple(map(item, items))
    if origin is tuple:
        items = [_maker(argument) for argument in arguments]
        return lambda row: tuple(make(value) for make, value in zip(items, row, strict=True))
    if origin in (dict, Mapping):
        key, item = arguments[0], _maker(arguments[1])
        return lambda table: {key(name): item(value) for name, value in table.items()}
    return lambda value: value


def _maker_of_union(kinds: list[Any]) -> Callable[[Any], Any]:
    """JSON tells lists and objects from plain values, so that a union may have one kind of each."""
    lists = [kind for kind in kinds if get_origin(kind) is tuple]
    tables = [kind for kind in kinds if is_dataclass(kind) or get_origin(kind) in (dict, Mapping)]
    assert len(lists) <= 1 and len(tables) <= 1, f"JSON cannot distinguish {kinds}"
    of_list = _maker(lists[0]) if lists else None
    of_table = _maker(tables[0]) if tables else None

    def make(value: Any) -> Any:
        if of_list is not None and isinstance(value, list):
            return of_list(value)
        if of_table is not None and isinstance(value, dict):
            return of_table(value)
        return value

    return make
