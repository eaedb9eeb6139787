"""The Python functions of this process that PyFunc nodes call, by token.

Owns the registry; both halves need it, because a graph can carry only the token. A function lives as long as the graph
that was given to `register`. A node whose token was made in another process cannot run here.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable
from typing import Any

from dtf.wire import forks

__all__ = ["find", "register"]

Function = Callable[..., Any]

_lock = threading.Lock()


def _begin_anew() -> None:
    global _lock
    _lock = threading.Lock()


forks.in_child(_begin_anew)
_numbers = itertools.count()
_functions: weakref.WeakValueDictionary[str, _Kept] = weakref.WeakValueDictionary()


class _Kept:
    """Holds a function; plain functions and builtins cannot all be referred to weakly."""

    def __init__(self, function: Function) -> None:
        self.function = function


def register(function: Function, graph: Any) -> str:
    """Keeps `function` as long as `graph` lives; returns its token."""
    with _lock:
        token = f"pyfunc_{next(_numbers)}"
        kept = _Kept(function)
        _functions[token] = kept
        if not hasattr(graph, "_py_functions"):
            graph._py_functions = []
        graph._py_functions.append(kept)
    return token


def find(token: str) -> Function | None:
    """The function of that token, or None."""
    kept = _functions.get(token)
    return None if kept is None else kept.function
