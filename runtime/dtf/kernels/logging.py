"""Kernels that tell what goes on: Print, PrintV2 and Timestamp.

Owns how values are put into words. What they print goes to the standard error of the task that runs the node.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import numpy as np

from dtf.kernels import kernel


class _Countdown:
    """How many lines a Print node may still write. Its lock guards the count."""

    def __init__(self, count: int) -> None:
        self._left = count
        self._lock = threading.Lock()

    def take(self) -> bool:
        with self._lock:
            if self._left == 0:
                return False
            self._left -= 1
            return True


@kernel("Print", stateful=True)
def _(node):
    message, first_n, summarize = node.attr("message"), node.attr("first_n"), node.attr("summarize")
    message = message.decode() if isinstance(message, bytes) else message

    def print_(step, value, *data):
        if step.session.node_state(node.name, lambda: _Countdown(first_n)).take():
            print(message + "".join(f"[{summarized(each, summarize)}]" for each in data), file=sys.stderr, flush=True)
        return value

    return print_


@kernel("PrintV2", stateful=True)
def _(node):
    stream, end = node.attr("output_stream"), node.attr("end")
    stream, end = (value.decode() if isinstance(value, bytes) else value for value in (stream, end))

    def print_(step, text):
        line = text.item().decode(errors="replace") + end
        if stream.startswith("file://"):
            with open(stream[len("file://") :], "a") as file:
                file.write(line)
            return
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.write(line)
        target.flush()

    return print_


@kernel("Timestamp", stateful=True)
def _(node):
    return lambda step: np.float64(time.time())


def summarized(value: Any, most: int) -> str:
    """The first `most` elements of a value (all: negative), row by row in brackets: "[1 2][3...]"."""
    array = np.asarray(value)
    flat = array.ravel()
    shown = flat.size if most < 0 else min(most, flat.size)
    words = [each.decode(errors="replace") if isinstance(each, bytes) else f"{each}" for each in flat[:shown].tolist()]
    cut = "..." if shown < flat.size else ""
    if array.ndim < 2:
        return " ".join(words) + cut
    width = array.shape[-1] or 1
    rows = [" ".join(words[i : i + width]) for i in range(0, len(words), width)] or [""]
    return "".join(f"[{row}" + ("]" if i < len(rows) - 1 else cut + "]") for i, row in enumerate(rows))
