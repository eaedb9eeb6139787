"""tf.contrib.training.bucket_by_sequence_length: batches of examples of similar length.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/contrib/training/bucket_by_sequence_length
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dtf as tf

__all__ = ["bucket", "bucket_by_sequence_length"]


def bucket(
    tensors: Any, which_bucket: Any, batch_size: Any, num_buckets: int, num_threads: int = 1, capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, keep_input: Any = True, shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(bucket, batch) of examples that were put into buckets by the scalar `which_bucket`.

    The arguments are as in tf.train.batch; `batch_size` and `bucket_capacities` may be lists with one entry for each
    bucket.

    Raises:
      ValueError: a list does not have one entry per bucket, or the number of buckets is below two.
    """
    if num_buckets < 2:
        raise ValueError("num_buckets must be > 1")
    sizes = [batch_size] * num_buckets if isinstance(batch_size, int) else list(batch_size)
    capacities = [capacity] * num_buckets if bucket_capacities is None else list(bucket_capacities)
    if len(sizes) != num_buckets or len(capacities) != num_buckets:
        raise ValueError(f"batch_size and bucket_capacities must have {num_buckets} entries")
    with tf.name_scope(name, "bucket", [tensors]) as scope:
        keys = list(tensors) if isinstance(tensors, dict) else None
        flat = [tf.convert_to_tensor(each) for each in (tensors.values() if keys else tensors)]
        each_shape = [each.get_shape() for each in flat] if shapes is None else [tf.TensorShape(s) for s in shapes]
        types = [each.dtype for each in flat]
        kind = tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue
        queues = [
            kind(capacities[index], types, each_shape, name=f"bucket_queue_{index}") for index in range(num_buckets)
        ]
        batched = [tf.TensorShape([None]).concatenate(shape) for shape in each_shape]
        top = (tf.PaddingFIFOQueue if dynamic_pad else tf.FIFOQueue)(
            capacity, [tf.int32, *types], [tf.TensorShape([]), *batched] if dynamic_pad else None,
            shared_name=shared_name, name="top_queue",
        )  # fmt: skip

        def enqueue(index: int) -> Any:
            return lambda: tf.group(queues[index].enqueue(flat), name=f"enqueue_{index}")

        def put() -> Any:
            pairs = [(tf.equal(which_bucket, index), enqueue(index)) for index in range(num_buckets)]
            return tf.group(*[tf.cond(is_it, function, tf.no_op) for is_it, function in pairs])

        kept = tf.cond(tf.cast(keep_input, tf.bool), put, tf.no_op)
        ends = (tf.errors.OutOfRangeError, tf.errors.CancelledError)
        runner = tf.train.QueueRunner(
            queues[0],
            [kept] * num_threads,
            queue_closed_exception_types=ends,
            close_op=tf.group(*[queue.close() for queue in queues]),
            cancel_op=tf.group(*[queue.close(cancel_pending_enqueues=True) for queue in queues]),
        )
        tf.train.add_queue_runner(runner)
        enqueues = []
        for index, queue in enumerate(queues):
            take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
            values = take(sizes[index], name=f"read_bucket_{index}")
            enqueues.append(top.enqueue([tf.constant(index), *(values if isinstance(values, list) else [values])]))
        tf.train.add_queue_runner(tf.train.QueueRunner(top, enqueues, queue_closed_exception_types=ends))
        found = top.dequeue(name=scope)
        size = sizes[0] if len(set(sizes)) == 1 and not allow_smaller_final_batch else None
        for tensor, shape in zip(found[1:], each_shape, strict=True):
            tensor.set_shape(tf.TensorShape([size]).concatenate(shape))
        return found[0], dict(zip(keys, found[1:], strict=True)) if keys else list(found[1:])


def bucket_by_sequence_length(
    input_length: Any, tensors: Any, batch_size: Any, bucket_boundaries: Sequence[int], num_threads: int = 1,
    capacity: int = 32, bucket_capacities: Sequence[int] | None = None, shapes: Any = None, dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False, keep_input: Any = True, shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """(lengths, batch) of examples whose lengths are between the same two boundaries.

    Args:
      input_length: the length of the example, a scalar int32.
      bucket_boundaries: increasing lengths; a length that is equal to one belongs to the bucket above it.

    Raises:
      ValueError: the boundaries do not increase.
      TypeError: they are not integers.
    """
    if not bucket_boundaries or any(b <= a for a, b in zip(bucket_boundaries, bucket_boundaries[1:], strict=False)):
        raise ValueError(f"bucket_boundaries must contain increasing values: {bucket_boundaries}")
    if not all(isinstance(each, int) for each in bucket_boundaries):
        raise TypeError("bucket boundaries must be integers")
    with tf.name_scope(name, "bucket_by_sequence_length", [input_length]) as scope:
        length = tf.to_int32(tf.convert_to_tensor(input_length))
        which = tf.reduce_sum(tf.to_int32(tf.greater_equal(length, tf.constant(list(bucket_boundaries)))))
        is_dict = isinstance(tensors, dict)
        given = {"": length, **tensors} if is_dict else [length, *tensors]
        given_shapes = None if shapes is None else [tf.TensorShape([]), *shapes]
        _, found = bucket(
            given, which, batch_size, len(bucket_boundaries) + 1, num_threads, capacity, bucket_capacities,
            given_shapes, dynamic_pad, allow_smaller_final_batch, keep_input, shared_name, scope.rstrip("/"),
        )  # fmt: skip
        return (found.pop(""), found) if is_dict else (found[0], found[1:])
