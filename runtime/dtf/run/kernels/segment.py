"""Segment ops: sums, products, means and extremes of the rows that share an id.

The rows are combined by `scatter_rows`, as everywhere in the runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import room
from dtf.run.kernels.counting import count_each
from dtf.run.kernels.gathering import scatter_rows
from dtf.run.value_types import Array, ArrayFunction, Scalar
from dtf.wire import errors


def reduce_segments(ufunc: np.ufunc, initial: Scalar, data: Array, ids: Array, count: int) -> np.ndarray:
    """[count, ...]: row i is the reduction of the rows of `data` whose id is i, starting from `initial`.

    data: [k, ...]. ids: [k], in [0, count). Half-precision sums and products are formed in float32.
    """
    dtype = data.dtype
    narrow = dtype.itemsize == 2 and dtype.kind not in "iu" and ufunc in (np.add, np.multiply)
    room((count, *data.shape[1:]), dtype)
    target = np.full((count, *data.shape[1:]), initial, np.float32 if narrow else dtype)
    scatter_rows(ufunc, target, ids, data.astype(np.float32) if narrow else data)
    return target.astype(dtype) if narrow else target


def lowest(dtype: np.dtype) -> Scalar:
    """What a maximum over nothing is: the least finite value of `dtype`."""
    return _limits(dtype).min


def highest(dtype: np.dtype) -> Scalar:
    """What a minimum over nothing is: the greatest finite value of `dtype`."""
    return _limits(dtype).max


def _limits(dtype: np.dtype) -> np.iinfo | np.finfo:
    if dtype.kind in "iu":
        return np.iinfo(dtype)
    if dtype.kind == "f":
        return np.finfo(dtype)
    import ml_dtypes

    return cast(np.finfo, ml_dtypes.finfo(dtype))  # type: ignore[no-untyped-call]


# -- sorted segments: SegmentSum and its family --


def _segment_kernel(op: str, ufunc: np.ufunc, start: Callable[[np.dtype], Scalar], empty: int) -> None:
    @kernel(op)
    def factory(node: KernelNode) -> Function:
        def run(data: Array, ids: Array) -> np.ndarray:
            count = _check_sorted(data, ids)
            result = reduce_segments(ufunc, start(data.dtype), data, ids, count)
            return _fill_gaps(result, ids, empty)

        return run


def _check_sorted(data: Array, ids: Array) -> int:
    """The number of segments of sorted `ids`, after the checks that TensorFlow makes."""
    if ids.ndim != 1:
        raise errors.InvalidArgumentError.of(f"segment_ids should be a vector, got shape {_shape_text(ids)}")
    if data.ndim == 0 or len(data) != len(ids):
        raise errors.InvalidArgumentError.of("segment_ids should be the same size as dimension 0 of input.")
    return _count_sorted(ids)


def _count_sorted(ids: np.ndarray) -> int:
    if not len(ids):
        return 0
    if ids[0] < 0:
        raise errors.InvalidArgumentError.of("segment ids must be >= 0")
    if (ids[1:] < ids[:-1]).any():
        raise errors.InvalidArgumentError.of("segment ids are not increasing")
    return int(ids[-1]) + 1


def _fill_gaps(result: np.ndarray, ids: np.ndarray, empty: int) -> np.ndarray:
    """Sets the segments that no id names to `empty`."""
    used = np.zeros(len(result), bool)
    used[ids] = True
    if not used.all():
        result[~used] = empty
    return result


def _zero(dtype: np.dtype) -> int:
    return 0


def _one(dtype: np.dtype) -> int:
    return 1


_segment_kernel("SegmentSum", np.add, _zero, 0)
_segment_kernel("SegmentProd", np.multiply, _one, 1)
_segment_kernel("SegmentMax", np.maximum, lowest, 0)
_segment_kernel("SegmentMin", np.minimum, highest, 0)


def _numbered_segment_kernel(op: str, ufunc: np.ufunc, start: Callable[[np.dtype], Scalar], empty: int) -> None:
    """Sorted segments with their number: rows of segments beyond it are an error, those without rows `empty`."""

    @kernel(op)
    def factory(node: KernelNode) -> Function:
        def run(data: Array, ids: Array, num_segments: Array) -> np.ndarray:
            found, count = _check_sorted(data, ids), int(num_segments)
            if count < 0 or found > count:
                raise errors.InvalidArgumentError.of(f"segment ids must be < num_segments: {found - 1} and {count}")
            result = np.full((count, *data.shape[1:]), empty, data.dtype)
            result[:found] = _fill_gaps(reduce_segments(ufunc, start(data.dtype), data, ids, found), ids, empty)
            return result

        return run


_numbered_segment_kernel("SegmentSumV2", np.add, _zero, 0)
_numbered_segment_kernel("SegmentProdV2", np.multiply, _one, 1)
_numbered_segment_kernel("SegmentMaxV2", np.maximum, lowest, 0)
_numbered_segment_kernel("SegmentMinV2", np.minimum, highest, 0)


@kernel("SegmentMean")
def _segment_mean(node: KernelNode) -> Function:
    def run(data: Array, ids: Array) -> np.ndarray:
        count = _check_sorted(data, ids)
        return _divide_rows(reduce_segments(np.add, 0, data, ids, count), count_each(ids, count))

    return run


def _divide_rows(sums: np.ndarray, divisors: np.ndarray) -> np.ndarray:
    """sums[i] / divisors[i] in the dtype of `sums`; a divisor of 0 counts as 1. Integers are divided as C does."""
    divisors = np.maximum(divisors, 1).reshape(-1, *[1] * (sums.ndim - 1))
    quotients = np.true_divide(sums, divisors, dtype=None if sums.dtype.kind != "c" else np.complex128)
    return (np.trunc(quotients) if sums.dtype.kind in "iu" else quotients).astype(sums.dtype)


# -- unsorted segments --


def _unsorted_segment_kernel(op: str, ufunc: np.ufunc, start: Callable[[np.dtype], Scalar]) -> None:
    @kernel(op)
    def factory(node: KernelNode) -> Function:
        def run(data: Array, ids: Array, num_segments: Array) -> np.ndarray:
            count = int(num_segments)
            if count < 0:
                raise errors.InvalidArgumentError.of(f"Input num_segments == {count} must not be negative.")
            if data.shape[: ids.ndim] != ids.shape:
                raise errors.InvalidArgumentError.of(
                    f"data.shape = {_shape_text(data)} does not start with segment_ids.shape = {_shape_text(ids)}",
                )
            rows = np.reshape(ids, -1)
            values = np.reshape(data, (rows.size, *data.shape[ids.ndim :]))
            if rows.size and rows.max() >= count:
                raise errors.InvalidArgumentError.of(_out_of_range(ids, count))
            if rows.size and rows.min() < 0:  # a negative id drops its row
                kept = rows >= 0
                rows, values = rows[kept], values[kept]
            return reduce_segments(ufunc, start(data.dtype), values, rows, count)

        return run


def _out_of_range(ids: Array, count: int) -> str:
    place = np.unravel_index(int(np.argmax(np.asarray(ids) >= count)), ids.shape)
    where = "[" + ",".join(str(int(index)) for index in place) + "]"
    return f"segment_ids{where} = {int(np.asarray(ids)[place])} is out of range [0, {count})"


_unsorted_segment_kernel("UnsortedSegmentSum", np.add, _zero)
_unsorted_segment_kernel("UnsortedSegmentProd", np.multiply, _one)
_unsorted_segment_kernel("UnsortedSegmentMax", np.maximum, lowest)
_unsorted_segment_kernel("UnsortedSegmentMin", np.minimum, highest)


# -- sparse segments: gather, then reduce; the mean divides by the segment's size, sqrt_n by its square root --


def _sum_divisor(sizes: np.ndarray) -> None:
    return None


def _mean_divisor(sizes: np.ndarray) -> np.ndarray:
    return sizes


def _sqrt_n_divisor(sizes: np.ndarray) -> np.ndarray:
    return np.sqrt(sizes)


_DIVISORS: dict[str, Callable[[np.ndarray], np.ndarray | None]] = {
    "Sum": _sum_divisor,
    "Mean": _mean_divisor,
    "SqrtN": _sqrt_n_divisor,
}


def _sparse_segment_kernels(combiner: str) -> None:
    divisor = _DIVISORS[combiner]

    @kernel(f"SparseSegment{combiner}", f"SparseSegment{combiner}WithNumSegments")
    def forward(node: KernelNode) -> Function:
        def run(data: Array, indices: Array, ids: Array, num_segments: Array | None = None) -> np.ndarray:
            if indices.shape != ids.shape:
                raise errors.InvalidArgumentError.of("segment_ids and indices should have same size.")
            count = _count_sorted(ids)
            if num_segments is not None:
                if count > num_segments:
                    raise errors.InvalidArgumentError.of("segment ids must be < num_segments")
                count = int(num_segments)
            _check_indices(indices, len(data))
            sums = reduce_segments(np.add, 0, np.take(data, indices, axis=0), ids, count)
            divisors = divisor(count_each(ids, count))
            return sums if divisors is None else _divide_rows(sums, divisors)

        return run

    @kernel(f"SparseSegment{combiner}Grad")
    def backward(node: KernelNode) -> Function:
        def run(grad: Array, indices: Array, ids: Array, output_dim0: Array) -> np.ndarray:
            rows = int(output_dim0)
            if rows == 0:
                return np.zeros((0, *grad.shape[1:]), grad.dtype)
            if indices.shape != ids.shape:
                raise errors.InvalidArgumentError.of("segment_ids and indices should have same size.")
            if ids.size and (ids.min() < 0 or ids.max() >= len(grad)):
                raise errors.InvalidArgumentError.of(f"Segment id {int(ids.max())} out of range [0, {len(grad)}).")
            _check_indices(indices, rows)
            divisors = divisor(count_each(ids, len(grad)))
            scaled = grad if divisors is None else _divide_rows(grad, divisors)
            return reduce_segments(np.add, 0, np.take(scaled, ids, axis=0), indices, rows)

        return run

    @kernel(f"SparseSegment{combiner}GradV2")
    def sparse_backward(node: KernelNode) -> Function:
        dense = cast(ArrayFunction, backward(node))

        def run(grad: Array, indices: Array, ids: Array, dense_output_dim0: Array) -> tuple[np.ndarray, np.ndarray]:
            if np.ndim(indices) != 1 or indices.shape != np.shape(ids):
                raise errors.InvalidArgumentError.of(
                    "indices should be a vector, and segment_ids and indices should have same size."
                )
            if not int(dense_output_dim0):
                return np.zeros((0, *grad.shape[1:]), grad.dtype), indices[:0]
            _check_indices(indices, int(dense_output_dim0))
            rows, places = np.unique(indices, return_inverse=True)
            return dense(grad, places.reshape(-1), ids, len(rows)), rows

        return run


def _check_indices(indices: np.ndarray, count: int) -> None:
    bad = (indices < 0) | (indices >= count)
    if bad.any():
        place = int(np.argmax(bad))
        raise errors.InvalidArgumentError.of(f"indices[{place}] == {int(indices[place])} out of range [0, {count})")


for _combiner in _DIVISORS:
    _sparse_segment_kernels(_combiner)


def _shape_text(array: Array) -> str:
    return "[" + ",".join(str(size) for size in np.shape(array)) + "]"
