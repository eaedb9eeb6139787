"""Sums, extremes, parts, reductions and softmax of SparseTensors: public functions and static shapes.

Kernels: `run.kernels.sparse_arithmetic`; gradients: `sparse_grad`. Source:
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sparse
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.shape_rules import shape_rule, unknown
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "sparse_add", "sparse_maximum", "sparse_minimum", "sparse_reduce_max", "sparse_reduce_max_sparse",
    "sparse_reduce_sum", "sparse_reduce_sum_sparse", "sparse_reset_shape", "sparse_slice", "sparse_softmax",
    "sparse_split", "sparse_transpose",
]  # fmt: skip


def sparse_add(a: TensorLike, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum of two tensors of one shape, at least one of them sparse; sparse if both are, else dense.

    Sums of two stored elements that are smaller than `threshold` in absolute value are not stored.

    Raises:
      TypeError: neither is a SparseTensor.
    """
    a, b = (SparseTensor.from_value(each) if isinstance(each, SparseTensorValue) else each for each in (a, b))
    if not isinstance(a, SparseTensor) and not isinstance(b, SparseTensor):
        raise TypeError("sparse_add takes at least one SparseTensor.")
    if isinstance(a, SparseTensor) and isinstance(b, SparseTensor):
        limit = threshold if threshold is not None else (0 if thresh is None else thresh)
        limit = convert_to_tensor(limit, a.values.dtype.real_dtype.base_dtype, name="thresh")
        static = [each.shape for each in (a, b)]
        made = SparseTensor(*apply_op(
            "SparseAdd", a_indices=a.indices, a_values=a.values, a_shape=a.dense_shape, b_indices=b.indices,
            b_values=b.values, b_shape=b.dense_shape, thresh=limit,
        ))  # fmt: skip
        made._partial_shape = static[0].merge_with(static[1]) if static[0].is_compatible_with(static[1]) else None
        return made
    sparse, dense = (a, b) if isinstance(a, SparseTensor) else (b, a)
    return apply_op(
        "SparseTensorDenseAdd", a_indices=sparse.indices, a_values=sparse.values, a_shape=sparse.dense_shape, b=dense
    )


def sparse_maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elementwise maximum; missing elements count as 0."""
    return _extreme("SparseSparseMaximum", sp_a, sp_b, name)


def sparse_minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elementwise minimum; missing elements count as 0."""
    return _extreme("SparseSparseMinimum", sp_a, sp_b, name)


def _extreme(op_type: str, a: SparseTensor, b: SparseTensor, name: str | None) -> SparseTensor:
    with name_scope(name, op_type, [a.indices, a.values, b.indices, b.values]) as name:
        indices, values = apply_op(
            op_type, name, a_indices=a.indices, a_values=a.values, a_shape=a.dense_shape, b_indices=b.indices,
            b_values=b.values, b_shape=b.dense_shape,
        )  # fmt: skip
        return SparseTensor(indices, values, a.dense_shape)


def sparse_slice(sp_input: SparseTensor, start: TensorLike, size: Any, name: str | None = None) -> SparseTensor:
    """The block of `size` elements along each dimension that begins at `start` (int64 vectors), cut at the edges."""
    with name_scope(name, "SparseSlice", [sp_input.values]) as name:
        return SparseTensor(*apply_op(
            "SparseSlice", name, indices=sp_input.indices, values=sp_input.values, shape=sp_input.dense_shape,
            start=convert_to_tensor(start, dtypes.int64), size=convert_to_tensor(size, dtypes.int64),
        ))  # fmt: skip


def sparse_split(
    sp_input: Any = None,
    num_split: int | None = None,
    axis: Any = None,
    name: str | None = None,
    split_dim: Any = None,
) -> list[SparseTensor]:
    """`num_split` SparseTensors along `axis`; the first ones are one longer where the size does not divide.

    Raises:
      ValueError: an argument is missing.
    """
    axis = split_dim if axis is None else axis
    if sp_input is None or num_split is None or axis is None:
        raise ValueError("sparse_split needs the keyword arguments sp_input, num_split and axis.")
    parts = apply_op(
        "SparseSplit", name, split_dim=convert_to_tensor(axis, dtypes.int64), indices=sp_input.indices,
        values=sp_input.values, shape=sp_input.dense_shape, num_split=num_split,
    )  # fmt: skip
    return [SparseTensor(*each) for each in zip(*parts, strict=True)]


