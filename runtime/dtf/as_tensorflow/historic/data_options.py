"""tensorflow.python.data.util.options: classes of options with types, defaults and merging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["OptionsBase", "create_option", "merge_options"]


class OptionsBase:
    """Options as attributes; only those that `create_option` made can be set."""

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and all(
            getattr(self, name) == getattr(other, name) for name in _names(type(self))
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = None  # type: ignore[assignment]

    def __setattr__(self, name: str, value: Any) -> None:
        if not hasattr(self, name):
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)


def create_option(name: str, ty: Any, docstring: str, default_factory: Callable[[], Any] = lambda: None) -> property:
    """A property that takes values of one type.

    Args:
      name: the name of the option, for messages.
      ty: the type, or a tuple of types.
      docstring: the documentation of the property.
      default_factory: returns the value of an option that was never set.
    """

    def getter(options: OptionsBase) -> Any:
        values = options._options  # type: ignore[attr-defined]
        if name not in values:
            values[name] = default_factory()
        return values[name]

    def setter(options: OptionsBase, value: Any) -> None:
        if not isinstance(value, ty):
            raise TypeError(f'Property "{name}" must be of type {ty}, got: {value} (type: {type(value)})')
        options._options[name] = value  # type: ignore[attr-defined]

    return property(getter, setter, None, docstring)


def merge_options(*options_list: Any) -> Any:
    """New options with what was set in any of those given; the last one counts.

    Raises:
      ValueError: there are none.
      TypeError: they differ in type.
    """
    if not options_list:
        raise ValueError("At least one options should be provided")
    kind = type(options_list[0])
    if any(not isinstance(each, kind) for each in options_list):
        raise TypeError("Incompatible options type")
    result = kind()
    for options in options_list:
        for name in _names(kind):
            value = getattr(options, name)
            if value is None:
                continue
            own = getattr(result, name)
            both = isinstance(own, OptionsBase) and isinstance(value, OptionsBase)
            if both or own != value:
                setattr(result, name, merge_options(own, value) if both else value)
    return result


def _names(kind: type) -> list[str]:
    return [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
