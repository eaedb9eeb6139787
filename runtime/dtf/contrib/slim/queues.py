"""slim.queues: queue runners within a block."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import dtf as tf

__all__ = ["NestedQueueRunnerError", "QueueRunners"]


class NestedQueueRunnerError(Exception):
    """Kept for programs that catch it."""


@contextlib.contextmanager
def QueueRunners(session: Any) -> Iterator[None]:  # noqa: N802
    """A block while the graph's queue runners run.

    Raises:
      RuntimeError: by the block, errors of runners.
    """
    coordinator = tf.train.Coordinator()
    threads = tf.train.start_queue_runners(session, coordinator)
    try:
        yield
    finally:
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=120)
