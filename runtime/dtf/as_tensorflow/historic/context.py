"""tensorflow.python.eager.context: there are only graphs, and these say so."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["EAGER_MODE", "GRAPH_MODE", "executing_eagerly", "graph_mode", "in_eager_mode", "in_graph_mode"]

GRAPH_MODE = 0
EAGER_MODE = 1


def executing_eagerly() -> bool:
    """False."""
    return False


def in_eager_mode() -> bool:
    """False."""
    return False


def in_graph_mode() -> bool:
    """True."""
    return True


@contextlib.contextmanager
def graph_mode() -> Iterator[None]:
    """A block that changes nothing."""
    yield
