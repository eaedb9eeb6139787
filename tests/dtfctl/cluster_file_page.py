"""Writes dtfctl/cluster-file.md, the page of the cluster file's keys: `python -m tests.dtfctl.cluster_file_page`.

All of it comes from the table that the reader of cluster files is made of (`dtfctl.config.schema`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dtfctl.config import schema
from dtfctl.config.kinds import AnyKind, Key, Kind, Section, Table

PAGE = Path(__file__).resolve().parents[2] / "dtfctl" / "cluster-file.md"

_HEAD = """# The keys of the cluster file

Made by `python -m tests.dtfctl.cluster_file_page` from the schema. `dtfctl schema` prints the schema for editors,
`dtfctl init` writes a commented file, and `dtfctl config` shows a file with every default filled in.

A heading is the place of its keys: `restart` stands at the top, under a job or under a task, and `jobs.NAME` is the
mapping of one job. Where a mapping has a short form, one value in its place means the key that the type names.
"""
_SETTINGS = "Settings"
_SETTINGS_NOTE = "These keys stand at the top for all jobs, under a job, and under a task. The innermost one counts."
_WORDS = {"jobs": "NAME", "hosts": "NAME", "secrets": "NAME", "tasks": "NUMBERS", "groups": "JOB"}
"""What stands for the free keys of a table in headings."""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD]
    for heading, keys, note in _places():
        parts += [f"## {heading}", ""]
        parts += [note, ""] if note else []
        parts += ["| key | type | default | meaning |", "|---|---|---|---|"]
        parts += [_row(name, key, heading.strip("`")) for name, key in keys.items()]
        parts.append("")
    return "\n".join(parts)


def _places() -> Iterator[tuple[str, dict[str, Key], str]]:
    """(heading, keys, note) of each mapping of known keys; each once."""
    top = _without_settings(schema.CLUSTER.keys)
    yield "At the top", top, ""
    yield _SETTINGS, schema.SETTINGS, _SETTINGS_NOTE
    seen: set[int] = set()
    yield from _below(schema.SETTINGS, "", seen)
    yield from _below(top, "", seen)


def _below(keys: Mapping[str, Key], place: str, seen: set[int]) -> Iterator[tuple[str, dict[str, Key], str]]:
    for name, key in keys.items():
        path, kind = _place_of(place, name, key.kind)
        if not isinstance(kind, Section) or id(kind) in seen:
            continue
        seen.add(id(kind))
        own, note = _without_settings(kind.keys), ""
        if len(own) < len(kind.keys):
            note = f"Besides these keys, it takes the [settings](#{_SETTINGS.lower()})."
        if kind is schema.TENSORBOARD:
            own = {name: key for name, key in own.items() if name not in schema.JOB.keys}
            note = "Besides these keys, it takes `hosts`, `port` and the [settings](#settings), as a job does."
        yield f"`{path}`", own, note
        yield from _below(own, path, seen)


def _place_of(place: str, name: str, kind: AnyKind) -> tuple[str, AnyKind]:
    """The path of a key's mapping, and what stands there."""
    path = f"{place}.{name}" if place else name
    if isinstance(kind, Table):
        return f"{path}.{_WORDS.get(name, 'NAME')}", kind.kind
    return path, kind


def _without_settings(keys: Mapping[str, Key]) -> dict[str, Key]:
    return {name: key for name, key in keys.items() if schema.SETTINGS.get(name) is not key}


def _row(name: str, key: Key, place: str) -> str:
    default = f"`{key.default}`" if key.default else ""
    where = "" if place in ("At the top", _SETTINGS) else place
    return f"| `{name}` | {_type(name, key.kind, where)} | {default} | {_cell(key.help)} |"


def _type(name: str, kind: AnyKind, place: str) -> str:
    if isinstance(kind, Kind):
        return _cell(_words(kind.schema))
    path, inner = _place_of(place, name, kind)
    if not isinstance(inner, Section):
        return "mapping of names"
    shown = f"[mapping](#{re.sub(r'[^a-z0-9_-]', '', path.lower())})"
    return f"{shown}, or its `{inner.short}`" if isinstance(kind, Section) and inner.short else shown


def _words(found: dict[str, Any]) -> str:
    if "enum" in found:
        return " or ".join(map(str, found["enum"]))
    if "anyOf" in found:
        return " or ".join(dict.fromkeys(filter(None, map(_words, found["anyOf"]))))
    kind = found.get("type", "")
    kinds = kind if isinstance(kind, list) else [kind]
    if set(kinds) == {"string", "number", "boolean"}:
        kinds = ["string"]  # YAML takes an unquoted 3 or yes for something else; dtfctl does not
    return " or ".join("list" if each == "array" else each for each in kinds)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
