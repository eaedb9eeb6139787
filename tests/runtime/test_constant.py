"""Constants, and what is known of tensors before anything runs."""

from __future__ import annotations

import numpy as np
import pytest

import dtf as tf
from dtf.build.constant_value import constant_value, constant_value_as_shape


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(1, tf.int32), (1.5, tf.float32), (True, tf.bool), ("x", tf.string), (1j, tf.complex128), (2**40, tf.int64)],
)
def test_a_python_value_has_tensorflows_dtype(value, dtype):
    assert tf.constant(value).dtype == dtype


def test_the_last_value_stands_for_the_rest_of_the_shape():
    np.testing.assert_array_equal(constant_value(tf.constant([1, 2], shape=[2, 2])), [[1, 2], [2, 2]])
    with pytest.raises(TypeError):
        tf.constant([1, 2], shape=[3], verify_shape=True)
    with pytest.raises(TypeError):
        tf.constant("x", tf.float32)


def test_values_are_followed_through_arithmetic_on_shapes():
    x = tf.placeholder(tf.float32, [3, 4])
    assert constant_value(tf.shape(x) * 2).tolist() == [6, 8]
    assert constant_value(tf.shape(x)[1]) == 4
    assert constant_value(tf.concat([tf.shape(x), [1]], 0)).tolist() == [3, 4, 1]
    assert constant_value(tf.stack([tf.size(x), 1])).tolist() == [12, 1]
    assert constant_value(tf.range(3)).tolist() == [0, 1, 2]
    assert constant_value(tf.cast(tf.constant([1.7]), tf.int32)).tolist() == [1]
    assert constant_value(x) is None


def test_shapes_are_followed_where_sizes_are_unknown():
    x = tf.placeholder(tf.float32, [None, 4])
    assert constant_value_as_shape(tf.shape(x)).as_list() == [None, 4]
    assert constant_value_as_shape(tf.stack([tf.shape(x)[0], 2])).as_list() == [None, 2]
    assert constant_value_as_shape(tf.concat([tf.shape(x)[1:], [-1]], 0)).as_list() == [4, None]
    assert constant_value_as_shape(tf.placeholder(tf.int32, [2])).as_list() == [None, None]
    assert constant_value_as_shape(tf.placeholder(tf.int32)).ndims is None
    assert tf.reshape(x, [tf.shape(x)[0], 2, 2]).shape.as_list() == [None, 2, 2]


def test_a_value_that_a_program_relied_on_cannot_be_fed(graph):
    size = tf.constant([2, 3])
    assert graph.is_feedable(size)
    tf.reshape(tf.placeholder(tf.float32), size)
    assert graph.is_feedable(size)  # a shape rule read it, as TensorFlow's do
    constant_value(size)
    assert not graph.is_feedable(size)
