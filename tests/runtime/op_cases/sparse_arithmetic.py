"""Cases of sums, extremes, parts, reductions and softmax of sparse tensors."""

from __future__ import annotations

import numpy as np

import dtf as tf
from dtf.run.executor import executor
from dtf.wire import errors
from tests.runtime.op_cases import Case
from tests.runtime.op_cases.array import doubles, ints, longs
from tests.runtime.op_cases.sparse import INDICES, SHAPE, VALUES, dense

OTHER = longs([[0, 1], [1, 1], [2, 2]])
OTHER_VALUES = np.array([1.0, 5.0, -3.0])
UNION = longs([[0, 1], [1, 1], [2, 0], [2, 2]])
BOTH = [INDICES, VALUES, SHAPE, OTHER, OTHER_VALUES, SHAPE]
NOTHING = longs([]).reshape(0, 2)


def softmax():
    return np.array([1.0, *(np.exp([-2.0, 3.0]) / np.exp([-2.0, 3.0]).sum())])


def run(*sparse_or_dense):
    tensors = []
    for each in sparse_or_dense:
        tensors.extend([each.indices, each.values, each.dense_shape] if isinstance(each, tf.SparseTensor) else [each])
    return executor.run_graph_def(tf.get_default_graph().as_graph_def(), [tensor.name for tensor in tensors], {})


def a_sum_of_different_shapes_is_refused():
    with tf.Graph().as_default():
        a = tf.SparseTensor(INDICES, VALUES, SHAPE)
        b = tf.SparseTensor(INDICES, VALUES, SHAPE + 1)
        try:
            run(tf.sparse_add(a, b))
        except errors.InvalidArgumentError as error:
            assert "Operands' shapes do not match: got 3 and 4 for dimension 0" in error.message
        else:
            raise AssertionError("two shapes were added")


def public_functions_keep_the_dense_meaning():
    with tf.Graph().as_default():
        a = tf.SparseTensor(INDICES, VALUES, SHAPE)
        swapped = tf.sparse.transpose(a)
        grown = tf.sparse_reset_shape(a, [5, 5])
        shrunk = tf.sparse_reset_shape(a)
        parts = tf.sparse_split(sp_input=a, num_split=2, axis=1)
        doubled = tf.sparse.add(a, a)
        results = run(swapped, grown.dense_shape, shrunk.dense_shape, *parts, tf.sparse.to_dense(doubled))
    np.testing.assert_array_equal(results[0], [[0, 2], [1, 0], [2, 2]])
    np.testing.assert_array_equal(results[1], [-2.0, 1.0, 3.0])
    np.testing.assert_array_equal(results[2], [4, 3])
    np.testing.assert_array_equal(results[3], [5, 5])
    np.testing.assert_array_equal(results[4], [3, 3])
    np.testing.assert_array_equal(results[5], [[0, 1], [2, 0]])
    np.testing.assert_array_equal(results[8], [[2, 0]])
    np.testing.assert_array_equal(results[11], 2 * dense())


def the_namespace_makes_sparse_tensors():
    words = np.array([["a", ""], ["b", "c"]], object)
    with tf.Graph().as_default():
        unit = tf.sparse.to_dense(tf.sparse.eye(2, 3))
        lifted = tf.sparse.expand_dims(tf.sparse.from_dense(dense()), 1)
        crossed = tf.sparse.cross([tf.sparse.from_dense(words), np.array([[1], [2]])])
        results = run(unit, lifted, crossed)
    np.testing.assert_array_equal(results[0], np.eye(2, 3))
    np.testing.assert_array_equal(results[1], np.insert(INDICES, 1, 0, axis=1))
    np.testing.assert_array_equal(results[3], [3, 1, 4])
    assert results[5].tolist() == [b"a_X_1", b"b_X_2", b"c_X_2"]


CASES = [
    Case("SparseAdd", [*BOTH, np.float64(0)], expect=[UNION, np.array([2.0, 5, -2, 0]), SHAPE], grad=[1, 4]),
    Case("SparseAdd", [*BOTH, np.float64(3)], expect=[longs([[1, 1], [2, 0]]), np.array([5.0, -2]), SHAPE],
         name="threshold"),
    Case("SparseAdd", [NOTHING, VALUES[:0], SHAPE, *BOTH[3:], np.float64(0)], expect=BOTH[3:], name="to_nothing"),
    Case("SparseAdd", run=a_sum_of_different_shapes_is_refused, name="shapes"),
    Case("SparseAddGrad", [np.array([1.0, 2, 3, 4]), INDICES, OTHER, UNION],
         expect=[np.array([1.0, 3, 4]), np.array([1.0, 2, 4])]),
    Case("SparseSparseMaximum", BOTH, expect=[UNION, np.array([1.0, 5, 0, 3])]),
    Case("SparseSparseMinimum", BOTH, expect=[UNION, np.array([1.0, 0, -2, -3])]),
    Case("SparseDenseCwiseAdd", [INDICES, VALUES, SHAPE, np.arange(4.0)], expect=np.array([2.0, -2, 5]), grad=[1, 3]),
    Case("SparseDenseCwiseMul", [INDICES, VALUES, SHAPE, doubles(3, 1)], grad=[1, 3],
         expect=lambda i, v, s, d: v * d[[0, 2, 2], 0]),
    Case("SparseDenseCwiseDiv", [INDICES, VALUES, SHAPE, doubles(3, 4) + 3], grad=[1, 3],
         expect=lambda i, v, s, d: v / d[tuple(i.T)]),
    Case("SparseSlice", [INDICES, VALUES, SHAPE, longs([1, 0]), longs([5, 2])], grad=[1],
         expect=[longs([[1, 0]]), np.array([-2.0]), longs([2, 2])]),
    Case("SparseSliceGrad", [np.array([7.0]), INDICES, longs([1, 0]), longs([[1, 0]])], expect=np.array([0.0, 7, 0])),
    Case("SparseSplit", [np.int64(1), INDICES, VALUES, SHAPE], {"num_split": 3}, [
        longs([[0, 1], [2, 0]]), longs([[2, 0]]), NOTHING, np.array([1.0, -2]), np.array([3.0]), np.zeros(0),
        longs([3, 2]), longs([3, 1]), longs([3, 1]),
    ]),
    Case("SparseSplit", run=public_functions_keep_the_dense_meaning, name="public"),
    Case("SparseSplit", run=the_namespace_makes_sparse_tensors, name="namespace"),
    Case("SparseReduceMax", [INDICES, VALUES, SHAPE, ints([1])], expect=np.array([1.0, 0, 3])),
    Case("SparseReduceMax", [INDICES, -VALUES, SHAPE, ints([0, 1])], expect=np.float64(2), name="all"),
    Case("SparseReduceMax", [NOTHING, VALUES[:0], SHAPE, ints([1])], expect=np.zeros(3), name="of_nothing"),
    Case("SparseReduceMaxSparse", [INDICES, VALUES, SHAPE, ints([1])], {"keep_dims": True},
         [longs([[0, 0], [2, 0]]), np.array([1.0, 3]), longs([3, 1])]),
    Case("SparseReduceSumSparse", [INDICES, VALUES, SHAPE, ints([-1])],
         expect=[longs([[0], [2]]), np.array([1.0, 1]), longs([3])]),
    Case("SparseReduceSumSparse", [INDICES, VALUES, SHAPE, ints([0, 1])],
         expect=[longs([]).reshape(1, 0), np.array([2.0]), longs([])], name="all"),
    Case("SparseSoftmax", [INDICES, VALUES, SHAPE], expect=softmax(), grad=[1]),
]  # fmt: skip
