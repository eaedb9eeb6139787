"""slim.prefetch_queue: batches that are assembled before a step asks for them."""

from __future__ import annotations

from typing import Any

import dtf as tf

__all__ = ["prefetch_queue"]


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> tf.FIFOQueue | tf.PaddingFIFOQueue:
    """A queue of `tensors`, each element one whole batch, which a queue runner fills.

    Args:
      tensors: a list, or a dictionary, of tensors; `dequeue` returns the same structure.
      dynamic_pad: whether dimensions of the batches may be unknown.

    Raises:
      ValueError: a shape is not fully defined, and `dynamic_pad` is false.
    """
    names = sorted(tensors) if isinstance(tensors, dict) else None
    flat = [tf.convert_to_tensor(each) for each in ([tensors[key] for key in names] if names else tensors)]
    with tf.name_scope(name, "prefetch_queue", flat):
        kind = tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue
        shapes = [each.get_shape() for each in flat]
        queue = kind(capacity, [each.dtype for each in flat], shapes, names=names, shared_name=shared_name)
        enqueue = queue.enqueue(dict(zip(names, flat, strict=True)) if names else flat)
        tf.train.add_queue_runner(tf.train.QueueRunner(queue, [enqueue] * num_threads))
        full = tf.cast(queue.size(), tf.float32) * (1.0 / capacity)
        tf.summary.scalar(f"fraction_of_{capacity}_full", full)
        return queue
