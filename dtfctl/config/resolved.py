"""The cluster file with everything filled in: variables, merged files, and each job with all that holds for it.

What comes out is itself a cluster file of the same meaning. Secrets stay the names of their sources, env files stay
files.
"""

from __future__ import annotations

from typing import Any

from dtfctl.config import schema
from dtfctl.config.build import cluster_name_of, levels_of
from dtfctl.config.kinds import AnyKind, Kind, Reader, Section
from dtfctl.config.source import Node, Sequence
from dtfctl.config.variables import escape

HOSTS_COME_FIRST = ("python", "venv", "working_dir", "bind")
"""A host's own come before the top's and after the job's, so the top's stay at the top."""

_OF_THE_CLUSTER = (
    "name", "checkpoint_dir", "success", "security", "ssh", "host_lost_after", "fence_after", "metrics",
    "notify", "autoscale", "hosts",
)  # fmt: skip

_ALWAYS_SHOWN = ("restart", "logs")
"""Sections whose defaults hold even where the file says nothing of them."""


def document(root: Node, reader: Reader) -> dict[str, Any]:
    """Mappings, lists and plain values. Raises ConfigError."""
    values, levels = levels_of(root, reader)
    result: dict[str, Any] = {"name": cluster_name_of(reader.folder)}
    for key in (*_OF_THE_CLUSTER, *HOSTS_COME_FIRST):
        if key in values:
            result[key] = _spell(schema.CLUSTER.keys[key].kind, values[key].node, reader, key)
    result["jobs"] = {}
    for name, level in levels.items():
        job = _section(schema.JOB, level.node, reader, f"jobs.{name}")
        job = {key: value for key, value in job.items() if key not in HOSTS_COME_FIRST or key in level.own}
        result["jobs"][name] = _with_defaults(job)
    return result


def _with_defaults(job: dict[str, Any]) -> dict[str, Any]:
    result = {}
    for key, known in schema.JOB.keys.items():
        if key in _ALWAYS_SHOWN:
            result[key] = {**_defaults(known.kind), **job.get(key, {})}
        elif key in job:
            result[key] = job[key]
        elif known.default:
            result[key] = schema.plain(known.default)
    return result


def _defaults(section: Any) -> dict[str, Any]:
    return {key: schema.plain(known.default) for key, known in section.keys.items() if known.default}


def _section(kind: Section, node: Node, reader: Reader, where: str) -> dict[str, Any]:
    entries = kind.mapping(node, where).entries
    return {
        key: _spell(known.kind, entries[key].value, reader, f"{where}.{key}")
        for key, known in kind.keys.items()
        if key in entries
    }


def _spell(kind: AnyKind, node: Node, reader: Reader, where: str) -> Any:
    if isinstance(kind, Section):
        return _section(kind, node, reader, where)
    if isinstance(kind, Kind):
        if kind.spell is None:
            return _plain(node, reader, where)
        value = kind.spell(kind.read(reader, node, where))
        return [escape(item) for item in value] if isinstance(value, list) else escape(value)
    entries = kind.mapping(node, where).entries
    return {key: _spell(kind.kind, entry.value, reader, f"{where}.{key}") for key, entry in entries.items()}


def _plain(node: Node, reader: Reader, where: str) -> Any:
    if isinstance(node, Sequence):
        return [_plain(item, reader, where) for item in node.items]
    text = reader.text(node, where)
    value = schema.plain(text)
    return escape(text) if isinstance(value, str) else value