def sparse_reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The dense sum over the dimensions `axis` (all without it)."""
    return _reduce("SparseReduceSum", sp_input, axis, keepdims, reduction_axes, keep_dims)


def sparse_reduce_sum_sparse(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """The sum over the dimensions `axis` (all without it) as a SparseTensor."""
    return SparseTensor(*_reduce("SparseReduceSumSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def sparse_reduce_max(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The largest stored element over the dimensions `axis` (all without it), 0 where none is stored."""
    return _reduce("SparseReduceMax", sp_input, axis, keepdims, reduction_axes, keep_dims)


def sparse_reduce_max_sparse(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """The largest stored element over the dimensions `axis` (all without it) as a SparseTensor."""
    return SparseTensor(*_reduce("SparseReduceMaxSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def _reduce(
    op_type: str, sp_input: SparseTensor, axis: Any, keepdims: bool | None, old_axis: Any, old_keep: bool | None
) -> Any:
    axis = old_axis if axis is None else axis
    if axis is None:
        axes: Any = apply_op("Range", start=0, limit=apply_op("Size", input=sp_input.dense_shape), delta=1)
    else:
        axes = axis if isinstance(axis, (list, tuple, Tensor)) else [axis]
    return apply_op(
        op_type, input_indices=sp_input.indices, input_values=sp_input.values, input_shape=sp_input.dense_shape,
        reduction_axes=convert_to_tensor(axes, dtypes.int32),
        keep_dims=bool(keepdims if keepdims is not None else old_keep),
    )  # fmt: skip


def sparse_softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax over the stored elements of each row of the last dimension. Rank 2 or more."""
    with name_scope(name, "SparseSoftmax", [sp_input.indices, sp_input.values]) as name:
        values = apply_op(
            "SparseSoftmax", name, sp_indices=sp_input.indices, sp_values=sp_input.values, sp_shape=sp_input.dense_shape
        )
        return SparseTensor(sp_input.indices, values, sp_input.dense_shape)


def sparse_transpose(sp_input: SparseTensor, perm: TensorLike | None = None, name: str | None = None) -> SparseTensor:
    """The dimensions in the order `perm` (reversed without it), the stored elements in row-major order again."""
    sp_input = SparseTensor.from_value(sp_input)
    with name_scope(name, "SparseTranspose", [sp_input.values]):
        if perm is None:
            rank = sp_input.dense_shape.shape.as_list()[0] if sp_input.dense_shape.shape.ndims is not None else None
            perm = list(range(rank))[::-1] if rank is not None else _reversed_axes(sp_input)
        transposed = SparseTensor(
            apply_op("GatherV2", params=sp_input.indices, indices=perm, axis=1),
            sp_input.values,
            apply_op("GatherV2", params=sp_input.dense_shape, indices=perm, axis=0),
        )
        indices, values = apply_op(
            "SparseReorder", input_indices=transposed.indices, input_values=transposed.values,
            input_shape=transposed.dense_shape,
        )  # fmt: skip
        made = SparseTensor(indices, values, transposed.dense_shape)
        order, sizes = constant_value(convert_to_tensor(perm)), sp_input.shape
        if order is not None and sizes.ndims is not None:
            made._partial_shape = TensorShape([sizes.as_list()[int(axis)] for axis in order])
        return made


def _reversed_axes(sp_input: SparseTensor) -> Tensor:
    rank = apply_op("Size", input=sp_input.dense_shape)
    return apply_op("Sub", x=apply_op("Sub", x=rank, y=1), y=apply_op("Range", start=0, limit=rank, delta=1))


def sparse_reset_shape(sp_input: SparseTensor, new_shape: Any = None) -> SparseTensor:
    """The same stored elements in a larger dense shape; by default in the smallest shape that holds them."""
    sp_input = SparseTensor.from_value(sp_input)
    if new_shape is None:
        largest = apply_op("Max", input=sp_input.indices, reduction_indices=0)
        ones = apply_op("OnesLike", x=sp_input.dense_shape)
        # Without stored elements the maximum is the least int64, and the sum is the sum of an empty tensor.
        dense_shape = apply_op("Maximum", x=apply_op("ZerosLike", x=ones), y=apply_op("AddV2", x=largest, y=ones))
        return SparseTensor(sp_input.indices, sp_input.values, dense_shape)
    wanted = convert_to_tensor(new_shape, dtypes.int64)
    known, least = constant_value_as_shape(wanted), constant_value_as_shape(sp_input.dense_shape)
    if known.is_fully_defined() and least.is_fully_defined():
        sizes, lengths = np.array(known.as_list()), np.array(least.as_list())
        if sizes.shape != lengths.shape or (sizes < lengths).any():
            raise ValueError(f"new_shape must be at least the shape of the input in each dimension: {known}, {least}")
        return SparseTensor(sp_input.indices, sp_input.values, wanted)
    fits = apply_op(
        "Assert",
        condition=apply_op("All", input=apply_op("LessEqual", x=sp_input.dense_shape, y=wanted), reduction_indices=[0]),
        data=["The new shape is smaller than the shape of the SparseTensor.", sp_input.dense_shape, wanted],
    )
    with wanted.graph.control_dependencies([fits]):
        checked = apply_op("Identity", input=wanted)
    return SparseTensor(sp_input.indices, sp_input.values, checked)


# -- shape rules


def _rank(op: Operation, index: int) -> int | None:
    """The number of columns of the index matrix that is input `index`."""
    return op.inputs[index].shape.with_rank(2).as_list()[1]


def _some(rank: int | None) -> list[TensorShape]:
    """A sparse tensor whose number of stored elements is not yet known."""
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]


@shape_rule("SparseAdd")
def _(op):
    return _some(_rank(op, 0))


@shape_rule("SparseAddGrad")
def _(op):
    return [TensorShape([op.inputs[index].shape.with_rank(2).as_list()[0]]) for index in (1, 2)]


@shape_rule("SparseSparseMaximum", "SparseSparseMinimum")
def _(op):
    return _some(_rank(op, 0))[:2]


@shape_rule("SparseDenseCwiseAdd", "SparseDenseCwiseMul", "SparseDenseCwiseDiv", "SparseSoftmax")
def _(op):
    return [op.inputs[1].shape.with_rank(1)]


@shape_rule("SparseSlice")
def _(op):
    return _some(op.inputs[2].shape.with_rank(1).as_list()[0])


@shape_rule("SparseSliceGrad")
def _(op):
    return [TensorShape([op.inputs[1].shape.with_rank(2).as_list()[0]])]


@shape_rule("SparseSplit")
def _(op):
    indices, values, shape = _some(op.inputs[3].shape.with_rank(1).as_list()[0])
    count = op.get_attr("num_split")
    return [*[indices] * count, *[values] * count, *[shape] * count]


@shape_rule("SparseReduceSum", "SparseReduceMax")
def _(op):
    shape, axes = constant_value_as_shape(op.inputs[2]), constant_value(op.inputs[3])
    if shape.ndims is None or axes is None:
        return unknown(op)
    dims = shape.as_list()
    if not dims:  # the step refuses it
        return unknown(op)
    reduced = {int(axis) % len(dims) for axis in axes.ravel()}
    if op.get_attr("keep_dims"):
        return [TensorShape([1 if axis in reduced else dim for axis, dim in enumerate(dims)])]
    return [TensorShape([dim for axis, dim in enumerate(dims) if axis not in reduced])]


@shape_rule("SparseReduceSumSparse", "SparseReduceMaxSparse")
def _(op):
    return _some(None)
