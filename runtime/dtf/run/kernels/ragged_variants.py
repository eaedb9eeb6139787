"""Kernels that put ragged tensors, or their rows, into variant tensors and take them out.

A variant holds a `RaggedValue`; it stays at its task, as datasets do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype
from dtf.run.kernels.ragged import check_splits
from dtf.run.value_types import Array
from dtf.wire import errors
from dtf.wire.variants import Encode


@dataclass(frozen=True, eq=False)
class RaggedValue:
    """The arrays of a ragged tensor: the splits of its ragged dimensions, and the flat values."""

    splits: tuple[np.ndarray, ...]
    values: np.ndarray

    shape: ClassVar[tuple[()]] = ()
    ndim: ClassVar[int] = 0
    nbytes: ClassVar[int] = 0

    @property
    def rows(self) -> int:
        """The size of the outermost dimension."""
        return len(self.splits[0]) - 1 if self.splits else len(self.values)

    def to_proto(self, encode: Encode) -> NoReturn:
        """A ragged tensor in a variant stays where it was made.

        Raises:
          UnimplementedError: always.
        """
        raise errors.UnimplementedError.of(
            "A ragged tensor in a variant cannot be sent to another task or fetched: send the RaggedTensor itself"
        )


@kernel("RaggedTensorToVariant")
def _(node: KernelNode) -> Function:
    count, by_rows = node.attr("RAGGED_RANK"), node.attr("batched_input")

    def encode(*arguments: np.ndarray) -> RaggedValue | np.ndarray:
        splits, values = arguments[:count], np.asarray(arguments[count])
        check_splits(splits, len(values) if values.ndim else 0)
        if not by_rows:
            return RaggedValue(tuple(splits), values)
        if not values.ndim:
            raise invalid("A batched ragged tensor must have at least one dimension, got a scalar")
        whole = RaggedValue(tuple(splits), values)
        rows = np.empty(whole.rows, object)
        for index in range(whole.rows):
            rows[index] = _row(whole, index)
        return rows

    return encode


def _row(whole: RaggedValue, index: int) -> RaggedValue:
    if not whole.splits:
        return RaggedValue((), np.array(whole.values[index], whole.values.dtype))
    begin, end = int(whole.splits[0][index]), int(whole.splits[0][index + 1])
    inner = []
    for splits in whole.splits[1:]:
        part = splits[begin : end + 1]
        begin, end = int(part[0]), int(part[-1])
        inner.append(part - begin)
    return RaggedValue(tuple(inner), whole.values[begin:end])


@kernel("RaggedTensorFromVariant")
def _(node: KernelNode) -> Function:
    given, wanted = node.attr("input_ragged_rank"), node.attr("output_ragged_rank")
    dtype, splits_dtype = numpy_dtype(node, "Tvalues"), numpy_dtype(node, "Tsplits")

    def decode(encoded: Array | RaggedValue) -> list[np.ndarray]:
        cells = encoded if isinstance(encoded, np.ndarray) else np.array(encoded, object)
        inner = wanted - cells.ndim if given == -1 else given
        if inner < 0:
            raise invalid(f"Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be >= 0, "
                          f"found output_ragged_rank: {wanted}, encoded_variant.dims(): {cells.ndim}")  # fmt: skip
        if inner + cells.ndim != wanted:
            raise invalid(f"output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
                          f"output_ragged_rank: {wanted}, input_ragged_rank: {inner}, encoded_variant.dims(): "
                          f"{cells.ndim}")  # fmt: skip
        parts = [_checked(each, inner, dtype) for each in cells.flat]
        outer = [_even_splits(cells.shape, axis) for axis in range(1, cells.ndim)]
        whole = _joined(parts, inner, dtype) if cells.ndim else parts[0]
        return [*(each.astype(splits_dtype, copy=False) for each in (*outer, *whole.splits)), whole.values]

    return decode


def _checked(value: object, splits: int, dtype: object) -> RaggedValue:
    if not isinstance(value, RaggedValue):
        raise invalid(f"Input Variant element must hold a ragged tensor, got {type(value).__name__}")
    if len(value.splits) != splits:
        raise invalid(f"Encoded input RaggedTensorVariant has ragged_rank={len(value.splits)}. "
                      f"Expected ragged_rank={splits}.")  # fmt: skip
    if value.values.dtype != np.dtype(dtype):  # type: ignore[call-overload]
        raise invalid(f"Expected values Tensor dtype: {np.dtype(dtype)}, found: {value.values.dtype}")  # type: ignore[call-overload]
    return value


def _even_splits(sizes: Sequence[int], axis: int) -> np.ndarray:
    """The splits of a dimension of variants: rows of one length."""
    return np.arange(int(np.prod(sizes[:axis])) + 1) * sizes[axis]


def _joined(parts: Sequence[RaggedValue], inner: int, dtype: object) -> RaggedValue:
    """Values as the rows of one more dimension."""
    outer = np.cumsum([0, *(part.rows if part.splits or part.values.ndim else 0 for part in parts)])
    splits = []
    for axis in range(inner):
        ends, pieces = 0, [np.zeros(1, np.int64)]
        for part in parts:
            pieces.append(part.splits[axis][1:] + ends)
            ends += int(part.splits[axis][-1])
        splits.append(np.concatenate(pieces))
    if not parts:
        return RaggedValue((outer, *splits), np.zeros(0, dtype))  # type: ignore[call-overload]
    shapes = {part.values.shape[1:] for part in parts}
    if len(shapes) > 1:
        raise invalid(f"The values of ragged tensors in one variant must have one shape, got {sorted(shapes)}")
    return RaggedValue((outer, *splits), np.concatenate([part.values for part in parts]))
