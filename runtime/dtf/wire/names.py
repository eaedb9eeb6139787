"""Names in graphs: which texts may name nodes, inputs, devices, functions and attributes, and how a message shows them.

Owns TensorFlow's grammar of names. A graph may come from a stranger: every entry refuses a text that is not a name, so
the code behind the entries may rely on it. Looks at texts alone; whether a graph has the name is not asked here.

    is_node_name("layer/weights")            # True
    is_node_name("a\\nimport os")             # False
    parse_tensor_name("layer/weights:1")     # ("layer/weights", 1)

TensorFlow's runtime accepts every text as the name of a function or an attribute. Here such a name must be printable,
and without spaces, quotes and backslashes; its own programs make no others.

Source: the runtime's behaviour in TensorFlow 2.21, compared in tests/interop/bad_requests.py.
"""

from __future__ import annotations

import re

from dtf.wire.text_cache import cached_by_text

__all__ = [
    "CONTROL", "is_device_name", "is_node_name", "is_word", "parse_tensor_name", "printable", "shown", "tensor_name",
]  # fmt: skip

CONTROL = -1
"""The index that stands for a control input."""
_SHOWN_CHARACTERS_MAX = 200

# For `fullmatch`, since "$" allows a line end. ASCII only, since \d and \w match digits and letters of every script.
_PART = r"[A-Za-z0-9.][A-Za-z0-9_.\-/]*"
_NODE = re.compile(rf"{_PART}(?:>{_PART})*")
_INTERNAL_NODE = re.compile(rf"[A-Za-z0-9._][A-Za-z0-9_.\-/]*(?:>{_PART})*")
_INPUT = re.compile(r"(.*):([0-9]{1,9})", re.DOTALL)
_WORD = re.compile(r"[^\s\"'`\\]+")
_NUMBER = r"(?:\*|[0-9]{1,9})"
_DEVICE = re.compile(
    r"/?|(?:/job:(?:\*|[A-Za-z][A-Za-z0-9_]*)"
    rf"|/replica:{_NUMBER}|/task:{_NUMBER}"
    rf"|/device:(?:\*|[A-Za-z][A-Za-z0-9_]*)(?::{_NUMBER})?"
    rf"|/(?:cpu|CPU|gpu|GPU):{_NUMBER})+"
)


def is_node_name(text: str, internal: bool = False) -> bool:
    """Whether a node may have this name. `internal`: it may begin with "_", as in partitions and in functions."""
    return (_INTERNAL_NODE if internal else _NODE).fullmatch(text) is not None


@cached_by_text(4096)
def is_device_name(text: str) -> bool:
    """Whether the text is a device's name, full, partial or empty: "/job:ps/task:0/device:CPU:0", "/cpu:0", ""."""
    return _DEVICE.fullmatch(text) is not None


@cached_by_text(4096)
def is_word(text: str) -> bool:
    """Whether a function, an attribute or an op may have this name."""
    return text.isprintable() and _WORD.fullmatch(text) is not None


def parse_tensor_name(text: str) -> tuple[str, int]:
    """Splits an input or tensor name: "x" -> ("x", 0), "x:2" -> ("x", 2), "^x" -> ("x", CONTROL)."""
    if text.startswith("^"):
        return text[1:], CONTROL
    if ":" not in text:
        return text, 0
    match = _INPUT.fullmatch(text)
    return (match[1], int(match[2])) if match else (text, 0)


def tensor_name(node: str, index: int) -> str:
    """How a NodeDef spells the input: the reverse of `parse_tensor_name`, shortest form."""
    if index == CONTROL:
        return "^" + node
    return f"{node}:{index}" if index else node


def printable(text: str) -> str:
    """The text in one line of printable characters, for listings and messages; what else it has is escaped, as in
    "a\\nb", and what is too long is cut."""
    cut = text if len(text) <= _SHOWN_CHARACTERS_MAX else f"{text[:_SHOWN_CHARACTERS_MAX]}..."
    return cut if cut.isprintable() else repr(cut)[1:-1]


def shown(text: str | bytes) -> str:
    """The text in quotes, for messages: one line, printable, and cut where it is long."""
    if len(text) <= _SHOWN_CHARACTERS_MAX:
        return repr(text)
    return f"{text[:_SHOWN_CHARACTERS_MAX]!r}... ({len(text)} characters)"
