"""How much the constants of a graph stand for: a few bytes may declare a shape of gigabytes.

Owns the sum over a graph; how a single tensor is read is `wire.codec`'s.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dtf.wire import codec, limits

__all__ = ["check_repeated"]


def check_repeated(groups: Iterable[Iterable[Any]], known_bytes: int = 0) -> int:
    """The bytes that tensors in attributes of nodes stand for beyond their messages, added to `known_bytes`.

    Raises:
      InvalidArgumentError: a tensor contradicts itself.
      ResourceExhaustedError: the sum is more than `limits.REPEATED_BYTES`.
    """
    total = known_bytes
    for nodes in groups:
        for node in nodes:
            for attr in node.attr.values():
                kind = attr.WhichOneof("value")
                if kind == "tensor":
                    total += codec.repeated_bytes(attr.tensor)
                elif kind == "list" and attr.list.tensor:
                    total += sum(map(codec.repeated_bytes, attr.list.tensor))
    if total > known_bytes:
        limits.REPEATED_BYTES.check(total, "The constants of the graph: what repeats their last values")
    return total
