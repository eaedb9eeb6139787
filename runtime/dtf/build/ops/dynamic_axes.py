"""Axes of tensors whose rank only the step knows: two axes exchanged, and tensordot.

The functions of axes use this where `shape.ndims` is None; with a known rank they count the axes while building.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dtf.build.apply import apply_op
from dtf.build.conversion import convert_to_tensor
from dtf.build.tensor import Tensor
from dtf.wire import dtypes


def exchange_with_last(x: Tensor, axis: int) -> Tensor:
    """`x` with `axis` and the last axis exchanged; doing it twice gives `x` back.

    The step ends with InvalidArgumentError when `axis` is out of range.
    """
    rank = apply_op("Rank", input=x)
    at = axis if axis >= 0 else apply_op("AddV2", x=rank, y=axis)
    last = apply_op("Sub", x=rank, y=1)
    axes = apply_op("Range", start=0, limit=rank, delta=1)
    moved = apply_op("SelectV2", condition=apply_op("Equal", x=axes, y=last), t=at, e=axes)
    perm = apply_op("SelectV2", condition=apply_op("Equal", x=axes, y=at), t=last, e=moved)
    return apply_op("Transpose", x=x, perm=perm)


def tensordot(a: Tensor, b: Tensor, axes: Any, name: str | None) -> Tensor:
    """tf.tensordot of tensors of unknown rank, or along axes that are tensors themselves."""
    axes_a, axes_b = _axes_of_both(a, b, axes)
    left, free_a = _as_matrix(a, axes_a, contracted_last=True)
    right, free_b = _as_matrix(b, axes_b, contracted_last=False)
    product = apply_op("MatMul", a=left, b=right)
    return apply_op("Reshape", name, tensor=product, shape=apply_op("ConcatV2", values=[free_a, free_b], axis=0))


def _axes_of_both(a: Tensor, b: Tensor, axes: Any) -> tuple[Tensor, Tensor]:
    if isinstance(axes, Tensor) and axes.shape.ndims is None:
        raise ValueError(f"The rank of the axes of tensordot must be known: {axes!r}")
    if (axes.shape.ndims if isinstance(axes, Tensor) else np.ndim(axes)) == 0:
        rank = apply_op("Rank", input=a)
        first = apply_op("Range", start=apply_op("Sub", x=rank, y=axes), limit=rank, delta=1)
        return first, apply_op("Range", start=0, limit=axes, delta=1)
    given = (axes[0], axes[1]) if isinstance(axes, Tensor) else axes
    if len(given) != 2:
        raise ValueError(f"'axes' must be an integer or have length 2: {axes}")
    return _counted_from_front(a, given[0]), _counted_from_front(b, given[1])


def _counted_from_front(x: Tensor, axes: Any) -> Tensor:
    axes = apply_op("Reshape", tensor=convert_to_tensor(axes, dtypes.int32), shape=[-1])
    ends = apply_op("AddV2", x=axes, y=apply_op("Rank", input=x))
    return apply_op("SelectV2", condition=apply_op("Less", x=axes, y=0), t=ends, e=axes)


def _as_matrix(x: Tensor, contracted: Tensor, contracted_last: bool) -> tuple[Tensor, Tensor]:
    """x as [free, contracted] (or the other way round), and the sizes of the free axes."""
    shape = apply_op("Shape", input=x)
    every = apply_op("Range", start=0, limit=apply_op("Rank", input=x), delta=1)
    free = apply_op("ListDiff", x=every, y=contracted)[0]
    free_sizes, sizes = (apply_op("GatherV2", params=shape, indices=at, axis=0) for at in (free, contracted))
    order = [free, contracted] if contracted_last else [contracted, free]
    sides = [apply_op("Prod", input=each, reduction_indices=0) for each in (free_sizes, sizes)]
    moved = apply_op("Transpose", x=x, perm=apply_op("ConcatV2", values=order, axis=0))
    return apply_op("Reshape", tensor=moved, shape=sides if contracted_last else sides[::-1]), free_sizes
