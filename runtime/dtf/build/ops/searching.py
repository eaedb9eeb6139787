"""Array ops that choose or find elements by value: where, unique, setdiff1d, searchsorted; their static shapes.

Kernels: `run.kernels.searching`; gradients: `array_grad`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dtf.build.apply import apply_op
from dtf.build.constant_value import constant_value
from dtf.build.conversion import convert_to_tensor
from dtf.build.default_graph import name_scope
from dtf.build.dispatch import dispatched
from dtf.build.ops import dynamic_axes
from dtf.build.ops.array import reshape, shape_of
from dtf.build.ops.joining import stack
from dtf.build.shape_rules import axis_within, broadcast, shape_rule, sizes_of
from dtf.build.tensor import Tensor
from dtf.wire import dtypes
from dtf.wire.tensor_shape import TensorShape, unknown_shape

if TYPE_CHECKING:
    from dtf.build.tensor_like import DTypeLike, TensorLike

__all__ = [
    "argsort",
    "searchsorted",
    "setdiff1d",
    "sort",
    "unique",
    "unique_with_counts",
    "where",
    "where_v2",
]


@dispatched
def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Chooses elements by a condition, or finds where it is true.

    Args:
      condition: bool, of the shape of `x` and `y`; or a vector that chooses rows, or a scalar.
      x: the elements where `condition` is True.
      y: the elements where it is False, of the shape and dtype of `x`.
      name: the name of the operation.

    Returns:
      A Tensor of the shape of `x`. Without `x` and `y`: the coordinates of the true elements, int64 [count, rank].

    Raises:
      ValueError: only one of `x` and `y` is given.

    Source: https://www.tensorflow.org/versions/r1.15/api_docs/python/tf/where
    """
    if x is None and y is None:
        with name_scope(name, "Where", [condition]) as scope:
            condition = convert_to_tensor(condition, preferred_dtype=dtypes.bool, name="condition")
            return apply_op("Where", scope, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("Select", name, condition=condition, t=x, e=y)


@dispatched
def where_v2(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """As `where`, but the three broadcast against each other."""
    if x is None and y is None:
        return apply_op("Where", name, input=condition)
    if x is None or y is None:
        raise ValueError("x and y must both be non-None or both be None.")
    return apply_op("SelectV2", name, condition=condition, t=x, e=y)


def unique(x: TensorLike, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx): the distinct values of a vector in order of their first occurrence, and each value's place among
    them.
    """
    return apply_op("Unique", name, x=x, out_idx=dtypes.as_dtype(out_idx))


def unique_with_counts(x: TensorLike, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """(y, idx, count): as `unique`, and how often each value occurs."""
    return apply_op("UniqueWithCounts", name, x=x, out_idx=dtypes.as_dtype(out_idx))


def setdiff1d(x: TensorLike, y: TensorLike, index_dtype: Any = dtypes.int32, name: str | None = None) -> Any:
    """(out, idx): the values of vector `x` that are not in `y`, and their places in `x`."""
    return apply_op("ListDiff", name, x=x, y=y, out_idx=dtypes.as_dtype(index_dtype))


def searchsorted(
    sorted_sequence: Any,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """For each value the place where it keeps the last dimension of `sorted_sequence` sorted."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left', got {side!r}")
    with name_scope(name, "searchsorted", [sorted_sequence, values]):
        sorted_sequence, values = convert_to_tensor(sorted_sequence), convert_to_tensor(values)
        rows = reshape(sorted_sequence, stack([-1, shape_of(sorted_sequence)[-1]]))
        wanted = reshape(values, stack([-1, shape_of(values)[-1]]))
        found = apply_op(
            "LowerBound" if side == "left" else "UpperBound",
            sorted_inputs=rows,
            values=wanted,
            out_type=dtypes.as_dtype(out_type),
        )
        return reshape(found, shape_of(values))


def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values in order along `axis`; direction: "ASCENDING" or "DESCENDING"."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, want_values=True)


def argsort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The places (int32) of the values in order along `axis`; of equal values the first comes first."""
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, want_values=False)


def _sorted(values: Any, axis: int, direction: str, want_values: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"Direction must be ASCENDING or DESCENDING, got {direction!r}")
    values = convert_to_tensor(values, name="values")
    if isinstance(axis, Tensor):
        known = constant_value(axis)
        if known is None:
            raise ValueError("The axis of a sort must be known while the graph is built.")
        axis = int(known)
    rank = values.shape.with_rank_at_least(1).ndims
    if rank is None and axis != -1:
        moved = dynamic_axes.exchange_with_last(values, axis)
        return dynamic_axes.exchange_with_last(_sorted(moved, -1, direction, want_values), axis)
    at = -1 if axis == -1 or rank is None else axis_within(axis, rank)
    swapped = None if rank is None or at in (-1, rank - 1) else list(range(rank))
    if swapped is not None:
        swapped[at], swapped[-1] = swapped[-1], swapped[at]
        values = apply_op("Transpose", x=values, perm=swapped)
    turned = _turned(values) if direction == "ASCENDING" else values
    ordered, places = apply_op("TopKV2", input=turned, k=shape_of(values)[-1], sorted=True)
    made = places
    if want_values:
        made = _turned(ordered) if direction == "ASCENDING" else ordered
    made.set_shape(values.shape)  # the size of the last axis is a tensor here
    return made if swapped is None else apply_op("Transpose", x=made, perm=swapped)


def _turned(values: Tensor) -> Tensor:
    """Values of the opposite order; doing it twice gives them back."""
    if values.dtype.is_floating:
        return apply_op("Neg", x=values)
    ends = values.dtype.max if values.dtype.is_unsigned else -1
    return apply_op("Sub", x=convert_to_tensor(ends, values.dtype), y=values)


# -- shape rules

shape_rule("SelectV2")(broadcast)
shape_rule("Where")(lambda op: [TensorShape([None, op.inputs[0].shape.ndims])])


@shape_rule("Select")
def _(op):
    condition, shape = op.inputs[0].shape, op.inputs[1].shape.merge_with(op.inputs[2].shape)
    if condition.ndims == 0 or condition.ndims is None or shape.ndims is None:
        return [shape]
    if condition.ndims == 1 and shape.ndims > 0:
        condition.merge_with(shape[:1])
        return [shape]
    return [shape.merge_with(condition)]


@shape_rule("Unique", "UniqueWithCounts")
def _(op):
    return [TensorShape([None]), op.inputs[0].shape.with_rank(1), TensorShape([None])][: len(op.outputs)]


@shape_rule("UniqueV2", "UniqueWithCountsV2")
def _(op):
    dims = sizes_of(op.inputs[0])
    whole = unknown_shape(None if dims is None else len(dims))
    return [whole, TensorShape([None]), TensorShape([None])][: len(op.outputs)]


@shape_rule("ListDiff")
def _(op):
    for tensor in op.inputs:
        tensor.shape.assert_has_rank(1)
    return [TensorShape([None])] * 2


@shape_rule("LowerBound", "UpperBound")
def _(op):
    return [op.inputs[1].shape]
