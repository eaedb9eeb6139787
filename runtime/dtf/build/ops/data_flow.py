"""Queues and accumulators as TensorFlow 1.x's classes: `tf.FIFOQueue` and similar classes,
`tf.ConditionalAccumulator`.

Owns the classes that make the nodes, and the nodes' static shapes. The queues and accumulators themselves are in
`run/state`; `kernels/data_flow.py` runs the ops.

Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/queue
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import get_default_graph, name_scope
from dtf.build.ops.random import get_seed
from dtf.build.shape_rules import no_outputs, scalar, shape_rule, unknown
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "ConditionalAccumulator",
    "ConditionalAccumulatorBase",
    "FIFOQueue",
    "PaddingFIFOQueue",
    "PriorityQueue",
    "QueueBase",
    "RandomShuffleQueue",
    "SparseConditionalAccumulator",
    "delete_session_tensor",
    "get_session_handle",
    "get_session_tensor",
]


class Components:
    """The components of the entries that a queue or a staging area holds."""

    _dtypes: list[Any]
    _shapes: list[TensorShape]
    _names: list[str] | None

    @property
    def dtypes(self) -> list[Any]:
        """The dtypes of an entry's components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """Their static shapes."""
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        """Their names, or None."""
        return self._names


class QueueBase(Components):
    """A queue of tuples of tensors that a task keeps between steps.

    Enqueues wait while it is full, dequeues while it has too little. A closed queue takes in nothing more
    (CancelledError) and ends dequeues that it cannot serve with OutOfRangeError. With `names`, tuples are
    dictionaries.

    Made through its subclasses, or here around the handle of a queue that exists.
    """

    def __init__(self, dtypes: Any, shapes: Any, names: Any, queue_ref: Tensor) -> None:
        self._dtypes = list(dtypes)
        self._shapes = (
            [TensorShape(None)] * len(self._dtypes) if shapes is None else [as_shape(each) for each in shapes]
        )
        if len(self._shapes) != len(self._dtypes):
            raise ValueError(f"Queue shapes must have the same length as dtypes, received {shapes} and {dtypes}")
        if names is not None and len(names) != len(self._dtypes):
            raise ValueError(f"List of names must have the same length as the list of dtypes: {names}, {dtypes}")
        self._names = None if names is None else list(names)
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.split("/")[-1]

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """The queue at position `index` (a scalar tensor) of several queues with the same components.

        Raises:
          TypeError: something is not a queue, or their components have different dtypes.
          ValueError: their components have different names.
        """
        if not queues or not all(isinstance(queue, QueueBase) for queue in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(queue.dtypes != first.dtypes for queue in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(queue.names != first.names for queue in queues):
            raise ValueError("Queues do not have matching component names.")
        shapes = [
            functools.reduce(TensorShape.most_specific_compatible_shape, each)
            for each in zip(*(queue.shapes for queue in queues), strict=True)
        ]
        handles = apply_op("Pack", values=[queue.queue_ref for queue in queues])
        chosen = apply_op("GatherV2", params=handles, indices=index, axis=0)
        return QueueBase(first.dtypes, shapes, first.names, chosen)

    @property
    def queue_ref(self) -> Tensor:
        """The handle."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the node that makes the queue."""
        return self._queue_ref.op.name

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that adds one tuple (a tensor, a list, or with names a dictionary)."""
        with name_scope(name, f"{self._name}_enqueue", self._values(vals)) as scope:
            tensors = self._components(vals)
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                tensor.shape.assert_is_compatible_with(shape)
            return apply_op("QueueEnqueueV2", scope, handle=self._queue_ref, components=tensors)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """The operation that adds a tuple for each slice along the first dimension of the components."""
        with name_scope(name, f"{self._name}_EnqueueMany", self._values(vals)) as scope:
            tensors = self._components(vals)
            batch = TensorShape([None])
            for tensor, shape in zip(tensors, self._shapes, strict=True):
                batch = batch.merge_with(tensor.shape.with_rank_at_least(1)[:1])
                tensor.shape[1:].assert_is_compatible_with(shape)
            return apply_op("QueueEnqueueManyV2", scope, handle=self._queue_ref, components=tensors)

    def dequeue(self, name: str | None = None) -> Any:
        """One tuple: a tensor, a list, or with names a dictionary."""
        made = apply_op(
            "QueueDequeueV2", name or f"{self._name}_Dequeue", handle=self._queue_ref, component_types=self._dtypes
        )
        return self._result(made, TensorShape([]))

    def dequeue_many(self, n: TensorLike, name: str | None = None) -> Any:
        """`n` tuples, stacked along a new first dimension; they are waited for."""
        made = apply_op(
            "QueueDequeueManyV2",
            name or f"{self._name}_DequeueMany",
            handle=self._queue_ref,
            n=n,
            component_types=self._dtypes,
        )
        count = constant_value(convert_to_tensor(n))
        return self._result(made, TensorShape([None if count is None else int(count)]))

    def dequeue_up_to(self, n: TensorLike, name: str | None = None) -> Any:
        """As `dequeue_many`, but fewer (at least one) when the queue is closed."""
        made = apply_op(
            "QueueDequeueUpToV2",
            name or f"{self._name}_DequeueUpTo",
            handle=self._queue_ref,
            n=n,
            component_types=self._dtypes,
        )
        return self._result(made, TensorShape([None]))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """The operation that closes the queue."""
        return apply_op(
            "QueueCloseV2",
            name or f"{self._name}_Close",
            handle=self._queue_ref,
            cancel_pending_enqueues=cancel_pending_enqueues,
        )

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether it is closed, a bool scalar."""
        return apply_op("QueueIsClosedV2", name or f"{self._name}_is_closed", handle=self._queue_ref)

    def size(self, name: str | None = None) -> Tensor:
        """How many tuples it holds, an int32 scalar."""
        return apply_op("QueueSizeV2", name or f"{self._name}_Size", handle=self._queue_ref)

    def _values(self, vals: Any) -> list[Any]:
        values = (
            list(vals.values()) if isinstance(vals, dict) else list(vals) if isinstance(vals, (list, tuple)) else [vals]
        )
        return [value for value in values if isinstance(value, Tensor)]

    def _components(self, vals: Any) -> list[Tensor]:
        if isinstance(vals, dict):
            if self._names is None:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals):
                raise ValueError(
                    f"Keys in dictionary to enqueue do not match names of Queue.  Dictionary: {sorted(vals)}, "
                    f"Queue: {sorted(self._names)}"
                )
            vals = [vals[name] for name in self._names]
        else:
            if self._names is not None:
                raise ValueError("You must enqueue a dictionary in a Queue with names")
            # A single component needs no list around it.
            vals = list(vals) if isinstance(vals, (list, tuple)) else [vals]
        if len(vals) != len(self._dtypes):
            raise ValueError(f"A tuple of this queue has {len(self._dtypes)} components, got {len(vals)}")
        return [
            convert_to_tensor(value, dtype=dtype, name=f"component_{i}")
            for i, (value, dtype) in enumerate(zip(vals, self._dtypes, strict=True))
        ]

    def _result(self, made: Any, leading: TensorShape) -> Any:
        tensors = list(made) if isinstance(made, (list, tuple)) else [made]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(leading.concatenate(shape))
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors


class FIFOQueue(QueueBase):
    """First in, first out."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        """At most `capacity` tuples (negative: no bound) of these dtypes; one shape per component, or anything.

        Queues of one `shared_name` are one queue, in every session of the task.
        """
        types, shapes, names = _components_of(dtypes, shapes, names)
        ref = apply_op(
            "FIFOQueueV2", name, component_types=types, shapes=shapes, capacity=capacity, shared_name=shared_name
        )
        super().__init__(types, shapes, names, ref)


class RandomShuffleQueue(QueueBase):
    """Gives its tuples in random order, and keeps some back to shuffle well."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        """As FIFOQueue; keeps at least `min_after_dequeue` tuples until it is closed."""
        types, shapes, names = _components_of(dtypes, shapes, names)
        seed1, seed2 = get_seed(seed)
        ref = apply_op(
            "RandomShuffleQueueV2",
            name,
            component_types=types,
            shapes=shapes,
            capacity=capacity,
            min_after_dequeue=min_after_dequeue,
            seed=seed1 or 0,
            seed2=seed2 or 0,
            shared_name=shared_name,
        )
        super().__init__(types, shapes, names, ref)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose shapes may have unknown sizes: dequeue_many pads with zeros to the largest."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        """As FIFOQueue; `shapes` have a known rank each."""
        types, shapes, names = _components_of(dtypes, shapes, names)
        if shapes is None or len(shapes) != len(types):
            raise ValueError("Shapes must be provided for all components.")
        if any(shape.ndims is None for shape in shapes):
            raise ValueError(f"A PaddingFIFOQueue pads shapes of known rank; not {shapes}.")
        ref = apply_op(
            "PaddingFIFOQueueV2", name, component_types=types, shapes=shapes, capacity=capacity, shared_name=shared_name
        )
        super().__init__(types, shapes, names, ref)


class PriorityQueue(QueueBase):
    """Gives the tuple with the smallest priority first; the priority is an int64 before the other components."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        """As FIFOQueue; `types` and `shapes` without the priority, tuples with it."""
        components, shapes, names = _components_of(types, shapes, names)
        ref = apply_op(
            "PriorityQueueV2",
            name,
            component_types=components,
            shapes=shapes or [],
            capacity=capacity,
            shared_name=shared_name,
        )
        whole_shapes = None if shapes is None else [TensorShape([]), *shapes]
        super().__init__([dtypes.int64, *components], whole_shapes, names, ref)


def _components_of(types: Any, shapes: Any, names: Any) -> tuple[list[Any], list[TensorShape] | None, list[str] | None]:
    """One dtype, shape or name means a list of one."""
    types = [dtypes.as_dtype(each) for each in (types if isinstance(types, (list, tuple)) else [types])]
    if shapes is not None:
        single = isinstance(shapes, TensorShape) or len(types) == 1 and _is_one_shape(shapes)
        shapes = [as_shape(each) for each in ([shapes] if single else shapes)]
        if len(shapes) != len(types):
            raise ValueError(f"Queue shapes must have the same length as dtypes, received len(shapes)={len(shapes)}")
    names = [names] if isinstance(names, str) else names
    return types, shapes, names


def _is_one_shape(shapes: Any) -> bool:
    """Whether a list is the sizes of one shape rather than a list of shapes."""
    return all(size is None or isinstance(size, int) for size in shapes)


class ConditionalAccumulatorBase:
    """Counts gradients in and gives their mean (or sum) once enough are in."""

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = dtypes.as_dtype(dtype)
        self._shape = TensorShape(None) if shape is None else as_shape(shape)
        self._accumulator_ref = accumulator_ref
        self._name = accumulator_ref.op.name.split("/")[-1]

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of the node that makes it."""
        return self._accumulator_ref.op.name

    @property
    def dtype(self) -> Any:
        """The dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients are in, an int32 scalar."""
        name = name or f"{self._name}_NumAccumulated"
        return apply_op(self._op("AccumulatorNumAccumulated"), name, handle=self._accumulator_ref)

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """The operation that sets the step below which gradients are stale and dropped."""
        return apply_op(
            self._op("AccumulatorSetGlobalStep"),
            name,
            handle=self._accumulator_ref,
            new_global_step=_as_int64(new_global_step),
        )

    def _op(self, op_type: str) -> str:
        """The op of that name for this handle, a resource or a reference."""
        return f"Resource{op_type}" if self._accumulator_ref.dtype == dtypes.resource else op_type


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of dense gradients."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        """reduction_type: MEAN or SUM."""
        ref = apply_op(
            "ResourceConditionalAccumulator",
            name,
            dtype=dtypes.as_dtype(dtype),
            shape=TensorShape(None) if shape is None else as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_grad(self, grad: TensorLike, local_step: Any = 0, name: str | None = None) -> Operation:
        """The operation that adds `grad`, computed at `local_step`; it is dropped when that is stale."""
        gradient = convert_to_tensor(grad, self._dtype)
        gradient.shape.assert_is_compatible_with(self._shape)
        return apply_op(
            "ResourceAccumulatorApplyGradient",
            name,
            handle=self._accumulator_ref,
            local_step=_as_int64(local_step),
            gradient=gradient,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The reduced gradient as soon as `num_required` are in; the accumulator starts again from none."""
        taken = apply_op(
            "ResourceAccumulatorTakeGradient",
            name,
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
        )
        taken.set_shape(self._shape)
        return taken


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """An accumulator of IndexedSlices; a row's mean counts only the gradients that had the row."""

    def __init__(
        self,
        dtype: Any,
        shape: Any = None,
        shared_name: str | None = None,
        name: str = "sparse_conditional_accumulator",
        reduction_type: str = "MEAN",
    ) -> None:
        """reduction_type: MEAN or SUM. `shape`: of the dense tensor."""
        ref = apply_op(
            "SparseConditionalAccumulator",
            name,
            dtype=dtypes.as_dtype(dtype),
            shape=TensorShape(None) if shape is None else as_shape(shape),
            shared_name=shared_name,
            reduction_type=reduction_type,
        )
        super().__init__(dtype, shape, ref)

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0, name: str | None = None) -> Operation:
        """`apply_grad` of IndexedSlices."""
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name)

    def apply_grad(
        self, grad_indices: Any, grad_values: Any, grad_shape: Any = None, local_step: Any = 0, name: str | None = None
    ) -> Operation:
        """The operation that adds rows `grad_values` at `grad_indices` of a tensor of `grad_shape` (None: unknown)."""
        known = grad_shape is not None
        return apply_op(
            "SparseAccumulatorApplyGradient",
            name,
            handle=self._accumulator_ref,
            local_step=_as_int64(local_step),
            gradient_indices=_as_int64(grad_indices),
            gradient_values=convert_to_tensor(grad_values, self._dtype),
            gradient_shape=_as_int64(grad_shape if known else []),
            has_known_shape=known,
        )

    def take_grad(self, num_required: Any, name: str | None = None) -> Any:
        """(indices, values, shape) as soon as `num_required` are in."""
        return apply_op(
            "SparseAccumulatorTakeGradient",
            name,
            handle=self._accumulator_ref,
            num_required=num_required,
            dtype=self._dtype,
        )

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """`take_grad` as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)


def _as_int64(value: Any) -> Tensor:
    if isinstance(value, Tensor) or hasattr(value, "_as_graph_element"):
        tensor = convert_to_tensor(value)
        return tensor if tensor.dtype.base_dtype == dtypes.int64 else apply_op("Cast", x=tensor, DstT=dtypes.int64)
    return convert_to_tensor(value, dtypes.int64)


def get_session_handle(data: TensorLike, name: str | None = None) -> Tensor:
    """Keeps `data` in the session, at the task that computes it; gives its handle, a string scalar."""
    return apply_op("GetSessionHandle", name, value=data)


def get_session_tensor(handle: Any, dtype: DTypeLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """(placeholder for a handle, the tensor of the handle), where the tensor of `handle` is kept."""
    with _at_kept_tensor(handle):
        holder = apply_op("Placeholder", name, dtype=dtypes.string, shape=TensorShape([]))
        return holder, apply_op("GetSessionTensor", handle=holder, dtype=dtypes.as_dtype(dtype))


def delete_session_tensor(handle: Any, name: str | None = None) -> tuple[Tensor, Operation]:
    """(placeholder to be fed with a handle, the operation that forgets its tensor), where that is kept."""
    with _at_kept_tensor(handle):
        holder = apply_op("Placeholder", name, dtype=dtypes.string, shape=TensorShape([]))
        return holder, apply_op("DeleteSessionTensor", handle=holder)


def _at_kept_tensor(handle: Any) -> AbstractContextManager[None]:
    """The device in a handle, "name;number;device"."""
    text = handle.decode() if isinstance(handle, bytes) else str(handle)
    parts = text.split(";")
    if len(parts) < 3:
        raise ValueError(f"{text!r} is not the handle of a tensor that a session keeps.")
    return get_default_graph().device(parts[-1])


# -- shape rules


def _reference(op: Operation) -> Sequence[TensorShape]:
    """The older handles are references to two strings: container and name."""
    return [TensorShape([2])]


shape_rule(
    *(
        "FIFOQueueV2 RandomShuffleQueueV2 PaddingFIFOQueueV2 PriorityQueueV2 QueueSize QueueSizeV2 QueueIsClosed "
        "QueueIsClosedV2 "
        "ResourceConditionalAccumulator AccumulatorNumAccumulated ResourceAccumulatorNumAccumulated GetSessionHandle"
    ).split()
)(scalar)
shape_rule(
    *(
        "FIFOQueue RandomShuffleQueue PaddingFIFOQueue PriorityQueue ConditionalAccumulator "
        "SparseConditionalAccumulator"
    ).split()
)(_reference)
shape_rule(
    *(
        "QueueEnqueue QueueEnqueueV2 QueueEnqueueMany QueueEnqueueManyV2 QueueClose QueueCloseV2 "
        "AccumulatorApplyGradient "
        "ResourceAccumulatorApplyGradient AccumulatorSetGlobalStep ResourceAccumulatorSetGlobalStep "
        "SparseAccumulatorApplyGradient "
        "DeleteSessionTensor"
    ).split()
)(no_outputs)
shape_rule(
    *(
        "QueueDequeue QueueDequeueV2 QueueDequeueMany QueueDequeueManyV2 QueueDequeueUpTo QueueDequeueUpToV2 "
        "AccumulatorTakeGradient "
        "ResourceAccumulatorTakeGradient GetSessionTensor"
    ).split()
)(unknown)


@shape_rule("SparseAccumulatorTakeGradient")
def _(op):
    return [TensorShape([None]), TensorShape(None), TensorShape([None])]
