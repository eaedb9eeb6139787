"""Array ops that read or write at indices: gather, scatter, stitch and partition; their static shapes.

Ops that write to a variable are in `state`. Kernels: `run.kernels.gathering`; gradients: `array_grad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_scalar, constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops.array import broadcast_to, reshape, shape_of, with_dtype
from dtf.build.ops.joining import concat, stack
from dtf.build.ops.searching import setdiff1d
from dtf.build.shape_rules import axis_of_rank, shape_rule, sizes_of, unchanged, unknown
from dtf.build.sparse import IndexedSlices
from dtf.build.tensor import Tensor
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "batch_gather",
    "dynamic_partition",
    "dynamic_stitch",
    "gather",
    "gather_nd",
    "scatter_nd",
    "sparse_mask",
    "tensor_scatter_add",
    "tensor_scatter_sub",
    "tensor_scatter_update",
]


@dispatched
def gather(
    params: TensorLike,
    indices: TensorLike,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = None,
    batch_dims: int = 0,
) -> Tensor:
    """Slices of a tensor along one dimension, by their indices.

    Args:
      params: the tensor to take slices from.
      indices: int32 or int64 of any shape, in [0, size of the dimension).
      validate_indices: ignored; indices are always checked.
      name: the name of the operation.
      axis: the dimension of `params`; `batch_dims` by default.
      batch_dims: how many leading dimensions both tensors share.

    Returns:
      A Tensor of shape params.shape[:axis] + indices.shape[batch_dims:] + params.shape[axis + 1:].

    Raises:
      InvalidArgumentError: at run time, an index is outside the dimension.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gather
    """
    del validate_indices
    axis = batch_dims if axis is None else axis
    if not batch_dims and isinstance(axis, int) and axis == 0 and hasattr(params, "sparse_read"):
        return params.sparse_read(indices, name=name)
    return apply_op("GatherV2", name, params=params, indices=indices, axis=axis, batch_dims=batch_dims)


@dispatched
def batch_gather(params: TensorLike, indices: TensorLike, name: str | None = None) -> Tensor:
    """`gather` along the last dimension of `indices`, all before it being batch dimensions."""
    indices = convert_to_tensor(indices)
    if indices.shape.ndims is None:
        raise ValueError("batch_gather does not allow indices with unknown shape.")
    return gather(params, indices, name=name, axis=indices.shape.ndims - 1, batch_dims=indices.shape.ndims - 1)


def gather_nd(params: TensorLike, indices: TensorLike, name: str | None = None, batch_dims: int = 0) -> Tensor:
    """Slices or elements of a tensor, by vectors of indices.

    Args:
      params: the tensor to take slices from.
      indices: int32 or int64; each vector along the last dimension names one slice.
      name: the name of the operation.
      batch_dims: how many leading dimensions both tensors share.

    Returns:
      A Tensor of shape indices.shape[:-1] + params.shape[indices.shape[-1]:].

    Raises:
      InvalidArgumentError: at run time, a vector is outside `params`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/gather_nd
    """
    if batch_dims:
        return _batch_gather_nd(params, indices, batch_dims, name)
    if hasattr(params, "gather_nd"):
        return params.gather_nd(indices, name=name)
    return apply_op("GatherNd", name, params=params, indices=indices)


def _batch_gather_nd(params: Any, indices: Any, batch_dims: int, name: str | None) -> Tensor:
    """Puts each element's place in the batch before its index vector."""
    with name_scope(name, "BatchGatherND", [params, indices]):
        indices = convert_to_tensor(indices)
        if indices.shape.ndims is None or batch_dims >= indices.shape.ndims:
            raise ValueError(f"batch_dims = {batch_dims} must be less than rank(indices) = {indices.shape.ndims}")
        whole = shape_of(indices)
        leading = [whole[i] for i in range(indices.shape.ndims - 1)]
        parts = []
        for i in range(batch_dims):
            steps = apply_op("Range", start=0, limit=whole[i], delta=1)
            steps = reshape(steps, [1] * i + [-1] + [1] * (indices.shape.ndims - 1 - i))
            parts.append(with_dtype(broadcast_to(steps, stack([*leading, 1])), indices.dtype))
        return apply_op("GatherNd", params=params, indices=concat([*parts, indices], -1))


def scatter_nd(indices: TensorLike, updates: TensorLike, shape: Any, name: str | None = None) -> Tensor:
    """Zeros with updates added at vectors of indices; equal vectors add up.

    Args:
      indices: int32 or int64; each vector along the last dimension names one slice.
      updates: the values to add, of shape indices.shape[:-1] + shape[indices.shape[-1]:].
      shape: the shape of the result, a vector.
      name: the name of the operation.

    Returns:
      A Tensor of `shape` and the dtype of `updates`.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/scatter_nd
    """
    return apply_op("ScatterNd", name, indices=indices, updates=updates, shape=shape)


def tensor_scatter_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """`tensor` with the slices at the index vectors replaced."""
    return apply_op("TensorScatterUpdate", name, tensor=tensor, indices=indices, updates=updates)


