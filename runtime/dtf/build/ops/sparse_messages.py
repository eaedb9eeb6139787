"""Packing SparseTensors into strings and back, and into a task's table behind handles: functions and static shapes.

Kernels: `run.kernels.sparse_messages`. Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/io
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.shape_rules import shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike

__all__ = ["deserialize_many_sparse", "serialize_many_sparse", "serialize_sparse"]


def serialize_sparse(sp_input: SparseTensor, name: str | None = None, out_type: DTypeLike = dtypes.string) -> Tensor:
    """A string vector [3]: indices, values and dense shape as serialized TensorProtos."""
    return _packed("SerializeSparse", sp_input, name, out_type)


def serialize_many_sparse(
    sp_input: SparseTensor, name: str | None = None, out_type: DTypeLike = dtypes.string
) -> Tensor:
    """A string matrix [rows, 3]: each row of the first dimension packed as `serialize_sparse` does."""
    return _packed("SerializeManySparse", sp_input, name, out_type)


def _packed(op_type: str, sp_input: SparseTensor, name: str | None, out_type: Any) -> Tensor:
    return apply_op(
        op_type, name, sparse_indices=sp_input.indices, sparse_values=sp_input.values,
        sparse_shape=sp_input.dense_shape, out_type=out_type,
    )  # fmt: skip


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: DTypeLike, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """One SparseTensor whose rows are the packed ones, each of `rank` - 1 dimensions. serialized_sparse: [rows, 3]."""
    indices, values, shape = apply_op(
        "DeserializeManySparse", name, serialized_sparse=serialized_sparse, dtype=dtype
    )
    indices.set_shape([None, rank])
    shape.set_shape([rank])
    return SparseTensor(indices, values, shape)


# -- shape rules


@shape_rule("SerializeSparse")
def _(op):
    return [TensorShape([3])]


@shape_rule("SerializeManySparse")
def _(op):
    return [TensorShape([None, 3])]


@shape_rule("DeserializeSparse", "DeserializeManySparse", "TakeManySparseFromTensorsMap")
def _(op):
    return [TensorShape([None, None]), TensorShape([None]), TensorShape([None])]


@shape_rule("AddSparseToTensorsMap")
def _(op):
    return [TensorShape([])]


@shape_rule("AddManySparseToTensorsMap")
def _(op):
    return [TensorShape([None])]
