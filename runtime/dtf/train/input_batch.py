"""Batches that threads gather in a queue: `batch`, `shuffle_batch`, their joined and conditional kinds.

Owns the queue of batches and the ops that fill it. SparseTensors wait in a table of the task, and their handles in
the queue. The QueueRunners' threads run the enqueue operations; producers of the elements are `input`'s.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/batch and neighbouring pages
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops import control_flow, filling, gathering, math, ordering
from dtf.build.ops.data_flow import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Operation, Tensor
from dtf.train.input import fullness
from dtf.train.queue_runner import QueueRunner, add_queue_runner
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, as_shape

__all__ = [
    "batch", "batch_join", "maybe_batch", "maybe_batch_join", "maybe_shuffle_batch", "maybe_shuffle_batch_join",
    "shuffle_batch", "shuffle_batch_join",
]  # fmt: skip


@dataclass(frozen=True)
class _Queue:
    """How a queue of batches is to be made.

    Attributes:
      scope: the default name of the block.
      make: (dtypes, shapes) -> the queue.
      capacity, least: the elements that the queue holds at most, and must keep at least.
      allow_smaller: whether the last batch may be smaller.
      batch_size, enqueue_many, shapes: as in the public functions.
    """

    scope: str
    make: Callable[[list[Any], list[TensorShape]], QueueBase]
    capacity: int
    least: int | None
    allow_smaller: bool
    batch_size: Any
    enqueue_many: bool
    shapes: Any


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Makes batches of elements in input order.

    Args:
      tensors: a tensor, or a list or dictionary of tensors and SparseTensors: one element, or with `enqueue_many` many
        along the first dimension.
      num_threads: how many threads enqueue; with more than one the order is not fixed.
      capacity: how many elements the queue holds.
      shapes: of an element's tensors; as far as they are known if None. Without `dynamic_pad` they must be.
      dynamic_pad: fill elements of one batch up to one shape, with zeros and empty strings.
      allow_smaller_final_batch: give the rest when the input ends; it is dropped otherwise.
      shared_name: of the queue, for several sessions.

    Returns:
      `tensors` in the same structure (a list of one: the tensor itself) with a new first dimension. A step that runs
      them raises OutOfRangeError at the end of the input.

    Raises:
      ValueError: shapes are not known, or nothing is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/train/batch
    """
    return maybe_batch(
        tensors, True, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
        shared_name, name,
    )  # fmt: skip


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of the elements whose `keep_input` is true: a bool scalar, or with `enqueue_many` a vector."""
    queue = _fifo(
        "batch", batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name
    )
    return _batches(queue, [tensors], keep_input, name, num_threads)


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of elements from several places, with a thread for each of `tensors_list`."""
    return maybe_batch_join(
        tensors_list, True, batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
        shared_name, name,
    )  # fmt: skip


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` of the elements whose `keep_input` is true."""
    queue = _fifo(
        "batch_join", batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name
    )
    return _batches(queue, _lists(tensors_list), keep_input, name)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Makes batches of elements drawn from a queue that keeps at least `min_after_dequeue`. The other arguments are as
    in `batch`."""
    return maybe_shuffle_batch(
        tensors, batch_size, capacity, min_after_dequeue, True, num_threads, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of the elements whose `keep_input` is true."""
    queue = _shuffling(
        "shuffle_batch", batch_size, capacity, min_after_dequeue, seed, enqueue_many, shapes, allow_smaller_final_batch,
        shared_name,
    )  # fmt: skip
    return _batches(queue, [tensors], keep_input, name, num_threads)


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of elements from several places, with a thread for each of `tensors_list`."""
    return maybe_shuffle_batch_join(
        tensors_list, batch_size, capacity, min_after_dequeue, True, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name, name,
    )  # fmt: skip


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch_join` of the elements whose `keep_input` is true."""
    queue = _shuffling(
        "shuffle_batch_join", batch_size, capacity, min_after_dequeue, seed, enqueue_many, shapes,
        allow_smaller_final_batch, shared_name,
    )  # fmt: skip
    return _batches(queue, _lists(tensors_list), keep_input, name)


def _fifo(
    scope: str,
    batch_size: Any,
    capacity: int,
    enqueue_many: bool,
    shapes: Any,
    dynamic_pad: bool,
    allow_smaller: bool,
    shared_name: str | None,
) -> _Queue:
    kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue

    def make(types: list[Any], sizes: list[TensorShape]) -> QueueBase:
        if not dynamic_pad:
            _check_defined(sizes)
        return kind(capacity=capacity, dtypes=types, shapes=sizes, shared_name=shared_name)

    return _Queue(scope, make, capacity, None, allow_smaller, batch_size, enqueue_many, shapes)


def _shuffling(
    scope: str,
    batch_size: Any,
    capacity: int,
    least: int,
    seed: int | None,
    enqueue_many: bool,
    shapes: Any,
    allow_smaller: bool,
    shared_name: str | None,
) -> _Queue:
    if capacity <= least:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {least}.")

    def make(types: list[Any], sizes: list[TensorShape]) -> QueueBase:
        _check_defined(sizes)
        return RandomShuffleQueue(
            capacity=capacity,
            min_after_dequeue=least,
            seed=seed,
            dtypes=types,
            shapes=sizes,
            shared_name=shared_name,
        )

    return _Queue(scope, make, capacity, least, allow_smaller, batch_size, enqueue_many, shapes)


def _batches(wanted: _Queue, sources: Sequence[Any], keep_input: Any, name: str | None, num_threads: int = 1) -> Any:
    """The queue's batches in the structure of the first source.

    Each source is enqueued by `num_threads` threads.
    """
    if not isinstance(sources, list | tuple) or not sources:
        raise ValueError("Expected at least one set of tensors")
    flat = [_as_list(source) for source in sources]
    with name_scope(name, wanted.scope, [*(each for tensors in flat for each in tensors), keep_input]) as scope:
        flat = [[_converted(each) for each in tensors] for tensors in flat]
        for tensors in flat:
            if not tensors:
                raise ValueError("Expected at least one tensor in batch().")
            if len(tensors) != len(flat[0]):
                raise ValueError("Expected the same number of tensors from every source")
        keep = _checked_keep(keep_input, wanted.enqueue_many)
        maps = _SparseMaps(flat[0], wanted.enqueue_many)
        stored = [maps.stored(tensors, keep) for tensors in flat]
        types = [each.dtype.base_dtype for each in stored[0]]
        for tensors in stored[1:]:
            found = [each.dtype.base_dtype for each in tensors]
            if found != types:
                raise TypeError(
                    f"Expected types to be consistent: {', '.join(each.name for each in types)} vs. "
                    f"{', '.join(each.name for each in found)}."
                )
        queue = wanted.make(types, _shapes(stored, wanted.shapes, wanted.enqueue_many))
        operations = [_enqueue(queue, tensors, keep, wanted.enqueue_many) for tensors in stored]
        add_queue_runner(QueueRunner(queue, operations * num_threads))
        _summarize(queue, wanted)
        take = queue.dequeue_up_to if wanted.allow_smaller else queue.dequeue_many
        taken = take(wanted.batch_size, name=scope)
        restored = maps.restored(taken if isinstance(taken, list | tuple) else [taken])
    return _like(sources[0], restored)


def _lists(tensors_list: Any) -> Any:
    """The sources of a join: each must be a list or a dict, so that a tensor by itself is refused as not iterable."""
    if isinstance(tensors_list, list | tuple):
        for tensors in tensors_list:
            iter(tensors)
    return tensors_list


def _check_defined(shapes: Sequence[TensorShape]) -> None:
    if not all(shape.is_fully_defined() for shape in shapes):
        raise ValueError(f"All shapes must be fully defined: {list(shapes)}")


def _summarize(queue: QueueBase, wanted: _Queue) -> None:
    if wanted.least is None:
        fullness(f"fraction_of_{wanted.capacity}_full", queue.size(), wanted.capacity)
        return
    above = math.maximum(0, queue.size() - wanted.least)
    room = wanted.capacity - wanted.least
    fullness(f"fraction_over_{wanted.least}_of_{room}_full", above, room)


def _as_list(tensors: Any) -> list[Any]:
    if isinstance(tensors, Mapping):
        return [tensors[key] for key in sorted(tensors, key=str)]
    return list(tensors) if isinstance(tensors, list | tuple) else [tensors]


def _like(tensors: Any, results: Sequence[Any]) -> Any:
    if isinstance(tensors, Mapping):
        return dict(zip(sorted(tensors, key=str), results, strict=True))
    return results[0] if len(results) == 1 else list(results)


def _converted(value: Any) -> Any:
    return value if isinstance(value, SparseTensor) else convert_to_tensor(value)


def _checked_keep(keep_input: Any, enqueue_many: bool) -> Tensor:
    keep = convert_to_tensor(keep_input, dtypes.bool)
    if keep.shape.ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and keep.shape.ndims:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if keep.shape.ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    return keep


def _shapes(stored: Sequence[Sequence[Tensor]], shapes: Any, enqueue_many: bool) -> list[TensorShape]:
    """For each component, the known part of its elements' shape."""
    if shapes is not None:
        return [as_shape(each) for each in shapes]
    found = []
    for column in zip(*stored, strict=True):
        common = column[0].shape
        for tensor in column[1:]:
            common = common.most_specific_compatible_shape(tensor.shape)
        if common.ndims is None:
            raise ValueError(f"Cannot infer Tensor's rank: {column[0]}")
        found.append(common[1:] if enqueue_many else common)
    return found


