"""Shapes (messages.py) of dataclasses, from their annotations: so a value that JSON brings back is what its class says.

Each class is looked at once. A field with a default may be missing, as in what an earlier version has written.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from dtfctl import messages
from dtfctl.messages import Shape

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
