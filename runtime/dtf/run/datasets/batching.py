"""Consecutive elements joined along a new first dimension, padded or as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dtf.run.datasets.dataset import Dataset, Elements
from dtf.run.lib.growth import Growth
from dtf.run.value_types import Array, Element
from dtf.wire import errors, limits
from dtf.wire.strings import filled

__all__ = ["batched", "padded_batches"]

_Join = Callable[[Sequence[Element]], Element]


def batched(dataset: Dataset, size: int, drop_remainder: bool) -> Dataset:
    """Batches of elements of one shape.

    Raises:
      InvalidArgumentError: the size is not positive; or, when the batch is taken, shapes differ within it.
    """
    return _batches("BatchDataset", dataset, size, drop_remainder, _stacked)


def padded_batches(
    dataset: Dataset, size: int, shapes: Sequence[Sequence[int]], paddings: Sequence[Array], drop_remainder: bool
) -> Dataset:
    """Batches whose components are filled up at their ends.

    Args:
      shapes: for each component what it is padded to; -1: the largest of the batch.
      paddings: for each component the value to fill with.
    """
    for padding in paddings:
        if np.ndim(padding):
            raise errors.InvalidArgumentError.of("All padding values must be scalars")

    def join(elements: Sequence[Element]) -> Element:
        columns = zip(*elements, strict=True)
        return tuple(
            _padded(number, column, shape, padding)
            for number, (column, shape, padding) in enumerate(zip(columns, shapes, paddings, strict=True))
        )

    return _batches("PaddedBatchDataset", dataset, size, drop_remainder, join)


def _batches(kind: str, dataset: Dataset, size: int, drop_remainder: bool, join: _Join) -> Dataset:
    if size <= 0:
        raise errors.InvalidArgumentError.of(f"Batch size must be greater than zero, got {size}")
    known = dataset.cardinality
    cardinality = known if known < 0 else known // size if drop_remainder else -(-known // size)
    return Dataset(kind, lambda scope: _Batches(dataset.start(scope), size, drop_remainder, join), cardinality)


class _Batches(Elements):
    def __init__(self, source: Elements, size: int, drop_remainder: bool, join: _Join) -> None:
        self.inputs = [source]
        self._source, self._size, self._drop_remainder, self._join = source, size, drop_remainder, join

    def __next__(self) -> Element:
        elements: list[Element] = []
        growth = Growth("a batch")
        for _ in range(self._size):
            try:
                element = next(self._source)
            except StopIteration:
                break
            growth.add(element, len(elements))
            elements.append(element)
        if not elements or self._drop_remainder and len(elements) < self._size:
            raise StopIteration
        return self._join(elements)


def _stacked(elements: Sequence[Element]) -> Element:
    return tuple(_stack(number, column) for number, column in enumerate(zip(*elements, strict=True)))


def _stack(number: int, values: Sequence[Array]) -> Array:
    first = values[0]
    if isinstance(first, Dataset) or not isinstance(first, np.ndarray | np.generic):
        result = np.empty(len(values), object)
        result[:] = values
        return result
    for index, value in enumerate(values):
        if value.shape != first.shape:
            raise errors.InvalidArgumentError.of(
                f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                f"{_text(first.shape)} and element {index} had shape {_text(value.shape)}.",
            )
    result = np.empty((len(values), *first.shape), first.dtype)
    for index, value in enumerate(values):
        result[index] = value[()] if not first.ndim else value
    return result


def _padded(number: int, values: Sequence[Array], shape: Sequence[int], padding: Array) -> Array:
    rank = len(shape)
    for value in values:
        if value.ndim != rank:
            raise errors.InvalidArgumentError.of(
                f"All elements in a batch must have the same rank as the padded shape for component {number}: "
                f"expected rank {rank} but got element with rank {value.ndim}",
            )
    sizes = [max(value.shape[axis] for value in values) for axis in range(rank)]
    for axis, size in enumerate(shape):
        if size >= 0:
            if sizes[axis] > size:
                raise errors.DataLossError.of(
                    f"Attempted to pad to a smaller size than the input element: component {number} has a dimension "
                    f"{axis} of size {sizes[axis]}, and shall be padded to {size}.",
                )
            sizes[axis] = size
    limits.check_room((len(values), *sizes), values[0].dtype.itemsize, values[0].dtype)
    result = filled((len(values), *sizes), padding, values[0].dtype)
    for row, value in enumerate(values):
        corner: tuple[int | slice, ...] = (row, *[slice(size) for size in value.shape])
        result[corner] = value if rank else value[()]
    return result


def _text(shape: Sequence[int]) -> str:
    return f"[{','.join(map(str, shape))}]"