def tensor_scatter_add(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """`tensor` with `updates` added at the index vectors."""
    return apply_op("TensorScatterAdd", name, tensor=tensor, indices=indices, updates=updates)


def tensor_scatter_sub(tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Tensor:
    """`tensor` with `updates` subtracted at the index vectors."""
    return apply_op("TensorScatterSub", name, tensor=tensor, indices=indices, updates=updates)


def sparse_mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """`a` without the slices at `mask_indices`."""
    with name_scope(name, "sparse_mask", [a.values, a.indices, mask_indices]):
        kept, places = setdiff1d(a.indices, mask_indices)
        return IndexedSlices(gather(a.values, places), kept, a.dense_shape)


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """Puts data[m][i, ...] at row indices[m][i] of the result; of equal rows the last one wins."""
    return apply_op("DynamicStitch", name, indices=list(indices), data=list(data))


@dispatched
def dynamic_partition(data: TensorLike, partitions: Any, num_partitions: int, name: str | None = None) -> list[Tensor]:
    """The rows of `data` by the number in `partitions`, one tensor for each of [0, num_partitions)."""
    return list(apply_op("DynamicPartition", name, data=data, partitions=partitions, num_partitions=num_partitions))


# -- shape rules

shape_rule(
    "ScatterNdNonAliasingAdd", "TensorScatterUpdate", "TensorScatterAdd", "TensorScatterSub", "TensorScatterMax",
    "TensorScatterMin",
)(unchanged)  # fmt: skip


@shape_rule("Gather")
def _(op):
    dims = sizes_of(op.inputs[0])
    if dims is None or op.inputs[1].shape.ndims is None:
        return unknown(op)
    return [op.inputs[1].shape.concatenate(op.inputs[0].shape.with_rank_at_least(1)[1:])]


@shape_rule("GatherV2")
def _(op):
    dims, indices, axis = sizes_of(op.inputs[0]), sizes_of(op.inputs[1]), constant_scalar(op.inputs[2])
    batch_dims = op.get_attr("batch_dims")
    if dims is None or indices is None:
        return unknown(op)
    batch_dims = batch_dims + len(indices) if batch_dims < 0 else batch_dims
    op.inputs[0].shape.with_rank_at_least(1)
    if axis is None:
        return [TensorShape([None] * (len(dims) - 1 + len(indices) - batch_dims))]
    at = axis_of_rank(axis, len(dims))
    return [TensorShape(dims[:at] + indices[batch_dims:] + dims[at + 1 :])]


@shape_rule("GatherNd")
def _(op):
    dims, indices = sizes_of(op.inputs[0]), sizes_of(op.inputs[1])
    if [] in (dims, indices):
        raise ValueError("Shape must be at least rank 1 but is rank 0")
    if dims is None or indices is None or indices[-1] is None:
        return unknown(op)
    if indices[-1] > len(dims):
        raise ValueError(
            f"indices.shape[-1] must be <= params.rank, but saw indices shape {indices} and params shape {dims}"
        )
    return [TensorShape(indices[:-1] + dims[indices[-1] :])]


@shape_rule("ScatterNd")
def _(op):
    indices, updates, shape = op.inputs[0].shape, op.inputs[1].shape, constant_value_as_shape(op.inputs[2])
    if indices.ndims is not None and indices.ndims > 0 and updates.ndims is not None:
        updates[: indices.ndims - 1].assert_is_compatible_with(indices[:-1])
        depth = indices[-1].value
        if depth is not None and shape.ndims is not None:
            updates[indices.ndims - 1 :].assert_is_compatible_with(shape[depth:])
    return [shape]


@shape_rule("DynamicStitch", "ParallelDynamicStitch")
def _(op):
    count = op.get_attr("N")
    indices, data = op.inputs[:count], op.inputs[count:]
    rest = TensorShape(None)
    for index, values in zip(indices, data, strict=True):
        if index.shape.ndims is not None and values.shape.ndims is not None:
            values.shape[: index.shape.ndims].assert_is_compatible_with(index.shape)
            rest = rest.merge_with(values.shape[index.shape.ndims :])
    known = [value for value in map(constant_value, indices) if value is not None]
    rows = None
    if len(known) == count:
        rows = max((int(np.max(value)) for value in known if np.size(value)), default=-1) + 1
    return [TensorShape([rows]).concatenate(rest)]


@shape_rule("DynamicPartition")
def _(op):
    count, rank = op.get_attr("num_partitions"), op.inputs[1].shape.ndims
    if rank is None or op.inputs[0].shape.ndims is None:
        return unknown(op)
    if not op.inputs[0].shape[:rank].is_compatible_with(op.inputs[1].shape):
        raise ValueError(
            f"Dimensions must be equal: data.shape must begin with partitions.shape, which are "
            f"{op.inputs[0].shape} and {op.inputs[1].shape}"
        )
    return [TensorShape([None]).concatenate(op.inputs[0].shape[rank:])] * count
