"""Cases of the ops on any diagonals of matrices."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, fails_with, ints

MATRICES = doubles(2, 3, 4)
ALIGNMENTS = ("RIGHT_LEFT", "LEFT_RIGHT", "LEFT_LEFT", "RIGHT_RIGHT")


def parts(matrices, low, high, padding=0.0, align="LEFT_LEFT"):
    width = max(np.diagonal(matrices, d, -2, -1).shape[-1] for d in range(low, high + 1))
    out = np.full((*matrices.shape[:-2], high - low + 1, width), padding)
    above, below = align.split("_")
    for d in range(low, high + 1):
        values = np.diagonal(matrices, d, -2, -1)
        start = width - values.shape[-1] if (above if d >= 0 else below) == "RIGHT" else 0
        out[..., high - d, start : start + values.shape[-1]] = values
    return out[..., 0, :] if low == high else out


def replaced(matrices, bands, low, high, align="LEFT_LEFT"):
    out = matrices.copy()
    for batch in np.ndindex(matrices.shape[:-2]):
        for i, j in np.ndindex(matrices.shape[-2:]):
            if low <= j - i <= high:
                marked = np.zeros(matrices.shape[-2:])
                marked[i, j] = 1
                out[(*batch, i, j)] = bands[batch][parts(marked, low, high, align=align) == 1][0]
    return out


def cases():
    bands = doubles(2, 4, 3)
    for align in ALIGNMENTS:
        attrs = {"align": align}
        yield Case("MatrixDiagPartV3", [MATRICES, ints([-1, 2]), np.float64(9)], attrs, grad=[0], name=align,
                   expect=lambda m, k, p, align=align: parts(m, -1, 2, 9.0, align))
        yield Case("MatrixSetDiagV3", [MATRICES, bands, ints([-1, 2])], attrs, grad=[0, 1], name=align,
                   expect=lambda m, d, k, align=align: replaced(m, d, -1, 2, align))
        yield Case("MatrixDiagV3", [bands, ints([-1, 2]), np.int32(3), np.int32(4), np.float64(9)], attrs, grad=[0],
                   name=align, expect=lambda d, *_, align=align: replaced(np.full((2, 3, 4), 9.0), d, -1, 2, align))


CASES = [
    *cases(),
    Case("MatrixDiagPartV2", [MATRICES, np.int32(1), np.float64(0)], expect=lambda m, *_: parts(m, 1, 1), grad=[0]),
    Case("MatrixSetDiagV2", [MATRICES, doubles(2, 2), np.int32(-1)], expect=lambda m, d, k: replaced(m, d, -1, -1),
         grad=[0, 1]),
    Case("MatrixDiagV2", [doubles(2, 3), np.int32(-1), np.int32(-1), np.int32(-1), np.float64(0)], grad=[0],
         expect=lambda d, *_: replaced(np.zeros((2, 4, 4)), d, -1, -1)),
    Case("MatrixDiagV3", [doubles(3), np.int32(0), np.int32(-1), np.int32(5), np.float64(0)],
         expect=lambda d, *_: np.eye(3, 5) * d[:, None], name="wider"),
    Case("MatrixDiagV3", run=lambda: fails_with(
        errors.InvalidArgumentError, "The number of rows or columns is not consistent",
        lambda d: tf.matrix_diag(d, num_rows=4, num_cols=5), doubles(3)), name="too_large"),
    Case("MatrixDiagPartV3", run=lambda: fails_with(
        errors.InvalidArgumentError, "upper_diag_index is out of bound: 5 It must be between -3 and 4",
        lambda m: tf.matrix_diag_part(m, k=(2, 5)), MATRICES), name="out_of_bounds"),
]  # fmt: skip
