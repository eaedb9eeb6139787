"""Ops on SparseTensors: their public functions and static shapes.

Owns the conversion, order and matrix products of SparseTensors; arithmetic, parts and reductions are in
`sparse_arithmetic`, packing in `sparse_messages`. The container is `dtf.build.sparse`. Source:
https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sparse
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value, constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.filling import zeros
from dtf.build.ops.slicing import boolean_mask
from dtf.build.shape_rules import shape_rule
from dtf.build.sparse import SparseTensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = [
    "sparse_concat",
    "sparse_fill_empty_rows",
    "sparse_reorder",
    "sparse_reshape",
    "sparse_retain",
    "sparse_tensor_dense_matmul",
    "sparse_tensor_to_dense",
    "sparse_to_dense",
    "sparse_to_indicator",
]


def sparse_to_dense(
    sparse_indices: Any,
    output_shape: Any,
    sparse_values: Any,
    default_value: TensorLike = 0,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A dense tensor with `sparse_values` at `sparse_indices` and the default elsewhere."""
    return apply_op(
        "SparseToDense",
        name,
        sparse_indices=sparse_indices,
        output_shape=output_shape,
        sparse_values=sparse_values,
        default_value=default_value,
        validate_indices=validate_indices,
    )


def sparse_tensor_to_dense(
    sp_input: SparseTensor,
    default_value: TensorLike | None = None,
    validate_indices: bool = True,
    name: str | None = None,
) -> Tensor:
    """A SparseTensor as a dense tensor; missing elements are `default_value`: zero or the empty string."""
    sp_input = SparseTensor.from_value(sp_input)
    if default_value is None:
        default_value = zeros([], sp_input.dtype)
    return sparse_to_dense(
        sp_input.indices, sp_input.dense_shape, sp_input.values, default_value, validate_indices, name
    )


