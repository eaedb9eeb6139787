"""Contents of files of models: entries that must be there, and one kind of error for those that are damaged.

A config comes from a file that may be damaged or made by another program. Its faults show up deep inside layers, as
errors of Python that name neither the file nor the entry. `reading` turns each of them into a ValueError that does:

    with contents.reading("model.h5", "model_config"):
        with contents.reading("", "layers[2]"):
            units = contents.entry(config, "units")

ends in "model.h5 cannot be read: model_config, layers[2]: the entry 'units' is missing".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

__all__ = ["DamagedError", "entry", "parsed", "reading"]

_LENGTH_MAX = 300


class DamagedError(ValueError):
    """Contents that cannot be read.

    Attributes:
      place: the entries that lead to the fault, the outermost first.
      fault: what is wrong there.
    """

    def __init__(self, place: list[str], fault: str, source: str = "") -> None:
        self.place, self.fault = place, fault
        where = ", ".join(place)
        begin = f"{source} cannot be read: " if source else ""
        super().__init__(begin + (f"{where}: " if where else "") + fault)


@contextmanager
def reading(source: str, *place: str) -> Iterator[None]:
    """Turns every error inside into a ValueError with the place of the fault.

    Args:
      source: the file, or a name of the text; "" where an outer `reading` names it.
      place: the entries that are read inside.

    Raises:
      ValueError: the contents are damaged. It names the source and the entries.
    """
    try:
        yield
    except DamagedError as error:
        raise DamagedError([*place, *error.place], error.fault, source) from error.__cause__
    except Exception as error:  # damaged contents fail in any way
        raise DamagedError(list(place), _fault(error), source) from error


def entry(config: Any, key: str, *kinds: type) -> Any:
    """The value of a key of a config.

    Args:
      kinds: the types that the value may have; any by default.

    Raises:
      ValueError: the config is not a mapping, or lacks the key, or the value has another type.
    """
    if not isinstance(config, Mapping):
        raise DamagedError([], f"a mapping with the entry {key!r} is expected, not {_short(config)}")
    if key not in config:
        raise DamagedError([], f"the entry {key!r} is missing")
    value = config[key]
    if kinds and not isinstance(value, kinds):
        names = " or ".join(each.__name__ for each in kinds)
        raise DamagedError([key], f"a value of type {names} is expected, not {_short(value)}")
    return value


def parsed(text: Any) -> Any:
    """The value of a JSON text.

    Raises:
      ValueError: the text is not JSON.
    """
    if not isinstance(text, str | bytes | bytearray):
        raise DamagedError([], f"a text of JSON is expected, not {_short(text)}")
    return json.loads(text)


def _fault(error: Exception) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, KeyError):
        text = f"the entry {text} is missing"
    elif isinstance(error, RecursionError):
        text = "the entries are nested too deeply"
    elif not isinstance(error, ValueError) or not text:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return text if len(text) <= _LENGTH_MAX else f"{text[:_LENGTH_MAX]}..."


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
