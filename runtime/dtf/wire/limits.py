"""Limits on what files, peers and graphs can make this process take: one table of named settings.

Owns the settings and the checks, which come before memory is taken. A setting is an environment variable, read when it
is needed; its value is a number, with K, M, G or T for powers of 1024. Limits of time are elsewhere.

    limits.DECOMPRESSED_BYTES.check(size, "the decompressed string")
    limits.check_room(shape, element_bytes, "float")

Source: the defaults are TensorFlow's where it has a limit, else what no honest program is known to need.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dtf.wire import errors

__all__ = ["ALL", "Limit", "available_bytes", "check_free", "check_room", "machine_bytes", "text_of"]

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True)
class Limit:
    """One setting.

    Attributes:
      variable: the environment variable.
      default: the limit where the variable is not set; None where it follows from the machine (see `meaning`).
      meaning: what it bounds, for the tour.
    """

    variable: str
    default: int | None
    meaning: str

    @property
    def value(self) -> int:
        """The limit. Raises InvalidArgumentError where the variable holds no number."""
        text = os.environ.get(self.variable)
        if not text:
            return machine_bytes() // 2 if self.default is None else self.default
        digits, unit = (text[:-1], text[-1:].upper()) if text[-1:].upper() in _UNITS else (text, "")
        if not digits.isdecimal():
            message = f"The environment variable {self.variable} must be a number such as 512M; it is {text!r}."
            raise errors.InvalidArgumentError.of(message)
        return int(digits) * _UNITS.get(unit, 1)

    def allows(self, amount: int) -> bool:
        """Whether so much is within the limit."""
        return amount <= self.value

    def check(self, amount: int, what: str, kind: Any = errors.ResourceExhaustedError) -> None:
        """Raises `kind`, ResourceExhaustedError by default, when `what` would take more than the limit."""
        limit = self.value
        if amount > limit:
            raise kind.of(f"{what}: {text_of(amount)} is more than the limit of {text_of(limit)} ({self.variable})")


MESSAGE_BYTES = Limit("DTF_MAX_MESSAGE_BYTES", None, "one message of a peer; half of the machine's memory by default")
TENSOR_BYTES = Limit(
    "DTF_MAX_TENSOR_BYTES", 1 << 62, "one tensor that an op makes of a shape; the memory that is free bounds it as well"
)
REPEATED_BYTES = Limit(
    "DTF_MAX_REPEATED_BYTES", 1 << 30, "what a constant's shape stands for beyond its values; also in all of a graph"
)
DECOMPRESSED_BYTES = Limit("DTF_MAX_DECOMPRESSED_BYTES", 1 << 30, "one decompressed string, record, or block of a file")
STREAM_BYTES = Limit(
    "DTF_MAX_STREAM_BYTES", 1 << 30, "one string, line or record of a device, a pipe or a compressed file"
)
IMAGE_ELEMENTS = Limit("DTF_MAX_IMAGE_ELEMENTS", 1 << 29, "height x width x channels x frames of an image file")
CHECKPOINT_SHARDS = Limit("DTF_MAX_CHECKPOINT_SHARDS", 100_000, "data files that the index of a checkpoint declares")
SESSIONS = Limit("DTF_MAX_SESSIONS", 10_000, "sessions that one task serves at a time")
SESSIONS_PER_PEER = Limit(
    "DTF_MAX_SESSIONS_PER_PEER", 5000, "sessions that processes of one address have open at one task"
)
SHARED_GRAPHS = Limit(
    "DTF_MAX_SHARED_GRAPHS", 2000, "graphs at one task of masters without a session there, the last used ones"
)
FUNCTION_DEPTH = Limit("DTF_MAX_FUNCTION_DEPTH", 1000, "calls of functions inside of each other while a step runs")
INLINED_NODES = Limit("DTF_MAX_INLINED_NODES", 50_000, "nodes of bodies that take the place of their calls in a graph")

ALL = (
    MESSAGE_BYTES, TENSOR_BYTES, REPEATED_BYTES, DECOMPRESSED_BYTES, STREAM_BYTES, IMAGE_ELEMENTS, CHECKPOINT_SHARDS,
    SESSIONS, SESSIONS_PER_PEER, SHARED_GRAPHS, FUNCTION_DEPTH, INLINED_NODES,
)  # fmt: skip

_LOOKED_AT_FROM_BYTES = 1 << 28
"""Smaller tensors do not have the free memory looked at, which takes 100 us."""


def check_room(shape: Sequence[int], element_bytes: int, type_name: object = "") -> None:
    """Raises ResourceExhaustedError when there is no room for a tensor, before its memory is taken.

    Args:
      element_bytes: bytes per element; 8 for strings and other objects, which take at least that.
      type_name: for the message.
    """
    size = math.prod(shape) * element_bytes
    if size < _LOOKED_AT_FROM_BYTES and TENSOR_BYTES.variable not in os.environ:
        return
    what = f"OOM when allocating tensor with shape[{','.join(map(str, shape))}]"
    what += f" and type {type_name}" if type_name else ""
    TENSOR_BYTES.check(size, what)
    check_free(size, what)


def check_free(amount: int, what: str) -> None:
    """Raises ResourceExhaustedError when so many bytes more than are taken already are not free."""
    if amount >= _LOOKED_AT_FROM_BYTES and amount > (free := available_bytes()):
        message = f"{what}: {text_of(amount)} is more than the {text_of(free)} of memory that are free"
        raise errors.ResourceExhaustedError.of(message)


def text_of(amount: int) -> str:
    """A number as messages have it: exact, with a power of 1024 beside large ones."""
    for unit, size in reversed(_UNITS.items()):
        if amount >= size << 3:
            return f"{amount} ({amount / size:.1f}{unit})"
    return str(amount)


@functools.cache
def machine_bytes() -> int:
    """The memory that this process may use: the machine's, or its control group's if that is less."""
    return min([_of_meminfo("MemTotal"), *(limit for limit, _ in _groups())])


def available_bytes() -> int:
    """The memory that is free now without swapping, in the machine and in this process's control group."""
    return max(0, min([_of_meminfo("MemAvailable"), *(limit - used for limit, used in _groups())]))


def _of_meminfo(name: str) -> int:
    """A line of /proc/meminfo in bytes; more than anybody has where there is no such file."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith(f"{name}:"):
                    return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        pass
    return 1 << 62


_GROUP_FILES = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory.stat", "inactive_file"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        "/sys/fs/cgroup/memory/memory.stat",
        "total_inactive_file",
    ),
)


def _groups() -> list[tuple[int, int]]:
    """(limit, used without caches) in bytes of each control group of memory that bounds this process."""
    found = []
    for limit_file, used_file, stat_file, cached_name in _GROUP_FILES:
        try:
            limit = int(_text(limit_file))
            used = int(_text(used_file))
            stat = dict(line.split(" ", 1) for line in _text(stat_file).splitlines())
            found.append((limit, max(0, used - int(stat.get(cached_name, 0)))))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return found


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:
        return file.read().strip()
