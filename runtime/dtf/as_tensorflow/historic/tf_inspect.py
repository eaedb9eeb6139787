"""tensorflow.python.util.tf_inspect: Python's inspect, with the argument lists of Python 2."""

from __future__ import annotations

import inspect as _inspect
from collections.abc import Callable
from inspect import (
    currentframe,
    getcallargs,
    getdoc,
    getfile,
    getfullargspec,
    getmembers,
    getmodule,
    getmro,
    getsource,
    isbuiltin,
    isclass,
    isfunction,
    ismethod,
    ismodule,
    isroutine,
    stack,
)
from typing import Any, NamedTuple

__all__ = [
    "ArgSpec", "currentframe", "fn_args", "getargspec", "getcallargs", "getdoc", "getfile", "getfullargspec",
    "getmembers", "getmodule", "getmro", "getsource", "has_kwargs", "isbuiltin", "isclass", "isfunction", "ismethod",
    "ismodule", "isroutine", "stack",
]  # fmt: skip


class ArgSpec(NamedTuple):
    """The result of `getargspec`."""

    args: list[str]
    varargs: str | None
    keywords: str | None
    defaults: tuple[Any, ...] | None


def getargspec(obj: Any) -> ArgSpec:
    """The positional arguments of a function."""
    found = getfullargspec(obj)
    return ArgSpec(found.args, found.varargs, found.varkw, found.defaults)


def fn_args(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments, self aside."""
    return tuple(_inspect.signature(fn).parameters)


def has_kwargs(fn: Callable[..., Any]) -> bool:
    """Whether a function takes **kwargs."""
    return any(each.kind is each.VAR_KEYWORD for each in _inspect.signature(fn).parameters.values())
