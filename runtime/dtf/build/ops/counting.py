"""Counting whole numbers, in all or in rows, and numbers by ranges: public functions and static shapes.

Kernels: `run.kernels.counting`; nothing here is differentiable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant import constant
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.ops.math import add, cast, floor, greater, maximum, minimum, multiply, subtract, truediv
from dtf.build.ops.reductions import reduce_max, reduce_prod
from dtf.build.shape_rules import shape_rule, unknown
from dtf.build.tensor import Operation, Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "bincount", "histogram_fixed_width", "histogram_fixed_width_bins",
]  # fmt: skip


def bincount(
    arr: Any,
    weights: TensorLike | None = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: DTypeLike = dtypes.int32,
) -> Tensor:
    """How often each value of `arr` (int32, not negative) occurs: a vector that is long enough for the largest value.

    With `weights` (of the shape of `arr`) bin i is the sum of the weights of the values i, in their type. `minlength`
    and `maxlength` bound the length of the result; values beyond it are not counted.
    """
    with name_scope(None, "bincount", [arr, weights]):
        arr = convert_to_tensor(arr, dtype=dtypes.int32, name="arr")
        present = greater(reduce_prod(apply_op("Shape", input=arr)), 0)
        size = multiply(cast(present, dtypes.int32), add(reduce_max(arr), 1))
        if minlength is not None:
            size = maximum(convert_to_tensor(minlength, dtype=dtypes.int32, name="minlength"), size)
        if maxlength is not None:
            size = minimum(convert_to_tensor(maxlength, dtype=dtypes.int32, name="maxlength"), size)
        weights = constant([], dtype) if weights is None else weights
        counts = apply_op("Bincount", arr=arr, size=size, weights=weights)
        known = constant_value(arr)
        if known is not None:
            length = int(known.max()) + 1 if known.size else 0
            bounds = (0 if each is None else each for each in (minlength, maxlength))
            least, most = (constant_value(convert_to_tensor(each)) for each in bounds)
            if least is not None and most is not None:
                length = max(length, int(least))
                counts.set_shape([length if maxlength is None else min(length, int(most))])
        return counts


def histogram_fixed_width(
    values: TensorLike, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """How many values fall into each of `nbins` equal parts of [low, high] = value_range; the ends take outsiders."""
    with name_scope(name, "histogram_fixed_width", [values, value_range, nbins]) as name:
        return apply_op(
            "HistogramFixedWidth", name, values=values, value_range=value_range, nbins=nbins,
            dtype=dtypes.as_dtype(dtype),
        )  # fmt: skip


def histogram_fixed_width_bins(
    values: TensorLike, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """For each value the part of `histogram_fixed_width` that it falls into."""
    with name_scope(name, "histogram_fixed_width_bins", [values, value_range, nbins]):
        values = convert_to_tensor(values, name="values")
        low, high = (
            apply_op("GatherV2", params=convert_to_tensor(value_range), indices=index, axis=0) for index in (0, 1)
        )
        nbins = convert_to_tensor(nbins, dtype=dtypes.int32, name="nbins")
        scaled = truediv(subtract(values, low), subtract(high, low))
        bins = floor(multiply(cast(nbins, scaled.dtype), scaled))
        last = cast(subtract(nbins, 1), scaled.dtype)
        return cast(minimum(maximum(bins, cast(0, scaled.dtype)), last), dtypes.as_dtype(dtype))


# -- shape rules --


@shape_rule("Bincount")
def _bincount_shape(op: Operation) -> list[TensorShape]:
    size = constant_value(op.inputs[1])
    return [TensorShape([None if size is None else int(size)])]


@shape_rule("HistogramFixedWidth")
def _histogram_shape(op: Operation) -> list[TensorShape]:
    bins = constant_value(op.inputs[2])
    return [TensorShape([None if bins is None else int(bins)])]


def _bins(op: Operation, index: int) -> int | None:
    size: Any = constant_value(op.inputs[index])
    return None if size is None else int(size)


@shape_rule("DenseBincount")
def _dense_bincount_shape(op: Operation) -> list[TensorShape]:
    shape = op.inputs[0].shape
    if shape.ndims is None:
        return unknown(op)
    if shape.ndims not in (1, 2):
        raise ValueError(f"Shape must be at most rank 2 but is rank {shape.ndims}")
    return [shape[:-1].concatenate([_bins(op, 1)])]


@shape_rule("RaggedBincount")
def _ragged_bincount_shape(op: Operation) -> list[TensorShape]:
    splits = op.inputs[0].shape.with_rank(1).as_list()[0]
    return [TensorShape([None if splits is None else splits - 1, _bins(op, 2)])]


@shape_rule("SparseBincount")
def _sparse_bincount_shape(op: Operation) -> list[TensorShape]:
    rank = op.inputs[2].shape.with_rank(1).as_list()[0]
    if rank is None:
        return unknown(op)
    return [TensorShape([_bins(op, 3)] if rank == 1 else [None, _bins(op, 3)])]
