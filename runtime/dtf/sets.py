"""The namespace tf.sets. Only re-exports functions of `ops.sets`."""

from __future__ import annotations

from dtf.build.ops.sets import set_difference, set_intersection, set_size, set_union

difference, intersection, size, union = set_difference, set_intersection, set_size, set_union

__all__ = [
    "difference", "intersection", "set_difference", "set_intersection", "set_size", "set_union", "size", "union",
]  # fmt: skip
