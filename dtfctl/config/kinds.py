"""What a value of the cluster file can be: how it is read, merged, and what the JSON schema says of it.

A Kind reads one value (values.py has them). A Section is a mapping of known keys, a Table one of free keys; schema.py
is the table of them all. `merge` lays one value over another by the same table: mappings key by key, all
else is replaced. Touches no disk.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dtfctl.config.source import Entry, Mapping, Node, Scalar, Sequence, is_extension
from dtfctl.config.variables import VariableError, interpolate
from dtfctl.errors import ConfigError
from dtfctl.plan.expand import broken_placeholder, known_placeholders, unknown_placeholders
from dtfctl.values.plan import is_remote

TEXT_SHOWN = 60


@dataclass(frozen=True)
class Reader:
    """What readers need to know of the file around a value. `jobs` are the names that placeholders may mention."""

    folder: Path
    variables: dict[str, str] = field(repr=False)
    jobs: tuple[str, ...] = ()

    def text(self, node: Node, where: str) -> str:
        """The text of a scalar, its variables filled."""
        if not isinstance(node, Scalar):
            raise node.at.error(f'"{where}" must be one value, not {node}')
        if node.is_null:
            raise node.at.error(f'"{where}" has no value')
        try:
            text = interpolate(node.text, self.variables)
        except VariableError as error:
            raise node.at.error(f'"{where}": {error}') from None
        if "\0" in text:
            raise node.at.error(f'"{where}" contains a zero byte')
        return text

    def filled(self, node: Node, where: str) -> str:
        """Text that is not empty."""
        text = self.text(node, where)
        if not text.strip():
            raise node.at.error(f'"{where}" is empty')
        name = next((name for name in known_placeholders(self.jobs) if f"{{{name}}}" in text), "")
        if name:
            raise node.at.error(f'"{where}" takes no placeholders; "{{{name}}}" would not be replaced')
        return text

    def path(self, node: Node, where: str, may_be_remote: bool = False) -> str:
        """A path, relative to the file's folder. `may_be_remote`: one with a scheme is left to the program as it is.

        Raises:
          ConfigError: it has a scheme, such as s3://, where only a local file makes sense.
        """
        text = self.filled(node, where)
        if text.startswith("file:///"):
            return os.path.normpath(text[len("file://") :])
        if is_remote(text):
            if may_be_remote:
                return text
            raise node.at.error(f'"{where}" must be a path of this machine; it is "{text}"')
        return os.path.normpath(self.folder / os.path.expanduser(text))

    def template(self, node: Node, where: str) -> str:
        """Text whose placeholders are known."""
        text = self.text(node, where)
        for unknown, known in unknown_placeholders(text, self.jobs):
            raise node.at.error(f'unknown placeholder "{{{unknown}}}"{nearest(unknown, known)}')
        written, meant = broken_placeholder(text, self.jobs)
        if written:
            raise node.at.error(f'"{where}": "{written}" is not a placeholder; write {meant} ({{{{ is a plain brace)')
        return text


@dataclass(frozen=True)
class Found:
    """A value, and the node that it came from."""

    value: Any
    node: Node


Values = dict[str, Found]


@dataclass(frozen=True)
class Kind:
    """`schema` describes the value as YAML shows it; the schema adds that any value may be a text with a variable.
    `spell` writes a read value in place of the text of the file."""

    read: Callable[[Reader, Node, str], Any]
    schema: dict[str, Any]
    spell: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Key:
    """`default` is written as in a file; "" without a default, or when the default depends on other keys."""

    kind: Kind | Section | Table
    help: str
    default: str = ""


@dataclass(frozen=True)
class Section:
    """A mapping of known keys. One value in place of the mapping means that of the key `short`. Of the keys of each
    set in `one_of` at most one may be there, and a later level's takes the place of an earlier one's. `hint` is what
    is said of anything else than a mapping, where the value must not be shown."""

    keys: dict[str, Key]
    short: str = ""
    may_be_empty: bool = False
    one_of: tuple[tuple[str, ...], ...] = ()
    hint: str = ""

    def mapping(self, node: Node, where: str) -> Mapping:
        if isinstance(node, Mapping):
            return node
        if isinstance(node, Scalar) and node.is_null and self.may_be_empty:
            return Mapping({}, node.at)
        takes = (Scalar, Sequence) if self.short and _takes_list(self.keys[self.short].kind) else Scalar
        if self.short and isinstance(node, takes):
            return Mapping({self.short: Entry(node.at, node)}, node.at)
        if self.hint:
            raise node.at.error(f'"{where}" {self.hint}')
        raise node.at.error(f"{subject(where)} must be a mapping of keys to values, not {node}")

    def read(self, reader: Reader, node: Node, where: str) -> Values:
        values = {}
        entries = self.mapping(node, where).entries
        for key, entry in entries.items():
            if is_extension(key):
                continue
            if key not in self.keys:
                raise entry.at.error(f'unknown key "{key}"{_under(where)}{nearest(key, self.keys)}')
            inner = f"{where}.{key}" if where else key
            values[key] = Found(self.keys[key].kind.read(reader, entry.value, inner), entry.value)
        for group in self.one_of:
            there = [key for key in entries if key in group]
            if len(there) > 1:
                raise entries[there[1]].at.error(
                    f'"{there[1]}" and "{there[0]}" exclude each other{_under(where)}'
                )
        return values


@dataclass(frozen=True)
class Table:
    """A mapping of free keys, all of whose values are of one kind. `check` says what is wrong with a key, or "".

    With `from_list` a list of keys is a mapping to nothing.
    """

    kind: Kind | Section
    key_schema: str
    check: Callable[[str], str]
    from_list: bool = False

    def mapping(self, node: Node, where: str) -> Mapping:
        if isinstance(node, Mapping):
            return node
        if self.from_list and isinstance(node, Sequence):
            entries: dict[str, Entry] = {}
            for item in node.items:
                if not isinstance(item, Scalar) or item.is_null:
                    raise item.at.error(f'"{where}" must list names, not {item}')
                if item.text in entries:
                    raise item.at.error(f'"{item.text}" appears twice in "{where}"')
                entries[item.text] = Entry(item.at, Scalar("", item.at, is_null=True))
            return Mapping(entries, node.at)
        raise node.at.error(f"{subject(where)} must be a mapping of keys to values, not {node}")

    def read(self, reader: Reader, node: Node, where: str) -> Values:
        values = {}
        for key, entry in self.mapping(node, where).entries.items():
            wrong = self.check(key)
            if wrong:
                raise entry.at.error(wrong)
            values[key] = Found(self.kind.read(reader, entry.value, f"{where}.{key}"), entry.value)
        return values


AnyKind = Kind | Section | Table


def merge(kind: AnyKind | None, below: Node, above: Node, where: str = "") -> Node:
    """`above` laid over `below`: mappings key by key, anything else is replaced."""
    if kind is None or isinstance(kind, Kind):
        return above
    low, high = kind.mapping(below, where), kind.mapping(above, where)
    entries = dict(low.entries)
    if isinstance(kind, Section):
        for group in kind.one_of:
            if any(key in high.entries for key in group):
                entries = {key: entry for key, entry in entries.items() if key not in group or key in high.entries}
    for key, entry in high.entries.items():
        inner = kind.keys[key].kind if isinstance(kind, Section) and key in kind.keys else None
        if isinstance(kind, Table):
            inner = kind.kind
        if key in entries:
            merged = merge(inner, entries[key].value, entry.value, f"{where}.{key}" if where else key)
            entries[key] = Entry(entry.at, merged)
        else:
            entries[key] = entry
    return Mapping(entries, low.at)


def _takes_list(kind: AnyKind) -> bool:
    return isinstance(kind, Kind) and "array" in str(kind.schema)


# -- words of error messages


def nearest(word: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """The known word that looks most like this one; when none does, all of them, or what to say `otherwise`."""
    candidates = list(known)
    near = difflib.get_close_matches(word.lower(), candidates, 1, 0.6)
    if near:
        return f' (did you mean "{near[0]}"?)'
    return f" (known: {', '.join(candidates)})" if otherwise is None else otherwise


def shortened(text: str) -> str:
    """Errors are one line, however long or many-lined the value."""
    line = " ".join(text.split())
    return line if len(line) <= TEXT_SHOWN else f"{line[: TEXT_SHOWN - 3]}..."


def choice(words: Iterable[str]) -> str:
    words = list(words)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def subject(where: str) -> str:
    return f'"{where}"' if where else "a cluster file"


def _under(where: str) -> str:
    return f" under {where}" if where else ""


def refuse(node: Node, where: str, must: str, text: str) -> ConfigError:
    """`must` be this, not `text`; tells too when the text came out of a variable."""
    origin = f" (from {shortened(node.text)})" if isinstance(node, Scalar) and node.text != text else ""
    return node.at.error(f'"{where}" must be {must}, not "{shortened(text)}"{origin}')