def _enqueue(queue: QueueBase, tensors: list[Tensor], keep: Tensor, enqueue_many: bool) -> Operation | Tensor:
    enqueue = queue.enqueue_many if enqueue_many else queue.enqueue
    if keep.shape.ndims == 1:
        is_kept = math.cast(keep, dtypes.int32)
        return enqueue([gathering.dynamic_partition(each, is_kept, 2)[1] for each in tensors])
    known = constant_value(keep)
    if known is not None:
        return enqueue(tensors) if known else ordering.no_op()
    return control_flow.cond(keep, lambda: enqueue(tensors), ordering.no_op)


class _SparseMaps:
    """The tables that hold the SparseTensors of queued elements, by component."""

    def __init__(self, tensors: Sequence[Any], enqueue_many: bool) -> None:
        self._like = list(tensors)
        self._enqueue_many = enqueue_many
        self._names: dict[int, str] = {}

    def stored(self, tensors: Sequence[Any], keep: Tensor) -> list[Tensor]:
        """Returns Tensors; each SparseTensor is replaced by its handle in a table."""
        return [
            self._store(number, each, keep) if isinstance(each, SparseTensor) else each
            for number, each in enumerate(tensors)
        ]

    def restored(self, tensors: Sequence[Tensor]) -> list[Any]:
        """Returns the batches; handles are replaced by the SparseTensors that they stand for."""
        return [
            self._restore(number, tensor) if number in self._names else tensor for number, tensor in enumerate(tensors)
        ]

    def _store(self, number: int, sparse: SparseTensor, keep: Tensor) -> Tensor:
        def add() -> Tensor:
            return apply_op(
                "AddManySparseToTensorsMap" if self._enqueue_many else "AddSparseToTensorsMap",
                None,
                sparse_indices=sparse.indices,
                sparse_values=sparse.values,
                sparse_shape=sparse.dense_shape,
                shared_name=self._names.get(number, ""),
            )

        is_kept = constant_value(keep)
        if is_kept is not None or keep.shape.ndims == 1:
            handles = add()
            self._names.setdefault(number, handles.op.name)
        else:
            # Do not store a SparseTensor whose element is not enqueued: it would stay in the table
            # for ever.
            made: list[Tensor] = []

            def remember() -> Tensor:
                made.append(add())
                return made[0]

            def none() -> Tensor:
                lengths: Any = sparse.dense_shape[:1] if self._enqueue_many else []
                return filling.zeros(lengths, dtypes.int64) - 1

            handles = control_flow.cond(keep, remember, none)
            self._names.setdefault(number, made[0].op.name)
        handles.set_shape([None] if self._enqueue_many else [])
        return handles

    def _restore(self, number: int, handles: Tensor) -> SparseTensor:
        sparse = self._like[number]
        indices, values, shape = apply_op(
            "TakeManySparseFromTensorsMap",
            None,
            sparse_handles=handles,
            dtype=sparse.dtype,
            shared_name=self._names[number],
        )
        rank = sparse.get_shape().ndims
        rank = rank if rank is None or self._enqueue_many else rank + 1
        indices.set_shape([None, rank])
        shape.set_shape([rank])
        return SparseTensor(indices, values, shape)
