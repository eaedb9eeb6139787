"""Cases of the ops on sparse tensors."""

from __future__ import annotations

import numpy as np

from dtf.build.ops.sparse import sparse_to_dense
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, fails_with, ints, longs

INDICES = longs([[0, 1], [2, 0], [2, 2]])
SHAPE = longs([3, 4])
VALUES = np.array([1.0, -2.0, 3.0])


def dense(values=VALUES):
    out = np.zeros((3, 4))
    out[tuple(INDICES.T)] = values
    return out


CASES = [
    Case(
        "SparseToDense",
        [INDICES, SHAPE, VALUES, np.float64(0.5)],
        expect=np.where(dense() == 0, 0.5, dense()),
        grad=[2, 3],
    ),
    Case(
        "SparseToDense",
        [ints([1, 3]), ints([4]), np.float64(2), np.float64(0)],
        expect=np.array([0.0, 2, 0, 2]),
        name="a_vector",
    ),
    Case(
        "SparseToDense",
        run=lambda: fails_with(
            errors.InvalidArgumentError,
            "indices[1] = [0] is out of order",
            lambda at: sparse_to_dense(at, [3], 1.0, 0.0),
            longs([[1], [0]]),
        ),
        name="out_of_order",
    ),
    Case(
        "SparseTensorDenseMatMul",
        [INDICES, VALUES, SHAPE, doubles(4, 2)],
        expect=lambda i, v, s, b: dense() @ b,
        grad=[1, 3],
    ),
    Case(
        "SparseTensorDenseMatMul",
        [INDICES, VALUES, SHAPE, doubles(2, 3)],
        {"adjoint_a": True, "adjoint_b": True},
        lambda i, v, s, b: dense().T @ b.T,
        grad=[1, 3],
        name="adjoint",
    ),
    Case(
        "SparseTensorDenseAdd",
        [INDICES, VALUES, SHAPE, doubles(3, 4)],
        expect=lambda i, v, s, b: dense() + b,
        grad=[1, 3],
    ),
    Case("SparseReorder", [INDICES[[2, 0, 1]], VALUES[[2, 0, 1]], SHAPE], expect=[INDICES, VALUES], grad=[1]),
    Case("SparseReshape", [INDICES, SHAPE, longs([2, -1])], expect=[longs([[0, 1], [1, 2], [1, 4]]), longs([2, 6])]),
    Case(
        "SparseFillEmptyRows",
        [INDICES, VALUES, SHAPE, np.float64(9)],
        expect=[
            longs([[0, 1], [1, 0], [2, 0], [2, 2]]),
            np.array([1.0, 9, -2, 3]),
            np.array([False, True, False]),
            longs([0, 2, 3]),
        ],
        grad=[1, 3],
    ),
    Case(
        "SparseFillEmptyRowsGrad",
        [longs([0, 2, 3]), np.array([1.0, 2, 4, 8])],
        expect=[np.array([1.0, 4, 8]), np.float64(2)],
    ),
    Case(
        "SparseConcat",
        [[INDICES, INDICES[:1]], [VALUES, VALUES[:1]], [SHAPE, longs([3, 2])]],
        {"concat_dim": 1},
        [longs([[0, 1], [0, 5], [2, 0], [2, 2]]), np.array([1.0, 1, -2, 3]), longs([3, 6])],
    ),
    Case("SparseReduceSum", [INDICES, VALUES, SHAPE, ints([1])], expect=dense().sum(1), grad=[1]),
    Case("SparseReduceSum", [INDICES, VALUES, SHAPE, ints([1])], expect=dense().sum(1), grad=[1]),
    Case("SparseReduceSum", [INDICES, VALUES, SHAPE, ints([0, 1])], expect=dense().sum(), grad=[1], name="all"),
    Case(
        "SparseReduceSum",
        [INDICES, VALUES, SHAPE, ints([-1])],
        {"keep_dims": True},
        dense().sum(1, keepdims=True),
        grad=[1],
        name="keeping_dimensions",
    ),
    Case("SparseReduceSum", [INDICES, VALUES, SHAPE, ints([])], expect=dense(), grad=[1], name="nothing"),
]
