"""Kernels of work queues: they bind `dtf.run.state.work_queue` to nodes. The ops are dtf's own, not TensorFlow's."""

from __future__ import annotations

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import scalar
from dtf.run.kernels.data_flow import node_resource, resource_of
from dtf.run.state.resources import ResourceHandle
from dtf.run.state.work_queue import Lease, WorkQueue
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.strings import string_scalar


@kernel("WorkQueue", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: node_resource(node, step, WorkQueue, WorkQueue, always_shared=True)[1]


@kernel("WorkQueueCreate", stateful=True)
def _(node: KernelNode) -> Function:
    epochs, lease_s = node.attr("num_epochs"), node.attr("lease_s")
    seed = node.attr("seed") if node.attr("shuffle") else None

    def create(step: StepContext, handle: ResourceHandle, works: np.ndarray) -> None:
        resource_of(step, handle, WorkQueue).create(np.ravel(works).tolist(), epochs, seed, lease_s)

    return create


@kernel("WorkQueueTake", asynchronous=True)
def _(node: KernelNode) -> Function:
    def take(step: StepContext, done: Done[Outputs], handle: ResourceHandle, holder: Array) -> None:
        def taken(value: Lease | None = None, error: errors.OpError | None = None) -> None:
            if value is None:
                done(error=error)  # type: ignore[arg-type]
            else:
                done(
                    (
                        np.int64(value.number),
                        string_scalar(value.work),
                        np.int64(value.epoch),
                        np.int64(value.position),
                    )
                )

        name = scalar(holder, "holder")
        text = name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)
        resource_of(step, handle, WorkQueue).take(text, step.cancellation, taken)

    return take


@kernel("WorkQueueConfirm", stateful=True)
def _(node: KernelNode) -> Function:
    def confirm(step: StepContext, handle: ResourceHandle, lease: Array, position: Array, is_done: Array) -> None:
        numbers = int(scalar(lease, "lease")), int(scalar(position, "position"))
        resource_of(step, handle, WorkQueue).confirm(*numbers, bool(scalar(is_done, "is_done")))

    return confirm


@kernel("WorkQueueRelease", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, lease: resource_of(step, handle, WorkQueue).release(int(scalar(lease, "lease")))


@kernel("WorkQueueExport", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: resource_of(step, handle, WorkQueue).export()


@kernel("WorkQueueRestore", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, state: resource_of(step, handle, WorkQueue).restore(state)
