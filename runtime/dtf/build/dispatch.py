"""Which functions accept values made of several tensors, ragged ones above all, beside plain tensors.

Owns the table of handlers. A function marked with `dispatched` calls the handler of its name for arguments with a
`Composite` among them; `build.ops.ragged_functions` fills the table when the first ragged name of a program is used.
Without such values the mark costs one test of a flag.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from dtf.build.composite import Composite

Function = TypeVar("Function", bound=Callable[..., Any])

#: The name of a function -> what it does with composite values: handler(function, *arguments, **named).
HANDLERS: dict[str, Callable[..., Any]] = {}


def dispatched(function: Function) -> Function:
    """`function`, whose handler in HANDLERS is called for composite arguments."""

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if HANDLERS and has_composite((*arguments, *named.values())):
            handler = HANDLERS.get(function.__name__)
            if handler is not None:
                result = handler(function, *arguments, **named)
                if result is not NotImplemented:
                    return result
        return function(*arguments, **named)

    return call  # type: ignore[return-value]


def has_composite(values: Iterable[Any]) -> bool:
    """Whether one of the values, or of the elements of lists among them, is a Composite."""
    return any(
        isinstance(each, Composite) or (isinstance(each, (list, tuple)) and has_composite(each)) for each in values
    )
