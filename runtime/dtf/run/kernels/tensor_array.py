"""Kernels of tensor arrays and stacks: they bind `tensor_arrays.py` to nodes.

Owns where the containers are kept: in the step's resources, under a number of their own, because a loop may make one in
each of its iterations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from dtf.run.executor.step import StepContext
from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid
from dtf.run.state.resources import ResourceHandle, handle_of
from dtf.run.state.tensor_arrays import Stack, TensorArray
from dtf.wire.tensor_shape import TensorShape

_numbers = itertools.count()
_FLOW = np.float32(0)


def _keep(step: StepContext, resource: object, name: str) -> ResourceHandle:
    unique = f"{name}_{next(_numbers)}"
    step.step_resources.create("", unique, type(resource), resource)
    return ResourceHandle(step.device_name, "", unique, type(resource).__name__)


def _as_strings(handle: ResourceHandle) -> np.ndarray:
    """The handle of the second version: its container and its name."""
    return np.array([b"", handle.name.encode()], object)


class _Reference:
    """The handle of the first version: a reference to the strings of the second."""

    def __init__(self, handle: ResourceHandle) -> None:
        self.handle = handle

    def read(self) -> np.ndarray:
        """The strings, for an input that is not a reference."""
        return _as_strings(self.handle)


_Handle = ResourceHandle | np.ndarray | _Reference


def array_of(step: StepContext, handle: _Handle) -> TensorArray:
    """The tensor array of a handle, of any version."""
    return step.step_resources.get(_as_resource(step, handle, TensorArray), TensorArray)


def _as_resource(step: StepContext, handle: _Handle, kind: type) -> ResourceHandle:
    if isinstance(handle, _Reference):
        return handle.handle
    if not isinstance(handle, np.ndarray) or np.shape(handle) != (2,):
        return handle_of(handle)
    return ResourceHandle(step.device_name, "", _text(handle[1]), kind.__name__)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


# -- tensor arrays


@kernel("TensorArrayV3", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, shape = node.attr("dtype"), node.attr("element_shape")
    options = {name: node.attr(name) for name in ("dynamic_size", "clear_after_read", "identical_element_shapes")}
    name = _text(node.attr("tensor_array_name")) or node.name

    def tensor_array(step: StepContext, size: np.ndarray) -> tuple[ResourceHandle, np.generic]:
        if int(size) < 0:
            raise invalid(f"Size should be >= 0, got {int(size)}")
        return _keep(step, TensorArray(dtype, int(size), shape, **options), name), _FLOW

    return tensor_array


@kernel("TensorArray", "TensorArrayV2", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, shape = node.attr("dtype"), node.attr("element_shape")
    options = {name: node.attr(name) for name in ("dynamic_size", "clear_after_read")}
    name = _text(node.attr("tensor_array_name")) or node.name
    made = _as_strings if node.op.endswith("V2") else _Reference

    def tensor_array(step: StepContext, size: np.ndarray) -> np.ndarray | _Reference:
        if int(size) < 0:
            raise invalid(f"Size should be >= 0, got {int(size)}")
        return made(_keep(step, TensorArray(dtype, int(size), shape, **options), name))

    return tensor_array


@kernel("TensorArrayGrad", "TensorArrayGradV2", stateful=True)
def _(node: KernelNode) -> Function:
    source = _text(node.attr("source"))
    made = _as_strings if node.op.endswith("V2") else _Reference
    return lambda step, handle, flow: made(_gradient(step, handle, source, ()))


@kernel("TensorArrayGradV3", stateful=True)
def _(node: KernelNode) -> Function:
    source = _text(node.attr("source"))
    return lambda step, handle, flow: (_gradient(step, handle, source, ()), flow)


@kernel("TensorArrayGradWithShape", stateful=True)
def _(node: KernelNode) -> Function:
    source = _text(node.attr("source"))

    def gradient(
        step: StepContext, handle: ResourceHandle, flow: np.ndarray, shape_to_prepend: np.ndarray
    ) -> tuple[ResourceHandle, np.ndarray]:
        return _gradient(step, handle, source, tuple(shape_to_prepend.tolist())), flow

    return gradient


def _gradient(
    step: StepContext, handle: _Handle, source: str, prepend: tuple[int, ...]
) -> ResourceHandle:
    array = array_of(step, handle).gradient(source, prepend)
    name = f"{_as_resource(step, handle, TensorArray).name}@{source}"
    step.step_resources.lookup_or_create("", name, TensorArray, lambda: array)
    return ResourceHandle(step.device_name, "", name, TensorArray.__name__)


@kernel("TensorArrayWriteV3", "TensorArrayWriteV2", "TensorArrayWrite", stateful=True)
def _(node: KernelNode) -> Function:
    def write(
        step: StepContext, handle: ResourceHandle, index: np.ndarray, value: np.ndarray, flow: np.ndarray
    ) -> np.ndarray:
        array_of(step, handle).write(int(index), value)
        return flow

    return write


@kernel("TensorArrayReadV3", "TensorArrayReadV2", "TensorArrayRead", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, index, flow: array_of(step, handle).read(int(index))


@kernel("TensorArrayGatherV3", "TensorArrayGatherV2", "TensorArrayGather", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, shape = node.attr("dtype").as_numpy_dtype, node.attr("element_shape")
    return lambda step, handle, indices, flow: _gathered(array_of(step, handle), indices.tolist(), dtype, shape)


@kernel("TensorArrayPack", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, shape = node.attr("dtype").as_numpy_dtype, node.attr("element_shape")

    def pack(step: StepContext, handle: ResourceHandle, flow: np.ndarray) -> np.ndarray:
        array = array_of(step, handle)
        return _gathered(array, range(len(array)), dtype, shape)

    return pack


def _gathered(array: TensorArray, indices: Iterable[int], dtype: np.typing.DTypeLike, shape: TensorShape) -> np.ndarray:
    values = [array.read(index) for index in indices]
    if not values:
        return np.zeros((0, *known_sizes(shape.merge_with(array.element_shape))), dtype)
    check_same_shapes([np.shape(value) for value in values])
    return np.stack(values)


@kernel("TensorArrayUnpack", stateful=True)
def _(node: KernelNode) -> Function:
    def unpack(step: StepContext, handle: ResourceHandle, value: np.ndarray, flow: np.ndarray) -> np.ndarray:
        array = array_of(step, handle)
        check_split(len(array), value.shape)
        for row in range(len(array)):
            array.write(row, value[(row, ...)])
        return flow

    return unpack


def known_sizes(shape: TensorShape) -> list[int]:
    """The sizes of the elements of an array that has none.

    Raises:
      InvalidArgumentError: they are not known.
    """
    if not shape.is_fully_defined():
        raise invalid(
            f"TensorArray has size zero, but element shape {shape} is not fully defined. Currently only static "
            "shapes are "
            "supported when packing zero-size TensorArrays."
        )
    return shape.as_list()  # type: ignore[return-value]


def check_same_shapes(shapes: Sequence[tuple[int, ...]]) -> None:
    """Refuses values of several shapes, which cannot be put together."""
    first = shapes[0]
    other = next((i for i, shape in enumerate(shapes) if shape != first), None)
    if other is not None:
        raise invalid(
            f"TensorArray has inconsistent shapes.  Index 0 has shape: {list(first)} but index {other} has shape: "
            f"{list(shapes[other])}"
        )


def check_split(count: int, shape: tuple[int, ...], is_sum: bool = False) -> None:
    """Refuses a value that has not as many rows as are written to places: one each, or `count` in all (`is_sum`)."""
    if count == (shape[0] if shape else -1):
        return
    if is_sum:
        raise invalid(
            f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {count} and value's shape "
            f"is: {list(shape)}"
        )
    raise invalid(f"Expected len(indices) == values.shape[0], but saw: {count} vs. {shape[0] if shape else 0}")


@kernel("TensorArrayScatterV3", "TensorArrayScatterV2", "TensorArrayScatter", stateful=True)
def _(node: KernelNode) -> Function:
    def scatter(
        step: StepContext, handle: ResourceHandle, indices: np.ndarray, value: np.ndarray, flow: np.ndarray
    ) -> np.ndarray:
        check_split(len(indices), value.shape)
        array = array_of(step, handle)
        for row, index in enumerate(indices.tolist()):
            array.write(index, value[(row, ...)])
        return flow

    return scatter


@kernel("TensorArrayConcatV3", "TensorArrayConcatV2", "TensorArrayConcat", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, rest = node.attr("dtype").as_numpy_dtype, node.attr("element_shape_except0")

    def concat(step: StepContext, handle: ResourceHandle, flow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        array = array_of(step, handle)
        values = [array.read(index) for index in range(len(array))]
        lengths = np.array([len(value) for value in values], np.int64)
        if not values:
            return np.zeros((0, *known_sizes(rest)), dtype), lengths
        return np.concatenate(values), lengths

    return concat


@kernel("TensorArraySplitV3", "TensorArraySplitV2", "TensorArraySplit", stateful=True)
def _(node: KernelNode) -> Function:
    def split(
        step: StepContext, handle: ResourceHandle, value: np.ndarray, lengths: np.ndarray, flow: np.ndarray
    ) -> np.ndarray:
        array = array_of(step, handle)
        sizes = lengths.tolist()
        check_split(sum(sizes), value.shape, is_sum=True)
        end = 0
        for index, size in enumerate(sizes):
            array.write(index, value[end : end + size])
            end += size
        return flow

    return split


@kernel("TensorArraySizeV3", "TensorArraySizeV2", "TensorArraySize", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle, flow: np.int32(len(array_of(step, handle)))


@kernel("TensorArrayCloseV3", "TensorArrayCloseV2", "TensorArrayClose", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: array_of(step, handle).close()


# -- stacks


@kernel("Stack", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, name = node.attr("elem_type"), _text(node.attr("stack_name")) or node.name
    return lambda step: _Reference(_keep(step, Stack(name, dtype, -1), name))


@kernel("StackV2", stateful=True)
def _(node: KernelNode) -> Function:
    dtype, name = node.attr("elem_type"), _text(node.attr("stack_name")) or node.name
    return lambda step, max_size: _keep(step, Stack(name, dtype, int(max_size)), name)


@kernel("StackPushV2", "StackPush", stateful=True)
def _(node: KernelNode) -> Function:
    def push(step: StepContext, handle: ResourceHandle, value: np.ndarray) -> np.ndarray:
        step.step_resources.get(_as_resource(step, handle, Stack), Stack).push(value)
        return value

    return push


@kernel("StackPopV2", "StackPop", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: step.step_resources.get(_as_resource(step, handle, Stack), Stack).pop()


@kernel("StackCloseV2", "StackClose", stateful=True)
def _(node: KernelNode) -> Function:
    return lambda step, handle: step.step_resources.get(_as_resource(step, handle, Stack), Stack).close()
