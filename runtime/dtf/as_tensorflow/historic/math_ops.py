"""tensorflow.python.ops.math_ops: its non-public names."""

from __future__ import annotations

from typing import Any

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.graph import Tensor
from dtf.build.ops.array import shape
from dtf.build.sparse import IndexedSlices
from dtf.wire import dtypes

__all__ = ["_as_indexed_slices", "_as_indexed_slices_list", "reduced_shape", "tensor_equals", "tensor_not_equals"]


def _as_indexed_slices(x: Any, optimize: bool = True) -> IndexedSlices:
    """A tensor as slices of all its rows.

    Raises:
      TypeError: it is neither a tensor nor slices.
    """
    if isinstance(x, IndexedSlices):
        return x
    if not isinstance(x, Tensor):
        raise TypeError(f"Not a Tensor or IndexedSlices: {type(x)}")
    sizes = shape(x)
    return IndexedSlices(x, apply_op("Range", None, start=0, limit=sizes[0], delta=1), sizes)


def _as_indexed_slices_list(inputs: Any, optimize: bool = True) -> list[IndexedSlices]:
    """Slices whose indices have one dtype.

    Raises:
      TypeError: `inputs` is not a list or a tuple.
    """
    if not isinstance(inputs, list | tuple):
        raise TypeError(f"Expected a list or tuple, not a {type(inputs)}")
    made = [_as_indexed_slices(each, optimize) for each in inputs]
    if len({each.indices.dtype for each in made}) < 2:
        return made
    return [
        each
        if each.indices.dtype == dtypes.int64
        else IndexedSlices(each.values, apply_op("Cast", None, x=each.indices, DstT=dtypes.int64), each.dense_shape)
        for each in made
    ]


def reduced_shape(input_shape: Any, axes: Any) -> Tensor:
    """The shape of a reduction that keeps its dimensions.

    Args:
      input_shape: a vector of integers.
      axes: the dimensions that become 1.
    """
    sizes = convert_to_tensor(input_shape, dtypes.int32)
    removed = convert_to_tensor(axes, dtypes.int32)
    rank = apply_op("Size", None, input=sizes)
    places = apply_op("FloorMod", None, x=apply_op("AddV2", None, x=removed, y=rank), y=rank)
    ones = apply_op("Fill", None, dims=apply_op("Shape", None, input=removed), value=1)
    everywhere = apply_op("Range", None, start=0, limit=rank, delta=1)
    return apply_op("DynamicStitch", None, indices=[everywhere, places], data=[sizes, ones])


def tensor_equals(self: Any, other: Any) -> bool:
    """Whether both are one object: tensors are compared element by element only with `tf.equal`."""
    return self is other


def tensor_not_equals(self: Any, other: Any) -> bool:
    """Whether both are different objects."""
    return self is not other
