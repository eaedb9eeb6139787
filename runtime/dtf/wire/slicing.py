"""What begin, end, strides and the five masks of StridedSlice mean.

Owns the one reading of a slice specification, used by the shape rule and the kernels alike, so that the two
cannot disagree. Does not touch tensors or ops.

    >>> slice_index(3, [0, 1], [0, 4], [1, 1], begin_mask=1, end_mask=1)
    (slice(None, None, 1), slice(1, 4, 1), slice(None, None, 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

# An int removes a dimension, a slice keeps one, None adds one: what numpy's basic indexing takes.
Index = tuple["int | slice | None", ...]


def slice_index(
    rank: int,
    begin: Sequence[int] | np.ndarray,
    end: Sequence[int] | np.ndarray,
    strides: Sequence[int] | np.ndarray,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Index:
    """Returns the numpy index that a StridedSlice of a tensor of `rank` dimensions stands for.

    Dimensions that the specification does not mention are kept whole. Source: the page of tf.strided_slice.

    Raises:
      ValueError: a zero stride, two ellipses, more entries than dimensions, or a negative stride where
        a dimension is removed.
    """
    if not len(begin) == len(end) == len(strides):
        raise ValueError(
            "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
            f"[{len(begin)}], [{len(end)}], and [{len(strides)}] instead."
        )
    if ellipsis_mask & (ellipsis_mask - 1):
        raise ValueError("Multiple ellipses in slice spec not allowed")
    count = len(begin)
    used = sum(1 for i in range(count) if not (ellipsis_mask | new_axis_mask) >> i & 1)
    if used > rank:
        raise ValueError(f"Index out of range using input dim {rank}; input has only {rank} dims")
    whole = slice(None, None, 1)
    index: list[int | slice | None] = []
    for i in range(count):
        bit = 1 << i
        if ellipsis_mask & bit:
            index.extend([whole] * (rank - used))
        elif new_axis_mask & bit:
            index.append(None)
        elif int(strides[i]) == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        elif shrink_axis_mask & bit:
            if strides[i] < 0:
                raise ValueError("only stride 1 allowed on non-range indexing.")
            index.append(int(begin[i]))
        else:
            start = None if begin_mask & bit else int(begin[i])
            stop = None if end_mask & bit else int(end[i])
            index.append(slice(start, stop, int(strides[i])))
    if not ellipsis_mask:
        index.extend([whole] * (rank - used))
    return tuple(index)


def sliced_shape(dims: Sequence[int | None], index: Index) -> list[int | None]:
    """Returns the dimensions of `x[index]` for an `x` of dimensions `dims` (None: unknown).

    Raises:
      ValueError: an integer of the index lies outside its dimension.
    """
    shape: list[int | None] = []
    axis = 0
    for entry in index:
        if entry is None:
            shape.append(1)
            continue
        size = dims[axis]
        if isinstance(entry, int):
            if size is not None and not -size <= entry < size:
                raise ValueError(f"slice index {entry} of dimension {axis} out of bounds.")
        else:
            shape.append(_range_size(size, entry))
        axis += 1
    return shape


def _range_size(size: int | None, entry: slice) -> int | None:
    if size is not None:
        return len(range(*entry.indices(size)))
    return 0 if entry.start is not None and entry.start == entry.stop else None
