"""The kinds of value that the cluster file is made of: numbers, durations, sizes, words, paths, ports, devices ..."""

from __future__ import annotations

import difflib
import re
import signal
from dataclasses import dataclass
from typing import Any

from dtfctl.config import hostlist
from dtfctl.config.kinds import Kind, Reader, choice, nearest, refuse, shortened
from dtfctl.config.source import Node, Position, Sequence
from dtfctl.values.plan import HOST, NONE, PROCESS

UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
UNIT_BYTES = {
    **{f"{letter}{suffix}": 1024**power for power, letter in enumerate("KMGT", 1) for suffix in ("", "iB")},
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    "": 1,
    "B": 1,
}
CORES_MAX = 4095


# -- kinds of one value


def integer(least: int, most: int) -> Kind:
    def read(reader: Reader, node: Node, where: str) -> int:
        text = reader.text(node, where)
        if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII) or not least <= int(text) <= most:
            raise refuse(node, where, f"a whole number from {least} to {most}", text)
        return int(text)

    return Kind(read, {"type": "integer", "minimum": least, "maximum": most})


def fraction() -> Kind:
    def read(reader: Reader, node: Node, where: str) -> float:
        text = reader.text(node, where)
        if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text, re.ASCII) or not 0 <= float(text) <= 1:
            raise refuse(node, where, "a number from 0 to 1", text)
        return float(text)

    return Kind(read, {"type": "number", "minimum": 0, "maximum": 1})


def duration(least: float = 0.0) -> Kind:
    def read(reader: Reader, node: Node, where: str) -> float:
        text = reader.text(node, where)
        match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ms|s|m|h|d)?", text, re.ASCII)
        if not match:
            raise refuse(node, where, "a duration such as 500ms, 10s, 5m or 1h", text)
        seconds = float(match[1]) * UNIT_S[match[2]]
        if not least <= seconds <= 1e9:
            raise refuse(node, where, f"at least {least:g}s and at most 1e9s", text)
        return seconds

    pattern = r"^\d+(\.\d+)?\s*(ms|s|m|h|d)?$"
    return Kind(read, {"anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": pattern}]})


def size(least: int = 0) -> Kind:
    def read(reader: Reader, node: Node, where: str) -> int:
        text = reader.text(node, where)
        match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([KMGT]?(?:i?B)?)", text, re.ASCII)
        if not match or match[2] not in UNIT_BYTES:
            raise refuse(node, where, "a size such as 64KiB, 512MiB or 4GiB", text)
        count = int(float(match[1]) * UNIT_BYTES[match[2]])
        if not least <= count < 1 << 62:
            raise refuse(node, where, f"at least {least} bytes and less than 4 EiB", text)
        return count

    pattern = r"^\d+(\.\d+)?\s*[KMGT]?(i?B)?$"
    return Kind(read, {"anyOf": [{"type": "integer", "minimum": least}, {"type": "string", "pattern": pattern}]})


def word(*known: str) -> Kind:
    def read(reader: Reader, node: Node, where: str) -> str:
        text = reader.text(node, where)
        if text not in known:
            raise node.at.error(f'"{where}" must be {choice(known)}, not "{shortened(text)}"{nearest(text, known, "")}')
        return text

    return Kind(read, {"enum": list(known)})


DURABILITY = word(NONE, PROCESS, HOST)


def boolean() -> Kind:
    def read(reader: Reader, node: Node, where: str) -> bool:
        text = reader.text(node, where)
        if text.lower() not in ("true", "false", "yes", "no", "on", "off"):
            raise refuse(node, where, "true or false", text)
        return text.lower() in ("true", "yes", "on")

    return Kind(read, {"type": "boolean"})


def matching(pattern: str, must: str) -> Kind:
    def read(reader: Reader, node: Node, where: str) -> str:
        text = reader.text(node, where)
        if not re.fullmatch(pattern, text, re.ASCII):
            raise refuse(node, where, must, text)
        return text

    return Kind(read, {"type": ["string", "integer"], "pattern": f"^(?:{pattern})$"})


_ANY_SCALAR = ["string", "number", "boolean"]
TEXT = Kind(lambda reader, node, where: reader.filled(node, where), {"type": _ANY_SCALAR})


def _read_line(reader: Reader, node: Node, where: str) -> str:
    text = reader.filled(node, where)
    if not text.isprintable():
        raise refuse(node, where, "text on one line, without control characters", text)
    return text


LINE = Kind(_read_line, {"type": _ANY_SCALAR, "pattern": r"^[^\x00-\x1f\x7f]*$"})
"""A text that dtfctl writes into one line of a script or of a command."""

TEMPLATE = Kind(lambda reader, node, where: reader.template(node, where), {"type": _ANY_SCALAR})
PATH = Kind(lambda reader, node, where: reader.path(node, where), {"type": "string", "minLength": 1}, spell=str)
PATH_OR_URL = Kind(
    lambda reader, node, where: reader.path(node, where, may_be_remote=True),
    {"type": "string", "minLength": 1},
    spell=str,
)
SIGNAL_NAMES = tuple(sorted(number.name for number in signal.Signals))


