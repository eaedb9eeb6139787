"""Kernels of staging areas, barriers and mutexes: they bind `dtf.run.state.staging` to nodes."""

from __future__ import annotations

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, of_components
from dtf.run.kernels.data_flow import node_resource, resource_of
from dtf.run.state.resources import ResourceHandle
from dtf.run.state.staging import Barrier, MapStagingArea, Mutex, MutexHold, StagingArea
from dtf.run.value_types import Element
from dtf.wire import errors
from dtf.wire.tensor_shape import TensorShape


def _area(node: KernelNode, step: StepContext) -> StagingArea:
    """The area that all nodes of one container and shared_name mean."""
    container, name = (as_text(node.attr(attr)) for attr in ("container", "shared_name"))
    bounds = node.attr("capacity"), node.attr("memory_limit")
    return step.resources.lookup_or_create(container, name or node.name, StagingArea, lambda: StagingArea(*bounds))


def _map_area(node: KernelNode, step: StepContext) -> MapStagingArea:
    container, name = (as_text(node.attr(attr)) for attr in ("container", "shared_name"))
    bounds = node.attr("capacity"), node.attr("memory_limit"), len(node.attr("dtypes"))
    kind = "ordered map" if node.op.startswith("Ordered") else "map"
    return step.resources.lookup_or_create(
        container, f"{name or node.name} ({kind})", MapStagingArea, lambda: MapStagingArea(*bounds)
    )


# -- in order


@kernel("Stage", asynchronous=True)
def _(node: KernelNode) -> Function:
    return lambda step, done, *values: _area(node, step).put(values, step.cancellation, done)


@kernel("Unstage", asynchronous=True)
def _(node: KernelNode) -> Function:
    return lambda step, done: _area(node, step).take(step.cancellation, of_components(node, done))


@kernel("StagePeek", asynchronous=True)
def _(node: KernelNode) -> Function:
    return lambda step, done, index: _area(node, step).peek(int(index), step.cancellation, of_components(node, done))


@kernel("StageSize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: np.int32(len(_area(node, step)))


@kernel("StageClear", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: _area(node, step).clear()


# -- by key


@kernel("MapStage", "OrderedMapStage", asynchronous=True)
def _(node: KernelNode) -> Function:
    def stage(
        step: StepContext, done: Done[Outputs], key: np.ndarray, indices: np.ndarray, *values: np.ndarray
    ) -> None:
        _map_area(node, step).put(int(key), indices.tolist(), values, step.cancellation, done)

    return stage


@kernel("MapUnstage", "OrderedMapUnstage", asynchronous=True)
def _(node: KernelNode) -> Function:
    def unstage(step: StepContext, done: Done[Outputs], key: np.ndarray, indices: np.ndarray) -> None:
        report = of_components(node, done)

        def without_key(value: tuple[int, Element] = (0, ()), error: errors.OpError | None = None) -> None:
            report(error=error) if error is not None else report(value[1])

        _map_area(node, step).take(int(key), indices.tolist(), False, step.cancellation, without_key)

    return unstage


@kernel("MapUnstageNoKey", "OrderedMapUnstageNoKey", asynchronous=True)
def _(node: KernelNode) -> Function:
    def unstage(step: StepContext, done: Done[Outputs], indices: np.ndarray) -> None:
        def flat(value: tuple[int, Element] = (0, ()), error: errors.OpError | None = None) -> None:
            done(error=error) if error is not None else done((np.int64(value[0]), *value[1]))

        ordered = node.op.startswith("Ordered")
        _map_area(node, step).take(None, indices.tolist(), ordered, step.cancellation, flat)

    return unstage


@kernel("MapPeek", "OrderedMapPeek", asynchronous=True)
def _(node: KernelNode) -> Function:
    def peek(step: StepContext, done: Done[Outputs], key: np.ndarray, indices: np.ndarray) -> None:
        _map_area(node, step).peek(int(key), indices.tolist(), step.cancellation, of_components(node, done))

    return peek


@kernel("MapSize", "OrderedMapSize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: np.int32(len(_map_area(node, step)))


@kernel("MapIncompleteSize", "OrderedMapIncompleteSize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: np.int32(_map_area(node, step).incomplete_size)


@kernel("MapClear", "OrderedMapClear", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: _map_area(node, step).clear()


# -- barriers


@kernel("Barrier", stateful=True)
def _(node: KernelNode) -> Function:
    types, shapes = node.attr("component_types"), node.attr("shapes")
    if not shapes:
        shapes = [TensorShape([])] * len(types)  # only the number of rows of an empty result depends on them
    if len(shapes) != len(types) or not all(shape.is_fully_defined() for shape in shapes):
        raise invalid("All of the component shapes must be specified")
    arrays = [dtype.as_numpy_dtype for dtype in types], [shape.as_list() for shape in shapes]

    def make(step: StepContext) -> Barrier:
        barrier: Barrier = node_resource(node, step, Barrier, lambda name: Barrier(name, *arrays))[0]
        barrier.check_same(*arrays)
        return barrier

    return make


@kernel("BarrierInsertMany", stateful=True)
def _(node: KernelNode) -> Function:
    component = node.attr("component_index")

    def insert_many(step: StepContext, handle: ResourceHandle, keys: np.ndarray, values: np.ndarray) -> None:
        if keys.ndim != 1 or values.shape[:1] != keys.shape:
            raise invalid(f"Expected keys of one dimension, and as many values, got {keys.shape} and {values.shape}")
        resource_of(step, handle, Barrier).insert_many(component, keys.tolist(), list(values))

    return insert_many


@kernel("BarrierTakeMany", asynchronous=True)
def _(node: KernelNode) -> Function:
    # TensorFlow's kernel does not look at `wait_for_incomplete`.
    allow_small = node.attr("allow_small_batch")

    def take_many(step: StepContext, done: Done[Outputs], handle: ResourceHandle, count: np.ndarray) -> None:
        resource_of(step, handle, Barrier).take_many(int(count), allow_small, step.cancellation, done)

    return take_many


@kernel("BarrierClose", stateful=True)
def _(node: KernelNode) -> Function:
    cancel = node.attr("cancel_pending_enqueues")
    return lambda step, handle: resource_of(step, handle, Barrier).shut(cancel)


@kernel("BarrierReadySize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int32(resource_of(step, handle, Barrier).ready_size)


@kernel("BarrierIncompleteSize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: np.int32(resource_of(step, handle, Barrier).incomplete_size)


# -- mutexes


@kernel("MutexV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: node_resource(node, step, Mutex, Mutex)[1]


@kernel("MutexLock", asynchronous=True)
def _(node: KernelNode) -> Function:
    return lambda step, done, handle: resource_of(step, handle, Mutex).lock(step.cancellation, done)


@kernel("ConsumeMutexLock", stateful=True)
def _(node: KernelNode) -> Function:
    def consume(step: StepContext, hold: ResourceHandle) -> None:
        if not isinstance(hold, MutexHold):
            raise invalid("Expected input to be a mutex lock")
        hold.release()

    return consume
