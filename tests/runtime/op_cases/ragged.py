"""Cases of ragged tensors."""

from __future__ import annotations

import numpy as np

from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, ints, longs

SPLITS = longs([0, 2, 2, 3])
VALUES = np.array([1.5, 2.5, 3.5])
NESTED = [longs([0, 1, 2]), longs([0, 2, 3])]
ROW_SPLITS = {"row_partition_types": ["ROW_SPLITS"]}

CASES = [
    Case("RaggedRange", [ints([1, 5, 7]), ints([4, 5, 1]), ints([1, 1, -2])],
         expect=[longs([0, 3, 3, 6]), ints([1, 2, 3, 7, 5, 3])]),
    Case("RaggedRange", [np.int32(0), ints([2, 3]), np.int32(1)],
         expect=[longs([0, 2, 5]), ints([0, 1, 0, 1, 2])], name="broadcast"),
    Case("RaggedGather", [[SPLITS], VALUES, ints([2, 0, 2])], {"OUTPUT_RAGGED_RANK": 1},
         [longs([0, 1, 3, 4]), np.array([3.5, 1.5, 2.5, 3.5])], grad=[1]),
    Case("RaggedGather", [[SPLITS], doubles(3, 2), ints([[1], [0]])], {"OUTPUT_RAGGED_RANK": 2},
         lambda s, v, i: [longs([0, 1, 2]), longs([0, 0, 2]), v[:2]], grad=[1], name="of_a_matrix"),
    Case("RaggedTensorToSparse", [[SPLITS], VALUES], grad=[1],
         expect=[longs([[0, 0], [0, 1], [2, 0]]), VALUES, longs([3, 2])]),
    Case("RaggedTensorToSparse", [NESTED, VALUES[:, None]], grad=[2], name="nested", expect=[
        longs([[0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 0, 0]]), VALUES, longs([2, 1, 2, 1])]),
    Case("RaggedTensorToTensor", [longs([-1, -1]), VALUES, np.float64(9), [SPLITS]], ROW_SPLITS,
         np.array([[1.5, 2.5], [9, 9], [3.5, 9]]), grad=[1, 2]),
    Case("RaggedTensorToTensor", [longs([2, 3]), VALUES, np.float64(9), [SPLITS]], ROW_SPLITS,
         np.array([[1.5, 2.5, 9], [9, 9, 9]]), grad=[1, 2], name="cut_and_filled"),
    Case("RaggedTensorToTensor", [longs([2, 2, 2]), doubles(3, 2), doubles(2), [longs([0, 2, 3])]], ROW_SPLITS,
         lambda s, v, d, p: np.array([[v[0], v[1]], [v[2], d]]), grad=[1, 2], name="of_rows"),
    Case("RaggedTensorToTensor", [longs([-1, -1]), VALUES, np.float64(0), [np.int64(4), longs([0, 0, 2])]],
         {"row_partition_types": ["FIRST_DIM_SIZE", "VALUE_ROWIDS"]},
         np.array([[1.5, 2.5], [0, 0], [3.5, 0], [0, 0]]), grad=[1, 2], name="by_row_ids"),
    Case("RaggedFillEmptyRows", [longs([0, 0, 2]), VALUES, np.int64(4), np.float64(9)], grad=[1, 3], expect=[
        longs([0, 0, 1, 2, 3]), np.array([1.5, 2.5, 9, 3.5, 9]), np.array([False, True, False, True]),
        longs([0, 1, 3])]),
    Case("RaggedFillEmptyRowsGrad", [longs([0, 1, 3]), np.arange(5.0)], expect=[np.array([0.0, 1, 3]), np.float64(6)]),
]  # fmt: skip
