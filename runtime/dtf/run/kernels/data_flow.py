"""Kernels of queues, accumulators and session tensors: they bind `queues.py` and `accumulators.py` to nodes.

Owns the ways by which a handle finds its object; the rules of waiting, closing and stale gradients are those modules'.

A handle is a ResourceHandle (the ops with V2 or Resource in their names) or, for the older ops that pass a reference
to a string, the object itself. An object without a shared_name belongs to one session, as TensorFlow has it, and is
kept in that session's state. An object with a shared_name is kept in its container, where all sessions find it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, of_components
from dtf.run.lib.growth import Growth
from dtf.run.state.accumulators import Accumulator, DenseSum, SparseSum, Sum
from dtf.run.state.queues import FifoStorage, PriorityStorage, Queue, ShuffleStorage, Storage
from dtf.run.state.resources import DEFAULT_CONTAINER, ResourceHandle, checked_kind, handle_of
from dtf.run.value_types import Array
from dtf.wire import dtypes, errors
from dtf.wire.strings import string_scalar
from dtf.wire.tensor_shape import TensorShape

_Resource = TypeVar("_Resource")
_Gradient = TypeVar("_Gradient")

_private_numbers = itertools.count()


def node_resource(
    node: KernelNode,
    step: StepContext,
    kind: type[_Resource],
    make: Callable[[str], _Resource],
    always_shared: bool = False,
) -> tuple[_Resource, ResourceHandle]:
    """The object that a resource-making node stands for, made by `make(name)` the first time, and its handle.

    Args:
      always_shared: without a shared_name share under the node's name, as variables and initialised tables do.
    """
    container, shared_name = (_text(node.attrs.get(attr, "")) for attr in ("container", "shared_name"))
    if shared_name or always_shared:
        name = shared_name or node.name
        resource = step.resources.lookup_or_create(container, name, kind, lambda: make(name))
        return resource, ResourceHandle(step.device_name, container or DEFAULT_CONTAINER, name, kind.__name__)
    resource = step.session.node_state(node.name, lambda: make(f"_{next(_private_numbers)}_{node.name}"))
    resource = checked_kind(resource, kind, node.name)
    return resource, ResourceHandle(step.device_name, _SESSION_CONTAINER, node.name, kind.__name__)


def resource_of(step: StepContext, handle: _Resource | ResourceHandle | Array, kind: type[_Resource]) -> _Resource:
    """The object behind a handle.

    Raises:
      InvalidArgumentError: the value is not a handle, or the object is of another kind.
      NotFoundError: the object does not exist (any more).
    """
    if isinstance(handle, kind):
        return handle
    at = handle_of(handle)
    if at.container != _SESSION_CONTAINER:
        return step.resources.get(at, kind)

    def missing() -> _Resource:
        raise errors.NotFoundError.of(f"Resource {at.name}/{kind.__name__} does not exist.")

    return checked_kind(step.session.node_state(at.name, missing), kind, at.name)


# The container in a handle whose object is kept with the session.
_SESSION_CONTAINER = "(session)"


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


# -- queues


@kernel("FIFOQueue", "FIFOQueueV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _queue_maker(node, "FIFOQueue", FifoStorage)


@kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _queue_maker(node, "PaddingFIFOQueue", FifoStorage)


@kernel("PriorityQueue", "PriorityQueueV2", stateful=True)
def _(node: KernelNode) -> Function:
    return _queue_maker(node, "PriorityQueue", PriorityStorage)


@kernel("RandomShuffleQueue", "RandomShuffleQueueV2", stateful=True)
def _(node: KernelNode) -> Function:
    seeds = (node.attr("seed"), node.attr("seed2"))
    seed = None if seeds == (0, 0) else abs(hash(seeds))
    least = node.attr("min_after_dequeue")
    if node.attr("capacity") >= 0 and least >= node.attr("capacity"):
        raise invalid(f"min_after_dequeue {least} must be < capacity {node.attr('capacity')}")
    return _queue_maker(node, "RandomShuffleQueue", lambda: ShuffleStorage(least, seed))


def _queue_maker(node: KernelNode, kind: str, storage: Callable[[], Storage]) -> Function:
    capacity = None if node.attr("capacity") < 0 else node.attr("capacity")
    types, shapes = list(node.attr("component_types")), list(node.attr("shapes"))
    if kind == "PriorityQueue":
        types, shapes = [dtypes.int64, *types], [TensorShape([]), *shapes]
    is_reference = node.op_def.outputs[0].is_ref

    def queue(step: StepContext) -> Queue | ResourceHandle:
        found, handle = node_resource(
            node, step, Queue, lambda name: Queue(kind, name, storage(), capacity, types, shapes)
        )
        found.check_same(kind, capacity, types, shapes)
        return found if is_reference else handle

    return queue


@kernel("QueueEnqueue", "QueueEnqueueV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def enqueue(step: StepContext, done: Done[Outputs], handle: ResourceHandle, *components: np.ndarray) -> None:
        resource_of(step, handle, Queue).enqueue(components, step.cancellation, done)

    return enqueue


@kernel("QueueEnqueueMany", "QueueEnqueueManyV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def enqueue_many(step: StepContext, done: Done[Outputs], handle: ResourceHandle, *components: np.ndarray) -> None:
        resource_of(step, handle, Queue).enqueue_many(components, step.cancellation, done)

    return enqueue_many


def _check_component_types(node: KernelNode, queue: Queue) -> None:
    if tuple(node.attr("component_types")) != queue.dtypes:
        expected = ", ".join(dtype.name for dtype in queue.dtypes)
        got = ", ".join(dtype.name for dtype in node.attr("component_types"))
        raise invalid(
            f"Expected the components of {queue.kind} '{queue.name}' to be {expected}, the dequeue wants {got}"
        )


@kernel("QueueDequeue", "QueueDequeueV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    def dequeue(step: StepContext, done: Done[Outputs], handle: ResourceHandle) -> None:
        queue = resource_of(step, handle, Queue)
        _check_component_types(node, queue)
        queue.dequeue(step.cancellation, of_components(node, done))

    return dequeue


@kernel("QueueDequeueMany", "QueueDequeueManyV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    return _dequeue_many(node, allow_fewer=False)


@kernel("QueueDequeueUpTo", "QueueDequeueUpToV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    return _dequeue_many(node, allow_fewer=True)


def _dequeue_many(node: KernelNode, allow_fewer: bool) -> Callable[..., None]:
    def dequeue_many(step: StepContext, done: Done[Outputs], handle: ResourceHandle, count: np.ndarray) -> None:
        queue = resource_of(step, handle, Queue)
        _check_component_types(node, queue)
        queue.dequeue_many(int(count), step.cancellation, of_components(node, done), allow_fewer)

    return dequeue_many


@kernel("QueueClose", "QueueCloseV2", asynchronous=True)
def _(node: KernelNode) -> Function:
    cancel = node.attr("cancel_pending_enqueues")
    return lambda step, done, handle: resource_of(step, handle, Queue).shut(cancel, step.cancellation, done)


@kernel("QueueSize", "QueueSizeV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int32(len(resource_of(step, handle, Queue)))


@kernel("QueueIsClosed", "QueueIsClosedV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.bool_(resource_of(step, handle, Queue).is_closed)


# -- accumulators


@kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", stateful=True)
def _(node: KernelNode) -> Function:
    return _accumulator_maker(node, "ConditionalAccumulator", DenseSum)


@kernel("SparseConditionalAccumulator", stateful=True)
def _(node: KernelNode) -> Function:
    return _accumulator_maker(node, "SparseConditionalAccumulator", SparseSum)


def _accumulator_maker(node: KernelNode, kind: str, total: Callable[[TensorShape], Sum[_Gradient]]) -> Function:
    dtype, shape, reduction = node.attr("dtype"), node.attr("shape"), _text(node.attr("reduction_type"))
    is_reference = node.op_def.outputs[0].is_ref

    def accumulator(step: StepContext) -> Accumulator[_Gradient] | ResourceHandle:
        found, handle = node_resource(
            node, step, Accumulator, lambda name: Accumulator(kind, name, dtype, shape, reduction, total(shape))
        )
        found.check_same(kind, dtype)
        return found if is_reference else handle

    return accumulator


@kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient", stateful=True)
def _(node: KernelNode) -> Function:
    def apply_gradient(step: StepContext, handle: ResourceHandle, local_step: np.ndarray, gradient: np.ndarray) -> None:
        resource_of(step, handle, Accumulator).apply(int(local_step), gradient)

    return apply_gradient


@kernel("SparseAccumulatorApplyGradient", stateful=True)
def _(node: KernelNode) -> Function:
    has_known_shape = node.attr("has_known_shape")

    def apply_gradient(
        step: StepContext,
        handle: ResourceHandle,
        local_step: np.ndarray,
        indices: np.ndarray,
        values: np.ndarray,
        shape: np.ndarray,
    ) -> None:
        known = shape if has_known_shape else np.zeros(0, np.int64)
        resource_of(step, handle, Accumulator).apply(int(local_step), (indices, values, known))

    return apply_gradient


@kernel(
    "AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient", asynchronous=True
)
def _(node: KernelNode) -> Function:
    def take_gradient(step: StepContext, done: Done[Outputs], handle: ResourceHandle, num_required: np.ndarray) -> None:
        resource_of(step, handle, Accumulator).take(int(num_required), step.cancellation, done)

    return take_gradient


@kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int32(resource_of(step, handle, Accumulator).num_accumulated)


@kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, new_step: resource_of(step, handle, Accumulator).set_global_step(int(new_step))


# -- tensors kept in the session


class _SessionTensors:
    """The tensors that one session keeps at one task, by handle."""

    def __init__(self) -> None:
        self.values: dict[bytes, Array] = {}
        self.numbers = itertools.count()
        self.growth = Growth("the tensors that a session keeps")


def _session_tensors(step: StepContext) -> _SessionTensors:
    return step.session.node_state("(session tensors)", _SessionTensors)


@kernel("GetSessionHandle", stateful=True)
def _(node: KernelNode) -> Function:
    def get_session_handle(step: StepContext, value: np.ndarray) -> np.ndarray:
        kept = _session_tensors(step)
        handle = f"{node.name};{next(kept.numbers)};{step.device_name}".encode()
        kept.growth.add((value,), len(kept.values))
        kept.values[handle] = value
        return string_scalar(handle)

    return get_session_handle


@kernel("GetSessionTensor", stateful=True)
def _(node: KernelNode) -> Function:
    wanted = node.attr("dtype")

    def get_session_tensor(step: StepContext, handle: np.ndarray) -> Array:
        name = handle.item()
        values = _session_tensors(step).values
        if name not in values:
            raise invalid(f"The tensor with handle '{name.decode(errors='replace')}' is not in the session store.")
        kept = values[name]
        if dtypes.as_dtype(kept.dtype) != wanted:
            raise errors.InternalError.of(
                f"The tensor with handle '{name.decode()}' is {kept.dtype}, not {wanted.name}."
            )
        return kept

    return get_session_tensor


@kernel("DeleteSessionTensor", stateful=True)
def _(node: KernelNode) -> Function:
    def delete_session_tensor(step: StepContext, handle: np.ndarray) -> None:
        name = handle.item()
        if _session_tensors(step).values.pop(name, None) is None:
            raise invalid(
                f"Failed to delete a tensor with handle '{name.decode(errors='replace')}' in the session store."
            )

    return delete_session_tensor
