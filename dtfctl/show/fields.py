"""Picks values from a document by a path, as kubectl's jsonpath and jq do: `tasks[0].state`, `tasks[*].name`. Pure.

    name                  a key                    tasks[ready=false].name   the elements in which a key has that value
    tasks[0], tasks[-1]   an element               tasks[*], hosts.*         all elements, all values

A `.` or `{.` may stand before, as kubectl has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from dtfctl.errors import DtfctlError

_STEP = re.compile(
    r"\.?(?P<key>[A-Za-z_*][\w-]*|\*)"
    r"|\[(?P<index>-?\d{1,9})\]"
    r"|\[(?P<every>\*)\]"
    r"|\[(?P<name>[\w-]+)(?P<sign>!?=)(?P<value>[^\]]*)\]"
)


class BadPath(DtfctlError):
    """A path that cannot be read, or that finds nothing."""

    exit_status = 2


def picked(document: Any, path: str) -> list[Any]:
    """The values at a path, in order.

    Raises:
      BadPath: it cannot be read, or names a key that no value has; the keys that there are.
    """
    text = path.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    text = text.removeprefix("$")
    values, position = [document], 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            if text == ".":
                break
            words = f"cannot be read from {text[position:]!r} on; write tasks[0].state or tasks[*].name"
            raise BadPath(f"--field {path}: {words}")
        former, values = values, list(_step(values, match))
        if former and not values and not (match["name"] or match["every"] or match["key"] == "*"):
            raise BadPath(f"--field {path}: {match[0]} is not there; {_choice(former)}")
        position = match.end()
    return values


def shown(value: Any) -> str:
    """Text as it is, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def _step(values: list[Any], match: re.Match[str]) -> Iterator[Any]:
    for value in values:
        if match["key"] == "*" or match["every"]:
            yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        elif match["key"]:
            if isinstance(value, dict) and match["key"] in value:
                yield value[match["key"]]
        elif match["index"]:
            index = int(match["index"])
            if isinstance(value, list) and -len(value) <= index < len(value):
                yield value[index]
        elif isinstance(value, list):
            for each in value:
                if isinstance(each, dict) and match["name"] in each:
                    is_equal = shown(each[match["name"]]) == match["value"].strip("'\"")
                    if is_equal == (match["sign"] == "="):
                        yield each


def _choice(values: list[Any]) -> str:
    keys = list(dict.fromkeys(key for value in values if isinstance(value, dict) for key in value))
    if keys:
        return f"there are: {', '.join(keys[:20])}"
    lists = [value for value in values if isinstance(value, list)]
    return f"it is a list of {len(lists[0])}" if lists else "it is a value"
