"""Cases of set operations on the last dimension."""

from __future__ import annotations

import numpy as np

import dtf as tf
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import ints, longs
from tests.runtime.op_cases.sparse import INDICES, SHAPE
from tests.runtime.op_cases.sparse_arithmetic import OTHER

FIRST, SECOND = ints([[1, 2, 2], [3, 4, 5]]), ints([[2, 3], [9, 4]])
THREE = ints([1, 2, 3])
ROWS = ints([[1, 2, 2], [3, 4, 5], [1, 1, 3]])


def the_namespace_takes_sparse_and_dense_sets():
    with tf.Graph().as_default(), tf.Session() as session:
        sparse = tf.SparseTensor(OTHER, THREE, SHAPE)
        difference, size = session.run([tf.sets.set_difference(sparse, ROWS), tf.sets.set_size(sparse)])
        both = session.run(tf.sets.union(ROWS, [[7], [3], [1]]))
    np.testing.assert_array_equal(difference.indices, [[1, 0]])
    np.testing.assert_array_equal(difference.values, [2])
    np.testing.assert_array_equal(size, [1, 1, 1])
    np.testing.assert_array_equal(both.values, [1, 2, 7, 3, 4, 5, 1, 3])


CASES = [
    Case("DenseToDenseSetOperation", [FIRST, SECOND], {"set_operation": "intersection"},
         [longs([[0, 0], [1, 0]]), ints([2, 4]), longs([2, 1])], name="intersection"),
    Case("DenseToDenseSetOperation", [FIRST, SECOND], {"set_operation": "union"},
         [longs([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [1, 3]]), ints([1, 2, 3, 3, 4, 5, 9]), longs([2, 4])],
         name="union"),
    Case("DenseToDenseSetOperation", [FIRST, SECOND], {"set_operation": "a-b"},
         [longs([[0, 0], [1, 0], [1, 1]]), ints([1, 3, 5]), longs([2, 2])], name="difference"),
    Case("DenseToSparseSetOperation", [ROWS, OTHER, THREE, SHAPE], {"set_operation": "b-a"},
         [longs([[1, 0]]), ints([2]), longs([3, 1])]),
    Case("DenseToSparseSetOperation", run=the_namespace_takes_sparse_and_dense_sets, name="public"),
    Case("SparseToSparseSetOperation", [INDICES, THREE, SHAPE, OTHER, THREE, SHAPE], {"set_operation": "union"},
         [longs([[0, 0], [1, 0], [2, 0], [2, 1]]), ints([1, 2, 2, 3]), longs([3, 2])]),
    Case("SetSize", [INDICES, ints([1, 3, 3]), SHAPE], expect=ints([1, 0, 1])),
]  # fmt: skip
