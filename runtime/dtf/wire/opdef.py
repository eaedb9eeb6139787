"""The op contracts: names, inputs, outputs and attributes of every op this package knows.

Owns the table `opdefs/*.txt`, one op per line, and its parsed form `OpDef`; does not know shapes, gradients
or kernels (tables of their own). A line reads

    MatMul(a: T, b: T) -> (product: T) {transpose_a: bool = false, T: type in [float32, int32]}

Argument kinds: a dtype name, a type attribute (`T`), a repeated one (`N*T`), a list of types (`[Tlist]`), each
possibly as a reference (`Ref(T)`). Attributes: `name: type`, then ` in [allowed]`, ` >= minimum`, ` = default`.
Flags follow the braces: is_stateful, is_commutative, is_aggregate, allows_uninitialized_input.

Lines are indexed when the first op is looked up and parsed one by one as they are needed, so importing costs
nothing. `tests/interop/opdef_lines.py` prints TensorFlow's own registry in this format; a test compares them.

    >>> opdef.get("MatMul").inputs[0].type_attr
    'T'
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

_FOLDER = Path(__file__).parent / "opdefs"
_FLAGS = ("is_stateful", "is_commutative", "is_aggregate", "allows_uninitialized_input")
_LINE = re.compile(
    r"(?P<name>\w+)\((?P<inputs>.*?)\) -> \((?P<outputs>.*?)\)(?: \{(?P<attrs>.*)\})?(?P<flags>[ \w]*)$"
)
_ATTR = re.compile(
    r"(?P<name>\w+): (?P<type>[\w()]+)(?: in (?P<allowed>\[[^]]*\]))?"
    r"(?: >= (?P<minimum>-?\d+))?(?: = (?P<default>.+))?$"
)


LABEL = "_kernel"
"""The attribute by which a node asks for one of several kernels of its op."""


class ArgDef(NamedTuple):
    """One input or output. Exactly one of `type`, `type_attr`, `type_list_attr` is set.

    Attributes:
      type: the fixed DType, or None.
      type_attr: name of the attribute that holds the dtype, or None.
      number_attr: name of the attribute that holds how many tensors of that dtype there are, or None for one.
      type_list_attr: name of the list(type) attribute, one tensor per entry, or None.
      is_ref: the argument is a reference to a variable's buffer.
    """

    name: str
    type: dtypes.DType | None = None
    type_attr: str | None = None
    number_attr: str | None = None
    type_list_attr: str | None = None
    is_ref: bool = False

    @property
    def is_list(self) -> bool:
        """Whether the argument stands for a list of tensors."""
        return self.number_attr is not None or self.type_list_attr is not None


class AttrDef(NamedTuple):
    """One attribute. `default` is a Python value as `codec.attr_to_python` gives it, valid if `has_default`."""

    name: str
    type: str
    has_default: bool = False
    default: Any = None
    allowed: tuple[Any, ...] | None = None
    minimum: int | None = None

    @property
    def has_minimum(self) -> bool:
        """Whether an int, or the length of a list, is bounded below."""
        return self.minimum is not None

    def refusal(self, value: Any) -> str | None:
        """Why the contract does not allow `value`, in the runtime's words; None where it does.

        `value` is what `codec.attr_to_python` gives; a placeholder for one (str) is not looked at.
        """
        if isinstance(value, str):
            return None
        is_list = self.type.startswith("list(")
        if self.allowed is not None:
            for each in value if is_list else [value]:
                if each not in self.allowed:
                    return (
                        f"Value for attr '{self.name}' of {_runtime_text(each)} is not in the list of allowed values: "
                        f"{', '.join(map(_runtime_text, self.allowed))}"
                    )
        if self.minimum is not None:
            if is_list and len(value) < self.minimum:
                return f"Length for attr '{self.name}' of {len(value)} must be at least minimum {self.minimum}"
            if self.type == "int" and value < self.minimum:
                return f"Value for attr '{self.name}' of {value} must be at least minimum {self.minimum}"
        return None


@dataclass(frozen=True)
class OpDef:
    """The contract of one op type."""

    name: str
    inputs: tuple[ArgDef, ...]
    outputs: tuple[ArgDef, ...]
    attrs: tuple[AttrDef, ...]
    is_stateful: bool = False
    is_commutative: bool = False
    is_aggregate: bool = False
    allows_uninitialized_input: bool = False

    @functools.cached_property
    def attr_by_name(self) -> dict[str, AttrDef]:
        """The attributes, keyed by name."""
        return {attr.name: attr for attr in self.attrs}

    # The names of TensorFlow's OpDef message.

    @property
    def input_arg(self) -> tuple[ArgDef, ...]:
        """The inputs."""
        return self.inputs

    @property
    def output_arg(self) -> tuple[ArgDef, ...]:
        """The outputs."""
        return self.outputs

    @property
    def attr(self) -> tuple[AttrDef, ...]:
        """The attributes."""
        return self.attrs


def names() -> list[str]:
    """All op types of the table, sorted."""
    return sorted(_lines())


def exists(name: str) -> bool:
    """Whether the table has the op type `name`."""
    return name in _lines()


@functools.cache
def get(name: str) -> OpDef:
    """The contract of the op type `name`.

    Raises:
      KeyError: the op is not in the table; the message lists near names.
    """
    try:
        return parse(INTERNAL.get(name) or _lines()[name][0])
    except KeyError:
        import difflib  # slow to import, and seldom needed

        near = difflib.get_close_matches(name, _lines(), n=3)
        hint = f" Did you mean {', '.join(near)}?" if near else ""
        raise KeyError(f"Op type not registered '{name}'.{hint}") from None


def parse(line: str) -> OpDef:
    """Parses one line of the table.

    Raises:
      ValueError: the line does not have the form given in the module's docstring.
    """
    match = _LINE.match(line)
    if not match:
        raise ValueError(f"not an op contract: {line!r}")
    flags = match["flags"].split()
    unknown = set(flags) - set(_FLAGS)
    if unknown:
        raise ValueError(f"unknown flag {sorted(unknown)[0]!r} in {line!r}")
    attrs = tuple(_parse_attr(text) for text in _split(match["attrs"] or ""))
    attr_names = {attr.name for attr in attrs}
    return OpDef(
        match["name"],
        tuple(_parse_arg(text, attr_names) for text in _split(match["inputs"])),
        tuple(_parse_arg(text, attr_names) for text in _split(match["outputs"])),
        attrs,
        **{flag: True for flag in flags},
    )


def register(path: Path) -> None:
    """Adds the contracts of another file of this format to the table, for this process; a second call does nothing.

    Raises:
      ValueError: an op of the file is in the table already, with another contract.
    """
    table = _lines()
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        name = line[: line.index("(")]
        known = table.setdefault(name, (line, path))
        if known[0] != line:
            raise ValueError(f"op {name} stands in both {known[1].name} and {path.name}")


INTERNAL = {"_DeviceCopy": "_DeviceCopy(input: T) -> (output: T) {T: type, source: string, target: string}"}
"""What the runtime puts into its own partitions; no contracts of TensorFlow's, and none that `exists` knows."""


