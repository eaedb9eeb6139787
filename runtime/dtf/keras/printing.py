"""The table that `summary` prints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def print_summary(
    name: str, layers: Sequence[tuple[str, str, int]], total: int, print_fn: Callable[[str], Any]
) -> None:
    """Prints (layer, output shape, number of parameters) of each layer, and the total."""
    rows = [("Layer (type)", "Output Shape", "Param #"), *((one, two, f"{three:,}") for one, two, three in layers)]
    widths = [max(len(row[column]) for row in rows) + 2 for column in range(3)]
    print_fn(f'Model: "{name}"')
    for row in rows:
        print_fn("".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    print_fn(f"Total params: {total:,}")