def signal_name() -> Kind:
    def read(reader: Reader, node: Node, where: str) -> str:
        text = reader.text(node, where).upper()
        name = text if text.startswith("SIG") else f"SIG{text}"
        if name not in SIGNAL_NAMES:
            near = difflib.get_close_matches(name, SIGNAL_NAMES, 1, 0.6)
            raise refuse(node, where, f"a signal such as {near[0] if near else 'SIGTERM'}", text)
        return name

    return Kind(read, {"type": "string", "pattern": "^([Ss][Ii][Gg])?[A-Za-z0-9+]+$"})


# -- kinds of several values


HOST_PATTERN = r"[A-Za-z0-9_\[][A-Za-z0-9._\[\],-]*"
"""A host's name, or a range of them; nothing that ssh could take for an option."""

ADDRESS = matching(HOST_PATTERN, "a host's name or IPv4 address")
METRICS = matching(rf"(?:{HOST_PATTERN}:)?\d{{1,5}}", "a port, or an address with one such as 127.0.0.1:9464")
"""Where figures are given; a port alone is one of 127.0.0.1."""
SSH = matching(
    rf"none|(?:ssh://)?(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?{HOST_PATTERN}(?::\d{{1,5}})?/?",
    "none, or what ssh is called with, such as gpu-a, ml@gpu-a or ml@gpu-a:2222",
)
USER = matching(r"[A-Za-z0-9._][A-Za-z0-9._-]*", "a user's name")


def one_or_list(inner: Kind) -> Kind:
    """One value or a list of them, as a tuple of (value, node)."""

    def read(reader: Reader, node: Node, where: str) -> tuple[tuple[Any, Node], ...]:
        nodes = node.items if isinstance(node, Sequence) else (node,)
        if not nodes:
            raise node.at.error(f'"{where}" is an empty list')
        return tuple((inner.read(reader, item, where), item) for item in nodes)

    spell = inner.spell and (lambda values: [value for value, _ in values])
    return Kind(read, {"anyOf": [inner.schema, {"type": "array", "items": inner.schema, "minItems": 1}]}, spell)


def limits(least: int, most: int) -> Kind:
    """[least, most], two whole numbers."""
    number = integer(least, most)

    def read(reader: Reader, node: Node, where: str) -> tuple[int, int]:
        if not isinstance(node, Sequence) or len(node.items) != 2:
            raise node.at.error(f'"{where}" must be two numbers, [least, most], not {node}')
        low, high = (number.read(reader, item, where) for item in node.items)
        if low > high:
            raise node.at.error(f'"{where}" is [{low}, {high}]: the first number must not be the larger one')
        return low, high

    return Kind(read, {"type": "array", "items": number.schema, "minItems": 2, "maxItems": 2})


def _read_notice(reader: Reader, node: Node, where: str) -> str | tuple[str, ...]:
    if isinstance(node, Sequence):
        words = tuple(reader.filled(item, where) for item in node.items)
        if not words:
            raise node.at.error(f'"{where}" is empty')
        return words
    text = reader.filled(node, where)
    if re.match(r"[a-z][a-z0-9+.-]*://", text, re.IGNORECASE) and not re.fullmatch(r"https?://[^\s/]+\S*", text):
        raise node.at.error(f'"{where}" must be a command or a URL that begins with http:// or https://')
    return text


NOTICE = Kind(
    _read_notice,
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": _ANY_SCALAR}, "minItems": 1},
        ]
    },
)
"""A command, as a shell line or as words, or a webhook."""


def _read_program(reader: Reader, node: Node, where: str) -> str | tuple[str, ...]:
    if isinstance(node, Sequence):
        words = tuple(reader.template(item, where) for item in node.items)
        if not words or not words[0]:
            raise node.at.error(f'"{where}" is empty')
        return words
    line = reader.template(node, where)
    if not line.strip():
        raise node.at.error(f'"{where}" is empty')
    return line


PROGRAM = Kind(
    _read_program,
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": _ANY_SCALAR}, "minItems": 1},
        ]
    },
)


def _read_host_names(reader: Reader, node: Node, where: str) -> tuple[tuple[str, Position], ...]:
    names: list[tuple[str, Position]] = []
    for item in node.items if isinstance(node, Sequence) else (node,):
        text = reader.filled(item, where)
        try:
            found = hostlist.expand_names(text)
        except ValueError as error:
            raise item.at.error(f'"{where}": {error}') from None
        for name in found:
            if not re.fullmatch(rf"(?:[A-Za-z0-9._][A-Za-z0-9._-]*@)?{HOST_PATTERN}", name, re.ASCII):
                raise refuse(item, where, "names of hosts", name)
            if name in {other for other, _ in names}:
                raise item.at.error(f'"{where}" names {name} twice (tasks_per_host says how many run on each)')
            names.append((name, item.at))
    if not names:
        raise node.at.error(f'"{where}" is an empty list')
    return tuple(names)


