"""Slots: variables that an optimizer or a moving average keeps for each variable of the model.

A slot of the variable "w" named "Adam" is the variable "w/Adam" on w's device. A part of a partitioned variable has a
slot that is the same part of a partitioned slot; a Saver thus saves both alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.default_graph import colocate_with
from dtf.build.ops import array as array_ops
from dtf.build.ops import filling as filling_ops
from dtf.build.tensor import Tensor
from dtf.build.variable_scope import get_variable, get_variable_scope, variable_scope
from dtf.build.variables import Variable
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike


def create_slot(primary: Any, val: Any, name: str, colocate_with_primary: bool = True) -> Any:
    """A slot of the variable or tensor `primary`, initialized with the tensor `val`."""
    return _create(primary, val, val.shape.is_fully_defined(), None, None, name, colocate_with_primary)


def create_slot_with_initializer(
    primary: Any, initializer: Any, shape: Any, dtype: DTypeLike, name: str, colocate_with_primary: bool = True
) -> Any:
    """A slot of `primary`, of the given shape and dtype, whose value an initializer makes."""
    shape = TensorShape(shape)
    return _create(primary, initializer, shape.is_fully_defined(), shape, dtype, name, colocate_with_primary)


def create_zeros_slot(
    primary: Any, name: str, dtype: DTypeLike | None = None, colocate_with_primary: bool = True
) -> Any:
    """A slot of the shape (and dtype, unless one is given) of `primary`, initialized with zeros."""
    dtype = primary.dtype.base_dtype if dtype is None else dtype
    shape = primary.get_shape()
    if shape.is_fully_defined():

        def zeros(shape: Any, dtype: Any = dtype, partition_info: Any = None) -> Tensor:
            return filling_ops.zeros(shape, dtype)

        return create_slot_with_initializer(primary, zeros, shape, dtype, name, colocate_with_primary)
    source = primary.initialized_value() if isinstance(primary, Variable) else primary
    value = filling_ops.zeros(array_ops.shape(source), dtype)
    return create_slot(primary, value, name, colocate_with_primary)


def _create(
    primary: Any, initial: Any, validate_shape: bool, shape: Any, dtype: Any, name: str, colocated: bool
) -> Any:
    prefix = primary._shared_name if isinstance(primary, Variable) else primary.op.name
    with variable_scope(None, f"{prefix}/{name}"):
        if not colocated:
            return _variable(primary, initial, validate_shape, shape, dtype)
        with colocate_with(primary):
            return _variable(primary, initial, validate_shape, shape, dtype)


def _variable(primary: Any, initial: Any, validate_shape: bool, shape: Any, dtype: Any) -> Any:
    scope = get_variable_scope()
    partitioner = scope.partitioner
    scope.set_partitioner(None)
    try:
        slot = get_variable(
            "",
            initializer=initial,
            trainable=False,
            use_resource=primary.op.type == "VarHandleOp" if isinstance(primary, Variable) else None,
            shape=shape,
            dtype=dtype,
            validate_shape=validate_shape,
        )
    finally:
        scope.set_partitioner(partitioner)
    info = primary._get_save_slice_info() if isinstance(primary, Variable) else None
    rank = slot.shape.ndims
    if info is not None and rank != 0:
        slot._set_save_slice_info(
            Variable.SaveSliceInfo(
                f"{info.full_name}/{slot.op.name[len(primary.op.name) + 1 :]}",
                info.full_shape[:rank],
                info.var_offset[:rank],
                info.var_shape[:rank],
            )
        )
    return slot
