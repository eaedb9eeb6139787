"""Gradients of the ops that read variables; ops that make or change variables pass no gradient on."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.gradients import gradient, not_differentiable
from dtf.build.graph import Operation, Tensor
from dtf.build.ops.state import handle_shape
from dtf.build.sparse import IndexedSlices

not_differentiable(
    "Assign", "AssignAdd", "AssignAddVariableOp", "AssignSub", "AssignSubVariableOp", "AssignVariableOp",
    "CountUpTo", "DestroyResourceOp", "DestroyTemporaryVariable", "IsVariableInitialized", "ResourceCountUpTo",
    "ResourceScatterAdd", "ResourceScatterDiv", "ResourceScatterMax", "ResourceScatterMin",
    "ResourceScatterMul", "ResourceScatterNdAdd", "ResourceScatterNdMax", "ResourceScatterNdMin",
    "ResourceScatterNdSub", "ResourceScatterNdUpdate", "ResourceScatterSub", "ResourceScatterUpdate",
    "ResourceStridedSliceAssign", "ScatterAdd", "ScatterDiv", "ScatterMax", "ScatterMin", "ScatterMul",
    "ScatterNdAdd", "ScatterNdMax", "ScatterNdMin", "ScatterNdSub", "ScatterNdUpdate", "ScatterSub",
    "ScatterUpdate", "TemporaryVariable", "VarHandleOp", "VarIsInitializedOp", "Variable", "VariableShape",
    "VariableV2", "_Arg", "_ArrayToList", "_HostRecv", "_HostSend", "_ListToArray", "_Recv", "_Retval", "_Send",
    "_VarHandlesOp",
)  # fmt: skip


@gradient("ReadVariableOp")
def _read(op: Operation, grad: Tensor) -> list[Any]:
    return [grad]


@gradient("_ReadVariablesOp")
def _read_several(op: Operation, *grads: Tensor) -> list[Any]:
    return list(grads)


@gradient("ResourceGather")
def _gather(op: Operation, grad: Tensor) -> list[Any]:
    """Rows remain rows: the gradient of a table has the size of the lookup, not of the table."""
    handle, indices = op.inputs
    shape = handle_shape(handle)
    if op.get_attr("batch_dims"):
        raise NotImplementedError("ResourceGather with batch_dims has no gradient here; gather from the read value")
    if shape.is_fully_defined():
        sizes = shape.as_list()
        flat = apply_op("Reshape", None, tensor=grad, shape=[-1, *sizes[1:]])
        dense_shape = constant(sizes)
    else:
        dense_shape = apply_op("VariableShape", None, input=handle)
        inner = apply_op("Slice", None, input=dense_shape, begin=[1], size=[-1])
        flat = apply_op("Reshape", None, tensor=grad, shape=apply_op("ConcatV2", None, values=[[-1], inner], axis=0))
    rows = apply_op("Reshape", None, tensor=indices, shape=[-1])
    return [IndexedSlices(flat, rows, dense_shape), None]


@gradient("ResourceGatherNd")
def _gather_nd(op: Operation, grad: Tensor) -> list[Any]:
    handle, indices = op.inputs
    shape = apply_op("VariableShape", None, input=handle, out_type=indices.dtype)
    if indices.shape.ndims == 2 and indices.shape.as_list()[-1] == 1:
        return [IndexedSlices(grad, apply_op("Squeeze", None, input=indices, squeeze_dims=[-1]), shape), None]
    return [apply_op("ScatterNd", None, indices=indices, updates=grad, shape=shape), None]
