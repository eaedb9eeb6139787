"""The public array functions: indexing as numpy's, static shapes that follow constants, and readable errors."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor.executor import run_graph_def


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def evaluate(*tensors, feeds=None):
    feeds = {tensor.name: value for tensor, value in (feeds or {}).items()}
    return run_graph_def(tensors[0].graph.as_graph_def(), [tensor.name for tensor in tensors], feeds)


X = np.arange(60).reshape(3, 4, 5)
INDICES = {
    "an integer": np.index_exp[1],
    "a negative integer": np.index_exp[-1],
    "a range": np.index_exp[1:3],
    "ranges past the end": np.index_exp[1:99, -99:2],
    "negative strides": np.index_exp[::-1, 3:0:-2],
    "an ellipsis": np.index_exp[..., 2],
    "an ellipsis in the middle": np.index_exp[0, ..., 1:3],
    "an ellipsis for nothing": np.index_exp[0, 1, ..., 2],
    "new axes": np.index_exp[None, 1, None],
    "everything": np.index_exp[None, ..., -1, ::2],
    "nothing left": np.index_exp[2:1],
    "a scalar": np.index_exp[1, 2, 3],
}


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_square_brackets_mean_what_they_mean_to_numpy(index):
    sliced = tf.constant(X)[index]
    np.testing.assert_array_equal(evaluate(sliced)[0], X[index])
    assert sliced.shape.as_list() == list(X[index].shape)


def test_an_index_may_be_a_tensor():
    at = tf.placeholder(tf.int32, [])
    row, rows = tf.constant(X)[at], tf.constant(X)[: at + 1, -1]
    found = evaluate(row, rows, feeds={at: np.int32(1)})
    np.testing.assert_array_equal(found[0], X[1])
    np.testing.assert_array_equal(found[1], X[:2, -1])
    assert row.shape.as_list() == [4, 5] and rows.shape.as_list() == [None, 5]


def test_a_boolean_index_is_a_mask():
    mask = np.array([True, False, True])
    np.testing.assert_array_equal(evaluate(tf.constant(X)[mask])[0], X[mask])
    np.testing.assert_array_equal(evaluate(tf.boolean_mask(X, X > 30))[0], X[X > 30])


def test_a_wrong_index_says_what_is_right():
    with pytest.raises(TypeError, match="Only integers, slices"):
        tf.constant(X)["a"]
    with pytest.raises(ValueError, match="slice index 3 of dimension 0 out of bounds"):
        tf.constant(X)[3]
    with pytest.raises(ValueError, match="input has only 3 dims"):
        tf.constant(X)[0, 0, 0, 0]


def test_shapes_of_shapes_are_folded():
    x = tf.placeholder(tf.float32, [None, 3, 4])
    batch = tf.shape(x)[0]
    assert tf.reshape(x, tf.stack([batch, 12])).shape.as_list() == [None, 12]
    assert tf.reshape(x, [-1, 12]).shape.as_list() == [None, 12]
    assert tf.reshape(tf.zeros([2, 3, 4]), [6, -1]).shape.as_list() == [6, 4]
    assert tf.zeros(tf.concat([tf.shape(x)[:1], [7]], 0)).shape.as_list() == [None, 7]
    assert tf.fill(tf.shape(x), 1.0).shape.as_list() == [None, 3, 4]
    assert tf.broadcast_to(1.0, tf.shape(x)).shape.as_list() == [None, 3, 4]
    assert tf.tile(x, [2, 1, 3]).shape.as_list() == [None, 3, 12]
    assert tf.transpose(x).shape.as_list() == [4, 3, None]
    assert tf.pad(x, [[1, 1], [0, 0], [2, 0]]).shape.as_list() == [None, 3, 6]


def test_rank_size_and_shape_are_constants_when_they_are_known():
    known = tf.zeros([2, 3])
    assert {tf.shape(known).op.type, tf.size(known).op.type, tf.rank(known).op.type} == {"Const"}
    partly = tf.placeholder(tf.float32, [None, 3])
    assert [each.op.type for each in (tf.shape(partly), tf.size(partly), tf.rank(partly))] == ["Shape", "Size", "Const"]


def test_small_zeros_are_constants_and_large_ones_are_filled():
    assert tf.zeros([10]).op.type == "Const" and tf.zeros([100, 100]).op.type == "Fill"
    assert evaluate(tf.zeros([2], tf.string), tf.ones([2], tf.bool))[0].tolist() == [b"", b""]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: tf.reshape(tf.zeros([2, 3]), [4]), "Cannot reshape a tensor with 6 elements"),
        (lambda: tf.concat([tf.zeros([2, 3]), tf.zeros([2])], 0), "Shapes must be equal rank, but are 2 and 1"),
        (lambda: tf.concat([tf.zeros([2, 3]), tf.zeros([3, 2])], 0), "Incompatible|not compatible|must be equal"),
        (lambda: tf.squeeze(tf.zeros([2, 3]), [0]), r"Can not squeeze dim\[0\], expected a dimension of 1, got 2"),
        (lambda: tf.transpose(tf.zeros([2, 3]), [0, 0]), "is not a permutation"),
        (lambda: tf.split(tf.zeros([5]), 2), "evenly divisible by 2 but is 5"),
        (lambda: tf.unstack(tf.placeholder(tf.float32)), "Cannot infer num from shape"),
        (lambda: tf.expand_dims(tf.zeros([2]), 3), "dim 3 not in the interval"),
        (lambda: tf.where([True], [1.0]), "must both be non-None or both be None"),
    ],
)
def test_static_errors_say_what_is_wrong(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_stack_and_unstack_are_inverse():
    parts = tf.unstack(tf.constant(X), axis=-1)
    np.testing.assert_array_equal(evaluate(tf.stack(parts, axis=2))[0], X)


def test_split_takes_a_number_or_sizes():
    halves, pieces = tf.split(X, 2, axis=1), tf.split(X, [1, 4], axis=-1)
    assert [each.shape.as_list() for each in halves] == [[3, 2, 5]] * 2
    assert [each.shape.as_list() for each in pieces] == [[3, 4, 1], [3, 4, 4]]


@pytest.mark.parametrize("indexing", ["xy", "ij"])
def test_meshgrid_is_numpys(indexing):
    vectors = [np.arange(2), np.arange(3), np.arange(4)]
    for ours, theirs in zip(
        evaluate(*tf.meshgrid(*vectors, indexing=indexing)), np.meshgrid(*vectors, indexing=indexing), strict=True
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_a_sequence_mask_has_as_many_ones_as_the_length_says():
    assert evaluate(tf.sequence_mask([1, 3], 4, tf.int32))[0].tolist() == [[1, 0, 0, 0], [1, 1, 1, 0]]
    assert evaluate(tf.sequence_mask([[0], [2]]))[0].tolist() == [[[False, False]], [[True, True]]]


def test_one_hot_defaults_to_float_ones():
    encoded = tf.one_hot([0, 2, -1], 3)
    assert encoded.dtype == tf.float32 and encoded.shape.as_list() == [3, 3]
    assert evaluate(encoded)[0].tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0]]
    assert evaluate(tf.one_hot([1], 2, on_value=5, off_value=7, axis=0))[0].tolist() == [[7], [5]]


def test_gather_of_batches_and_batch_gather_agree():
    indices = np.array([[0, 3], [1, 1], [2, 0]])
    by_gather, by_name = tf.gather(X, indices, batch_dims=1), tf.batch_gather(X, indices)
    expected = np.stack([X[i, row] for i, row in enumerate(indices)])
    for found in evaluate(by_gather, by_name):
        np.testing.assert_array_equal(found, expected)
    nd = evaluate(tf.gather_nd(X, indices[..., None], batch_dims=1))[0]
    np.testing.assert_array_equal(nd, expected)


def test_search_finds_the_place_on_either_side():
    ordered, wanted = np.array([[1, 3, 3], [2, 4, 6]]), np.array([[3], [5]])
    left, right = (tf.searchsorted(ordered, wanted, side=side) for side in ("left", "right"))
    assert [each.tolist() for each in evaluate(left, right)] == [[[1], [2]], [[3], [2]]]


def test_space_to_batch_paddings_make_blocks_fit():
    paddings, crops = tf.required_space_to_batch_paddings([5, 4], [2, 3], [[1, 0], [0, 0]])
    assert [each.tolist() for each in evaluate(paddings, crops)] == [[[1, 0], [0, 2]], [[0, 0], [0, 2]]]


def test_a_sparse_placeholder_is_three_placeholders():
    sparse = tf.sparse_placeholder(tf.float32, [2, 3], name="s")
    dense = tf.sparse_tensor_to_dense(sparse)
    feeds = {sparse.indices: np.array([[0, 1]]), sparse.values: np.array([5.0], np.float32)}
    assert evaluate(dense, feeds=feeds)[0].tolist() == [[0, 5, 0], [0, 0, 0]]
    assert sparse.values.name == "s/values:0"


def test_the_gradient_of_a_gather_is_sparse():
    params = tf.placeholder(tf.float32, [5, 2])
    (gradient,) = tf.gradients(tf.gather(params, [1, 1, 3]), params)
    assert isinstance(gradient, tf.IndexedSlices)
    dense = tf.convert_to_tensor(gradient)
    assert evaluate(dense, feeds={params: np.zeros((5, 2), np.float32)})[0][:, 0].tolist() == [0, 2, 0, 1, 0]
