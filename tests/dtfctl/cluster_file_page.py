"""Writes dtfctl/cluster-file.md, the page of the cluster file's keys: `python -m tests.dtfctl.cluster_file_page`.

All of it comes from the table that the reader of cluster files is made of (`dtfctl.config.schema`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dtfctl.config.schema import json_schema

PAGE = Path(__file__).resolve().parents[2] / "dtfctl" / "cluster-file.md"

_HEAD = """# The keys of the cluster file

Made by `python -m tests.dtfctl.cluster_file_page` from the schema. `dtfctl schema` prints the schema for editors,
`dtfctl init` writes a commented file, and `dtfctl config` shows a file with every default filled in.
"""


def page() -> str:
    """The text of the page."""
    schema = json_schema()
    parts = [_HEAD]
    for heading, found in (
        ("At the top", schema["properties"]),
        ("Under a job", schema["definitions"]["job"]),
        ("Under a host", schema["definitions"]["host"]),
    ):
        parts += [f"## {heading}", "", "| key | type | default | meaning |", "|---|---|---|---|"]
        parts += [_row(key, value) for key, value in _properties(found).items()]
        parts.append("")
    return "\n".join(parts)


def _properties(schema: dict[str, Any]) -> dict[str, Any]:
    """The keys of the first place in the schema that has keys."""
    inner = schema.get("properties")
    if isinstance(inner, dict) and "type" not in inner:
        return inner
    if "anyOf" in schema:
        return next(each["properties"] for each in schema["anyOf"] if "properties" in each)
    return schema


def _row(key: str, value: dict[str, Any]) -> str:
    default = f"`{value['default']}`" if "default" in value else ""
    return f"| `{key}` | {_type(value)} | {default} | {_cell(value.get('description', ''))} |"


def _type(value: dict[str, Any]) -> str:
    if "enum" in value:
        return _cell(" or ".join(map(str, value["enum"])))
    if "anyOf" in value:
        return _cell(" or ".join(dict.fromkeys(filter(None, map(_type, value["anyOf"])))))
    kind = value.get("type", "" if "description" not in value else "mapping")
    return _cell(" or ".join(kind) if isinstance(kind, list) else kind)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
