"""Kernels of the ops on diagonals and bands of matrices. Static shapes: `build.ops.diagonals`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import as_text, invalid, numpy_dtype, room, scalar, shape_text, zero_of
from dtf.run.value_types import Array
from dtf.wire.strings import filled


@kernel("Diag")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)

    def diag(diagonal: np.ndarray) -> np.ndarray:
        if np.ndim(diagonal) == 0:
            raise invalid("Input must be at least rank 1, got 0")
        shape = np.shape(diagonal)
        size = np.size(diagonal)
        out = np.zeros(room((size, size), dtype), dtype)
        np.fill_diagonal(out, np.ravel(diagonal))
        return out.reshape(shape + shape)

    return diag


@kernel("DiagPart")
def _(node: KernelNode) -> Function:
    def diag_part(value: np.ndarray) -> np.ndarray:
        half = value.ndim // 2
        if value.ndim % 2 or value.shape[:half] != value.shape[half:]:
            raise invalid(
                "The rank of the tensor should be even and positive, with equal halves, got shape "
                f"{shape_text(value.shape)}"
            )
        size = int(np.prod(value.shape[:half], dtype=np.int64))
        return np.diagonal(value.reshape(size, size)).reshape(value.shape[:half])

    return diag_part


@kernel("MatrixDiag", "BatchMatrixDiag")
def _(node: KernelNode) -> Function:
    dtype = numpy_dtype(node)

    def matrix_diag(diagonal: np.ndarray) -> np.ndarray:
        if np.ndim(diagonal) == 0:
            raise invalid("input must be at least 1-dim, received shape: []")
        size = diagonal.shape[-1]
        out = filled(room((*diagonal.shape, size), dtype), zero_of(dtype), dtype)
        steps = np.arange(size)
        out[..., steps, steps] = diagonal
        return out

    return matrix_diag


@kernel("MatrixDiagPart", "BatchMatrixDiagPart")
def _(node: KernelNode) -> Function:
    return lambda value: np.diagonal(_matrices(value), axis1=-2, axis2=-1)


@kernel("MatrixSetDiag", "BatchMatrixSetDiag")
def _(node: KernelNode) -> Function:
    def matrix_set_diag(value: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
        size = min(_matrices(value).shape[-2:])
        if diagonal.shape != (*value.shape[:-2], size):
            raise invalid(
                f"must have diagonal.shape == input.shape[:-2] + min(input.shape[-2:]), but received input shape: "
                f"{shape_text(value.shape)} and diagonal shape: {shape_text(diagonal.shape)}"
            )
        out = value.copy()
        steps = np.arange(size)
        out[..., steps, steps] = diagonal
        return out

    return matrix_set_diag


# -- any diagonals: k is one of them or the lowest and the highest, counted upwards from the main one --


@kernel("MatrixDiagPartV2", "MatrixDiagPartV3")
def _(node: KernelNode) -> Function:
    align = _alignment(node)

    def matrix_diag_part(value: np.ndarray, k: np.ndarray, padding: np.ndarray) -> np.ndarray:
        low, high = _diagonal_range(k)
        rows, columns = _matrices(value).shape[-2:]
        _check_range(low, high, rows, columns)
        width = _longest(low, high, rows, columns)
        if np.size(padding) != 1:
            raise invalid("padding_value must be a scalar")
        padding = np.reshape(padding, ())
        shape = room((*value.shape[:-2], high - low + 1, width), value.dtype)
        out = np.full(shape, padding, value.dtype)
        for number, (row, column, place) in enumerate(_diagonals(low, high, rows, columns, width, align)):
            out[..., number, place] = value[..., row, column]
        return out[..., 0, :] if low == high else out

    return matrix_diag_part


@kernel("MatrixDiagV2", "MatrixDiagV3")
def _(node: KernelNode) -> Function:
    align = _alignment(node)

    def matrix_diag(
        diagonal: np.ndarray, k: np.ndarray, num_rows: np.ndarray, num_cols: np.ndarray, padding: np.ndarray
    ) -> np.ndarray:
        low, high = _diagonal_range(k)
        bands = _as_bands(np.asarray(diagonal), low, high)
        width = bands.shape[-1]
        least_rows, least_columns = width - min(high, 0), width + max(low, 0)
        rows, columns = int(num_rows), int(num_cols)
        if rows == -1 and columns == -1:
            rows = columns = max(least_rows, least_columns)
        rows = least_rows if rows == -1 else rows
        columns = least_columns if columns == -1 else columns
        if rows < least_rows or columns < least_columns:
            raise invalid(
                f"The matrix of {rows} rows and {columns} columns is too small: the diagonals need {least_rows} and "
                f"{least_columns}."
            )
        if rows != least_rows and columns != least_columns:
            raise invalid(
                "The number of rows or columns is not consistent with the specified d_lower, d_upper, and diagonal."
            )
        if np.ndim(padding):
            raise invalid("padding_value must be a scalar")
        out = np.full(room((*bands.shape[:-2], rows, columns), bands.dtype), padding, bands.dtype)
        _write(out, bands, low, high, align)
        return out

    return matrix_diag


@kernel("MatrixSetDiagV2", "MatrixSetDiagV3")
def _(node: KernelNode) -> Function:
    align = _alignment(node)

    def matrix_set_diag(value: np.ndarray, diagonal: np.ndarray, k: np.ndarray) -> np.ndarray:
        low, high = _diagonal_range(k)
        rows, columns = _matrices(value).shape[-2:]
        _check_range(low, high, rows, columns)
        width = _longest(low, high, rows, columns)
        bands = () if low == high else (high - low + 1,)
        if diagonal.shape != (*value.shape[:-2], *bands, width):
            raise invalid(
                "Either first dimensions of diagonal don't match input.shape[:-2], or diagonal.shape[:-1] is not equal "
                "to the longests diagonal in range [lower_diag_index:upper_diag_index].\nInput shape: "
                f"{shape_text(value.shape)}\nDiagonal shape: {shape_text(diagonal.shape)}"
            )
        out = value.copy()
        _write(out, _as_bands(diagonal, low, high), low, high, align)
        return out

    return matrix_set_diag


def _alignment(node: KernelNode) -> tuple[str, str]:
    """On which side the diagonals above and below the main one begin in their rows; the older ops: on the left."""
    if "align" not in node.attrs:
        return "LEFT", "LEFT"
    above, below = as_text(node.attr("align")).split("_")
    return above, below


def _diagonal_range(k: Array) -> tuple[int, int]:
    if np.ndim(k) > 1:
        raise invalid(f"diag_index must be a scalar or vector, received shape: {shape_text(np.shape(k))}")
    numbers = np.ravel(k).tolist()
    if len(numbers) not in (1, 2):
        raise invalid(f"diag_index must be a vector with one or two elements. It has {len(numbers)} elements.")
    low, high = numbers[0], numbers[-1]
    if low > high:
        raise invalid(f"lower_diag_index must not be larger than upper_diag_index: {low} > {high}")
    return low, high


def _check_range(low: int, high: int, rows: int, columns: int) -> None:
    for name, number in (("lower_diag_index", low), ("upper_diag_index", high)):
        if number and not -rows < number < columns:
            raise invalid(f"{name} is out of bound: {number} It must be between {-rows} and {columns}")


def _longest(low: int, high: int, rows: int, columns: int) -> int:
    return min(rows + min(high, 0), columns - max(low, 0))


def _as_bands(diagonal: np.ndarray, low: int, high: int) -> np.ndarray:
    """[..., bands, width], also for the single diagonal that comes without the dimension of bands."""
    if low == high:
        return diagonal[..., None, :]
    if diagonal.ndim < 2 or diagonal.shape[-2] != high - low + 1:
        raise invalid(
            "The number of diagonals provided in the input does not match the lower_diag_index and upper_diag_index "
            "range."
        )
    return diagonal


def _write(out: np.ndarray, bands: np.ndarray, low: int, high: int, align: tuple[str, str]) -> None:
    rows, columns = out.shape[-2:]
    for number, (row, column, place) in enumerate(_diagonals(low, high, rows, columns, bands.shape[-1], align)):
        out[..., row, column] = bands[..., number, place]


def _diagonals(
    low: int, high: int, rows: int, columns: int, width: int, align: tuple[str, str]
) -> Iterator[tuple[np.ndarray, np.ndarray, slice]]:
    """For each diagonal from the highest to the lowest: its rows, its columns, and where it is in its band."""
    for offset in range(high, low - 1, -1):
        steps = np.arange(min(rows + min(offset, 0), columns - max(offset, 0)))
        side = align[0] if offset >= 0 else align[1]
        start = width - len(steps) if side == "RIGHT" else 0
        yield steps - min(offset, 0), steps + max(offset, 0), slice(start, start + len(steps))


@kernel("MatrixBandPart", "BatchMatrixBandPart")
def _(node: KernelNode) -> Function:
    def matrix_band_part(value: np.ndarray, num_lower: np.ndarray, num_upper: np.ndarray) -> np.ndarray:
        rows, columns = _matrices(value).shape[-2:]
        distance = np.arange(rows)[:, None] - np.arange(columns)
        lower, upper = scalar(num_lower, "num_lower"), scalar(num_upper, "num_upper")
        for name, number, size, what in (
            ("num_lower", lower, rows, "rows"),
            ("num_upper", upper, columns, "columns"),
        ):
            if number > size:
                raise invalid(f"{name} must be negative or less or equal to number of {what} ({size}) got: {number}")
        kept = ((lower < 0) | (distance <= lower)) & ((upper < 0) | (-distance <= upper))
        return np.where(kept, value, filled((), zero_of(value.dtype), value.dtype))

    return matrix_band_part


def _matrices(value: np.ndarray) -> np.ndarray:
    if np.ndim(value) < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {shape_text(np.shape(value))}")
    return value
