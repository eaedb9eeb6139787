"""Which variable lies on which parameter server, by the graph that the newest checkpoint was saved with.

Savers write a MetaGraphDef (`model.ckpt-N.meta`) beside each checkpoint; its nodes carry devices, shapes and dtypes.
Reads these few fields only, of dtf's and TensorFlow's files alike.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from math import prod
from pathlib import Path

from dtfctl.wire.protobuf import fields

META_BYTES_MAX = 128 << 20
NAME_MAX = 500
RANK_MAX = 32
"""Of a variable, in bytes of its name and dimensions; what has more is no variable of a trainer."""

BYTES_MAX = 1 << 62
VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
_DEVICE = re.compile(r"/job:(\w+)(?:/replica:\d+)?/task:(\d+)")
_ITEM_BYTES = {
    **dict.fromkeys((1, 3, 12, 22), 4),  # float32, int32, qint32, uint32
    **dict.fromkeys((2, 8, 9, 23), 8),  # float64, complex64, int64, uint64
    **dict.fromkeys((4, 6, 10, 11, 13), 1),
    **dict.fromkeys((5, 14, 16, 17, 19), 2),
    18: 16,
}
"""By DataType. Source: TensorFlow's types.proto."""


@dataclass(frozen=True)
class Variable:
    """`task` is "" where the graph leaves the place open; `shape` has -1 for sizes that are not known."""

    name: str
    task: str
    shape: tuple[int, ...]
    bytes: int


def newest_graph(folder: Path) -> Path | None:
    """The newest `.meta` file there."""
    found: list[tuple[float, Path]] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith(".meta"):
                    status = entry.stat()
                    if status.st_size <= META_BYTES_MAX:
                        found.append((status.st_mtime, Path(entry.path)))
    except OSError:
        return None
    return max(found)[1] if found else None


def variables(data: bytes) -> list[Variable]:
    """Those of a MetaGraphDef, in the graph's order. Raises ValueError, IndexError where it is none."""
    found = []
    for number, _, graph in fields(data):
        if number != 2 or not isinstance(graph, bytes):
            continue
        for key, _, node in fields(graph):
            if key == 1 and isinstance(node, bytes):
                variable = _variable(node)
                if variable is not None:
                    found.append(variable)
    return found


def _variable(node: bytes) -> Variable | None:
    name, device = "", ""
    shape: tuple[int, ...] = ()
    item_bytes = 4
    for number, _, value in fields(node):
        if not isinstance(value, bytes):
            continue
        if number == 1:
            name = value[:NAME_MAX].decode(errors="replace")
        elif number == 2 and value.decode(errors="replace") not in VARIABLES:
            return None
        elif number == 4:
            device = value[:NAME_MAX].decode(errors="replace")
        elif number == 5:
            attribute = {key: each for key, _, each in fields(value)}
            content = attribute.get(2)
            if isinstance(content, bytes) and attribute.get(1) == b"shape":
                shape = _shape(content)
            elif isinstance(content, bytes) and attribute.get(1) == b"dtype":
                dtype = next((each for key, _, each in fields(content) if key == 6), 1)
                item_bytes = _ITEM_BYTES.get(dtype % 100 if isinstance(dtype, int) else 1, 4)
    match = _DEVICE.search(device)
    task = f"{match[1]}:{match[2]}" if match else ""
    return Variable(name, task, shape, min(BYTES_MAX, item_bytes * prod(max(0, size) for size in shape)))


def _shape(attribute: bytes) -> tuple[int, ...]:
    """At most RANK_MAX sizes."""
    sizes: list[int] = []
    for number, _, shape in fields(attribute):
        if number == 7 and isinstance(shape, bytes):
            for key, _, dimension in fields(shape):
                if key == 2 and isinstance(dimension, bytes):
                    size = next((each for part, _, each in fields(dimension) if part == 1), 0)
                    sizes.append(size if isinstance(size, int) and size < 1 << 62 else -1)
    return tuple(sizes[:RANK_MAX])
