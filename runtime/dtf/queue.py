"""The namespace tf.queue. Only re-exports classes of `ops/data_flow`."""

from __future__ import annotations

from dtf.build.ops.data_flow import (
    FIFOQueue,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
)

__all__ = ["FIFOQueue", "PaddingFIFOQueue", "PriorityQueue", "QueueBase", "RandomShuffleQueue"]
