"""The namespace tf.version: the version of TensorFlow whose names and graphs these are.

`dtf.__version__` is dtf's own version.
"""

from __future__ import annotations

from dtf.build.graph import GRAPH_PRODUCER_VERSION as GRAPH_DEF_VERSION

__all__ = [
    "COMPILER_VERSION", "GIT_VERSION", "GRAPH_DEF_VERSION", "GRAPH_DEF_VERSION_MIN_CONSUMER",
    "GRAPH_DEF_VERSION_MIN_PRODUCER", "VERSION",
]  # fmt: skip

VERSION = "1.15.5"
GIT_VERSION = "dtf"
COMPILER_VERSION = "python"
GRAPH_DEF_VERSION_MIN_CONSUMER = 0
GRAPH_DEF_VERSION_MIN_PRODUCER = 0
