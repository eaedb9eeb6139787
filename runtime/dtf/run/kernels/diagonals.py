"""Kernels of the ops on diagonals and bands of matrices. Static shapes: `build.ops.diagonals`."""

from __future__ import annotations

import numpy as np

from dtf.run.kernels import kernel
from dtf.run.kernels.arguments import invalid, numpy_dtype, shape_text


@kernel("Diag")
def _(node):
    dtype = numpy_dtype(node)

    def diag(diagonal):
        shape = np.shape(diagonal)
        size = np.size(diagonal)
        out = np.zeros((size, size), dtype)
        np.fill_diagonal(out, np.ravel(diagonal))
        return out.reshape(shape + shape)

    return diag


@kernel("DiagPart")
def _(node):
    def diag_part(value):
        half = value.ndim // 2
        if value.ndim % 2 or value.ndim == 0 or value.shape[:half] != value.shape[half:]:
            raise invalid(
                "The rank of the tensor should be even and positive, with equal halves, got shape "
                f"{shape_text(value.shape)}"
            )
        size = int(np.prod(value.shape[:half], dtype=np.int64))
        return np.diagonal(value.reshape(size, size)).reshape(value.shape[:half])

    return diag_part


@kernel("MatrixDiag")
def _(node):
    dtype = numpy_dtype(node)

    def matrix_diag(diagonal):
        size = diagonal.shape[-1]
        out = np.zeros((*diagonal.shape, size), dtype)
        steps = np.arange(size)
        out[..., steps, steps] = diagonal
        return out

    return matrix_diag


@kernel("MatrixDiagPart")
def _(node):
    return lambda value: np.diagonal(_matrices(value), axis1=-2, axis2=-1)


@kernel("MatrixSetDiag")
def _(node):
    def matrix_set_diag(value, diagonal):
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


@kernel("MatrixBandPart")
def _(node):
    def matrix_band_part(value, num_lower, num_upper):
        rows, columns = _matrices(value).shape[-2:]
        distance = np.arange(rows)[:, None] - np.arange(columns)
        lower, upper = int(num_lower), int(num_upper)
        kept = ((lower < 0) | (distance <= lower)) & ((upper < 0) | (-distance <= upper))
        return np.where(kept, value, np.zeros((), value.dtype))

    return matrix_band_part


def _matrices(value: np.ndarray) -> np.ndarray:
    if np.ndim(value) < 2:
        raise invalid(f"input must be at least 2-dim, received shape: {shape_text(np.shape(value))}")
    return value