def sparse_tensor_dense_matmul(
    sp_a: SparseTensor, b: TensorLike, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The matrix product of a sparse [m, k] and a dense [k, n] matrix, each optionally conjugated and transposed."""
    return apply_op(
        "SparseTensorDenseMatMul",
        name,
        a_indices=sp_a.indices,
        a_values=sp_a.values,
        a_shape=sp_a.dense_shape,
        b=b,
        adjoint_a=adjoint_a,
        adjoint_b=adjoint_b,
    )


def sparse_reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The same tensor with its indices in row-major order."""
    indices, values = apply_op(
        "SparseReorder",
        name,
        input_indices=sp_input.indices,
        input_values=sp_input.values,
        input_shape=sp_input.dense_shape,
    )
    return SparseTensor(indices, values, sp_input.dense_shape)


def sparse_reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """The same elements in row-major order in another shape; one size may be -1.

    Raises:
      ValueError: the shape has another number of elements, as far as both are known.
    """
    sp_input = SparseTensor.from_value(sp_input)
    new_shape = convert_to_tensor(shape, dtypes.int64) if not isinstance(shape, Tensor) else shape
    if new_shape.dtype.base_dtype != dtypes.int64:
        new_shape = apply_op("Cast", x=new_shape, DstT=dtypes.int64)
    indices, dense_shape = apply_op(
        "SparseReshape", name, input_indices=sp_input.indices, input_shape=sp_input.dense_shape, new_shape=new_shape
    )
    made = SparseTensor(indices, sp_input.values, dense_shape)
    sizes, count = constant_value_as_shape(new_shape), sp_input.shape.num_elements()
    if sizes.ndims is not None:
        known = sizes.as_list()
        wanted = constant_value(new_shape)
        if count is not None and wanted is not None and known.count(None) == 1:
            rest = int(np.prod([size for size in known if size is not None]))
            known = [count // rest if size is None and rest else size for size in known]
        total = TensorShape(known).num_elements()
        if count is not None and total is not None and count != total:
            raise ValueError(
                f"Cannot reshape a tensor with {count} elements to shape {known} ({total} elements)."
            )
        made._partial_shape = TensorShape(known)
    return made


def sparse_concat(
    axis: int | None = None,
    sp_inputs: Sequence[SparseTensor] = (),
    name: str | None = None,
    expand_nonconcat_dim: bool = False,
    concat_dim: int | None = None,
    expand_nonconcat_dims: bool | None = None,
) -> SparseTensor:
    """Joins sparse tensors along an existing dimension.

    Args:
      axis: the dimension.
      sp_inputs: SparseTensors; the other dimensions are equal unless `expand_nonconcat_dim`.
      name: the name of the operation.
      expand_nonconcat_dim: other dimensions take the greatest size.
      concat_dim: the older name of `axis`.
      expand_nonconcat_dims: the newer name of `expand_nonconcat_dim`.

    Raises:
      TypeError: no axis, or no inputs.
    """
    axis = concat_dim if axis is None else axis
    if axis is None or not sp_inputs:
        raise TypeError("sparse_concat takes an axis and a list of SparseTensors.")
    sp_inputs = [SparseTensor.from_value(each) for each in sp_inputs]
    if len(sp_inputs) == 1:
        return sp_inputs[0]
    static = [each.shape for each in sp_inputs]
    if expand_nonconcat_dim or expand_nonconcat_dims:
        sp_inputs = _to_one_size(sp_inputs, axis)
    made = apply_op(
        "SparseConcat",
        name,
        indices=[each.indices for each in sp_inputs],
        values=[each.values for each in sp_inputs],
        shapes=[each.dense_shape for each in sp_inputs],
        concat_dim=axis,
    )
    joined = SparseTensor(*made)
    if all(each.ndims is not None for each in static):
        at = axis % len(static[0])
        total = [each[at].value for each in static]
        sizes = TensorShape(None)
        if expand_nonconcat_dim or expand_nonconcat_dims:
            columns = zip(*(each.as_list() for each in static), strict=True)
            static = [TensorShape([None if None in column else max(column) for column in columns])]
        for each in static:
            sizes = sizes.merge_with([*each.as_list()[:at], None, *each.as_list()[at + 1 :]])
        known = sizes.as_list()
        known[at] = None if None in total else sum(total)
        joined._partial_shape = TensorShape(known)
    return joined


def _to_one_size(sp_inputs: Sequence[SparseTensor], axis: int) -> list[SparseTensor]:
    """As `sparse_concat`; each dimension other than `axis` gets the largest of the inputs' sizes."""
    greatest = apply_op("Max", input=apply_op("Pack", values=[each.dense_shape for each in sp_inputs]),
                        reduction_indices=[0])  # fmt: skip
    rank = apply_op("Size", input=greatest)
    here = apply_op("Equal", x=apply_op("Range", start=0, limit=rank, delta=1),
                    y=apply_op("FloorMod", x=axis, y=rank))  # fmt: skip
    return [
        SparseTensor(each.indices, each.values, apply_op("SelectV2", condition=here, t=each.dense_shape, e=greatest))
        for each in sp_inputs
    ]


def sparse_fill_empty_rows(
    sp_input: SparseTensor, default_value: TensorLike, name: str | None = None
) -> tuple[SparseTensor, Tensor]:
    """(the same with `default_value` at [row, 0] of each row that stores nothing, which rows those were)."""
    default = convert_to_tensor(default_value, sp_input.values.dtype)
    indices, values, empty, _ = apply_op(
        "SparseFillEmptyRows",
        name,
        indices=sp_input.indices,
        values=sp_input.values,
        dense_shape=sp_input.dense_shape,
        default_value=default,
    )
    return SparseTensor(indices, values, sp_input.dense_shape), empty


def sparse_retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """Only the stored elements where the bool vector `to_retain` is True."""
    sp_input, kept = SparseTensor.from_value(sp_input), convert_to_tensor(to_retain)
    if kept.shape.ndims is None:
        kept.set_shape([None])
    return SparseTensor(boolean_mask(sp_input.indices, kept), boolean_mask(sp_input.values, kept), sp_input.dense_shape)


def sparse_to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> Tensor:
    """A dense bool tensor [..., vocab_size]: which ids the last dimension of `sp_input` stores."""
    with name_scope(name, "SparseToIndicator", [sp_input.values]):
        ids = sp_input.values
        ids = ids if ids.dtype.base_dtype == dtypes.int64 else apply_op("Cast", x=ids, DstT=dtypes.int64)
        rows = sp_input.indices[:, :-1]
        places = apply_op("ConcatV2", values=[rows, apply_op("ExpandDims", input=ids, dim=1)], axis=1)
        shape = apply_op(
            "ConcatV2", values=[sp_input.dense_shape[:-1], convert_to_tensor([vocab_size], dtypes.int64)], axis=0
        )
        hits = apply_op("ScatterNd", indices=places, updates=apply_op("OnesLike", x=ids), shape=shape)
        return apply_op("Greater", x=hits, y=convert_to_tensor(0, dtypes.int64))


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements of a dense tensor that are not zero (not empty, of strings)."""
    with name_scope(name, "dense_to_sparse"):
        tensor = convert_to_tensor(tensor)
        indices = apply_op("Where", input=apply_op("NotEqual", x=tensor, y=zeros([], tensor.dtype)))
        return SparseTensor(
            indices, apply_op("GatherNd", params=tensor, indices=indices),
            apply_op("Shape", input=tensor, out_type=dtypes.int64),
        )  # fmt: skip


def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The sparse matrix with ones on its main diagonal."""
    with name_scope(name, "eye"):
        sizes: list[int] = []
        for size in (num_rows, num_rows if num_columns is None else num_columns):
            known = constant_value(size) if isinstance(size, Tensor) else size
            if known is None:
                raise ValueError("tf.sparse.eye needs sizes that are known while the graph is built")
            sizes.append(int(known))
        steps = np.arange(min(sizes), dtype=np.int64)
        values = np.ones(len(steps), dtypes.as_dtype(dtype).as_numpy_dtype)
        return SparseTensor(np.stack([steps, steps], axis=1), values, np.array(sizes, np.int64))


def expand_dims(sp_input: SparseTensor, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """The same tensor with a dimension of size 1 inserted before `axis` (counted from the back if negative; by default
    last).

    Raises:
      ValueError: the axis is out of range, or the rank unknown.
    """
    with name_scope(name, "expand_dims", [sp_input.values]):
        rank = sp_input.dense_shape.shape.as_list()[0]
        if rank is None:
            raise ValueError("The rank of the SparseTensor must be known.")
        at = -1 if axis is None else axis
        if not -rank - 1 <= at <= rank:
            raise ValueError(f"axis {at} is out of range for a SparseTensor of rank {rank}")
        at %= rank + 1
        column = apply_op("ZerosLike", x=sp_input.indices[:, :1])
        indices = apply_op("ConcatV2", values=[sp_input.indices[:, :at], column, sp_input.indices[:, at:]], axis=1)
        one = np.ones(1, np.int64)
        shape = apply_op("ConcatV2", values=[sp_input.dense_shape[:at], one, sp_input.dense_shape[at:]], axis=0)
        return SparseTensor(indices, sp_input.values, shape)


def cross(inputs: Sequence[Any], name: str | None = None, separator: str | None = None) -> SparseTensor:
    """Every combination of one feature of each column, row by row, joined by the separator ("_X_"): strings.

    inputs: matrices, sparse or dense, of strings or integers, with as many rows each.
    """
    sparse = [each for each in inputs if isinstance(each, SparseTensor)]
    dense = [_feature(each) for each in inputs if not isinstance(each, SparseTensor)]
    return SparseTensor(*apply_op(
        "SparseCrossV2", name, indices=[each.indices for each in sparse],
        values=[_feature(each.values) for each in sparse], shapes=[each.dense_shape for each in sparse],
        dense_inputs=dense, sep="_X_" if separator is None else separator,
    ))  # fmt: skip


DEFAULT_HASH_KEY = 0xDECAFCAFFE
"""What the hashes of crosses begin with, unless the caller gives a key."""


def cross_hashed(
    inputs: Sequence[Any], num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """Every combination of one feature of each column, row by row, as a hash.

    Args:
      inputs: matrices, sparse or dense, of strings or integers, with as many rows each.
      num_buckets: the hashes are below this number; 0 for all of int64.
      hash_key: what the hashes begin with.
      name: the name of the operation.

    Returns:
      A SparseTensor of int64.

    Raises:
      TypeError: `inputs` is not a list.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/sparse/cross_hashed
    """
    if not isinstance(inputs, list | tuple):
        raise TypeError("Inputs must be a list")
    sparse = [each for each in inputs if isinstance(each, SparseTensor)]
    dense = [_feature(each) for each in inputs if not isinstance(each, SparseTensor)]
    values = [_feature(each.values) for each in sparse]
    has_numbers = any(each.dtype != dtypes.string for each in (*values, *dense))
    return SparseTensor(*apply_op(
        "SparseCross", name, indices=[each.indices for each in sparse], values=values,
        shapes=[each.dense_shape for each in sparse], dense_inputs=dense, hashed_output=True, num_buckets=num_buckets,
        hash_key=hash_key or DEFAULT_HASH_KEY, out_type=dtypes.int64,
        internal_type=dtypes.int64 if has_numbers else dtypes.string,
    ))  # fmt: skip


def _feature(values: Any) -> Tensor:
    tensor = convert_to_tensor(values)
    return apply_op("Cast", x=tensor, DstT=dtypes.int64) if tensor.dtype.is_integer else tensor


# -- shape rules


@shape_rule("SparseToDense")
def _(op):
    return [constant_value_as_shape(op.inputs[1])]


@shape_rule("SparseTensorDenseMatMul")
def _(op):
    left = constant_value_as_shape(op.inputs[2])
    rows, columns = (None, None) if left.ndims is None else left.with_rank(2).as_list()
    rows = columns if op.get_attr("adjoint_a") else rows
    right = op.inputs[3].shape.with_rank(2).as_list()
    inner = None if left.ndims is None else left.as_list()[0 if op.get_attr("adjoint_a") else 1]
    inner_right = right[1] if op.get_attr("adjoint_b") else right[0]
    if inner is not None and inner_right is not None and inner != inner_right:
        raise ValueError(f"Dimensions must be equal, but are {inner} and {inner_right}")
    return [TensorShape([rows, right[0] if op.get_attr("adjoint_b") else right[1]])]


@shape_rule("SparseTensorDenseAdd")
def _(op):
    return [op.inputs[3].shape]


shape_rule("SparseReorder")(lambda op: [op.inputs[0].shape.with_rank(2), op.inputs[1].shape.with_rank(1)])
shape_rule("SparseFillEmptyRowsGrad")(lambda op: [op.inputs[0].shape, TensorShape([])])


@shape_rule("SparseReshape")
def _(op):
    rows = op.inputs[0].shape.with_rank(2).as_list()[0]
    rank = op.inputs[2].shape.with_rank(1).as_list()[0]
    return [TensorShape([rows, rank]), TensorShape([rank])]


@shape_rule("SparseFillEmptyRows")
def _(op):
    rank = op.inputs[0].shape.with_rank(2).as_list()[1]
    shape = constant_value_as_shape(op.inputs[2])
    rows = None if shape.ndims is None else shape.as_list()[0]
    return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rows]), op.inputs[1].shape]


@shape_rule("SparseConcat")
def _(op):
    count = len(op.inputs) // 3
    indices = [each.shape.with_rank(2).as_list() for each in op.inputs[:count]]
    shapes = [each.shape.with_rank(1).as_list()[0] for each in op.inputs[2 * count :]]
    values = [each.shape.with_rank(1).as_list()[0] for each in op.inputs[count : 2 * count]]
    rank = next((each for each in (*(size[1] for size in indices), *shapes) if each is not None), None)
    sizes = [size[0] if size[0] is not None else size[0] for size in indices]
    rows = [value if size is None else size for size, value in zip(sizes, values, strict=True)]
    total = None if None in rows else sum(rows)
    return [TensorShape([total, rank]), TensorShape([total]), TensorShape([rank])]


@shape_rule("SparseCross", "SparseCrossV2")
def _(op):
    return [TensorShape([None, 2]), TensorShape([None]), TensorShape([2])]
