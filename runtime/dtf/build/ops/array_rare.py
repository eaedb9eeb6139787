"""The rarer array ops: rows written as older graphs write them, translations of indices and formats, edit distances.

Kernels: `run.kernels.array_rare`; all but the writes are not differentiable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value_as_shape
from dtf.build.conversion import convert_to_tensor
from dtf.build.shape_rules import shape_rule, unchanged, unknown
from dtf.build.sparse import SparseTensor, SparseTensorValue
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import TensorLike

__all__ = ["edit_distance", "unravel_index"]


def unravel_index(indices: TensorLike, dims: Any, name: str | None = None) -> Tensor:
    """The index vectors of flat row-major `indices` into a tensor of sizes `dims`: [rank] or [rank, n]."""
    return apply_op("UnravelIndex", name, indices=indices, dims=dims)


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """The Levenshtein distances of the sequences in the last dimension of two SparseTensors, float32.

    `normalize` divides by the length of the truth. Not differentiable.

    Raises:
      TypeError: an argument is no SparseTensor.
    """
    for each in (hypothesis, truth):
        if not isinstance(each, (SparseTensor, SparseTensorValue)):
            raise TypeError(f"edit_distance takes SparseTensors, got {each!r}.")
    return apply_op(
        "EditDistance", name, hypothesis_indices=_long(hypothesis.indices), hypothesis_values=hypothesis.values,
        hypothesis_shape=_long(hypothesis.dense_shape), truth_indices=_long(truth.indices), truth_values=truth.values,
        truth_shape=_long(truth.dense_shape), normalize=normalize,
    )  # fmt: skip


def _long(value: Any) -> Tensor:
    return convert_to_tensor(value, dtypes.int64)


shape_rule(
    "InplaceAdd", "InplaceSub", "InplaceUpdate", "DataFormatDimMap", "DataFormatVecPermute", "_ParallelConcatUpdate"
)(unchanged)


@shape_rule("UnravelIndex")
def _(op):
    indices, dims = op.inputs[0].shape, op.inputs[1].shape.with_rank(1)
    return unknown(op) if indices.ndims is None else [dims.concatenate(indices)]


@shape_rule("EditDistance")
def _(op):
    shapes = [constant_value_as_shape(op.inputs[index]) for index in (2, 5)]
    if any(shape.ndims is None for shape in shapes):
        return unknown(op)
    pairs = zip(*(shape.as_list()[:-1] for shape in shapes), strict=True)
    return [TensorShape([None if None in pair else max(size or 0 for size in pair) for pair in pairs])]


@shape_rule("_ParallelConcatStart")
def _(op):
    return [op.get_attr("shape")]