HOST_NAMES = Kind(
    _read_host_names,
    {
        "anyOf": [
            {"type": "string", "minLength": 1},
            {"type": "array", "items": {"type": "string"}, "minItems": 1},
        ]
    },
)


@dataclass(frozen=True)
class Ports:
    """`way` is auto, none, first (the number of a host's first task), list or range (chosen within it)."""

    way: str
    numbers: tuple[int, ...] = ()


def _read_ports(reader: Reader, node: Node, where: str) -> Ports:
    port = integer(1, 65535)
    if isinstance(node, Sequence):
        if not node.items:
            raise node.at.error(f'"{where}" is an empty list')
        return Ports("list", tuple(port.read(reader, item, where) for item in node.items))
    text = reader.text(node, where)
    if text in ("auto", "none"):
        return Ports(text)
    bounds = re.fullmatch(r"(\d{1,9})\s*-\s*(\d{1,9})", text, re.ASCII)
    if bounds:
        first, last = int(bounds[1]), int(bounds[2])
        if not 1 <= first <= last <= 65535:
            raise refuse(node, where, "a range within 1-65535, such as 23000-23099", text)
        return Ports("range", (first, last))
    if not text.isdecimal():
        raise refuse(node, where, "auto, none, a number, a range or a list of numbers", text)
    return Ports("first", (port.read(reader, node, where),))


PORTS = Kind(
    _read_ports,
    {
        "anyOf": [
            {"enum": ["auto", "none"]},
            {"type": "integer", "minimum": 1, "maximum": 65535},
            {"type": "string", "pattern": r"^\d+(\s*-\s*\d+)?$"},
            {"type": "array", "items": {"type": "integer", "minimum": 1, "maximum": 65535}, "minItems": 1},
        ]
    },
)


@dataclass(frozen=True)
class Devices:
    """Cores or GPUs: these very `ids`, or `count` of them for each task, dealt out host by host."""

    count: int = 0
    ids: tuple[int, ...] | None = None


def devices(none_is_allowed: bool) -> Kind:
    """A number is how many each task gets; `[0]`, `0-3` or `0,2` are which."""
    must = "how many (2) or which (0-3, [0, 2])" + (", or none" if none_is_allowed else "")

    def read(reader: Reader, node: Node, where: str) -> Devices:
        if isinstance(node, Sequence):
            text = ",".join(reader.text(item, where) for item in node.items)
            if not text:
                if none_is_allowed:
                    return Devices(ids=())
                raise node.at.error(f'"{where}" is an empty list')
        else:
            text = reader.text(node, where)
            if text == "none" and none_is_allowed:
                return Devices(ids=())
            if text.isdecimal():
                count = integer(0 if none_is_allowed else 1, CORES_MAX).read(reader, node, where)
                return Devices(count) if count else Devices(ids=())
        if not re.fullmatch(r"[\d\s,-]+", text, re.ASCII):
            raise refuse(node, where, must, text)
        try:
            return Devices(ids=tuple(hostlist.numbers(text, CORES_MAX)))
        except ValueError as error:
            raise node.at.error(f'"{where}": {error}') from None

    return Kind(
        read,
        {
            "anyOf": [
                {"type": "integer", "minimum": 0 if none_is_allowed else 1, "maximum": CORES_MAX},
                {"type": "string", "pattern": r"^[\d\s,-]+$" + ("|^none$" if none_is_allowed else "")},
                {"type": "array", "items": {"type": ["integer", "string"]}},
            ]
        },
    )


def _read_codes(reader: Reader, node: Node, where: str) -> tuple[tuple[int, int], ...]:
    ranges = []
    for item in node.items if isinstance(node, Sequence) else (node,):
        for part in reader.text(item, where).split(","):
            part = part.strip()
            bounds = re.fullmatch(r"(\d{1,9})(?:\s*-\s*(\d{1,9}))?", part, re.ASCII)
            if bounds:
                first, last = int(bounds[1]), int(bounds[2] or bounds[1])
            elif part.upper() in SIGNAL_NAMES:
                first = last = 128 + signal.Signals[part.upper()].value
            else:
                raise refuse(item, where, "exit statuses (75, 128-255) or signals (SIGKILL)", part)
            if not 1 <= first <= last <= 255:
                raise refuse(item, where, "exit statuses from 1 to 255", part)
            ranges.append((first, last))
    if not ranges:
        raise node.at.error(f'"{where}" is an empty list')
    return tuple(ranges)


CODES = Kind(
    _read_codes,
    {
        "anyOf": [
            {"type": ["integer", "string"]},
            {"type": "array", "items": {"type": ["integer", "string"]}, "minItems": 1},
        ]
    },
)
