"""The functions of tf.math, tf.linalg, tf.random and clipping that are more than one op: rules and errors."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.run.executor import executor
from dtf.run.executor.step import SessionState

MATRIX = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]], np.float32)


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def evaluate(value, feeds=None):
    """The value of one tensor of the default graph."""
    tensor = tf.convert_to_tensor(value)
    feeds = {key.name: array for key, array in (feeds or {}).items()}
    return executor.run_graph_def(tensor.graph.as_graph_def(), [tensor.name], feeds)[0]


# Division and casts


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (tf.div, np.array([-4, 3], np.int32)),
        (tf.floordiv, np.array([-4, 3], np.int32)),
        (tf.truncatediv, np.array([-3, 3], np.int32)),
        (tf.floormod, np.array([1, 1], np.int32)),
        (tf.truncatemod, np.array([-1, 1], np.int32)),
        (tf.truediv, np.array([-3.5, 3.5])),
        (tf.divide, np.array([-3.5, 3.5])),
    ],
)
def test_each_division_of_integers_has_its_own_rounding_and_type(function, expected):
    value = evaluate(function(tf.constant([-7, 7]), 2))
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("function", [tf.div, tf.floordiv, tf.mod, tf.truncatediv, tf.truncatemod])
def test_integers_are_not_divided_by_zero(function):
    with pytest.raises(tf.errors.InvalidArgumentError, match="Integer division by zero"):
        evaluate(function(tf.constant([1, 2]), tf.constant([1, 0])))


def test_truediv_refuses_two_types():
    with pytest.raises(TypeError, match="must have the same dtype"):
        tf.truediv(tf.constant(1), tf.constant(2.0))


def test_small_integers_are_divided_as_float32():
    assert tf.truediv(tf.constant(1, tf.int8), tf.constant(2, tf.int8)).dtype == tf.float32


def test_a_cast_to_the_same_type_adds_no_op():
    tensor = tf.constant(1.0)
    assert tf.cast(tensor, tf.float32) is tensor


def test_a_cast_keeps_slices_and_sparse_tensors_what_they_are():
    slices = tf.IndexedSlices(tf.constant([1.5]), tf.constant([0]))
    assert tf.cast(slices, tf.int32).values.dtype == tf.int32
    sparse = tf.SparseTensor([[0]], [1.5], [3])
    assert tf.cast(sparse, tf.int32).dtype == tf.int32
    assert isinstance(tf.square(sparse), tf.SparseTensor)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [(tf.uint8, [0, 255]), (tf.int8, [-128, 127]), (tf.int32, [-(2**31), 2**31 - 128]), (tf.int64, [-(2**63), None])],
)
def test_a_saturating_cast_stays_in_range(dtype, expected):
    low, high = evaluate(tf.saturate_cast(tf.constant([-1e30, 1e30]), dtype)).tolist()
    assert low == expected[0]
    assert high == expected[1] if expected[1] is not None else 0 < high < 2**63


# Reductions


def test_a_reduction_over_all_axes_of_an_unknown_shape_is_a_scalar():
    x = tf.placeholder(tf.float32)
    total = tf.reduce_sum(x)
    assert total.shape == []
    assert evaluate(total, {x: MATRIX}) == 5


def test_a_reduction_takes_its_arguments_under_both_names():
    np.testing.assert_array_equal(evaluate(tf.reduce_max(MATRIX, reduction_indices=[1], keep_dims=True)), [[3], [5]])
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.reduce_sum(MATRIX, axis=0, reduction_indices=0)
    with pytest.raises(ValueError, match="Cannot specify both"):
        tf.reduce_sum(MATRIX, keepdims=True, keep_dims=True)


def test_an_axis_out_of_range_is_refused_when_the_graph_is_built_and_when_it_runs():
    with pytest.raises(ValueError, match="Invalid reduction dimension 2 for input with 2 dimensions"):
        tf.reduce_sum(MATRIX, 2)
    axis = tf.placeholder(tf.int32, [])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Invalid reduction dimension"):
        evaluate(tf.reduce_sum(MATRIX, axis), {axis: np.int32(2)})


def test_an_axis_given_twice_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="duplicate dimension: 0"):
        evaluate(tf.reduce_sum(MATRIX, [0, -2]))


def test_logsumexp_neither_overflows_nor_trips_over_infinities():
    assert evaluate(tf.reduce_logsumexp([1000.0, 1000.0])) == pytest.approx(1000 + np.log(2))
    assert evaluate(tf.reduce_logsumexp([-np.inf, -np.inf])) == -np.inf


def test_count_nonzero_counts_numbers_and_strings():
    np.testing.assert_array_equal(evaluate(tf.count_nonzero(tf.constant([[0, 1], [2, 3]]), axis=1)), [1, 2])
    assert evaluate(tf.count_nonzero(tf.constant(["", "a"]), dtype=tf.int32)) == 1


def test_variance_and_standard_deviation():
    np.testing.assert_allclose(evaluate(tf.math.reduce_variance(MATRIX, 1)), MATRIX.var(1), rtol=1e-6)
    np.testing.assert_allclose(evaluate(tf.math.reduce_std(MATRIX, 0, keepdims=True)), MATRIX.std(0)[None], rtol=1e-6)
    with pytest.raises(TypeError, match="real or complex"):
        tf.math.reduce_variance(tf.constant([1, 2]))


# Sums of several tensors, sequences, counts


def test_add_n_takes_what_add_n_takes():
    one = tf.constant([1.0, 2.0])
    assert tf.add_n([one]) is one
    slices = tf.IndexedSlices(tf.constant([5.0]), tf.constant([1]), tf.constant([2]))
    np.testing.assert_array_equal(evaluate(tf.add_n([one, slices])), [1, 7])
    with pytest.raises(ValueError, match="at least one"):
        tf.add_n([])
    with pytest.raises(ValueError, match="Dimension 0 in both shapes must be equal, but are 2 and 1"):
        tf.add_n([one, tf.constant([1.0])])


def test_add_n_of_shapes_that_differ_at_run_time_is_an_error():
    x, y = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have the same size and shape"):
        evaluate(tf.add_n([x, y]), {x: np.float32([1]), y: np.float32([1, 2])})


def test_scalar_mul_refuses_what_is_no_scalar():
    slices = tf.IndexedSlices(tf.constant([5.0]), tf.constant([1]), tf.constant([2]))
    assert evaluate(tf.scalar_mul(2.0, slices).values) == [10]
    with pytest.raises(ValueError, match="Only scalar multiply works"):
        tf.scalar_mul(tf.constant([1.0, 2.0]), MATRIX)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((4,), np.array([0, 1, 2, 3], np.int32)),
        ((3, 18, 6), np.array([3, 9, 15], np.int32)),
        ((1.0, 2.0, 0.5), np.array([1, 1.5], np.float32)),
        ((3, 0, -1), np.array([3, 2, 1], np.int32)),
    ],
)
def test_ranges(arguments, expected):
    tensor = tf.range(*arguments)
    assert tensor.shape == expected.shape
    value = evaluate(tensor)
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_a_range_that_leads_away_from_its_limit_is_refused():
    with pytest.raises(ValueError, match="in the order of delta"):
        tf.range(3, 0, 1)


def test_bincount_is_as_long_as_it_must_be_and_may_be():
    np.testing.assert_array_equal(evaluate(tf.bincount([1, 1, 3])), [0, 2, 0, 1])
    np.testing.assert_array_equal(evaluate(tf.bincount([1, 1, 3], minlength=5, maxlength=6)), [0, 2, 0, 1, 0])
    np.testing.assert_array_equal(evaluate(tf.bincount([1, 1, 3], [0.5, 1.0, 9.0], maxlength=2)), [0, 1.5])
    np.testing.assert_array_equal(evaluate(tf.bincount(tf.constant([], tf.int32))), [])


def test_segments_out_of_range_or_order_are_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"segment_ids\[1\] = 5 is out of range \[0, 3\)"):
        evaluate(tf.unsorted_segment_sum(MATRIX, [0, 5], 3))
    with pytest.raises(tf.errors.InvalidArgumentError, match="segment ids are not increasing"):
        evaluate(tf.segment_sum(MATRIX, [1, 0]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="out of range"):
        evaluate(tf.sparse_segment_sum(MATRIX, [2], [0]))


def test_segment_means_divide_by_the_size_of_the_segment():
    ids = tf.placeholder_with_default([2, 2], [None])
    np.testing.assert_allclose(
        evaluate(tf.unsorted_segment_mean(MATRIX, ids, 3)), [[0] * 3, [0] * 3, [2.5, 1.5, -1.5]]
    )
    np.testing.assert_allclose(
        evaluate(tf.unsorted_segment_sqrt_n(MATRIX, ids, 3))[2], MATRIX.sum(0) / np.sqrt(2), rtol=1e-6
    )


# Linear algebra


def test_matmul_takes_matrices_batches_and_adjoints():
    batch = np.stack([MATRIX, MATRIX * 2])
    np.testing.assert_allclose(evaluate(tf.matmul(MATRIX, MATRIX, transpose_b=True)), MATRIX @ MATRIX.T)
    np.testing.assert_allclose(evaluate(tf.matmul(batch, batch, adjoint_b=True)), batch @ batch.transpose(0, 2, 1))
    np.testing.assert_allclose(evaluate(tf.matmul(batch, MATRIX.T)), batch @ MATRIX.T)
    np.testing.assert_allclose(evaluate(tf.constant(MATRIX) @ MATRIX.T), MATRIX @ MATRIX.T)
    with pytest.raises(ValueError, match="Dimensions must be equal, but are 3 and 2"):
        tf.matmul(MATRIX, MATRIX)
    with pytest.raises(ValueError, match="Only one of"):
        tf.matmul(MATRIX, MATRIX, transpose_a=True, adjoint_a=True)


def test_matrices_that_do_not_fit_at_run_time_are_named():
    x = tf.placeholder(tf.float32, [None, None])
    message = r"Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[2,3\]"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        evaluate(tf.matmul(x, x), {x: MATRIX})


@pytest.mark.parametrize("axes", [0, 1, [[0, 2], [1, 0]], [[-1], [0]]])
@pytest.mark.parametrize("known", [True, False])
def test_tensordot_is_numpys(axes, known):
    a, b = np.arange(24.0).reshape(2, 3, 4), np.arange(40.0).reshape(4, 2, 5)
    x = tf.placeholder(tf.float64, a.shape if known else [None, 3, None])
    result = tf.tensordot(x, b, axes)
    expected = np.tensordot(a, b, axes)
    assert result.shape.is_compatible_with(expected.shape)
    np.testing.assert_allclose(evaluate(result, {x: a}), expected)


@pytest.mark.parametrize(
    "equation", ["ij,jk->ik", "ij,jk", "ij,jk->", "ij,jk->kij", "ij,kl->jl", "ij,jk,k->i", "...j,jk->k..."]
)
def test_einsum_is_numpys(equation):
    operands = [MATRIX, MATRIX.T, MATRIX[:, 0]][: equation.count(",") + 1]
    result = tf.einsum(equation, *operands)
    expected = np.einsum(equation, *operands)
    assert result.shape == expected.shape
    np.testing.assert_allclose(evaluate(result), expected, rtol=1e-5)


@pytest.mark.parametrize("equation", ["ij->i", "ijk,jk->i", "ij,jk->ii", "ij,jk->iz", "i1,jk->i"])
def test_a_malformed_einsum_is_refused(equation):
    with pytest.raises(ValueError, match="einsum equation"):
        tf.einsum(equation, MATRIX, MATRIX.T)


@pytest.mark.parametrize(
    ("order", "axis"),
    [("euclidean", None), (1, 0), (2, 1), (3, 1), (np.inf, -1)]
    + [(order, (0, 1)) for order in ("fro", 1, np.inf, 2)],
)
def test_norms_are_numpys(order, axis):
    numpy_order = None if order == "euclidean" else order
    expected = np.linalg.norm(MATRIX, numpy_order, axis, keepdims=True)
    if axis is None:
        expected = np.reshape(np.linalg.norm(MATRIX), (1, 1))
    value = evaluate(tf.norm(MATRIX, order, axis, keepdims=True))
    assert value.shape == expected.shape
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_a_norm_that_does_not_exist_is_refused():
    for order, axis in ((3, (0, 1)), ("fro", 0), (-1, 0), (2, (0, 0))):
        with pytest.raises(ValueError, match="must be"):
            tf.norm(MATRIX, order, axis)


def test_identity_matrices_and_traces():
    np.testing.assert_array_equal(evaluate(tf.eye(2, 3)), np.eye(2, 3))
    np.testing.assert_array_equal(evaluate(tf.eye(2, batch_shape=[3], dtype=tf.int32)), [np.eye(2)] * 3)
    np.testing.assert_array_equal(evaluate(tf.eye(tf.constant(2))), np.eye(2))
    assert evaluate(tf.trace(MATRIX)) == 6


def test_a_cholesky_factor_solves_its_system():
    matrix = np.array([[4.0, 1.0], [1.0, 3.0]])
    right = np.array([[1.0], [2.0]])
    np.testing.assert_allclose(evaluate(tf.cholesky_solve(tf.cholesky(matrix), right)), np.linalg.solve(matrix, right))
    np.testing.assert_allclose(evaluate(tf.linalg.logdet(matrix)), np.log(11))


# Random numbers


def steps(build, count=1):
    """The values of a tensor in `count` steps of one new session of a new graph."""
    with tf.Graph().as_default() as graph:
        tensor = build()
        session = SessionState()
        return [executor.run_graph_def(graph.as_graph_def(), [tensor.name], session=session)[0] for _ in range(count)]


def test_seeds_combine_as_tensorflows_do():
    assert tf.get_seed(None) == (None, None)
    assert tf.get_seed(5) == (87654321, 5)
    tf.set_random_seed(7)
    assert tf.get_seed(5) == (7, 5)
    assert tf.get_seed(None) == (7, 0)
    tf.random_normal([2])
    tf.random_normal([2], seed=5)
    assert tf.get_seed(None) == (7, 2)
    tf.set_random_seed(0)
    assert tf.get_seed(0) == (0, 2**31 - 1)


def test_a_graph_seed_repeats_every_op_and_tells_them_apart():
    def build():
        tf.set_random_seed(3)
        return tf.stack([tf.random_normal([4]), tf.random_normal([4])])

    (first, second), (again, _) = steps(build, 2), steps(build, 2)
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first[0], first[1])


def test_ranges_of_uniform_numbers():
    values = steps(lambda: tf.random_uniform([1000], -2, 3, seed=1))[0]
    assert values.dtype == np.float32 and values.min() >= -2 and values.max() < 3
    values = steps(lambda: tf.random_uniform([1000], maxval=3, dtype=tf.int64, seed=1))[0]
    assert values.dtype == np.int64 and set(values.tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match="Must specify maxval"):
        tf.random_uniform([2], dtype=tf.int32)
    with pytest.raises(ValueError, match="Invalid dtype"):
        tf.random_uniform([2], dtype=tf.uint8)


def test_normal_numbers_have_the_mean_and_the_deviation_asked_for():
    values = steps(lambda: tf.random_normal([5000], 3.0, 0.5, seed=1))[0]
    assert abs(values.mean() - 3) < 0.05 and abs(values.std() - 0.5) < 0.05
    values = steps(lambda: tf.truncated_normal([5000], 3.0, 0.5, seed=1))[0]
    assert np.abs(values - 3).max() < 1


def test_gamma_and_poisson_numbers_have_the_shape_of_their_parameters():
    assert tf.random_gamma([3], [[1.0], [2.0]], [1.0, 2.0]).shape == [3, 2, 2]
    assert tf.random_poisson([1.0, 2.0], [3]).shape == [3, 2]
    values = steps(lambda: tf.random_gamma([5000], 2.0, 4.0, seed=1))[0]
    assert abs(values.mean() - 0.5) < 0.05


def test_a_random_crop_is_a_part_of_the_whole():
    rows = np.arange(30).reshape(6, 5)
    crop = steps(lambda: tf.random_crop(rows, [2, 5], seed=1))[0]
    first = crop[0, 0] // 5
    np.testing.assert_array_equal(crop, rows[first : first + 2])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Need value.shape >= size"):
        steps(lambda: tf.random_crop(rows, [7, 5]))


def test_stateless_numbers_depend_on_their_seed_alone():
    first, again = steps(lambda: tf.random.stateless_uniform([3], [1, 2], 5, 6), 2)
    np.testing.assert_array_equal(first, again)
    assert first.min() >= 5


# Clipping


def test_clipping_by_value_keeps_slices_and_shapes():
    np.testing.assert_array_equal(evaluate(tf.clip_by_value(MATRIX, -1.0, 2.0)), MATRIX.clip(-1, 2))
    slices = tf.IndexedSlices(tf.constant([5.0, -5.0]), tf.constant([1, 2]))
    np.testing.assert_array_equal(evaluate(tf.clip_by_value(slices, -1.0, 2.0).values), [2, -1])
    with pytest.raises(ValueError, match="not compatible"):
        tf.clip_by_value(tf.constant([1.0]), tf.constant([0.0, 1.0]), 2.0)


def test_clipping_by_norm_scales_down_only_what_is_too_long():
    np.testing.assert_allclose(evaluate(tf.clip_by_norm([3.0, 4.0], 1.0)), [0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(evaluate(tf.clip_by_norm([3.0, 4.0], 9.0)), [3.0, 4.0], rtol=1e-6)
    rows = tf.clip_by_norm([[3.0, 4.0], [0.3, 0.4]], 1.0, axes=[1])
    np.testing.assert_allclose(evaluate(rows), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    np.testing.assert_array_equal(evaluate(tf.clip_by_norm([0.0, 0.0], 1.0)), [0.0, 0.0])


def test_the_gradient_of_clipping_a_zero_vector_is_a_number():
    x = tf.constant([0.0, 0.0])
    np.testing.assert_array_equal(evaluate(tf.gradients(tf.clip_by_norm(x, 1.0), x)[0]), [1.0, 1.0])


def test_clipping_by_the_global_norm_spares_none_and_spoils_all_on_infinity():
    slices = tf.IndexedSlices(tf.constant([4.0]), tf.constant([1]))
    (first, nothing, second), norm = tf.clip_by_global_norm([tf.constant([3.0]), None, slices], 1.0)
    assert nothing is None and isinstance(second, tf.IndexedSlices)
    assert evaluate(norm) == 5
    np.testing.assert_allclose([evaluate(first), evaluate(second.values)], [[0.6], [0.8]], rtol=1e-6)
    (spoilt,), _ = tf.clip_by_global_norm([tf.constant([np.inf, 1.0])], 1.0)
    assert np.isnan(evaluate(spoilt)).all()
    with pytest.raises(TypeError, match="sequence"):
        tf.global_norm(tf.constant(1.0))


# Gradients through shapes that are not known


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 3), (2, 1)), ((2, 3), ()), ((1, 3), (2, 1)), ((2, 3), (2, 3))])
def test_repeated_axes_are_summed_whatever_is_known_of_them(shapes):
    random = np.random.RandomState(0)
    arrays = [random.normal(size=shape) for shape in shapes]
    expected = None
    for known in (lambda shape: shape, lambda shape: [None] * len(shape), lambda shape: None):
        with tf.Graph().as_default():
            x, y = (tf.placeholder(tf.float64, known(shape)) for shape in shapes)
            feeds = dict(zip((x, y), arrays, strict=True))
            grads = [evaluate(grad, feeds) for grad in tf.gradients(tf.sin(x * y), [x, y])]
        expected = expected or grads
        for grad, first, array in zip(grads, expected, arrays, strict=True):
            assert grad.shape == array.shape
            np.testing.assert_allclose(grad, first)


def test_a_known_batch_dimension_is_not_needed_for_a_bias_gradient():
    x = tf.placeholder(tf.float32, [None, 3])
    bias = tf.constant([1.0, 2.0, 3.0])
    tf.gradients(x + bias, bias)
    types = {op.type for op in tf.get_default_graph().get_operations()}
    assert "Sum" in types and "BroadcastGradientArgs" not in types


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_prod])
@pytest.mark.parametrize("axis", [None, [1], [0, -1]])
def test_gradients_of_reductions_need_no_static_shape(reduce, axis):
    results = []
    for shape in (MATRIX.shape, [None, None]):
        with tf.Graph().as_default():
            x = tf.placeholder(tf.float32, shape)
            results.append(evaluate(tf.gradients(reduce(x, axis) ** 2, x)[0], {x: MATRIX}))
    assert results[0].shape == MATRIX.shape
    np.testing.assert_allclose(results[0], results[1], rtol=1e-5)
