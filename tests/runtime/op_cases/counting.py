"""Cases of counting whole numbers in rows."""

from __future__ import annotations

import numpy as np

from dtf.build.apply import apply_op
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import fails_with, ints, longs

NO_WEIGHTS = np.zeros(0)
MATRIX = ints([[1, 2], [2, 5]])

CASES = [
    Case("DenseBincount", [ints([1, 2, 2, 5]), np.int32(4), NO_WEIGHTS], expect=np.array([0.0, 1, 2, 0])),
    Case("DenseBincount", [MATRIX, np.int32(6), np.full((2, 2), 0.5)],
         expect=np.array([[0, 0.5, 0.5, 0, 0, 0], [0, 0, 0.5, 0, 0, 0.5]]), name="weighted"),
    Case("DenseBincount", [ints([[1, 2], [2, 2]]), np.int32(3), np.full((2, 2), 3, np.int32)], {"binary_output": True},
         ints([[0, 1, 1], [0, 0, 1]]), name="binary"),
    Case("DenseBincount", run=lambda: fails_with(
        errors.InvalidArgumentError, "Input arr must be non-negative!",
        lambda x: apply_op("DenseBincount", input=x, size=3, weights=NO_WEIGHTS), ints([1, -1])), name="negative"),
    Case("RaggedBincount", [longs([0, 2, 2, 3]), ints([1, 2, 1]), np.int32(3), NO_WEIGHTS],
         expect=np.array([[0.0, 1, 1], [0, 0, 0], [0, 1, 0]])),
    Case("SparseBincount", [longs([[0, 0], [1, 1], [1, 2]]), ints([1, 2, 1]), longs([2, 3]), np.int32(3), NO_WEIGHTS],
         expect=np.array([[0.0, 1, 0], [0, 1, 1]])),
    Case("SparseBincount", [longs([[0], [1]]), ints([1, 1]), longs([2]), np.int32(3), NO_WEIGHTS],
         expect=np.array([0.0, 2, 0]), name="of_a_vector"),
]  # fmt: skip
