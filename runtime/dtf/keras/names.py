"""The names of tf.keras functions and classes: one table lookup with an error that lists near names."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any


def meant(kind: str, identifier: Any, table: Mapping[str, Any]) -> Any:
    """The table's entry for a name; a callable unchanged.

    Raises:
      ValueError: the name is unknown.
      TypeError: it is neither a name nor callable.
    """
    if isinstance(identifier, str):
        if identifier not in table:
            near = difflib.get_close_matches(identifier, table) or sorted(table)
            raise ValueError(f"Unknown {kind} {identifier!r}. Did you mean one of {near}?")
        return table[identifier]
    if not callable(identifier):
        raise TypeError(f"A {kind} must be a name or a function, not {identifier!r}")
    return identifier