@functools.cache
def _lines() -> dict[str, tuple[str, Path]]:
    table: dict[str, tuple[str, Path]] = {}
    for path in sorted(_FOLDER.glob("*.txt")):
        for line in path.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            name = line[: line.index("(")]
            if name in table:
                raise ValueError(f"op {name} stands in both {table[name][1].name} and {path.name}")
            table[name] = (line, path)
    return table


def _split(text: str) -> list[str]:
    """Splits at the commas that stand outside brackets and quotes."""
    parts, depth, quoted, start = [], 0, False, 0
    for position, char in enumerate(text):
        if char == '"' and text[position - 1] != "\\":
            quoted = not quoted
        elif quoted:
            continue
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _parse_arg(text: str, attr_names: set[str]) -> ArgDef:
    name, kind = text.split(": ", 1)
    is_ref = kind.startswith("Ref(")
    if is_ref:
        kind = kind[4:-1]
    if kind.startswith("["):
        return ArgDef(name, type_list_attr=kind[1:-1], is_ref=is_ref)
    number_attr = None
    if "*" in kind:
        number_attr, kind = kind.split("*")
    if kind in attr_names:
        return ArgDef(name, type_attr=kind, number_attr=number_attr, is_ref=is_ref)
    return ArgDef(name, type=dtypes.as_dtype(kind), number_attr=number_attr, is_ref=is_ref)


def _parse_attr(text: str) -> AttrDef:
    match = _ATTR.match(text)
    if not match:
        raise ValueError(f"not an attribute: {text!r}")
    kind = match["type"]
    inner = kind[5:-1] if kind.startswith("list(") else kind
    allowed = None
    if match["allowed"]:
        allowed = tuple(_parse_value(item, inner) for item in _split(match["allowed"][1:-1]))
    default = None
    if match["default"]:
        if kind.startswith("list("):
            default = [_parse_value(item, inner) for item in _split(match["default"][1:-1])]
        else:
            default = _parse_value(match["default"], kind)
    minimum = int(match["minimum"]) if match["minimum"] else None
    return AttrDef(match["name"], kind, match["default"] is not None, default, allowed, minimum)


def _runtime_text(value: Any) -> str:
    if isinstance(value, dtypes.DType):
        return dtypes.runtime_name(value)
    return json.dumps(value.decode("latin1")) if isinstance(value, bytes) else str(value)


def _parse_value(text: str, kind: str) -> Any:
    if kind == "type":
        return dtypes.as_dtype(text)
    if kind == "string":
        return json.loads(text).encode("latin1")
    if kind == "bool":
        return text == "true"
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    if kind == "shape":
        return TensorShape(None if text == "?" else [None if d == -1 else d for d in json.loads(text)])
    if kind == "tensor":
        dtype_name, values = text[len("tensor(") : -1].split(", ", 1)
        return np.array(json.loads(values), dtype=dtype_name)
    raise ValueError(f"attributes of type {kind!r} have no defaults: {text!r}")
