"""Plain values as YAML and JSON have them, and what a cluster file adds to pods or leaves out. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from dtfctl.errors import ConfigError

Value: TypeAlias = "None | bool | int | float | str | list[Value] | dict[str, Value]"
Document: TypeAlias = dict[str, Value]

_PART = re.compile(r'"([^"]+)"|([^."]+)')


def laid(parts: Mapping[str, Value | None]) -> Document:
    """The parts that have a value: None and empty ones are left out."""
    return {key: value for key, value in parts.items() if value is not None and value != {} and value != []}


def changed(
    pod: Document, options: Iterable[str], without: Iterable[str], value_of: Callable[[str], Value]
) -> Document:
    """`pod`, a mapping of metadata and spec, with the file's `options` (path=value) and without some of its parts.

    `value_of` reads a value's text. Raises ConfigError for a path that leads nowhere.
    """
    result = copy.deepcopy(pod)
    for path in without:
        *inner, last = _parts(path, "without")
        parent = _walk(result, inner, f"without: {path}", makes=False)
        if isinstance(parent, dict):
            parent.pop(last, None)
        elif isinstance(parent, list) and last.isdigit() and int(last) < len(parent):
            del parent[int(last)]
    for option in options:
        path, equals, text = option.partition("=")
        if not equals:
            raise ConfigError(f"engine.kubernetes.options: {option}: must be path=value, such as spec.hostNetwork=true")
        *inner, last = _parts(path, "options")
        _put(_walk(result, inner, f"options: {path}", makes=True), last, value_of(text), path)
    return result


def _parts(path: str, key: str) -> list[str]:
    parts = [quoted or plain for quoted, plain in _PART.findall(path.strip())]
    if not parts or parts[0] not in ("metadata", "spec"):
        raise ConfigError(f"engine.kubernetes.{key}: {path}: must begin with metadata or spec, the parts of a pod")
    return parts


def _walk(value: Value, parts: Iterable[str], told: str, makes: bool) -> Value:
    for part in parts:
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, dict) and (part in value or makes):
            value = value.setdefault(part, {})
        elif makes:
            raise ConfigError(f'engine.kubernetes.{told}: "{part}" leads nowhere')
        else:
            return None
    return value


def _put(parent: Value, last: str, value: Value, path: str) -> None:
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list) and last.isdigit() and int(last) < len(parent):
        parent[int(last)] = value
    elif isinstance(parent, list) and last in ("-", str(len(parent))):
        parent.append(value)
    else:
        raise ConfigError(f'engine.kubernetes.options: {path}: "{last}" leads nowhere')
