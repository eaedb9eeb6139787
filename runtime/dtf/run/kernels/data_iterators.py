"""Kernels of iterators over datasets: they bind `run.datasets.iterator` to nodes.

An iterator with a shared_name is found by it in every session of the task; another one is its node's, lives as long as
the session, and is found through its handle.
"""

from __future__ import annotations

import itertools
import weakref
from typing import cast

import numpy as np

from dtf.run.datasets.dataset import Scope
from dtf.run.datasets.iterator import Iterator
from dtf.run.executor.functions import FunctionBody
from dtf.run.executor.step import StepContext
from dtf.run.interfaces import Done, Outputs
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, of_components
from dtf.run.kernels.data import dataset_of
from dtf.run.state.resources import DEFAULT_CONTAINER, ResourceHandle, handle_of
from dtf.run.value_types import Array, Element
from dtf.wire import errors
from dtf.wire.dtypes import DType
from dtf.wire.pb import resource_handle_pb2
from dtf.wire.strings import string_scalar
from dtf.wire.tensor_shape import TensorShape
from dtf.wire.variants import Optional

_private: weakref.WeakValueDictionary[str, Iterator] = weakref.WeakValueDictionary()
_numbers = itertools.count()


@kernel("Iterator", "IteratorV2", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step: _handle(node, step)[1]


@kernel("OneShotIterator", asynchronous=True)
def _(node: KernelNode) -> Function:
    factory = FunctionBody(node.attr("dataset_factory"), node.library)

    def make(step: StepContext, done: Done[Outputs]) -> None:
        iterator, handle = _handle(node, step)

        def start(results: Element = (), error: errors.OpError | None = None) -> None:
            if error is None:
                try:
                    iterator.start_once(dataset_of(results[0]), lambda: Scope.of_step(step))
                except errors.OpError as failure:
                    error = failure
            if error is not None:
                done(error=error)
            else:
                done(handle)

        if iterator.is_started:
            done(handle)
        else:
            factory.call(step, (), start)

    return make


@kernel("MakeIterator", stateful=True)
def _(node: KernelNode) -> Function:
    def make(step: StepContext, dataset: Array, handle: ResourceHandle) -> None:
        _iterator_of(step, handle).start(dataset_of(dataset), Scope.of_step(step))

    return make


@kernel("IteratorGetNext", "IteratorGetNextSync", asynchronous=True)
def _(node: KernelNode) -> Function:
    def get_next(step: StepContext, done: Done[Outputs], handle: ResourceHandle) -> None:
        _iterator_of(step, handle).next(step.cancellation, of_components(node, done))

    return get_next


@kernel("IteratorGetNextAsOptional", asynchronous=True)
def _(node: KernelNode) -> Function:
    def get_next(step: StepContext, done: Done[Outputs], handle: ResourceHandle) -> None:
        def report(values: Element = (), error: errors.OpError | None = None) -> None:
            if error is None:
                done(Optional(tuple(values)))
            elif isinstance(error, errors.OutOfRangeError):
                done(Optional())
            else:
                done(error=error)

        _iterator_of(step, handle).next(step.cancellation, report)

    return get_next


@kernel("IteratorToStringHandle", stateful=True)
def _(node: KernelNode) -> Function:
    def to_string(step: StepContext, handle: ResourceHandle) -> np.ndarray:
        _iterator_of(step, handle)
        handle = handle_of(handle)
        message = resource_handle_pb2.ResourceHandleProto(
            device=handle.device, container=handle.container, name=handle.name, maybe_type_name=handle.type_name
        )
        return string_scalar(message.SerializeToString())

    return to_string


@kernel("IteratorFromStringHandle", "IteratorFromStringHandleV2", stateful=True)
def _(node: KernelNode) -> Function:
    types, shapes = list(node.attr("output_types")), list(node.attr("output_shapes"))

    def from_string(step: StepContext, text: np.ndarray) -> ResourceHandle:
        try:
            message = resource_handle_pb2.ResourceHandleProto.FromString(text.item())
        except Exception:  # whatever protobuf raises for bytes that are no message
            raise invalid("string_handle is not the handle of an iterator") from None
        handle = ResourceHandle(message.device, message.container, message.name, message.maybe_type_name)
        iterator = _iterator_of(step, handle)
        _check_same(types, shapes, iterator)
        return handle

    return from_string


@kernel("SerializeIterator", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: _iterator_of(step, handle).save()


@kernel("DeserializeIterator", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, state: _iterator_of(step, handle).restore(_one(state))


def _handle(node: KernelNode, step: StepContext) -> tuple[Iterator, ResourceHandle]:
    types, shapes = list(node.attr("output_types")), list(node.attr("output_shapes"))
    container, name = as_text(node.attr("container")), as_text(node.attr("shared_name"))
    if name:
        iterator = step.resources.lookup_or_create(container, name, Iterator, lambda: Iterator(name, types, shapes))
        _check_same(types, shapes, iterator)
        return iterator, ResourceHandle(step.device_name, container or DEFAULT_CONTAINER, name, "Iterator")
    iterator = step.session.node_state(f"iterator {node.name}", lambda: _new_private(node.name, types, shapes))
    return iterator, ResourceHandle(step.device_name, _PRIVATE, iterator.name, "Iterator")


_PRIVATE = "(private)"
"""The container in the handle of an iterator that its session keeps."""


def _new_private(node_name: str, types: list[DType], shapes: list[TensorShape]) -> Iterator:
    iterator = Iterator(f"_{next(_numbers)}_{node_name}", types, shapes)
    _private[iterator.name] = iterator
    return iterator


def _one(handle: ResourceHandle | Array) -> ResourceHandle:
    return cast(ResourceHandle, handle[()]) if isinstance(handle, np.ndarray) else handle


def _iterator_of(step: StepContext, handle: ResourceHandle) -> Iterator:
    handle = handle_of(handle)
    if handle.container != _PRIVATE:
        return step.resources.get(handle, Iterator)
    found = _private.get(handle.name)
    if found is None:
        raise errors.NotFoundError.of(f"Iterator {handle.name} does not exist: its session is over")
    return found


def _check_same(types: list[DType], shapes: list[TensorShape], iterator: Iterator) -> None:
    if types and types != iterator.types:
        wanted, found = ([each.name for each in kinds] for kinds in (types, iterator.types))
        raise invalid(f"Iterator {iterator.name} has elements of types {found}, but {wanted} are expected")
    if shapes and not all(map(TensorShape.is_compatible_with, shapes, iterator.shapes)):
        wanted, found = ([str(each) for each in kinds] for kinds in (shapes, iterator.shapes))
        raise invalid(f"Iterator {iterator.name} has elements of shapes {found}, but {wanted} are expected")
