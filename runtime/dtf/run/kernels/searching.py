"""Kernels of the ops that choose or find elements by value: Select, Where, Unique, ListDiff, LowerBound.

Static shapes: `build.ops.searching`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype, scalar_axis, shape_text, vector
from dtf.run.value_types import NumpyType
from dtf.wire import errors

# -- choosing and searching


@kernel("Select")
def _(node: KernelNode) -> Function:
    def select(condition: np.ndarray, then: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        shape, chosen = np.shape(then), np.shape(condition)
        if chosen == shape[:1] and len(shape) > 1:
            condition = condition.reshape(-1, *[1] * (len(shape) - 1))
        elif chosen not in ((), shape):
            raise _different_sizes(0, chosen, shape)
        if np.shape(otherwise) != shape:
            raise _different_sizes(2, np.shape(otherwise), shape)
        return np.where(condition, then, otherwise)

    return select


def _different_sizes(number: int, found: Sequence[int], wanted: Sequence[int]) -> errors.OpError:
    return invalid(
        "Inputs to operation Select of type Select must have the same size and shape.  "
        f"Input {number}: {shape_text(found)} != input 1: {shape_text(wanted)}"
    )


@kernel("SelectV2")
def _(node: KernelNode) -> Function:
    return lambda condition, then, otherwise: np.where(condition, then, otherwise)


@kernel("Where")
def _(node: KernelNode) -> Function:
    def where(condition: np.ndarray) -> np.ndarray:
        if np.ndim(condition) == 0:
            raise invalid("WhereOp : Unhandled input dimensions: 0")
        return np.argwhere(condition).astype(np.int64)

    return where


@kernel("Unique")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_idx")

    return lambda values: _unique_elements(values, dtype)[:2]


@kernel("UniqueWithCounts")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_idx")
    return lambda values: _unique_elements(values, dtype)


@kernel("UniqueV2")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_idx")
    return lambda values, axis: _unique_along(values, axis, dtype)[:2]


@kernel("UniqueWithCountsV2")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_idx")
    return lambda values, axis: _unique_along(values, axis, dtype)


def _unique_elements(values: np.ndarray, dtype: NumpyType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if np.ndim(values) != 1:
        raise invalid("unique expects a 1D vector.")
    return _unique(values, 0, dtype)


def _unique_along(values: np.ndarray, axis: np.ndarray, dtype: NumpyType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An empty axis tensor is that of a vector."""
    axes = vector(axis, "axis")
    if not axes:
        return _unique_elements(values, dtype)
    if len(axes) > 1:
        raise invalid(f"axis does not support input tensors larger than 1 elements: {len(axes)}")
    return _unique(values, scalar_axis(axes[0], np.ndim(values)), dtype)


def _unique(values: np.ndarray, axis: int, dtype: NumpyType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The distinct slices in the order of their first occurrence, each slice's place among them, and counts."""
    # numpy sorts along an axis only what is not an object; a vector needs no axis.
    along = None if values.ndim == 1 else axis
    everything = values
    if along is not None and values.dtype == object:
        _, numbers = np.unique(values, return_inverse=True)
        values, along = np.moveaxis(numbers.reshape(values.shape), axis, 0), 0
    _, first, inverse, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True, axis=along
    )
    order = np.argsort(first, kind="stable")
    place = np.empty(len(order), dtype)
    place[order] = np.arange(len(order))
    return np.take(everything, first[order], axis), place[inverse.reshape(-1)], counts[order].astype(dtype)


@kernel("ListDiff")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node, "out_idx")

    def list_diff(values: np.ndarray, excluded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        unwanted = set(excluded.tolist())
        kept = np.array([i for i, value in enumerate(values.tolist()) if value not in unwanted], dtype)
        return values[kept], kept

    return list_diff


@kernel("LowerBound")
def _(node: KernelNode) -> Function:
    return _search("left", numpy_dtype(node, "out_type"))


@kernel("UpperBound")
def _(node: KernelNode) -> Function:
    return _search("right", numpy_dtype(node, "out_type"))


def _search(side: Literal["left", "right"], dtype: NumpyType) -> Callable[..., np.ndarray]:
    def search(sorted_inputs: np.ndarray, values: np.ndarray) -> np.ndarray:
        if sorted_inputs.ndim != 2 or values.ndim != 2:
            raise invalid("sorted_inputs and values must be matrices, of one row per search")
        if sorted_inputs.shape[:1] != values.shape[:1]:
            raise invalid("Leading dim_size of both tensors must match.")
        rows = [np.searchsorted(row, wanted, side) for row, wanted in zip(sorted_inputs, values, strict=True)]
        return np.array(rows, dtype).reshape(values.shape)

    return search
