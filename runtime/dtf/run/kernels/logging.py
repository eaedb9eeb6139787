"""Kernels that tell what goes on: Print, PrintV2 and Timestamp.

Owns how values are put into words. What they print goes to the standard error of the task that runs the node.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.value_types import Array
from dtf.wire import filesystems


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
def _(node: KernelNode) -> Function:
    message, first_n, summarize = node.attr("message"), node.attr("first_n"), node.attr("summarize")
    message = message.decode() if isinstance(message, bytes) else message

    def print_(step: StepContext, value: np.ndarray, *data: np.ndarray) -> np.ndarray:
        if step.session.node_state(node.name, lambda: _Countdown(first_n)).take():
            print(message + "".join(f"[{summarized(each, summarize)}]" for each in data), file=sys.stderr, flush=True)
        return value

    return print_


@kernel("PrintV2", stateful=True)
def _(node: KernelNode) -> Function:
    stream, end = node.attr("output_stream"), node.attr("end")
    stream, end = (value.decode() if isinstance(value, bytes) else value for value in (stream, end))

    def print_(step: StepContext, text: np.ndarray) -> None:
        line = text.item().decode(errors="replace") + end
        if stream.startswith("file://"):
            with filesystems.open(stream[len("file://") :], "a") as file:
                file.write(line)
            return
        target = sys.stdout if stream == "stdout" else sys.stderr
        target.write(line)
        target.flush()

    return print_


@kernel("Timestamp", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: np.float64(time.time())


def summarized(value: Array, most: int) -> str:
    """The first `most` elements of a value (all: negative), one pair of brackets per row: "[1 2][3...]..."."""
    array = np.asarray(value)
    limit = array.size if most < 0 else most
    words = [_word(each) for each in array.ravel()[:limit]]
    text = _rows(words, array.shape, 0, limit) if array.ndim else " ".join(words)
    return text + ("..." if array.size > limit else "")


def _rows(words: list[str], shape: tuple[int, ...], first: int, limit: int) -> str:
    """The elements from number `first` on that belong to one slice of `shape`; "..." for those past the limit."""
    if len(shape) == 1:
        shown = words[first : min(first + shape[0], limit)]
        return " ".join(shown)
    width = int(np.prod(shape[1:]))
    starts = range(first, min(first + shape[0] * width, limit), max(width, 1)) if width else ()
    rows = []
    for start in starts:
        cut = "..." if len(shape) == 2 and start + width > limit else ""
        rows.append(f"[{_rows(words, shape[1:], start, limit)}{cut}]")
    return "".join(rows)


def _word(element: Array) -> str:
    if isinstance(element, bytes):
        return element.decode(errors="replace")
    if isinstance(element, (bool, np.bool_)):
        return str(int(element))
    return f"{element:g}" if isinstance(element, (float, np.floating)) else str(element)
