"""YAML text into nodes that know their positions. The only module that knows the YAML library.

Anchors, aliases and merge keys (`<<`) are resolved here, and keys that are there twice refused; what the keys and
values mean is said by schema.py. Bounded: a file has at most BYTES_MAX bytes, values in DEPTH_MAX others and
NODES_MAX nodes, counted after aliases are followed, so that a small file cannot unfold into a huge one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from dtfctl.errors import ConfigError
from dtfctl.wording import printable

BYTES_MAX = 1 << 17
NODES_MAX = 30_000
DEPTH_MAX = 100


@dataclass(frozen=True)
class Position:
    """Lines and columns count from 1; line 0 is no file but a text of the command line."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def error(self, message: str) -> ConfigError:
        """The error for this place, on one line: a value that the message quotes may hold others."""
        return ConfigError(f"{self}: {printable(message)}")


@dataclass(frozen=True)
class Scalar:
    text: str
    at: Position
    is_null: bool = False

    def __str__(self) -> str:
        if not self.text:
            return "nothing"
        return f'"{self.text}"' if len(self.text) < 60 and "\n" not in self.text else "a text"


@dataclass(frozen=True)
class Sequence:
    items: tuple[Node, ...]
    at: Position

    def __str__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class Entry:
    """One `key: value` of a mapping; `at` is the key's position."""

    at: Position
    value: Node


@dataclass(frozen=True)
class Mapping:
    entries: dict[str, Entry]
    at: Position

    def __str__(self) -> str:
        return "a mapping"

    def get(self, key: str) -> Node | None:
        entry = self.entries.get(key)
        return None if entry is None else entry.value


Node = Scalar | Sequence | Mapping

_WORDS = {
    "found character '\\t' that cannot start any token": "a tab; YAML is indented with spaces",
    "but found another document": "a second document; a cluster file has only one",
    "mapping values are not allowed here": 'no key can stand here (wrong indentation, or a value with ": " in it, '
    "which needs quotes)",
}
"""The library's words for what happens most, in better ones."""


def read_yaml(data: bytes, file: str) -> Node:
    """Raises ConfigError. `file` is how errors name it."""
    if len(data) > BYTES_MAX:
        raise ConfigError(f"{file}: longer than {BYTES_MAX} bytes; a cluster file must be shorter")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        at = _position(data[: error.start].decode("utf-8-sig", "replace"), file)
        raise at.error(f"not a text file (byte {error.start} is not UTF-8)") from None
    root = _compose(text, file)
    if root is None:
        raise Position(file, 1, 1).error("the file is empty; it needs at least `program` and `jobs`")
    return _Converter(file).node(root)


def read_value(text: str, source: str) -> Node:
    """A value typed on the command line: YAML when it begins as a list, a mapping or a quoted text, else the text as
    it is. Errors name `source`."""
    if not text.startswith(("[", "{", '"', "'")):
        return Scalar(text, Position(source), is_null=not text)
    try:
        root = yaml.compose(text, Loader=_Loader)
        return _Converter(source, has_lines=False).node(root)
    except (yaml.YAMLError, RecursionError) as error:
        words = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{source}: {_WORDS.get(words, words)}") from None


def write_yaml(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True)


def write_documents(documents: list[Any]) -> str:
    """A stream of documents, without aliases: not every reader follows them."""
    return yaml.dump_all(documents, Dumper=_PlainDumper, sort_keys=False, width=10_000, allow_unicode=True)


def yaml_value(text: str) -> Any:
    """The value that a short text of YAML stands for. Raises ConfigError."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        words = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise ConfigError(f"{text[:60]}: {_WORDS.get(words, words)}") from None


class _PlainDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _compose(text: str, file: str) -> Any:
    try:
        return yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        words = error.problem or error.context or "not YAML"
        at = Position(file, mark.line + 1, mark.column + 1) if mark else Position(file)
        raise at.error(_WORDS.get(words, words)) from None
    except yaml.reader.ReaderError as error:
        code = error.character if isinstance(error.character, int) else ord(error.character)
        raise _position(text[: error.position], file).error(f"the control character #x{code:02x}") from None
    except yaml.YAMLError as error:
        raise ConfigError(f"{file}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{file}: nested too deeply") from None


def _position(before: str, file: str) -> Position:
    """That of the character after `before`."""
    line_begin = before.rfind("\n") + 1
    return Position(file, before.count("\n") + 1, len(before) - line_begin + 1)


class _Loader(yaml.SafeLoader):
    """Gives up at the depth that no cluster file has: reading n brackets inside each other takes n squared steps."""

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        if self.flow_level >= DEPTH_MAX:
            raise yaml.scanner.ScannerError(problem="nested too deeply", problem_mark=self.get_mark())
        super().fetch_flow_collection_start(token_class)

    def add_indent(self, column: int) -> bool:
        if len(self.indents) > DEPTH_MAX:
            raise yaml.scanner.ScannerError(problem="nested too deeply", problem_mark=self.get_mark())
        added: bool = super().add_indent(column)
        return added


class _Converter:
    """From the library's nodes to ours."""

    def __init__(self, file: str, has_lines: bool = True) -> None:
        self._file = file
        self._has_lines = has_lines
        self._count = 0
        self._open: set[int] = set()

    def node(self, node: Any) -> Node:
        at = self._at(node)
        self._count += 1
        if self._count > NODES_MAX:
            raise at.error(f"more than {NODES_MAX} values (aliases count each time)")
        if isinstance(node, yaml.ScalarNode):
            return Scalar(node.value, at, node.tag == "tag:yaml.org,2002:null")
        if id(node) in self._open:
            raise at.error("an alias to a value that contains it")
        self._open.add(id(node))
        converted = (
            self._mapping(node, at) if isinstance(node, yaml.MappingNode) else self._sequence(node, at)
        )
        self._open.remove(id(node))
        return converted

    def _sequence(self, node: Any, at: Position) -> Sequence:
        return Sequence(tuple(self.node(item) for item in node.value), at)

    def _mapping(self, node: Any, at: Position) -> Mapping:
        entries: dict[str, Entry] = {}
        merged: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            key_at = self._at(key_node)
            if not isinstance(key_node, yaml.ScalarNode):
                raise key_at.error(f"a key must be a word, not {self.node(key_node)}")
            if key_node.tag == "tag:yaml.org,2002:merge":
                merged = {**self._merged(value_node), **merged}
                continue
            key = key_node.value
            if key in entries:
                first = entries[key].at
                raise key_at.error(f'the key "{key}" appears twice (first in line {first.line})')
            entries[key] = Entry(key_at, self.node(value_node))
        # What stands there itself comes before what is merged in, wherever `<<` stands.
        return Mapping({**merged, **entries}, at)

    def _merged(self, node: Any) -> dict[str, Entry]:
        value = self.node(node)
        parts = value.items if isinstance(value, Sequence) else (value,)
        entries: dict[str, Entry] = {}
        for part in parts:
            if not isinstance(part, Mapping):
                raise self._at(node).error(f'"<<" merges mappings, not {part}')
            entries = {**part.entries, **entries}
        return entries

    def _at(self, node: Any) -> Position:
        if not self._has_lines:
            return Position(self._file)
        return Position(self._file, node.start_mark.line + 1, node.start_mark.column + 1)


def is_extension(key: str) -> bool:
    """Keys that begin with x- belong to the user: a place for anchors."""
    return re.match(r"x-", key) is not None
