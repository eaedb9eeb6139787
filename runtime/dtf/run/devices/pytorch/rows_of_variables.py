"""Variables: adding to them, and reading or updating them in part. The locks and copy-on-write are `Variable`'s."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor

from dtf.run.devices.pytorch.arrays import TorchArray
from dtf.run.devices.pytorch.rows import TensorFunction, Unsuited, computes
from dtf.run.devices.pytorch.rows_of_indices import combine_rows, gathered, scattered_nd, valid_rows
from dtf.run.executor.step import StepContext
from dtf.run.kernels import KernelNode
from dtf.run.kernels.state import read_resource
from dtf.run.state.resources import ResourceHandle, Variable
from dtf.run.value_types import Array

__all__ = ["tensor_in", "writable_tensor"]

_WAYS = ("Add", "Sub", "Mul", "Div", "Min", "Max", "Update")


def tensor_in(variable: Variable) -> Tensor:
    """The value of a variable of this device.

    Raises:
      Unsuited: it has none, or it lies elsewhere.
    """
    held = variable._array
    if not isinstance(held, TorchArray):
        raise Unsuited
    return held.tensor


def writable_tensor(variable: Variable) -> Tensor:
    """`Variable.writable` of a variable of this device, contiguous. The lock is held."""
    held = cast(TorchArray, cast(object, variable.writable()))
    if not held.tensor.is_contiguous():
        held = TorchArray(held.tensor.contiguous(), held.number, held.dtype)
        variable._array = held
    return held.tensor


def _added(sign: int) -> Callable[[Variable, Tensor], None]:
    def operation(left: Array, right: Array, out: Array | None = None) -> Array:
        target, value = cast(TorchArray, cast(object, left)), cast(Tensor, cast(object, right))
        if out is not None:
            target.tensor.add_(value, alpha=sign)
            return left
        made = TorchArray(target.tensor.add(value, alpha=sign), target.number, target.dtype)
        return cast(Array, cast(object, made))

    def update(variable: Variable, value: Tensor) -> None:
        with variable.lock:
            if tensor_in(variable).shape != value.shape:
                raise Unsuited
            variable.update(operation, cast(Array, cast(object, value)))

    return update


@computes("AssignAdd", "AssignSub")
def _(node: KernelNode) -> TensorFunction:
    update = _added(1 if node.op == "AssignAdd" else -1)

    def assign(variable: Variable, value: Tensor) -> Variable:
        update(variable, value)
        return variable

    return assign


@computes("AssignAddVariableOp", "AssignSubVariableOp", stateful=True, attr="dtype")
def _(node: KernelNode) -> TensorFunction:
    update = _added(1 if node.op == "AssignAddVariableOp" else -1)
    return lambda step, handle, value: update(read_resource(step, handle), value)


# -- rows


def _scatter(how: str, variable: Variable, indices: Tensor, updates: Tensor) -> None:
    with variable.lock:
        value = tensor_in(variable)
        rest = value.shape[1:]
        if not value.dim() or tuple(updates.shape) not in ((), (*indices.shape, *rest)) or not indices.numel():
            raise Unsuited
        is_valid = valid_rows(indices, value.shape[0])
        rows = indices.reshape(-1).long()
        wide = updates.expand(*indices.shape, *rest).reshape(-1, *rest)
        if is_valid is not None:
            kept = is_valid.reshape(-1)
            rows, wide = rows[kept], wide[kept]
        if how == "Div" and not value.is_floating_point():
            raise Unsuited
        combine_rows(how, writable_tensor(variable), rows, wide)


def _scatter_nd(how: str, variable: Variable, indices: Tensor, updates: Tensor) -> None:
    with variable.lock:
        value = tensor_in(variable)
        # Whatever is refused is refused before anything is changed: a copy is updated, and takes the value's place.
        changed = scattered_nd(how, value.clone(memory_format=torch.contiguous_format), indices, updates)
        held = cast(TorchArray, variable._array)
        variable.assign(cast(Array, cast(object, TorchArray(changed, held.number, held.dtype))))


def _rows_of(how: str) -> None:
    @computes(f"Scatter{how}")
    def of_reference(node: KernelNode) -> TensorFunction:
        def scatter(variable: Variable, indices: Tensor, updates: Tensor) -> Variable:
            _scatter(how, variable, indices, updates)
            return variable

        return scatter

    @computes(f"ResourceScatter{how}", stateful=True, attr="dtype")
    def of_resource(node: KernelNode) -> TensorFunction:
        return lambda step, handle, indices, updates: _scatter(how, read_resource(step, handle), indices, updates)

    if how in ("Add", "Sub", "Update", "Min", "Max"):

        @computes(f"ScatterNd{how}")
        def of_reference_nd(node: KernelNode) -> TensorFunction:
            def scatter(variable: Variable, indices: Tensor, updates: Tensor) -> Variable:
                _scatter_nd(how, variable, indices, updates)
                return variable

            return scatter

        @computes(f"ResourceScatterNd{how}", stateful=True)
        def of_resource_nd(node: KernelNode) -> TensorFunction:
            return lambda step, handle, indices, updates: _scatter_nd(
                how, read_resource(step, handle), indices, updates
            )


for _how in _WAYS:
    _rows_of(_how)


@computes("ResourceGather", stateful=True, attr="dtype")
def _(node: KernelNode) -> TensorFunction:
    batch_dims = node.attr("batch_dims")

    def gather(step: StepContext, handle: ResourceHandle, indices: Tensor) -> Tensor:
        if batch_dims:
            raise Unsuited
        variable = read_resource(step, handle)
        with variable.lock:
            return gathered(tensor_in(variable), indices, 0)

    return gather


