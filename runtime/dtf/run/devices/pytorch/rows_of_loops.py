"""What loops keep between their iterations: tensor arrays and stacks, whose values stay on the device.

The containers and their rules are `state.tensor_arrays`'; the ops that only pass values on are the CPU's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import torch

from dtf.run import kernels
from dtf.run.devices.backends import Storage, storage_of
from dtf.run.devices.pytorch.arrays import COMPUTED, TorchArray
from dtf.run.devices.pytorch.rows import TensorFunction, computes
from dtf.run.executor.step import StepContext
from dtf.run.kernels import KernelNode
from dtf.run.kernels.tensor_array import array_of, check_same_shapes, check_split, known_sizes
from dtf.run.state.resources import ResourceHandle
from dtf.run.value_types import Array


def _of_the_cpu(node: KernelNode) -> TensorFunction:
    return kernels.bind(node)[1]


computes("StackPushV2", stateful=True, types=COMPUTED, takes_arrays=True)(_of_the_cpu)
computes("StackPopV2", stateful=True, attr="elem_type", takes_arrays=True)(_of_the_cpu)
computes("StackV2", stateful=True, attr="elem_type", takes_arrays=True)(_of_the_cpu)
computes("StackCloseV2", "TensorArrayCloseV3", stateful=True, attr="", takes_arrays=True)(_of_the_cpu)
computes("TensorArrayGradV3", "TensorArrayGradWithShape", stateful=True, attr="", takes_arrays=True)(_of_the_cpu)
computes("TensorArraySizeV3", stateful=True, attr="", takes_arrays=True)(_of_the_cpu)


def _storage(node: KernelNode) -> Storage:
    storage = storage_of(node.device)
    assert storage is not None
    return storage


def _there(value: object, storage: Storage) -> TorchArray:
    """A value on the device: the zeros of a place that was never written are numpy's."""
    if isinstance(value, TorchArray):
        return value
    return cast(TorchArray, storage.backend.copy_in(storage.number, cast(Array, value)))


def _added(left: Array, right: Array) -> Array:
    first, second = cast(TorchArray, cast(object, left)), cast(TorchArray, cast(object, right))
    return cast(Array, cast(object, TorchArray(first.tensor + second.tensor, first.number, first.dtype)))


@computes("TensorArrayWriteV3", stateful=True, takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    def write(step: StepContext, handle: ResourceHandle, index: np.ndarray, value: Array, flow: object) -> object:
        array_of(step, handle).write(int(index), value, _added)
        return flow

    return write


@computes("TensorArrayReadV3", stateful=True, attr="dtype", takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    storage = _storage(node)
    return lambda step, handle, index, flow: _there(array_of(step, handle).read(int(index)), storage)


@computes("TensorArrayGatherV3", stateful=True, attr="dtype", takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    storage, dtype, shape = _storage(node), node.attr("dtype").as_numpy_dtype, node.attr("element_shape")

    def gather(step: StepContext, handle: ResourceHandle, indices: object, flow: object) -> TorchArray:
        array = array_of(step, handle)
        values = [_there(array.read(index), storage) for index in _listed(indices)]
        if not values:
            sizes = known_sizes(shape.merge_with(array.element_shape))
            return _there(np.zeros((0, *sizes), dtype), storage)
        check_same_shapes([value.shape for value in values])
        return _together(torch.stack([value.tensor for value in values]), values)

    return gather


@computes("TensorArrayScatterV3", stateful=True, takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    def scatter(step: StepContext, handle: ResourceHandle, indices: object, value: TorchArray, flow: object) -> object:
        places = _listed(indices)
        check_split(len(places), value.shape)
        array = array_of(step, handle)
        for index, row in zip(places, torch.unbind(value.tensor), strict=True):
            array.write(index, _part(row, value), _added)
        return flow

    return scatter


@computes("TensorArrayConcatV3", stateful=True, attr="dtype", takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    storage, dtype, rest = _storage(node), node.attr("dtype").as_numpy_dtype, node.attr("element_shape_except0")

    def concat(step: StepContext, handle: ResourceHandle, flow: object) -> tuple[TorchArray, object]:
        array = array_of(step, handle)
        values = [_there(array.read(index), storage) for index in range(len(array))]
        lengths = _there(np.array([value.shape[0] for value in values], np.int64), storage)
        if not values:
            return _there(np.zeros((0, *known_sizes(rest)), dtype), storage), lengths
        check_same_shapes([value.shape[1:] for value in values])
        return _together(torch.cat([value.tensor for value in values]), values), lengths

    return concat


@computes("TensorArraySplitV3", stateful=True, takes_arrays=True)
def _(node: KernelNode) -> TensorFunction:
    def split(step: StepContext, handle: ResourceHandle, value: TorchArray, lengths: object, flow: object) -> object:
        sizes = _listed(lengths)
        check_split(sum(sizes), value.shape, is_sum=True)
        array = array_of(step, handle)
        for index, part in enumerate(torch.split(value.tensor, sizes)):
            array.write(index, _part(part, value), _added)
        return flow

    return split


def _listed(numbers: object) -> list[int]:
    """Numbers as Python's, wherever they are."""
    found = numbers.tensor.tolist() if isinstance(numbers, TorchArray) else cast(np.ndarray, numbers).tolist()
    return cast("list[int]", found)


def _together(tensor: torch.Tensor, values: Sequence[TorchArray]) -> TorchArray:
    return TorchArray(tensor, values[0].number, values[0].dtype)


def _part(tensor: torch.Tensor, whole: TorchArray) -> Array:
    return cast(Array, cast(object, TorchArray(tensor, whole.number, whole.dtype)))
