"""Arguments that TensorFlow has renamed: public functions accept the new name and the old one."""

from __future__ import annotations

from typing import Any

__all__ = ["one_of"]


def one_of(name: str, value: Any, other: str, other_value: Any, default: Any = None) -> Any:
    """The value of an argument that has the names `name` and `other`; `default` if neither is given.

    Raises:
      ValueError: both are given.
    """
    if value is not None and other_value is not None:
        raise ValueError(f"Cannot specify both '{other}' and '{name}'.")
    if value is None:
        value = other_value
    return default if value is None else value
